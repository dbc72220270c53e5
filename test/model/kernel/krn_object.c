/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Destruction of objects.
 *
 * Each object is hidden under its locks, so that a peer that executes on it has left. Then the NIC
 * releases it, its unread events are removed, its pages become private again, and its entry is
 * freed.
 */
#include "model/kernel/krn_object.h"
#include "model/kernel/krn_chan.h"
#include "model/kernel/krn_ctx.h"
#include "model/kernel/krn_share.h"
#include "model/fabric/mdl_nic.h"
#include "model/fabric/mdl_segment.h"

void *krn_object_own(enum mdl_table table, uint32_t ctx, uint32_t handle)
{
	struct mdl_pd *head = mdl_table_find(table, handle); /* all objects begin alike */

	return head && head->proc == mdl_self.slot && head->ctx == ctx ? head : NULL;
}

void krn_object_pd_ref(uint32_t number, int more)
{
	struct mdl_pd *pd = mdl_table_find(MDL_TABLE_PD, number);

	if (pd)
		__atomic_fetch_add(&pd->refs, (uint32_t)more, __ATOMIC_RELAXED);
}

void krn_object_cq_ref(uint32_t number, int more)
{
	struct mdl_cq *cq = mdl_cq_find(number);

	if (cq)
		__atomic_fetch_add(&cq->refs, (uint32_t)more, __ATOMIC_RELAXED);
}

void krn_object_srq_ref(uint32_t number, int more)
{
	struct mdl_srq *srq = mdl_srq_find(number);

	if (srq)
		__atomic_fetch_add(&srq->refs, (uint32_t)more, __ATOMIC_RELAXED);
}

uint32_t krn_object_tag_pages(uint32_t tags)
{
	return (tags * MDL_TM_ENTRY_BYTES + MDL_PAGE - 1) / MDL_PAGE;
}

void krn_object_destroy_mr(struct mdl_mr *mr)
{
	mdl_table_hide(mr);
	krn_object_unpin(mr->user_addr, mr->length);
	krn_object_pd_ref(mr->pd, -1);
	mdl_table_release(mr);
}

uint32_t krn_object_destroy_qp(struct mdl_qp *qp)
{
	struct krn_ctx *ctx = krn_ctx_get(qp->ctx);
	uint32_t number = qp->number, read;

	nic_qp_destroy(qp);
	mdl_lock(&qp->sq_lock);
	mdl_lock(&qp->rq_lock);
	mdl_table_hide(qp);
	mdl_unlock(&qp->rq_lock);
	mdl_unlock(&qp->sq_lock);
	read = qp->async_raised - krn_chan_purge(qp->async_chan, number | KRN_ABOUT_QP);
	if (ctx && qp->uar_off)
		krn_ctx_bfreg_put(ctx, qp->uar_page, qp->uar_off);
	krn_unshare(qp->user_buf, qp->user_len);
	krn_unshare(qp->user_dbrec, qp->user_dbrec ? 8 : 0);
	krn_object_pd_ref(qp->pd, -1);
	krn_object_cq_ref(qp->send_cq, -1);
	krn_object_cq_ref(qp->recv_cq, -1);
	krn_object_srq_ref(qp->srq, -1);
	mdl_table_release(qp);
	return read;
}

uint32_t krn_object_destroy_srq(struct mdl_srq *srq)
{
	uint32_t number = srq->number, read;

	mdl_lock(&srq->tm_lock);
	mdl_lock(&srq->lock);
	mdl_table_hide(srq);
	mdl_unlock(&srq->lock);
	mdl_unlock(&srq->tm_lock);
	read = srq->async_raised - krn_chan_purge(srq->async_chan, number | KRN_ABOUT_SRQ);
	krn_unshare(srq->user_buf, srq->user_len);
	krn_unshare(srq->user_dbrec, 4);
	if (srq->tm_cnt)
		mdl_pages_free(srq->tm_list, krn_object_tag_pages(srq->tm_cnt));
	krn_object_pd_ref(srq->pd, -1);
	krn_object_cq_ref(srq->cq, -1);
	mdl_table_release(srq);
	return read;
}

void krn_object_destroy_cq(struct mdl_cq *cq, uint32_t *comp_read, uint32_t *async_read)
{
	uint32_t number = cq->number;

	mdl_lock(&cq->lock);
	mdl_table_hide(cq);
	mdl_unlock(&cq->lock);
	*comp_read = cq->events_raised - krn_chan_purge(cq->chan, number | KRN_ABOUT_CQ);
	*async_read = cq->async_raised - krn_chan_purge(cq->async_chan, number | KRN_ABOUT_CQ);
	krn_unshare(cq->user_buf, cq->user_len);
	krn_unshare(cq->user_dbrec, 8);
	mdl_table_release(cq);
}

void krn_object_destroy_all(uint32_t ctx)
{
	uint32_t at, comp, async;
	void *object;

	for (at = 0; (object = mdl_table_next(MDL_TABLE_QP, ctx, &at));)
		krn_object_destroy_qp(object);
	for (at = 0; (object = mdl_table_next(MDL_TABLE_SRQ, ctx, &at));)
		krn_object_destroy_srq(object);
	for (at = 0; (object = mdl_table_next(MDL_TABLE_CQ, ctx, &at));)
		krn_object_destroy_cq(object, &comp, &async);
	for (at = 0; (object = mdl_table_next(MDL_TABLE_MR, ctx, &at));)
		krn_object_destroy_mr(object);
	for (at = 0; (object = mdl_table_next(MDL_TABLE_PD, ctx, &at));) {
		mdl_table_hide(object);
		mdl_table_release(object);
	}
}
