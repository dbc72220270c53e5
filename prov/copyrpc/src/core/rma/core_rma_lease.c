/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Leases at the initiator: see core_rma_lease.h. */
#include "core/rma/core_rma_lease.h"

#include <rdma/fabric.h>
#include <stdlib.h>
#include <string.h>

#include "core/core_peer.h"
#include "wire/wire_rma.h"

#define CORE_RMA_LEASE_SLOTS_MIN 16u

static struct core_rma_lease **core_rma_lease_slot(const struct core_rma_leases *leases,
						   uint64_t key)
{
	return &leases->slots[(key * 0x9E3779B97F4A7C15u >> 32) & (leases->slot_cnt - 1)];
}

struct core_rma_lease *core_rma_lease_lookup(const struct core_peer *peer, uint64_t key)
{
	struct core_rma_leases *leases = peer->leases;
	struct core_rma_lease *lease;

	if (!leases)
		return NULL;
	if (leases->last && leases->last->key == key)
		return leases->last;
	for (lease = *core_rma_lease_slot(leases, key); lease && lease->key != key;
	     lease = lease->next)
		;
	leases->last = lease;
	return lease;
}

static void core_rma_lease_link(struct core_rma_leases *leases, struct core_rma_lease *lease)
{
	struct core_rma_lease **slot = core_rma_lease_slot(leases, lease->key);

	lease->next = *slot;
	*slot = lease;
}

static void core_rma_lease_free(struct core_peer *peer, struct core_rma_lease *lease)
{
	struct core_rma_leases *leases = peer->leases;
	struct core_rma_lease **at;

	for (at = core_rma_lease_slot(leases, lease->key); *at != lease; at = &(*at)->next)
		;
	*at = lease->next;
	leases->cnt--;
	leases->last = NULL;
	free(lease);
}

/** Makes room for one more lease: doubles the slots when there are as many leases. */
static bool core_rma_lease_grow(struct core_rma_leases *leases)
{
	uint32_t old_cnt = leases->slot_cnt, cnt = old_cnt ? 2 * old_cnt : CORE_RMA_LEASE_SLOTS_MIN;
	struct core_rma_lease **old = leases->slots, **slots, *lease, *next;

	if (leases->cnt < old_cnt)
		return true;
	slots = calloc(cnt, sizeof(*slots));
	if (!slots)
		return false;
	leases->slots = slots;
	leases->slot_cnt = cnt;
	for (uint32_t i = 0; i < old_cnt; i++) {
		for (lease = old[i]; lease; lease = next) {
			next = lease->next;
			core_rma_lease_link(leases, lease);
		}
	}
	free(old);
	return true;
}

/**
 * Drops a lease that is not in use. Returns false if there is none, or if simple accesses are in
 * progress, which are not counted by lease.
 */
static bool core_rma_lease_evict(struct core_peer *peer)
{
	struct core_rma_leases *leases = peer->leases;
	struct core_rma_lease *lease;

	if (core_simple_is_awaited(&peer->simple))
		return false;
	for (uint32_t i = 0; i < leases->slot_cnt; i++) {
		lease = leases->slots[leases->hand++ & (leases->slot_cnt - 1)];
		while (lease && (lease->users || lease->state != CORE_RMA_LEASE_HELD))
			lease = lease->next;
		if (!lease)
			continue;
		core_rma_lease_free(peer, lease);
		return true;
	}
	return false;
}

static bool core_rma_lease_make_room(struct core_peer *peer)
{
	if (!peer->leases)
		peer->leases = calloc(1, sizeof(*peer->leases));
	if (!peer->leases)
		return false;
	if (peer->leases->cnt >= CORE_RMA_LEASES_MAX && !core_rma_lease_evict(peer))
		return false;
	return core_rma_lease_grow(peer->leases);
}

/** Takes the terms of a lease. Returns false if there is none. */
static bool core_rma_lease_take(struct core_rma_lease *lease, const uint8_t *data, uint32_t len)
{
	struct wire_lease terms;

	if (len != sizeof(terms))
		return false;
	memcpy(&terms, data, sizeof(terms));
	lease->rights = (terms.rights & WIRE_LEASE_READ ? FI_REMOTE_READ : 0) |
			(terms.rights & WIRE_LEASE_WRITE ? FI_REMOTE_WRITE : 0);
	lease->base = terms.base;
	lease->len = terms.len;
	lease->shift = terms.addr - terms.base;
	lease->rkey = terms.rkey;
	lease->state = CORE_RMA_LEASE_HELD;
	return !terms.status && terms.len <= UINT64_MAX - terms.base;
}

static void core_rma_lease_on_reply(struct core_op *op, int status, const uint8_t *data,
				    uint32_t len)
{
	struct core_rma_lease *lease = UTIL_CONTAINER_OF(op, struct core_rma_lease, op);
	struct core_peer *peer = op->peer;

	core_op_end(op);
	if (status || !core_rma_lease_take(lease, data, len))
		core_rma_lease_free(peer, lease);
}

static void core_rma_lease_fail(struct core_op *op, int err)
{
	core_rma_lease_on_reply(op, err, NULL, 0);
}

static const struct core_op_ops core_rma_lease_ops = {
	.on_reply = core_rma_lease_on_reply,
	.fail = core_rma_lease_fail,
};

static int core_rma_lease_call(struct core_rma_lease *lease, struct core_chan *chan)
{
	struct wire_lease_call call = { .key = lease->key, .kind = WIRE_LEASE_REQUEST };
	struct iovec iov = { .iov_base = &call, .iov_len = sizeof(call) };
	struct core_frame frame = {
		.op = WIRE_OP_LEASE, .iov = &iov, .iov_cnt = 1, .len = sizeof(call)
	};

	return chan->ops->call(chan, &frame, sizeof(struct wire_lease), &lease->op, 0);
}

/** Requests a lease in front of the access that needs it. Without room the next access tries. */
static void core_rma_lease_request(struct core_peer *peer, uint64_t key)
{
	struct core_rma_lease *lease;

	if (peer->chan->resp_lim < sizeof(struct wire_lease) || !core_rma_lease_make_room(peer))
		return;
	lease = calloc(1, sizeof(*lease));
	if (!lease)
		return;
	lease->key = key;
	lease->state = CORE_RMA_LEASE_REQUESTED;
	core_rma_lease_link(peer->leases, lease);
	peer->leases->cnt++;
	peer->leases->last = NULL;
	core_op_adopt(&lease->op, &core_rma_lease_ops, peer);
	if (core_rma_lease_call(lease, peer->chan))
		core_rma_lease_fail(&lease->op, -FI_EAGAIN);
}

struct core_rma_lease *core_rma_lease_find(struct core_peer *peer, const struct fi_rma_iov *remote,
					   uint64_t right)
{
	struct core_rma_lease *lease = core_rma_lease_lookup(peer, remote->key);

	if (UTIL_UNLIKELY(lease && !lease->rights && lease->state == CORE_RMA_LEASE_HELD &&
			  ++lease->refused > CORE_RMA_LEASE_RETRY)) {
		core_rma_lease_free(peer, lease);
		lease = NULL;
	}
	if (UTIL_UNLIKELY(!lease)) {
		core_rma_lease_request(peer, remote->key);
		return NULL;
	}
	return core_rma_lease_permits(lease, remote->addr, remote->len, right) ? lease : NULL;
}

static void core_rma_lease_return(struct core_chan *chan, struct core_call_ref ref)
{
	if (chan)
		chan->ops->reply(chan, ref, NULL, 0, 0, 0);
}

/** Ends a revoked lease, unless accesses by it may be in progress. Returns true if it has ended. */
static bool core_rma_lease_end(struct core_peer *peer, struct core_rma_lease *lease)
{
	if (lease->users || peer->simple.head < lease->until)
		return false;
	core_rma_lease_return(peer->chan, lease->revoke);
	core_rma_lease_free(peer, lease);
	return true;
}

void core_rma_lease_put(struct core_peer *peer, struct core_rma_lease *lease)
{
	if (!--lease->users && lease->state == CORE_RMA_LEASE_REVOKED)
		core_rma_lease_end(peer, lease);
}

void core_rma_lease_accessed(struct core_peer *peer)
{
	struct core_rma_leases *leases = peer->leases;
	struct core_rma_lease *lease, *next;

	peer->simple.lease_waits = false;
	for (uint32_t i = 0; i < leases->slot_cnt; i++) {
		for (lease = leases->slots[i]; lease; lease = next) {
			next = lease->next;
			if (lease->state == CORE_RMA_LEASE_REVOKED &&
			    !core_rma_lease_end(peer, lease))
				peer->simple.lease_waits = true;
		}
	}
}

/*
 * A request that is outstanding is no lease: the target serves it after the end of the region, or
 * for its successor with the same key.
 */
enum core_rx_verdict core_rma_lease_revoked(struct core_chan *chan, struct core_call_ref ref,
					    uint64_t key)
{
	struct core_rma_lease *lease = core_rma_lease_lookup(chan->peer, key);
	bool held = lease && lease->state == CORE_RMA_LEASE_HELD;
	struct core_simple *simple = &chan->peer->simple;

	if (held && (lease->users || core_simple_is_awaited(simple))) {
		lease->state = CORE_RMA_LEASE_REVOKED;
		lease->revoke = ref;
		lease->until = simple->awaited;
		simple->lease_waits = true;
		return CORE_RX_DONE;
	}
	if (held)
		core_rma_lease_free(chan->peer, lease);
	core_rma_lease_return(chan, ref);
	return CORE_RX_DONE;
}

void core_rma_lease_drop_all(struct core_peer *peer)
{
	struct core_rma_leases *leases = peer->leases;

	if (!leases)
		return;
	for (uint32_t i = 0; i < leases->slot_cnt; i++)
		while (leases->slots[i])
			core_rma_lease_free(peer, leases->slots[i]);
	free(leases->slots);
	free(leases);
	peer->leases = NULL;
}
