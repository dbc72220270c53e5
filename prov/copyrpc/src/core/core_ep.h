/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Core endpoint: its peers by libfabric address, its two matching spaces (tagged and untagged), its
 * completion queues and counters, and its pools.
 *
 * ofi/ embeds struct core_ep and sets the queues at bind. From core_ep_open to core_ep_close core
 * owns the rest.
 */
#ifndef CORE_CORE_EP_H
#define CORE_CORE_EP_H

#include <copyrpc/stats.h>
#include <rdma/fi_domain.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/core_av.h"
#include "core/core_chan.h"
#include "core/core_cntr.h"
#include "core/core_cq.h"
#include "util/idmap.h"
#include "util/list.h"
#include "util/pool.h"

struct core_coll;
struct core_conn;
struct core_dom;
struct core_match;
struct core_peer;

/** Queue and counter for completions of one direction. */
struct core_comp {
	struct core_cq *cq;     /* or NULL */
	struct core_cntr *cntr; /* or NULL */
	bool selective;         /* FI_SELECTIVE_COMPLETION: only operations with FI_COMPLETION */
	/* cq if each completion goes there and nowhere else, for the hot path; else NULL. */
	struct core_cq *plain;
	struct core_cq *requested; /* likewise for operations with FI_COMPLETION */
};

/** Recomputes `plain` and `requested` after a change of the other fields. */
static inline void core_comp_update(struct core_comp *comp)
{
	comp->requested = comp->cntr ? NULL : comp->cq;
	comp->plain = comp->selective ? NULL : comp->requested;
}

/** Remote procedure calls of an endpoint (core/rpc). */
struct core_rpc {
	struct util_pool calls;   /* struct core_rpc_call */
	struct util_pool handles; /* struct core_rpc_handle */
	/* core_rpc_handle.link: requests that the user has not taken, oldest first */
	struct util_list intake;
	struct util_idmap retained; /* ids of retained responses -> core_rpc_handle */
	size_t queue_bytes;         /* bytes of queued calls */
	uint32_t next_seq;          /* odd */
	uint32_t idle;              /* consecutive takes that found nothing (ofi/) */
	/* the user takes requests: arrivals wake threads that sleep on the receive queue */
	bool listens;
	uint64_t refused[CORE_SHORT_CNT]; /* calls that returned -FI_EAGAIN, by cause */
};

/** Objects in a chunk of a pool. */
#define CORE_EP_POOL_CHUNK 64

struct core_ep {
	struct core_dom *dom;
	struct core_engine_ep *eep;
	struct core_av *av;     /* NULL with conn */
	struct core_conn *conn; /* connected endpoint: set before core_ep_open; else NULL */
	/* peers[fi_addr], NULL until first used; grown on demand. */
	struct core_peer **peers;
	uint64_t peer_cnt;
	struct util_list unnamed; /* core_peer.ep_link: connected, in no AV yet */
	struct util_list known;   /* core_peer.ep_link: the others */
	struct util_list stopped; /* core_chan.stopped_link: channels with retained memory only */
	struct core_comp tx;
	struct core_comp rx;
	struct core_cntr *rma_cntr[CORE_CNTR_RMA_CNT]; /* or NULL */
	bool rma_ordered; /* a long access ends before a later one to the same peer starts */
	/* FI_REMOTE_READ, FI_REMOTE_WRITE: access of peers through this endpoint */
	uint64_t remote_access;
	union {
		struct {
			bool directed; /* FI_DIRECTED_RECV: src_addr of a receive is used */
			bool lists;    /* `offload` is set */
		};
		uint16_t post_checks; /* both: 0 for the shortest way of a receive */
	};
	bool source; /* FI_SOURCE: completions carry the source address */
	bool enabled;
	size_t min_multi_recv; /* FI_OPT_MIN_MULTI_RECV */
	struct core_match *tagged;
	struct core_match *msg;
	struct util_pool tx_reqs;     /* struct core_tx_req */
	struct util_pool rx_reqs;     /* struct core_rx_req */
	struct util_pool unexps;      /* struct core_unexp */
	struct util_pool dones;       /* struct core_done */
	struct util_pool atomic_reqs; /* struct core_atomic_req */
	struct util_pool rma_reqs;    /* struct core_rma_req */
	struct util_list claimed;     /* core_unexp.peer_link: messages taken by FI_CLAIM */
	struct util_idmap tx_ids;     /* send_id of PART, RNDV and SYNC -> core_tx_req */
	struct util_idmap rx_ids;     /* recv_id of wire_status and CONT -> core_unexp */
	struct core_rpc rpc;
	struct util_idmap exposure_ids; /* ids of exposures -> core_rma_deferred */
	uint32_t next_peer_id;
	uint32_t tx_queued; /* operations in the tx_queue of a peer */
	size_t tx_copied;   /* bytes of injected messages that are copied (msg/core_tx.h) */
	/* Operations that have not ended, without users' calls: their responses may never come. */
	size_t tx_open;
	struct util_list dom_link;    /* core_dom.eps */
	struct core_coll *coll;       /* collective operations (core_coll.h), or NULL: none */
	struct core_offload *offload; /* tag matching by a device (core_offload.h), or NULL: none */
	uint64_t watched_ns;      /* last look at the peers (core/watch/core_watch.h); 0: none */
	uint64_t unwatched_ns;    /* sum of times in which looks failed to come */
	struct core_ep *srx;      /* shared receive context, or NULL (core_srx.h) */
	struct core_ep *rx_owner; /* of a context: the endpoint with the `rx` in use, or NULL */
	const struct core_ep *shown_by; /* of a context: the endpoint whose row has its lengths */
	struct copyrpc_stats_endpoint *stats; /* never NULL; set by the engine if it counts */
	struct copyrpc_stats_endpoint unread; /* row of an endpoint without one in the page */
};

/** Returns true if a successful send writes a completion. */
static inline bool core_ep_has_tx_comp(const struct core_ep *ep, uint64_t flags, bool silent)
{
	return !silent && ep->tx.cq && (!ep->tx.selective || (flags & FI_COMPLETION));
}

/** Binds the address and opens the tables of `ep`, which is zeroed. Returns 0 or -FI_E*. */
int core_ep_open(struct core_ep *ep, struct core_dom *dom, const struct sockaddr *addr);
/**
 * Returns true while sends are in flight. fi_close makes progress until then, within a time limit.
 */
bool core_ep_is_busy(const struct core_ep *ep);
/**
 * Closes the endpoint: drops posted receives and open sends without a completion and shuts down the
 * channels. No memory of the user is accessed afterwards.
 */
void core_ep_close(struct core_ep *ep);
/** Closes a stopped channel, whose retained memory is no longer in use. */
void core_ep_close_stopped(struct core_chan *chan);

/**
 * Writes what follows from the state of an endpoint and its queues to the statistics page: lengths
 * and levels, which are not counted where they change. Called at each look (core/watch), before a
 * thread sleeps, and at the end.
 */
void core_ep_show(struct core_ep *ep);

void core_ep_addr(const struct core_ep *ep, struct sockaddr_storage *addr);

/** Returns true while accepted messages to a connected peer are in flight. For fi_av_remove. */
bool core_ep_av_is_busy(const struct core_ep *ep, uint64_t fi_addr);
/**
 * Called after a change of the AV. An insert may name an unnamed peer; a removal closes the peer's
 * channel.
 */
int core_ep_av_inserted(struct core_ep *ep, uint64_t fi_addr);
void core_ep_av_removed(struct core_ep *ep, uint64_t fi_addr);

#endif
