/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * When does a transfer with FI_TRIGGER begin? (fi_trigger(3))
 *
 * When the counter that its context names has reached the threshold there. Until then it waits in that
 * counter's list, by threshold and then by age, in the words in which core/ will hear it. A
 * counter with a list has its `notify` set; when the first one is due, the domain's next progress posts
 * all that are (core_work), for a counter counts in the midst of other work.
 *
 *   fi_sendmsg, fi_writemsg ... -> cpr_trigger_* -> waits --count, progress--> core_*_post -> completion
 *                                                     \--fi_cancel--> FI_ECANCELED
 *
 * What cannot be posted ends with an error completion. Nothing is looked at or kept of the
 * buffers before that, so FI_INJECT and FI_TRIGGER exclude each other. Receives do not wait, nor
 * does an fi_deferred_work exist here.
 *
 * Owner: the list's, freed when posted, cancelled, or with the endpoint. A counter that is waited for
 * cannot be closed. The lock of the endpoint's group covers all, counters are in it or in an ally
 * (cpr_pdom_assign). Shown by test/unit/ofi/xfer/test_cpr_trigger.c.
 */
#ifndef CPR_TRIGGER_H
#define CPR_TRIGGER_H

#include <sys/types.h>

struct core_atomic;
struct core_rma;
struct core_send;
struct cpr_cntr;
struct cpr_ep;

/**
 * A transfer whose flags have FI_TRIGGER, otherwise checked: 0 (it waits), -FI_EINVAL (no context, a
 * counter of another domain), -FI_ENOSYS (no threshold), -FI_EBADFLAGS (FI_INJECT), -FI_ENOMEM.
 */
ssize_t cpr_trigger_send(struct cpr_ep *ep, const struct core_send *send);
ssize_t cpr_trigger_rma(struct cpr_ep *ep, const struct core_rma *rma);
ssize_t cpr_trigger_atomic(struct cpr_ep *ep, const struct core_atomic *atomic);

/** The default flags have FI_TRIGGER: sends of one buffer, which do not look at flags, do. */
void cpr_trigger_pick(struct cpr_ep *ep);

/** 0, or -FI_ENOENT: no transfer with this context waits. Locked. */
int cpr_trigger_cancel(struct cpr_ep *ep, const void *context);
/** Nobody will hear of those that wait. Locked. */
void cpr_trigger_drop_all(struct cpr_ep *ep);

/** The counter begins; and has changed, or got a list: is somebody due? Locked. */
void cpr_trigger_init(struct cpr_cntr *cntr);
void cpr_trigger_look(struct cpr_cntr *cntr);

#endif
