/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Opens and closes the objects of ft_fab.h. */
#include "ft_fab.h"
#include "ft_op.h"

#include <stdlib.h>
#include <string.h>

/* Modes that this suite can serve if a provider requires them. */
#define MR_MODES (FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)

static char *copied(const char *text)
{
	return text ? strdup(text) : NULL;
}

static uint32_t format_of(const char *address)
{
	if (!address)
		return FI_FORMAT_UNSPEC;
	return strchr(address, ':') ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
}

struct fi_info *ft_fab_hints(const struct ft *ft, const struct ft_want *want)
{
	const struct ft_opts *opts = ft->opts;
	struct fi_info *hints = fi_allocinfo();

	FT_CHECK(hints, "fi_allocinfo");
	hints->caps = want->caps ? want->caps : FI_MSG | FI_TAGGED;
	hints->mode = FI_CONTEXT | FI_CONTEXT2 | want->mode;
	/* Datagram addresses are those of the device. */
	hints->addr_format =
		opts->type == FI_EP_DGRAM ? FI_FORMAT_UNSPEC : format_of(opts->address);
	hints->ep_attr->type = opts->type;
	if (want->shared)
		hints->ep_attr->tx_ctx_cnt = hints->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	hints->tx_attr->op_flags = want->tx_flags | (opts->delivery ? FI_DELIVERY_COMPLETE : 0);
	hints->rx_attr->op_flags = want->rx_flags;
	hints->tx_attr->msg_order = hints->rx_attr->msg_order = want->order;
	hints->domain_attr->threading = want->threading;
	hints->domain_attr->data_progress = want->progress;
	hints->domain_attr->av_type = want->av;
	hints->domain_attr->mr_mode = want->mr_mode ? want->mr_mode : MR_MODES;
	hints->domain_attr->name = copied(opts->domain);
	hints->fabric_attr->name = copied(opts->fabric);
	hints->fabric_attr->prov_name = copied(opts->provider);
	return hints;
}

void ft_fab_find(struct ft_fab *fab, struct ft *ft, const struct ft_want *want)
{
	struct fi_info *hints = ft_fab_hints(ft, want);
	const char *port = want->port;
	uint64_t flags;
	int err;

	memset(fab, 0, sizeof(*fab));
	fab->ft = ft;
	fab->want = *want;
	if (!port && ft->rank == 0 && !want->alone)
		port = ft->opts->port;
	flags = ft->opts->address || port ? FI_SOURCE : 0;
	err = fi_getinfo(FI_VERSION(1, 17), ft->opts->address, port, flags, hints, &fab->info);
	if (err == -FI_ENODATA && ft->opts->type == FI_EP_DGRAM)
		err = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &fab->info);
	fi_freeinfo(hints);
	if (err == -FI_ENODATA)
		ft_notrun("fi_getinfo does not offer what this case needs");
	FT_RET(err, 0);
}

void ft_fab_domain(struct ft_fab *fab)
{
	FT_OK(fi_fabric(fab->info->fabric_attr, &fab->fabric, NULL));
	FT_OK(fi_domain(fab->fabric, fab->info, &fab->domain, NULL));
}

static enum fi_wait_obj wait_of(const struct ft_fab *fab)
{
	static const enum fi_wait_obj objects[] = {
		[FT_WAIT_SPIN] = FI_WAIT_NONE,
		[FT_WAIT_SREAD] = FI_WAIT_UNSPEC,
		[FT_WAIT_FD] = FI_WAIT_FD,
	};

	return fab->want.wait ? fab->want.wait : objects[fab->ft->opts->wait];
}

static struct fid_cq *cq_open(struct ft_fab *fab)
{
	struct fi_cq_attr attr = { .format = fab->want.format, .wait_obj = wait_of(fab) };
	struct fid_cq *cq;

	if (!attr.format)
		attr.format = FI_CQ_FORMAT_TAGGED;
	FT_OK(fi_cq_open(fab->domain, &attr, &cq, NULL));
	return cq;
}

static struct fid_cntr *cntr_open(struct ft_fab *fab)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC };
	struct fid_cntr *cntr;

	FT_OK(fi_cntr_open(fab->domain, &attr, &cntr, NULL));
	return cntr;
}

void ft_fab_queues(struct ft_fab *fab)
{
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_av_attr av_attr = { .type = fab->want.av };

	fab->tx_cq = cq_open(fab);
	fab->rx_cq = fab->want.two_cqs ? cq_open(fab) : fab->tx_cq;
	if (fab->want.counters) {
		fab->tx_cntr = cntr_open(fab);
		fab->rx_cntr = cntr_open(fab);
	}
	if (fab->info->ep_attr->type == FI_EP_MSG || fab->want.events)
		FT_OK(fi_eq_open(fab->fabric, &eq_attr, &fab->eq, NULL));
	if (fab->info->ep_attr->type != FI_EP_MSG)
		FT_OK(fi_av_open(fab->domain, &av_attr, &fab->av, NULL));
}

void ft_fab_endpoint(struct ft_fab *fab)
{
	uint64_t tx = FI_TRANSMIT | (fab->want.selective_tx ? FI_SELECTIVE_COMPLETION : 0);
	uint64_t rx = FI_RECV | (fab->want.selective_rx ? FI_SELECTIVE_COMPLETION : 0);

	FT_OK(fi_endpoint(fab->domain, fab->info, &fab->ep, NULL));
	FT_OK(fi_ep_bind(fab->ep, &fab->tx_cq->fid, tx));
	FT_OK(fi_ep_bind(fab->ep, &fab->rx_cq->fid, rx));
	if (fab->tx_cntr) {
		uint64_t rma = fab->info->caps & (FI_RMA | FI_ATOMIC) ? FI_READ | FI_WRITE : 0;

		FT_OK(fi_ep_bind(fab->ep, &fab->tx_cntr->fid, FI_SEND | rma));
		FT_OK(fi_ep_bind(fab->ep, &fab->rx_cntr->fid, FI_RECV));
	}
	if (fab->av)
		FT_OK(fi_ep_bind(fab->ep, &fab->av->fid, 0));
	if (fab->eq)
		FT_OK(fi_ep_bind(fab->ep, &fab->eq->fid, 0));
}

void ft_fab_enable(struct ft_fab *fab)
{
	FT_OK(fi_enable(fab->ep));
	if (!fab->ops)
		fab->ops = ft_ops_open();
}

void ft_fab_meet(struct ft_fab *fab)
{
	struct ft *ft = fab->ft;

	fab->name_len = FT_NAME_LEN;
	FT_OK(fi_getname(&fab->ep->fid, fab->name[ft->rank], &fab->name_len));
	for (int rank = 0; rank < ft->procs; rank++) {
		if (rank != ft->rank)
			ft_swap(ft, rank, fab->name[ft->rank], fab->name[rank], FT_NAME_LEN);
	}
	for (int rank = 0; rank < ft->procs; rank++)
		FT_RET(fi_av_insert(fab->av, fab->name[rank], 1, &fab->addr[rank], 0, NULL), 1);
}

void ft_fab_open(struct ft_fab *fab, struct ft *ft, const struct ft_want *want)
{
	ft_fab_find(fab, ft, want);
	if (ft->opts->type == FI_EP_MSG && !want->alone) {
		if (ft->procs != 2)
			ft_notrun("a connected endpoint has one peer");
		ft_cm_join(fab);
		ft->fab = fab;
		return;
	}
	ft_fab_domain(fab);
	ft_fab_queues(fab);
	ft_fab_endpoint(fab);
	ft_fab_enable(fab);
	ft->fab = fab;
	if (!want->alone)
		ft_fab_meet(fab);
}

void ft_fab_close(struct ft_fab *fab)
{
	if (fab->ft->fab == fab)
		fab->ft->fab = NULL;
	if (fab->ep)
		FT_CLOSE(fab->ep);
	if (fab->pep)
		FT_CLOSE(fab->pep);
	if (fab->rx_cq != fab->tx_cq)
		FT_CLOSE(fab->rx_cq);
	FT_CLOSE(fab->tx_cq);
	if (fab->tx_cntr) {
		FT_CLOSE(fab->tx_cntr);
		FT_CLOSE(fab->rx_cntr);
	}
	if (fab->av)
		FT_CLOSE(fab->av);
	if (fab->eq)
		FT_CLOSE(fab->eq);
	FT_CLOSE(fab->domain);
	FT_CLOSE(fab->fabric);
	fi_freeinfo(fab->info);
	ft_ops_close(fab->ops);
	fab->ops = NULL;
}

void ft_fab_progress(struct ft_fab *fab)
{
	fi_cq_read(fab->tx_cq, NULL, 0);
	if (fab->rx_cq != fab->tx_cq)
		fi_cq_read(fab->rx_cq, NULL, 0);
}
