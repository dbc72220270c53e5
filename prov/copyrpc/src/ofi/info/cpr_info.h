/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What does fi_getinfo answer?
 *
 * Up to two fi_infos, of one protocol: RDM endpoints and connected ones (MSG); behind them those of
 * datagrams (cpr_dgram.h). Steps for each: decline to be a layer below ofi_rxm, unless that was
 * asked for by name; compare the hints (cpr_attr.h); resolve addresses (cpr_addr.h); narrow the
 * offer (cpr_offer.h). The answer is 0 or -FI_ENODATA (-FI_ENOMEM aside); nothing is opened,
 * nothing is printed.
 *
 * Shown by test/unit/ofi/info/test_cpr_info.c.
 */
#ifndef CPR_INFO_H
#define CPR_INFO_H

#include <rdma/fabric.h>
#include <stdint.h>
#include <sys/socket.h>

/* Internal to libfabric, the same in 1.17 and 2.x: "I am a layer and look for a core provider". */
#define CPR_FLAG_CORE_PROV_ONLY (1ULL << 59)

/** Where the endpoint is to be, and whom it is to talk to; ss_family 0: not known. */
struct cpr_info_addrs {
	int family;
	struct sockaddr_storage src;
	struct sockaddr_storage dest;
};

/** From node, service and hints: 0 (src is set) or -FI_ENODATA. */
int cpr_info_find_addrs(const char *node, const char *service, uint64_t flags,
			const struct fi_info *hints, struct cpr_info_addrs *addrs);
/** Writes them into an info: 0 or -FI_ENOMEM. */
int cpr_info_set_addrs(struct fi_info *info, const struct cpr_info_addrs *addrs);

int cpr_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		const struct fi_info *hints, struct fi_info **info);

#endif
