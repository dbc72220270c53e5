/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Datagrams through libibverbs: send, poll, release (vb_ud.h). */
#include "dev/verbs/vb_ud.h"

#include <rdma/fi_errno.h>

#include "dev/ib/ib_wc.h"
#include "dev/verbs/vb_poll.h"

const struct dev_dgram_ops vb_dgram_ops = {
	.open = vb_ud_open,
	.close = vb_ud_close,
	.describe = ib_ud_describe,
	.resolve = vb_ud_resolve,
	.forget = vb_ud_forget,
	.send = vb_ud_send,
	.poll = vb_ud_poll,
	.release = vb_ud_release,
	.wait_fd = ib_ud_wait_fd,
	.arm = vb_ud_arm,
	.disarm = vb_ud_disarm,
};

static void vb_ud_end(struct vb_ud *ud, enum ibv_wc_status status, unsigned vendor)
{
	if (ud->ib.status) /* flushed after the first error */
		return;
	ib_ud_log(&ud->ib, ibv_wc_status_str(status), vendor, ib_wc_advice(status));
	ud->ib.status = ib_wc_errno(status);
}

static int vb_ud_gather(struct vb_ud *ud, unsigned i, const struct dev_dgram_out *out,
			bool is_inline)
{
	int cnt = 0;

	for (unsigned p = 0; p < DEV_DGRAM_PIECES; p++) {
		if (!out->len[p])
			continue;
		ud->sges[i][cnt++] = (struct ibv_sge){
			.addr = (uintptr_t)out->base[p],
			.length = out->len[p],
			.lkey = is_inline ? 0 : ib_user_lkey(out->mem[p]),
		};
	}
	return cnt;
}

/* Builds work request i of the chain. */
static void vb_ud_build(struct vb_ud *ud, unsigned i, const struct dev_dgram_out *out)
{
	const struct vb_ud_ah *ah = (const struct vb_ud_ah *)out->to;
	bool is_inline = dev_dgram_out_len(out) <= ud->ib.base.inline_max;
	bool report = out->flags & DEV_DGRAM_REPORT || ++ud->tx_silent >= ud->signal_interval;
	struct ibv_send_wr *wr = &ud->wrs[i];

	wr->wr_id = ((uint64_t)++ud->ib.base.tx_posted << 1) | VB_UD_SEND;
	wr->next = wr + 1;
	wr->num_sge = vb_ud_gather(ud, i, out, is_inline);
	wr->send_flags = (is_inline ? IBV_SEND_INLINE : 0) | (report ? IBV_SEND_SIGNALED : 0);
	wr->wr.ud.ah = ah->obj;
	wr->wr.ud.remote_qpn = ah->qpn;
	wr->wr.ud.remote_qkey = ah->qkey;
	if (report)
		ud->tx_silent = 0;
}

static bool vb_ud_post(struct vb_ud *ud, unsigned cnt)
{
	struct ibv_send_wr *bad;

	ud->wrs[cnt - 1].next = NULL;
	if (!ibv_post_send(ud->ib.qp, ud->wrs, &bad))
		return true;
	/* The room was counted, so the queue pair is broken. */
	vb_ud_end(ud, IBV_WC_GENERAL_ERR, 0);
	return false;
}

int vb_ud_send(struct dev_dgram *base, const struct dev_dgram_out *out, unsigned cnt)
{
	struct vb_ud *ud = (struct vb_ud *)base;
	uint32_t room = ud->tx_depth - (base->tx_posted - base->tx_done);
	unsigned done = 0, n;

	if (cnt > room)
		cnt = room;
	if (!cnt && !ud->ib.status)
		return -FI_EAGAIN;
	while (done < cnt && !ud->ib.status) {
		for (n = 0; n < VB_UD_BURST && done < cnt; n++)
			vb_ud_build(ud, n, &out[done++]);
		vb_ud_post(ud, n);
	}
	return ud->ib.status ? ud->ib.status : (int)done;
}

void vb_ud_post_free(struct vb_ud *ud)
{
	struct ibv_recv_wr *bad;

	ud->free_last->next = NULL;
	if (ibv_post_recv(ud->ib.qp, ud->free_first, &bad))
		vb_ud_end(ud, IBV_WC_GENERAL_ERR, 0);
	ud->rx_posted += ud->rx_free;
	ud->rx_free = 0;
}

void vb_ud_release(struct dev_dgram *base, uint32_t slot)
{
	struct vb_ud *ud = (struct vb_ud *)base;
	struct ibv_recv_wr *wr = &ud->slots[slot].wr;

	base->rx_retained--;
	if (ud->rx_free++)
		ud->free_last->next = wr;
	else
		ud->free_first = wr;
	ud->free_last = wr;
	if (ud->rx_free >= ud->rx_bulk || ud->rx_posted < ud->rx_bulk)
		vb_ud_post_free(ud);
}

static bool vb_ud_take(struct vb_ud *ud, const struct ibv_wc *wc, struct dev_dgram_in *in)
{
	uint32_t slot = (uint32_t)(wc->wr_id >> 1), len = wc->byte_len - IB_UD_GRH_LEN;
	uint8_t *at = ib_ud_slot(&ud->ib, slot);

	ud->rx_posted--;
	ud->ib.base.rx_retained++;
	if (UTIL_UNLIKELY(wc->opcode != IBV_WC_RECV || wc->wc_flags & IBV_WC_WITH_IMM ||
			  len > ud->ib.base.mtu)) {
		vb_ud_release(&ud->ib.base, slot); /* not sent by copyrpc */
		return false;
	}
	in->data = at + IB_UD_DATA_OFF;
	in->len = len;
	in->slot = slot;
	ib_ud_from(&ud->ib, at, wc->src_qp, wc->slid, wc->wc_flags & IBV_WC_GRH, &in->from);
	return true;
}

static bool vb_ud_fill(struct vb_ud *ud)
{
	int cnt = ibv_poll_cq(ud->ib.cq_obj, VB_POLL_BATCH, ud->wc);

	if (UTIL_UNLIKELY(cnt < 0)) {
		vb_ud_end(ud, IBV_WC_FATAL_ERR, 0);
		cnt = 0;
	}
	ud->wc_at = 0;
	ud->wc_cnt = (uint32_t)cnt;
	return cnt > 0;
}

int vb_ud_poll(struct dev_dgram *base, struct dev_dgram_in *in, unsigned cnt)
{
	struct vb_ud *ud = (struct vb_ud *)base;
	unsigned n = 0;

	while (n < cnt && (ud->wc_at < ud->wc_cnt || vb_ud_fill(ud))) {
		const struct ibv_wc *wc = &ud->wc[ud->wc_at++];

		if (UTIL_UNLIKELY(wc->status != IBV_WC_SUCCESS))
			vb_ud_end(ud, wc->status, wc->vendor_err);
		else if (wc->wr_id & VB_UD_SEND)
			base->tx_done = (uint32_t)(wc->wr_id >> 1);
		else
			n += vb_ud_take(ud, wc, &in[n]);
	}
	if (!n && UTIL_UNLIKELY(ib_async_is_due(&ud->dev->async)))
		vb_dev_event_cold(ud->dev);
	return n || !ud->ib.status ? (int)n : ud->ib.status;
}

/* Reads the events that have come, so that the descriptor is no longer readable. */
void vb_ud_disarm(struct dev_dgram *base)
{
	struct vb_ud *ud = (struct vb_ud *)base;
	struct ibv_cq *cq;
	void *context;

	while (!ibv_get_cq_event(ud->ib.chan, &cq, &context))
		ud->event_cnt++;
	if (ud->event_cnt)
		ibv_ack_cq_events(ud->ib.cq_obj, ud->event_cnt);
	ud->event_cnt = 0;
}

int vb_ud_arm(struct dev_dgram *base)
{
	struct vb_ud *ud = (struct vb_ud *)base;

	vb_ud_disarm(base);
	if (ibv_req_notify_cq(ud->ib.cq_obj, 0) || ud->ib.status)
		return -FI_EAGAIN; /* the caller polls */
	return ud->wc_at < ud->wc_cnt || vb_ud_fill(ud) ? -FI_EAGAIN : 0;
}
