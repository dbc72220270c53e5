/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Endpoints: fi_endpoint over a core endpoint. Opened by fi_endpoint; transfers are in ofi/xfer.
 *
 * struct cpr_ep begins with the fields that every transfer reads (one or two cache lines); behind
 * them are the bound objects and core's endpoint. An alias is another cpr_ep that points to the
 * same core endpoint and has default flags of its own.
 *
 * The op tables of messages are in the endpoint: before fi_enable they refuse (cpr_refuse.h), then
 * they hold what the capabilities allow. No message checks capabilities.
 *
 * Tested by test/unit/ofi/ep/test_cpr_ep.c.
 */
#ifndef OFI_BASE_CPR_EP_H
#define OFI_BASE_CPR_EP_H

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
#include "ofi/base/cpr_eq_user.h"
#include "ofi/base/cpr_ref.h"
#include "util/list.h"

struct cpr_av;
struct cpr_ep;
struct dgram_ep;
struct cpr_cntr;
struct cpr_cq;
struct cpr_domain;
struct cpr_stx;
struct cpr_connreq;

/* Kinds of operations with a counter of their own: FI_SEND, FI_RECV, those of RMA. */
#define CPR_EP_CNTR_CNT (2 + CORE_CNTR_RMA_CNT)

/** Operations that differ between endpoints of messages (core/) and of datagrams (dgram/). */
struct cpr_ep_kind {
	int (*start)(struct cpr_ep *ep);    /* fi_enable, locked: 0 or a negative error code */
	bool (*is_busy)(struct cpr_ep *ep); /* started, locked: operations are in progress */
	void (*stop)(struct cpr_ep *ep);    /* started, locked */
	void (*pick_ops)(struct cpr_ep *ep);
	/* Returns the bytes of the address in *addr. Started, locked. */
	size_t (*addr)(struct cpr_ep *ep, struct sockaddr_storage *addr);
	/* Returns 0 or -FI_ENOENT. Locked. */
	int (*cancel)(struct cpr_ep *ep, void *context);
	/* Handles insertion and removal in the address vector. Started, locked. */
	int (*av_inserted)(struct cpr_ep *ep, uint64_t number);
	/* Returns true if operations to the peer are in progress. NULL: not known. */
	bool (*av_is_busy)(struct cpr_ep *ep, uint64_t number);
	void (*av_removed)(struct cpr_ep *ep, uint64_t number);
	uint64_t tx_op_flags; /* default flags of transmits that are offered */
};

/**
 * Limit on waiting for accepted operations: as long as a peer may be silent. Zero-filled at first.
 */
struct cpr_drain {
	uint64_t deadline_ns;
	unsigned looks;
};

/** Returns true if the caller may wait on. Naps after many looks. Called without locks. */
bool cpr_drain_again(struct cpr_drain *drain);

struct cpr_ep {
	struct fid_ep fid;
	struct core_ep *core; /* of `owner` */
	struct core_dom *dom; /* core of its progress domain; `main`'s until fi_enable */
	uint64_t tx_flags;    /* flags of transfers without a flags parameter */
	uint64_t rx_flags;
	size_t send_max;   /* bytes of a send with tx_flags: inject_max with FI_INJECT */
	size_t inject_max; /* bytes of an injected send */
	struct fi_ops_tagged tagged_ops;
	struct fi_ops_msg msg_ops;
	bool may_rma[2];    /* reads; writes */
	bool may_atomic[2]; /* base operations; fetch and compare */

	const struct cpr_ep_kind *kind;
	struct dgram_ep *dgram; /* FI_EP_DGRAM, once enabled; else NULL */
	uint32_t dgram_prefix;  /* FI_EP_DGRAM: msg_prefix_size */
	struct cpr_ep *owner;   /* the endpoint itself, unless it is an alias */
	struct cpr_ref refs;    /* aliases; for a shared receive context: endpoints */
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
	bool needs_srx; /* opened with FI_SHARED_CONTEXT: to be bound before fi_enable */
	bool needs_stx;
	struct cpr_eq_user eq_user;
	uint64_t caps;
	bool is_enabled;
	struct core_conn conn;       /* FI_EP_MSG: core_ep.conn */
	struct cpr_connreq *request; /* FI_EP_MSG: request without a reply yet, or NULL */
	struct sockaddr_storage src; /* ss_family 0: any address */
	struct sockaddr_storage
		listener_addr; /* accepted: the listener's address, reported by fi_getname */
	struct core_ep core_ep;
};

static inline struct cpr_ep *cpr_ep_of(struct fid_ep *fid)
{
	return UTIL_CONTAINER_OF(fid, struct cpr_ep, fid);
}

int cpr_ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, void *context);
int cpr_ep_open2(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
		 uint64_t flags, void *context);

/** Kind of all endpoints but FI_EP_DGRAM. */
extern const struct cpr_ep_kind cpr_ep_kind_msg;

/**
 * Transfers of endpoints with all capabilities (cpr_msg.c, cpr_tagged.c). The guarded ones are for
 * endpoints of a domain with a lock.
 */
extern const struct fi_ops_msg cpr_msg_ops, cpr_msg_guarded_ops;
extern const struct fi_ops_tagged cpr_tagged_ops, cpr_tagged_guarded_ops;

/** fi_ops_ep and fi_ops_cm (cpr_ep_opt.c). */
extern struct fi_ops_ep cpr_ep_ops;
extern struct fi_ops_cm cpr_ep_cm_ops;
int cpr_ep_setname(fid_t fid, void *addr, size_t addrlen);
int cpr_ep_getname(fid_t fid, void *addr, size_t *addrlen);

/** Implements fi_enable, which some calls imply. */
int cpr_ep_enable(struct cpr_ep *ep);

/** Initializes an endpoint with its kind and capabilities set. */
void cpr_ep_init(struct cpr_ep *ep, struct cpr_domain *domain, const struct fi_info *info,
		 void *context);

/** Initializes the interface, except transfers. */
void cpr_ep_init_fid(struct cpr_ep *ep, void *context);

/** Allows the transfers that the capabilities and shared contexts allow. */
void cpr_ep_pick_ops(struct cpr_ep *ep);

/** Sets the default flags and what depends on them (cpr_ep_alias.c). */
void cpr_ep_set_tx_flags(struct cpr_ep *ep, uint64_t flags);

#endif
