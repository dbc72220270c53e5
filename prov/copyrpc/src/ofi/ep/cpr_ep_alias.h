/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which flags do transfers without a flags parameter have?
 *
 * Those of their endpoint, for each direction: fi_control reads and changes them. An alias is the
 * same endpoint (`owner`) with default flags of its own; the endpoint is busy as long as there is
 * one.
 *
 * Shown by test/unit/ofi/ep/test_cpr_ep_alias.c, against fi_endpoint(3).
 */
#ifndef CPR_EP_ALIAS_H
#define CPR_EP_ALIAS_H

#include <rdma/fi_endpoint.h>
#include <stdint.h>

struct cpr_ep;

/** FI_GETOPSFLAG, FI_SETOPSFLAG: `flags` says the direction, FI_TRANSMIT or FI_RECV. */
int cpr_ep_get_flags(const struct cpr_ep *ep, uint64_t *flags);
int cpr_ep_set_flags(struct cpr_ep *ep, uint64_t flags);

/** FI_ALIAS, of an enabled endpoint. */
int cpr_ep_alias(struct cpr_ep *ep, const struct fi_alias *arg);
int cpr_ep_close_alias(struct cpr_ep *alias);

#endif
