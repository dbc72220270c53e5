/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is different about an endpoint of type FI_EP_MSG?
 *
 * It is a cpr_ep like any other whose core endpoint has a connection (core/core_conn.h): it can fi_connect,
 * fi_accept and fi_shutdown, reports them to its event queue, needs no address vector, and its
 * transfers do not look at addresses. There is no second way for messages.
 *
 * Shown by test/unit/ofi/conn/test_cpr_conn.c.
 */
#ifndef CPR_CONN_H
#define CPR_CONN_H

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>
#include <stdbool.h>
#include <stddef.h>

struct cpr_domain;
struct cpr_ep;

/** Of an endpoint that is being opened for `info`: 0, or -FI_E* (info->handle is not what it should be). */
int cpr_conn_init(struct cpr_ep *ep, const struct fi_info *info);
/** It is closed: its events and its connection request, if it has not answered it, go. */
void cpr_conn_fini(struct cpr_ep *ep);

/**
 * The last step of closing it, in place of free. ofi_rxm closes its end of a connection and then takes what
 * is left in its queue, posting a receive to the closed endpoint for each: the last few of a domain stay as
 * inerts that refuse all transfers.
 */
void cpr_conn_defer_free(struct cpr_ep *ep);
void cpr_conn_free_deferred(struct cpr_domain *domain);

static inline bool cpr_conn_is_type(const struct fi_info *info)
{
	return info->ep_attr && info->ep_attr->type == FI_EP_MSG;
}

/** FI_OPT_CM_DATA_SIZE, or -FI_ENOPROTOOPT. */
int cpr_conn_getopt(int level, int optname, void *optval, size_t *optlen);

extern struct fi_ops_cm cpr_conn_cm_ops;

/** Transfers that take no notice of addresses (cpr_conn_xfer.c). */
extern const struct fi_ops_msg cpr_conn_msg_ops;
extern const struct fi_ops_tagged cpr_conn_tagged_ops;

#endif
