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
 * Negative tags are folded into 23 bits, each of three ranges by itself: blocking collectives,
 * which have fixed tags, nonblocking ones, which Open MPI numbers downwards, and neighbourhood
 * collectives, whose tags lie below those. No message has the tag -2^23.
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
/** Bits of the tag that no message has: a receive of it ends with an error alone. */
#define PML_TAG_NEVER   (UINT64_C(1) << (PML_TAG_BITS - 1))
#define PML_TAG_MASK    ((UINT64_C(1) << PML_TAG_BITS) - 1)
#define PML_SOURCE_MASK (((UINT64_C(1) << PML_SOURCE_BITS) - 1) << PML_SOURCE_SHIFT)

/** Bits that a receive ignores with MPI_ANY_TAG: those of all tags that are not negative. */
#define PML_ANY_TAG_MASK ((uint64_t)PML_TAG_MAX)

/** Tags above -PML_TAG_EXACT keep their bits: blocking collectives, and the first others. */
#define PML_TAG_EXACT 1024u
/** Tags from -PML_TAG_FAR downwards: neighbourhood collectives, and those of other libraries. */
#define PML_TAG_FAR ((UINT32_C(1) << 30) - 1)
/** Bits of a folded tag from which on that range begins. */
#define PML_TAG_HALF (UINT32_C(1) << (PML_TAG_BITS - 2))

/** Returns the number below 2^23 that stands for the negative tag -n. */
static inline uint32_t pml_tag_fold(uint32_t n)
{
	if (n < PML_TAG_EXACT)
		return n;
	if (n < PML_TAG_FAR)
		return PML_TAG_EXACT + (n - PML_TAG_EXACT) % (PML_TAG_HALF - PML_TAG_EXACT);
	return PML_TAG_HALF + (n - PML_TAG_FAR) % PML_TAG_HALF;
}

/** Returns the bits of a negative MPI tag. Not inlined: messages of users need the registers. */
static __attribute__((noinline, const, unused)) uint64_t pml_tag_bits_negative(int tag)
{
	return (0u - pml_tag_fold(0u - (uint32_t)tag)) & PML_TAG_MASK;
}

/** Returns true for tags that pml_tag_bits_kept() takes: users', and those of most collectives. */
static inline bool pml_tag_is_kept(int tag)
{
	return tag > -(int)PML_TAG_EXACT;
}

static inline uint64_t pml_tag_bits_kept(int tag)
{
	return (uint32_t)tag & (uint32_t)PML_TAG_MASK;
}

/** Returns the bits of an MPI tag: at most PML_TAG_MAX, or a negative one, folded. */
static inline uint64_t pml_tag_bits(int tag)
{
	return __builtin_expect(tag >= 0, 1) ? (uint32_t)tag : pml_tag_bits_negative(tag);
}

static inline uint64_t pml_tag_pack(uint32_t context, int source, int tag)
{
	return (uint64_t)context << PML_CONTEXT_SHIFT |
	       (uint64_t)(uint32_t)source << PML_SOURCE_SHIFT | pml_tag_bits(tag);
}

/** Returns the MPI tag. A negative one comes back as it was if it is above -2^22. */
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
