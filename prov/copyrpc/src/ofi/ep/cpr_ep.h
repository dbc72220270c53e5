/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is an endpoint to libfabric?
 *
 * struct cpr_ep begins with what every transfer reads (one or two cache lines); behind it stands
 * what is bound to it, and core's endpoint. An alias is another cpr_ep that points to the same
 * core endpoint and has default flags of its own.
 *
 * The op tables of transfers stand in the endpoint: before fi_enable they refuse with
 * -FI_EOPBADSTATE, afterwards they hold what the capabilities allow. No transfer asks whether it
 * is allowed.
 *
 * Shown by test/unit/ofi/ep/test_cpr_ep.c.
 */
#ifndef CPR_EP_H
#define CPR_EP_H

#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "core/core_conn.h"
#include "core/core_dom.h"
#include "core/core_ep.h"
#include "ofi/queue/cpr_eq.h"
#include "ofi/base/cpr_ref.h"
#include "util/list.h"

struct cpr_av;
struct cpr_ep;
struct dgram_ep;
struct cpr_cntr;
struct cpr_cq;
struct cpr_domain;
struct cpr_stx;
struct cpr_request;

/* Kinds of operations that can have a counter of their own: FI_SEND, FI_RECV, those of RMA. */
#define CPR_EP_CNTR_CNT (2 + CORE_CNTR_RMA_CNT)

/** What differs between endpoints of messages (core/) and of datagrams (dgram/). */
struct cpr_ep_kind {
	int (*start)(struct cpr_ep *ep);    /* fi_enable, locked: 0 or -FI_E* */
	bool (*is_busy)(struct cpr_ep *ep); /* started, locked: something is still on its way */
	void (*stop)(struct cpr_ep *ep);    /* started, locked: the end of it */
	void (*pick_ops)(struct cpr_ep *ep);
	/* Started, locked: bytes of its address in *addr. */
	size_t (*addr)(struct cpr_ep *ep, struct sockaddr_storage *addr);
	/* Locked: 0 or -FI_ENOENT. */
	int (*cancel)(struct cpr_ep *ep, void *context);
	/* Started, locked: the AV has a number more / less. */
	int (*av_inserted)(struct cpr_ep *ep, uint64_t number);
	/* Is something still on its way there? NULL: nobody can tell. */
	bool (*av_is_busy)(struct cpr_ep *ep, uint64_t number);
	void (*av_removed)(struct cpr_ep *ep, uint64_t number);
};

/** How long what was accepted is waited for: as long as a peer may be silent. Zero-filled at first. */
struct cpr_drain {
	uint64_t deadline_ns;
	unsigned looks;
};

/** Something is still busy, and nothing is locked: look again? Naps after many looks. */
bool cpr_drain_again(struct cpr_drain *drain);

struct cpr_ep {
	struct fid_ep fid;
	struct core_ep *core; /* of `owner` */
	struct core_dom *dom; /* of its group (cpr_pdom.h): the first one's until fi_enable */
	uint64_t tx_flags;    /* of transfers without a flags parameter */
	uint64_t rx_flags;
	size_t send_max;   /* bytes of a send with tx_flags: less if they say FI_INJECT */
	size_t inject_max; /* bytes of an injected send */
	struct fi_ops_tagged tagged_ops;
	struct fi_ops_msg msg_ops;
	struct fi_ops_rma rma_ops;
	struct fi_ops_atomic atomic_ops;

	const struct cpr_ep_kind *kind;
	struct dgram_ep *dgram; /* FI_EP_DGRAM, once enabled; else NULL */
	uint32_t dgram_prefix;  /* FI_EP_DGRAM: msg_prefix_size */
	struct cpr_ep *owner;   /* itself, unless it is an alias */
	struct cpr_ref refs;    /* aliases; of a shared receive context: endpoints */
	struct cpr_domain *domain;
	struct util_list domain_link; /* cpr_domain.eps */
	struct cpr_av *av;
	struct util_list av_link; /* cpr_av.eps */
	struct cpr_cq *tx_cq;
	struct cpr_cq *rx_cq;
	struct cpr_cntr *cntr[CPR_EP_CNTR_CNT];
	struct util_list triggers; /* cpr_trigger.ep_link */
	struct cpr_ep *srx;        /* shared contexts, or NULL */
	struct cpr_stx *stx;
	bool wants_srx; /* opened with FI_SHARED_CONTEXT: must be bound before fi_enable */
	bool wants_stx;
	struct cpr_eq_user eq_user;
	uint64_t caps;
	bool is_enabled;
	struct core_conn conn; /* FI_EP_MSG: core_ep.conn */
	struct cpr_request
		*request; /* FI_EP_MSG: opened to answer it; NULL: none, or it is answered */
	struct sockaddr_storage src;  /* ss_family 0: any address */
	struct sockaddr_storage door; /* accepted: the listener's address, which is its name too */
	struct core_ep core_ep;
};

static inline struct cpr_ep *cpr_ep_of(struct fid_ep *fid)
{
	return container_of(fid, struct cpr_ep, fid);
}

int cpr_ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, void *context);
int cpr_ep_open2(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
		 uint64_t flags, void *context);

/** The kind of all but FI_EP_DGRAM. */
extern const struct cpr_ep_kind cpr_ep_kind_msg;

/** Transfers of endpoints with all capabilities (cpr_msg.c, cpr_tagged.c); of those that share a lock for good. */
extern const struct fi_ops_msg cpr_msg_ops, cpr_msg_guarded_ops;
extern const struct fi_ops_tagged cpr_tagged_ops, cpr_tagged_guarded_ops;

/** fi_ops_ep and fi_ops_cm (cpr_ep_opt.c). */
extern struct fi_ops_ep cpr_ep_ops;
extern struct fi_ops_cm cpr_ep_cm_ops;
int cpr_ep_setname(fid_t fid, void *addr, size_t addrlen);
int cpr_ep_getname(fid_t fid, void *addr, size_t *addrlen);

/** fi_enable, which some calls imply. */
int cpr_ep_enable(struct cpr_ep *ep);

/** The beginning of every endpoint: its kind is set, and its capabilities. */
void cpr_ep_init(struct cpr_ep *ep, struct cpr_domain *domain, const struct fi_info *info,
		 void *context);

/** The interface, with transfers that are yet to be filled in. */
void cpr_ep_init_fid(struct cpr_ep *ep, void *context);

/** Fills in the transfers that the capabilities and shared contexts allow. */
void cpr_ep_pick_ops(struct cpr_ep *ep);

/** Default flags changed: what follows from them (cpr_ep_alias.c). */
void cpr_ep_set_tx_flags(struct cpr_ep *ep, uint64_t flags);

#endif
