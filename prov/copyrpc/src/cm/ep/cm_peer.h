/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Table of peers of a CM endpoint, by address.
 *
 * A peer is in the table while it has a request (cm_req.h) or a conn (cm_conn.h), at most one of
 * each. Only a sender with a valid cookie gets an entry. The hash is keyed with the endpoint's
 * secret, so addresses cannot be chosen to collide, and a lookup costs the same for ten peers and
 * ten thousand.
 *
 * Two hosts with NICs may complete a handshake although their networks are not connected. So a peer
 * also stays in the table while its connections failed without any message having arrived. After
 * CM_PEER_FAILURES_MAX of them in a row the path is used only if there is no other, until the peer
 * restarts.
 */
#ifndef CM_EP_CM_PEER_H
#define CM_EP_CM_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cm/base/cm_addr.h"

#define CM_PEER_FAILURES_MAX 2u

struct cm_ep;
struct cm_conn;
struct cm_req;

struct cm_peer {
	struct cm_peer *hash_next;
	struct cm_ep *cep;
	struct cm_conn *conn; /* connecting or up; NULL: none */
	struct cm_req *req;   /* open cm_connect; NULL: none */
	union cm_addr addr;
	/* Connections of incarnation failed_inc that failed before a message arrived, in a row. */
	uint64_t failed_inc;
	uint32_t failed_cnt;
	uint32_t failed_paths; /* paths used only if there is no other */
};

struct cm_peer_table {
	struct cm_peer **buckets;
	size_t bucket_cnt; /* power of two, or 0 */
	size_t peer_cnt;
};

struct cm_peer *cm_peer_find(struct cm_ep *cep, const union cm_addr *addr);
/** Returns the peer, created if necessary, or NULL without memory. */
struct cm_peer *cm_peer_get(struct cm_ep *cep, const union cm_addr *addr);
/** Records that a connection on `path` failed; `came`: messages had arrived on it. */
void cm_peer_note_failure(struct cm_peer *peer, uint64_t peer_inc, uint32_t path, bool came);
/** Returns the usable ones of `paths` with this incarnation, or all if none is. */
uint32_t cm_peer_usable_paths(const struct cm_peer *peer, uint64_t peer_inc, uint32_t paths);
/** Removes the peer if it has no request, conn or recorded failure. */
void cm_peer_settle(struct cm_peer *peer);
/** Frees the table. No peer has a request or a conn any more. */
void cm_peer_table_fini(struct cm_peer_table *table);

#endif
