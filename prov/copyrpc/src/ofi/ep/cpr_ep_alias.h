/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Default flags of transfers without a flags parameter, and aliases. Called by fi_control and
 * fi_ep_alias.
 *
 * An endpoint has default flags for each direction. An alias is the same endpoint (`owner`) with
 * default flags of its own; the endpoint cannot be closed while it has aliases.
 *
 * Tested by test/unit/ofi/ep/test_cpr_ep_alias.c against fi_endpoint(3).
 */
#ifndef OFI_EP_CPR_EP_ALIAS_H
#define OFI_EP_CPR_EP_ALIAS_H

#include <rdma/fi_endpoint.h>
#include <stdint.h>

struct cpr_ep;

/**
 * Implement FI_GETOPSFLAG and FI_SETOPSFLAG; `flags` selects the direction, FI_TRANSMIT or FI_RECV.
 */
int cpr_ep_get_flags(const struct cpr_ep *ep, uint64_t *flags);
int cpr_ep_set_flags(struct cpr_ep *ep, uint64_t flags);

/** Implements FI_ALIAS for an enabled endpoint. */
int cpr_ep_alias(struct cpr_ep *ep, const struct fi_alias *arg);
int cpr_ep_close_alias(struct cpr_ep *alias);

#endif
