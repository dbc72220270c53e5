/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Remote memory: reads and writes move exactly the bytes they name, complete once, produce a
 * completion at the target only if they carry data, and fail without moving a byte where access is
 * not permitted.
 *
 * Pages: fi_rma(3), fi_mr(3), fi_cq(3) ("completion flags", target side), fi_endpoint(3)
 * (counters).
 */
#include "common/ft_data.h"
#include "common/ft_mr.h"
#include "common/ft_op.h"
#include "functional/rma_post.h"
#include "functional/rma_rights.h"
#include "util/fi_old.h"

#include <signal.h>
#include <unistd.h>

#define REGION (400 * 1024)

static bool injects(enum rma how)
{
	return how == INJECT || how == INJECTDATA;
}

static bool tells(enum rma how)
{
	return how == WRITEDATA || how == INJECTDATA;
}

/* Waits until the target has had `cnt` remote completions in all. */
static void await_remote(struct ft_fab *fab, unsigned cnt)
{
	struct fi_cq_tagged_entry entry;
	double deadline = ft_deadline(fab);

	while (ft_remotes(fab, &entry) < cnt) {
		ft_turn(fab->ft, ft_poll(fab));
		FT_CHECK(ft_now() < deadline, "the target has no completion of the data");
	}
	FT_CHECK(entry.flags & FI_RMA && entry.flags & FI_REMOTE_CQ_DATA, "flags %#llx",
		 (unsigned long long)entry.flags);
	FT_CHECK(entry.data == RMA_DATA, "data %#llx", (unsigned long long)entry.data);
}

/* ---- every call ---- */

struct step {
	enum rma how;
	size_t len, off;
	uint32_t key;
	uint64_t flags;
};

/* Rank 0 accesses rank 1's region. A write without a completion is seen at the target. */
static void step_initiator(struct ft_fab *fab, struct ft_region *region, const struct step *s)
{
	uint8_t *buf = ft_buf_new(s->len);
	struct rma_op o = { .how = s->how,
			    .buf = buf,
			    .len = s->len,
			    .rank = 1,
			    .flags = s->flags,
			    .addr = region->there.base + s->off,
			    .key = region->there.key };

	if (!rma_reads(s->how))
		ft_fill(buf, s->len, s->key);
	if (!injects(s->how))
		o.op = ft_op_new(fab, FT_ONE);
	FT_POST(fab, rma_post(fab, &o));
	if (injects(s->how)) {
		memset(buf, 0x55, s->len);
	} else {
		ft_wait(fab, o.op);
		FT_CHECK(!o.op->err, "%s of %zu: %s", rma_names[s->how], s->len,
			 ft_err_name(o.op->err));
		FT_CHECK((o.op->flags & (FI_RMA | FI_READ | FI_WRITE)) ==
				 (FI_RMA | (rma_reads(s->how) ? FI_READ : FI_WRITE)),
			 "flags %#llx", (unsigned long long)o.op->flags);
		ft_op_put(fab, o.op);
	}
	if (rma_reads(s->how)) {
		FT_CHECK(ft_wrong_from(buf, s->len, 1000, s->off) < 0, "%s of %zu: wrong bytes",
			 rma_names[s->how], s->len);
		ft_buf_check(buf, s->len, s->len);
	}
	ft_buf_free(buf);
	ft_sync(fab->ft); /* the target checks */
}

static bool written(const struct ft_region *region, const struct step *s)
{
	return ft_wrong(region->buf + s->off, s->len, s->key) < 0;
}

static void step_target(struct ft_fab *fab, struct ft_region *region, const struct step *s,
			unsigned *notified)
{
	double deadline = ft_deadline(fab);

	ft_sync(fab->ft);
	if (rma_reads(s->how))
		return;
	if (tells(s->how) || s->flags & FI_REMOTE_CQ_DATA)
		await_remote(fab, ++*notified);
	while (!written(region, s)) {
		ft_fab_progress(fab);
		FT_CHECK(ft_now() < deadline, "%s of %zu never arrives whole", rma_names[s->how],
			 s->len);
	}
	for (size_t i = 0; i < REGION; i++)
		FT_CHECK((i >= s->off && i < s->off + s->len) || region->buf[i] == 0xEE,
			 "%s of %zu at %zu wrote byte %zu", rma_names[s->how], s->len, s->off, i);
}

static void one_step(struct ft_fab *fab, struct ft_region *region, const struct step *s,
		     unsigned *notified)
{
	if (injects(s->how) && s->len > fab->info->tx_attr->inject_size)
		return;
	if (fab->ft->rank == 1) {
		ft_region_clear(region);
		if (rma_reads(s->how))
			ft_fill(region->buf, REGION, 1000);
	}
	ft_sync(fab->ft);
	if (fab->ft->rank == 0)
		step_initiator(fab, region, s);
	else
		step_target(fab, region, s, notified);
	ft_sync(fab->ft);
}

static void run_calls_with(struct ft *ft, struct ft_want want)
{
	static const size_t lens[] = { 0, 1, 64, 4096, 40000, 300000 };
	struct ft_region region;
	struct ft_fab fab;
	unsigned notified = 0;
	uint32_t key = 0;

	rma_begin(&fab, ft, want);
	ft_region_open(&fab, &region, REGION, RMA_ALL, 77);
	ft_region_swap(&fab, &region, !ft->rank);
	for (size_t i = 0; i < FT_CNT(lens); i++) {
		for (enum rma how = 0; how < RMAS; how++) {
			struct step s = { .how = how, .len = lens[i], .off = 13 * i, .key = ++key };

			one_step(&fab, &region, &s, &notified);
		}
	}
	for (size_t i = 0; i < FT_CNT(lens); i++) {
		static const uint64_t flags[] = { FI_DELIVERY_COMPLETE, FI_TRANSMIT_COMPLETE,
						  FI_INJECT_COMPLETE, FI_REMOTE_CQ_DATA, FI_MORE };
		struct step s = { .how = WRITEMSG,
				  .len = lens[i],
				  .key = ++key,
				  .flags = flags[i % FT_CNT(flags)] };

		if (s.flags != FI_MORE)
			one_step(&fab, &region, &s, &notified);
	}
	rma_end(&fab, &region);
}

static void run_calls(struct ft *ft)
{
	run_calls_with(ft, (struct ft_want){ 0 });
}

static void run_basic(struct ft *ft)
{
	run_calls_with(ft, (struct ft_want){ .mr_mode = FI_MR_BASIC });
}

static void run_scalable(struct ft *ft)
{
	run_calls_with(ft, (struct ft_want){ .mr_mode = FI_MR_SCALABLE });
}

static void run_auto(struct ft *ft)
{
	run_calls_with(ft, (struct ft_want){ .progress = FI_PROGRESS_AUTO });
}

/* With FI_DELIVERY_COMPLETE the bytes are there when the initiator has its completion. */
static void run_delivered(struct ft *ft)
{
	struct ft_want want = { .tx_flags = FI_DELIVERY_COMPLETE };
	struct ft_region region;
	struct ft_fab fab;
	uint8_t *buf = ft_buf_new(100000);

	rma_begin(&fab, ft, want);
	ft_region_open(&fab, &region, REGION, RMA_ALL, 77);
	ft_region_swap(&fab, &region, !ft->rank);
	for (uint32_t i = 0; i < 30; i++) {
		size_t len = i % 3 == 0 ? 8 : i % 3 == 1 ? 5000 : 100000;
		struct rma_op o = { .how = WRITE,
				    .buf = buf,
				    .len = len,
				    .rank = 1,
				    .addr = region.there.base,
				    .key = region.there.key };

		if (ft->rank == 0) {
			ft_fill(buf, len, i);
			o.op = ft_op_new(&fab, FT_ONE);
			FT_POST(&fab, rma_post(&fab, &o));
			ft_wait_good(&fab, o.op);
		}
		ft_sync(ft);
		if (ft->rank == 1)
			FT_CHECK(ft_wrong(region.buf, len, i) < 0, "%zu bytes are not there", len);
		ft_sync(ft);
	}
	ft_buf_free(buf);
	rma_end(&fab, &region);
}

/* ---- completions ---- */

static void run_silent(struct ft *ft)
{
	struct ft_want want = { .selective_tx = true, .counters = true };
	struct ft_region region;
	struct ft_fab fab;
	uint8_t buf[4096] = { 0 };
	double deadline;
	enum { CNT = 40 };

	rma_begin(&fab, ft, want);
	ft_region_open(&fab, &region, REGION, RMA_ALL, 77);
	ft_region_swap(&fab, &region, !ft->rank);
	ft_sync(ft);
	deadline = ft_deadline(&fab);
	for (int i = 0; ft->rank == 0 && i < CNT; i++) {
		struct rma_op o = { .how = i & 1 ? READ : WRITE,
				    .buf = buf,
				    .len = 100,
				    .rank = 1,
				    .addr = region.there.base,
				    .key = region.there.key,
				    .op = ft_op_new(&fab, FT_NONE) };

		FT_POST(&fab, rma_post(&fab, &o));
	}
	while (ft->rank == 0 && fi_cntr_read(fab.tx_cntr) < CNT)
		FT_CHECK(ft_now() < deadline, "the counter stays at %llu",
			 (unsigned long long)fi_cntr_read(fab.tx_cntr));
	ft_sync(ft);
	ft_quiet(&fab, 0.03);
	FT_CHECK(!ft_remotes(&fab, NULL), "the target had a completion without data");
	rma_end(&fab, &region);
}

static void run_killed(struct ft *ft)
{
	enum { CNT = 24 };
	static uint8_t bufs[CNT][REGION / 2];
	struct ft_region region;
	struct ft_op *ops[CNT];
	struct ft_fab fab;

	/* How long a target that was stopped before it was connected is waited for. */
	setenv("FI_COPYRPC_PEER_TIMEOUT", "8000", 1);
	rma_begin(&fab, ft, (struct ft_want){ 0 });
	ft_region_open(&fab, &region, REGION, RMA_ALL, 77);
	ft_region_swap(&fab, &region, !ft->rank);
	ft_sync(ft);
	if (ft->rank == 1)
		pause();
	ft_signal(ft, 1, SIGSTOP);
	for (int i = 0; i < CNT; i++) {
		struct rma_op o = { .how = i & 1 ? READ : WRITE,
				    .buf = bufs[i],
				    .rank = 1,
				    .len = i % 3 ? 64 : sizeof(bufs[i]),
				    .addr = region.there.base,
				    .key = region.there.key };

		ops[i] = o.op = ft_op_new(&fab, FT_ONE);
		FT_POST(&fab, rma_post(&fab, &o));
	}
	ft_signal(ft, 1, SIGKILL);
	for (int i = 0; i < CNT; i++)
		ft_wait(&fab, ops[i]); /* success or error, once */
	ft_quiet(&fab, 0.05);
	ft_region_close(&region);
	ft_fab_close(&fab);
}

static void run_self(struct ft *ft)
{
	struct ft_region region;
	uint8_t out[5000], in[5000];
	struct ft_fab fab;

	if (ft->opts->type == FI_EP_MSG)
		ft_notrun("a connected endpoint is not connected to itself");
	rma_begin(&fab, ft, (struct ft_want){ 0 });
	ft_region_open(&fab, &region, 10000, RMA_ALL, 77);
	ft_fill(out, sizeof(out), 5);
	for (int i = 0; i < 2; i++) {
		struct rma_op o = { .how = i ? READ : WRITE,
				    .buf = i ? in : out,
				    .len = sizeof(out),
				    .addr = region.here.base + 100,
				    .key = region.here.key,
				    .op = ft_op_new(&fab, FT_ONE) };

		FT_POST(&fab, rma_post(&fab, &o));
		ft_wait_good(&fab, o.op);
	}
	FT_CHECK(!memcmp(out, in, sizeof(in)), "wrong bytes");
	rma_end(&fab, &region);
}

/* Both sides at once, many operations in flight, in both directions, with messages in between. */
static void run_crossing(struct ft *ft)
{
	enum { CNT = 64, LEN = 3000 };
	static uint8_t bufs[CNT][LEN];
	struct ft_region region;
	struct ft_op *ops[CNT];
	struct ft_fab fab;

	rma_begin(&fab, ft, (struct ft_want){ 0 });
	ft_region_open(&fab, &region, CNT * LEN, RMA_ALL, 77);
	ft_region_swap(&fab, &region, !ft->rank);
	for (int round = 0; round < 10; round++) {
		bool read = round & 1;

		for (int i = 0; i < CNT; i++) {
			struct rma_op o = { .how = read ? READ : WRITE,
					    .buf = bufs[i],
					    .len = LEN,
					    .rank = !ft->rank,
					    .key = region.there.key,
					    .addr = region.there.base + (uint64_t)i * LEN };

			if (!read)
				ft_fill(bufs[i], LEN, (uint32_t)(round * CNT + i));
			ops[i] = o.op = ft_op_new(&fab, FT_ONE);
			FT_POST(&fab, rma_post(&fab, &o));
		}
		for (int i = 0; i < CNT; i++)
			ft_wait_good(&fab, ops[i]);
		for (int i = 0; read && i < CNT; i++)
			FT_CHECK(ft_wrong(bufs[i], LEN, (uint32_t)((round - 1) * CNT + i)) < 0,
				 "piece %d of round %d is wrong", i, round);
		ft_sync(ft);
	}
	rma_end(&fab, &region);
}

/* A region's counter counts every write to it, and nothing else. */
static void run_events(struct ft *ft)
{
	enum { CNT = 20, LEN = 5000 };
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	static uint8_t local[LEN];
	struct ft_region region;
	struct fid_cntr *cntr;
	struct ft_fab fab;
	double deadline;

	rma_begin(&fab, ft, (struct ft_want){ .caps = FI_RMA_EVENT });
	ft_region_open(&fab, &region, LEN, RMA_ALL, 81);
	FT_CLOSE(region.mr);
	FT_OK(fi_mr_reg(fab.domain, region.buf, LEN, RMA_ALL, 0, 81, FI_RMA_EVENT, &region.mr,
			NULL));
	FT_OK(fi_cntr_open(fab.domain, &attr, &cntr, NULL));
	FT_OK(fi_mr_bind(region.mr, &cntr->fid, FI_REMOTE_WRITE));
	region.here.key = fi_mr_key(region.mr);
	ft_region_swap(&fab, &region, !ft->rank);
	for (int i = 0; ft->rank == 0 && i < 2 * CNT; i++) {
		struct rma_op o = { .how = i % 2 ? READ : WRITE,
				    .buf = local,
				    .len = LEN,
				    .rank = 1,
				    .key = region.there.key,
				    .addr = region.there.base,
				    .op = ft_op_new(&fab, FT_ONE) };

		FT_POST(&fab, rma_post(&fab, &o));
		ft_wait_good(&fab, o.op);
	}
	deadline = ft_deadline(&fab);
	while (ft->rank == 1 && fi_cntr_read(cntr) < CNT)
		ft_again(&fab, deadline);
	ft_sync(ft);
	FT_RET(fi_cntr_read(cntr), ft->rank ? CNT : 0);
	FT_RET(fi_cntr_readerr(cntr), 0);
	FT_CLOSE(region.mr);
	FT_CLOSE(cntr);
	FT_OK(fi_mr_reg(fab.domain, region.buf, LEN, RMA_ALL, 0, 81, 0, &region.mr, NULL));
	rma_end(&fab, &region);
}

static const struct ft_case cases[] = {
	FT_CASE("events", run_events, "A region's counter counts what peers write to it."),
	FT_CASE("calls", run_calls, "Every call moves the bytes it names, and completes once."),
	FT_CASE("basic", run_basic, "The same with FI_MR_BASIC: addresses are virtual."),
	FT_CASE("scalable", run_scalable, "The same with FI_MR_SCALABLE: addresses are offsets."),
	FT_CASE("auto", run_auto, "The same with automatic progress."),
	FT_CASE("delivered", run_delivered,
		"After FI_DELIVERY_COMPLETE the target sees the bytes."),
	FT_CASE("silent", run_silent,
		"Counted if silent; the target has a completion of data only."),
	FT_CASE("forbidden", rma_run_forbidden,
		"Bounds, keys and rights are enforced, with an error at the initiator."),
	FT_CASE("closed", rma_run_closed, "A closed region is an error at the peer."),
	FT_CASE("crossing", run_crossing, "Many from both sides at once."),
	FT_CASE("self", run_self, "An endpoint reaches its own memory.", .procs = 1),
	FT_CASE("killed", run_killed, "What is open with a dead target ends once.", .victims = 2,
		.local = true, .fresh = true),
};

int main(int argc, char **argv)
{
	return ft_main(argc, argv, "Reads and writes go where they may, and nowhere else.", cases,
		       FT_CNT(cases));
}
