/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The two ends of cost.h as endpoints of a libfabric provider: FI_EP_RDM, fi_tagged, a domain and a
 * completion queue each. Every send has a completion that states that the buffer may be used again,
 * as ucp_tag_send_nbx and MPI_Isend report it. FI_COST_TRANSMIT in the environment requests
 * completions that state that the peer has the message. FI_COST_SAFE selects FI_THREAD_SAFE, with a
 * lock; the default is FI_THREAD_DOMAIN. FI_COST_COUNTERS selects messages without tags and
 * completions, counted by two counters.
 *
 * Accesses are fi_read and fi_write with a descriptor and a completion each; FI_COST_MORE in the
 * environment adds FI_MORE to all but the last of a window. FI_COST_MESSAGE selects fi_tsendmsg
 * instead of fi_tsend, with FI_MORE on the same condition.
 */
#include "cost.h"

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <stdlib.h>
#include <string.h>

#define COST_TAG      1
#define COST_BATCH    16
#define COST_NAME_LEN 256

const char *const cost_transport = "fi_cost_bench";

/*
 * Operation in flight. The context is the first member, because the provider returns its address.
 */
struct cost_op {
	struct fi_context2 context;
	bool receive, access;
};

/** Memory of one end for accesses. */
struct cost_fi_mem {
	struct fid_mr *mr;
	char *buf;
	uint64_t addr; /* for the peer */
	uint64_t key;
	void *desc;
};

struct cost_fi_end {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_cntr *tx_cntr, *rx_cntr;
	struct fid_ep *ep;
	fi_addr_t peer;
	struct cost_op *tx, *rx, *accesses;
	struct cost_fi_mem mem;
	char name[COST_NAME_LEN];
};

struct cost_fi {
	struct cost_pair pair;
	struct cost_fi_end end[COST_ENDS];
};

static bool cost_counters; /* FI_COST_COUNTERS */
static bool cost_more;     /* FI_COST_MORE */
static bool cost_message;  /* FI_COST_MESSAGE */
static bool cost_other;    /* sends are not by fi_tsend */
static uint64_t cost_op_flags;
static const void *cost_last[COST_ENDS]; /* contexts of the last message of a window */
static bool cost_rma;                    /* for accesses, too */

static void must(const char *what, long err)
{
	if (err)
		cost_die(what, fi_strerror((int)-err));
}

static struct fi_info *cost_fi_info(const char *provider)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;

	if (!hints)
		cost_die("fi_allocinfo", "out of memory");
	hints->caps = cost_counters ? FI_MSG : FI_TAGGED;
	hints->caps |= cost_rma ? FI_RMA : 0;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode =
		FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | (cost_rma ? FI_MR_LOCAL : 0);
	hints->domain_attr->threading = getenv("FI_COST_SAFE") ? FI_THREAD_SAFE : FI_THREAD_DOMAIN;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->tx_attr->op_flags =
		(cost_counters ? 0 : FI_COMPLETION) |
		(getenv("FI_COST_TRANSMIT") ? FI_TRANSMIT_COMPLETE : FI_INJECT_COMPLETE);
	hints->fabric_attr->prov_name = provider ? strdup(provider) : NULL;
	must("fi_getinfo", fi_getinfo(FI_VERSION(1, 9), NULL, NULL, 0, hints, &info));
	fi_freeinfo(hints);
	return info;
}

static struct cost_op *cost_fi_ops(int window, bool receive)
{
	struct cost_op *ops = calloc((size_t)window, sizeof(*ops));

	if (!ops)
		cost_die("contexts", "out of memory");
	for (int i = 0; i < window; i++)
		ops[i].receive = receive;
	return ops;
}

static void cost_fi_count(struct cost_fi_end *e)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };

	must("fi_cntr_open", fi_cntr_open(e->domain, &attr, &e->tx_cntr, NULL));
	must("fi_cntr_open", fi_cntr_open(e->domain, &attr, &e->rx_cntr, NULL));
	must("fi_ep_bind", fi_ep_bind(e->ep, &e->tx_cntr->fid, FI_SEND));
	must("fi_ep_bind", fi_ep_bind(e->ep, &e->rx_cntr->fid, FI_RECV));
}

static void cost_fi_open(struct cost_fi_end *e, const char *provider, int window)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_CONTEXT };
	struct fi_av_attr av_attr = { .type = FI_AV_MAP };
	size_t len = sizeof(e->name);

	e->info = cost_fi_info(provider);
	e->tx = cost_fi_ops(window, false);
	e->rx = cost_fi_ops(window, true);
	e->accesses = cost_fi_ops(window, false);
	for (int i = 0; i < window; i++)
		e->accesses[i].access = true;
	must("fi_fabric", fi_fabric(e->info->fabric_attr, &e->fabric, NULL));
	must("fi_domain", fi_domain(e->fabric, e->info, &e->domain, NULL));
	must("fi_av_open", fi_av_open(e->domain, &av_attr, &e->av, NULL));
	must("fi_cq_open", fi_cq_open(e->domain, &cq_attr, &e->cq, NULL));
	must("fi_endpoint", fi_endpoint(e->domain, e->info, &e->ep, NULL));
	must("fi_ep_bind", fi_ep_bind(e->ep, &e->av->fid, 0));
	must("fi_ep_bind",
	     fi_ep_bind(e->ep, &e->cq->fid,
			FI_TRANSMIT | FI_RECV | (cost_counters ? FI_SELECTIVE_COMPLETION : 0)));
	if (cost_counters)
		cost_fi_count(e);
	must("fi_enable", fi_enable(e->ep));
	must("fi_getname", fi_getname(&e->ep->fid, e->name, &len));
}

/* `slots` are two windows; sends have the first, receives both. */
struct cost_pair *cost_pair_open(const char *name, int slots, bool accesses)
{
	struct cost_fi *fi = calloc(1, sizeof(*fi));

	if (!fi)
		cost_die("a pair of ends", "out of memory");
	cost_counters = getenv("FI_COST_COUNTERS");
	cost_more = getenv("FI_COST_MORE");
	cost_message = getenv("FI_COST_MESSAGE");
	cost_other = cost_counters || cost_message;
	cost_rma = accesses;
	for (int i = 0; i < COST_ENDS; i++) {
		cost_fi_open(&fi->end[i], name, slots);
		cost_op_flags = fi->end[i].info->tx_attr->op_flags;
		cost_last[i] = &fi->end[i].tx[slots / 2 - 1].context;
	}
	for (int i = 0; i < COST_ENDS; i++) {
		struct cost_fi_end *e = &fi->end[i];

		if (fi_av_insert(e->av, fi->end[!i].name, 1, &e->peer, 0, NULL) != 1)
			cost_die("fi_av_insert", "the address was refused");
	}
	return &fi->pair;
}

static void cost_fi_close(struct cost_fi_end *e)
{
	must("fi_close", fi_close(&e->ep->fid));
	if (cost_counters) {
		must("fi_close", fi_close(&e->tx_cntr->fid));
		must("fi_close", fi_close(&e->rx_cntr->fid));
	}
	must("fi_close", fi_close(&e->cq->fid));
	must("fi_close", fi_close(&e->av->fid));
	must("fi_close", fi_close(&e->domain->fid));
	must("fi_close", fi_close(&e->fabric->fid));
	fi_freeinfo(e->info);
	free(e->tx);
	free(e->rx);
	free(e->accesses);
}

void cost_pair_close(struct cost_pair *pair)
{
	struct cost_fi *fi = (struct cost_fi *)pair;

	for (int i = 0; i < COST_ENDS; i++)
		cost_fi_close(&fi->end[i]);
	free(fi);
}

static ssize_t cost_fi_send_message(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t peer,
				    void *context)
{
	struct iovec iov = { (void *)(uintptr_t)buf, len };
	struct fi_msg_tagged msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = peer, .tag = COST_TAG, .context = context
	};
	bool is_last = context == cost_last[0] || context == cost_last[1];

	return fi_tsendmsg(ep, &msg, cost_op_flags | (cost_more && !is_last ? FI_MORE : 0));
}

/* Sends otherwise. Its parameters are those of fi_tsend, so that a plain send costs no more. */
static __attribute__((noinline)) ssize_t cost_fi_send_other(struct fid_ep *ep, const void *buf,
							    size_t len, fi_addr_t peer,
							    void *context)
{
	if (cost_message)
		return cost_fi_send_message(ep, buf, len, peer, context);
	return fi_send(ep, buf, len, NULL, peer, context);
}

static ssize_t cost_fi_send(struct cost_fi_end *e, const void *buf, size_t len, int slot)
{
	if (cost_other)
		return cost_fi_send_other(e->ep, buf, len, e->peer, &e->tx[slot].context);
	return fi_tsend(e->ep, buf, len, NULL, e->peer, COST_TAG, &e->tx[slot].context);
}

bool cost_send(struct cost_pair *pair, int end, const void *buf, size_t len, int slot)
{
	struct cost_fi_end *e = &((struct cost_fi *)pair)->end[end];
	ssize_t ret;

	/* A connection is established only if both ends make progress. */
	while ((ret = cost_fi_send(e, buf, len, slot)) == -FI_EAGAIN) {
		cost_progress(pair, COST_CLIENT);
		cost_progress(pair, COST_SERVER);
	}
	must("a send", ret);
	return true;
}

static ssize_t cost_fi_recv(struct cost_fi_end *e, void *buf, size_t len, int slot)
{
	if (cost_counters)
		return fi_recv(e->ep, buf, len, NULL, FI_ADDR_UNSPEC, &e->rx[slot].context);
	return fi_trecv(e->ep, buf, len, NULL, FI_ADDR_UNSPEC, COST_TAG, 0, &e->rx[slot].context);
}

void cost_recv(struct cost_pair *pair, int end, void *buf, size_t len, int slot)
{
	struct cost_fi_end *e = &((struct cost_fi *)pair)->end[end];
	ssize_t ret;

	while ((ret = cost_fi_recv(e, buf, len, slot)) == -FI_EAGAIN)
		cost_progress(pair, end);
	must("a receive", ret);
}

static void cost_fi_failed(struct cost_fi_end *e)
{
	struct fi_cq_err_entry error = { 0 };
	ssize_t ret = fi_cq_readerr(e->cq, &error, 0);

	cost_die("completion with an error", fi_strerror(ret < 0 ? (int)-ret : error.err));
}

void cost_progress(struct cost_pair *pair, int end)
{
	struct cost_fi_end *e = &((struct cost_fi *)pair)->end[end];
	struct fi_cq_entry entries[COST_BATCH];
	ssize_t cnt;

	if (cost_counters) {
		pair->end[end].sent = (long)fi_cntr_read(e->tx_cntr);
		pair->end[end].received = (long)fi_cntr_read(e->rx_cntr);
		return;
	}
	cnt = fi_cq_read(e->cq, entries, COST_BATCH);
	if (cnt == -FI_EAGAIN)
		return;
	if (cnt == -FI_EAVAIL)
		cost_fi_failed(e);
	if (cnt < 0)
		cost_die("fi_cq_read", fi_strerror((int)-cnt));
	for (ssize_t i = 0; i < cnt; i++) {
		const struct cost_op *op = entries[i].op_context;

		if (op->receive)
			pair->end[end].received++;
		else if (op->access)
			pair->end[end].accessed++;
		else
			pair->end[end].sent++;
	}
}

static void cost_fi_reg(struct cost_fi_end *e, void *buf, size_t len, uint64_t access)
{
	bool virt = e->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR;
	struct cost_fi_mem *mem = &e->mem;

	must("fi_mr_reg", fi_mr_reg(e->domain, buf, len, access, 0, 1, 0, &mem->mr, NULL));
	mem->buf = buf;
	mem->addr = virt ? (uintptr_t)buf : 0;
	mem->key = fi_mr_key(mem->mr);
	mem->desc = fi_mr_desc(mem->mr);
}

static void cost_fi_access_open(struct cost_pair *pair, void *local, void *remote, size_t len)
{
	struct cost_fi *fi = (struct cost_fi *)pair;

	cost_fi_reg(&fi->end[COST_CLIENT], local, len, FI_READ | FI_WRITE);
	cost_fi_reg(&fi->end[COST_SERVER], remote, len, FI_REMOTE_READ | FI_REMOTE_WRITE);
}

static void cost_fi_access_close(struct cost_pair *pair)
{
	struct cost_fi *fi = (struct cost_fi *)pair;

	for (int i = 0; i < COST_ENDS; i++)
		must("fi_close", fi_close(&fi->end[i].mem.mr->fid));
}

static ssize_t cost_fi_access_more(struct cost_fi_end *e, const struct cost_fi_mem *remote,
				   bool put, size_t off, size_t len, struct cost_op *op)
{
	struct iovec iov = { e->mem.buf + off, len };
	struct fi_rma_iov there = { remote->addr + off, len, remote->key };
	struct fi_msg_rma msg = { .msg_iov = &iov,
				  .desc = &e->mem.desc,
				  .iov_count = 1,
				  .addr = e->peer,
				  .rma_iov = &there,
				  .rma_iov_count = 1,
				  .context = &op->context };
	uint64_t flags = e->info->tx_attr->op_flags | FI_MORE;

	return put ? fi_writemsg(e->ep, &msg, flags) : fi_readmsg(e->ep, &msg, flags);
}

static bool cost_fi_access(struct cost_pair *pair, bool put, size_t off, size_t len, int slot,
			   bool more)
{
	struct cost_fi *fi = (struct cost_fi *)pair;
	struct cost_fi_end *e = &fi->end[COST_CLIENT];
	const struct cost_fi_mem *remote = &fi->end[COST_SERVER].mem;
	struct cost_op *op = &e->accesses[slot];
	ssize_t ret;

	if (more && cost_more)
		ret = cost_fi_access_more(e, remote, put, off, len, op);
	else if (put)
		ret = fi_write(e->ep, e->mem.buf + off, len, e->mem.desc, e->peer,
			       remote->addr + off, remote->key, &op->context);
	else
		ret = fi_read(e->ep, e->mem.buf + off, len, e->mem.desc, e->peer,
			      remote->addr + off, remote->key, &op->context);
	if (ret == -FI_EAGAIN)
		return false;
	must("an access", ret);
	return true;
}

static const struct cost_access_ops cost_fi_accesses = {
	.open = cost_fi_access_open,
	.close = cost_fi_access_close,
	.start = cost_fi_access,
};

const struct cost_access_ops *const cost_accesses = &cost_fi_accesses;
