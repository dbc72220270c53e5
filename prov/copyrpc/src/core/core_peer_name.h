/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Names of peers: which peer has a name, an fi_addr_t or neither. Called by core_peer.c; an insert
 * into the AV (core_ep_av_inserted) comes from ofi/.
 *
 * A peer in an AV is found by its index, core_ep.peers. One that connected by itself and is in no
 * AV is unnamed, in core_ep.unnamed. A name that a peer states is its own as far as it has proved
 * that (docs/handshake.md, section 3.7).
 */
#ifndef CORE_CORE_PEER_NAME_H
#define CORE_CORE_PEER_NAME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "core/core_ep.h"

struct core_peer;

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
