/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Triggered operations: see cpr_trigger.h. */
#include "ofi/xfer/cpr_trigger.h"

#include <rdma/fi_errno.h>
#include <rdma/fi_trigger.h>
#include <stdlib.h>
#include <string.h>

#include "core/msg/core_tx.h"
#include "core/rma/core_atomic.h"
#include "core/rma/core_rma.h"
#include "ofi/base/cpr_domain.h"
#include "ofi/base/cpr_ep.h"
#include "ofi/base/cpr_offer.h"
#include "ofi/base/cpr_wakeup.h"
#include "ofi/queue/cpr_cntr.h"
#include "util/bits.h"

enum { CPR_TRIGGER_LISTS = 3 }; /* lists of an atomic operation */

/* A transfer that waits for a counter. */
struct cpr_trigger {
	struct util_list link;    /* cpr_cntr.triggers */
	struct util_list ep_link; /* cpr_ep.triggers, of the owner */
	struct cpr_cntr *cntr;
	struct cpr_ep *ep; /* the endpoint, not an alias */
	uint64_t threshold;
	void *context;
	uint64_t comp_flags;       /* of its completion */
	struct core_cntr *counter; /* counts its completion, or NULL */
	ssize_t (*post)(struct cpr_trigger *t);
	union {
		struct core_send send;
		struct core_rma rma;
		struct core_atomic atomic;
	};
	struct iovec iov[CPR_TRIGGER_LISTS][CPR_IOV_LIMIT];
	struct fi_rma_iov rma_iov[CPR_IOV_LIMIT];
};

static struct cpr_trigger *cpr_trigger_first(const struct cpr_cntr *cntr)
{
	return UTIL_CONTAINER_OF(cntr->triggers.next, struct cpr_trigger, link);
}

static void cpr_trigger_free(struct cpr_trigger *t)
{
	util_list_remove(&t->link);
	util_list_remove(&t->ep_link);
	cpr_ref_put(&t->cntr->refs);
	free(t);
}

/* Ends a transfer that was not posted with an error completion. */
static void cpr_trigger_fail(struct cpr_trigger *t, int err)
{
	struct core_cq *cq = t->ep->core_ep.tx.cq;
	struct fi_cq_err_entry entry = {
		.op_context = t->context,
		.flags = t->comp_flags,
		.err = -err,
		.prov_errno = -err,
	};

	core_cntr_count(t->counter, err);
	if (cq)
		core_cq_write_err(cq, &entry, FI_ADDR_NOTAVAIL);
	cpr_trigger_free(t);
}

static bool cpr_trigger_is_due(const struct cpr_cntr *cntr)
{
	return !util_list_is_empty(&cntr->triggers) &&
	       cpr_trigger_first(cntr)->threshold <= cntr->core.value;
}

/* Posts the first transfer that is due. Returns false if it found no room and stays first. */
static bool cpr_trigger_post(struct cpr_trigger *t)
{
	ssize_t ret = t->post(t);

	if (ret == -FI_EAGAIN)
		return false;
	if (ret)
		cpr_trigger_fail(t, (int)ret);
	else
		cpr_trigger_free(t);
	return true;
}

/* Queues the transfers that are due. Threads that sleep wake for them: they are no event. */
static void cpr_trigger_look(struct cpr_cntr *cntr)
{
	if (cpr_trigger_is_due(cntr)) {
		core_dom_work(&cntr->member.pdom->core, &cntr->trigger_work);
		cpr_wakeup_invalidate_all(cntr->member.pdom);
	} else if (!util_list_is_empty(&cntr->triggers)) {
		cpr_cntr_watch(cntr);
	}
}

static void cpr_trigger_run(struct core_work *work)
{
	struct cpr_cntr *cntr = UTIL_CONTAINER_OF(work, struct cpr_cntr, trigger_work);

	while (cpr_trigger_is_due(cntr) && cpr_trigger_post(cpr_trigger_first(cntr)))
		;
	cpr_trigger_look(cntr);
}

/* Makes the counter post its transfers; called under the lock with each. */
static void cpr_trigger_attach(struct cpr_cntr *cntr)
{
	if (cntr->on_change)
		return;
	util_list_init(&cntr->trigger_work.link);
	cntr->trigger_work.run = cpr_trigger_run;
	cntr->on_change = cpr_trigger_look;
}

/* Inserts behind transfers with an equal or lower threshold. */
static void cpr_trigger_wait(struct cpr_trigger *t)
{
	struct util_list *prev = t->cntr->triggers.prev;

	while (prev != &t->cntr->triggers &&
	       UTIL_CONTAINER_OF(prev, struct cpr_trigger, link)->threshold > t->threshold)
		prev = prev->prev;
	util_list_insert(prev, &t->link);
	util_list_push_back(&t->ep->triggers, &t->ep_link);
	cpr_ref_get(&t->cntr->refs);
	cpr_trigger_attach(t->cntr);
	cpr_trigger_look(t->cntr);
	core_dom_transferred(t->ep->dom);
}

/* Checks the triggered context. Returns 0 and *cntr, or a negative error code. */
static int cpr_trigger_check(const struct cpr_ep *ep, const struct fi_triggered_context *context,
			     uint64_t flags, struct cpr_cntr **cntr)
{
	struct fid_cntr *fid;

	if (flags & FI_INJECT)
		return -FI_EBADFLAGS;
	if (!context)
		return -FI_EINVAL;
	if (context->event_type != FI_TRIGGER_THRESHOLD)
		return -FI_ENOSYS;
	fid = context->trigger.threshold.cntr;
	if (!fid || fid->fid.fclass != FI_CLASS_CNTR)
		return -FI_EINVAL;
	*cntr = UTIL_CONTAINER_OF(fid, struct cpr_cntr, fid);
	return (*cntr)->domain == ep->domain ? 0 : -FI_EINVAL;
}

static int cpr_trigger_new(struct cpr_ep *ep, void *context, uint64_t flags,
			   struct cpr_trigger **out)
{
	const struct fi_triggered_context *triggered = context;
	struct cpr_trigger *t;
	struct cpr_cntr *cntr;
	int ret = cpr_trigger_check(ep, triggered, flags, &cntr);

	if (ret)
		return ret;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -FI_ENOMEM;
	t->ep = ep->owner;
	t->cntr = cntr;
	t->threshold = triggered->trigger.threshold.threshold;
	t->context = context;
	*out = t;
	return 0;
}

/* Copies the caller's list into list `i`: the caller may reuse it. */
static const struct iovec *cpr_trigger_copy(struct cpr_trigger *t, unsigned i,
					    const struct iovec *iov, size_t cnt)
{
	if (cnt)
		memcpy(t->iov[i], iov, cnt * sizeof(*iov));
	return t->iov[i];
}

static void cpr_trigger_copy_rma(struct cpr_trigger *t, const struct fi_rma_iov *iov, size_t cnt)
{
	if (cnt)
		memcpy(t->rma_iov, iov, cnt * sizeof(*iov));
}

static ssize_t cpr_trigger_submit(struct cpr_trigger *t)
{
	cpr_pdom_assign(t->ep, t->cntr);
	core_dom_lock(t->ep->dom);
	cpr_trigger_wait(t);
	core_dom_unlock(t->ep->dom);
	return 0;
}

static ssize_t cpr_trigger_post_send(struct cpr_trigger *t)
{
	return core_tx_send(t->ep->core, &t->send);
}

ssize_t cpr_trigger_send(struct cpr_ep *ep, const struct core_send *send)
{
	struct cpr_trigger *t;
	int ret = cpr_trigger_new(ep, send->context, send->flags, &t);

	if (ret)
		return ret;
	t->post = cpr_trigger_post_send;
	t->counter = t->ep->core_ep.tx.cntr;
	t->comp_flags = FI_SEND | (send->tagged ? FI_TAGGED : FI_MSG);
	t->send = *send;
	t->send.iov = cpr_trigger_copy(t, 0, send->iov, send->iov_cnt);
	t->send.flags &= ~FI_TRIGGER;
	return cpr_trigger_submit(t);
}

static ssize_t cpr_trigger_post_rma(struct cpr_trigger *t)
{
	return core_rma_post(t->ep->core, &t->rma);
}

static struct core_cntr *cpr_trigger_rma_counter(const struct cpr_trigger *t, bool write)
{
	return t->ep->core_ep.rma_cntr[write ? CORE_CNTR_WRITE : CORE_CNTR_READ];
}

ssize_t cpr_trigger_rma(struct cpr_ep *ep, const struct core_rma *rma)
{
	struct cpr_trigger *t;
	int ret = cpr_trigger_new(ep, rma->context, rma->flags, &t);

	if (ret)
		return ret;
	t->post = cpr_trigger_post_rma;
	t->counter = cpr_trigger_rma_counter(t, rma->write);
	t->comp_flags = FI_RMA | (rma->write ? FI_WRITE : FI_READ);
	t->rma = *rma;
	t->rma.iov = cpr_trigger_copy(t, 0, rma->iov, rma->iov_cnt);
	cpr_trigger_copy_rma(t, rma->rma_iov, rma->rma_cnt);
	t->rma.rma_iov = t->rma_iov;
	t->rma.flags &= ~FI_TRIGGER;
	return cpr_trigger_submit(t);
}

static ssize_t cpr_trigger_post_atomic(struct cpr_trigger *t)
{
	return core_atomic_post(t->ep->core, &t->atomic);
}

ssize_t cpr_trigger_atomic(struct cpr_ep *ep, const struct core_atomic *atomic)
{
	bool write = atomic->kind == CORE_ATOMIC_BASE;
	struct cpr_trigger *t;
	int ret = cpr_trigger_new(ep, atomic->context, atomic->flags, &t);

	if (ret)
		return ret;
	t->post = cpr_trigger_post_atomic;
	t->counter = cpr_trigger_rma_counter(t, write);
	t->comp_flags = FI_ATOMIC | (write ? FI_WRITE : FI_READ);
	t->atomic = *atomic;
	t->atomic.operand = cpr_trigger_copy(t, 0, atomic->operand, atomic->operand_cnt);
	t->atomic.compare = cpr_trigger_copy(t, 1, atomic->compare, atomic->compare_cnt);
	t->atomic.result = cpr_trigger_copy(t, 2, atomic->result, atomic->result_cnt);
	cpr_trigger_copy_rma(t, atomic->rma, atomic->rma_cnt);
	t->atomic.rma = t->rma_iov;
	t->atomic.flags &= ~FI_TRIGGER;
	return cpr_trigger_submit(t);
}

int cpr_trigger_cancel(struct cpr_ep *ep, const void *context)
{
	struct util_list *head = &ep->owner->triggers, *it;
	struct cpr_trigger *t;

	for (it = head->next; it != head; it = it->next) {
		t = UTIL_CONTAINER_OF(it, struct cpr_trigger, ep_link);
		if (t->context != context)
			continue;
		cpr_trigger_fail(t, -FI_ECANCELED);
		return 0;
	}
	return -FI_ENOENT;
}

void cpr_trigger_drop_all(struct cpr_ep *ep)
{
	struct util_list *first;

	while ((first = util_list_first(&ep->triggers)))
		cpr_trigger_free(UTIL_CONTAINER_OF(first, struct cpr_trigger, ep_link));
}

/* Sends of one buffer when the default flags have FI_TRIGGER, mapped to calls that take flags. */
static ssize_t cpr_trigger_msg_send(struct fid_ep *fid, const void *buf, size_t len, void *desc,
				    fi_addr_t dest, void *context)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf, .iov_len = len };

	return fi_sendv(fid, &iov, NULL, 1, dest, context);
}

static ssize_t cpr_trigger_msg_senddata(struct fid_ep *fid, const void *buf, size_t len, void *desc,
					uint64_t data, fi_addr_t dest, void *context)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf, .iov_len = len };
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = dest, .context = context, .data = data
	};

	return fi_sendmsg(fid, &msg, cpr_ep_of(fid)->tx_flags | FI_REMOTE_CQ_DATA);
}

static ssize_t cpr_trigger_tagged_send(struct fid_ep *fid, const void *buf, size_t len, void *desc,
				       fi_addr_t dest, uint64_t tag, void *context)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf, .iov_len = len };

	return fi_tsendv(fid, &iov, NULL, 1, dest, tag, context);
}

static ssize_t cpr_trigger_tagged_senddata(struct fid_ep *fid, const void *buf, size_t len,
					   void *desc, uint64_t data, fi_addr_t dest, uint64_t tag,
					   void *context)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf, .iov_len = len };
	struct fi_msg_tagged msg = { .msg_iov = &iov,
				     .iov_count = 1,
				     .addr = dest,
				     .tag = tag,
				     .context = context,
				     .data = data };

	return fi_tsendmsg(fid, &msg, cpr_ep_of(fid)->tx_flags | FI_REMOTE_CQ_DATA);
}

void cpr_trigger_pick(struct cpr_ep *ep)
{
	if (!(ep->caps & FI_SEND))
		return;
	if (ep->caps & FI_MSG) {
		ep->msg_ops.send = cpr_trigger_msg_send;
		ep->msg_ops.senddata = cpr_trigger_msg_senddata;
	}
	if (ep->caps & FI_TAGGED) {
		ep->tagged_ops.send = cpr_trigger_tagged_send;
		ep->tagged_ops.senddata = cpr_trigger_tagged_senddata;
	}
}
