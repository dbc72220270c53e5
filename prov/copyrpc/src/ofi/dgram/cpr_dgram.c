/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Endpoints and address vectors of datagrams: see cpr_dgram.h. */
#include "ofi/dgram/cpr_dgram.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "cm/base/cm_addr.h"
#include "dgram/dgram_ep.h"
#include "ofi/base/cpr_addr.h"
#include "ofi/base/cpr_domain.h"
#include "ofi/base/cpr_offer.h"
#include "ofi/base/cpr_refuse.h"
#include "util/log.h"

static const struct dgram_over *const cpr_dgram_table[] = { &dgram_over_mlx5, &dgram_over_verbs,
							    &dgram_over_udp, NULL };

const struct dgram_over *cpr_dgram_device(unsigned i)
{
	return cpr_dgram_table[i];
}

const struct dgram_over *cpr_dgram_over(const char *domain_name)
{
	size_t len = strlen(CPR_DGRAM_NAME "-");

	if (!domain_name || strncmp(domain_name, CPR_DGRAM_NAME "-", len))
		return NULL;
	for (unsigned i = 0; cpr_dgram_table[i]; i++)
		if (!strcmp(cpr_dgram_table[i]->name, domain_name + len))
			return cpr_dgram_table[i];
	return NULL;
}

/* --- address vectors ------------------------------------------------------------------------ */

static int cpr_dgram_av_open(struct cpr_av *av, size_t count_hint)
{
	av->dgram = dgram_av_open();
	return av->dgram ? 0 : -FI_ENOMEM;
}

static void cpr_dgram_av_close(struct cpr_av *av)
{
	dgram_av_close(av->dgram);
}

static int cpr_dgram_av_insert(struct cpr_av *av, const struct sockaddr_storage *addr,
			       uint64_t *number)
{
	const struct dgram_over *over = av->domain->dgram;
	struct dev_desc desc;
	int ret;

	if (over->is_ip && cpr_addr_format(addr->ss_family) != av->domain->addr_format)
		return -FI_EINVAL;
	ret = over->import(addr, &desc);
	return ret ? ret : dgram_av_insert(av->dgram, &desc, number);
}

static int cpr_dgram_av_remove(struct cpr_av *av, uint64_t number, bool *gone)
{
	return dgram_av_remove(av->dgram, number, gone);
}

static size_t cpr_dgram_av_addr(struct cpr_av *av, uint64_t number, struct sockaddr_storage *addr)
{
	struct dev_desc desc;

	if (!dgram_av_desc(av->dgram, number, &desc))
		return 0;
	return av->domain->dgram->export(&desc, addr);
}

const struct cpr_av_kind cpr_av_kind_dgram = {
	.open = cpr_dgram_av_open,
	.close = cpr_dgram_av_close,
	.insert = cpr_dgram_av_insert,
	.remove = cpr_dgram_av_remove,
	.addr = cpr_dgram_av_addr,
};

/* --- endpoints ------------------------------------------------------------------------------ */

void cpr_dgram_make_concrete(struct sockaddr_storage *local)
{
	union cm_addr addr;

	if (cm_addr_import((struct sockaddr *)local, &addr))
		return;
	cm_addr_resolve(&addr);
	cm_addr_export(&addr, local);
}

static int cpr_dgram_local(const struct cpr_ep *ep, struct sockaddr_storage *local)
{
	*local = ep->src;
	if (!local->ss_family)
		return cpr_addr_local(cpr_addr_family(ep->domain->addr_format), NULL, local);
	cpr_dgram_make_concrete(local);
	return 0;
}

static int cpr_dgram_start(struct cpr_ep *ep)
{
	struct sockaddr_storage local;
	struct dgram_conf conf = {
		.av = ep->av->dgram,
		.tx = &ep->core_ep.tx,
		.rx = &ep->core_ep.rx,
		.min_multi_recv = &ep->core_ep.min_multi_recv,
		.prefix = ep->dgram_prefix,
		.source = ep->caps & FI_SOURCE,
	};
	int ret;

	if (ep->domain->dgram->is_ip) {
		ret = cpr_dgram_local(ep, &local);
		if (ret)
			return ret;
		conf.local = (struct sockaddr *)&local;
	}
	return dgram_ep_open(dgram_engine_of(ep->domain->main.core.progress), &conf, &ep->dgram);
}

static bool cpr_dgram_is_busy(struct cpr_ep *ep)
{
	return dgram_ep_is_busy(ep->dgram);
}

static void cpr_dgram_stop(struct cpr_ep *ep)
{
	dgram_ep_close(ep->dgram);
	ep->dgram = NULL;
}

static void cpr_dgram_pick_ops(struct cpr_ep *ep)
{
	ep->msg_ops = cpr_dgram_msg_ops;
	ep->tagged_ops = cpr_refuse_tagged_ops;
	if (!(ep->caps & FI_SEND))
		cpr_refuse_sends(ep);
	if (!(ep->caps & FI_RECV))
		cpr_refuse_recvs(ep);
	/* Not offered: a datagram has no room for CQ data. */
	ep->msg_ops.senddata = cpr_refuse_msg_ops.senddata;
	ep->msg_ops.injectdata = cpr_refuse_msg_ops.injectdata;
}

static size_t cpr_dgram_addr(struct cpr_ep *ep, struct sockaddr_storage *addr)
{
	*addr = ep->dgram->name;
	return ep->dgram->name_len;
}

static int cpr_dgram_cancel(struct cpr_ep *ep, void *context)
{
	return dgram_rx_cancel(ep->dgram, context);
}

static int cpr_dgram_av_inserted(struct cpr_ep *ep, uint64_t number)
{
	return dgram_ep_inserted(ep->dgram, number);
}

static void cpr_dgram_av_removed(struct cpr_ep *ep, uint64_t number)
{
	dgram_ep_removed(ep->dgram, number);
}

static const struct cpr_ep_kind cpr_ep_kind_dgram = {
	.start = cpr_dgram_start,
	.is_busy = cpr_dgram_is_busy,
	.stop = cpr_dgram_stop,
	.pick_ops = cpr_dgram_pick_ops,
	.addr = cpr_dgram_addr,
	.cancel = cpr_dgram_cancel,
	.av_inserted = cpr_dgram_av_inserted,
	.av_removed = cpr_dgram_av_removed,
	.tx_op_flags = CPR_DGRAM_TX_OP_FLAGS,
};

/* Returns the address; before fi_enable the requested one, or -FI_EOPBADSTATE without one. */
int cpr_dgram_getname(struct cpr_ep *ep, void *addr, size_t *addrlen)
{
	struct sockaddr_storage name = ep->owner->src;
	size_t room = *addrlen, len = cpr_addr_len(ep->domain->addr_format);

	if (!ep->owner->is_enabled && (!name.ss_family || !ep->domain->dgram->is_ip))
		return -FI_EOPBADSTATE;
	if (ep->owner->is_enabled) {
		core_dom_lock(ep->owner->dom); /* progress may give it another one */
		len = ep->kind->addr(ep->owner, &name);
		core_dom_unlock(ep->owner->dom);
	}
	*addrlen = len;
	if (room)
		memcpy(addr, &name, room < len ? room : len);
	return room < len ? -FI_ETOOSMALL : 0;
}

static int cpr_dgram_check(const struct cpr_domain *domain, const struct fi_info *info)
{
	const struct sockaddr *src;

	if (!info || (info->caps & ~CPR_DGRAM_CAPS))
		return -FI_EINVAL;
	if (info->ep_attr &&
	    (info->ep_attr->type != FI_EP_DGRAM || info->ep_attr->tx_ctx_cnt == FI_SHARED_CONTEXT ||
	     info->ep_attr->rx_ctx_cnt == FI_SHARED_CONTEXT))
		return -FI_EINVAL;
	if (info->tx_attr && (info->tx_attr->op_flags & ~CPR_DGRAM_TX_OP_FLAGS))
		return -FI_EINVAL;
	if (info->rx_attr && (info->rx_attr->op_flags & ~CPR_RX_OP_FLAGS))
		return -FI_EINVAL;
	src = domain->dgram->is_ip ? info->src_addr : NULL;
	if (src && (info->src_addrlen < cpr_addr_len(domain->addr_format) ||
		    cpr_addr_format(src->sa_family) != domain->addr_format))
		return -FI_EINVAL;
	return 0;
}

int cpr_dgram_open(struct cpr_domain *domain, const struct fi_info *info, struct fid_ep **out,
		   void *context)
{
	struct cpr_ep *ep;
	int ret = cpr_dgram_check(domain, info);

	if (ret)
		return ret;
	ep = calloc(1, sizeof(*ep));
	if (!ep)
		return -FI_ENOMEM;
	ep->kind = &cpr_ep_kind_dgram;
	ep->caps = cpr_offer_caps(info->caps) & CPR_DGRAM_CAPS;
	cpr_ep_init(ep, domain, info, context);
	if (!domain->dgram->is_ip)
		memset(&ep->src, 0, sizeof(ep->src));
	if (info->mode & FI_MSG_PREFIX) {
		ep->dgram_prefix = DGRAM_PREFIX;
		/* Lengths in calls include the prefix, limits do not. */
		ep->inject_max += DGRAM_PREFIX;
	}
	cpr_ref_get(&domain->refs);
	*out = &ep->fid;
	return 0;
}
