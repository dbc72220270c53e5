/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Origin of the golden bytes: the programmer's manual's WQE, by hand (see test_m5_wqe.c). */
#include "dev/mlx5/m5_link.h"

#include "bytes.h"
#include "fake_dev.h"

TestSuite(m5_link, .timeout = 200);

static struct fake_dev *f;
static struct fake_link *l;

static void setup(uint32_t blocks)
{
	uint32_t i;

	f = fake_dev_make();
	l = fake_link_make(f, blocks, FAKE_QPN);
	for (i = 0; i < FAKE_RING; i++)
		l->link.ib.base.tx_base[i] = (uint8_t)(i * 13 + 5);
}

static void teardown(void)
{
	fake_link_free(l);
	fake_dev_free(f);
}

static int write_imm(uint64_t off, uint32_t len, uint32_t imm)
{
	return m5_link_ops_inline.write_imm(&l->link.ib.base, off, len, imm);
}

Test(m5_link, small_write_travels_in_its_wqe)
{
	const uint8_t *wqe;

	setup(16);
	cr_assert_eq(write_imm(64, 32, 0x01020304), 0);
	wqe = fake_link_wqe(l, 0);
	EXPECT_AT(wqe, 0, 0, 0, 0x09, 0x12, 0x34, 0x56, 5, 0, 0, 0, 0, 1, 2, 3, 4,
		  /* FAKE_PEER + 64, FAKE_RKEY */
		  0, 0, 0x7f, 0, 0, 0, 0, 0x40, 0, 0x22, 0x22, 0x22, 0, 0, 0, 0,
		  /* 32 bytes inline */
		  0x80, 0, 0, 32);
	cr_expect_arr_eq(wqe + 36, l->link.ib.base.tx_base + 64, 32);
	cr_expect_eq(l->link.sq.pi, 2);
	cr_expect_arr_eq(l->d.reg, wqe, 128, "BlueFlame copies the WQE whole");
	cr_expect_eq(be32toh(l->d.record[M5_DBR_SEND]), 2);
	teardown();
}

Test(m5_link, larger_write_is_fetched_from_the_send_ring)
{
	uint64_t at;

	setup(16);
	cr_assert_eq(write_imm(256, 1024, 32), 0);
	EXPECT_AT(fake_link_wqe(l, 0), 0, 0, 0, 0x09, 0x12, 0x34, 0x56, 3);
	EXPECT_AT(fake_link_wqe(l, 0) + 32, 0, 0, 4, 0, 0, 0x11, 0x11, 0x11);
	memcpy(&at, fake_link_wqe(l, 0) + 40, 8);
	cr_expect_eq(be64toh(at), (uintptr_t)l->link.ib.base.tx_base + 256);
	cr_expect_eq(l->link.sq.pi, 1);
	teardown();
}

Test(m5_link, longest_inline_write_takes_four_blocks)
{
	setup(16);
	cr_assert_eq(write_imm(0, M5_INLINE_MAX, 1), 0);
	cr_expect_eq(l->link.sq.pi, 4);
	cr_assert_eq(write_imm(0, M5_INLINE_MAX + 1, 1), 0);
	cr_expect_eq(l->link.sq.pi, 5);
	cr_expect_arr_eq(l->d.reg, fake_link_wqe(l, 0), 256, "BlueFlame");
	cr_expect_arr_eq(l->d.reg + 256, fake_link_wqe(l, 4), 48, "BlueFlame");
	teardown();
}

Test(m5_link, full_send_queue_is_eagain_without_side_effect)
{
	unsigned n = 0;
	uint16_t pi;

	setup(16);
	while (!write_imm(0, 32, 1))
		n++;
	cr_expect_eq(n, 8);
	pi = l->link.sq.pi;
	cr_expect_eq(write_imm(0, 32, 1), -FI_EAGAIN);
	cr_expect_eq(l->link.sq.pi, pi);
	cr_expect_eq(write_imm(0, 1024, 1), -FI_EAGAIN);
	teardown();
}

Test(m5_link, dead_link_posts_nothing)
{
	uint64_t value;

	setup(16);
	l->link.ib.dead = true;
	cr_expect_eq(write_imm(0, 32, 1), -FI_EAGAIN);
	cr_expect_eq(m5_link_read_consumer(&l->link.ib.base, &value), -FI_EAGAIN);
	cr_expect_eq(sq_device_rings(&l->d), 0);
	teardown();
}

Test(m5_link, writes_are_signalled_for_room_alone)
{
	unsigned i, signalled = 0;

	setup(256);
	for (i = 0; i < 128; i++) {
		cr_assert_eq(write_imm(0, 1024, 1), 0);
		signalled += !!(fake_link_wqe(l, (uint16_t)i)[11] & 0x08);
	}
	cr_expect_eq(signalled, 2);
	cr_expect(fake_link_wqe(l, 63)[11] & 0x08);
	cr_expect(fake_link_wqe(l, 127)[11] & 0x08);
	teardown();
}

/* Runs writes against a device that follows the rules (sq_device.h). */
Test(m5_link, the_device_reads_every_write_over_many_laps)
{
	static const uint32_t lens[] = { 32, 64, 220, 96, 4000, 160, 32, 256 };
	unsigned i, wqes = 0;

	setup(16);
	for (i = 0; i < 5000; i++) {
		while (write_imm(0, lens[i % 8], i + 1)) {
			l->d.sq.ci = l->link.sq.ci;
			sq_device_run(&l->d);
			cr_assert_neq(l->d.head, l->d.tail, "full, and no WQE will report");
			cr_assert(
				m5_sq_retire(&l->link.sq, l->d.done[l->d.head++ % SQ_DEVICE_MAX]));
		}
		wqes++;
	}
	l->d.sq.ci = l->link.sq.ci;
	sq_device_run(&l->d);
	cr_expect_eq(l->d.wqes, (uint16_t)wqes);
	teardown();
}
