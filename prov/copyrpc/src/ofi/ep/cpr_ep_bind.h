/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Bindings of an endpoint, fi_ep_bind. Called by cpr_ep.
 *
 * Address vector, queues, counters and shared contexts of the endpoint's domain are bound once and
 * before fi_enable, an event queue of its fabric at any time. A bound object cannot be closed.
 *
 * Tested by test/unit/ofi/ep/test_cpr_ep_bind.c against fi_endpoint(3).
 */
#ifndef OFI_EP_CPR_EP_BIND_H
#define OFI_EP_CPR_EP_BIND_H

#include <rdma/fabric.h>
#include <stdint.h>

struct cpr_ep;

/** Implements fi_ep_bind. Returns 0, or a negative error code with no binding made. */
int cpr_ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
/**
 * Returns 0 if the endpoint can be enabled; else logs the missing binding and returns its error
 * code.
 */
int cpr_ep_check_bound(const struct cpr_ep *ep);
/** Releases all bound objects when the endpoint is closed. */
void cpr_ep_unbind_all(struct cpr_ep *ep);

#endif
