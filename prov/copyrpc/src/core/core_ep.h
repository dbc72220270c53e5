/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What belongs to an endpoint?
 *
 * Its peers by libfabric address, its two matching spaces (tagged and untagged), where its
 * completions go, and its pools. ofi/ embeds struct core_ep in its own and fills in the queues at bind; from
 * core_ep_enable on core/ owns the rest until core_ep_close.
 */
#ifndef CORE_EP_H
#define CORE_EP_H

#include <rdma/fi_domain.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/core_av.h"
#include "core/core_chan.h"
#include "core/core_cntr.h"
#include "core/core_cq.h"
#include "core/msg/core_match.h"
#include "core/rpc/core_rpc.h"
#include "util/idmap.h"
#include "util/list.h"
#include "util/pool.h"

struct core_coll;
struct core_conn;
struct core_dom;
struct core_peer;

/** Where one direction's completions go. */
struct core_comp {
	struct core_cq *cq;     /* or NULL */
	struct core_cntr *cntr; /* or NULL */
	bool selective;         /* FI_SELECTIVE_COMPLETION: only what asked with FI_COMPLETION */
	/* cq, if every end is told there and nowhere else: what the common case looks at. Else NULL. */
	struct core_cq *plain;
	struct core_cq *asked; /* the same of every end that asked with FI_COMPLETION */
};

/** `plain` and `asked` follow from the others: after they were changed. */
static inline void core_comp_update(struct core_comp *comp)
{
	comp->asked = comp->cntr ? NULL : comp->cq;
	comp->plain = comp->selective ? NULL : comp->asked;
}

struct core_ep {
	struct core_dom *dom;
	struct core_engine_ep *eep;
	struct core_av *av;     /* NULL with conn */
	struct core_conn *conn; /* of a connected endpoint, set before core_ep_open; else NULL */
	/* peers[fi_addr], NULL until first used; grown on demand. */
	struct core_peer **peers;
	uint64_t peer_cnt;
	struct util_list unnamed; /* core_peer.ep_link: connected to us, in no AV yet */
	struct util_list known;   /* core_peer.ep_link: the others */
	struct core_comp tx;
	struct core_comp rx;
	struct core_cntr *rma_cntr[CORE_CNTR_RMA_CNT]; /* or NULL */
	bool rma_ordered; /* a long access ends before what follows it to the same peer starts */
	uint64_t remote_access; /* FI_REMOTE_READ, FI_REMOTE_WRITE: what peers may do through it */
	bool directed;          /* FI_DIRECTED_RECV: a receive's src_addr counts */
	bool source;            /* FI_SOURCE: completions name the sender */
	bool enabled;
	size_t min_multi_recv; /* FI_OPT_MIN_MULTI_RECV */
	struct core_match *tagged;
	struct core_match *msg;
	struct util_pool tx_reqs;     /* struct core_tx_req */
	struct util_pool rx_reqs;     /* struct core_rx_req */
	struct util_pool unexps;      /* struct core_unexp */
	struct util_pool atomic_reqs; /* struct core_atomic_req */
	struct util_pool rma_reqs;    /* struct core_rma_req */
	struct util_list claimed;     /* core_unexp.peer_link: FI_CLAIM took them out of matching */
	struct util_idmap tx_ids;     /* ids in PART, RNDV and PULL -> core_tx_req */
	struct util_idmap rx_ids;     /* ids in PULL and CONT -> core_unexp */
	struct core_rpc rpc;
	struct util_idmap exposure_ids; /* ids of loans -> core_rma_deferred */
	uint32_t next_peer_id;
	uint32_t tx_queued; /* operations that wait in a peer's tx_queue */
	/* Operations that have not ended, less users' calls: their answers may never come. */
	size_t tx_open;
	struct util_list dom_link; /* core_dom.eps */
	struct core_coll *coll; /* collective operations (core_coll.h), or NULL: it takes no part */
	struct core_ep *srx;    /* the shared receive context, or NULL (core_srx.h) */
	struct core_ep *rx_owner; /* of a context: the endpoint whose `rx` it uses, or NULL */
};

/** Binds the endpoint's address and opens its tables. The caller zeroed `ep`. 0 or -FI_E*. */
int core_ep_open(struct core_ep *ep, struct core_dom *dom, const struct sockaddr *addr);
/** The part that receives: matchers, pools. For core_srx. */
int core_ep_rx_init(struct core_ep *ep);
void core_ep_rx_fini(struct core_ep *ep);
/** True while sends are on their way (fi_close drains them with progress, within a time limit). */
bool core_ep_is_busy(const struct core_ep *ep);
/**
 * Ends everything: posted receives and open sends are dropped without a completion, channels say goodbye.
 * No memory of the user is touched afterwards.
 */
void core_ep_close(struct core_ep *ep);
void core_ep_addr(const struct core_ep *ep, struct sockaddr_storage *addr);

/** Is anything that was accepted for this peer, which is connected, still on its way? For fi_av_remove. */
bool core_ep_av_is_busy(const struct core_ep *ep, uint64_t fi_addr);
/** The AV changed: a stranger may have got a name / a peer lost it (its channel is closed). */
int core_ep_av_inserted(struct core_ep *ep, uint64_t fi_addr);
void core_ep_av_removed(struct core_ep *ep, uint64_t fi_addr);

#endif
