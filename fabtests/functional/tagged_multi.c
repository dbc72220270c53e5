/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Many messages into one buffer: see tagged_multi.h. */
#include "functional/tagged_multi.h"

#include "common/ft_data.h"
#include "common/ft_msg.h"

struct multi {
	struct ft_fab *fab;
	uint8_t *buf;
	size_t len;
	int released, next;
	size_t high; /* end of the last message */
};

static size_t multi_len(int number)
{
	return (size_t)(number * 37 % 200);
}

static void on_multi(struct ft_op *op, void *arg)
{
	struct multi *m = arg;
	uint8_t *at = op->buf;

	if (op->flags & FI_MULTI_RECV)
		m->released++;
	FT_CHECK(!op->err, "a multi-receive ends with %s", ft_err_name(op->err));
	if (!(op->flags & FI_RECV))
		return;
	FT_CHECK(at >= m->buf && at + op->len <= m->buf + m->len, "outside of the buffer");
	FT_CHECK((size_t)(at - m->buf) >= m->high, "over an earlier message");
	m->high = (size_t)(at - m->buf) + op->len;
	FT_CHECK(op->len == multi_len(m->next), "message %d has %zu bytes", m->next, op->len);
	FT_CHECK(ft_wrong(at, op->len, (uint32_t)m->next) < 0, "message %d is wrong", m->next);
	m->next++;
}

static void multi_post(struct ft_fab *fab, struct multi *m, uint64_t flags)
{
	struct ft_msg msg = { .buf = m->buf,
			      .len = m->len,
			      .rank = -1,
			      .flags = FI_MULTI_RECV | flags,
			      .op = ft_op_new(fab, FT_MANY) };
	struct iovec iov = { .iov_base = m->buf, .iov_len = m->len };
	struct fi_msg one = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = &msg.op->context
	};

	msg.op->on = on_multi;
	msg.op->arg = m;
	FT_POST(fab, fi_recvmsg(fab->ep, &one, msg.flags));
}

void tagged_run_multi(struct ft *ft)
{
	struct ft_want want = { .caps = FI_MSG | FI_MULTI_RECV, .order = FI_ORDER_SAS };
	struct multi m = { .len = 4096 };
	size_t least = 512;
	uint8_t out[256];
	struct ft_fab fab;

	ft_fab_open(&fab, ft, &want);
	FT_OK(fi_setopt(&fab.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least,
			sizeof(least)));
	m.fab = &fab;
	m.buf = ft_buf_new(m.len);
	if (ft->rank == 1 && !ft->test->arg)
		multi_post(&fab, &m, 0);
	ft_sync(ft);
	for (int i = 0; ft->rank == 0 && i < 200; i++) {
		ft_fill(out, multi_len(i), (uint32_t)i);
		ft_send_wait(&fab, FT_INJECT,
			     (struct ft_msg){ .buf = out, .len = multi_len(i), .rank = 1 });
	}
	if (ft->rank == 1 && ft->test->arg)
		ft_pause(ft, 0.1); /* the messages are unexpected */
	while (ft->rank == 1 && m.next < 200) {
		double deadline = ft_deadline(&fab);

		if (ft->test->arg && !m.next)
			multi_post(&fab, &m, 0);
		while (!m.released && m.next < 200) {
			ft_turn(ft, ft_poll(&fab));
			FT_CHECK(ft_now() < deadline, "stuck after %d messages", m.next);
		}
		if (m.next == 200)
			break;
		FT_CHECK(m.released == 1, "released %d times", m.released);
		FT_CHECK(m.len - m.high < least + 8, "released with %zu bytes left",
			 m.len - m.high);
		ft_buf_check(m.buf, m.len, m.len);
		ft_buf_free(m.buf);
		m = (struct multi){ .fab = &fab, .len = m.len, .next = m.next };
		m.buf = ft_buf_new(m.len);
		multi_post(&fab, &m, 0);
	}
	ft_quiet(&fab, 0.02);
	ft_sync(ft);
	ft_fab_close(&fab);
}
