/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Every operation has exactly the completions that it may have: one, or none if it requested none,
 * whether it succeeded, failed or was cancelled. The accounting in ft_op.h ends a case at the first
 * surplus completion; the cases here count missing ones.
 *
 * Pages: fi_endpoint(3) (fi_ep_bind, fi_cancel, fi_close), fi_msg(3), fi_tagged(3), fi_cq(3),
 * fi_cntr(3).
 */
#include "common/ft_data.h"
#include "common/ft_msg.h"

#include <rdma/fi_tagged.h>

#define TAG   0xC0
#define MANY  64
#define QUIET 0.03

static void begin(struct ft_fab *fab, struct ft *ft, struct ft_want want)
{
	want.caps = FI_TAGGED | FI_MSG;
	ft_fab_open(fab, ft, &want);
	ft_sync(ft);
}

static void end(struct ft_fab *fab)
{
	ft_quiet(fab, QUIET);
	FT_CHECK(!ft_open_ops(fab), "%u operations never completed", ft_open_ops(fab));
	ft_sync(fab->ft);
	ft_fab_close(fab);
}

/* ---- requested completions ---- */

struct ask {
	enum ft_way way;
	uint64_t flags;
	enum ft_expect expect;
};

/* Rank 0 sends one message for each row, of each length; rank 1 receives them. */
static void run_asks(struct ft *ft, struct ft_want want, const struct ask *asks, size_t cnt)
{
	static const size_t lens[] = { 0, 8, 3000, 20000, 100000 };
	static uint8_t out[100000], in[100000];
	struct ft_fab fab;

	begin(&fab, ft, want);
	for (size_t i = 0; i < cnt * FT_CNT(lens); i++) {
		const struct ask *ask = &asks[i % cnt];
		struct ft_msg msg = { .tagged = i & 1,
				      .tag = TAG,
				      .buf = out,
				      .rank = 1,
				      .len = lens[i / cnt],
				      .flags = ask->flags };
		bool limited = ft_way_injects(ask->way) || ask->flags & FI_INJECT;

		if (limited && msg.len > fab.info->tx_attr->inject_size)
			continue;
		if (ft->rank == 1) {
			ft_wait_good(&fab, ft_recv_post(&fab, msg.tagged, TAG, in, sizeof(in)));
		} else {
			msg.op = ft_op_new(&fab, ask->expect);
			FT_POST(&fab, ft_send(&fab, ask->way, &msg));
			if (ask->expect == FT_ONE)
				ft_wait_good(&fab, msg.op);
		}
		ft_sync(ft);
	}
	end(&fab);
}

static void run_every_call(struct ft *ft)
{
	static const struct ask asks[] = {
		{ FT_PLAIN, 0, FT_ONE },          { FT_VECTOR, 0, FT_ONE },
		{ FT_DATA, 0, FT_ONE },           { FT_BY_MSG, 0, FT_ONE },
		{ FT_INJECT, 0, FT_NONE },        { FT_INJECT_DATA, 0, FT_NONE },
		{ FT_BY_MSG, FI_INJECT, FT_ONE }, { FT_BY_MSG, FI_COMPLETION, FT_ONE },
	};

	run_asks(ft, (struct ft_want){ 0 }, asks, FT_CNT(asks));
}

static void run_levels(struct ft *ft)
{
	static const struct ask asks[] = {
		{ FT_BY_MSG, FI_INJECT_COMPLETE, FT_ONE },
		{ FT_BY_MSG, FI_TRANSMIT_COMPLETE, FT_ONE },
		{ FT_BY_MSG, FI_DELIVERY_COMPLETE, FT_ONE },
		{ FT_BY_MSG, FI_DELIVERY_COMPLETE | FI_INJECT, FT_ONE },
		{ FT_BY_MSG, FI_TRANSMIT_COMPLETE | FI_REMOTE_CQ_DATA, FT_ONE },
	};

	run_asks(ft, (struct ft_want){ 0 }, asks, FT_CNT(asks));
}

static void run_match_level(struct ft *ft)
{
	static const struct ask asks[] = {
		{ FT_PLAIN, 0, FT_ONE },
		{ FT_VECTOR, 0, FT_ONE },
		{ FT_DATA, 0, FT_ONE },
		{ FT_INJECT, 0, FT_NONE },
		{ FT_INJECT_DATA, 0, FT_NONE },
		{ FT_BY_MSG, FI_MATCH_COMPLETE, FT_ONE },
		{ FT_BY_MSG, FI_MATCH_COMPLETE | FI_INJECT, FT_ONE },
		{ FT_BY_MSG, FI_MATCH_COMPLETE | FI_DELIVERY_COMPLETE, FT_ONE },
		{ FT_BY_MSG, FI_MATCH_COMPLETE | FI_REMOTE_CQ_DATA, FT_ONE },
		{ FT_BY_MSG, FI_MATCH_COMPLETE | FI_FENCE, FT_ONE },
		{ FT_BY_MSG, FI_MATCH_COMPLETE | FI_MORE, FT_ONE },
	};

	run_asks(ft, (struct ft_want){ .tx_flags = FI_MATCH_COMPLETE }, asks, FT_CNT(asks));
}

static void run_selective(struct ft *ft)
{
	static const struct ask asks[] = {
		{ FT_PLAIN, 0, FT_NONE },
		{ FT_VECTOR, 0, FT_NONE },
		{ FT_DATA, 0, FT_NONE },
		{ FT_BY_MSG, 0, FT_NONE },
		{ FT_BY_MSG, FI_COMPLETION, FT_ONE },
		{ FT_INJECT, 0, FT_NONE },
		{ FT_BY_MSG, FI_INJECT, FT_NONE },
		{ FT_BY_MSG, FI_INJECT | FI_COMPLETION, FT_ONE },
		{ FT_BY_MSG, FI_DELIVERY_COMPLETE, FT_NONE },
		{ FT_BY_MSG, FI_DELIVERY_COMPLETE | FI_COMPLETION, FT_ONE },
	};

	run_asks(ft, (struct ft_want){ .selective_tx = true }, asks, FT_CNT(asks));
}

static void run_selective_default(struct ft *ft)
{
	static const struct ask asks[] = {
		{ FT_PLAIN, 0, FT_ONE },   { FT_VECTOR, 0, FT_ONE },  { FT_DATA, 0, FT_ONE },
		{ FT_BY_MSG, 0, FT_NONE }, { FT_INJECT, 0, FT_NONE },
	};

	run_asks(ft, (struct ft_want){ .selective_tx = true, .tx_flags = FI_COMPLETION }, asks,
		 FT_CNT(asks));
}

/*
 * Receives without a completion request are silent; one with a request shows that those before it
 * have ended.
 */
static void run_selective_recv(struct ft *ft)
{
	uint8_t bufs[MANY], byte;
	struct ft_msg msg = { .tagged = ft->test->arg, .tag = TAG, .len = 1, .rank = 1 };
	struct ft_op *asked;
	struct ft_fab fab;

	begin(&fab, ft, (struct ft_want){ .selective_rx = true });
	if (ft->rank == 1) {
		for (int i = 0; i < MANY; i++) {
			bool last = i + 1 == MANY;

			msg.buf = &bufs[i];
			msg.rank = -1;
			msg.flags = last ? FI_COMPLETION : 0;
			msg.op = ft_op_new(&fab, last ? FT_ONE : FT_NONE);
			FT_POST(&fab, ft_recv(&fab, last || i & 1 ? FT_BY_MSG : FT_PLAIN, &msg));
		}
		asked = msg.op;
		ft_sync(ft);
		ft_wait_good(&fab, asked);
		for (int i = 0; i < MANY; i++)
			FT_CHECK(bufs[i] == (uint8_t)i, "receive %d took message %d", i, bufs[i]);
	} else {
		ft_sync(ft);
		msg.buf = &byte;
		for (int i = 0; i < MANY; i++) {
			byte = (uint8_t)i;
			ft_send_wait(&fab, FT_INJECT, msg);
		}
	}
	end(&fab);
}

/* ---- counters ---- */

static void await_count(struct ft_fab *fab, struct fid_cntr *cntr, uint64_t want)
{
	double deadline = ft_deadline(fab);

	while (fi_cntr_read(cntr) < want)
		FT_CHECK(ft_now() < deadline, "the counter stays at %llu, expected %llu",
			 (unsigned long long)fi_cntr_read(cntr), (unsigned long long)want);
}

static void run_counters(struct ft *ft)
{
	struct ft_want want = { .counters = true, .selective_tx = true, .selective_rx = true };
	struct ft_msg msg = { .tagged = true, .tag = TAG, .rank = !ft->rank };
	uint8_t out[64] = { 0 }, in[64];
	struct ft_fab fab;

	begin(&fab, ft, want);
	msg.buf = in;
	msg.len = sizeof(in);
	for (int i = 0; i < MANY; i++) {
		msg.rank = -1;
		msg.op = ft_op_new(&fab, FT_NONE);
		FT_POST(&fab, ft_recv(&fab, FT_PLAIN, &msg));
	}
	ft_sync(ft);
	msg.buf = out;
	msg.rank = !ft->rank;
	for (int i = 0; i < MANY; i++) {
		msg.op = ft_op_new(&fab, FT_NONE);
		FT_POST(&fab, ft_send(&fab, i & 1 ? FT_INJECT : FT_PLAIN, &msg));
	}
	await_count(&fab, fab.tx_cntr, MANY);
	await_count(&fab, fab.rx_cntr, MANY);
	FT_OK(fi_cntr_wait(fab.rx_cntr, MANY, 1000));
	ft_quiet(&fab, QUIET);
	FT_RET(fi_cntr_read(fab.tx_cntr), MANY);
	FT_RET(fi_cntr_read(fab.rx_cntr), MANY);
	FT_RET(fi_cntr_readerr(fab.tx_cntr), 0);
	FT_RET(fi_cntr_readerr(fab.rx_cntr), 0);
	end(&fab);
}

/* A failed receive counts on the error side, and ends a wait. */
static void run_counters_error(struct ft *ft)
{
	struct ft_msg msg = { .tagged = true, .tag = TAG, .rank = 1, .len = 64 };
	uint8_t out[64] = { 0 }, in[32];
	struct ft_op *op;
	struct ft_fab fab;

	begin(&fab, ft, (struct ft_want){ .counters = true });
	if (ft->rank == 1) {
		op = ft_recv_post(&fab, true, TAG, in, sizeof(in));
		ft_sync(ft);
		FT_CHECK(fi_cntr_wait(fab.rx_cntr, 1, 20000), "the wait saw no error");
		FT_RET(fi_cntr_readerr(fab.rx_cntr), 1);
		FT_RET(fi_cntr_read(fab.rx_cntr), 0);
		ft_wait_bad(&fab, op, FI_ETRUNC);
	} else {
		ft_sync(ft);
		msg.buf = out;
		ft_send_wait(&fab, FT_PLAIN, msg);
	}
	end(&fab);
}

/* ---- too long ---- */

static void truncate_one(struct ft_fab *fab, bool tagged, bool early, size_t len, size_t room)
{
	uint8_t *buf = ft_buf_new(len);
	struct ft_msg msg = { .tagged = tagged, .tag = TAG, .buf = buf, .len = len, .rank = 1 };
	struct ft_op *op;

	if (fab->ft->rank == 0) {
		if (!early)
			ft_sync(fab->ft);
		ft_fill(buf, len, 9);
		msg.op = ft_op_new(fab, FT_ONE);
		FT_POST(fab, ft_send(fab, FT_PLAIN, &msg));
		if (early)
			ft_sync(fab->ft);
		ft_wait(fab, msg.op); /* good or bad, once */
		ft_op_put(fab, msg.op);
	} else {
		if (early)
			ft_sync(fab->ft);
		op = ft_recv_post(fab, tagged, TAG, buf, room);
		if (!early)
			ft_sync(fab->ft);
		ft_wait(fab, op);
		FT_CHECK(op->err == FI_ETRUNC, "%zu bytes into %zu: %s", len, room,
			 ft_err_name(op->err));
		FT_CHECK(op->olen == len - room, "olen %zu, expected %zu", op->olen, len - room);
		FT_CHECK(op->len == room, "len %zu, expected %zu", op->len, room);
		FT_CHECK(ft_wrong(buf, room, 9) < 0, "what fits is wrong");
		ft_buf_check(buf, len, room);
		ft_op_put(fab, op);
	}
	ft_buf_free(buf);
	ft_sync(fab->ft);
}

static void run_truncated(struct ft *ft)
{
	static const size_t lens[] = { 1, 100, 8192, 9000, 40000, 300000 };
	struct ft_fab fab;

	begin(&fab, ft, (struct ft_want){ 0 });
	for (unsigned i = 0; i < FT_CNT(lens) * 4; i++) {
		size_t len = lens[i / 4];

		truncate_one(&fab, i & 1, i & 2, len, 0);
		truncate_one(&fab, i & 1, i & 2, len, len - 1);
		truncate_one(&fab, i & 1, i & 2, len, len / 2);
	}
	end(&fab);
}

/* ---- cancelled ---- */

static void run_cancel(struct ft *ft)
{
	struct ft_msg msg = { .tagged = ft->test->arg, .tag = TAG, .len = 1, .rank = 1 };
	struct ft_op *ops[MANY];
	uint8_t bufs[MANY], byte = 7;
	struct ft_fab fab;

	begin(&fab, ft, (struct ft_want){ 0 });
	msg.buf = &byte;
	if (ft->rank == 0) {
		ft_sync(ft);
		ft_send_wait(&fab, FT_INJECT, msg);
		ft_sync(ft);
		end(&fab);
		return;
	}
	for (int i = 0; i < MANY; i++)
		ops[i] = ft_recv_post(&fab, msg.tagged, TAG, &bufs[i], 1);
	for (int i = 0; i + 1 < MANY; i++)
		FT_OK(fi_cancel(&fab.ep->fid, &ops[MANY - 2 - i]->context));
	for (int i = 0; i + 1 < MANY; i++) {
		fi_cancel(&fab.ep->fid, &ops[i]->context); /* cancelling again changes nothing */
		ft_wait_bad(&fab, ops[i], FI_ECANCELED);
	}
	ft_quiet(&fab, QUIET);
	ft_sync(ft);
	ft_wait(&fab, ops[MANY - 1]); /* the message matches the remaining receive */
	fi_cancel(&fab.ep->fid, &ops[MANY - 1]->context); /* no longer cancellable */
	ft_wait_good(&fab, ops[MANY - 1]);
	FT_CHECK(bufs[MANY - 1] == 7, "the wrong byte");
	ft_sync(ft);
	end(&fab);
}

/*
 * Messages arrive while their receives are cancelled: each receive ends once, no message is lost.
 */
static void run_cancel_race(struct ft *ft)
{
	struct ft_msg msg = { .tagged = true, .tag = TAG, .len = 4, .rank = 1 };
	uint32_t bufs[MANY], number, next = 0;
	struct ft_op *ops[MANY];
	struct ft_fab fab;
	int rounds = ft->opts->iterations ? (int)ft->opts->iterations : 20;

	begin(&fab, ft, (struct ft_want){ 0 });
	for (int round = 0; round < rounds; round++) {
		msg.buf = &number;
		for (int i = 0; ft->rank == 0 && i < MANY; i++) {
			number = (uint32_t)i;
			ft_send_wait(&fab, FT_INJECT, msg);
		}
		if (ft->rank == 0) {
			ft_sync(ft);
			continue;
		}
		for (int i = 0; i < MANY; i++)
			ops[i] = ft_recv_post(&fab, true, TAG, &bufs[i], 4);
		for (int i = MANY - 1; i >= 0; i -= 2)
			fi_cancel(&fab.ep->fid, &ops[i]->context);
		next = 0;
		for (int i = 0; i < MANY; i++) {
			ft_wait(&fab, ops[i]);
			FT_CHECK(!ops[i]->err || ops[i]->err == FI_ECANCELED, "ended with %s",
				 ft_err_name(ops[i]->err));
			if (!ops[i]->err)
				FT_CHECK(bufs[i] == next++, "message %u is not the next", bufs[i]);
			ft_op_put(&fab, ops[i]);
		}
		while (next < MANY) {
			ft_wait_good(&fab, ft_recv_post(&fab, true, TAG, bufs, 4));
			FT_CHECK(bufs[0] == next++, "message %u is not the next", bufs[0]);
		}
		ft_sync(ft);
	}
	end(&fab);
}

/* ---- closed ---- */

static void run_close_drops(struct ft *ft)
{
	struct ft_fab fab;
	uint8_t bufs[MANY];

	begin(&fab, ft, (struct ft_want){ 0 });
	for (int i = 0; i < MANY; i++)
		ft_recv_post(&fab, i & 1, TAG, &bufs[i], 1);
	ft_sync(ft);
	if (ft->rank == 0) { /* the other end may get an error */
		FT_CLOSE(fab.ep);
		ft_quiet(&fab, QUIET); /* dropped without a completion */
	}
	ft_sync(ft);
	ft_fab_close(&fab);
}

/* Completions written before the endpoint is closed may be read afterwards, none twice. */
static void run_close_after(struct ft *ft)
{
	struct ft_msg msg = { .tagged = true, .tag = TAG, .rank = !ft->rank };
	struct ft_op *ops[2];
	struct ft_fab fab;

	begin(&fab, ft, (struct ft_want){ 0 });
	ops[0] = ft_recv_post(&fab, true, TAG, NULL, 0);
	ft_sync(ft);
	ops[1] = msg.op = ft_op_new(&fab, FT_ONE);
	FT_POST(&fab, ft_send(&fab, FT_PLAIN, &msg));
	ft_pause(ft, QUIET);
	ft_sync(ft);
	FT_CLOSE(fab.ep);
	for (double stop = ft_now() + QUIET; ft_now() < stop;)
		ft_poll(&fab);
	FT_CHECK(ops[0]->seen <= 1 && ops[1]->seen <= 1, "more than one completion");
	ft_sync(ft);
	ft_fab_close(&fab);
}

static void run_av_remove(struct ft *ft)
{
	struct ft_msg msg = { .tagged = true, .tag = TAG, .rank = 1, .len = 200000 };
	struct ft_op *ops[8];
	struct ft_fab fab;

	if (ft->opts->type == FI_EP_MSG)
		ft_notrun("a connected endpoint has no address vector");
	begin(&fab, ft, (struct ft_want){ 0 });
	if (ft->rank == 0) {
		msg.buf = calloc(1, msg.len);
		for (int i = 0; i < 8; i++) {
			ops[i] = msg.op = ft_op_new(&fab, FT_ONE);
			FT_POST(&fab, ft_send(&fab, FT_PLAIN, &msg));
		}
		FT_OK(fi_av_remove(fab.av, &fab.addr[1], 1, 0));
		for (int i = 0; i < 8; i++) {
			ft_wait(&fab, ops[i]); /* good or bad, once */
			ft_op_put(&fab, ops[i]);
		}
		free(msg.buf);
	}
	end(&fab);
}

static const struct ft_case cases[] = {
	FT_CASE("every-call", run_every_call,
		"Each operation writes one completion; an inject call writes none."),
	FT_CASE("levels", run_levels, "Whatever the completion level, there is one completion."),
	FT_CASE("match-level", run_match_level,
		"With FI_MATCH_COMPLETE, too, as a default and as a flag."),
	FT_CASE("selective", run_selective,
		"With FI_SELECTIVE_COMPLETION only FI_COMPLETION writes a completion."),
	FT_CASE("selective-default", run_selective_default,
		"Default flags hold for calls without flags; calls with flags override them."),
	FT_CASE("selective-recv-msg", run_selective_recv,
		"Receives without FI_COMPLETION are silent, and match in the order of posting."),
	FT_CASE("selective-recv-tagged", run_selective_recv,
		"Receives without FI_COMPLETION are silent, and match in the order of posting.",
		.arg = 1),
	FT_CASE("counters", run_counters,
		"Counters count every operation that ended well, completion or not."),
	FT_CASE("counters-error", run_counters_error,
		"A failed operation counts on the error side, which ends a wait."),
	FT_CASE("truncated", run_truncated,
		"A message longer than its buffer ends the receive once, with FI_ETRUNC, olen."),
	FT_CASE("cancel-msg", run_cancel,
		"A cancelled receive ends once, with FI_ECANCELED; a completed one is unchanged."),
	FT_CASE("cancel-tagged", run_cancel,
		"A cancelled receive ends once, with FI_ECANCELED; a completed one is unchanged.",
		.arg = 1),
	FT_CASE("cancel-race", run_cancel_race,
		"Cancelled or matched, a receive ends once, and no message is lost over it."),
	FT_CASE("close-drops", run_close_drops,
		"What is open when an endpoint is closed is dropped without a completion."),
	FT_CASE("close-after", run_close_after,
		"A completion that was written before the close is read at most once."),
	FT_CASE("av-remove", run_av_remove,
		"Removing an address ends what is under way there once and in bounded time."),
};

int main(int argc, char **argv)
{
	return ft_main(argc, argv, "Every operation has the completions it may have, and no more.",
		       cases, FT_CNT(cases));
}
