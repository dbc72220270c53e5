/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Datagram endpoints, FI_EP_DGRAM: their domains, address vectors and transfers. Called by cpr_ep,
 * cpr_av and ofi/info.
 *
 * A domain of datagram endpoints has a device (dgram/dgram_over.h) that its name selects:
 * "copyrpc-dgram-udp", "-mlx5", "-verbs". Endpoints, address vectors, queues and counters are the
 * ordinary ones with other tables behind them (cpr_ep_kind, cpr_av_kind). Devices that
 * FI_COPYRPC_PATHS allows and that are present are offered, NICs before UDP.
 *
 * Tested by test/unit/ofi/dgram/test_cpr_dgram.c, _info.c and _msg.c, and by
 * fabtests/functional/crpc_dgram.
 */
#ifndef OFI_DGRAM_CPR_DGRAM_H
#define OFI_DGRAM_CPR_DGRAM_H

#include <rdma/fi_endpoint.h>
#include <sys/socket.h>

#include "dgram/dgram_over.h"
#include "ofi/base/cpr_av.h"
#include "ofi/base/cpr_ep.h"

struct cpr_domain;

/**
 * Returns the device of a domain with this name, NULL if its endpoints are not datagram endpoints
 * or the name is NULL.
 */
const struct dgram_over *cpr_dgram_over(const char *domain_name);
/** Returns device i, best first, or NULL behind the last one. */
const struct dgram_over *cpr_dgram_device(unsigned i);

/** Replaces a wildcard address by one that peers can use. */
void cpr_dgram_make_concrete(struct sockaddr_storage *local);

/** Returns the infos, one for each device: 0 and *info, -FI_ENODATA or -FI_ENOMEM. */
int cpr_dgram_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		      const struct fi_info *hints, struct fi_info **info);

/** Implements fi_endpoint in such a domain. */
int cpr_dgram_open(struct cpr_domain *domain, const struct fi_info *info, struct fid_ep **ep,
		   void *context);
int cpr_dgram_getname(struct cpr_ep *ep, void *addr, size_t *addrlen);

extern const struct cpr_av_kind cpr_av_kind_dgram;

/** Transfers (cpr_dgram_msg.c). */
extern const struct fi_ops_msg cpr_dgram_msg_ops;

#define CPR_DGRAM_TX_OP_FLAGS                                                                      \
	(FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE)

#endif
