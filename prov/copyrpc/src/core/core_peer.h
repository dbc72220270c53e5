/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Who is at the other end, and can we talk now?
 *
 * A peer exists from the first use of an address (or from the first handshake of a stranger). It
 * has a channel while it is UP. States and what leads from one to the next:
 *
 *   IDLE --first send--> CONNECTING --on_up--> UP --on_down--> DEAD --next use--> CONNECTING
 *     \--stranger's on_up--------------------->/ \--on_connect_failed--> DEAD
 *
 * A send (or a receive directed at a DEAD peer) starts the handshake and waits for it; if it fails,
 * everything that waits ends with that error. The next use tries again.
 */
#ifndef CORE_PEER_H
#define CORE_PEER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "core/core_chan.h"
#include "core/core_dom.h"
#include "core/core_ep.h"
#include "core/msg/core_pending.h"
#include "core/msg/core_tx_selector.h"
#include "util/bits.h"
#include "util/list.h"

enum core_peer_state {
	CORE_PEER_IDLE,       /* never used, or closed in good order */
	CORE_PEER_CONNECTING, /* a handshake is on its way */
	CORE_PEER_UP,         /* chan is there */
	CORE_PEER_DEAD,       /* it died or could not be reached */
};

struct core_peer {
	struct core_chan *chan; /* NULL unless UP */
	/* Largest message that may go eagerly right now; -1: not UP, or others wait in tx_queue. */
	ssize_t eager_lim;
	size_t rpc_resp_lim; /* largest allowance of a user's call, while UP */
	struct core_ep *ep;
	fi_addr_t fi_addr; /* FI_ADDR_NOTAVAIL for a stranger */
	uint32_t id;       /* what matching calls the source; unique in the endpoint */
	enum core_peer_state state;
	bool inject_pending; /* -FI_EAGAIN was returned for want of a connection */
	int inject_err;      /* what became of it: the next injected message is told (-FI_E*) */
	struct util_list tx; /* core_op.peer_link: all that is open */
	struct util_list tx_queue;  /* core_op.wait_link: not started yet, in order */
	struct util_list tx_stream; /* core_op.wait_link: parts of them are sent */
	struct util_list rx;        /* core_unexp.peer_link: messages of this peer not yet done */
	struct util_list
		rma_deferred;     /* core_rma_deferred.peer_link: long accesses that it makes */
	struct util_list ep_link; /* core_ep.known or .unnamed */
	struct core_work work;    /* what waits for room */
	struct core_pending pending;
	struct core_tx_selector selector;
	uint64_t incarnation;
	struct sockaddr_storage addr;
};

/** The peer behind `fi_addr`, made if need be: NULL if the address is not in the AV or no memory. */
struct core_peer *core_peer_get_cold(struct core_ep *ep, fi_addr_t fi_addr);

/** The peer behind `fi_addr` if it was used before, or NULL. */
static inline struct core_peer *core_peer_lookup(struct core_ep *ep, fi_addr_t fi_addr)
{
	return UTIL_LIKELY(fi_addr < ep->peer_cnt) ? ep->peers[fi_addr] : NULL;
}

static inline struct core_peer *core_peer_get(struct core_ep *ep, fi_addr_t fi_addr)
{
	struct core_peer *peer = core_peer_lookup(ep, fi_addr);

	return UTIL_LIKELY(peer != NULL) ? peer : core_peer_get_cold(ep, fi_addr);
}

/** The one peer of a connected endpoint, at index 0: NULL: no memory. */
struct core_peer *core_peer_make(struct core_ep *ep);

/** `chan` leads to it from now on. */
void core_peer_up(struct core_peer *peer, struct core_chan *chan);

/** Starts a handshake if none runs. 0 or -FI_E*. */
int core_peer_connect(struct core_peer *peer);

/** Recomputes eager_lim after a change of state or queue. */
void core_peer_set_eager(struct core_peer *peer);

/** Ends everything that is open with the peer with `err` (-FI_E*), puts it in `state`. */
void core_peer_fail(struct core_peer *peer, int err, enum core_peer_state state);

/** Closes the channel, forgets the peer. */
void core_peer_free(struct core_peer *peer);

/** The up-calls that concern connections (core_chan.h). */
void core_peer_on_up(struct core_ep *ep, struct core_chan *chan, const struct sockaddr *addr,
		     uint64_t incarnation);
void core_peer_on_connect_failed(struct core_ep *ep, const struct sockaddr *addr, int err);
void core_peer_on_down(struct core_chan *chan, int err);

#endif
