/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Table of peers of a CM endpoint, by address.
 *
 * A peer that was connected to by its name is found by each address of the name. Names of two hosts
 * may share an address (bridges), so the table may have an address more than once: a peer that uses
 * it comes first, then one whose first address it is. The sender of a
 * HELLO from a further address is known by the first address of its name, which the HELLO states,
 * if this end has that name with both. Otherwise it is a peer of its own, by the address that it
 * has proved.
 *
 * A peer is in the table while it has a request (cm_req.h) or a conn (cm_conn.h), at most one of
 * each. Only a sender with a valid cookie gets an entry. The hash is keyed with the endpoint's
 * secret, so addresses cannot be chosen to collide, and a lookup costs the same for ten peers and
 * ten thousand.
 *
 * Two hosts with NICs may complete a handshake although their networks are not connected. So a peer
 * also stays in the table while its connections failed without any message having arrived. After
 * CM_PEER_FAILURES_MAX of them in a row the path is used only if there is no other, for
 * CM_PEER_AVOID_NS or until the peer restarts.
 */
#ifndef CM_EP_CM_PEER_H
#define CM_EP_CM_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cm/base/cm_addr.h"
#include "util/name.h"

#define CM_PEER_FAILURES_MAX 2u
#define CM_PEER_AVOID_NS     (60 * UTIL_NS_PER_S)

struct cm_ep;
struct cm_conn;
struct cm_req;

/** One address of a peer, in the table. */
struct cm_peer_node {
	struct cm_peer_node *hash_next;
	struct cm_peer *peer;
	union cm_addr addr;
};

struct cm_peer {
	struct cm_ep *cep;
	struct cm_conn *conn; /* connecting or up; NULL: none */
	struct cm_req *req;   /* open cm_connect; NULL: none */
	union cm_addr addr;   /* address of the first node */
	union cm_addr first;  /* first of the name that the peer states; usually `addr` */
	struct cm_route via;  /* by which it replied last; family 0: never */
	struct cm_peer_node nodes[UTIL_NAME_ADDRS];
	uint32_t node_cnt;
	/* Connections of incarnation failed_inc that failed before a message arrived, in a row. */
	uint64_t failed_inc;
	uint32_t failed_cnt;
	uint32_t failed_paths;    /* paths used only if there is no other, */
	uint64_t failed_until_ns; /* until then; afterwards one failure is enough */
};

struct cm_peer_table {
	struct cm_peer_node **buckets;
	size_t bucket_cnt; /* power of two, or 0 */
	size_t peer_cnt;
};

/** Returns the peer that packets from `addr` belong to, or NULL. */
struct cm_peer *cm_peer_find(struct cm_ep *cep, const union cm_addr *addr);
/** Returns the peer whose first node is at `addr`, created if necessary, or NULL without memory. */
struct cm_peer *cm_peer_get(struct cm_ep *cep, const union cm_addr *addr);
/** Returns the peer with the name whose addresses these are, or NULL. */
struct cm_peer *cm_peer_find_name(struct cm_ep *cep, const union cm_addr *list, unsigned cnt);
/**
 * Returns that peer, created if necessary, and lets cm_peer_find find it by all of the addresses.
 * NULL without memory.
 */
struct cm_peer *cm_peer_get_name(struct cm_ep *cep, const union cm_addr *list, unsigned cnt);
/**
 * Returns the peer that sends from `from` and states that its name begins with `first`, or NULL.
 */
struct cm_peer *cm_peer_find_sender(struct cm_ep *cep, const union cm_addr *from,
				    const union cm_addr *first);
/** Records that a connection on `path` failed; `came`: messages had arrived on it. */
void cm_peer_note_failure(struct cm_peer *peer, uint64_t peer_inc, uint32_t path, bool came);
/** Returns the usable ones of `paths` with this incarnation, or all if none is. */
uint32_t cm_peer_usable_paths(const struct cm_peer *peer, uint64_t peer_inc, uint32_t paths);
/** Removes the peer if it has no request, conn or recorded failure. */
void cm_peer_settle(struct cm_peer *peer);
/** Frees the table. No peer has a request or a conn any more. */
void cm_peer_table_fini(struct cm_peer_table *table);

#endif
