/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Matching: masks, order, directed receives, and the three operations on a message before it is
 * received: peek, claim, discard.
 *
 * Pages: fi_tagged(3) (FLAGS), fi_msg(3), fi_getinfo(3) (FI_DIRECTED_RECV).
 */
#include "common/ft_data.h"
#include "common/ft_msg.h"
#include "functional/tagged_multi.h"

#include <rdma/fi_tagged.h>

#define TAG  0x500
#define LAST 0x600 /* tag after the numbered ones */

static void begin(struct ft_fab *fab, struct ft *ft, uint64_t caps)
{
	struct ft_want want = { .caps = FI_TAGGED | caps, .order = FI_ORDER_SAS };

	ft_fab_open(fab, ft, &want);
	ft_sync(ft);
}

static void end(struct ft_fab *fab)
{
	ft_quiet(fab, 0.02);
	ft_sync(fab->ft);
	ft_fab_close(fab);
}

/*
 * Sends numbered messages of `len` bytes from rank 0 to rank 1. They have arrived when it returns.
 */
static void send_numbered(struct ft_fab *fab, int cnt, size_t len, uint64_t tag_step)
{
	uint8_t *buf = ft_buf_new(len);

	for (int i = 0; fab->ft->rank == 0 && i < cnt; i++) {
		struct ft_msg msg = { .tagged = true,
				      .buf = buf,
				      .len = len,
				      .rank = 1,
				      .tag = TAG + (uint64_t)i * tag_step,
				      .data = (uint64_t)i };

		ft_fill(buf, len, (uint32_t)i);
		ft_send_wait(fab, FT_INJECT_DATA, msg);
	}
	ft_buf_free(buf);
	if (fab->ft->rank == 0)
		ft_send_wait(fab, FT_INJECT,
			     (struct ft_msg){ .tagged = true, .rank = 1, .tag = LAST });
	else
		ft_wait_good(fab, ft_recv_post(fab, true, LAST, NULL, 0));
	ft_sync(fab->ft);
}

static void take(struct ft_fab *fab, uint64_t tag, uint64_t ignore, size_t len, int number)
{
	uint8_t *buf = ft_buf_new(len);
	struct ft_msg msg = { .tagged = true,
			      .tag = tag,
			      .ignore = ignore,
			      .buf = buf,
			      .len = len,
			      .rank = -1,
			      .op = ft_op_new(fab, FT_ONE) };

	FT_POST(fab, ft_recv(fab, FT_PLAIN, &msg));
	ft_wait_good(fab, msg.op);
	FT_CHECK(msg.op->len == len, "%zu bytes", msg.op->len);
	FT_CHECK(ft_wrong(buf, len, (uint32_t)number) < 0, "not message %d", number);
	ft_buf_free(buf);
}

/* ---- masks and order ---- */

static void run_ignore(struct ft *ft)
{
	struct ft_fab fab;

	begin(&fab, ft, 0);
	send_numbered(&fab, 8, 16, 1); /* messages with tags TAG .. TAG+7 stay unexpected */
	if (ft->rank == 1) {
		take(&fab, TAG + 5, 0, 16, 5);
		take(&fab, TAG, 7, 16, 0);     /* the first of the remaining ones */
		take(&fab, TAG + 2, 1, 16, 2); /* 2 or 3: 2 came first */
		take(&fab, TAG + 2, 1, 16, 3);
		take(&fab, 0, UINT64_MAX, 16, 1);
		take(&fab, TAG, 7, 16, 4);
		take(&fab, 0, UINT64_MAX, 16, 6);
		take(&fab, TAG + 7, 0, 16, 7);
	}
	end(&fab);
}

/* Posted receives are searched in the order of posting. */
static void run_posted_order(struct ft *ft)
{
	static const struct {
		uint64_t tag, ignore;
		int takes;
	} rows[] = { { TAG + 3, 0, 3 }, { TAG, 7, 0 },      { TAG + 1, 0, 1 },
		     { TAG, 7, 2 },     { TAG + 2, 0, 10 }, { TAG, 15, 4 } };
	struct ft_op *ops[6];
	uint8_t bufs[6][16];
	struct ft_fab fab;

	begin(&fab, ft, 0);
	for (int i = 0; ft->rank == 1 && i < 6; i++) {
		struct ft_msg msg = { .tagged = true,
				      .tag = rows[i].tag,
				      .buf = bufs[i],
				      .ignore = rows[i].ignore,
				      .len = 16,
				      .rank = -1 };

		ops[i] = msg.op = ft_op_new(&fab, FT_ONE);
		FT_POST(&fab, ft_recv(&fab, FT_PLAIN, &msg));
	}
	ft_sync(ft);
	send_numbered(&fab, 5, 16, 1);
	for (int i = 0; ft->rank == 1 && i < 6; i++) {
		if (rows[i].takes == 10) {
			FT_OK(fi_cancel(&fab.ep->fid, &ops[i]->context));
			ft_wait_bad(&fab, ops[i], FI_ECANCELED);
			continue;
		}
		ft_wait_good(&fab, ops[i]);
		FT_CHECK(ft_wrong(bufs[i], 16, (uint32_t)rows[i].takes) < 0,
			 "receive %d did not take message %d", i, rows[i].takes);
	}
	end(&fab);
}

static void run_directed(struct ft *ft)
{
	uint8_t bufs[3][4], mine = (uint8_t)ft->rank;
	struct ft_op *ops[3];
	struct ft_fab fab;

	if (ft->opts->type == FI_EP_MSG)
		ft_notrun("a connected endpoint has one source");
	begin(&fab, ft, FI_DIRECTED_RECV);
	for (int i = 0; ft->rank == 0 && i < 3; i++) { /* from 2, from 1, from any source */
		struct ft_msg msg = { .tagged = true, .tag = TAG, .buf = bufs[i], .len = 4 };

		msg.rank = i == 2 ? -1 : 2 - i;
		ops[i] = msg.op = ft_op_new(&fab, FT_ONE);
		FT_POST(&fab, ft_recv(&fab, FT_PLAIN, &msg));
	}
	ft_sync(ft);
	for (int from = 1; from < 3; from++) { /* 1 sends two, then 2 sends one */
		for (int n = 0; ft->rank == from && n < 3 - from; n++)
			ft_send_wait(&fab, FT_INJECT,
				     (struct ft_msg){
					     .tagged = true, .tag = TAG, .buf = &mine, .len = 1 });
		for (int i = 2 - from; ft->rank == 0 && i < 3; i++)
			while (!ops[i]->seen)
				ft_again(&fab, ft_deadline(&fab));
		ft_sync(ft);
	}
	for (int i = 0; ft->rank == 0 && i < 3; i++) {
		ft_wait_good(&fab, ops[i]);
		FT_CHECK(bufs[i][0] == (i == 0 ? 2 : 1), "receive %d took one from %d", i,
			 bufs[i][0]);
	}
	end(&fab);
}

/* ---- peek, claim, discard ---- */

static struct ft_op *look(struct ft_fab *fab, uint64_t tag, uint64_t flags, struct ft_op *claimed)
{
	struct ft_op *op = claimed ? claimed : ft_op_new(fab, FT_ONE);
	struct fi_msg_tagged msg = { .tag = tag, .addr = FI_ADDR_UNSPEC, .context = &op->context };

	FT_POST(fab, fi_trecvmsg(fab->ep, &msg, flags));
	ft_wait(fab, op);
	return op;
}

/* Peeks until a message has arrived. Meanwhile another one may match. */
static struct ft_op *look_until(struct ft_fab *fab, uint64_t tag, uint64_t flags)
{
	double deadline = ft_deadline(fab);
	struct ft_op *op = look(fab, tag, flags, NULL);

	while (op->err == FI_ENOMSG && ft_now() < deadline) {
		ft_op_put(fab, op);
		op = look(fab, tag, flags, NULL);
	}
	FT_CHECK(!op->err, "a peek ends with %s", ft_err_name(op->err));
	return op;
}

static void look_none(struct ft_fab *fab, uint64_t tag, uint64_t flags)
{
	struct ft_op *op = look(fab, tag, flags, NULL);

	FT_CHECK(op->err == FI_ENOMSG, "a peek at nothing ends with %s", ft_err_name(op->err));
	ft_op_put(fab, op);
}

static void run_peek(struct ft *ft)
{
	size_t len = (size_t)ft->test->arg;
	struct ft_op *op;
	struct ft_fab fab;

	begin(&fab, ft, FI_SOURCE);
	if (ft->rank == 1)
		look_none(&fab, TAG, FI_PEEK);
	ft_sync(ft);
	send_numbered(&fab, 2, len, 1);
	for (int i = 0; ft->rank == 1 && i < 3; i++) { /* the message stays in the queue */
		op = look_until(&fab, TAG, FI_PEEK);
		FT_CHECK(op->len == len && op->tag == TAG, "len %zu, tag %#llx", op->len,
			 (unsigned long long)op->tag);
		if (fab.info->domain_attr->cq_data_size)
			FT_CHECK(op->flags & FI_REMOTE_CQ_DATA && op->data == 0, "no data");
		FT_CHECK(fab.av == NULL || op->src == fab.addr[0], "from another one");
		ft_op_put(&fab, op);
	}
	if (ft->rank == 1) {
		look_none(&fab, TAG + 9, FI_PEEK);
		take(&fab, TAG, 0, len, 0);
		look_none(&fab, TAG, FI_PEEK);
		take(&fab, TAG + 1, 0, len, 1);
	}
	end(&fab);
}

static void claim_take(struct ft_fab *fab, struct ft_op *claimed, size_t len, int number)
{
	uint8_t *buf = ft_buf_new(len);
	struct iovec iov = { .iov_base = buf, .iov_len = len };
	struct fi_msg_tagged msg = { .msg_iov = &iov,
				     .iov_count = 1,
				     .context = &claimed->context };

	claimed->seen = 0; /* the completion of the claim is a second one */
	FT_POST(fab, fi_trecvmsg(fab->ep, &msg, FI_CLAIM));
	ft_wait(fab, claimed);
	FT_CHECK(!claimed->err, "the claim ends with %s", ft_err_name(claimed->err));
	FT_CHECK(claimed->len == len, "%zu bytes", claimed->len);
	FT_CHECK(ft_wrong(buf, len, (uint32_t)number) < 0, "not message %d", number);
	ft_buf_check(buf, len, len);
	ft_op_put(fab, claimed);
	ft_buf_free(buf);
}

static void run_claim(struct ft *ft)
{
	size_t len = (size_t)ft->test->arg;
	struct ft_op *first, *second;
	struct ft_fab fab;

	begin(&fab, ft, 0);
	send_numbered(&fab, 4, len, 0); /* four with the same tag */
	if (ft->rank == 1) {
		first = look_until(&fab, TAG, FI_PEEK | FI_CLAIM);
		second = look_until(&fab, TAG, FI_PEEK | FI_CLAIM);
		take(&fab, TAG, 0, len, 2); /* other receives do not match a claimed message */
		claim_take(&fab, second, len, 1);
		claim_take(&fab, first, len, 0);
		take(&fab, TAG, 0, len, 3);
		look_none(&fab, TAG, FI_PEEK | FI_CLAIM);
	}
	end(&fab);
}

static void run_discard(struct ft *ft)
{
	size_t len = (size_t)ft->test->arg;
	struct ft_op *op;
	struct ft_fab fab;

	begin(&fab, ft, 0);
	send_numbered(&fab, 3, len, 0);
	if (ft->rank == 1) {
		op = look_until(&fab, TAG, FI_PEEK | FI_DISCARD);
		FT_CHECK(op->len == len, "%zu bytes", op->len);
		ft_op_put(&fab, op);
		op = look_until(&fab, TAG, FI_PEEK | FI_CLAIM);
		op->seen = 0;
		op = look(&fab, TAG, FI_CLAIM | FI_DISCARD, op);
		FT_CHECK(!op->err, "a claimed message is discarded with %s", ft_err_name(op->err));
		ft_op_put(&fab, op);
		take(&fab, TAG, 0, len, 2);
		look_none(&fab, TAG, FI_PEEK | FI_DISCARD);
	}
	end(&fab);
}

/* A claimed message that is not received is freed with its endpoint. */
static void run_claim_left(struct ft *ft)
{
	struct ft_fab fab;

	begin(&fab, ft, 0);
	send_numbered(&fab, 2, 100, 0);
	if (ft->rank == 1)
		ft_op_put(&fab, look_until(&fab, TAG, FI_PEEK | FI_CLAIM));
	end(&fab);
}

/* ---- FI_MATCH_COMPLETE ---- */

static struct ft_op *send_matching(struct ft_fab *fab, void *buf, size_t len, uint64_t flags)
{
	struct ft_msg msg = { .tagged = true,
			      .buf = buf,
			      .len = len,
			      .rank = !fab->ft->rank,
			      .tag = TAG,
			      .flags = FI_MATCH_COMPLETE | FI_COMPLETION | flags,
			      .op = ft_op_new(fab, FT_ONE) };

	FT_POST(fab, ft_send(fab, FT_BY_MSG, &msg));
	return msg.op;
}

/* Expects that a send still waits, before the peer takes the message, and then that it ends. */
static void match_sender(struct ft_fab *fab, size_t len, uint64_t flags)
{
	uint8_t *buf = ft_buf_new(len);
	struct ft_op *op;

	for (int i = 0; i < 4; i++) {
		ft_fill(buf, len, (uint32_t)i);
		op = send_matching(fab, buf, len, flags);
		ft_sync(fab->ft); /* the peer has seen the message, or claimed it */
		ft_quiet(fab, 0.02);
		FT_CHECK(!op->seen, "send %d is complete, and no receive was posted", i);
		ft_sync(fab->ft);
		ft_wait_good(fab, op);
	}
	ft_buf_free(buf);
}

/* Takes messages by a receive, a claim, and by discarding one with and without a claim. */
static void match_receiver(struct ft_fab *fab, size_t len)
{
	struct ft_op *op;

	for (int i = 0; i < 4; i++) {
		op = look_until(fab, TAG, FI_PEEK | (i & 1 ? FI_CLAIM : 0));
		FT_CHECK(op->len == len, "%zu bytes", op->len);
		ft_sync(fab->ft);
		ft_quiet(fab, 0.02);
		ft_sync(fab->ft);
		if (!(i & 1))
			ft_op_put(fab, op);
		if (i == 0)
			take(fab, TAG, 0, len, 0);
		else if (i == 1)
			claim_take(fab, op, len, 1);
		else if (i == 2)
			ft_op_put(fab, look(fab, TAG, FI_PEEK | FI_DISCARD, NULL));
		else {
			op->seen = 0;
			ft_op_put(fab, look(fab, TAG, FI_CLAIM | FI_DISCARD, op));
		}
	}
}

static void run_match(struct ft *ft)
{
	struct ft_want want = { .caps = FI_TAGGED, .tx_flags = FI_MATCH_COMPLETE };
	size_t len = (size_t)ft->test->arg;
	struct ft_fab fab;

	ft_fab_open(&fab, ft, &want);
	ft_sync(ft);
	if (ft->rank == 1)
		match_receiver(&fab, len);
	else if (len > fab.info->tx_attr->inject_size)
		match_sender(&fab, len, 0);
	else
		match_sender(&fab, len, FI_INJECT);
	end(&fab);
}

/* A receive that is too short matches, and its error is the receiver's alone. */
static void run_match_cut(struct ft *ft)
{
	struct ft_want want = { .caps = FI_TAGGED, .tx_flags = FI_MATCH_COMPLETE };
	size_t len = (size_t)ft->test->arg;
	uint8_t *buf = ft_buf_new(len);
	struct ft_fab fab;

	ft_fab_open(&fab, ft, &want);
	ft_sync(ft);
	if (ft->rank == 1)
		ft_wait_bad(&fab, ft_recv_post(&fab, true, TAG, buf, len / 2), FI_ETRUNC);
	else
		ft_wait_good(&fab, send_matching(&fab, buf, len, 0));
	end(&fab);
	ft_buf_free(buf);
}

/* Many sends wait in an order that is not the receiver's. */
static void run_match_many(struct ft *ft)
{
	struct ft_want want = { .caps = FI_TAGGED, .tx_flags = FI_MATCH_COMPLETE };
	struct ft_op *ops[100];
	uint64_t bufs[100];
	struct ft_fab fab;

	ft_fab_open(&fab, ft, &want);
	ft_sync(ft);
	for (int i = 0; i < 100; i++) {
		struct ft_msg msg = { .tagged = true,
				      .tag = TAG + (uint64_t)i,
				      .buf = &bufs[i],
				      .len = sizeof(bufs[i]),
				      .rank = 1,
				      .op = ft_op_new(&fab, FT_ONE) };

		ops[i] = msg.op;
		bufs[i] = (uint64_t)i;
		if (ft->rank == 0) {
			FT_POST(&fab, ft_send(&fab, FT_PLAIN, &msg));
			continue;
		}
		msg.rank = 0;
		msg.tag = TAG + 99 - (uint64_t)i;
		FT_POST(&fab, ft_recv(&fab, FT_PLAIN, &msg));
		ft_wait_good(&fab, ops[i]);
		FT_CHECK(bufs[i] == (uint64_t)(99 - i), "receive %d took %d", i, (int)bufs[i]);
	}
	for (int i = 0; ft->rank == 0 && i < 100; i++)
		ft_wait_good(&fab, ops[i]);
	end(&fab);
}

static const struct ft_case cases[] = {
	FT_CASE("ignore", run_ignore,
		"Ignored bits do not count; the first that matches is taken."),
	FT_CASE("posted-order", run_posted_order,
		"A message goes to the first posted receive that matches."),
	FT_CASE("directed", run_directed, "A directed receive takes messages of its source only.",
		.procs = 3),
	FT_CASE("peek-short", run_peek, "A peek tells of a message and leaves it, or FI_ENOMSG.",
		.arg = 40),
	FT_CASE("peek-empty", run_peek, "A peek tells of a message and leaves it, or FI_ENOMSG.",
		.arg = 0),
	FT_CASE("peek-long", run_peek, "A peek tells of a message and leaves it, or FI_ENOMSG.",
		.arg = 4000),
	FT_CASE("match-empty", run_match, "FI_MATCH_COMPLETE waits until a message is taken.",
		.arg = 0),
	FT_CASE("match-short", run_match, "FI_MATCH_COMPLETE waits until a message is taken.",
		.arg = 40),
	FT_CASE("match-kept", run_match, "FI_MATCH_COMPLETE waits until a message is taken.",
		.arg = 4000),
	FT_CASE("match-long", run_match, "FI_MATCH_COMPLETE waits until a message is taken.",
		.arg = 300000),
	FT_CASE("match-cut-short", run_match_cut, "A message that is cut has matched.", .arg = 40),
	FT_CASE("match-cut-long", run_match_cut, "A message that is cut has matched.",
		.arg = 300000),
	FT_CASE("match-many", run_match_many,
		"Sends with FI_MATCH_COMPLETE end in the order of their receives."),
	FT_CASE("claim-short", run_claim, "A claimed message is for the paired claim only.",
		.arg = 40),
	FT_CASE("claim-long", run_claim, "A claimed message is for the paired claim only.",
		.arg = 4000),
	FT_CASE("claim-left", run_claim_left, "A claim that is never redeemed ends in silence."),
	FT_CASE("discard", run_discard, "Peeked or claimed, a message may be discarded.",
		.arg = 1000),
	FT_CASE("multi", tagged_run_multi,
		"A multi-receive buffer takes messages until less than the minimum is left."),
	FT_CASE("multi-early", tagged_run_multi, "... and those that came before it.", .arg = 1),
};

int main(int argc, char **argv)
{
	return ft_main(argc, argv, "Messages are matched, looked at and gathered as the pages say.",
		       cases, FT_CNT(cases));
}
