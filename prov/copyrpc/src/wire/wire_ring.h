/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Layout of a ring's contents (docs/ring-protocol.md, section 3).
 *
 *   batch   = struct wire_meta (32 B), then message_count messages
 *   message = struct wire_hdr (12 B), len bytes, padding to the next multiple of 32
 *
 * All fields are little endian. A reader copies bytes out of the ring once and validates the copy;
 * these structs never overlay memory that the peer can still write. Pure: no state, no device.
 *
 * Tested by test/unit/wire/test_wire_ring.c (golden bytes).
 */
#ifndef WIRE_WIRE_RING_H
#define WIRE_WIRE_RING_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the ring protocol is little endian and this build does not swap"
#endif

#define WIRE_ALIGN       32u         /* alignment of every position; unit of an immediate */
#define WIRE_META_LEN    32u         /* flow metadata at the head of each batch */
#define WIRE_HDR_LEN     12u         /* message header */
#define WIRE_COUNT_WRAP  0xFFFFFFFFu /* message_count of a wrap marker */
#define WIRE_ID_RESPONSE 0x80000000u /* bit 31 of call_id */

struct wire_meta {
	uint64_t consumer_pos;  /* position released by the writer in the opposite ring, absolute */
	uint64_t credit_grant;  /* response bytes granted to the reader by this batch */
	uint32_t message_count; /* 0: credit only; WIRE_COUNT_WRAP: wrap marker */
	uint32_t reserved;      /* zero */
	uint64_t link_word;     /* reserved for the link (dev.h, in-band arrival); else zero */
};

/*
 * Immediate of a write: distance from its head to the next one's, in units of WIRE_ALIGN. The short
 * form replaces the metadata of its batch: those 32 bytes are not sent, grant nothing, and the
 * messages fill the batch.
 *
 *   31  30              16 15               0
 *   |1|  advance           |  units          |     advance: of consumer_pos, in units
 */
#define WIRE_IMM_SHORT       0x80000000u
#define WIRE_IMM_ADVANCE_MAX 0x7FFFu
#define WIRE_IMM_UNITS_MAX   0xFFFFu /* limit of the short form */

static inline uint32_t wire_imm_short(uint32_t units, uint32_t advance)
{
	return WIRE_IMM_SHORT | advance << 16 | units;
}

static inline uint32_t wire_imm_units(uint32_t imm)
{
	return imm & WIRE_IMM_SHORT ? imm & WIRE_IMM_UNITS_MAX : imm;
}

/** Returns the advance of consumer_pos in a short immediate. */
static inline uint32_t wire_imm_advance(uint32_t imm)
{
	return imm >> 16 & WIRE_IMM_ADVANCE_MAX;
}

struct wire_hdr {
	uint32_t call_id;   /* bit 31: response; else call id, or operation and flags if one-way */
	uint32_t piggyback; /* call: maximum response size in 32-byte blocks; 0: one-way */
	uint32_t len;       /* bytes that follow, extension included */
};

static_assert(sizeof(struct wire_meta) == WIRE_META_LEN, "flow metadata is 32 bytes");
static_assert(offsetof(struct wire_meta, credit_grant) == 8, "wire");
static_assert(offsetof(struct wire_meta, message_count) == 16, "wire");
static_assert(offsetof(struct wire_meta, link_word) == 24, "wire");
static_assert(sizeof(struct wire_hdr) == WIRE_HDR_LEN, "message header is 12 bytes");

/** Returns the ring bytes of a message with `len` bytes after its header. */
static inline uint32_t wire_msg_span(uint32_t len)
{
	return (WIRE_HDR_LEN + len + WIRE_ALIGN - 1) & ~(WIRE_ALIGN - 1);
}

/** Returns the ring bytes of a message like wire_msg_span, for lengths beyond any message. */
static inline uint64_t wire_long_span(uint64_t len)
{
	return (WIRE_HDR_LEN + len + WIRE_ALIGN - 1) & ~(uint64_t)(WIRE_ALIGN - 1);
}

/** Returns the credit that a call with `a` bytes of maximum response size reserves. */
static inline uint32_t wire_reservation(uint32_t a)
{
	return wire_msg_span(a) + WIRE_META_LEN;
}

/** Returns the largest maximum response size for `reserve` bytes of credit; 0 if there is none. */
static inline uint32_t wire_resp_max(uint64_t reserve)
{
	reserve &= ~(uint64_t)(WIRE_ALIGN - 1);
	return reserve < wire_reservation(0) ? 0 : (uint32_t)reserve - WIRE_META_LEN - WIRE_HDR_LEN;
}

#endif
