/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Order of operations: a fence waits for everything before it, a batch arrives as its parts, a
 * flood in both directions loses nothing, and a triggered operation waits for its counter.
 *
 * Pages: fi_msg(3) and fi_rma(3) (FI_FENCE, FI_MORE), fi_trigger(3), fi_cntr(3).
 */
#include "common/ft_data.h"
#include "common/ft_mr.h"
#include "common/ft_msg.h"

#include <assert.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_trigger.h>
#include <stdlib.h>
#include <string.h>

#define PIECES 16
#define PIECE  100000 /* bytes: more than one step transfers */
#define REGION (PIECES * PIECE)
#define ALL    (FI_REMOTE_READ | FI_REMOTE_WRITE)

static uint8_t local[PIECES][PIECE];

static void end(struct ft_fab *fab, struct ft_region *region)
{
	ft_quiet(fab, 0.02);
	FT_CHECK(!ft_open_ops(fab), "%u operations never completed", ft_open_ops(fab));
	ft_sync(fab->ft);
	if (region)
		ft_region_close(region);
	ft_fab_close(fab);
}

static void begin_rma(struct ft_fab *fab, struct ft_region *region, struct ft *ft, uint64_t caps)
{
	ft_fab_open(fab, ft, &(struct ft_want){ .caps = FI_RMA | FI_MSG | caps });
	ft_region_open(fab, region, REGION, ALL, 5);
	ft_region_swap(fab, region, !ft->rank);
}

/* Reads or writes piece `i` of the peer's region, from or into local[i]. */
static struct ft_op *access_piece(struct ft_fab *fab, struct ft_region *region, int i, bool write,
				  uint64_t flags)
{
	struct ft_op *op = ft_op_new(fab, FT_ONE);
	struct iovec iov = { local[i], PIECE };
	struct fi_rma_iov there = { .addr = region->there.base + (uint64_t)i * PIECE,
				    .len = PIECE,
				    .key = region->there.key };
	struct fi_msg_rma msg = { .msg_iov = &iov,
				  .iov_count = 1,
				  .addr = fab->addr[1],
				  .rma_iov = &there,
				  .rma_iov_count = 1,
				  .context = &op->context };

	flags |= FI_COMPLETION;
	if (write)
		FT_POST(fab, fi_writemsg(fab->ep, &msg, flags));
	else
		FT_POST(fab, fi_readmsg(fab->ep, &msg, flags));
	return op;
}

static void fill_pieces(uint32_t seed)
{
	for (int i = 0; i < PIECES; i++)
		ft_fill(local[i], PIECE, seed + (uint32_t)i);
}

static void check_pieces(uint32_t seed, const char *what)
{
	for (int i = 0; i < PIECES; i++)
		FT_CHECK(ft_wrong(local[i], PIECE, seed + (uint32_t)i) < 0, "%s: piece %d", what,
			 i);
}

/* ---- fences ---- */

/*
 * Transfers all pieces in one direction, then in the other. The first operation of the second half
 * is fenced.
 */
static void pieces_then_fenced(struct ft_fab *fab, struct ft_region *region, bool write)
{
	struct ft_op *ops[2 * PIECES];

	for (int i = 0; i < PIECES; i++)
		ops[i] = access_piece(fab, region, i, write, 0);
	for (int i = 0; i < PIECES; i++)
		ops[PIECES + i] = access_piece(fab, region, i, !write, i ? 0 : FI_FENCE);
	for (int i = 0; i < 2 * PIECES; i++)
		ft_wait_good(fab, ops[i]);
}

static void run_fence_read(struct ft *ft)
{
	struct ft_region region;
	struct ft_fab fab;

	begin_rma(&fab, &region, ft, FI_FENCE);
	if (ft->rank == 0) {
		fill_pieces(100);
		pieces_then_fenced(&fab, &region, true);
		check_pieces(100, "a fenced read before it was written");
	}
	ft_sync(ft);
	for (int i = 0; ft->rank == 1 && i < PIECES; i++)
		FT_CHECK(ft_wrong(region.buf + (size_t)i * PIECE, PIECE, 100 + (uint32_t)i) < 0,
			 "piece %d was not written", i);
	end(&fab, &region);
}

/* The message announces that the bytes are there. */
static void run_fence_message(struct ft *ft)
{
	struct ft_region region;
	struct ft_op *ops[PIECES], *op;
	struct ft_fab fab;

	begin_rma(&fab, &region, ft, FI_FENCE);
	if (ft->rank == 0) {
		fill_pieces(7);
		for (int i = 0; i < PIECES; i++)
			ops[i] = access_piece(&fab, &region, i, true, 0);
		ft_send_wait(&fab, FT_BY_MSG,
			     (struct ft_msg){ .rank = 1, .flags = FI_FENCE | FI_COMPLETION });
		for (int i = 0; i < PIECES; i++)
			ft_wait_good(&fab, ops[i]);
	} else {
		op = ft_recv_post(&fab, false, 0, NULL, 0);
		ft_wait_good(&fab, op);
		for (int i = 0; i < PIECES; i++)
			FT_CHECK(ft_wrong(region.buf + (size_t)i * PIECE, PIECE, 7 + (uint32_t)i) <
					 0,
				 "the message overtook piece %d", i);
	}
	end(&fab, &region);
}

/* ---- batches and floods ---- */

enum { BATCH = 100, LEN = 1000, FLOOD = 3000, WINDOW = 500 };

static uint8_t in[FLOOD][LEN], out[FLOOD][LEN];

/* Sends message number `i`, whose bytes contain the number. */
static struct ft_op *send_numbered(struct ft_fab *fab, int i, uint64_t flags)
{
	struct ft_msg msg = { .rank = !fab->ft->rank,
			      .tagged = true,
			      .tag = (uint64_t)i,
			      .buf = out[i],
			      .len = LEN,
			      .flags = flags | FI_COMPLETION };

	ft_fill(out[i], LEN, (uint32_t)i);
	msg.op = ft_op_new(fab, FT_ONE);
	FT_POST(fab, ft_send(fab, FT_BY_MSG, &msg));
	return msg.op;
}

static void take_numbered(struct ft_fab *fab, struct ft_op *op, int i)
{
	ft_wait(fab, op);
	FT_CHECK(!op->err && op->len == LEN && op->tag == (uint64_t)i, "message %d: %s, %zu bytes",
		 i, ft_err_name(op->err), op->len);
	FT_CHECK(ft_wrong(in[i], LEN, (uint32_t)i) < 0, "message %d is not what was sent", i);
	ft_op_put(fab, op);
}

static void run_more(struct ft *ft)
{
	struct ft_op *ops[BATCH];
	struct ft_fab fab;

	ft_fab_open(&fab, ft, &(struct ft_want){ 0 });
	for (int i = 0; i < BATCH; i++)
		ops[i] = ft->rank ? ft_recv_post(&fab, true, (uint64_t)i, in[i], LEN)
				  : send_numbered(&fab, i, i + 1 < BATCH ? FI_MORE : 0);
	for (int i = 0; i < BATCH; i++) {
		if (ft->rank)
			take_numbered(&fab, ops[i], i);
		else
			ft_wait_good(&fab, ops[i]);
	}
	end(&fab, NULL);
}

/* No rank receives before it has sent everything: unexpected messages wait. */
static void run_flood(struct ft *ft)
{
	static struct ft_op *sends[FLOOD];
	struct ft_op *recvs[WINDOW];
	struct ft_fab fab;

	ft_fab_open(&fab, ft, &(struct ft_want){ 0 });
	for (int i = 0; i < FLOOD; i++)
		sends[i] = send_numbered(&fab, i, 0);
	for (int first = 0; first < FLOOD; first += WINDOW) {
		for (int i = 0; i < WINDOW; i++)
			recvs[i] =
				ft_recv_post(&fab, true, (uint64_t)(first + i), in[first + i], LEN);
		for (int i = 0; i < WINDOW; i++)
			take_numbered(&fab, recvs[i], first + i);
	}
	for (int i = 0; i < FLOOD; i++)
		ft_wait_good(&fab, sends[i]);
	end(&fab, NULL);
}

/* ---- triggers ---- */

static void trigger_at(struct fi_triggered_context *ctx, struct fid_cntr *cntr, size_t threshold)
{
	ctx->event_type = FI_TRIGGER_THRESHOLD;
	ctx->trigger.threshold.cntr = cntr;
	ctx->trigger.threshold.threshold = threshold;
}

static ssize_t send_triggered(struct ft_fab *fab, struct ft_op *op, void *buf, size_t len)
{
	struct iovec iov = { buf, len };
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = fab->addr[1], .context = &op->context
	};

	return fi_sendmsg(fab->ep, &msg, FI_TRIGGER | FI_COMPLETION);
}

/* The context of an operation belongs to the trigger while it waits. */
static struct fi_triggered_context *trigger_of(struct ft_op *op)
{
	static_assert(sizeof(struct fi_triggered_context) <= sizeof(struct fi_context2), "room");
	return (struct fi_triggered_context *)&op->context;
}

/* Three operations wait, and are triggered in another order than posted. */
static void run_trigger(struct ft *ft)
{
	static const size_t thresholds[3] = { 3, 1, 2 };
	struct ft_want want = { .caps = FI_MSG | FI_TRIGGER, .counters = true };
	uint8_t got[3] = { 0 }, said[3] = { 0, 1, 2 };
	struct fid_cntr *cntr = NULL;
	struct ft_op *ops[3];
	struct ft_fab fab;

	ft_fab_open(&fab, ft, &want);
	for (int i = 0; i < 3; i++) {
		ops[i] = ft->rank ? ft_recv_post(&fab, false, 0, &got[i], 1)
				  : ft_op_new(&fab, FT_ONE);
	}
	if (ft->rank == 0) {
		FT_OK(fi_cntr_open(fab.domain, NULL, &cntr, NULL));
		for (int i = 0; i < 3; i++) {
			trigger_at(trigger_of(ops[i]), cntr, thresholds[i]);
			FT_OK(send_triggered(&fab, ops[i], &said[i], 1));
		}
		ft_quiet(&fab, 0.05);
		FT_OK(fi_cntr_add(cntr, 2));
		ft_wait_good(&fab, ops[1]);
		ft_wait_good(&fab, ops[2]);
		ft_quiet(&fab, 0.05);
		FT_OK(fi_cntr_add(cntr, 1));
		ft_wait_good(&fab, ops[0]);
		FT_CLOSE(cntr);
	} else {
		for (int i = 0; i < 3; i++)
			ft_wait_good(&fab, ops[i]);
		FT_CHECK(got[0] == 1 && got[1] == 2 && got[2] == 0, "order %d %d %d", got[0],
			 got[1], got[2]);
	}
	end(&fab, NULL);
}

static void run_trigger_cancel(struct ft *ft)
{
	struct ft_want want = { .caps = FI_MSG | FI_TRIGGER };
	struct fid_cntr *cntr;
	struct ft_fab fab;
	struct ft_op *op;
	char byte = 0;

	ft_fab_open(&fab, ft, &want);
	if (ft->rank == 0) {
		FT_OK(fi_cntr_open(fab.domain, NULL, &cntr, NULL));
		op = ft_op_new(&fab, FT_ONE);
		trigger_at(trigger_of(op), cntr, 1);
		FT_OK(send_triggered(&fab, op, &byte, 1));
		FT_OK(fi_cancel(&fab.ep->fid, &op->context));
		ft_wait_bad(&fab, op, FI_ECANCELED);
		FT_OK(fi_cntr_add(cntr, 1));
		ft_quiet(&fab, 0.05);
		FT_CLOSE(cntr);
	}
	end(&fab, NULL);
}

static const struct ft_case cases[] = {
	FT_CASE("fence-read", run_fence_read, "A fenced access sees what was done before it."),
	FT_CASE("fence-message", run_fence_message,
		"A fenced message arrives behind the accesses before it."),
	FT_CASE("more", run_more, "Each part of a batch arrives, in order, and completes once."),
	FT_CASE("flood", run_flood, "Both ends send without receiving; nothing is lost."),
	FT_CASE("trigger", run_trigger, "Triggered sends begin in the order of thresholds."),
	FT_CASE("trigger-cancel", run_trigger_cancel, "What waits for a counter can be cancelled."),
};

int main(int argc, char **argv)
{
	return ft_main(argc, argv, "What begins when, and behind what.", cases, FT_CNT(cases));
}
