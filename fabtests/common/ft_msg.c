/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Implementation of ft_msg.h. */
#include "ft_msg.h"

#include <rdma/fi_tagged.h>

#define IOV_MAX_CNT 4

const char *const ft_way_names[FT_WAYS] = {
	[FT_PLAIN] = "send",    [FT_VECTOR] = "sendv",  [FT_BY_MSG] = "sendmsg",
	[FT_DATA] = "senddata", [FT_INJECT] = "inject", [FT_INJECT_DATA] = "injectdata",
};

static size_t iov_fill(struct iovec *iov, const struct ft_msg *msg, size_t limit)
{
	size_t cnt = limit < IOV_MAX_CNT ? limit : IOV_MAX_CNT, off = 0, piece;

	if (!cnt)
		cnt = 1;
	for (size_t i = 0; i < cnt; i++) {
		piece = i + 1 == cnt ? msg->len - off : i == 1 ? 0 : msg->len / (cnt + 1);
		iov[i].iov_base = (char *)msg->buf + off;
		iov[i].iov_len = piece;
		off += piece;
	}
	return cnt;
}

static fi_addr_t addr_of(const struct ft_fab *fab, const struct ft_msg *msg)
{
	return msg->rank < 0 ? FI_ADDR_UNSPEC : fab->addr[msg->rank];
}

static void *context_of(const struct ft_msg *msg)
{
	return msg->op ? &msg->op->context : NULL;
}

static ssize_t send_tagged(struct ft_fab *fab, enum ft_way way, const struct ft_msg *m,
			   const struct iovec *iov, size_t cnt)
{
	fi_addr_t to = addr_of(fab, m);
	struct fi_msg_tagged all = { .msg_iov = iov,
				     .iov_count = cnt,
				     .addr = to,
				     .tag = m->tag,
				     .context = context_of(m),
				     .data = m->data };

	switch (way) {
	case FT_VECTOR: return fi_tsendv(fab->ep, iov, NULL, cnt, to, m->tag, context_of(m));
	case FT_BY_MSG: return fi_tsendmsg(fab->ep, &all, m->flags);
	case FT_DATA:
		return fi_tsenddata(fab->ep, m->buf, m->len, NULL, m->data, to, m->tag,
				    context_of(m));
	case FT_INJECT: return fi_tinject(fab->ep, m->buf, m->len, to, m->tag);
	case FT_INJECT_DATA: return fi_tinjectdata(fab->ep, m->buf, m->len, m->data, to, m->tag);
	default: return fi_tsend(fab->ep, m->buf, m->len, NULL, to, m->tag, context_of(m));
	}
}

static ssize_t send_untagged(struct ft_fab *fab, enum ft_way way, const struct ft_msg *m,
			     const struct iovec *iov, size_t cnt)
{
	fi_addr_t to = addr_of(fab, m);
	struct fi_msg all = { .msg_iov = iov,
			      .iov_count = cnt,
			      .addr = to,
			      .context = context_of(m),
			      .data = m->data };

	switch (way) {
	case FT_VECTOR: return fi_sendv(fab->ep, iov, NULL, cnt, to, context_of(m));
	case FT_BY_MSG: return fi_sendmsg(fab->ep, &all, m->flags);
	case FT_DATA: return fi_senddata(fab->ep, m->buf, m->len, NULL, m->data, to, context_of(m));
	case FT_INJECT: return fi_inject(fab->ep, m->buf, m->len, to);
	case FT_INJECT_DATA: return fi_injectdata(fab->ep, m->buf, m->len, m->data, to);
	default: return fi_send(fab->ep, m->buf, m->len, NULL, to, context_of(m));
	}
}

ssize_t ft_send(struct ft_fab *fab, enum ft_way way, const struct ft_msg *msg)
{
	struct iovec iov[IOV_MAX_CNT];
	size_t cnt = iov_fill(iov, msg, fab->info->tx_attr->iov_limit);

	return msg->tagged ? send_tagged(fab, way, msg, iov, cnt)
			   : send_untagged(fab, way, msg, iov, cnt);
}

ssize_t ft_recv(struct ft_fab *fab, enum ft_way way, const struct ft_msg *m)
{
	struct iovec iov[IOV_MAX_CNT];
	size_t cnt = iov_fill(iov, m, fab->info->rx_attr->iov_limit);
	fi_addr_t from = addr_of(fab, m);
	struct fi_msg_tagged tagged = { .msg_iov = iov,
					.iov_count = cnt,
					.addr = from,
					.tag = m->tag,
					.ignore = m->ignore,
					.context = context_of(m) };
	struct fi_msg plain = {
		.msg_iov = iov, .iov_count = cnt, .addr = from, .context = context_of(m)
	};

	if (way == FT_BY_MSG)
		return m->tagged ? fi_trecvmsg(fab->ep, &tagged, m->flags)
				 : fi_recvmsg(fab->ep, &plain, m->flags);
	if (way == FT_VECTOR)
		return m->tagged ? fi_trecvv(fab->ep, iov, NULL, cnt, from, m->tag, m->ignore,
					     context_of(m))
				 : fi_recvv(fab->ep, iov, NULL, cnt, from, context_of(m));
	return m->tagged ? fi_trecv(fab->ep, m->buf, m->len, NULL, from, m->tag, m->ignore,
				    context_of(m))
			 : fi_recv(fab->ep, m->buf, m->len, NULL, from, context_of(m));
}

void ft_send_wait(struct ft_fab *fab, enum ft_way way, struct ft_msg msg)
{
	if (ft_way_injects(way)) {
		FT_POST(fab, ft_send(fab, way, &msg));
		return;
	}
	msg.op = ft_op_new(fab, FT_ONE);
	FT_POST(fab, ft_send(fab, way, &msg));
	ft_wait_good(fab, msg.op);
}

struct ft_op *ft_recv_post(struct ft_fab *fab, bool tagged, uint64_t tag, void *buf, size_t len)
{
	struct ft_msg msg = { .tagged = tagged, .tag = tag, .buf = buf, .len = len, .rank = -1 };

	msg.op = ft_op_new(fab, FT_ONE);
	FT_POST(fab, ft_recv(fab, FT_PLAIN, &msg));
	return msg.op;
}
