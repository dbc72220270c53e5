/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Peers of an endpoint: states, connect on first use, failure.
 *
 * A peer exists from the first use of its address, or from the first handshake of an unnamed peer
 * (one in no AV). It has a channel while it is UP:
 *
 *   IDLE --first send--> CONNECTING --on_up--> UP --on_down--> DEAD --next use--> CONNECTING
 *     \--on_up (peer connected)-------------->/ \--on_connect_failed--> DEAD
 *
 * A send (or a receive directed at a DEAD peer) starts the handshake and is queued. If the
 * handshake fails, all queued operations end with its error. The next use tries again.
 *
 * A peer without a channel that is freed is DEAD first.
 */
#ifndef CORE_CORE_PEER_H
#define CORE_CORE_PEER_H

#include <copyrpc/stats.h>
#include <rdma/fi_errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "core/core_chan.h"
#include "core/core_dom.h"
#include "core/core_ep.h"
#include "core/core_failback.h"
#include "core/core_pending.h"
#include "core/core_simple.h"
#include "core/core_tx_selector.h"
#include "util/bits.h"
#include "util/list.h"

enum core_peer_state {
	CORE_PEER_IDLE,       /* never used, or closed in good order */
	CORE_PEER_CONNECTING, /* handshake in progress */
	CORE_PEER_UP,         /* chan is set */
	CORE_PEER_DEAD,       /* died, or could not be reached */
};

/** Period in which a counter of a connection grows. */
struct core_peer_stall {
	uint64_t since_ns; /* 0: it does not */
	uint64_t cnt;      /* grown since then */
};

/** Result of the last look at a peer (core/watch/core_watch.h). */
struct core_peer_watch {
	uint64_t unwatched_ns;             /* core_ep.unwatched_ns at the last look */
	uint64_t since_ns;                 /* the oldest operation is open since then, or longer */
	uint64_t head;                     /* oldest pending completion, access or receive */
	uint64_t arrivals;                 /* changes when something arrives */
	uint64_t arrived_ns;               /* no later arrival than this */
	uint64_t refused[3];               /* attempts for lack of room, credit, send queue */
	uint64_t resent;                   /* packets sent again */
	struct core_peer_stall stall;      /* attempts refused */
	struct core_peer_stall losses;     /* packets sent again */
	const void *stats;                 /* row of the connection whose counters these are */
	struct copyrpc_stats_wait *row;    /* or NULL */
	enum copyrpc_stats_cause cause;    /* of the wait; 0: nothing is open */
	enum copyrpc_stats_cause shortage; /* last cause of an attempt that was refused */
	bool counted;                      /* waits since an earlier look */
	bool reported;                     /* the wait is an event */
};

struct core_peer {
	struct core_chan *chan; /* NULL unless UP */
	/*
	 * Messages with fewer bytes than this may be sent eagerly now; 0: not UP, operations wait
	 * in tx_queue or for direct reads, or a message was sent in part.
	 */
	size_t eager_end;
	size_t rpc_resp_lim; /* largest maximum response size of a user's call, while UP */
	struct core_ep *ep;
	fi_addr_t fi_addr; /* FI_ADDR_NOTAVAIL: unnamed */
	/* Further indices of ep->peers that lead here (core_peer_name.h); UP only, else 0 */
	uint32_t alias_cnt;
	uint32_t id; /* source for matching; unique in the endpoint */
	enum core_peer_state state;
	bool holds;          /* operations wait for the end of the connection (core_failback.h) */
	bool inject_pending; /* an inject returned -FI_EAGAIN because not connected */
	int inject_err;      /* error of that connect (-FI_E*), returned to the next inject */
	struct util_list tx; /* core_op.peer_link: all open operations */
	struct util_list tx_queue;  /* core_op.wait_link: not started, in order */
	struct util_list tx_stream; /* core_op.wait_link: started, more to send */
	struct util_list rx;        /* core_unexp.peer_link: messages from this peer, not ended */
	struct util_list rma_deferred; /* core_rma_deferred.peer_link: long accesses of this peer */
	struct util_list lessees;      /* core_rma_lessee.peer_link: leases of this peer */
	struct core_rma_leases *leases; /* from this peer, or NULL (rma/core_rma_lease.h) */
	/* Endpoint keeps orders: direct reads in progress, which no other operation may overtake */
	uint32_t direct_reads;
	uint32_t access_calls;     /* calls of accesses without a response */
	uint32_t held_cnt;         /* calls of this peer that stay open until a receive matches */
	struct util_list ep_link;  /* core_ep.known or .unnamed */
	struct core_work work;     /* runs tx_queue and tx_stream */
	struct core_simple simple; /* direct accesses without a core_op */
	struct core_pending pending;
	struct core_tx_selector selector;
	uint64_t incarnation;
	struct sockaddr_storage addr; /* name; unnamed: as on_up passed it */
	bool is_authentic;            /* unnamed: the peer has proved that the name is its own */
	struct core_peer_watch watch;
	struct core_offload_peer *offload; /* tag matching by the peer's device, or NULL */
	uint32_t offloads;  /* requests to it in progress, which messages must not overtake */
	uint32_t pipelined; /* messages of which a part was sent, likewise (msg/core_tx_bulk.h) */
	uint32_t pulls;     /* messages that it was asked to send in parts (core_unexp_pull) */
	uint32_t inject_refused; /* injects in a row that returned -FI_EAGAIN (msg/core_tx.h) */
	struct core_failback failback;
};

/** Returns true while messages to the peer, which is up, wait to be sent or are in flight. */
bool core_peer_is_busy(const struct core_peer *peer);

/**
 * Returns the peer of `fi_addr`, created if need be. NULL: the address is not in the AV, or no
 * memory.
 */
struct core_peer *core_peer_get_cold(struct core_ep *ep, fi_addr_t fi_addr);

/** Returns the peer of `fi_addr` if it was used before, or NULL. */
static inline struct core_peer *core_peer_lookup(struct core_ep *ep, fi_addr_t fi_addr)
{
	return UTIL_LIKELY(fi_addr < ep->peer_cnt) ? ep->peers[fi_addr] : NULL;
}

static inline struct core_peer *core_peer_get(struct core_ep *ep, fi_addr_t fi_addr)
{
	struct core_peer *peer = core_peer_lookup(ep, fi_addr);

	return UTIL_LIKELY(peer != NULL) ? peer : core_peer_get_cold(ep, fi_addr);
}

/** Returns true if the AV has the address. */
bool core_peer_is_known(const struct core_ep *ep, fi_addr_t fi_addr);

/**
 * Returns why core_peer_get returned NULL: -FI_EINVAL if the address is not in the AV, -FI_EAGAIN
 * for lack of memory.
 */
static inline int core_peer_missing(const struct core_ep *ep, fi_addr_t fi_addr)
{
	return core_peer_is_known(ep, fi_addr) ? -FI_EAGAIN : -FI_EINVAL;
}

/** Creates a peer with an address, in no list. NULL: no memory. */
struct core_peer *core_peer_new(struct core_ep *ep, const struct sockaddr *addr);

/** Creates the only peer of a connected endpoint, at index 0. NULL: no memory. */
struct core_peer *core_peer_make(struct core_ep *ep);

/** Sets the channel and puts the peer in state UP. */
void core_peer_up(struct core_peer *peer, struct core_chan *chan);

/** Starts a handshake if none is in progress. Returns 0 or -FI_E*. */
int core_peer_connect(struct core_peer *peer);

/** Returns true while operations wait to be sent, or must. */
static inline bool core_peer_queues(const struct core_peer *peer)
{
	return peer->holds || !util_list_is_empty(&peer->tx_queue);
}

/** Returns the length of the longest eager message to a peer with a channel. */
size_t core_peer_eager_max(const struct core_peer *peer);
/** Implements core_upcalls.on_limits. */
void core_peer_on_limits(struct core_chan *chan);

/** Recomputes eager_end after a change of state or queue. */
void core_peer_set_eager(struct core_peer *peer);

/**
 * Ends all open operations of the peer with `err` (-FI_E*) and puts it in `state`. 0: the
 * connection ends as agreed (core_failback.h), operations that wait stay, and none is in flight.
 */
void core_peer_fail(struct core_peer *peer, int err, enum core_peer_state state);

/** Closes the channel and frees the peer. */
void core_peer_free(struct core_peer *peer);

/** Up-calls of connections (core_chan.h). */
void core_peer_on_up(struct core_ep *ep, struct core_chan *chan, const struct sockaddr *addr,
		     uint64_t incarnation);
void core_peer_on_connect_failed(struct core_ep *ep, const struct sockaddr *addr, int err);
void core_peer_on_down(struct core_chan *chan, int err);

#endif
