/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Calls between nodes over copyrpc: see kv_net.h.
 *
 * One libfabric endpoint in a domain of its own, so that no lock is needed. Calls and replies carry
 * FI_MORE and leave with flush, that is, as one batch for each target and loop of a daemon.
 * Responses stay in the ring until they are released: they are copied once, into the response slot
 * of the client.
 */
#include <assert.h>
#include <errno.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_ext_copyrpc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kv_net.h"

struct kv_rpc {
	struct kv_net net;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fi_copyrpc_ops *ops;
	fi_addr_t *targets;
	size_t response_max;
	bool waits; /* something was sent with FI_MORE */
};

static_assert(sizeof(struct fi_copyrpc_request) ==
		      offsetof(struct fi_copyrpc_request, handle) + 2 * sizeof(uint64_t),
	      "the request of the extension has no field behind its handle");

static struct kv_rpc *kv_rpc_of(struct kv_net *net)
{
	return (struct kv_rpc *)net;
}

static int kv_rpc_call(struct kv_net *net, uint32_t target, const void *buf, size_t len,
		       void *context)
{
	struct kv_rpc *rpc = kv_rpc_of(net);
	ssize_t ret = fi_copyrpc_call(rpc->ops, rpc->ep, buf, len, NULL, rpc->response_max,
				      rpc->targets[target], context, FI_MORE | FI_COPYRPC_RETAIN);

	rpc->waits = rpc->waits || !ret;
	return (int)ret;
}

/* Reads the error at the head of the queue, which is the end of one call. Returns 1, or 0. */
static int kv_rpc_error(struct kv_rpc *rpc, struct kv_net_end *end)
{
	struct fi_cq_err_entry error = { .err_data_size = 0 };

	if (fi_cq_readerr(rpc->cq, &error, 0) != 1)
		return 0;
	*end = (struct kv_net_end){ .context = error.op_context, .status = -error.err };
	return 1;
}

static int kv_rpc_poll(struct kv_net *net, struct kv_net_end *ends, int max)
{
	struct kv_rpc *rpc = kv_rpc_of(net);
	struct fi_cq_data_entry entries[64];
	ssize_t n = fi_cq_read(rpc->cq, entries, (size_t)(max < 64 ? max : 64));

	if (n == -FI_EAVAIL)
		return kv_rpc_error(rpc, ends);
	for (ssize_t i = 0; i < n; i++)
		ends[i] = (struct kv_net_end){
			.context = entries[i].op_context,
			.data = entries[i].buf,
			.len = entries[i].len,
			.own = entries[i].data,
		};
	return n > 0 ? (int)n : 0;
}

static void kv_rpc_release(struct kv_net *net, const struct kv_net_end *end)
{
	fi_copyrpc_release_response(kv_rpc_of(net)->ops, kv_rpc_of(net)->ep, end->own);
}

static int kv_rpc_take(struct kv_net *net, struct kv_net_request *requests, int max)
{
	struct kv_rpc *rpc = kv_rpc_of(net);
	struct fi_copyrpc_request taken[64];
	ssize_t n = fi_copyrpc_recv(rpc->ops, rpc->ep, taken, (size_t)(max < 64 ? max : 64), 0);

	for (ssize_t i = 0; i < n; i++) {
		requests[i].data = taken[i].data;
		requests[i].len = taken[i].len;
		memcpy(requests[i].own, &taken[i], sizeof(taken[i]));
	}
	return n > 0 ? (int)n : 0;
}

static void kv_rpc_reply(struct kv_net *net, const struct kv_net_request *request, const void *buf,
			 size_t len)
{
	struct kv_rpc *rpc = kv_rpc_of(net);
	struct fi_copyrpc_request taken;

	memcpy(&taken, request->own, sizeof(taken));
	if (len > taken.resp_max)
		len = 0; /* the caller has another configuration: gets an empty response */
	fi_copyrpc_reply(rpc->ops, rpc->ep, &taken, buf, len, FI_MORE);
	rpc->waits = true;
}

static void kv_rpc_flush(struct kv_net *net)
{
	struct kv_rpc *rpc = kv_rpc_of(net);

	if (rpc->waits)
		fi_copyrpc_flush(rpc->ops, rpc->ep, FI_ADDR_UNSPEC);
	rpc->waits = false;
}

static int kv_rpc_arm(struct kv_net *net, int *fd)
{
	struct kv_rpc *rpc = kv_rpc_of(net);
	struct fid *fid = &rpc->cq->fid;

	if (fi_control(fid, FI_GETWAIT, fd))
		*fd = -1;
	return fi_trywait(rpc->fabric, &fid, 1) ? -EAGAIN : 0;
}

static int kv_rpc_failed(const char *what, int ret)
{
	fprintf(stderr, "copyrpc_benchkv: %s: %s\n", what, fi_strerror(-ret));
	return ret;
}

static int kv_rpc_connect(struct kv_net *net, const struct kv_name *names, uint32_t count)
{
	struct kv_rpc *rpc = kv_rpc_of(net);

	rpc->targets = calloc(count ? count : 1, sizeof(*rpc->targets));
	if (!rpc->targets)
		return kv_rpc_failed("addresses", -FI_ENOMEM);
	for (uint32_t i = 0; i < count; i++)
		if (fi_av_insert(rpc->av, names[i].bytes, 1, &rpc->targets[i], 0, NULL) != 1)
			return kv_rpc_failed("fi_av_insert", -FI_EINVAL);
	return 0;
}

static void kv_rpc_close_fid(struct fid *fid)
{
	if (fid)
		fi_close(fid);
}

static void kv_rpc_close(struct kv_net *net)
{
	struct kv_rpc *rpc = kv_rpc_of(net);

	kv_rpc_close_fid(rpc->ep ? &rpc->ep->fid : NULL);
	kv_rpc_close_fid(rpc->cq ? &rpc->cq->fid : NULL);
	kv_rpc_close_fid(rpc->av ? &rpc->av->fid : NULL);
	kv_rpc_close_fid(rpc->domain ? &rpc->domain->fid : NULL);
	kv_rpc_close_fid(rpc->fabric ? &rpc->fabric->fid : NULL);
	fi_freeinfo(rpc->info);
	free(rpc->targets);
	free(rpc);
}

static const struct kv_net_ops kv_rpc_ops = {
	.call = kv_rpc_call,
	.poll = kv_rpc_poll,
	.release = kv_rpc_release,
	.take = kv_rpc_take,
	.reply = kv_rpc_reply,
	.flush = kv_rpc_flush,
	.arm = kv_rpc_arm,
	.connect = kv_rpc_connect,
	.close = kv_rpc_close,
};

static int kv_rpc_getinfo(struct kv_rpc *rpc)
{
	struct fi_info *hints = fi_allocinfo();
	int ret;

	if (!hints)
		return kv_rpc_failed("fi_allocinfo", -FI_ENOMEM);
	hints->fabric_attr->prov_name = strdup("copyrpc");
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_MSG;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	ret = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &rpc->info);
	fi_freeinfo(hints);
	if (ret == -FI_ENODATA)
		fprintf(stderr, "copyrpc_benchkv: libfabric offers no endpoints of copyrpc: %s\n",
			getenv("FI_PROVIDER_PATH") ? "run copyrpc_info -q, which finds the reason"
						   : "run  eval \"$(copyrpc_env)\"  first");
	return ret == -FI_ENODATA || !ret ? ret : kv_rpc_failed("fi_getinfo", ret);
}

static int kv_rpc_open_domain(struct kv_rpc *rpc)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_FD };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	int ret = fi_fabric(rpc->info->fabric_attr, &rpc->fabric, NULL);

	if (ret)
		return kv_rpc_failed("fi_fabric", ret);
	if ((ret = fi_domain(rpc->fabric, rpc->info, &rpc->domain, NULL)))
		return kv_rpc_failed("fi_domain", ret);
	if ((ret = fi_av_open(rpc->domain, &av_attr, &rpc->av, NULL)))
		return kv_rpc_failed("fi_av_open", ret);
	if ((ret = fi_cq_open(rpc->domain, &cq_attr, &rpc->cq, NULL)))
		return kv_rpc_failed("fi_cq_open", ret);
	return 0;
}

static int kv_rpc_open_ep(struct kv_rpc *rpc)
{
	size_t len = KV_NAME_MAX;
	int ret = fi_endpoint(rpc->domain, rpc->info, &rpc->ep, NULL);

	if (ret)
		return kv_rpc_failed("fi_endpoint", ret);
	if ((ret = fi_ep_bind(rpc->ep, &rpc->av->fid, 0)) ||
	    (ret = fi_ep_bind(rpc->ep, &rpc->cq->fid, FI_TRANSMIT | FI_RECV)) ||
	    (ret = fi_enable(rpc->ep)))
		return kv_rpc_failed("fi_enable", ret);
	if ((ret = fi_copyrpc_open(&rpc->ep->fid, &rpc->ops)))
		return kv_rpc_failed("fi_copyrpc_open", ret);
	if ((ret = fi_getname(&rpc->ep->fid, rpc->net.name.bytes, &len)))
		return kv_rpc_failed("fi_getname", ret);
	rpc->net.name.len = (uint32_t)len;
	return 0;
}

int kv_net_open_rpc(struct kv_net **net, size_t request_max, size_t response_max)
{
	struct kv_rpc *rpc = calloc(1, sizeof(*rpc));
	int ret;

	(void)request_max; /* the limit of the ring is checked by the first call */
	if (!rpc)
		return kv_rpc_failed("endpoint", -FI_ENOMEM);
	rpc->net.ops = &kv_rpc_ops;
	rpc->response_max = response_max;
	ret = kv_rpc_getinfo(rpc);
	if (!ret)
		ret = kv_rpc_open_domain(rpc);
	if (!ret)
		ret = kv_rpc_open_ep(rpc);
	if (ret)
		kv_rpc_close(&rpc->net);
	else
		*net = &rpc->net;
	return ret;
}
