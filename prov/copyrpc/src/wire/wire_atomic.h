/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Bytes of a call that changes the peer's memory atomically (docs/ring-protocol.md, section 3,
 * "operations").
 *
 *   call      operation word, [remote CQ data], struct wire_atomic, operands, comparison values
 *   response  struct wire_atomic_reply, old values
 *
 * Each list has `count` elements of the type's size, as in memory, without padding. An operation on
 * more elements than one call carries takes several calls; each element belongs to exactly one.
 */
#ifndef WIRE_WIRE_ATOMIC_H
#define WIRE_WIRE_ATOMIC_H

#include <assert.h>
#include <stdint.h>

/** Bytes of one list in a call, or of the old values in a response. */
#define WIRE_ATOMIC_LEN_MAX 2048u

struct wire_atomic {
	uint64_t addr;
	uint64_t key;
	uint32_t first; /* index of the first element within the operation */
	uint32_t total; /* elements of the whole operation */
	uint16_t count; /* elements of this call, at least 1 */
	uint8_t kind;   /* 0: no result; 1: returns old values; 2: also compares */
	uint8_t type;   /* enum fi_datatype */
	uint8_t op;     /* enum fi_op */
	uint8_t zero[3];
};

struct wire_atomic_reply {
	uint32_t status; /* 0: done; a positive FI_E*: nothing was changed, no values follow */
	uint32_t first;  /* from the call */
};

static_assert(sizeof(struct wire_atomic) == 32, "wire");
static_assert(sizeof(struct wire_atomic_reply) == 8, "wire");

#endif
