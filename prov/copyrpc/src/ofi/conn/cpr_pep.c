/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Passive endpoints: see cpr_pep.h. */
#include "ofi/conn/cpr_pep.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "cm/msg/cm_msg.h"
#include "ofi/base/cpr_addr.h"
#include "ofi/base/cpr_engine.h"
#include "ofi/base/cpr_fabric.h"
#include "ofi/base/cpr_fid.h"
#include "ofi/base/cpr_offer.h"
#include "ofi/conn/cpr_conn.h"
#include "ofi/conn/cpr_connreq.h"
#include "ofi/queue/cpr_eq.h"
#include "util/bits.h"
#include "util/log.h"

#define CPR_PEP_BACKLOG 256

static inline struct cpr_pep *cpr_pep_of(fid_t fid)
{
	return UTIL_CONTAINER_OF(fid, struct cpr_pep, fid.fid);
}

static int cpr_pep_set_info_addr(void **to, size_t *to_len, const struct sockaddr_storage *addr)
{
	size_t len = cpr_addr_len(cpr_addr_format(addr->ss_family));
	void *copy = malloc(len);

	if (!copy)
		return -FI_ENOMEM;
	memcpy(copy, addr, len);
	free(*to);
	*to = copy;
	*to_len = len;
	return 0;
}

/*
 * Describes the endpoint for a connection request: as the passive endpoint, between the two
 * addresses of the request.
 */
static struct fi_info *cpr_pep_describe(const struct cpr_pep *pep,
					const struct cm_connreq_info *connreq)
{
	struct fi_info *info = fi_dupinfo(pep->info);

	if (!info)
		return NULL;
	if (cpr_pep_set_info_addr(&info->src_addr, &info->src_addrlen, &connreq->local) ||
	    cpr_pep_set_info_addr(&info->dest_addr, &info->dest_addrlen, &connreq->peer)) {
		fi_freeinfo(info);
		return NULL;
	}
	info->addr_format = cpr_addr_format(connreq->local.ss_family);
	return info;
}

/* Rejects the request of an event that will not be read. */
static void cpr_pep_drop_event(struct cpr_eq_event *ev)
{
	struct fi_eq_cm_entry entry;

	memcpy(&entry, ev->data, sizeof(entry));
	cpr_connreq_reject(UTIL_CONTAINER_OF(entry.info->handle, struct cpr_connreq, fid), NULL, 0);
	fi_freeinfo(entry.info);
}

/* Handles a connection request, in the control thread under cm's lock. */
static int cpr_pep_connreq(void *ctx, struct cm_connreq *connreq,
			   const struct cm_connreq_info *connreq_info)
{
	struct cpr_pep *pep = ctx;
	struct cpr_connreq *request = cpr_connreq_new(pep->fabric, connreq);
	struct fi_info *info;

	if (!request)
		return -FI_ENOMEM;
	request->local = connreq_info->local;
	info = cpr_pep_describe(pep, connreq_info);
	if (!info)
		goto err_free_request;
	info->handle = &request->fid;
	if (!cpr_eq_post_connreq(pep->eq, &pep->fid.fid, info, connreq_info->data,
				 connreq_info->data_len, cpr_pep_drop_event))
		return 0;
	fi_freeinfo(info);
err_free_request:
	cpr_connreq_free(request);
	return -FI_ENOMEM;
}

static int cpr_pep_listen(struct fid_pep *fid)
{
	struct cpr_pep *pep = cpr_pep_of(&fid->fid);
	struct cm_node *node;
	int ret;

	if (pep->listener || pep->is_used)
		return -FI_EOPBADSTATE;
	if (!pep->eq) {
		UTIL_WARN(EP_CTRL, "fi_listen: bind an event queue first\n");
		return -FI_ENOEQ;
	}
	ret = cpr_fabric_cm(pep->fabric, &node);
	if (ret)
		return ret;
	return cm_listener_open(node, (struct sockaddr *)&pep->src, pep->backlog, cpr_pep_connreq,
				pep, &pep->listener);
}

static int cpr_pep_reject(struct fid_pep *fid, fid_t handle, const void *param, size_t len)
{
	struct cpr_pep *pep = cpr_pep_of(&fid->fid);
	struct cpr_connreq *request;

	if (len > CM_MSG_DATA_MAX)
		return -FI_EINVAL;
	request = cpr_connreq_take(pep->fabric, handle);
	if (!request)
		return -FI_EINVAL;
	cpr_connreq_reject(request, param, param ? len : 0);
	return 0;
}

static int cpr_pep_setname(fid_t fid, void *addr, size_t addrlen)
{
	struct cpr_pep *pep = cpr_pep_of(fid);
	const struct sockaddr *sa = addr;
	uint32_t format = cpr_addr_format(pep->src.ss_family);

	if (pep->listener || pep->is_used)
		return -FI_EOPBADSTATE;
	if (addrlen < cpr_addr_len(format) || cpr_addr_format(sa->sa_family) != format)
		return -FI_EINVAL;
	if (!cpr_addr_is_local(sa))
		return -FI_EADDRNOTAVAIL;
	memset(&pep->src, 0, sizeof(pep->src));
	memcpy(&pep->src, addr, cpr_addr_len(format));
	return 0;
}

/* Returns the requested address before fi_listen, then the listener's. */
static int cpr_pep_getname(fid_t fid, void *addr, size_t *addrlen)
{
	struct cpr_pep *pep = cpr_pep_of(fid);
	struct sockaddr_storage ss = pep->src;

	if (pep->listener)
		cm_listener_addr(pep->listener, &ss);
	return cpr_addr_copy_out(&ss, addr, addrlen);
}

static struct fi_ops_cm cpr_pep_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = cpr_pep_setname,
	.getname = cpr_pep_getname,
	.getpeer = cpr_no_getpeer,
	.connect = cpr_no_connect,
	.listen = cpr_pep_listen,
	.accept = cpr_no_accept,
	.reject = cpr_pep_reject,
	.shutdown = cpr_no_shutdown,
};

static int cpr_pep_getopt(fid_t fid, int level, int optname, void *optval, size_t *optlen)
{
	return cpr_conn_getopt(level, optname, optval, optlen);
}

static ssize_t cpr_pep_cancel(fid_t fid, void *context)
{
	return -FI_ENOSYS;
}

static struct fi_ops_ep cpr_pep_ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = cpr_pep_cancel,
	.getopt = cpr_pep_getopt,
	.setopt = cpr_no_setopt,
	.tx_ctx = cpr_no_tx_ctx,
	.rx_ctx = cpr_no_rx_ctx,
	.rx_size_left = cpr_no_size_left,
	.tx_size_left = cpr_no_size_left,
};

static int cpr_pep_close(struct fid *fid)
{
	struct cpr_pep *pep = cpr_pep_of(fid);

	if (pep->listener)
		cm_listener_close(pep->listener);
	if (pep->eq) {
		cpr_eq_forget(pep->eq, fid);
		cpr_ref_put(&pep->eq->refs);
	}
	fi_freeinfo(pep->info);
	cpr_ref_put(&pep->fabric->refs);
	free(pep);
	return 0;
}

static int cpr_pep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct cpr_pep *pep = cpr_pep_of(fid);
	struct cpr_eq *eq;

	if (bfid->fclass != FI_CLASS_EQ)
		return -FI_EINVAL;
	if (flags)
		return -FI_EBADFLAGS;
	eq = cpr_eq_of(bfid);
	if (pep->eq || eq->fabric != pep->fabric)
		return -FI_EINVAL;
	pep->eq = eq;
	cpr_ref_get(&eq->refs);
	return 0;
}

static int cpr_pep_control(struct fid *fid, int command, void *arg)
{
	struct cpr_pep *pep = cpr_pep_of(fid);

	if (command != FI_BACKLOG)
		return -FI_ENOSYS;
	if (!arg || *(int *)arg < 1)
		return -FI_EINVAL;
	if (pep->listener)
		return -FI_EOPBADSTATE;
	pep->backlog = *(int *)arg;
	return 0;
}

static struct fi_ops cpr_pep_fi_ops = CPR_FID_OPS(cpr_pep_close, cpr_pep_bind, cpr_pep_control);

int cpr_pep_take_addr(struct cpr_fabric *fabric, fid_t fid, struct sockaddr_storage *src)
{
	struct cpr_pep *pep = cpr_pep_of(fid);

	if (fid->ops != &cpr_pep_fi_ops || pep->fabric != fabric)
		return -FI_EINVAL;
	if (pep->listener || pep->is_used)
		return -FI_EOPBADSTATE;
	pep->is_used = true;
	*src = pep->src;
	return 0;
}

static int cpr_pep_check(const struct fi_info *info)
{
	const struct sockaddr *src = info ? info->src_addr : NULL;

	if (!info || !info->ep_attr || info->ep_attr->type != FI_EP_MSG)
		return -FI_EINVAL;
	if (src && (cpr_addr_format(src->sa_family) == FI_FORMAT_UNSPEC ||
		    info->src_addrlen < cpr_addr_len(cpr_addr_format(src->sa_family))))
		return -FI_EINVAL;
	return 0;
}

static void cpr_pep_init(struct cpr_pep *pep, const struct fi_info *info)
{
	pep->fid.ops = &cpr_pep_ep_ops;
	pep->fid.cm = &cpr_pep_cm_ops;
	pep->backlog = CPR_PEP_BACKLOG;
	pep->src.ss_family = info->addr_format == FI_SOCKADDR_IN6 ? AF_INET6 : AF_INET;
	if (info->src_addr)
		memcpy(&pep->src, info->src_addr,
		       cpr_addr_len(cpr_addr_format(
			       ((const struct sockaddr *)info->src_addr)->sa_family)));
}

int cpr_pep_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **out,
		 void *context)
{
	struct cpr_pep *pep;
	int ret = cpr_pep_check(info);

	if (ret)
		return ret;
	pep = cpr_fid_new(sizeof(*pep), FI_CLASS_PEP, &cpr_pep_fi_ops, context);
	if (!pep)
		return -FI_ENOMEM;
	pep->info = fi_dupinfo(info);
	if (!pep->info) {
		free(pep);
		return -FI_ENOMEM;
	}
	cpr_pep_init(pep, info);
	pep->fabric = cpr_fabric_of(fabric);
	cpr_ref_get(&pep->fabric->refs);
	*out = &pep->fid;
	return 0;
}
