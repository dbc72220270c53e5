/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which bytes stand on a ring? (docs/ring-protocol.md, section 3)
 *
 *   batch   = struct wire_meta (32 B), then message_count messages
 *   message = struct wire_hdr (12 B), len bytes, padding to the next multiple of 32
 *
 * Everything is little endian; the sizes and offsets are asserted below. Pure: no state, no device.
 * Bytes read from a ring are copied out once and then validated; these structs never overlay
 * memory that a peer can still write.
 *
 * Shown by test/unit/wire/test_wire_ring.c (golden bytes).
 */
#ifndef WIRE_RING_H
#define WIRE_RING_H

#include <assert.h>
#include <endian.h>
#include <stddef.h>
#include <stdint.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the ring protocol is little endian and this build does not swap"
#endif

#define WIRE_ALIGN       32u /* every position is a multiple of it; the unit of an immediate */
#define WIRE_META_LEN    32u /* flow metadata at the head of each batch */
#define WIRE_HDR_LEN     12u /* message header */
#define WIRE_COUNT_WRAP  0xFFFFFFFFu /* message_count of a wrap marker */
#define WIRE_ID_RESPONSE 0x80000000u /* bit 31 of call_id */

struct wire_meta {
	uint64_t consumer_pos;  /* writer's released position in the opposite ring, absolute */
	uint64_t credit_grant;  /* response bytes newly granted to the reader */
	uint32_t message_count; /* 0: credit only; WIRE_COUNT_WRAP: wrap marker */
	uint32_t reserved;      /* zero */
	uint64_t link_word;     /* belongs to the link (dev.h, in-band arrival); zero elsewhere */
};

/*
 * The immediate of a write: units of WIRE_ALIGN from its head to the next one's. Or the short form, in
 * which it is the metadata of its batch as well: the 32 bytes of that do not travel, nothing is
 * granted, and the messages behind fill the batch.
 *
 *   31  30              16 15               0
 *   |1|  news              |  units          |     news: consumer_pos less the last one told, in units
 */
#define WIRE_IMM_SHORT       0x80000000u
#define WIRE_IMM_ADVANCE_MAX 0x7FFFu
#define WIRE_IMM_UNITS_MAX   0xFFFFu /* of the short form */

static inline uint32_t wire_imm_short(uint32_t units, uint32_t news)
{
	return WIRE_IMM_SHORT | news << 16 | units;
}

static inline uint32_t wire_imm_units(uint32_t imm)
{
	return imm & WIRE_IMM_SHORT ? imm & WIRE_IMM_UNITS_MAX : imm;
}

/** Of the short form. */
static inline uint32_t wire_imm_advance(uint32_t imm)
{
	return imm >> 16 & WIRE_IMM_ADVANCE_MAX;
}

struct wire_hdr {
	uint32_t call_id;   /* bit 31: response; else request id, or op and flags if one-way */
	uint32_t piggyback; /* request: response allowance in 32-byte blocks; 0 = one-way */
	uint32_t len;       /* bytes that follow, extension included */
};

static_assert(sizeof(struct wire_meta) == WIRE_META_LEN, "flow metadata is 32 bytes");
static_assert(offsetof(struct wire_meta, credit_grant) == 8, "wire");
static_assert(offsetof(struct wire_meta, message_count) == 16, "wire");
static_assert(offsetof(struct wire_meta, link_word) == 24, "wire");
static_assert(sizeof(struct wire_hdr) == WIRE_HDR_LEN, "message header is 12 bytes");

/** Ring bytes of a message with `len` bytes behind its header. */
static inline uint32_t wire_msg_span(uint32_t len)
{
	return (WIRE_HDR_LEN + len + WIRE_ALIGN - 1) & ~(WIRE_ALIGN - 1);
}

/** The same of a length that may be beyond any message. */
static inline uint64_t wire_long_span(uint64_t len)
{
	return (WIRE_HDR_LEN + len + WIRE_ALIGN - 1) & ~(uint64_t)(WIRE_ALIGN - 1);
}

/** What an allowance of `a` response bytes reserves of the writer's credit. */
static inline uint32_t wire_reservation(uint32_t a)
{
	return wire_msg_span(a) + WIRE_META_LEN;
}

/** The largest allowance that `reserve` bytes of credit are enough for; 0: not even an empty one. */
static inline uint32_t wire_resp_max(uint64_t reserve)
{
	reserve &= ~(uint64_t)(WIRE_ALIGN - 1);
	return reserve < wire_reservation(0) ? 0 : (uint32_t)reserve - WIRE_META_LEN - WIRE_HDR_LEN;
}

#endif
