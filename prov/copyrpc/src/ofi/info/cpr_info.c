/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_getinfo, step by step: see cpr_info.h. */
#include "ofi/info/cpr_info.h"

#include <netdb.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "ofi/base/cpr_addr.h"
#include "ofi/base/cpr_engine.h"
#include "ofi/base/cpr_fabric.h"
#include "ofi/base/cpr_offer.h"
#include "ofi/dgram/cpr_dgram.h"
#include "ofi/info/cpr_attr.h"
#include "util/iface.h"
#include "util/log.h"
#include "util/param.h"

static bool cpr_info_is_set(const struct sockaddr_storage *addr)
{
	return addr->ss_family != AF_UNSPEC;
}

/* Copies an address from the hints. Returns 0, or -FI_ENODATA if its format is not supported. */
static int cpr_info_take(const char *hint, const void *addr, size_t len, int family,
			 struct sockaddr_storage *out)
{
	const struct sockaddr *sa = addr;
	uint32_t format;

	if (!addr || len < sizeof(sa->sa_family))
		return 0;
	format = cpr_addr_format(sa->sa_family);
	if (format == FI_FORMAT_UNSPEC || len < cpr_addr_len(format) ||
	    (family != AF_UNSPEC && family != sa->sa_family)) {
		UTIL_INFO(CORE,
			  "hint %s: requested family %u in %zu bytes, offered IPv4 or IPv6 as in "
			  "addr_format\n",
			  hint, sa->sa_family, len);
		return -FI_ENODATA;
	}
	memset(out, 0, sizeof(*out));
	memcpy(out, addr, cpr_addr_len(format));
	return 0;
}

static int cpr_info_from_hints(const struct fi_info *hints, bool want_src, bool want_dest,
			       struct cpr_info_addrs *addrs)
{
	int ret = 0;

	if (want_src)
		ret = cpr_info_take("src_addr", hints->src_addr, hints->src_addrlen, addrs->family,
				    &addrs->src);
	if (!ret && want_dest)
		ret = cpr_info_take("dest_addr", hints->dest_addr, hints->dest_addrlen,
				    addrs->family, &addrs->dest);
	if (ret)
		return ret;
	if (cpr_info_is_set(&addrs->src))
		addrs->family = addrs->src.ss_family;
	else if (cpr_info_is_set(&addrs->dest))
		addrs->family = addrs->dest.ss_family;
	return 0;
}

/* Resolves node and service: the source with FI_SOURCE, else the destination. */
static int cpr_info_from_names(const char *node, const char *service, uint64_t flags,
			       struct cpr_info_addrs *addrs)
{
	int ai_flags = flags & FI_NUMERICHOST ? AI_NUMERICHOST : 0;
	struct sockaddr_storage *out = flags & FI_SOURCE ? &addrs->src : &addrs->dest;
	int ret;

	if (flags & FI_SOURCE)
		ai_flags |= AI_PASSIVE;
	ret = cpr_addr_resolve(node, service, addrs->family, ai_flags, out);
	if (ret) {
		UTIL_INFO(CORE, "node %s, service %s: no such address\n", node ? node : "(none)",
			  service ? service : "(none)");
		return ret;
	}
	addrs->family = out->ss_family;
	return 0;
}

static int cpr_info_check_src(const struct sockaddr_storage *src)
{
	char str[CPR_ADDR_STR_MAX];

	if (cpr_addr_is_local((const struct sockaddr *)src))
		return 0;
	cpr_addr_print((const struct sockaddr *)src, str, sizeof(str));
	UTIL_INFO(CORE, "source address %s: not an address of this host\n", str);
	return -FI_ENODATA;
}

int cpr_info_find_addrs(const char *node, const char *service, uint64_t flags,
			const struct fi_info *hints, struct cpr_info_addrs *addrs)
{
	bool named = node || service;
	int ret = 0;

	memset(addrs, 0, sizeof(*addrs));
	if ((flags & FI_SOURCE) && !named)
		return -FI_ENODATA;
	if (hints) {
		addrs->family = cpr_addr_family(hints->addr_format);
		ret = cpr_info_from_hints(hints, !(flags & FI_SOURCE),
					  !named || (flags & FI_SOURCE), addrs);
	}
	if (!ret && named)
		ret = cpr_info_from_names(node, service, flags, addrs);
	if (ret)
		return ret;
	if (addrs->family == AF_UNSPEC)
		addrs->family = util_iface_family(util_params.iface);
	if (cpr_info_is_set(&addrs->src))
		return cpr_info_check_src(&addrs->src);
	addrs->src_is_chosen = true;
	return cpr_addr_local(addrs->family,
			      cpr_info_is_set(&addrs->dest) ? (struct sockaddr *)&addrs->dest
							    : NULL,
			      &addrs->src);
}

static void *cpr_info_dup_addr(const struct sockaddr_storage *addr, size_t len)
{
	void *dup = malloc(len);

	if (dup)
		memcpy(dup, addr, len);
	return dup;
}

int cpr_info_set_addrs(struct fi_info *info, const struct cpr_info_addrs *addrs)
{
	size_t len;

	info->addr_format = cpr_addr_format(addrs->family);
	len = cpr_addr_len(info->addr_format);
	info->src_addr = cpr_info_dup_addr(&addrs->src, len);
	if (!info->src_addr)
		return -FI_ENOMEM;
	info->src_addrlen = len;
	if (!cpr_info_is_set(&addrs->dest))
		return 0;
	info->dest_addr = cpr_info_dup_addr(&addrs->dest, len);
	if (!info->dest_addr)
		return -FI_ENOMEM;
	info->dest_addrlen = len;
	return 0;
}

static int cpr_info_make(uint32_t version, const char *node, const char *service, uint64_t flags,
			 const struct fi_info *hints, struct fi_info *info)
{
	enum cpr_kind kind = info->ep_attr->protocol == CPR_UD_PROTO ? CPR_UD : CPR_RC;
	struct cpr_info_addrs addrs;
	int ret = cpr_engine_check(kind);

	if (!ret)
		ret = cpr_offer_fill(info);
	if (ret)
		return ret;
	if ((flags & CPR_FLAG_CORE_PROV_ONLY) && info->tx_attr->inject_size > CPR_LAYER_INJECT_MAX)
		info->tx_attr->inject_size = CPR_LAYER_INJECT_MAX;
	if (!cpr_attr_accepts(info, hints, version))
		return -FI_ENODATA;
	ret = cpr_info_find_addrs(node, service, flags, hints, &addrs);
	if (!ret) {
		/* A connected endpoint is reached by the address that its listener was. */
		if (addrs.src_is_chosen && info->ep_attr->type == FI_EP_RDM)
			util_iface_add_others((struct sockaddr *)&addrs.src, util_params.iface);
		ret = cpr_info_set_addrs(info, &addrs);
	}
	if (ret)
		return ret;
	cpr_offer_narrow(info, hints, version);
	cpr_fabric_fill_opened(info, hints);
	if (hints && hints->handle && hints->handle->fclass == FI_CLASS_PEP)
		info->handle = hints->handle;
	return cpr_engine_nic(kind, &info->nic);
}

/*
 * Makes the info of one kind of endpoint, narrowed to the hints. Returns 0 and *info, -FI_ENODATA
 * or -FI_ENOMEM.
 */
static int cpr_info_of_type(enum fi_ep_type type, uint32_t protocol, uint32_t version,
			    const char *node, const char *service, uint64_t flags,
			    const struct fi_info *hints, struct fi_info **info)
{
	struct fi_info *fi = fi_allocinfo();
	int ret;

	if (!fi)
		return -FI_ENOMEM;
	fi->ep_attr->type = type;
	fi->ep_attr->protocol = protocol;
	ret = cpr_info_make(version, node, service, flags, hints, fi);
	if (ret) {
		fi_freeinfo(fi);
		return ret;
	}
	*info = fi;
	return 0;
}

/* Returns true if the user named a layer above this provider. */
static bool cpr_info_may_layer(const struct fi_info *hints)
{
	return util_params.layering ||
	       (hints && hints->fabric_attr && hints->fabric_attr->prov_name);
}

/* Reliable endpoints on offer, the preferred one first. */
static const struct {
	enum fi_ep_type type;
	uint32_t protocol;
} cpr_info_reliable[] = {
	{ FI_EP_RDM, CPR_RC_PROTO },
	{ FI_EP_MSG, CPR_RC_PROTO },
	{ FI_EP_RDM, CPR_UD_PROTO },
};

int cpr_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		const struct fi_info *hints, struct fi_info **info)
{
	enum fi_ep_type requested = hints && hints->ep_attr ? hints->ep_attr->type : FI_EP_UNSPEC;
	struct fi_info **end = info;
	int ret = -FI_ENODATA;

	if ((flags & CPR_FLAG_CORE_PROV_ONLY) && !cpr_info_may_layer(hints)) {
		UTIL_INFO(CORE, "layers above this provider are declined (naming one, as in "
				"\"copyrpc;ofi_rxm\", or FI_COPYRPC_LAYERING=1 allows it)\n");
		return -FI_ENODATA;
	}
	*info = NULL;
	for (unsigned i = 0; i < sizeof(cpr_info_reliable) / sizeof(cpr_info_reliable[0]); i++) {
		enum fi_ep_type type = cpr_info_reliable[i].type;
		bool other = type == FI_EP_MSG ? requested == FI_EP_RDM : requested == FI_EP_MSG;

		if (other || requested == FI_EP_DGRAM)
			continue;
		ret = cpr_info_of_type(type, cpr_info_reliable[i].protocol, version, node, service,
				       flags, hints, end);
		if (*end)
			end = &(*end)->next;
	}
	if (requested == FI_EP_UNSPEC || requested == FI_EP_DGRAM)
		ret = cpr_dgram_getinfo(version, node, service, flags, hints, end);
	return *info ? 0 : ret;
}
