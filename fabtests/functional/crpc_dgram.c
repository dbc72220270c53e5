/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A datagram arrives whole or not at all, with its source, and its operations end as the pages
 * describe. Run with -e dgram.
 *
 * A datagram may be lost. On one host, with a receive posted and few in flight, none is: cases that
 * wait for one depend on it; cases that send without limit judge only those that arrive.
 *
 * Pages: fi_endpoint(3) (FI_EP_DGRAM), fi_msg(3), fi_cq(3), fi_av(3), fi_getinfo(3).
 */
#include "common/ft_data.h"
#include "common/ft_msg.h"

#include <rdma/fi_tagged.h>

#define FEW  16
#define MANY 2000

static void begin(struct ft_fab *fab, struct ft *ft, struct ft_want want)
{
	if (ft->opts->type != FI_EP_DGRAM)
		ft_notrun("this is about datagrams: -e dgram");
	want.caps |= FI_MSG;
	ft_fab_open(fab, ft, &want);
	ft_sync(ft);
}

static void end(struct ft_fab *fab)
{
	FT_CHECK(!ft_open_ops(fab), "%u operations never completed", ft_open_ops(fab));
	ft_sync(fab->ft);
	ft_fab_close(fab);
}

static size_t longest(const struct ft_fab *fab)
{
	return fab->info->ep_attr->max_msg_size;
}

/* Rank 0 sends `len` bytes by this call, rank 1 has a buffer of `room`. */
static void one(struct ft_fab *fab, enum ft_way send, enum ft_way recv, size_t len, size_t room)
{
	uint8_t *buf = ft_buf_new(room > len ? room : len);
	struct ft_msg msg = { .buf = buf, .len = len, .rank = 1 };
	size_t whole = len < room ? len : room;

	if (fab->ft->rank == 0) {
		ft_fill(buf, len, 7);
		ft_sync(fab->ft);
		ft_send_wait(fab, send, msg);
		memset(buf, 0x55, len); /* the buffer is the caller's again */
	} else if (fab->ft->rank == 1) {
		msg.len = room;
		msg.rank = -1;
		msg.op = ft_op_new(fab, FT_ONE);
		FT_POST(fab, ft_recv(fab, recv, &msg));
		ft_sync(fab->ft);
		ft_wait(fab, msg.op);
		FT_CHECK(msg.op->err == (len > room ? FI_ETRUNC : 0), "%s, %zu into %zu bytes: %s",
			 ft_way_names[send], len, room, ft_err_name(msg.op->err));
		FT_CHECK(msg.op->len == whole, "len %zu, not %zu", msg.op->len, whole);
		FT_CHECK((msg.op->flags & (FI_RECV | FI_MSG | FI_TAGGED)) == (FI_RECV | FI_MSG),
			 "flags %#llx", (unsigned long long)msg.op->flags);
		FT_CHECK(ft_wrong(buf, whole, 7) < 0, "byte %ld is wrong", ft_wrong(buf, whole, 7));
		ft_buf_check(buf, room, whole);
		if (len > room)
			FT_CHECK(msg.op->olen == len - room, "olen %zu", msg.op->olen);
		ft_op_put(fab, msg.op);
	}
	ft_sync(fab->ft);
	ft_buf_free(buf);
}

static void run_every_call(struct ft *ft)
{
	static const enum ft_way sends[] = { FT_PLAIN, FT_VECTOR, FT_BY_MSG, FT_INJECT };
	static const enum ft_way recvs[] = { FT_PLAIN, FT_VECTOR, FT_BY_MSG };
	struct ft_fab fab;

	begin(&fab, ft, (struct ft_want){ 0 });
	for (size_t s = 0; s < FT_CNT(sends); s++) {
		size_t max = longest(&fab), inject = fab.info->tx_attr->inject_size;
		size_t lens[] = { 0, 1, 60, 61, 64, 1000, max - 1, max };

		for (size_t i = 0; i < FT_CNT(lens); i++)
			if (lens[i] <= max && (sends[s] != FT_INJECT || lens[i] <= inject))
				one(&fab, sends[s], recvs[(s + i) % FT_CNT(recvs)], lens[i],
				    lens[i] + 33);
	}
	end(&fab);
}

/* Sends `len` bytes behind the prefix, whose contents do not matter. */
static ssize_t send_behind(struct ft_fab *fab, enum ft_way way, uint8_t *buf, size_t len)
{
	size_t prefix = fab->info->ep_attr->msg_prefix_size;
	struct iovec iov[2] = { { buf, prefix }, { buf + prefix, len } };
	struct fi_msg msg = { .msg_iov = iov, .iov_count = 2, .addr = fab->addr[1] };

	switch (way) {
	case FT_VECTOR: return fi_sendv(fab->ep, iov, NULL, 2, fab->addr[1], NULL);
	case FT_BY_MSG: return fi_sendmsg(fab->ep, &msg, 0);
	case FT_INJECT: return fi_inject(fab->ep, buf, prefix + len, fab->addr[1]);
	default: return fi_send(fab->ep, buf, prefix + len, NULL, fab->addr[1], NULL);
	}
}

static void one_behind(struct ft_fab *fab, enum ft_way way, size_t len, size_t room)
{
	size_t prefix = fab->info->ep_attr->msg_prefix_size, whole = len < room ? len : room;
	uint8_t *buf = ft_buf_new(prefix + (room > len ? room : len));
	struct ft_op *op;

	if (fab->ft->rank == 0) {
		memset(buf, 0x33, prefix);
		ft_fill(buf + prefix, len, 7);
		ft_sync(fab->ft);
		FT_POST(fab, send_behind(fab, way, buf, len));
	} else {
		op = ft_recv_post(fab, false, 0, buf, prefix + room);
		ft_sync(fab->ft);
		ft_wait(fab, op);
		FT_CHECK(op->err == (len > room ? FI_ETRUNC : 0), "%s, %zu into %zu bytes: %s",
			 ft_way_names[way], len, room, ft_err_name(op->err));
		FT_CHECK(op->len == prefix + whole, "len %zu, without the prefix?", op->len);
		FT_CHECK(op->err != FI_ETRUNC || op->olen == len - room, "olen %zu", op->olen);
		FT_CHECK(ft_wrong(buf + prefix, whole, 7) < 0, "byte %ld is wrong",
			 ft_wrong(buf + prefix, whole, 7));
		ft_op_put(fab, op);
	}
	ft_sync(fab->ft);
	ft_buf_free(buf);
}

static void run_prefix(struct ft *ft)
{
	static const enum ft_way ways[] = { FT_PLAIN, FT_VECTOR, FT_BY_MSG, FT_INJECT };
	struct ft_fab fab;
	size_t max, prefix;

	begin(&fab, ft, (struct ft_want){ .mode = FI_MSG_PREFIX, .selective_tx = true });
	if (!(fab.info->mode & FI_MSG_PREFIX))
		ft_notrun("messages have no prefix");
	prefix = fab.info->ep_attr->msg_prefix_size;
	FT_CHECK(prefix && prefix % 8 == 0, "a prefix of %zu bytes", prefix);
	for (size_t i = 0; i < FT_CNT(ways); i++) {
		max = ways[i] == FT_INJECT ? fab.info->tx_attr->inject_size : longest(&fab);
		one_behind(&fab, ways[i], 0, 0);
		one_behind(&fab, ways[i], 1, 64);
		one_behind(&fab, ways[i], 200, 199);
		one_behind(&fab, ways[i], max, max);
	}
	end(&fab);
}

static void run_truncated(struct ft *ft)
{
	struct ft_fab fab;

	begin(&fab, ft, (struct ft_want){ 0 });
	one(&fab, FT_PLAIN, FT_PLAIN, 100, 99);
	one(&fab, FT_PLAIN, FT_PLAIN, 100, 0);
	one(&fab, FT_VECTOR, FT_VECTOR, longest(&fab), 64);
	one(&fab, FT_PLAIN, FT_PLAIN, 100, 100);
	end(&fab);
}

static void run_too_long(struct ft *ft)
{
	struct ft_fab fab;
	uint8_t *buf;

	begin(&fab, ft, (struct ft_want){ 0 });
	buf = ft_buf_new(longest(&fab) + 1);
	if (ft->rank == 0) {
		size_t len = longest(&fab) + 1;

		FT_REFUSED(fi_send(fab.ep, buf, len, NULL, fab.addr[1], NULL));
		FT_REFUSED(fi_inject(fab.ep, buf, len, fab.addr[1]));
	}
	one(&fab, FT_PLAIN, FT_PLAIN, 8, 8);
	ft_buf_free(buf);
	end(&fab);
}

/* Features that datagrams cannot have are not offered at all. */
static void run_not_offered(struct ft *ft)
{
	struct ft_fab fab;
	char buf[8] = "";

	begin(&fab, ft, (struct ft_want){ 0 });
	FT_REFUSED(fi_tsend(fab.ep, buf, 1, NULL, fab.addr[0], 1, NULL));
	FT_REFUSED(fi_trecv(fab.ep, buf, 1, NULL, FI_ADDR_UNSPEC, 1, 0, NULL));
	if (!fab.info->domain_attr->cq_data_size)
		FT_REFUSED(fi_senddata(fab.ep, buf, 1, NULL, 1, fab.addr[0], NULL));
	FT_REFUSED(fi_send(fab.ep, buf, 1, NULL, fab.addr[0] + 1000, NULL));
	end(&fab);
}

/* Every rank but 0 sends to it; rank 3 is in no address vector. */
static void run_source(struct ft *ft)
{
	uint8_t in[FEW] = { 0 };
	struct ft_fab fab;
	int from;

	begin(&fab, ft, (struct ft_want){ .caps = FI_SOURCE });
	if (ft->rank == 0)
		FT_OK(fi_av_remove(fab.av, &fab.addr[3], 1, 0));
	for (from = 1; from < ft->procs; from++) {
		struct ft_op *op = ft->rank ? NULL : ft_recv_post(&fab, false, 0, in, sizeof(in));

		ft_sync(ft);
		if (ft->rank == from)
			ft_send_wait(&fab, FT_PLAIN,
				     (struct ft_msg){ .buf = &from, .len = 1, .rank = 0 });
		if (!op)
			continue;
		ft_wait(&fab, op);
		FT_CHECK(!op->err && in[0] == from, "%s, from %u instead of %d",
			 ft_err_name(op->err), in[0], from);
		FT_CHECK(op->src == (from == 3 ? FI_ADDR_NOTAVAIL : fab.addr[from]),
			 "rank %d is said to be %llu", from, (unsigned long long)op->src);
		ft_op_put(&fab, op);
	}
	end(&fab);
}

struct chunk {
	struct ft_op *op;
	uint8_t *base;
	size_t at; /* bytes taken by messages */
	unsigned seen;
	bool spent;
};

static void on_chunk(struct ft_op *op, void *arg)
{
	struct chunk *c = arg;

	FT_CHECK(!op->err, "a buffer for many messages: %s", ft_err_name(op->err));
	if (op->len) {
		FT_CHECK(op->buf == c->base + c->at, "message %u is not behind the one before",
			 c->seen);
		FT_CHECK(ft_wrong(op->buf, op->len, 7) < 0, "message %u is not whole", c->seen);
		c->at += op->len;
		c->seen++;
	}
	c->spent |= !!(op->flags & FI_MULTI_RECV);
}

static void run_multi_recv(struct ft *ft)
{
	uint8_t *room = ft_buf_new(1000), out[100];
	struct chunk c = { .base = room };
	size_t least = 64;
	struct ft_fab fab;

	begin(&fab, ft, (struct ft_want){ .caps = FI_MULTI_RECV });
	ft_fill(out, sizeof(out), 7);
	FT_OK(fi_setopt(&fab.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least,
			sizeof(least)));
	if (ft->rank == 1) {
		struct iovec iov = { room, 1000 };
		struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC };

		c.op = ft_op_new(&fab, FT_MANY);
		c.op->on = on_chunk;
		c.op->arg = &c;
		msg.context = &c.op->context;
		FT_OK(fi_recvmsg(fab.ep, &msg, FI_MULTI_RECV));
	}
	for (unsigned i = 1; i <= 10; i++) {
		double last = ft_deadline(&fab);

		ft_sync(ft);
		if (ft->rank == 0)
			ft_send_wait(&fab, FT_PLAIN,
				     (struct ft_msg){ .buf = out, .len = 95 + i % 5, .rank = 1 });
		while (ft->rank == 1 && c.seen < i)
			ft_again(&fab, last);
	}
	if (ft->rank == 1) {
		FT_CHECK(c.spent, "less than %zu bytes are left, and the buffer is not given back",
			 least);
		ft_op_put(&fab, c.op);
	}
	end(&fab);
	ft_buf_free(room);
}

static void run_cancel(struct ft *ft)
{
	uint8_t in[2][8];
	struct ft_fab fab;

	begin(&fab, ft, (struct ft_want){ 0 });
	if (ft->rank == 1) {
		struct ft_op *first = ft_recv_post(&fab, false, 0, in[0], 8);
		struct ft_op *second = ft_recv_post(&fab, false, 0, in[1], 8);

		FT_OK(fi_cancel(&fab.ep->fid, &first->context));
		ft_wait_bad(&fab, first, FI_ECANCELED);
		ft_sync(ft);
		ft_wait_good(&fab, second);
	} else {
		ft_sync(ft);
		ft_send_wait(&fab, FT_PLAIN, (struct ft_msg){ .buf = in, .len = 4, .rank = 1 });
	}
	end(&fab);
}

/* Datagrams of a flood arrive whole, and at most as often as they were sent. */
static void run_flood(struct ft *ft)
{
	static uint8_t in[FEW][512], out[512], seen[MANY];
	struct ft_op *ops[FEW];
	struct ft_fab fab;
	unsigned cnt = 0;
	double until;

	begin(&fab, ft, (struct ft_want){ .selective_tx = true });
	if (ft->rank == 0) {
		ft_sync(ft);
		for (uint32_t i = 0; i < MANY; i++) {
			struct ft_msg msg = { .buf = out, .len = 4 + i % 509, .rank = 1 };

			ft_fill(out, sizeof(out), i);
			memcpy(out, &i, sizeof(i));
			if (msg.len > longest(&fab))
				msg.len = longest(&fab);
			msg.op = ft_op_new(&fab, FT_NONE);
			FT_POST(&fab, ft_send(&fab, FT_PLAIN, &msg));
			ft_op_put(&fab, msg.op);
		}
		ft_sync(ft);
		end(&fab);
		return;
	}
	for (int k = 0; k < FEW; k++)
		ops[k] = ft_recv_post(&fab, false, 0, in[k], sizeof(in[k]));
	ft_sync(ft);
	/*
	 * One for each posted receive arrive for sure; others may arrive within a moment.
	 */
	for (until = ft_deadline(&fab); ft_now() < until && cnt < MANY;) {
		ft_poll(&fab);
		for (int k = 0; k < FEW; k++) {
			uint32_t key;

			if (!ops[k]->seen)
				continue;
			FT_CHECK(!ops[k]->err && ops[k]->len >= 4, "%s", ft_err_name(ops[k]->err));
			memcpy(&key, in[k], sizeof(key));
			FT_CHECK(key < MANY && !seen[key], "message %u, again or never sent", key);
			FT_CHECK(ft_wrong_from(in[k] + 4, ops[k]->len - 4, key, 4) < 0,
				 "message %u is not whole", key);
			seen[key] = 1;
			if (++cnt == FEW)
				until = ft_now() + 0.3;
			ft_op_put(&fab, ops[k]);
			ops[k] = ft_recv_post(&fab, false, 0, in[k], sizeof(in[k]));
		}
	}
	FT_CHECK(cnt >= FEW, "%u of %d messages came", cnt, MANY);
	ft_sync(ft);
	for (int k = 0; k < FEW; k++) {
		fi_cancel(&fab.ep->fid, &ops[k]->context); /* unless it has completed meanwhile */
		ft_wait(&fab, ops[k]);
		ft_op_put(&fab, ops[k]);
	}
	end(&fab);
}

static void run_counters(struct ft *ft)
{
	uint8_t buf[8] = { 0 };
	struct ft_fab fab;

	begin(&fab, ft, (struct ft_want){ .counters = true });
	for (int i = 0; i < FEW; i++) {
		struct ft_op *op = ft->rank ? ft_recv_post(&fab, false, 0, buf, 8) : NULL;

		ft_sync(ft);
		if (op)
			ft_wait_good(&fab, op);
		else
			ft_send_wait(&fab, i % 2 ? FT_INJECT : FT_PLAIN,
				     (struct ft_msg){ .buf = buf, .len = 8, .rank = 1 });
	}
	if (ft->rank == 0)
		FT_OK(fi_cntr_wait(fab.tx_cntr, FEW, 30000));
	else
		FT_OK(fi_cntr_wait(fab.rx_cntr, FEW, 30000));
	FT_CHECK(fi_cntr_read(fab.tx_cntr) == (ft->rank ? 0 : FEW), "sends are counted wrong");
	end(&fab);
}

/* The peer sends to a closed endpoint: there is no error and no effect. */
static void run_close(struct ft *ft)
{
	uint8_t buf[8] = { 0 };
	struct ft_fab fab;

	begin(&fab, ft, (struct ft_want){ 0 });
	if (ft->rank == 1) {
		for (int i = 0; i < FEW; i++)
			FT_OK(fi_recv(fab.ep, buf, 8, NULL, FI_ADDR_UNSPEC, NULL));
		ft_fab_close(&fab);
		ft_sync(ft);
		ft_sync(ft);
		return;
	}
	ft_sync(ft);
	for (int i = 0; i < FEW; i++)
		ft_send_wait(&fab, FT_PLAIN, (struct ft_msg){ .buf = buf, .len = 8, .rank = 1 });
	ft_sync(ft);
	ft_fab_close(&fab);
}

static const struct ft_case cases[] = {
	FT_CASE("every-call", run_every_call,
		"A message of any length up to max_msg_size comes whole, whatever call sends it."),
	FT_CASE("prefix", run_prefix,
		"With FI_MSG_PREFIX a message is behind msg_prefix_size bytes, beyond limits."),
	FT_CASE("truncated", run_truncated,
		"A message longer than its buffer ends the receive once, with FI_ETRUNC, olen."),
	FT_CASE("too-long", run_too_long, "A message above max_msg_size is refused at once."),
	FT_CASE("not-offered", run_not_offered, "What was not offered is refused."),
	FT_CASE("source", run_source,
		"With FI_SOURCE a completion names the sender, or FI_ADDR_NOTAVAIL for a stranger.",
		.procs = 4),
	FT_CASE("multi-recv", run_multi_recv,
		"One buffer takes message after message until less than the minimum is left."),
	FT_CASE("cancel", run_cancel, "A cancelled receive ends once, with FI_ECANCELED."),
	FT_CASE("flood", run_flood, "What arrives is whole and was sent, however much is sent."),
	FT_CASE("counters", run_counters, "Counters count what ended well, injected or not."),
	FT_CASE("close", run_close, "An endpoint may be closed with receives posted."),
};

int main(int argc, char **argv)
{
	return ft_main(argc, argv, "A datagram comes whole or not at all.", cases, FT_CNT(cases));
}
