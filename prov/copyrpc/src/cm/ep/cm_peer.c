/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Table of peers: see cm_peer.h. */
#include "cm/ep/cm_peer.h"

#include <stdlib.h>

#include "cm/ep/cm_ep.h"
#include "util/event.h"
#include "util/log.h"

#define CM_PEER_BUCKETS_MIN 16

static struct cm_peer **cm_peer_bucket(struct cm_ep *cep, const union cm_addr *addr)
{
	uint64_t hash = cm_mac_table_hash(&cep->jar, addr);

	return &cep->peers.buckets[hash & (cep->peers.bucket_cnt - 1)];
}

struct cm_peer *cm_peer_find(struct cm_ep *cep, const union cm_addr *addr)
{
	struct cm_peer *peer;

	if (!cep->peers.bucket_cnt)
		return NULL;
	peer = *cm_peer_bucket(cep, addr);
	while (peer && !cm_addr_is_equal(&peer->addr, addr))
		peer = peer->hash_next;
	return peer;
}

static void cm_peer_link(struct cm_peer *peer)
{
	struct cm_peer **bucket = cm_peer_bucket(peer->cep, &peer->addr);

	peer->hash_next = *bucket;
	*bucket = peer;
}

/* Doubles the buckets. Without memory the chains get longer. */
static void cm_peer_table_grow(struct cm_ep *cep)
{
	struct cm_peer_table *table = &cep->peers;
	struct cm_peer_table old = *table;
	size_t cnt = old.bucket_cnt ? 2 * old.bucket_cnt : CM_PEER_BUCKETS_MIN;
	struct cm_peer **buckets = calloc(cnt, sizeof(*buckets));

	if (!buckets)
		return;
	table->buckets = buckets;
	table->bucket_cnt = cnt;
	for (size_t i = 0; i < old.bucket_cnt; i++) {
		struct cm_peer *peer = old.buckets[i], *next;

		for (; peer; peer = next) {
			next = peer->hash_next;
			cm_peer_link(peer);
		}
	}
	free(old.buckets);
}

struct cm_peer *cm_peer_get(struct cm_ep *cep, const union cm_addr *addr)
{
	struct cm_peer *peer = cm_peer_find(cep, addr);

	if (peer)
		return peer;
	if (cep->peers.peer_cnt >= cep->peers.bucket_cnt)
		cm_peer_table_grow(cep);
	peer = cep->peers.bucket_cnt ? calloc(1, sizeof(*peer)) : NULL;
	if (!peer)
		return NULL;
	peer->cep = cep;
	peer->addr = *addr;
	cm_peer_link(peer);
	cep->peers.peer_cnt++;
	return peer;
}

void cm_peer_note_failure(struct cm_peer *peer, uint64_t peer_inc, uint32_t path, bool came)
{
	char text[CM_ADDR_TEXT_MAX];

	if (came || peer->failed_inc != peer_inc)
		peer->failed_cnt = peer->failed_paths = 0;
	peer->failed_inc = peer_inc;
	if (came || ++peer->failed_cnt < CM_PEER_FAILURES_MAX || peer->failed_paths & path)
		return;
	peer->failed_paths |= path;
	util_event(COPYRPC_STATS_PATH_AVOIDED, &peer->addr.sa, path, 0);
	if (peer->cep->paths.all & ~peer->failed_paths)
		UTIL_WARN(
			EP_CTRL,
			"no message ever arrived from %s by RDMA, though both ends have a device; "
			"other paths are used from now on. Check that the devices are connected; "
			"FI_COPYRPC_DEVICE selects a device, FI_COPYRPC_PATHS can exclude RDMA\n",
			cm_addr_print(&peer->addr, text));
}

uint32_t cm_peer_usable_paths(const struct cm_peer *peer, uint64_t peer_inc, uint32_t paths)
{
	uint32_t sound = paths & ~(peer->failed_inc == peer_inc ? peer->failed_paths : 0);

	return sound ? sound : paths;
}

void cm_peer_settle(struct cm_peer *peer)
{
	struct cm_peer **at;

	if (peer->conn || peer->req || peer->failed_cnt)
		return;
	at = cm_peer_bucket(peer->cep, &peer->addr);
	while (*at != peer)
		at = &(*at)->hash_next;
	*at = peer->hash_next;
	peer->cep->peers.peer_cnt--;
	free(peer);
}

void cm_peer_table_fini(struct cm_peer_table *table)
{
	for (size_t i = 0; i < table->bucket_cnt; i++) {
		struct cm_peer *peer = table->buckets[i], *next;

		for (; peer; peer = next) {
			next = peer->hash_next;
			free(peer);
		}
	}
	free(table->buckets);
}
