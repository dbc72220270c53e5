/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The 64-bit tag of a message: protocol, communicator, source and MPI tag. Used by all files of the
 * component that post or complete; includes nothing of Open MPI, so that a unit test can.
 *
 *	63  62   61 .. 44       43 .. 24          23 .. 0
 *	ack sync context (18)   source rank (20)  MPI tag (24, two's complement)
 *
 * Receives ignore the sync bit, so that a synchronous message matches like any other. MPI_ANY_TAG
 * does not ignore bit 23: tags of users are not negative, and those of collective operations are.
 * A negative tag keeps its low 23 bits; Open MPI numbers nonblocking collectives downwards, and two
 * that are 2^23 apart have the same tag.
 *
 * The source is the rank in the sender's group of the communicator, which the receiver sees as the
 * remote group of an inter-communicator.
 */
#ifndef PML_COPYRPC_TAG_H
#define PML_COPYRPC_TAG_H

#include <stdbool.h>
#include <stdint.h>

#define PML_TAG_BITS     24
#define PML_SOURCE_BITS  20
#define PML_CONTEXT_BITS 18

#define PML_SOURCE_SHIFT  PML_TAG_BITS
#define PML_CONTEXT_SHIFT (PML_TAG_BITS + PML_SOURCE_BITS)

/** Largest MPI tag, number of ranks and context. */
#define PML_TAG_MAX     ((1 << (PML_TAG_BITS - 1)) - 1)
#define PML_RANKS_MAX   (1 << PML_SOURCE_BITS)
#define PML_CONTEXT_MAX ((1 << PML_CONTEXT_BITS) - 1)
/** Contexts from here on are of communicators that were made of a group, without a parent. */
#define PML_CONTEXT_GROUP (1 << (PML_CONTEXT_BITS - 1))

#define PML_TAG_SYNC (UINT64_C(1) << 62)
#define PML_TAG_ACK  (UINT64_C(1) << 63)
/** Tag of the message that makes a connection; acknowledgements do not have the sync bit. */
#define PML_TAG_CONNECT (PML_TAG_ACK | PML_TAG_SYNC)
#define PML_TAG_MASK    ((UINT64_C(1) << PML_TAG_BITS) - 1)
#define PML_SOURCE_MASK (((UINT64_C(1) << PML_SOURCE_BITS) - 1) << PML_SOURCE_SHIFT)

/** Bits that a receive ignores with MPI_ANY_TAG: those of all tags that are not negative. */
#define PML_ANY_TAG_MASK ((uint64_t)PML_TAG_MAX)

/** Returns the bits of an MPI tag: its low ones, and the sign in front of them. */
static inline uint64_t pml_tag_bits(int tag)
{
	if (__builtin_expect(tag >= 0, 1)) /* at most PML_TAG_MAX, which MPI_TAG_UB tells */
		return (uint32_t)tag;
	return ((uint32_t)tag & PML_TAG_MAX) | UINT64_C(1) << (PML_TAG_BITS - 1);
}

static inline uint64_t pml_tag_pack(uint32_t context, int source, int tag)
{
	return (uint64_t)context << PML_CONTEXT_SHIFT |
	       (uint64_t)(uint32_t)source << PML_SOURCE_SHIFT | pml_tag_bits(tag);
}

/** Returns the MPI tag. A negative one comes back as it was down to -2^23. */
static inline int pml_tag_user(uint64_t tag)
{
	return (int)((int32_t)((uint32_t)tag << (32 - PML_TAG_BITS)) >> (32 - PML_TAG_BITS));
}

static inline int pml_tag_source(uint64_t tag)
{
	return (int)((tag & PML_SOURCE_MASK) >> PML_SOURCE_SHIFT);
}

/** Returns the tag of the acknowledgement of a synchronous message, sent by rank receiver. */
static inline uint64_t pml_tag_ack(uint64_t tag, int receiver)
{
	return (tag & ~(PML_TAG_SYNC | PML_SOURCE_MASK)) | PML_TAG_ACK |
	       (uint64_t)(uint32_t)receiver << PML_SOURCE_SHIFT;
}

#endif
