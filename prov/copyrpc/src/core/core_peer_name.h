/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Names of peers: which peer has a name, an fi_addr_t or neither. Called by core_peer.c; an insert
 * into the AV (core_ep_av_inserted) comes from ofi/.
 *
 * A peer in an AV is found by its index, core_ep.peers. One that connected by itself and is in no
 * AV is unnamed, in core_ep.unnamed. A peer may be in the AV under several of its addresses: the
 * handshake finds that out when the second one is connected, by the incarnation of the peer. From
 * then on, until the connection ends, the second index leads to the first peer: messages to both
 * use its connection, its messages come from the first index, and receives directed at the second
 * one are directed at the first. Addresses alone do not tell: two hosts may share a further one.
 *
 * A name that a peer states is its own as far as it has proved that (docs/handshake.md, section
 * 3.7).
 *
 * Tests: test/unit/core/test_core_peer_name.c and test_core_peer_alias.c.
 */
#ifndef CORE_CORE_PEER_NAME_H
#define CORE_CORE_PEER_NAME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "core/core_ep.h"

struct core_peer;

/** Implements core_upcalls.on_alias. */
void core_peer_on_alias(struct core_ep *ep, const struct sockaddr *addr, uint64_t incarnation);

/** Forgets the further addresses of a peer, which has failed: each may be another process's now. */
void core_peer_drop_aliases(struct core_peer *peer);

/**
 * Takes one of its addresses, which leaves the AV, from a peer with several. Returns false if it is
 * the only one.
 */
bool core_peer_part(struct core_peer *peer, uint64_t fi_addr);

/** Grows ep->peers so that index `fi_addr` exists. Returns 0 or -FI_ENOMEM. */
int core_peer_reserve(struct core_ep *ep, uint64_t fi_addr);

/** Gives a peer an index that core_peer_reserve has made. */
void core_peer_name(struct core_peer *peer, uint64_t fi_addr);

/**
 * Returns the peer with the name that core_upcalls.on_up passed, in an AV or not; created if it is
 * new. NULL: no memory.
 */
struct core_peer *core_peer_by_name(struct core_ep *ep, const struct sockaddr *name,
				    bool is_authentic);

#endif
