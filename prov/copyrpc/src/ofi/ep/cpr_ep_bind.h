/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is an endpoint bound to, and is that enough?
 *
 * An address vector, queues, counters and shared contexts of its own domain, each once and before fi_enable;
 * an event queue of its fabric at any time. What is bound cannot be closed while it is.
 *
 * Shown by test/unit/ofi/ep/test_cpr_ep_bind.c, against fi_endpoint(3).
 */
#ifndef CPR_EP_BIND_H
#define CPR_EP_BIND_H

#include <rdma/fabric.h>
#include <stdint.h>

struct cpr_ep;

/** fi_ep_bind: 0, or -FI_E* and nothing is bound. */
int cpr_ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
/** May it be enabled? If not, the log says what is missing. */
int cpr_ep_check_bound(const struct cpr_ep *ep);
/** At its end: all of it may be closed again. */
void cpr_ep_unbind_all(struct cpr_ep *ep);

#endif
