/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Leases: what a peer's device needs to know to access a region without its owner's processor
 * (docs/rma.md). Called by core_rma.c and core_rma_direct.c; the calls arrive through
 * core_handlers.
 *
 *   initiator                                target
 *   request ------- REQUEST(key) ----------> registers the region, records the lessee
 *   lease   <------ rights, bounds, rkey --- (or: calls only; or: no such region or no lease now)
 *   direct accesses, any number              nothing
 *           <------ REVOKE(key) ------------ fi_close or renewal of the region
 *   waits for those in progress
 *           ------- response --------------> deregisters the region
 *
 * The initiator requests a lease with its first access by a key, which goes by calls. A lease is
 * kept until it is revoked, the connection ends, or CORE_RMA_LEASES_MAX are held: then one without
 * accesses in progress is dropped, of which the target learns nothing.
 *
 * The target waits for the responses for a bounded time (cpr_mr.c), then deregisters the region
 * anyway. A late access then fails at the device and ends its connection.
 *
 * A lease has no right that the region and the endpoint do not grant, and none whose accesses a
 * counter of the target counts.
 *
 * Owner: the thread that holds the domain. Tests: test/unit/core/rma/test_core_rma_lease.c,
 * test_core_rma_lessee.c.
 */
#ifndef CORE_RMA_CORE_RMA_LEASE_H
#define CORE_RMA_CORE_RMA_LEASE_H

#include <rdma/fi_rma.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/core_chan.h"
#include "core/core_head.h"
#include "core/core_op.h"
#include "core/core_peer.h"

struct core_mr;

#define CORE_RMA_LEASES_MAX 1024u /* of one peer */
/** Accesses by a lease without rights, which is not revoked, before it is requested again. */
#define CORE_RMA_LEASE_RETRY 1024u

enum core_rma_lease_state {
	CORE_RMA_LEASE_REQUESTED, /* the response is outstanding */
	CORE_RMA_LEASE_HELD,      /* may be used */
	CORE_RMA_LEASE_REVOKED,   /* not used any more; the target waits for accesses in progress */
};

/** Leases of a peer by key: chains in a power-of-two number of slots. */
struct core_rma_leases {
	struct core_rma_lease *last; /* found by the last access, or NULL */
	struct core_rma_lease **slots;
	uint32_t slot_cnt;
	uint32_t cnt;
	uint32_t hand; /* slot where the search for a lease to drop begins */
};

/** Lease of a peer's region, at the initiator. */
struct core_rma_lease {
	struct core_op op;           /* the request, while it is outstanding */
	struct core_rma_lease *next; /* in its slot of core_rma_leases */
	enum core_rma_lease_state state;
	uint32_t users;   /* direct accesses in progress */
	uint32_t refused; /* accesses by a lease without rights */
	uint64_t until;   /* CORE_RMA_LEASE_REVOKED: simple accesses that must have ended */
	struct core_call_ref revoke; /* CORE_RMA_LEASE_REVOKED: call to reply to */
	uint64_t key;                /* of the region, chosen by its owner's user */
	uint64_t rights;             /* FI_REMOTE_READ, FI_REMOTE_WRITE */
	uint64_t base, len, rkey;    /* terms of struct wire_lease */
	uint64_t shift;              /* address for the device, less the user's */
};

/* --- initiator --- */

/** Returns the lease of a key, or NULL. Requests none. */
struct core_rma_lease *core_rma_lease_lookup(const struct core_peer *peer, uint64_t key);

/** Equals core_rma_lease_lookup; quick for the lease that the last access to the peer found. */
static inline const struct core_rma_lease *core_rma_lease_get(const struct core_peer *peer,
							      uint64_t key)
{
	const struct core_rma_lease *last = peer->leases ? peer->leases->last : NULL;

	return UTIL_LIKELY(last && last->key == key) ? last : core_rma_lease_lookup(peer, key);
}

/** Returns true if a lease permits an access of [addr, addr + len). */
static inline bool core_rma_lease_permits(const struct core_rma_lease *lease, uint64_t addr,
					  uint64_t len, uint64_t right)
{
	uint64_t off = addr - lease->base;

	/* No sum that could wrap. An address before base has an offset beyond len. */
	return lease->state == CORE_RMA_LEASE_HELD && (lease->rights & right) &&
	       off <= lease->len && len <= lease->len - off;
}

/**
 * Returns a lease that permits an access of [addr, addr + len), or NULL: the access goes by calls.
 * Requests the lease if there is none. `right`: FI_REMOTE_READ or FI_REMOTE_WRITE.
 */
struct core_rma_lease *core_rma_lease_find(struct core_peer *peer, const struct fi_rma_iov *remote,
					   uint64_t right);
/** Ends a direct access, which had counted itself in `users`. */
void core_rma_lease_put(struct core_peer *peer, struct core_rma_lease *lease);
/** Responds to revocations that waited for simple accesses which have ended. */
void core_rma_lease_accessed(struct core_peer *peer);
/** Drops all leases of a peer that has failed. */
void core_rma_lease_drop_all(struct core_peer *peer);

/** Handles a REVOKE. */
enum core_rx_verdict core_rma_lease_revoked(struct core_chan *chan, struct core_call_ref ref,
					    uint64_t key);

/* --- target --- */

/** Handles WIRE_OP_LEASE. */
enum core_rx_verdict core_rma_on_lease(struct core_chan *chan, struct core_call_ref ref,
				       struct core_head *head, core_retain_t retain);
/** Revokes the leases of a region. Called again while it is busy, until all could be sent. */
void core_rma_lessee_revoke(struct core_mr *mr);
/**
 * Begin and end a renewal of a region: its leases are revoked, and requests get FI_EAGAIN until its
 * end. Called with the locks of all domains. The caller deregisters the region in between.
 */
void core_rma_lessee_renew(struct core_mr *mr);
void core_rma_lessee_renewed(struct core_mr *mr);
/** Forgets the lessees of a region. The caller deregisters it. */
void core_rma_lessee_forget(struct core_mr *mr);
/** Forgets the leases of a peer that has failed. */
void core_rma_lessee_drop_all(struct core_peer *peer);

#endif
