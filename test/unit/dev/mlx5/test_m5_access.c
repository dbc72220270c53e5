/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "bytes.h"
#include "fake_dev.h"
#include "support/rng.h"

TestSuite(m5_access, .timeout = 200);

#define SIGNALLED(n) (!!(fake_link_wqe(l, (uint16_t)(n))[11] & 8))

static struct fake_dev *f;
static struct fake_link *l;
static struct ibv_mr mr = { .lkey = 0xa1 };
static struct ib_user user = { .mr = &mr };
static uint8_t bytes[M5_INLINE_MAX];
static struct dev_event ev;

static void setup(uint32_t blocks)
{
	f = fake_dev_make();
	l = fake_link_make(f, blocks, FAKE_QPN);
	cr_assert_eq(m5_link_attach(&l->link.ib.base), 0);
	for (unsigned i = 0; i < M5_INLINE_MAX; i++)
		bytes[i] = (uint8_t)(i + 1);
}

static void teardown(void)
{
	fake_link_free(l);
	fake_dev_free(f);
}

/** Writes `len` bytes inline, or from registered memory. */
static int put(uint32_t len, bool registered, unsigned flags)
{
	return m5_link_access(&l->link.ib.base, bytes, len, 0x5000, 0xbeef,
			      registered ? &user.base : NULL, flags | DEV_ACCESS_WRITE);
}

/** Lets the device complete a WQE, with an error if `syndrome` is one, and polls. */
static bool complete(uint16_t counter, uint8_t syndrome)
{
	uint32_t pi = f->tx.pi;

	cq_device_write(&f->tx, syndrome ? M5_CQE_REQ_ERR << 4 : 0, 0x08000000 | FAKE_QPN, counter,
			0);
	if (syndrome)
		cq_device_at(&f->tx, pi)[55] = syndrome;
	memset(&ev, 0, sizeof(ev));
	return m5_dev_ops_inline.poll((struct dev *)&f->dev, &ev);
}

Test(m5_access, a_write_is_one_wqe_one_doorbell_one_completion)
{
	setup(16);
	cr_assert_eq(put(7, false, 0), 0);
	EXPECT_AT(fake_link_wqe(l, 0), 0, 0, 0, 0x08, 0x12, 0x34, 0x56, 3, 0, 0, 0, 8, 0, 0, 0, 0,
		  /* remote */
		  0, 0, 0, 0, 0, 0, 0x50, 0, 0, 0, 0xbe, 0xef, 0, 0, 0, 0,
		  /* inline */
		  0x80, 0, 0, 7, 1, 2, 3, 4, 5, 6, 7);
	cr_expect_eq(sq_device_rings(&l->d), 1);
	cr_expect(complete(0, 0));
	cr_expect_eq(ev.kind, DEV_EV_ACCESS);
	cr_expect_eq(ev.value, 1);
	teardown();
}

Test(m5_access, a_read_scatters_to_registered_memory)
{
	setup(16);
	cr_assert_eq(m5_link_access(&l->link.ib.base, bytes, 100, 0x5000, 0xbeef, &user.base, 0),
		     0);
	EXPECT_AT(fake_link_wqe(l, 0), 0, 0, 0, 0x10, 0x12, 0x34, 0x56, 3, 0, 0, 0, 8, 0, 0, 0, 0,
		  0, 0, 0, 0, 0, 0, 0x50, 0, 0, 0, 0xbe, 0xef, 0, 0, 0, 0, 0, 0, 0, 100, 0, 0, 0,
		  0xa1);
	teardown();
}

Test(m5_access, a_run_rings_once_and_its_last_wqe_reports)
{
	setup(64);
	for (unsigned i = 0; i < 5; i++)
		cr_assert_eq(put(8, i & 1, DEV_ACCESS_MORE), 0);
	cr_expect_eq(sq_device_rings(&l->d), 0);
	m5_link_kick(&l->link.ib.base);
	cr_expect_eq(sq_device_rings(&l->d), 1);
	for (unsigned i = 0; i < 5; i++)
		cr_expect_eq(SIGNALLED(i), i == 4, "WQE %u", i);
	cr_expect(complete(4, 0));
	cr_expect_eq(ev.value, 5);
	cr_expect_eq(l->link.sq.ci, 5);
	teardown();
}

Test(m5_access, a_run_has_a_bound)
{
	setup(64);
	for (unsigned i = 0; i < M5_ACCESS_RUN_BB; i++)
		cr_assert_eq(put(8, false, DEV_ACCESS_MORE), 0);
	cr_expect_eq(sq_device_rings(&l->d), 0);
	cr_assert_eq(put(8, false, DEV_ACCESS_MORE), 0);
	cr_expect_eq(l->link.sq.rung, M5_ACCESS_RUN_BB);
	cr_expect(SIGNALLED(M5_ACCESS_RUN_BB - 1));
	teardown();
}

Test(m5_access, whatever_is_built_behind_a_run_ends_it)
{
	struct iovec iov = { bytes, 8 };
	uint64_t value;

	for (unsigned what = 0; what < 3; what++) {
		struct dev_get get = {
			.iov = &iov, .iov_cnt = 1, .len = 8, .flags = DEV_GET_INLINE | DEV_GET_MORE
		};

		setup(64);
		cr_assert_eq(put(8, false, DEV_ACCESS_MORE), 0);
		cr_assert_eq(put(8, false, DEV_ACCESS_MORE), 0);
		if (what == 0)
			cr_assert_eq(m5_link_write_imm(&l->link.ib.base, 0, 32, 1), 0);
		else if (what == 1)
			cr_assert_eq(m5_link_put(&l->link.ib.base, &get), 0);
		else
			cr_assert_eq(m5_link_read_consumer(&l->link.ib.base, &value), 0);
		cr_expect(!SIGNALLED(0) && SIGNALLED(1));
		cr_assert_eq(put(8, false, 0), 0);
		cr_expect_eq(l->link.sq.rung, l->link.sq.pi);
		teardown();
	}
}

Test(m5_access, silent_ones_report_when_settled)
{
	setup(256);
	cr_assert_eq(put(8, false, DEV_ACCESS_SILENT), 0);
	cr_expect_not(SIGNALLED(0));
	cr_assert_eq(m5_link_settle(&l->link.ib.base), 0);
	cr_expect_eq(fake_link_wqe(l, 1)[3], M5_OP_NOP);
	cr_expect(SIGNALLED(1));
	cr_assert_eq(m5_link_settle(&l->link.ib.base), 0);
	cr_expect_eq(l->link.sq.pi, 2, "once");
	cr_expect(complete(1, 0));
	cr_expect_eq(ev.value, 1);
	cr_assert_eq(put(8, false, DEV_ACCESS_SILENT | DEV_ACCESS_MORE), 0);
	cr_assert_eq(put(8, false, DEV_ACCESS_MORE), 0);
	cr_assert_eq(m5_link_settle(&l->link.ib.base), 0);
	cr_expect(SIGNALLED(3));
	cr_expect_eq(l->link.sq.pi, 4, "the run reports itself");
	teardown();
}

Test(m5_access, an_error_ends_those_before_it_well_and_then_the_link)
{
	for (unsigned bad = 0; bad < 4; bad++) {
		setup(64);
		for (unsigned i = 0; i < 4; i++)
			cr_assert_eq(put(8, false, DEV_ACCESS_MORE), 0);
		m5_link_kick(&l->link.ib.base);
		cr_assert(complete((uint16_t)bad, 0x13));
		if (bad) {
			cr_expect_eq(ev.kind, DEV_EV_ACCESS);
			cr_expect_eq(ev.value, bad);
			cr_expect_eq(put(8, false, 0), -FI_EAGAIN);
			cr_assert(complete(3, 0x05));
		}
		cr_expect_eq(ev.kind, DEV_EV_DOWN);
		cr_expect_eq(ev.status, -FI_EACCES);
		cr_expect_not(complete(3, 0x05), "no event follows");
		teardown();
	}
}

/** Writes `len` bytes, one access at a time, until the next one begins at block `until`. */
static void put_up_to(uint32_t len, uint16_t until)
{
	while (l->link.sq.pi != until) {
		uint16_t at = l->link.sq.pi;

		cr_assert_eq(put(len, false, 0), 0);
		cr_assert(complete(at, 0));
	}
}

/* Words of accesses that did not report stay in blocks at which no later one begins. */
Test(m5_access, an_error_does_not_end_accesses_whose_numbers_are_old)
{
	static const uint32_t ages[] = { 0, 100, INT32_MAX, UINT32_MAX - 100 };

	for (unsigned a = 0; a < 4; a++) {
		uint32_t cnt;

		setup(64);
		for (unsigned i = 0; i < 4; i++)
			cr_assert_eq(put(8, false, DEV_ACCESS_MORE), 0);
		m5_link_kick(&l->link.ib.base);
		cr_assert(complete(3, 0));
		l->link.ib.base.access_cnt += ages[a];
		put_up_to(64, 64);
		cnt = l->link.ib.base.access_cnt;
		for (unsigned i = 0; i < 2; i++)
			cr_assert_eq(put(64, false, DEV_ACCESS_MORE), 0);
		m5_link_kick(&l->link.ib.base);
		cr_assert(complete(66, 0x13));
		cr_expect_eq(ev.kind, DEV_EV_ACCESS);
		cr_expect_eq(ev.value, cnt + 1, "after %u accesses", ages[a]);
		teardown();
	}
}

/** Completes one WQE that reports, if there is one. Returns the accesses that have ended so far. */
static uint32_t reap(uint32_t ended)
{
	sq_device_run(&l->d);
	if (l->d.head == l->d.tail)
		return ended;
	if (!complete(l->d.done[l->d.head++ % SQ_DEVICE_MAX], 0) || ev.kind != DEV_EV_ACCESS)
		return ended;
	l->d.sq.ci = l->link.sq.ci;
	cr_assert_gt((int32_t)((uint32_t)ev.value - ended), 0, "grows");
	return (uint32_t)ev.value;
}

static void post_any(struct rng *rng)
{
	static const uint32_t lens[] = { 1, 28, 29, 100, M5_INLINE_MAX };
	unsigned flags = (rng_below(rng, 4) ? DEV_ACCESS_MORE : 0) |
			 (rng_below(rng, 3) ? 0 : DEV_ACCESS_SILENT);

	if (!rng_below(rng, 5))
		m5_link_write_imm(&l->link.ib.base, 0, 64, 1);
	else
		put(lens[rng_below(rng, 5)], rng_below(rng, 2), flags);
}

Test(m5_access, every_access_ends_over_many_laps_of_any_queue)
{
	struct rng rng = { rng_env("COPYRPC_TEST_SEED", 7) };

	for (uint32_t blocks = M5_SQ_MIN_BB; blocks <= 256; blocks *= 2) {
		uint32_t ended = UINT32_MAX - 1000;

		setup(blocks);
		l->link.ib.base.access_cnt = ended; /* wraps */
		for (unsigned i = 0; i < 5000; i++) {
			post_any(&rng);
			if (!rng_below(&rng, 3))
				m5_link_kick(&l->link.ib.base);
			l->d.sq.ci = l->link.sq.ci;
			if (rng_below(&rng, 2))
				ended = reap(ended);
		}
		for (unsigned i = 0; i < 2000 && ended != l->link.ib.base.access_cnt; i++) {
			m5_link_settle(&l->link.ib.base);
			ended = reap(ended);
		}
		cr_expect_eq(ended, l->link.ib.base.access_cnt, "%u blocks", blocks);
		teardown();
	}
}
