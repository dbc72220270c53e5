/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The two ends of cost.h as caller and callee of copyrpc's RPC extension: a send of the client is a
 * call, a send of the server a reply. A receive of the client names the response buffer, a receive
 * of the server does nothing. Shape rpc only.
 */
#include "cost.h"

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_ext_copyrpc.h>

#include <stdlib.h>
#include <string.h>

#define COST_BATCH    16
#define COST_NAME_LEN 64

const char *const cost_transport = "rpc_cost_bench";

struct cost_rpc_end {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fi_copyrpc_ops *rpc;
	char name[COST_NAME_LEN];
};

struct cost_buf {
	void *buf;
	size_t len;
};

struct cost_rpc {
	struct cost_pair pair;
	struct cost_rpc_end end[COST_ENDS];
	fi_addr_t server;
	int window;
	struct cost_buf *resps;          /* receives of the client */
	struct cost_buf *requests;       /* requests at the server, copied as messages are */
	struct fi_copyrpc_request *reqs; /* requests in order of arrival: a ring of `window` */
	long taken, replied;
};

static void must(const char *what, long err)
{
	if (err)
		cost_die(what, fi_strerror((int)-err));
}

static void *cost_array(int cnt, size_t len)
{
	void *array = calloc((size_t)cnt, len);

	if (!array)
		cost_die("a pair of ends", "out of memory");
	return array;
}

static struct fi_info *cost_rpc_info(const char *provider)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;

	if (!hints)
		cost_die("fi_allocinfo", "out of memory");
	hints->caps = FI_MSG;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->fabric_attr->prov_name = strdup(provider ? provider : "copyrpc");
	must("fi_getinfo", fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
	fi_freeinfo(hints);
	return info;
}

static void cost_rpc_open(struct cost_rpc_end *e, const char *provider)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_CONTEXT };
	struct fi_av_attr av_attr = { .type = FI_AV_MAP };
	size_t len = sizeof(e->name);

	e->info = cost_rpc_info(provider);
	must("fi_fabric", fi_fabric(e->info->fabric_attr, &e->fabric, NULL));
	must("fi_domain", fi_domain(e->fabric, e->info, &e->domain, NULL));
	must("fi_av_open", fi_av_open(e->domain, &av_attr, &e->av, NULL));
	must("fi_cq_open", fi_cq_open(e->domain, &cq_attr, &e->cq, NULL));
	must("fi_endpoint", fi_endpoint(e->domain, e->info, &e->ep, NULL));
	must("fi_ep_bind", fi_ep_bind(e->ep, &e->av->fid, 0));
	must("fi_ep_bind", fi_ep_bind(e->ep, &e->cq->fid, FI_TRANSMIT | FI_RECV));
	must("fi_enable", fi_enable(e->ep));
	must("fi_copyrpc_open", fi_copyrpc_open(&e->ep->fid, &e->rpc));
	must("fi_getname", fi_getname(&e->ep->fid, e->name, &len));
}

const struct cost_access_ops *const cost_accesses = NULL;

struct cost_pair *cost_pair_open(const char *name, int window, bool accesses)
{
	struct cost_rpc *rpc = cost_array(1, sizeof(*rpc));

	rpc->window = window;
	rpc->resps = cost_array(window, sizeof(*rpc->resps));
	rpc->requests = cost_array(window, sizeof(*rpc->requests));
	rpc->reqs = cost_array(window, sizeof(*rpc->reqs));
	for (int i = 0; i < COST_ENDS; i++)
		cost_rpc_open(&rpc->end[i], name);
	if (fi_av_insert(rpc->end[COST_CLIENT].av, rpc->end[COST_SERVER].name, 1, &rpc->server, 0,
			 NULL) != 1)
		cost_die("fi_av_insert", "the address was refused");
	return &rpc->pair;
}

static void cost_rpc_close(struct cost_rpc_end *e)
{
	must("fi_close", fi_close(&e->ep->fid));
	must("fi_close", fi_close(&e->cq->fid));
	must("fi_close", fi_close(&e->av->fid));
	must("fi_close", fi_close(&e->domain->fid));
	must("fi_close", fi_close(&e->fabric->fid));
	fi_freeinfo(e->info);
}

void cost_pair_close(struct cost_pair *pair)
{
	struct cost_rpc *rpc = (struct cost_rpc *)pair;

	for (int i = 0; i < COST_ENDS; i++)
		cost_rpc_close(&rpc->end[i]);
	free(rpc->resps);
	free(rpc->requests);
	free(rpc->reqs);
	free(rpc);
}

static bool cost_call(struct cost_rpc *rpc, const void *buf, size_t len, int slot)
{
	struct cost_rpc_end *e = &rpc->end[COST_CLIENT];
	struct cost_buf *to = &rpc->resps[slot];
	uint64_t flags = slot + 1 < rpc->window / 2 ? FI_MORE : 0;
	ssize_t ret;

	ret = fi_copyrpc_call(e->rpc, e->ep, buf, len, to->buf, to->len, rpc->server, to, flags);
	if (ret == -FI_EAGAIN)
		return false;
	must("fi_copyrpc_call", ret);
	rpc->pair.end[COST_CLIENT].sent++;
	return true;
}

static void cost_reply(struct cost_rpc *rpc, const void *buf, size_t len)
{
	struct cost_rpc_end *e = &rpc->end[COST_SERVER];

	must("fi_copyrpc_reply",
	     fi_copyrpc_reply(e->rpc, e->ep, &rpc->reqs[rpc->replied % rpc->window], buf, len,
			      rpc->replied + 1 < rpc->taken ? FI_MORE : 0));
	rpc->replied++;
	rpc->pair.end[COST_SERVER].sent++;
}

bool cost_send(struct cost_pair *pair, int end, const void *buf, size_t len, int slot)
{
	if (end == COST_CLIENT)
		return cost_call((struct cost_rpc *)pair, buf, len, slot);
	cost_reply((struct cost_rpc *)pair, buf, len);
	return true;
}

void cost_recv(struct cost_pair *pair, int end, void *buf, size_t len, int slot)
{
	struct cost_rpc *rpc = (struct cost_rpc *)pair;
	struct cost_buf *bufs = end == COST_CLIENT ? rpc->resps : rpc->requests;

	bufs[slot] = (struct cost_buf){ buf, len };
}

static void cost_take(struct cost_rpc *rpc)
{
	struct cost_rpc_end *e = &rpc->end[COST_SERVER];
	long at = rpc->taken % rpc->window;
	ssize_t cnt = fi_copyrpc_recv(e->rpc, e->ep, rpc->reqs + at, (size_t)(rpc->window - at), 0);

	if (cnt < 0 && cnt != -FI_EAGAIN)
		must("fi_copyrpc_recv", cnt);
	for (ssize_t i = 0; i < cnt; i++)
		memcpy(rpc->requests[at + i].buf, rpc->reqs[at + i].data, rpc->reqs[at + i].len);
	if (cnt < 0)
		return;
	rpc->taken += cnt;
	rpc->pair.end[COST_SERVER].received += cnt;
}

void cost_progress(struct cost_pair *pair, int end)
{
	struct cost_rpc *rpc = (struct cost_rpc *)pair;
	struct fi_cq_entry entries[COST_BATCH];
	ssize_t cnt;

	if (end == COST_SERVER) {
		cost_take(rpc);
		return;
	}
	cnt = fi_cq_read(rpc->end[end].cq, entries, COST_BATCH);
	if (cnt > 0)
		pair->end[end].received += cnt;
	else if (cnt != -FI_EAGAIN)
		must("a call", cnt);
}
