/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What does a call say that changes the peer's memory in one step? (docs/ring-protocol.md, section
 * 3, "operations")
 *
 *   call   operation word, [remote CQ data], struct wire_atomic, operands, values to compare with
 *   reply  struct wire_atomic_reply, old values
 *
 * Each list has `count` elements of the type's size, as they are in memory, without padding. An
 * operation on more elements than one call carries is several calls; each element belongs to one.
 */
#ifndef WIRE_ATOMIC_H
#define WIRE_ATOMIC_H

#include <assert.h>
#include <stdint.h>

/** Bytes of one list in a call, or of the old values in a reply. */
#define WIRE_ATOMIC_LEN_MAX 2048u

struct wire_atomic {
	uint64_t addr;
	uint64_t key;
	uint32_t first; /* elements of the operation before this call's */
	uint32_t total; /* elements of the whole operation */
	uint16_t count; /* elements of this call: at least 1 */
	uint8_t kind;   /* 0: nothing comes back; 1: old values do; 2: also compares */
	uint8_t type;   /* enum fi_datatype */
	uint8_t op;     /* enum fi_op */
	uint8_t zero[3];
};

struct wire_atomic_reply {
	uint32_t status; /* 0: done; a positive FI_E*: nothing was done, no values follow */
	uint32_t first;  /* of the call */
};

static_assert(sizeof(struct wire_atomic) == 32, "wire");
static_assert(sizeof(struct wire_atomic_reply) == 8, "wire");

#endif
