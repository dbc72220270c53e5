/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Comparison of hints with the offer: see cpr_attr.h. All checks run, so that all reasons are
 * logged.
 */
#include "ofi/info/cpr_attr.h"

#include <inttypes.h>
#include <string.h>

#include "ofi/base/cpr_addr.h"
#include "ofi/base/cpr_domain.h"
#include "ofi/base/cpr_fabric.h"
#include "ofi/base/cpr_offer.h"
#include "util/fi_old.h"
#include "util/log.h"

#define CPR_ATTR_BITS_MAX 256
/* Value of libfabric 2.x: control calls are serialised with data calls. */
#define CPR_PROGRESS_CONTROL_UNIFIED 3

/* Checks that the hint is at most what is offered. */
static bool cpr_attr_max(const char *hint, uint64_t requested, uint64_t offered)
{
	if (requested <= offered)
		return true;
	UTIL_INFO(CORE, "hint %s: requested %" PRIu64 ", offered %" PRIu64 "\n", hint, requested,
		  offered);
	return false;
}

/* Checks that the hint's bits are among those offered. */
static bool cpr_attr_bits(const char *hint, enum fi_type type, uint64_t requested, uint64_t offered)
{
	char requested_str[CPR_ATTR_BITS_MAX];
	char offered_str[CPR_ATTR_BITS_MAX];

	if (!(requested & ~offered))
		return true;
	UTIL_INFO(CORE, "hint %s: requested %s (0x%" PRIx64 "), offered %s (0x%" PRIx64 ")\n", hint,
		  fi_tostr_r(requested_str, sizeof(requested_str), &requested, type), requested,
		  fi_tostr_r(offered_str, sizeof(offered_str), &offered, type), offered);
	return false;
}

/* Checks that the hint is unset (0) or exactly the offered value of an enumeration. */
static bool cpr_attr_same(const char *hint, enum fi_type type, uint32_t requested, uint32_t offered)
{
	char requested_str[CPR_ATTR_BITS_MAX];
	char offered_str[CPR_ATTR_BITS_MAX];

	if (!requested || requested == offered)
		return true;
	UTIL_INFO(CORE, "hint %s: requested %s (0x%x), offered %s (0x%x)\n", hint,
		  fi_tostr_r(requested_str, sizeof(requested_str), &requested, type), requested,
		  fi_tostr_r(offered_str, sizeof(offered_str), &offered, type), offered);
	return false;
}

/* Checks that the hint is a value up to `last` of an enumeration without gaps. */
static bool cpr_attr_upto(const char *hint, enum fi_type type, uint32_t requested, uint32_t last)
{
	char requested_str[CPR_ATTR_BITS_MAX];
	char last_str[CPR_ATTR_BITS_MAX];

	if (requested <= last)
		return true;
	UTIL_INFO(CORE, "hint %s: requested %s (%u), offered all up to %s (%u)\n", hint,
		  fi_tostr_r(requested_str, sizeof(requested_str), &requested, type), requested,
		  fi_tostr_r(last_str, sizeof(last_str), &last, type), last);
	return false;
}

static bool cpr_attr_name(const char *hint, const char *requested, const char *offered)
{
	if (!requested || !strcmp(requested, offered))
		return true;
	UTIL_INFO(CORE, "hint %s: requested %s, offered %s\n", hint, requested, offered);
	return false;
}

/* Checks that a feature that is not offered is not requested. */
static bool cpr_attr_absent(const char *hint, bool requested)
{
	if (requested)
		UTIL_INFO(CORE, "hint %s: requested for, offered none\n", hint);
	return !requested;
}

static bool cpr_attr_tx(const struct fi_tx_attr *offer, const struct fi_tx_attr *hints,
			uint64_t all)
{
	bool ok = true;

	/* Bits of the other direction are ignored (fi_endpoint(3)). */
	ok &= cpr_attr_bits("tx_attr->caps", FI_TYPE_CAPS, hints->caps, all);
	ok &= cpr_attr_bits("tx_attr->op_flags", FI_TYPE_OP_FLAGS, hints->op_flags,
			    CPR_TX_OP_FLAGS);
	ok &= cpr_attr_bits("tx_attr->msg_order", FI_TYPE_MSG_ORDER, hints->msg_order,
			    offer->msg_order);
	ok &= cpr_attr_bits("tx_attr->comp_order", FI_TYPE_MSG_ORDER, hints->comp_order,
			    offer->comp_order);
	ok &= cpr_attr_max("tx_attr->inject_size", hints->inject_size, offer->inject_size);
	ok &= cpr_attr_max("tx_attr->size", hints->size, CPR_CTX_SIZE_MAX);
	ok &= cpr_attr_max("tx_attr->iov_limit", hints->iov_limit, offer->iov_limit);
	ok &= cpr_attr_max("tx_attr->rma_iov_limit", hints->rma_iov_limit, offer->rma_iov_limit);
	return ok;
}

static bool cpr_attr_rx(const struct fi_rx_attr *offer, const struct fi_rx_attr *hints,
			uint64_t all)
{
	bool ok = true;

	ok &= cpr_attr_bits("rx_attr->caps", FI_TYPE_CAPS, hints->caps, all);
	ok &= cpr_attr_bits("rx_attr->op_flags", FI_TYPE_OP_FLAGS, hints->op_flags,
			    CPR_RX_OP_FLAGS);
	ok &= cpr_attr_bits("rx_attr->msg_order", FI_TYPE_MSG_ORDER, hints->msg_order,
			    offer->msg_order);
	ok &= cpr_attr_bits("rx_attr->comp_order", FI_TYPE_MSG_ORDER, hints->comp_order,
			    offer->comp_order);
	ok &= cpr_attr_max("rx_attr->size", hints->size, CPR_CTX_SIZE_MAX);
	ok &= cpr_attr_max("rx_attr->iov_limit", hints->iov_limit, offer->iov_limit);
	return ok;
}

static bool cpr_attr_ep(const struct fi_ep_attr *offer, const struct fi_ep_attr *hints,
			uint32_t version)
{
	bool ok = true;

	ok &= cpr_attr_same("ep_attr->type", FI_TYPE_EP_TYPE, hints->type, offer->type);
	ok &= cpr_attr_same("ep_attr->protocol", FI_TYPE_PROTOCOL, hints->protocol,
			    offer->protocol);
	ok &= cpr_attr_max("ep_attr->protocol_version", hints->protocol_version,
			   offer->protocol_version);
	ok &= cpr_attr_max("ep_attr->max_msg_size", hints->max_msg_size, offer->max_msg_size);
	if (hints->tx_ctx_cnt != FI_SHARED_CONTEXT)
		ok &= cpr_attr_max("ep_attr->tx_ctx_cnt", hints->tx_ctx_cnt, offer->tx_ctx_cnt);
	if (hints->rx_ctx_cnt != FI_SHARED_CONTEXT)
		ok &= cpr_attr_max("ep_attr->rx_ctx_cnt", hints->rx_ctx_cnt, offer->rx_ctx_cnt);
	if (FI_VERSION_GE(version, FI_VERSION(1, 5)))
		ok &= cpr_attr_max("ep_attr->auth_key_size", hints->auth_key_size, 0);
	return ok;
}

static bool cpr_attr_mr_mode(int mr_mode, uint32_t version)
{
	int old = mr_mode & (FI_MR_BASIC | FI_MR_SCALABLE);
	char str[CPR_ATTR_BITS_MAX];
	bool ok;

	/* Each of the two old modes excludes other bits; API versions before 1.5 had no others. */
	if (FI_VERSION_LT(version, FI_VERSION(1, 5)))
		ok = mr_mode == FI_MR_UNSPEC || mr_mode == FI_MR_BASIC || mr_mode == FI_MR_SCALABLE;
	else
		ok = !old || mr_mode == FI_MR_BASIC || mr_mode == FI_MR_SCALABLE;
	if (!ok)
		UTIL_INFO(CORE,
			  "hint domain_attr->mr_mode: requested %s (0x%x), offered FI_MR_BASIC or "
			  "FI_MR_SCALABLE alone, or none of them\n",
			  fi_tostr_r(str, sizeof(str), &mr_mode, FI_TYPE_MR_MODE),
			  (unsigned)mr_mode);
	return ok;
}

/* Checks that an opened domain given as a hint is the offered one. */
static bool cpr_attr_domain_fid(const struct fi_domain_attr *offer, struct fid_domain *fid)
{
	return cpr_attr_absent("domain_attr->domain (another one)",
			       fid && (!cpr_domain_is_ours(fid) ||
				       !cpr_domain_has_name(cpr_domain_of(fid), offer->name)));
}

/* Checks that an opened fabric given as a hint is the offered one. */
static bool cpr_attr_fabric_fid(const struct fi_fabric_attr *offer, struct fid_fabric *fid)
{
	return cpr_attr_absent(
		"fabric_attr->fabric (another one)",
		fid && (!cpr_fabric_is_ours(fid) || strcmp(cpr_fabric_of(fid)->name, offer->name)));
}

static bool cpr_attr_domain_modes(const struct fi_domain_attr *hints)
{
	bool ok = true;

	ok &= cpr_attr_upto("domain_attr->threading", FI_TYPE_THREADING, hints->threading,
			    FI_THREAD_ENDPOINT);
	ok &= cpr_attr_upto("domain_attr->control_progress", FI_TYPE_PROGRESS,
			    hints->control_progress, CPR_PROGRESS_CONTROL_UNIFIED);
	ok &= cpr_attr_upto("domain_attr->data_progress", FI_TYPE_PROGRESS, hints->data_progress,
			    FI_PROGRESS_MANUAL);
	ok &= cpr_attr_max("domain_attr->resource_mgmt", hints->resource_mgmt, FI_RM_ENABLED);
	ok &= cpr_attr_upto("domain_attr->av_type", FI_TYPE_AV_TYPE, hints->av_type, FI_AV_TABLE);
	return ok;
}

static bool cpr_attr_domain(const struct fi_domain_attr *offer, const struct fi_domain_attr *hints,
			    uint32_t version)
{
	bool ok = true;

	ok &= cpr_attr_domain_fid(offer, hints->domain);
	ok &= cpr_attr_name("domain_attr->name", hints->name, offer->name);
	ok &= cpr_attr_domain_modes(hints);
	ok &= cpr_attr_mr_mode(hints->mr_mode, version);
	ok &= cpr_attr_max("domain_attr->mr_key_size", hints->mr_key_size, offer->mr_key_size);
	ok &= cpr_attr_max("domain_attr->cq_data_size", hints->cq_data_size, offer->cq_data_size);
	ok &= cpr_attr_max("domain_attr->max_ep_stx_ctx", hints->max_ep_stx_ctx,
			   offer->max_ep_stx_ctx);
	ok &= cpr_attr_max("domain_attr->max_ep_srx_ctx", hints->max_ep_srx_ctx,
			   offer->max_ep_srx_ctx);
	ok &= cpr_attr_max("domain_attr->max_ep_tx_ctx", hints->max_ep_tx_ctx, 1);
	ok &= cpr_attr_max("domain_attr->max_ep_rx_ctx", hints->max_ep_rx_ctx, 1);
	if (FI_VERSION_LT(version, FI_VERSION(1, 5)))
		return ok;
	ok &= cpr_attr_bits("domain_attr->caps", FI_TYPE_CAPS, hints->caps, offer->caps);
	ok &= cpr_attr_max("domain_attr->cntr_cnt", hints->cntr_cnt, offer->cntr_cnt);
	ok &= cpr_attr_max("domain_attr->mr_iov_limit", hints->mr_iov_limit, offer->mr_iov_limit);
	ok &= cpr_attr_max("domain_attr->mr_cnt", hints->mr_cnt, offer->mr_cnt);
	ok &= cpr_attr_max("domain_attr->max_err_data", hints->max_err_data, 0);
	ok &= cpr_attr_max("domain_attr->auth_key_size", hints->auth_key_size, 0);
	return ok;
}

static bool cpr_attr_fabric(const struct fi_fabric_attr *offer, const struct fi_fabric_attr *hints)
{
	bool ok = true;

	ok &= cpr_attr_name("fabric_attr->name", hints->name, offer->name);
	ok &= cpr_attr_max("fabric_attr->prov_version", hints->prov_version, util_log_prov.version);
	ok &= cpr_attr_fabric_fid(offer, hints->fabric);
	return ok;
}

static bool cpr_attr_addr_format(uint32_t requested, uint32_t offered)
{
	char str[CPR_ATTR_BITS_MAX];

	if (offered)
		return cpr_attr_same("addr_format", FI_TYPE_ADDR_FORMAT, requested, offered);
	if (cpr_addr_family(requested) >= 0)
		return true;
	UTIL_INFO(CORE,
		  "hint addr_format: requested %s (0x%x), offered FI_SOCKADDR, FI_SOCKADDR_IN, "
		  "FI_SOCKADDR_IN6\n",
		  fi_tostr_r(str, sizeof(str), &requested, FI_TYPE_ADDR_FORMAT), requested);
	return false;
}

bool cpr_attr_accepts(const struct fi_info *offer, const struct fi_info *hints, uint32_t version)
{
	bool ok = true;

	if (!hints)
		return true;
	ok &= cpr_attr_bits("caps", FI_TYPE_CAPS, hints->caps, offer->caps);
	ok &= cpr_attr_addr_format(hints->addr_format, offer->addr_format);
	if (hints->ep_attr)
		ok &= cpr_attr_ep(offer->ep_attr, hints->ep_attr, version);
	if (hints->tx_attr)
		ok &= cpr_attr_tx(offer->tx_attr, hints->tx_attr, offer->caps);
	if (hints->rx_attr)
		ok &= cpr_attr_rx(offer->rx_attr, hints->rx_attr, offer->caps);
	if (hints->domain_attr)
		ok &= cpr_attr_domain(offer->domain_attr, hints->domain_attr, version);
	if (hints->fabric_attr)
		ok &= cpr_attr_fabric(offer->fabric_attr, hints->fabric_attr);
	return ok;
}
