/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Names of peers: see core_peer_name.h. */
#include "core/core_peer_name.h"

#include <assert.h>
#include <netinet/in.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/core_dom.h"
#include "core/core_module.h"
#include "core/core_op.h"
#include "core/core_peer.h"
#include "util/clock.h"
#include "util/name.h"

int core_peer_reserve(struct core_ep *ep, uint64_t fi_addr)
{
	uint64_t cnt = ep->peer_cnt ? ep->peer_cnt : 16;
	struct core_peer **peers;

	if (fi_addr < ep->peer_cnt)
		return 0;
	while (cnt <= fi_addr)
		cnt *= 2;
	peers = realloc(ep->peers, cnt * sizeof(struct core_peer *));
	if (!peers)
		return -FI_ENOMEM;
	memset(peers + ep->peer_cnt, 0, (cnt - ep->peer_cnt) * sizeof(struct core_peer *));
	ep->peers = peers;
	ep->peer_cnt = cnt;
	return 0;
}

void core_peer_name(struct core_peer *peer, uint64_t fi_addr)
{
	peer->fi_addr = fi_addr;
	peer->ep->peers[fi_addr] = peer;
	util_list_remove(&peer->ep_link);
	util_list_push_back(&peer->ep->known, &peer->ep_link);
}

/**
 * Returns the address that a connected peer was reached at: the further one of the name that on_up
 * passed, or the only one. The further one counts even if no name may have it.
 */
static struct sockaddr_storage core_peer_proved_addr(const struct sockaddr *name)
{
	struct sockaddr_storage at = { 0 };
	struct sockaddr_in *in = (void *)&at;
	struct in_addr other;

	memcpy(&at, name,
	       name->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					   : sizeof(struct sockaddr_in));
	memcpy(&other, in->sin_zero, sizeof(other));
	if (name->sa_family == AF_INET && other.s_addr)
		in->sin_addr = other;
	return at;
}

/**
 * Returns true for a peer in no AV whose connection has ended and that nothing refers to. One whose
 * connection was just replaced comes back.
 */
static bool core_peer_is_gone(const struct core_peer *peer)
{
	return !peer->chan && util_list_is_empty(&peer->tx) && util_list_is_empty(&peer->rx) &&
	       util_clock_ns() >= peer->failback.rest_ns;
}

/**
 * Returns the connected peer that is in no AV and connects again by this name, or NULL. Without a
 * job key a peer proves no more of its name than the address that it was reached at. Frees those
 * that are gone: clients that come and go are many.
 */
static struct core_peer *core_peer_find_again(struct core_ep *ep, const struct sockaddr *name,
					      bool is_authentic)
{
	struct sockaddr_storage at = core_peer_proved_addr(name), old;
	struct util_list *it, *tmp;
	struct core_peer *peer;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &ep->unnamed) {
		peer = UTIL_CONTAINER_OF(it, struct core_peer, ep_link);
		old = core_peer_proved_addr((struct sockaddr *)&peer->addr);
		if (util_name_is_same((struct sockaddr *)&old, (struct sockaddr *)&at) ||
		    (is_authentic && peer->is_authentic &&
		     util_name_is_same((struct sockaddr *)&peer->addr, name)))
			return peer;
		if (core_peer_is_gone(peer))
			core_peer_free(peer);
	}
	return NULL;
}

/**
 * Returns the connected peer that is in no AV and has this name, or NULL: it states the first
 * address of the name, and was reached at one of them.
 */
static struct core_peer *core_peer_find_unnamed(struct core_ep *ep, const struct sockaddr *name)
{
	struct util_list *it, *tmp;
	struct sockaddr_storage at;
	struct core_peer *peer;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &ep->unnamed) {
		peer = UTIL_CONTAINER_OF(it, struct core_peer, ep_link);
		at = core_peer_proved_addr((struct sockaddr *)&peer->addr);
		if (util_name_is_same((struct sockaddr *)&at, name) ||
		    (util_name_is_same((struct sockaddr *)&peer->addr, name) &&
		     (peer->is_authentic || util_name_has(name, (struct sockaddr *)&at))))
			return peer;
	}
	return NULL;
}

/**
 * Returns the index of a peer that states `name`, or CORE_AV_NONE. The first address of the name
 * counts if the AV knows that this endpoint has the one that it was reached at, or if a job key
 * makes the name authentic. Otherwise any process could take the place of another.
 */
static uint64_t core_peer_find_named(struct core_ep *ep, const struct sockaddr *name,
				     bool is_authentic)
{
	struct sockaddr_storage at = core_peer_proved_addr(name);
	uint64_t fi_addr = core_av_find(ep->av, name);

	if (fi_addr != CORE_AV_NONE &&
	    (is_authentic || core_av_has(ep->av, fi_addr, (struct sockaddr *)&at)))
		return fi_addr;
	return core_av_find(ep->av, (struct sockaddr *)&at);
}

struct core_peer *core_peer_by_name(struct core_ep *ep, const struct sockaddr *name,
				    bool is_authentic)
{
	uint64_t fi_addr = ep->av ? core_peer_find_named(ep, name, is_authentic) : CORE_AV_NONE;
	struct core_peer *peer;

	if (fi_addr != CORE_AV_NONE)
		return core_peer_get(ep, fi_addr);
	peer = core_peer_find_again(ep, name, is_authentic);
	if (!peer) {
		peer = core_peer_new(ep, name);
		if (peer)
			util_list_push_back(&ep->unnamed, &peer->ep_link);
	}
	if (peer)
		peer->is_authentic = is_authentic;
	return peer;
}

/* --- further addresses ---------------------------------------------------------------------- */

/** Returns the peer of this incarnation that has a channel, in `list`, or NULL. */
static struct core_peer *core_peer_find_up_in(const struct util_list *list, uint64_t incarnation)
{
	for (const struct util_list *it = list->next; it != list; it = it->next) {
		struct core_peer *peer = UTIL_CONTAINER_OF(it, struct core_peer, ep_link);

		if (peer->state == CORE_PEER_UP && peer->incarnation == incarnation)
			return peer;
	}
	return NULL;
}

static struct core_peer *core_peer_find_up(const struct core_ep *ep, uint64_t incarnation)
{
	struct core_peer *peer = core_peer_find_up_in(&ep->known, incarnation);

	return peer ? peer : core_peer_find_up_in(&ep->unnamed, incarnation);
}

/** Moves all operations that wait for a connection to the queue of `peer`, which has one. */
static void core_peer_move_ops(struct core_peer *from, struct core_peer *peer)
{
	struct util_list *first;
	struct core_op *op;

	while ((first = util_list_pop(&from->tx))) {
		op = UTIL_CONTAINER_OF(first, struct core_op, peer_link);
		assert(op->queued);
		op->peer = peer;
		util_list_push_back(&peer->tx, &op->peer_link);
		util_list_remove(&op->wait_link);
		util_list_push_back(&peer->tx_queue, &op->wait_link);
	}
	core_peer_set_eager(peer);
	if (!util_list_is_empty(&peer->tx_queue))
		core_op_schedule(peer);
}

/** Makes `peer` the one of the index of `alias`, which has no connection, and frees `alias`. */
static void core_peer_merge(struct core_peer *alias, struct core_peer *peer)
{
	struct core_ep *ep = peer->ep;
	uint64_t fi_addr = alias->fi_addr;

	alias->fi_addr = FI_ADDR_NOTAVAIL;
	if (peer->fi_addr == FI_ADDR_NOTAVAIL) {
		peer->addr = alias->addr;
		core_peer_name(peer, fi_addr);
	} else {
		ep->peers[fi_addr] = peer;
		peer->alias_cnt++;
	}
	core_peer_move_ops(alias, peer);
	CORE_MODULES_CALL(peer_merged, alias, peer);
	core_peer_free(alias);
}

void core_peer_on_alias(struct core_ep *ep, const struct sockaddr *addr, uint64_t incarnation)
{
	uint64_t fi_addr = ep->av ? core_av_find(ep->av, addr) : CORE_AV_NONE;
	struct core_peer *alias = core_peer_lookup(ep, fi_addr), *peer;
	int ret;

	if (!alias || alias->state != CORE_PEER_CONNECTING)
		return;
	peer = core_peer_find_up(ep, incarnation);
	if (peer) {
		core_peer_merge(alias, peer);
		return;
	}
	/* The connection has ended meanwhile. */
	ret = ep->dom->engine_ops->connect(ep->eep, (struct sockaddr *)&alias->addr, true);
	if (ret)
		core_peer_on_connect_failed(ep, addr, ret);
}

/** Returns an index besides its own that leads to the peer. */
static uint64_t core_peer_other_index(const struct core_peer *peer)
{
	const struct core_ep *ep = peer->ep;
	uint64_t at = 0;

	while (ep->peers[at] != peer || at == peer->fi_addr)
		at++;
	return at;
}

void core_peer_drop_aliases(struct core_peer *peer)
{
	for (; peer->alias_cnt; peer->alias_cnt--)
		peer->ep->peers[core_peer_other_index(peer)] = NULL;
}

bool core_peer_part(struct core_peer *peer, uint64_t fi_addr)
{
	struct core_ep *ep = peer->ep;

	if (!peer->alias_cnt)
		return false;
	if (fi_addr == peer->fi_addr) {
		peer->fi_addr = core_peer_other_index(peer);
		core_av_addr(ep->av, peer->fi_addr, &peer->addr);
	}
	ep->peers[fi_addr] = NULL;
	peer->alias_cnt--;
	return true;
}

int core_ep_av_inserted(struct core_ep *ep, uint64_t fi_addr)
{
	struct sockaddr_storage addr;
	struct core_peer *peer;

	if (util_list_is_empty(&ep->unnamed) || !core_av_addr(ep->av, fi_addr, &addr))
		return 0;
	peer = core_peer_find_unnamed(ep, (struct sockaddr *)&addr);
	if (!peer)
		return 0;
	if (core_peer_reserve(ep, fi_addr))
		return -FI_ENOMEM;
	if (ep->peers[fi_addr])
		return 0;
	core_peer_name(peer, fi_addr);
	peer->addr = addr;
	return 0;
}
