/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connected endpoints, FI_EP_MSG. Called by cpr_ep when one is opened and closed.
 *
 * A connected endpoint is a cpr_ep with a connection in its core endpoint (core/core_conn.h). It
 * supports fi_connect, fi_accept and fi_shutdown, reports them to its event queue, needs no address
 * vector, and ignores the addresses of transfers. Messages use the same code as those of other
 * endpoints.
 */
#ifndef OFI_CONN_CPR_CONN_H
#define OFI_CONN_CPR_CONN_H

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>
#include <stdbool.h>
#include <stddef.h>

struct cpr_domain;
struct cpr_ep;

/**
 * Initializes the connection of an endpoint opened for `info`. Returns 0, or a negative error code
 * if info->handle is invalid.
 */
int cpr_conn_init(struct cpr_ep *ep, const struct fi_info *info);
/**
 * Drops the events of an endpoint that is closed, and rejects its connection request if there has
 * been no reply.
 */
void cpr_conn_fini(struct cpr_ep *ep);

/**
 * Takes the place of free when an endpoint is closed. ofi_rxm closes its end of a connection and
 * then reads what is left in its queue, posting a receive to the closed endpoint for each. So the
 * last CPR_CONN_ZOMBIES_MAX endpoints of a domain stay as zombies that refuse all transfers.
 */
void cpr_conn_defer_free(struct cpr_ep *ep);
void cpr_conn_free_deferred(struct cpr_domain *domain);

static inline bool cpr_conn_is_type(const struct fi_info *info)
{
	return info->ep_attr && info->ep_attr->type == FI_EP_MSG;
}

/** Implements fi_getopt for FI_OPT_CM_DATA_SIZE; returns -FI_ENOPROTOOPT for all others. */
int cpr_conn_getopt(int level, int optname, void *optval, size_t *optlen);

/** Implement fi_cm(3) for endpoints; return -FI_ENOSYS if one is not connected. */
int cpr_conn_connect(struct fid_ep *fid, const void *addr, const void *param, size_t len);
int cpr_conn_accept(struct fid_ep *fid, const void *param, size_t len);
int cpr_conn_shutdown(struct fid_ep *fid, uint64_t flags);
int cpr_conn_getpeer(struct fid_ep *fid, void *addr, size_t *addrlen);

/** Transfers that ignore addresses (cpr_conn_xfer.c). */
extern const struct fi_ops_msg cpr_conn_msg_ops;
extern const struct fi_ops_tagged cpr_conn_tagged_ops;

#endif
