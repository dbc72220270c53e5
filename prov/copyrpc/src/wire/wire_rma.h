/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What does a remote memory access look like? (docs/ring-protocol.md, section 3, "remote memory access")
 *
 * An access is one call or several: each names a stretch of the target's memory, is executed by the
 * target for itself and answered. The target keeps nothing of an access between its calls.
 *
 *   WRITE  struct wire_rma, then the bytes          reply: struct wire_rma_reply
 *   READ   struct wire_rma                          reply: struct wire_rma_reply, then the bytes
 *   FETCH  struct wire_rma, struct wire_rma_source  reply: struct wire_rma_reply
 *   LEND   struct wire_rma                          reply: struct wire_rma_reply, and, if it says
 *                                                   LENT, struct wire_rma_exposure; the reader then
 *                                                   gives it back with a one-way LEND:
 *                                                   struct wire_rma_return
 * The call that covers the last byte of an access is its end: it alone carries remote CQ data, and
 * is what the target counts; a LEND counts when its loan comes back, if the bytes were got.
 */
#ifndef WIRE_RMA_H
#define WIRE_RMA_H

#include <assert.h>
#include <stdint.h>

#define WIRE_RMA_READ_MAX 8192u /* bytes that one READ may ask for */

/** WRITE, READ, FETCH, LEND: behind the remote CQ data. */
struct wire_rma {
	uint64_t addr; /* in the target's region: address or offset, as it was registered */
	uint64_t key;
	uint64_t len;    /* bytes of this call */
	uint64_t offset; /* of them in the access; comes back with the reply */
	uint64_t total;  /* bytes of the access */
};

/** FETCH: where the bytes are. */
struct wire_rma_source {
	uint64_t addr; /* in the writer's address space, for the device's get */
	uint64_t key;  /* device's key for it; 0 where the device needs none */
};

struct wire_rma_reply {
	uint32_t status; /* 0: done; a positive FI_E*; or one of the words below */
	uint32_t zero;
	uint64_t offset; /* as in the call */
};

#define WIRE_RMA_LENT    0xFFFFFFFEu /* to LEND: a loan follows */
#define WIRE_RMA_REFUSED 0xFFFFFFFFu /* to FETCH and LEND: not possible, use WRITE or READ */

/** Reply to LEND. */
struct wire_rma_exposure {
	uint64_t addr; /* in the target's address space, for the device's get */
	uint64_t key;
	uint32_t exposure_id; /* names it when it is given back */
	uint32_t zero;
};

/** One-way LEND. */
struct wire_rma_return {
	uint32_t exposure_id;
	uint32_t
		status; /* 0: the access is over; a positive FI_E*: nothing was got, READs follow */
};

static_assert(sizeof(struct wire_rma) == 40, "wire");
static_assert(sizeof(struct wire_rma_source) == 16, "wire");
static_assert(sizeof(struct wire_rma_reply) == 16, "wire");
static_assert(sizeof(struct wire_rma_exposure) == 24, "wire");
static_assert(sizeof(struct wire_rma_return) == 8, "wire");

#endif
