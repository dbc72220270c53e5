/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_getinfo for datagram endpoints: one info for each device. Called by cpr_getinfo; see
 * cpr_dgram.h.
 *
 * Besides what the device sets (size of a datagram, format of addresses), the offer is that of
 * other endpoints without what a bare datagram cannot carry: order, tags, data with a completion,
 * delivery confirmation.
 */
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dgram/dgram_ep.h"
#include "dgram/dgram_over.h"
#include "ofi/base/cpr_fabric.h"
#include "ofi/base/cpr_nic.h"
#include "ofi/base/cpr_offer.h"
#include "ofi/dgram/cpr_dgram.h"
#include "ofi/info/cpr_attr.h"
#include "ofi/info/cpr_info.h"
#include "util/fi_old.h"
#include "util/log.h"
#include "util/param.h"

/** A device that was found, with its addresses for this request. */
struct cpr_dgram_found {
	const struct dgram_over *over;
	struct cpr_info_addrs addrs; /* set if is_ip */
	struct dev_about about;
	uint32_t mtu;
};

/* Returns true if `name` is in the list FI_COPYRPC_PATHS. */
static bool cpr_dgram_is_listed(const char *name)
{
	const char *at = util_params.paths;
	size_t len = strlen(name), part;

	for (;; at += part + 1) {
		part = strcspn(at, ",");
		if (part == len && !memcmp(at, name, len))
			return true;
		if (!at[part])
			return false;
	}
}

static bool cpr_dgram_is_allowed(const struct dgram_over *over)
{
	return cpr_dgram_is_listed(over->name) || (!over->is_ip && cpr_dgram_is_listed("nic"));
}

/*
 * Finds addresses and probes the device. Node and service name IP addresses: the address of an RDMA
 * device cannot be looked up.
 */
static int cpr_dgram_find(struct cpr_dgram_found *found, const char *node, const char *service,
			  uint64_t flags, const struct fi_info *hints)
{
	const struct dgram_over *over = found->over;
	struct sockaddr_storage local;
	int ret = 0;

	memset(&found->addrs, 0, sizeof(found->addrs));
	memset(&found->about, 0, sizeof(found->about));
	if (over->is_ip)
		ret = cpr_info_find_addrs(node, service, flags, hints, &found->addrs);
	else if (node || (hints && hints->addr_format && hints->addr_format != FI_ADDR_IB_UD))
		ret = -FI_ENODATA;
	if (ret)
		return ret;
	local = found->addrs.src;
	cpr_dgram_make_concrete(&local);
	return over->probe(over, (struct sockaddr *)&local, &found->about, &found->mtu)
		       ? -FI_ENODATA
		       : 0;
}

static int cpr_dgram_fill_names(struct fi_info *info, const struct dgram_over *over)
{
	char name[64];

	snprintf(name, sizeof(name), CPR_DGRAM_NAME "-%s", over->name);
	free(info->domain_attr->name);
	free(info->fabric_attr->name);
	info->domain_attr->name = strdup(name);
	info->fabric_attr->name = strdup(CPR_DGRAM_NAME);
	return info->domain_attr->name && info->fabric_attr->name ? 0 : -FI_ENOMEM;
}

static int cpr_dgram_fill(struct fi_info *info, const struct cpr_dgram_found *found)
{
	const struct dgram_over *over = found->over;
	int ret = cpr_offer_fill(info);

	if (ret)
		return ret;
	info->addr_format = over->is_ip ? FI_FORMAT_UNSPEC : FI_ADDR_IB_UD;
	info->tx_attr->caps &= CPR_DGRAM_CAPS;
	info->tx_attr->msg_order = FI_ORDER_NONE;
	info->tx_attr->inject_size = found->mtu;
	info->tx_attr->rma_iov_limit = 0;
	info->rx_attr->caps &= CPR_DGRAM_CAPS;
	info->rx_attr->msg_order = FI_ORDER_NONE;
	info->rx_attr->total_buffered_recv = (size_t)DGRAM_RX_CNT * found->mtu;
	info->ep_attr->type = FI_EP_DGRAM;
	info->ep_attr->protocol = over->is_ip ? FI_PROTO_UDP : FI_PROTO_IB_UD;
	info->ep_attr->protocol_version = 0;
	info->ep_attr->max_msg_size = found->mtu;
	info->ep_attr->mem_tag_format = 0;
	info->domain_attr->cq_data_size = 0;
	info->domain_attr->max_ep_stx_ctx = 0;
	info->domain_attr->max_ep_srx_ctx = 0;
	return cpr_dgram_fill_names(info, over);
}

/* Checks hints that cpr_attr.h does not check, because all other endpoints meet them. */
static bool cpr_dgram_accepts(const struct fi_info *hints)
{
	const struct fi_ep_attr *ep = hints ? hints->ep_attr : NULL;

	if (hints && hints->tx_attr &&
	    (hints->tx_attr->op_flags & (FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE))) {
		UTIL_INFO(CORE, "hint tx_attr->op_flags: requested FI_DELIVERY_COMPLETE or "
				"FI_MATCH_COMPLETE, which a datagram cannot have\n");
		return false;
	}
	if (ep && (ep->tx_ctx_cnt == FI_SHARED_CONTEXT || ep->rx_ctx_cnt == FI_SHARED_CONTEXT)) {
		UTIL_INFO(CORE,
			  "hint ep_attr: requested shared contexts for datagrams, offered none\n");
		return false;
	}
	return true;
}

static void cpr_dgram_narrow(struct fi_info *info, const struct fi_info *hints, uint32_t version)
{
	cpr_offer_narrow(info, hints, version);
	info->tx_attr->caps &= CPR_DGRAM_CAPS;
	info->rx_attr->caps &= CPR_DGRAM_CAPS;
	info->tx_attr->msg_order = FI_ORDER_NONE;
	info->rx_attr->msg_order = FI_ORDER_NONE;
	info->ep_attr->mem_tag_format = 0;
}

/* Offers FI_MSG_PREFIX if the hints allow it; no device needs it. */
static void cpr_dgram_offer_prefix(struct fi_info *info, const struct fi_info *hints)
{
	if (!hints || !(hints->mode & FI_MSG_PREFIX))
		return;
	info->mode = info->tx_attr->mode = info->rx_attr->mode = FI_MSG_PREFIX;
	info->ep_attr->msg_prefix_size = DGRAM_PREFIX;
}

/* Sets the address of the port as source. It has no queue pair: fi_getname returns the address. */
static int cpr_dgram_set_port(struct fi_info *info, const struct cpr_dgram_found *found)
{
	struct sockaddr_storage addr;
	size_t len = found->over->port_addr(&found->about, &addr);

	info->src_addr = malloc(len);
	if (!info->src_addr)
		return -FI_ENOMEM;
	memcpy(info->src_addr, &addr, len);
	info->src_addrlen = len;
	return 0;
}

static int cpr_dgram_make(uint32_t version, const struct cpr_dgram_found *found,
			  const struct fi_info *hints, struct fi_info *info)
{
	int ret;

	info->ep_attr->type = FI_EP_DGRAM;
	ret = cpr_dgram_fill(info, found);
	if (ret)
		return ret;
	if (!cpr_attr_accepts(info, hints, version) || !cpr_dgram_accepts(hints))
		return -FI_ENODATA;
	cpr_dgram_narrow(info, hints, version);
	cpr_dgram_offer_prefix(info, hints);
	cpr_fabric_fill_opened(info, hints);
	if (found->over->is_ip)
		return cpr_info_set_addrs(info, &found->addrs);
	ret = cpr_dgram_set_port(info, found);
	return ret ? ret : cpr_nic_make(&found->about, found->over->name, &info->nic);
}

/* Returns the infos of one device: 0 and *info, -FI_ENODATA or -FI_ENOMEM. */
static int cpr_dgram_info(uint32_t version, const struct cpr_dgram_found *found,
			  const struct fi_info *hints, struct fi_info **info)
{
	struct fi_info *fi = fi_allocinfo();
	int ret;

	if (!fi)
		return -FI_ENOMEM;
	ret = cpr_dgram_make(version, found, hints, fi);
	if (ret) {
		fi_freeinfo(fi);
		return ret;
	}
	*info = fi;
	return 0;
}

int cpr_dgram_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		      const struct fi_info *hints, struct fi_info **info)
{
	struct cpr_dgram_found found;
	struct fi_info **end = info;
	int ret = -FI_ENODATA;

	for (unsigned i = 0; (found.over = cpr_dgram_device(i)); i++) {
		if (!cpr_dgram_is_allowed(found.over) ||
		    cpr_dgram_find(&found, node, service, flags, hints))
			continue;
		ret = cpr_dgram_info(version, &found, hints, end);
		if (!ret)
			end = &(*end)->next;
	}
	return *info ? 0 : ret;
}
