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
#include "util/fi_old.h"

#include <rdma/fi_rma.h>
#include <signal.h>
#include <unistd.h>

#define REGION   (400 * 1024)
#define ALL      (FI_REMOTE_READ | FI_REMOTE_WRITE | FI_READ | FI_WRITE | FI_SEND | FI_RECV)
#define THE_DATA 0x1122334455667788ull

enum rma { WRITE, WRITEV, WRITEMSG, WRITEDATA, INJECT, INJECTDATA, READ, READV, READMSG, RMAS };

static const char *const names[RMAS] = { "write",     "writev", "writemsg",
					 "writedata", "inject", "inject_writedata",
					 "read",      "readv",  "readmsg" };

static bool reads(enum rma how)
{
	return how >= READ;
}

static bool injects(enum rma how)
{
	return how == INJECT || how == INJECTDATA;
}

static bool tells(enum rma how)
{
	return how == WRITEDATA || how == INJECTDATA;
}

struct rma_op {
	enum rma how;
	uint8_t *buf;
	size_t len;
	int rank;
	uint64_t addr, key, flags;
	struct ft_op *op;
};

static ssize_t rma_by_msg(struct ft_fab *fab, const struct rma_op *o, const struct iovec *iov,
			  size_t cnt)
{
	struct fi_rma_iov there = { .addr = o->addr, .len = o->len, .key = o->key };
	struct fi_msg_rma msg = { .msg_iov = iov,
				  .iov_count = cnt,
				  .addr = fab->addr[o->rank],
				  .rma_iov = &there,
				  .rma_iov_count = 1,
				  .data = THE_DATA,
				  .context = o->op ? &o->op->context : NULL };

	return reads(o->how) ? fi_readmsg(fab->ep, &msg, o->flags)
			     : fi_writemsg(fab->ep, &msg, o->flags);
}

static ssize_t rma(struct ft_fab *fab, const struct rma_op *o)
{
	struct iovec iov[2] = { { o->buf, o->len / 3 },
				{ o->buf + o->len / 3, o->len - o->len / 3 } };
	size_t cnt = fab->info->tx_attr->iov_limit > 1 ? 2 : 1;
	void *context = o->op ? &o->op->context : NULL;
	fi_addr_t to = fab->addr[o->rank];

	if (cnt == 1)
		iov[0].iov_len = o->len;
	switch (o->how) {
	case WRITE: return fi_write(fab->ep, o->buf, o->len, NULL, to, o->addr, o->key, context);
	case WRITEV: return fi_writev(fab->ep, iov, NULL, cnt, to, o->addr, o->key, context);
	case WRITEDATA:
		return fi_writedata(fab->ep, o->buf, o->len, NULL, THE_DATA, to, o->addr, o->key,
				    context);
	case INJECT: return fi_inject_write(fab->ep, o->buf, o->len, to, o->addr, o->key);
	case INJECTDATA:
		return fi_inject_writedata(fab->ep, o->buf, o->len, THE_DATA, to, o->addr, o->key);
	case READ: return fi_read(fab->ep, o->buf, o->len, NULL, to, o->addr, o->key, context);
	case READV: return fi_readv(fab->ep, iov, NULL, cnt, to, o->addr, o->key, context);
	default: return rma_by_msg(fab, o, iov, cnt);
	}
}

static void begin(struct ft_fab *fab, struct ft *ft, struct ft_want want)
{
	want.caps |= FI_RMA | FI_MSG;
	ft_fab_open(fab, ft, &want);
}

static void end(struct ft_fab *fab, struct ft_region *region)
{
	ft_quiet(fab, 0.02);
	FT_CHECK(!ft_open_ops(fab), "%u operations never completed", ft_open_ops(fab));
	ft_sync(fab->ft);
	if (region)
		ft_region_close(region);
	ft_fab_close(fab);
}

/* Waits until the target has had `cnt` remote completions in all. */
static void await_remote(struct ft_fab *fab, unsigned cnt)
{
	struct fi_cq_tagged_entry entry;
	double deadline = ft_deadline(fab);

	while (ft_remotes(fab, &entry) < cnt) {
		ft_poll(fab);
		FT_CHECK(ft_now() < deadline, "the target has no completion of the data");
	}
	FT_CHECK(entry.flags & FI_RMA && entry.flags & FI_REMOTE_CQ_DATA, "flags %#llx",
		 (unsigned long long)entry.flags);
	FT_CHECK(entry.data == THE_DATA, "data %#llx", (unsigned long long)entry.data);
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

	if (!reads(s->how))
		ft_fill(buf, s->len, s->key);
	if (!injects(s->how))
		o.op = ft_op_new(fab, FT_ONE);
	FT_POST(fab, rma(fab, &o));
	if (injects(s->how)) {
		memset(buf, 0x55, s->len);
	} else {
		ft_wait(fab, o.op);
		FT_CHECK(!o.op->err, "%s of %zu: %s", names[s->how], s->len,
			 ft_err_name(o.op->err));
		FT_CHECK((o.op->flags & (FI_RMA | FI_READ | FI_WRITE)) ==
				 (FI_RMA | (reads(s->how) ? FI_READ : FI_WRITE)),
			 "flags %#llx", (unsigned long long)o.op->flags);
		ft_op_put(fab, o.op);
	}
	if (reads(s->how)) {
		FT_CHECK(ft_wrong_from(buf, s->len, 1000, s->off) < 0, "%s of %zu: wrong bytes",
			 names[s->how], s->len);
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
	if (reads(s->how))
		return;
	if (tells(s->how) || s->flags & FI_REMOTE_CQ_DATA)
		await_remote(fab, ++*notified);
	while (!written(region, s)) {
		ft_fab_progress(fab);
		FT_CHECK(ft_now() < deadline, "%s of %zu never arrives whole", names[s->how],
			 s->len);
	}
	for (size_t i = 0; i < REGION; i++)
		FT_CHECK((i >= s->off && i < s->off + s->len) || region->buf[i] == 0xEE,
			 "%s of %zu at %zu wrote byte %zu", names[s->how], s->len, s->off, i);
}

static void one_step(struct ft_fab *fab, struct ft_region *region, const struct step *s,
		     unsigned *notified)
{
	if (injects(s->how) && s->len > fab->info->tx_attr->inject_size)
		return;
	if (fab->ft->rank == 1) {
		ft_region_clear(region);
		if (reads(s->how))
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

	begin(&fab, ft, want);
	ft_region_open(&fab, &region, REGION, ALL, 77);
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
	end(&fab, &region);
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

	begin(&fab, ft, want);
	ft_region_open(&fab, &region, REGION, ALL, 77);
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
			FT_POST(&fab, rma(&fab, &o));
			ft_wait_good(&fab, o.op);
		}
		ft_sync(ft);
		if (ft->rank == 1)
			FT_CHECK(ft_wrong(region.buf, len, i) < 0, "%zu bytes are not there", len);
		ft_sync(ft);
	}
	ft_buf_free(buf);
	end(&fab, &region);
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

	begin(&fab, ft, want);
	ft_region_open(&fab, &region, REGION, ALL, 77);
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

		FT_POST(&fab, rma(&fab, &o));
	}
	while (ft->rank == 0 && fi_cntr_read(fab.tx_cntr) < CNT)
		FT_CHECK(ft_now() < deadline, "the counter stays at %llu",
			 (unsigned long long)fi_cntr_read(fab.tx_cntr));
	ft_sync(ft);
	ft_quiet(&fab, 0.03);
	FT_CHECK(!ft_remotes(&fab, NULL), "the target had a completion without data");
	end(&fab, &region);
}

/* ---- access rights ---- */

static void must_fail(struct ft_fab *fab, enum rma how, uint64_t addr, uint64_t key, size_t len)
{
	uint8_t *buf = ft_buf_new(len);
	struct rma_op o = { .how = how,
			    .buf = buf,
			    .len = len,
			    .rank = 1,
			    .addr = addr,
			    .key = key,
			    .op = ft_op_new(fab, FT_ONE) };

	FT_POST(fab, rma(fab, &o));
	ft_wait(fab, o.op);
	FT_CHECK(o.op->err, "%s of %zu bytes, which is forbidden, ended well", names[how], len);
	ft_buf_check(buf, len, 0); /* a failed read has written nothing */
	ft_op_put(fab, o.op);
	ft_buf_free(buf);
}

static void run_forbidden(struct ft *ft)
{
	struct ft_region both, to_read, to_write;
	struct ft_fab fab;

	begin(&fab, ft, (struct ft_want){ 0 });
	ft_region_open(&fab, &both, 10000, ALL, 77);
	ft_region_open(&fab, &to_read, 10000, FI_REMOTE_READ, 78);
	ft_region_open(&fab, &to_write, 10000, FI_REMOTE_WRITE, 79);
	ft_region_swap(&fab, &both, !ft->rank);
	ft_region_swap(&fab, &to_read, !ft->rank);
	ft_region_swap(&fab, &to_write, !ft->rank);
	for (int i = 0; ft->rank == 0 && i < 2; i++) {
		enum rma how = i ? READ : WRITE;

		must_fail(&fab, how, both.there.base + 9999, both.there.key, 2);
		must_fail(&fab, how, both.there.base + 10001, both.there.key, 1);
		must_fail(&fab, how, both.there.base, both.there.key, 10001);
		must_fail(&fab, how, both.there.base - 1, both.there.key, 1);
		must_fail(&fab, how, both.there.base + UINT64_MAX - 5, both.there.key, 100);
		must_fail(&fab, how, both.there.base, both.there.key ^ 0x5A5A5A, 8);
		must_fail(&fab, how, i ? to_write.there.base : to_read.there.base,
			  i ? to_write.there.key : to_read.there.key, 8);
	}
	ft_sync(ft);
	ft_buf_check(both.buf, 10000, 0);
	ft_buf_check(to_read.buf, 10000, 0);
	if (ft->rank == 0) { /* the connection still works */
		struct rma_op o = { .how = READ,
				    .buf = both.buf,
				    .len = 100,
				    .rank = 1,
				    .addr = both.there.base,
				    .key = both.there.key,
				    .op = ft_op_new(&fab, FT_ONE) };

		FT_POST(&fab, rma(&fab, &o));
		ft_wait_good(&fab, o.op);
	}
	ft_sync(ft);
	ft_region_close(&to_read);
	ft_region_close(&to_write);
	end(&fab, &both);
}

/* A closed region cannot be accessed; its neighbour can. */
static void run_closed(struct ft *ft)
{
	struct ft_region first, second;
	struct ft_fab fab;

	begin(&fab, ft, (struct ft_want){ 0 });
	ft_region_open(&fab, &first, 10000, ALL, 77);
	ft_region_open(&fab, &second, 10000, ALL, 78);
	ft_region_swap(&fab, &first, !ft->rank);
	ft_region_swap(&fab, &second, !ft->rank);
	ft_region_close(&first);
	ft_sync(ft);
	if (ft->rank == 0) {
		must_fail(&fab, WRITE, first.there.base, first.there.key, 8);
		must_fail(&fab, READ, first.there.base, first.there.key, 8);
		must_fail(&fab, READ, first.there.base, first.there.key, 9000);
	}
	ft_sync(ft);
	end(&fab, &second);
}

static void run_killed(struct ft *ft)
{
	enum { CNT = 24 };
	static uint8_t bufs[CNT][REGION / 2];
	struct ft_region region;
	struct ft_op *ops[CNT];
	struct ft_fab fab;

	/* How long a target that was stopped before it was connected is waited for. */
	setenv("FI_COPYRPC_PEER_TIMEOUT", "2000", 1);
	begin(&fab, ft, (struct ft_want){ 0 });
	ft_region_open(&fab, &region, REGION, ALL, 77);
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
		FT_POST(&fab, rma(&fab, &o));
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
	begin(&fab, ft, (struct ft_want){ 0 });
	ft_region_open(&fab, &region, 10000, ALL, 77);
	ft_fill(out, sizeof(out), 5);
	for (int i = 0; i < 2; i++) {
		struct rma_op o = { .how = i ? READ : WRITE,
				    .buf = i ? in : out,
				    .len = sizeof(out),
				    .addr = region.here.base + 100,
				    .key = region.here.key,
				    .op = ft_op_new(&fab, FT_ONE) };

		FT_POST(&fab, rma(&fab, &o));
		ft_wait_good(&fab, o.op);
	}
	FT_CHECK(!memcmp(out, in, sizeof(in)), "wrong bytes");
	end(&fab, &region);
}

/* Both sides at once, many operations in flight, in both directions, with messages in between. */
static void run_crossing(struct ft *ft)
{
	enum { CNT = 64, LEN = 3000 };
	static uint8_t bufs[CNT][LEN];
	struct ft_region region;
	struct ft_op *ops[CNT];
	struct ft_fab fab;

	begin(&fab, ft, (struct ft_want){ 0 });
	ft_region_open(&fab, &region, CNT * LEN, ALL, 77);
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
			FT_POST(&fab, rma(&fab, &o));
		}
		for (int i = 0; i < CNT; i++)
			ft_wait_good(&fab, ops[i]);
		for (int i = 0; read && i < CNT; i++)
			FT_CHECK(ft_wrong(bufs[i], LEN, (uint32_t)((round - 1) * CNT + i)) < 0,
				 "piece %d of round %d is wrong", i, round);
		ft_sync(ft);
	}
	end(&fab, &region);
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

	begin(&fab, ft, (struct ft_want){ .caps = FI_RMA_EVENT });
	ft_region_open(&fab, &region, LEN, ALL, 81);
	FT_CLOSE(region.mr);
	FT_OK(fi_mr_reg(fab.domain, region.buf, LEN, ALL, 0, 81, FI_RMA_EVENT, &region.mr, NULL));
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

		FT_POST(&fab, rma(&fab, &o));
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
	FT_OK(fi_mr_reg(fab.domain, region.buf, LEN, ALL, 0, 81, 0, &region.mr, NULL));
	end(&fab, &region);
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
	FT_CASE("forbidden", run_forbidden,
		"Bounds, keys and rights are enforced, with an error at the initiator."),
	FT_CASE("closed", run_closed, "A closed region is an error at the peer."),
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
