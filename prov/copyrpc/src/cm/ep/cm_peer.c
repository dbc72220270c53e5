/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Table of peers: see cm_peer.h. */
#include "cm/ep/cm_peer.h"

#include <stdlib.h>

#include "cm/ep/cm_ep.h"
#include "util/clock.h"
#include "util/event.h"
#include "util/log.h"

#define CM_PEER_BUCKETS_MIN 16

static struct cm_peer_node **cm_peer_bucket(struct cm_ep *cep, const union cm_addr *addr)
{
	uint64_t hash = cm_mac_table_hash(&cep->jar, addr);

	return &cep->peers.buckets[hash & (cep->peers.bucket_cnt - 1)];
}

/* Returns how well an address belongs to the peer of its node. */
static unsigned cm_peer_rank(const struct cm_peer_node *node)
{
	const struct cm_peer *peer = node->peer;

	if (cm_addr_is_equal(&peer->via.to, &node->addr) && (peer->conn || peer->req))
		return 3;
	return node == &peer->nodes[0] ? 2 : 1;
}

struct cm_peer *cm_peer_find(struct cm_ep *cep, const union cm_addr *addr)
{
	struct cm_peer *best = NULL;
	struct cm_peer_node *node;
	unsigned rank = 0;

	if (!cep->peers.bucket_cnt)
		return NULL;
	for (node = *cm_peer_bucket(cep, addr); node; node = node->hash_next) {
		if (!cm_addr_is_equal(&node->addr, addr) || cm_peer_rank(node) <= rank)
			continue;
		rank = cm_peer_rank(node);
		best = node->peer;
	}
	return best;
}

/* Returns the peer whose first node is at `addr`, or NULL. */
static struct cm_peer *cm_peer_find_first(struct cm_ep *cep, const union cm_addr *addr)
{
	struct cm_peer_node *node = cep->peers.bucket_cnt ? *cm_peer_bucket(cep, addr) : NULL;

	while (node && (node != &node->peer->nodes[0] || !cm_addr_is_equal(&node->addr, addr)))
		node = node->hash_next;
	return node ? node->peer : NULL;
}

static bool cm_peer_has(const struct cm_peer *peer, const union cm_addr *addr)
{
	for (uint32_t i = 0; i < peer->node_cnt; i++)
		if (cm_addr_is_equal(&peer->nodes[i].addr, addr))
			return true;
	return false;
}

static void cm_peer_link(struct cm_ep *cep, struct cm_peer_node *node)
{
	struct cm_peer_node **bucket = cm_peer_bucket(cep, &node->addr);

	node->hash_next = *bucket;
	*bucket = node;
}

static void cm_peer_add_node(struct cm_peer *peer, const union cm_addr *addr)
{
	struct cm_peer_node *node;

	if (peer->node_cnt == UTIL_NAME_ADDRS || cm_peer_has(peer, addr))
		return;
	node = &peer->nodes[peer->node_cnt++];
	node->peer = peer;
	node->addr = *addr;
	cm_peer_link(peer->cep, node);
}

/* Doubles the buckets. Without memory the chains get longer. */
static void cm_peer_table_grow(struct cm_ep *cep)
{
	struct cm_peer_table *table = &cep->peers;
	struct cm_peer_table old = *table;
	size_t cnt = old.bucket_cnt ? 2 * old.bucket_cnt : CM_PEER_BUCKETS_MIN;
	struct cm_peer_node **buckets = calloc(cnt, sizeof(struct cm_peer_node *));

	if (!buckets)
		return;
	table->buckets = buckets;
	table->bucket_cnt = cnt;
	for (size_t i = 0; i < old.bucket_cnt; i++) {
		struct cm_peer_node *node = old.buckets[i], *next;

		for (; node; node = next) {
			next = node->hash_next;
			cm_peer_link(cep, node);
		}
	}
	free(old.buckets);
}

struct cm_peer *cm_peer_get(struct cm_ep *cep, const union cm_addr *addr)
{
	struct cm_peer *peer = cm_peer_find_first(cep, addr);

	if (peer)
		return peer;
	if (cep->peers.peer_cnt >= cep->peers.bucket_cnt)
		cm_peer_table_grow(cep);
	peer = cep->peers.bucket_cnt ? calloc(1, sizeof(*peer)) : NULL;
	if (!peer)
		return NULL;
	peer->cep = cep;
	peer->addr = peer->first = *addr;
	cm_peer_add_node(peer, addr);
	cep->peers.peer_cnt++;
	return peer;
}

struct cm_peer *cm_peer_find_name(struct cm_ep *cep, const union cm_addr *list, unsigned cnt)
{
	struct cm_peer *peer = cm_peer_find_first(cep, &list[0]);

	/* Peers may connect from a further address before their name is known here. */
	for (unsigned i = 1; i < cnt && !peer; i++) {
		peer = cm_peer_find_first(cep, &list[i]);
		if (peer && !cm_addr_is_equal(&peer->first, &list[0]))
			peer = NULL;
	}
	return peer;
}

struct cm_peer *cm_peer_get_name(struct cm_ep *cep, const union cm_addr *list, unsigned cnt)
{
	struct cm_peer *peer = cm_peer_find_name(cep, list, cnt);

	if (!peer)
		peer = cm_peer_get(cep, &list[0]);
	for (unsigned i = 0; i < cnt && peer; i++)
		cm_peer_add_node(peer, &list[i]);
	return peer;
}

struct cm_peer *cm_peer_find_sender(struct cm_ep *cep, const union cm_addr *from,
				    const union cm_addr *first)
{
	struct cm_peer *peer = cm_peer_find_first(cep, first);

	if (peer && cep->node && cep->node->key.is_set)
		cm_peer_add_node(peer, from);
	if (peer && cm_peer_has(peer, from))
		return peer;
	return cm_peer_find_first(cep, from);
}

void cm_peer_note_failure(struct cm_peer *peer, uint64_t peer_inc, uint32_t path, bool came)
{
	char text[CM_ADDR_TEXT_MAX];
	bool again;

	if (came || peer->failed_inc != peer_inc)
		peer->failed_cnt = peer->failed_paths = 0;
	peer->failed_inc = peer_inc;
	if (came || ++peer->failed_cnt < CM_PEER_FAILURES_MAX)
		return;
	again = peer->failed_paths & path;
	peer->failed_paths |= path;
	peer->failed_until_ns = util_clock_ns() + CM_PEER_AVOID_NS;
	if (again)
		return;
	util_event(COPYRPC_STATS_PATH_AVOIDED, &peer->addr.sa, path, 0);
	if (peer->cep->paths.all & ~peer->failed_paths)
		UTIL_WARN(
			EP_CTRL,
			"no message ever arrived from %s by RDMA, though both ends have a device; "
			"other paths are used, and this one is tried again after a minute. Check "
			"that the devices are connected; FI_COPYRPC_DEVICE selects a device, "
			"FI_COPYRPC_PATHS can exclude RDMA\n",
			cm_addr_print(&peer->addr, text));
}

uint32_t cm_peer_usable_paths(const struct cm_peer *peer, uint64_t peer_inc, uint32_t paths)
{
	bool avoid = peer->failed_inc == peer_inc && util_clock_ns() < peer->failed_until_ns;
	uint32_t sound = paths & ~(avoid ? peer->failed_paths : 0);

	return sound ? sound : paths;
}

static void cm_peer_unlink(struct cm_ep *cep, struct cm_peer_node *node)
{
	struct cm_peer_node **at = cm_peer_bucket(cep, &node->addr);

	while (*at != node)
		at = &(*at)->hash_next;
	*at = node->hash_next;
}

/* Takes a peer out of the table and frees it. */
static void cm_peer_free(struct cm_peer *peer)
{
	for (uint32_t i = 0; i < peer->node_cnt; i++)
		cm_peer_unlink(peer->cep, &peer->nodes[i]);
	peer->cep->peers.peer_cnt--;
	free(peer);
}

void cm_peer_settle(struct cm_peer *peer)
{
	if (!peer->conn && !peer->req && !peer->failed_cnt)
		cm_peer_free(peer);
}

void cm_peer_table_fini(struct cm_peer_table *table)
{
	for (size_t i = 0; i < table->bucket_cnt; i++)
		while (table->buckets[i])
			cm_peer_free(table->buckets[i]->peer);
	free(table->buckets);
}
