/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Random operations of two or three processes, with all promises of the pages checked.
 *
 *   contents   every byte follows from sender, receiver and number of the message
 *   once       the accounting of ft_op.h; and every message sent is received, exactly once
 *   order      (FI_ORDER_SAS) of two messages from one sender that match one receive, the
 *              earlier receive gets the earlier message; tagged and untagged ones
 *              apart
 *   cancel     a cancelled receive takes no message, or is not cancelled
 *
 * It runs in rounds. In a round each process posts receives (exact tags, masks, from one or any
 * source), sends by all calls, cancels, and polls now and then, in an order that the seed
 * determines. Then the processes exchange the numbers of sent messages; receives for any tag take
 * the remaining messages, the rest is cancelled, and the order is judged for all pairs of receives
 * of the round.
 *
 * A run is repeated by its seed: the program prints it when a case fails, --seed takes it. The
 * timing of other processes is not repeated, so a failure may need a few tries.
 *
 * -I rounds or -T seconds; -S the largest message; -v prints the seed of every round.
 */
#include "common/ft_data.h"
#include "common/ft_msg.h"

#include <rdma/fi_tagged.h>
#include <stdio.h>

#define ROUND_OPS  120
#define SHORT_OPS  8 /* few enough that all may have ended, with a cancelled receive not yet read */
#define RECVS_MAX  1024 /* in a round */
#define SENDS_MAX  512
#define TAGS       6
#define HEADER     8 /* bytes that a message needs to contain its number */
#define TAG_SPACE  0xA0000ull
#define SOURCE_BIT 56

struct recv {
	struct ft_msg msg;
	uint8_t *buf;
	bool cancelled; /* fi_cancel() succeeded; the completion may follow */
	/* the matched message */
	int from;
	uint32_t number, taken_order;
	uint64_t tag;
};

struct send {
	struct ft_op *op;
	uint8_t *buf;
	size_t len;
	uint32_t key;
	struct send *next;
};

struct run {
	struct ft *ft;
	struct ft_fab fab;
	uint64_t rng;
	struct recv recvs[RECVS_MAX];
	struct send sends[SENDS_MAX];
	unsigned recv_cnt, send_cnt;
	uint32_t sent[2][FT_PROCS_MAX];  /* [tagged][to]: numbers used so far */
	uint32_t taken[2][FT_PROCS_MAX]; /* [tagged][from]: received so far */
	size_t most;
	bool selective, has_data;
};

static uint32_t roll(struct run *r, uint32_t below)
{
	r->rng ^= r->rng << 13;
	r->rng ^= r->rng >> 7;
	r->rng ^= r->rng << 17;
	return (uint32_t)(r->rng >> 32) % below;
}

/* Returns mostly small lengths, sometimes one around a limit, rarely a long one. */
static size_t random_len(struct run *r)
{
	static const size_t edges[] = { 0,    8,    255,   256,   4095,  4096, 8191,
					8192, 8193, 32767, 32768, 65535, 65536 };
	size_t len;

	switch (roll(r, 10)) {
	case 0: len = edges[roll(r, FT_CNT(edges))]; break;
	case 1: len = roll(r, (uint32_t)r->most + 1); break;
	case 2: len = roll(r, 12000); break;
	default: len = roll(r, 300); break;
	}
	return len < r->most ? len : r->most;
}

/* A connected endpoint reaches the other one only. */
static int random_rank(struct run *r)
{
	return r->ft->opts->type == FI_EP_MSG ? !r->ft->rank : (int)roll(r, (uint32_t)r->ft->procs);
}

static uint32_t key_of(int from, int to, bool tagged, uint32_t number)
{
	return (uint32_t)from << 30 | (uint32_t)to << 28 | (uint32_t)tagged << 27 | number;
}

/* ---- receives ---- */

static void book_recv(struct run *r, struct recv *recv)
{
	struct ft_op *op = recv->msg.op;
	const uint8_t *buf = recv->buf;
	bool tagged = recv->msg.tagged;
	uint32_t key;
	long wrong;

	if (op->flags & FI_REMOTE_CQ_DATA) {
		key = (uint32_t)op->data;
	} else {
		FT_CHECK(op->len >= HEADER, "%zu bytes without a header or data", op->len);
		memcpy(&key, buf, sizeof(key));
	}
	recv->from = (int)(key >> 30);
	recv->number = key & 0x7FFFFFF;
	recv->tag = op->tag;
	FT_CHECK((int)(key >> 28 & 3) == r->ft->rank, "a message for rank %u", key >> 28 & 3);
	FT_CHECK((key >> 27 & 1) == tagged, "tagged and untagged messages are mixed up");
	FT_CHECK(recv->from < r->ft->procs, "from rank %d", recv->from);
	wrong = op->len >= HEADER ? ft_wrong_from(buf + HEADER, op->len - HEADER, key, HEADER) : -1;
	FT_CHECK(wrong < 0, "message %u from %d, %zu bytes: byte %ld is wrong", recv->number,
		 recv->from, op->len, wrong + HEADER);
	ft_buf_check(buf, recv->msg.len, op->len);
	FT_CHECK(recv->msg.rank < 0 || recv->msg.rank == recv->from,
		 "a receive from rank %d took a message from %d", recv->msg.rank, recv->from);
	if (tagged)
		FT_CHECK(((op->tag ^ recv->msg.tag) & ~recv->msg.ignore) == 0,
			 "tag %#llx does not match %#llx", (unsigned long long)op->tag,
			 (unsigned long long)recv->msg.tag);
	r->taken[tagged][recv->from]++;
}

static void on_recv(struct ft_op *op, void *arg)
{
	struct run *r = arg;
	struct recv *recv = NULL;

	for (unsigned i = 0; i < r->recv_cnt && !recv; i++) {
		if (r->recvs[i].msg.op == op)
			recv = &r->recvs[i];
	}
	FT_CHECK(recv, "a receive of another round");
	if (op->err == FI_ECANCELED && recv->cancelled)
		recv->from = -1;
	else if (op->err)
		ft_fail(__FILE__, __LINE__, "a receive ended with %s", ft_err_name(op->err));
	else
		book_recv(r, recv);
}

static void post_recv(struct run *r, bool tagged, bool anything)
{
	struct recv *recv = &r->recvs[r->recv_cnt];
	bool one = !anything && r->fab.want.caps & FI_DIRECTED_RECV && !roll(r, 4);

	if (r->recv_cnt == RECVS_MAX)
		return;
	*recv = (struct recv){ .buf = ft_buf_new(r->most), .from = -1 };
	recv->msg = (struct ft_msg){ .tagged = tagged, .buf = recv->buf, .len = r->most };
	recv->msg.tag = TAG_SPACE | roll(r, TAGS);
	recv->msg.ignore = anything ? 0xFF : roll(r, 4) ? 0 : roll(r, 8);
	recv->msg.rank = one ? random_rank(r) : -1;
	recv->msg.op = ft_op_new(&r->fab, FT_ONE);
	recv->msg.op->on = on_recv;
	recv->msg.op->arg = r;
	r->recv_cnt++;
	FT_POST(&r->fab, ft_recv(&r->fab, (enum ft_way)roll(r, 3), &recv->msg));
}

static void cancel_some(struct run *r)
{
	struct recv *recv;

	if (!r->recv_cnt)
		return;
	recv = &r->recvs[roll(r, r->recv_cnt)];
	if (recv->msg.op->seen)
		return;
	if (!recv->cancelled)
		recv->cancelled = !fi_cancel(&r->fab.ep->fid, &recv->msg.op->context);
}

/* ---- sends ---- */

static enum ft_expect expect_of(const struct run *r, enum ft_way way, uint64_t flags)
{
	if (ft_way_injects(way))
		return FT_NONE;
	return r->selective && !(way == FT_BY_MSG && flags & FI_COMPLETION) ? FT_NONE : FT_ONE;
}

static uint64_t random_flags(struct run *r, size_t len)
{
	uint64_t flags = r->has_data && roll(r, 2) ? FI_REMOTE_CQ_DATA : 0;

	flags |= roll(r, 3) ? FI_COMPLETION : 0;
	flags |= roll(r, 3) ? 0 : FI_MORE;
	if (len <= r->fab.info->tx_attr->inject_size && !roll(r, 3))
		flags |= FI_INJECT;
	switch (roll(r, 6)) {
	case 0: return flags | FI_DELIVERY_COMPLETE;
	case 1: return flags | FI_TRANSMIT_COMPLETE;
	case 2: return flags | FI_INJECT_COMPLETE;
	default: return flags;
	}
}

/* The buffer of a silent send is unchanged until the end of the round. */
static void post_send(struct run *r)
{
	struct send *send = &r->sends[r->send_cnt];
	bool tagged = roll(r, 3);
	struct ft_msg msg = { .tagged = tagged, .tag = TAG_SPACE | roll(r, TAGS) };
	enum ft_way way = (enum ft_way)roll(r, FT_WAYS);
	bool carries;

	if (r->send_cnt == SENDS_MAX)
		return;
	msg.rank = random_rank(r);
	msg.len = random_len(r);
	if (ft_way_injects(way) && msg.len > r->fab.info->tx_attr->inject_size)
		msg.len = roll(r, (uint32_t)r->fab.info->tx_attr->inject_size + 1);
	msg.flags = random_flags(r, msg.len);
	carries = r->has_data &&
		  (ft_way_has_data(way) || (way == FT_BY_MSG && msg.flags & FI_REMOTE_CQ_DATA));
	if (!carries && msg.len < HEADER)
		msg.len = HEADER;
	send->key = key_of(r->ft->rank, msg.rank, tagged, r->sent[tagged][msg.rank]++);
	send->len = msg.len;
	send->buf = msg.buf = ft_buf_new(msg.len);
	msg.data = (uint64_t)r->ft->rank << SOURCE_BIT | send->key;
	ft_fill(send->buf, msg.len, send->key);
	if (msg.len >= HEADER)
		memcpy(send->buf, &send->key, sizeof(send->key));
	send->op = msg.op = ft_op_new(&r->fab, expect_of(r, way, msg.flags));
	r->send_cnt++;
	FT_POST(&r->fab, ft_send(&r->fab, way, &msg));
	if (ft_way_injects(way) || (way == FT_BY_MSG && msg.flags & FI_INJECT))
		memset(send->buf, 0x77, msg.len); /* free again */
}

/* ---- a round ---- */

static void act(struct run *r)
{
	switch (roll(r, 16)) {
	case 0:
	case 1:
	case 2:
	case 3:
	case 4: post_recv(r, roll(r, 3), false); break;
	case 5:
	case 6:
	case 7:
	case 8:
	case 9:
	case 10: post_send(r); break;
	case 11: cancel_some(r); break;
	case 12: ft_pause(r->ft, 0.0001 * roll(r, 10)); break;
	default: ft_poll(&r->fab); break;
	}
}

/* Exchanges how much the others have sent to this rank so far. */
static void learn_sent(struct run *r, uint32_t expect[2][FT_PROCS_MAX])
{
	for (int rank = 0; rank < r->ft->procs; rank++) {
		uint32_t mine[2] = { r->sent[0][rank], r->sent[1][rank] }, theirs[2];

		ft_swap(r->ft, rank, mine, theirs, sizeof(mine));
		expect[0][rank] = theirs[0];
		expect[1][rank] = theirs[1];
	}
}

static uint32_t missing(const struct run *r, uint32_t expect[2][FT_PROCS_MAX], bool tagged)
{
	uint32_t cnt = 0;

	for (int rank = 0; rank < r->ft->procs; rank++)
		cnt += expect[tagged][rank] - r->taken[tagged][rank];
	return cnt;
}

static unsigned open_for_all(const struct run *r, bool tagged)
{
	unsigned cnt = 0;

	for (unsigned i = 0; i < r->recv_cnt; i++) {
		const struct recv *recv = &r->recvs[i];

		cnt += !recv->msg.op->seen && recv->msg.tagged == tagged && !recv->cancelled &&
		       recv->msg.rank < 0 && recv->msg.ignore == 0xFF;
	}
	return cnt;
}

static void take_rest(struct run *r, uint32_t expect[2][FT_PROCS_MAX])
{
	double deadline = ft_deadline(&r->fab);
	uint32_t left;

	do {
		left = 0;
		for (int tagged = 0; tagged < 2; tagged++) {
			uint32_t cnt = missing(r, expect, tagged);

			left += cnt;
			if (cnt && open_for_all(r, tagged) < (cnt < 16 ? cnt : 16))
				post_recv(r, tagged, true);
		}
		ft_turn(r->fab.ft, ft_poll(&r->fab));
		FT_CHECK(ft_now() < deadline, "%u messages are missing", left);
	} while (left);
}

static void cancel_rest(struct run *r)
{
	for (unsigned i = 0; i < r->recv_cnt; i++) {
		if (r->recvs[i].msg.op->seen || r->recvs[i].cancelled)
			continue;
		r->recvs[i].cancelled = true;
		FT_OK(fi_cancel(&r->fab.ep->fid, &r->recvs[i].msg.op->context));
	}
	for (unsigned i = 0; i < r->recv_cnt; i++)
		ft_wait(&r->fab, r->recvs[i].msg.op);
}

static bool accepts(const struct recv *recv, int from, uint64_t tag)
{
	return (recv->msg.rank < 0 || recv->msg.rank == from) &&
	       (!recv->msg.tagged || !((tag ^ recv->msg.tag) & ~recv->msg.ignore));
}

/* recvs[] is in the order of posting. */
static void judge_order(const struct run *r)
{
	for (unsigned b = 0; b < r->recv_cnt; b++) {
		const struct recv *later = &r->recvs[b];

		for (unsigned a = 0; a < b && later->from >= 0; a++) {
			const struct recv *sooner = &r->recvs[a];

			if (sooner->from != later->from ||
			    sooner->msg.tagged != later->msg.tagged ||
			    !accepts(sooner, later->from, later->tag))
				continue;
			FT_CHECK(sooner->number < later->number,
				 "receive %u took message %u from %d, receive %u, posted later, "
				 "took %u, which came before it",
				 a, sooner->number, sooner->from, b, later->number);
		}
	}
}

static void end_round(struct run *r)
{
	for (unsigned i = 0; i < r->send_cnt; i++) {
		struct send *send = &r->sends[i];

		if (send->op->expect == FT_ONE)
			ft_wait(&r->fab, send->op);
		FT_CHECK(!send->op->seen || !send->op->err, "a send ended with %s",
			 ft_err_name(send->op->err));
	}
	ft_sync(r->ft); /* all messages are received: silent sends have ended too */
	for (unsigned i = 0; i < r->send_cnt; i++) {
		ft_op_put(&r->fab, r->sends[i].op);
		ft_buf_free(r->sends[i].buf);
	}
	for (unsigned i = 0; i < r->recv_cnt; i++) {
		ft_op_put(&r->fab, r->recvs[i].msg.op);
		ft_buf_free(r->recvs[i].buf);
	}
	r->recv_cnt = r->send_cnt = 0;
}

static void round_run(struct run *r)
{
	uint32_t expect[2][FT_PROCS_MAX];
	unsigned ops = roll(r, 4) ? ROUND_OPS : SHORT_OPS;

	for (unsigned i = 0; i < ops; i++)
		act(r);
	learn_sent(r, expect);
	take_rest(r, expect);
	cancel_rest(r);
	judge_order(r);
	end_round(r);
}

static bool goes_on(const struct run *r, long round, double start)
{
	const struct ft_opts *opts = r->ft->opts;
	bool more = opts->seconds ? ft_now() - start < opts->seconds
				  : round < (opts->iterations ? opts->iterations : 30);
	char mine = more, theirs = more;

	if (r->ft->rank == 0) {
		for (int rank = 1; rank < r->ft->procs; rank++)
			ft_tell(r->ft, rank, &mine, 1);
	} else {
		ft_hear(r->ft, 0, &theirs, 1);
	}
	return theirs;
}

static void run_with(struct ft *ft, struct ft_want want)
{
	static struct run run;
	uint64_t seed = ft->opts->seed;
	double start = ft_now();

	if (!want.caps)
		want.caps = FI_MSG | FI_TAGGED;
	want.order = FI_ORDER_SAS;
	if (ft->opts->type == FI_EP_RDM)
		want.caps |= FI_DIRECTED_RECV;
	run.ft = ft;
	run.selective = want.selective_tx;
	ft_fab_open(&run.fab, ft, &want);
	run.most = ft->opts->size ? ft->opts->size : 100000;
	run.has_data = run.fab.info->domain_attr->cq_data_size >= 8;
	for (long round = 0; goes_on(&run, round, start); round++) {
		run.rng = (seed + (uint64_t)round) * 0x9E3779B97F4A7C15ull +
			  (uint64_t)ft->rank * 0xD1B54A32D192ED03ull + 1;
		if (ft->opts->verbose)
			fprintf(stderr, "  rank %d: round %ld, --seed %llu\n", ft->rank, round,
				(unsigned long long)(seed + (uint64_t)round));
		round_run(&run);
	}
	ft_quiet(&run.fab, 0.02);
	ft_sync(ft);
	ft_fab_close(&run.fab);
}

static void run_plain(struct ft *ft)
{
	run_with(ft, (struct ft_want){ 0 });
}

static void run_selective(struct ft *ft)
{
	run_with(ft, (struct ft_want){ .selective_tx = true, .two_cqs = true });
}

static void run_delivery(struct ft *ft)
{
	run_with(ft, (struct ft_want){ .tx_flags = FI_DELIVERY_COMPLETE, .counters = true });
}

static void run_auto(struct ft *ft)
{
	run_with(ft, (struct ft_want){ .progress = FI_PROGRESS_AUTO });
}

static const struct ft_case cases[] = {
	FT_CASE("two", run_plain, "Two processes: all messages arrive once, whole and in order."),
	FT_CASE("three", run_plain, "Three processes: the same between each two.", .procs = 3),
	FT_CASE("two-selective", run_selective, "The same with selective completion, two queues."),
	FT_CASE("three-delivery", run_delivery, "The same with FI_DELIVERY_COMPLETE and counters.",
		.procs = 3),
	FT_CASE("two-auto", run_auto, "The same with automatic progress."),
};

int main(int argc, char **argv)
{
	return ft_main(argc, argv, "Random operations keep every promise of a message.", cases,
		       FT_CNT(cases));
}
