/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is going on between us and an address?
 *
 * A peer is in the agent's table while it has a request (cm_req.h: somebody here asked) or a conn
 * (cm_conn.h: one is being made, or is up), at most one of each. Strangers get in only after their cookie
 * proved their address. The table is a hash keyed with the agent's secret: nobody can
 * choose addresses that collide, and a lookup costs the same with ten peers and ten thousand.
 *
 * A handshake succeeds between two hosts that both have a NIC though no wire leads from the one to the other.
 * So a peer is kept on, too, while connections to it failed without anything having come by
 * them: after CM_PEER_STRIKES of them that path is left alone, until the peer starts again.
 *
 * Shown by test/unit/cm/req/test_cm_peer.c.
 */
#ifndef CM_CM_PEER_H
#define CM_CM_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cm/base/cm_addr.h"

#define CM_PEER_STRIKES 2u

struct cm_ep;
struct cm_conn;
struct cm_req;

struct cm_peer {
	struct cm_peer *hash_next;
	struct cm_ep *cep;
	struct cm_conn *conn; /* being made or up; NULL: none */
	struct cm_req *req;   /* cm_connect waits for its answer; NULL: none */
	union cm_addr addr;
	/* Connections of this incarnation that failed before anything had come, in a row; and where to. */
	uint64_t strike_inc;
	uint32_t strike_cnt;
	uint32_t struck; /* paths that are offered last, and not taken, while there are others */
};

struct cm_peer_table {
	struct cm_peer **buckets;
	size_t bucket_cnt; /* a power of two, or 0 */
	size_t peer_cnt;
};

struct cm_peer *cm_peer_find(struct cm_ep *cep, const union cm_addr *addr);
/** The peer, made if need be; NULL: no memory. */
struct cm_peer *cm_peer_get(struct cm_ep *cep, const union cm_addr *addr);
/** A connection by `path` failed: had anything ever come by it? */
void cm_peer_strike(struct cm_peer *peer, uint64_t peer_inc, uint32_t path, bool came);
/** Of `paths`, those that are worth trying with this incarnation: all, if none is. */
uint32_t cm_peer_sound(const struct cm_peer *peer, uint64_t peer_inc, uint32_t paths);
/** Forgets the peer if nothing is going on. */
void cm_peer_settle(struct cm_peer *peer);
/** Frees the table; no peer has a request or a conn any more. */
void cm_peer_table_fini(struct cm_peer_table *table);

#endif
