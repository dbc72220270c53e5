/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Attributes of this provider's endpoints in fi_info: see cpr_offer.h. */
#include "ofi/base/cpr_offer.h"

#include <assert.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "core/msg/core_rx.h"
#include "util/fi_old.h"
#include "util/param.h"

static_assert(CPR_IOV_LIMIT == CORE_RX_IOV_MAX, "equal limits in core");

/*
 * Counts that only memory limits. Programs that open as many objects as advertised can afford
 * these.
 */
#define CPR_OBJECT_CNT 1024u
#define CPR_MR_CNT     (1u << 20)

#define CPR_ORDERS_RAW (FI_ORDER_RAW | FI_ORDER_RMA_RAW | FI_ORDER_ATOMIC_RAW)
#define CPR_ORDERS_WAR (FI_ORDER_WAR | FI_ORDER_RMA_WAR | FI_ORDER_ATOMIC_WAR)
#define CPR_ORDERS_WAW (FI_ORDER_WAW | FI_ORDER_RMA_WAW | FI_ORDER_ATOMIC_WAW)

static void cpr_offer_tx(struct fi_tx_attr *attr)
{
	attr->caps = CPR_TX_CAPS;
	attr->msg_order = CPR_MSG_ORDER | CPR_RMA_ORDER;
	/*
	 * A small send completes at once, before an earlier large one of which bytes are still to
	 * be read.
	 */
	attr->comp_order = FI_ORDER_NONE;
	attr->inject_size = util_params.eager_max;
	attr->size = CPR_CTX_SIZE;
	attr->iov_limit = CPR_IOV_LIMIT;
	attr->rma_iov_limit = CPR_IOV_LIMIT;
}

static void cpr_offer_rx(struct fi_rx_attr *attr)
{
	attr->caps = CPR_RX_CAPS;
	attr->msg_order = CPR_MSG_ORDER | CPR_RMA_ORDER;
	attr->comp_order = FI_ORDER_NONE;
	attr->total_buffered_recv = util_params.unexpected_mem;
	attr->size = CPR_CTX_SIZE;
	attr->iov_limit = CPR_IOV_LIMIT;
}

static void cpr_offer_ep(struct fi_ep_attr *attr)
{
	if (attr->type != FI_EP_MSG)
		attr->type = FI_EP_RDM;
	if (attr->protocol != CPR_UD_PROTO)
		attr->protocol = CPR_RC_PROTO;
	attr->protocol_version =
		attr->protocol == CPR_UD_PROTO ? CPR_UD_PROTO_VERSION : CPR_RC_PROTO_VERSION;
	attr->max_msg_size = CPR_MSG_MAX;
	attr->mem_tag_format = CPR_TAG_FORMAT;
	attr->tx_ctx_cnt = 1;
	attr->rx_ctx_cnt = 1;
}

static void cpr_offer_domain(struct fi_domain_attr *attr)
{
	attr->threading = FI_THREAD_SAFE;
	attr->control_progress = FI_PROGRESS_MANUAL;
	attr->data_progress = FI_PROGRESS_MANUAL;
	attr->resource_mgmt = FI_RM_ENABLED;
	attr->av_type = FI_AV_UNSPEC; /* FI_AV_MAP or FI_AV_TABLE */
	attr->mr_key_size = CPR_MR_KEY_SIZE;
	attr->cq_data_size = CPR_CQ_DATA_SIZE;
	attr->cq_cnt = CPR_OBJECT_CNT;
	attr->ep_cnt = CPR_OBJECT_CNT;
	attr->tx_ctx_cnt = CPR_OBJECT_CNT;
	attr->rx_ctx_cnt = CPR_OBJECT_CNT;
	attr->max_ep_stx_ctx = CPR_OBJECT_CNT;
	attr->max_ep_srx_ctx = CPR_OBJECT_CNT;
	attr->max_ep_tx_ctx = 1;
	attr->max_ep_rx_ctx = 1;
	attr->cntr_cnt = CPR_OBJECT_CNT;
	attr->mr_iov_limit = CPR_IOV_LIMIT;
	attr->caps = CPR_DOMAIN_CAPS;
	attr->mr_cnt = CPR_MR_CNT;
}

int cpr_offer_fill(struct fi_info *info)
{
	const char *name = info->ep_attr->protocol == CPR_UD_PROTO ? CPR_UD_NAME : CPR_RC_NAME;

	info->caps = cpr_offer_all(info->ep_attr->type);
	cpr_offer_tx(info->tx_attr);
	cpr_offer_rx(info->rx_attr);
	info->rx_attr->caps &= info->caps;
	cpr_offer_ep(info->ep_attr);
	cpr_offer_domain(info->domain_attr);
	info->domain_attr->name = strdup(name);
	info->fabric_attr->name = strdup(name);
	return info->domain_attr->name && info->fabric_attr->name ? 0 : -FI_ENOMEM;
}

uint64_t cpr_offer_caps(uint64_t hints)
{
	uint64_t caps = hints ? hints & CPR_CAPS : CPR_CAPS;

	if (!(caps & CPR_MSG_MODS) && (caps & (FI_MSG | FI_TAGGED)))
		caps |= CPR_MSG_MODS;
	if (!(caps & CPR_RMA_MODS) && (caps & (FI_RMA | FI_ATOMIC)))
		caps |= CPR_RMA_MODS;
	if ((caps & FI_MSG) && (caps & FI_RECV))
		caps |= FI_MULTI_RECV;
	return caps | CPR_DOMAIN_CAPS;
}

/*
 * Returns the capabilities of one direction: only those that the endpoint has, and none without a
 * modifier of that direction.
 */
static uint64_t cpr_offer_side(uint64_t caps, uint64_t side, uint64_t requested)
{
	caps &= side;
	if (!(caps & CPR_MSG_MODS))
		caps &= ~(FI_MSG | FI_TAGGED);
	if (!(caps & CPR_RMA_MODS))
		caps &= ~(FI_RMA | FI_ATOMIC);
	return requested & side ? caps & (requested | CPR_MODIFIERS) : caps;
}

static void cpr_offer_narrow_tx(struct fi_tx_attr *attr, const struct fi_tx_attr *hints)
{
	attr->op_flags = hints->op_flags;
	attr->tclass = hints->tclass;
	attr->msg_order |= hints->msg_order;
	if (hints->inject_size)
		attr->inject_size = hints->inject_size;
	if (hints->size)
		attr->size = hints->size;
	if (hints->iov_limit)
		attr->iov_limit = hints->iov_limit;
	if (hints->rma_iov_limit)
		attr->rma_iov_limit = hints->rma_iov_limit;
}

static void cpr_offer_narrow_rx(struct fi_rx_attr *attr, const struct fi_rx_attr *hints)
{
	attr->op_flags = hints->op_flags;
	attr->msg_order |= hints->msg_order;
	if (hints->size)
		attr->size = hints->size;
	if (hints->iov_limit)
		attr->iov_limit = hints->iov_limit;
}

static void cpr_offer_narrow_ep(struct fi_ep_attr *attr, const struct fi_ep_attr *hints)
{
	if (hints->tx_ctx_cnt == FI_SHARED_CONTEXT)
		attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
	if (hints->rx_ctx_cnt == FI_SHARED_CONTEXT)
		attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	if (hints->max_order_raw_size)
		attr->max_order_raw_size = hints->max_order_raw_size;
	if (hints->max_order_war_size)
		attr->max_order_war_size = hints->max_order_war_size;
	if (hints->max_order_waw_size)
		attr->max_order_waw_size = hints->max_order_waw_size;
	if (hints->mem_tag_format)
		attr->mem_tag_format = hints->mem_tag_format;
}

/*
 * Clears the mode bits, for no registration is needed, but FI_MR_ALLOCATED of a caller that offers
 * it: memory that stays mapped may be registered with a device. FI_MR_BASIC and FI_MR_SCALABLE
 * stay, because they stand for an exact mode (fi_mr(3)).
 */
static int cpr_offer_mr_mode(int hints, uint32_t version)
{
	if (hints == FI_MR_BASIC || hints == FI_MR_SCALABLE)
		return hints;
	if (hints & FI_MR_ALLOCATED)
		return FI_MR_ALLOCATED;
	return FI_VERSION_LT(version, FI_VERSION(1, 5)) ? FI_MR_SCALABLE : 0;
}

static void cpr_offer_narrow_domain(struct fi_domain_attr *attr, const struct fi_domain_attr *hints,
				    uint32_t version)
{
	attr->mr_mode = cpr_offer_mr_mode(hints->mr_mode, version);
	attr->tclass = hints->tclass;
	if (hints->threading)
		attr->threading = hints->threading;
	if (hints->control_progress)
		attr->control_progress = hints->control_progress;
	if (hints->data_progress)
		attr->data_progress = hints->data_progress;
	if (hints->resource_mgmt)
		attr->resource_mgmt = hints->resource_mgmt;
	if (hints->av_type)
		attr->av_type = hints->av_type;
}

/* Sets the order sizes: an order that is kept is kept at any size. */
static void cpr_offer_order_sizes(struct fi_ep_attr *attr, uint64_t order)
{
	attr->max_order_raw_size = order & CPR_ORDERS_RAW ? CPR_MSG_MAX : 0;
	attr->max_order_war_size = order & CPR_ORDERS_WAR ? CPR_MSG_MAX : 0;
	attr->max_order_waw_size = order & CPR_ORDERS_WAW ? CPR_MSG_MAX : 0;
}

/* Adds the orders for which the hints name a size but no msg_order: what has a size is kept. */
static void cpr_offer_sized_orders(struct fi_info *info, const struct fi_ep_attr *hints)
{
	uint64_t order = info->tx_attr->msg_order;

	if (hints->max_order_raw_size && !(order & CPR_ORDERS_RAW))
		order |= FI_ORDER_RAW;
	if (hints->max_order_war_size && !(order & CPR_ORDERS_WAR))
		order |= FI_ORDER_WAR;
	if (hints->max_order_waw_size && !(order & CPR_ORDERS_WAW))
		order |= FI_ORDER_WAW;
	info->rx_attr->msg_order |= order & ~info->tx_attr->msg_order;
	info->tx_attr->msg_order = order;
}

void cpr_offer_narrow(struct fi_info *info, const struct fi_info *hints, uint32_t version)
{
	uint64_t tx_requested = hints && hints->tx_attr ? hints->tx_attr->caps : 0;
	uint64_t rx_requested = hints && hints->rx_attr ? hints->rx_attr->caps : 0;

	info->caps = cpr_offer_caps(hints ? hints->caps : 0) & cpr_offer_all(info->ep_attr->type);
	info->tx_attr->caps = cpr_offer_side(info->caps, CPR_TX_CAPS, tx_requested);
	info->rx_attr->caps = cpr_offer_side(info->caps, CPR_RX_CAPS, rx_requested);
	info->tx_attr->msg_order = CPR_MSG_ORDER;
	info->rx_attr->msg_order = CPR_MSG_ORDER;
	info->domain_attr->mr_mode = cpr_offer_mr_mode(0, version);
	if (!hints)
		return;
	if (hints->tx_attr)
		cpr_offer_narrow_tx(info->tx_attr, hints->tx_attr);
	if (hints->rx_attr)
		cpr_offer_narrow_rx(info->rx_attr, hints->rx_attr);
	if (hints->ep_attr)
		cpr_offer_sized_orders(info, hints->ep_attr);
	cpr_offer_order_sizes(info->ep_attr, info->tx_attr->msg_order);
	if (hints->ep_attr)
		cpr_offer_narrow_ep(info->ep_attr, hints->ep_attr);
	if (hints->domain_attr)
		cpr_offer_narrow_domain(info->domain_attr, hints->domain_attr, version);
}
