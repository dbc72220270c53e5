/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Bytes of a remote memory access (docs/ring-protocol.md, section 3, "remote memory access").
 *
 * An access takes one call or several. Each call names a range of the target's memory, and the
 * target executes it independently. The target retains nothing of an access between its calls.
 *
 *           call                                     response
 *   WRITE   struct wire_rma, then the bytes          struct wire_rma_reply
 *   READ    struct wire_rma                          struct wire_rma_reply, then the bytes
 *   FETCH   struct wire_rma, struct wire_rma_source  struct wire_rma_reply
 *   EXPOSE  struct wire_rma                          struct wire_rma_reply; with status EXPOSED
 *                                                    struct wire_rma_exposure follows. The reader
 *                                                    ends the exposure with a one-way EXPOSE:
 *                                                    struct wire_rma_return
 *
 *   LEASE   struct wire_lease_call                   struct wire_lease, or nothing to REVOKE
 *
 * The call that covers the last byte ends the access: it alone carries remote CQ data, and the
 * target counts it. An EXPOSE counts when its exposure ends, if the bytes were read.
 */
#ifndef WIRE_WIRE_RMA_H
#define WIRE_WIRE_RMA_H

#include <assert.h>
#include <stdint.h>

#define WIRE_RMA_READ_MAX 8192u /* bytes that one READ may request */

/** WRITE, READ, FETCH, EXPOSE: follows the remote CQ data. */
struct wire_rma {
	uint64_t
		addr; /* in the target's region: address or offset, according to its registration */
	uint64_t key;
	uint64_t len;    /* bytes of this call */
	uint64_t offset; /* position of these bytes in the access; returned in the response */
	uint64_t total;  /* bytes of the access */
};

/** FETCH: location of the bytes. */
struct wire_rma_source {
	uint64_t addr; /* in the writer's address space, for the device's get */
	uint64_t key;  /* the device's rkey; 0 if the device needs none */
};

struct wire_rma_reply {
	uint32_t status; /* 0: done; a positive FI_E*; or a WIRE_RMA_* value below */
	uint32_t zero;
	uint64_t offset; /* from the call */
};

#define WIRE_RMA_EXPOSED 0xFFFFFFFEu /* response to EXPOSE: an exposure follows */
#define WIRE_RMA_REFUSED                                                                           \
	0xFFFFFFFFu /* response to FETCH and EXPOSE: not possible, use WRITE or READ */

/** Response to EXPOSE. */
struct wire_rma_exposure {
	uint64_t addr; /* in the target's address space, for the device's get */
	uint64_t key;
	uint32_t exposure_id; /* identifies the exposure when it ends */
	uint32_t zero;
};

/** One-way EXPOSE. */
struct wire_rma_return {
	uint32_t exposure_id;
	uint32_t status; /* 0: the access is over; a positive FI_E*: not read, READs follow */
};

enum wire_lease_kind {
	WIRE_LEASE_REQUEST = 0, /* by the end that accesses the region */
	WIRE_LEASE_REVOKE = 1,  /* by the end that owns it; the response follows the last access */
};

/** LEASE. */
struct wire_lease_call {
	uint64_t key;  /* of the region */
	uint32_t kind; /* enum wire_lease_kind */
	uint32_t zero;
};

#define WIRE_LEASE_READ  0x1u /* the device may read the region */
#define WIRE_LEASE_WRITE 0x2u /* the device may write the region */

/** Response to a REQUEST. */
struct wire_lease {
	uint32_t status; /* 0, or a positive FI_E*: no such region, or no lease, now */
	uint32_t rights; /* WIRE_LEASE_*; 0: the region is accessed by calls only */
	uint64_t base;   /* first address of the region for accesses */
	uint64_t len;    /* bytes of the region */
	uint64_t addr;   /* of the first byte in the owner's address space, for the device */
	uint64_t rkey;   /* for the device */
};

static_assert(sizeof(struct wire_lease_call) == 16, "wire");
static_assert(sizeof(struct wire_lease) == 40, "wire");
static_assert(sizeof(struct wire_rma) == 40, "wire");
static_assert(sizeof(struct wire_rma_source) == 16, "wire");
static_assert(sizeof(struct wire_rma_reply) == 16, "wire");
static_assert(sizeof(struct wire_rma_exposure) == 24, "wire");
static_assert(sizeof(struct wire_rma_return) == 8, "wire");

#endif
