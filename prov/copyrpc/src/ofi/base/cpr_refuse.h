/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Refused transfers: op table entries of messages that an endpoint does not have, or not yet. Used
 * by cpr_ep, cpr_fork, cpr_conn and cpr_dgram; other transfers check the endpoint themselves.
 *
 * Tested by test/unit/ofi/ep/test_cpr_refuse.c.
 */
#ifndef OFI_BASE_CPR_REFUSE_H
#define OFI_BASE_CPR_REFUSE_H

#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>

struct cpr_ep;

extern const struct fi_ops_msg cpr_refuse_msg_ops;
extern const struct fi_ops_tagged cpr_refuse_tagged_ops;

/** Returns the error of a refused transfer: -FI_EOPBADSTATE before fi_enable, else -FI_ENOSYS. */
int cpr_refuse_err(const struct cpr_ep *ep);

/** Refuses all transfers. */
void cpr_refuse_all(struct cpr_ep *ep);

/** Refuses sends, receives. */
void cpr_refuse_sends(struct cpr_ep *ep);
void cpr_refuse_recvs(struct cpr_ep *ep);

#endif
