/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Triggered operations, fi_trigger(3): transfers with FI_TRIGGER wait for a counter. Called by the
 * transfers of ofi/xfer.
 *
 * A transfer waits in the list of the counter that its context names, by threshold and then by age,
 * as core's parameters. A counter with a list has its `notify` set. When the first transfer is due,
 * the domain's next progress posts all that are (core_work): a counter counts in the midst of other
 * work, and threads that sleep wake to make that progress.
 *
 *	fi_sendmsg ... -> cpr_trigger_* -> waits --count, progress--> core_*_post -> completion
 *						\--fi_cancel--> FI_ECANCELED
 *
 * A transfer that cannot be posted ends with an error completion. Buffers are not read before it is
 * posted, so FI_INJECT and FI_TRIGGER exclude each other. Receives do not wait, and
 * fi_deferred_work is not offered.
 *
 * The list owns a transfer until it is posted, cancelled, or its endpoint is closed. A counter with
 * a list cannot be closed. The lock of the endpoint's progress domain covers all; counters are in
 * it or in one merged with it (cpr_pdom_assign).
 */
#ifndef OFI_XFER_CPR_TRIGGER_H
#define OFI_XFER_CPR_TRIGGER_H

#include <sys/types.h>

struct core_atomic;
struct core_rma;
struct core_send;
struct cpr_ep;

/**
 * Adds a transfer with FI_TRIGGER in its flags, otherwise checked. Returns 0, -FI_EINVAL (no
 * context, or a counter of another domain), -FI_ENOSYS (no threshold), -FI_EBADFLAGS (FI_INJECT) or
 * -FI_ENOMEM.
 */
ssize_t cpr_trigger_send(struct cpr_ep *ep, const struct core_send *send);
ssize_t cpr_trigger_rma(struct cpr_ep *ep, const struct core_rma *rma);
ssize_t cpr_trigger_atomic(struct cpr_ep *ep, const struct core_atomic *atomic);

/** Replaces sends of one buffer, which ignore flags, when the default flags have FI_TRIGGER. */
void cpr_trigger_pick(struct cpr_ep *ep);

/** Cancels a waiting transfer with this context. Returns 0 or -FI_ENOENT. Locked. */
int cpr_trigger_cancel(struct cpr_ep *ep, const void *context);
/** Frees all waiting transfers of an endpoint, without completions. Locked. */
void cpr_trigger_drop_all(struct cpr_ep *ep);

#endif
