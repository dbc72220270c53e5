/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_getinfo: RDM and connected endpoints (MSG) of rc, RDM endpoints of ud, and behind them
 * datagram endpoints (cpr_dgram.h).
 *
 * Steps for each: decline to be a layer below ofi_rxm unless named; compare the hints (cpr_attr.h);
 * resolve addresses (cpr_addr.h); narrow the offer (cpr_offer.h). fi_getinfo returns 0 or
 * -FI_ENODATA (-FI_ENOMEM aside); it opens nothing and prints nothing.
 */
#ifndef OFI_INFO_CPR_INFO_H
#define OFI_INFO_CPR_INFO_H

#include <rdma/fabric.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* Flag internal to libfabric, equal in 1.17 and 2.x: a layer is looking for a core provider. */
#define CPR_FLAG_CORE_PROV_ONLY (1ULL << 59)

/*
 * Largest inject_size that a layer is offered: the buffers of ofi_rxm by default. Its fi_getinfo
 * derives its own size from this one, its fi_endpoint refuses more than its buffers.
 */
#define CPR_LAYER_INJECT_MAX (16u << 10)

/** Local address of the endpoint and address of its peer; ss_family 0: not known. */
struct cpr_info_addrs {
	int family;
	struct sockaddr_storage src;
	bool src_is_chosen; /* by the rules of util/iface.h, not given */
	struct sockaddr_storage dest;
};

/** Finds the addresses from node, service and hints. Returns 0 (src is set) or -FI_ENODATA. */
int cpr_info_find_addrs(const char *node, const char *service, uint64_t flags,
			const struct fi_info *hints, struct cpr_info_addrs *addrs);
/** Writes the addresses into an info. Returns 0 or -FI_ENOMEM. */
int cpr_info_set_addrs(struct fi_info *info, const struct cpr_info_addrs *addrs);

int cpr_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		const struct fi_info *hints, struct fi_info **info);

#endif
