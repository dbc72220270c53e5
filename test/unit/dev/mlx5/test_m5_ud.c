/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Datagrams without a NIC: the structs as open and resolve fill them, on queues in memory. Golden
 * bytes are written by hand from the segments of the programmer's manual.
 */
#include "dev/mlx5/m5_ud.h"

#include "bytes.h"
#include "fake_dev.h"

TestSuite(m5_ud, .timeout = 200);

#define MTU   1024u
#define SLOTS 8u

struct fake_ud {
	struct m5_ud ud;
	struct m5_dev dev;
	struct ibv_qp qp;
	struct sq_device d;
	struct cq_device cq;
	uint64_t sends[SQ_DEVICE_MAX], recvs[SLOTS];
	uint8_t *rq;
	uint32_t rq_record;
	uint16_t rq_taken;
	alignas(64) uint8_t slots[SLOTS][64 + MTU];
};

static struct fake_ud *f;

static void setup(uint32_t blocks)
{
	f = aligned_alloc(64, (sizeof(*f) + 63) / 64 * 64);
	memset(f, 0, sizeof(*f));
	sq_device_init(&f->d, blocks, 256, 0);
	cq_device_init(&f->cq, 64, 64, 0);
	f->ud.cq = f->cq.cq;
	f->ud.sq = f->d.sq;
	f->ud.sq.uar = &f->d.uar;
	f->ud.dev = &f->dev;
	f->ud.ib.dev = &f->dev.ib;
	f->ud.ib.qp = &f->qp;
	f->qp.qp_num = FAKE_QPN;
	f->ud.ib.base =
		(struct dev_dgram){ .mtu = MTU, .inline_max = M5_UD_INLINE, .rx_cnt = SLOTS };
	f->ud.ib.rx.addr = f->slots;
	f->ud.ib.stride = 64 + MTU;
	strcpy(f->dev.ib.name, "fake_0:1");
	m5_sparse_init(&f->ud.users, f->sends, blocks);
	f->rq = guard_alloc(SLOTS * 16);
	m5_rq_init(&f->ud.rq, f->rq, SLOTS, 16, &f->rq_record, f->recvs, 40 + MTU, FAKE_LKEY, 0);
	for (uint32_t i = 0; i < SLOTS; i++)
		m5_rq_put(&f->ud.rq, ib_ud_slot(&f->ud.ib, i) + IB_UD_GRH_OFF, i);
	m5_rq_publish(&f->ud.rq);
}

static void teardown(void)
{
	sq_device_fini(&f->d);
	cq_device_fini(&f->cq);
	guard_free(f->rq, SLOTS * 16);
	free(f);
}

static struct m5_ud_ah ah_make(bool extended)
{
	const struct ib_ud_desc d = { .qpn = 0xabcdef, .qkey = 0x11223344, .is_eth = extended };
	struct m5_av made = { .stat_rate_sl = 3, .rlid = htobe16(0x0102) };
	struct m5_ud_ah ah = { 0 };

	memset(made.rgid, 0x77, sizeof(made.rgid));
	m5_ud_av(&ah.av, &made, &d);
	return ah;
}

/** Makes a datagram of len bytes in one piece. */
static struct dev_dgram_out one(const struct m5_ud_ah *ah, const void *at, uint32_t len)
{
	static const struct ib_user mem = { .lkey = FAKE_LKEY };

	return (struct dev_dgram_out){
		.to = &ah->base, .base = { at }, .len = { len }, .mem = { &mem.base, &mem.base }
	};
}

/** Fills the next receive, like the device. */
static void arrive(uint32_t len, uint32_t qpn, uint16_t lid)
{
	uint8_t *cqe;
	uint32_t v = htobe32(40 + len);

	cr_assert_neq(f->rq_taken, (uint16_t)be32toh(f->rq_record), "the device has no buffer");
	cqe = cq_device_at(&f->cq, f->cq.pi);
	cq_device_write(&f->cq, M5_CQE_RESP_SEND << 4, FAKE_QPN, f->rq_taken++, 0);
	memcpy(cqe + 44, &v, 4);
	v = htobe32(qpn);
	memcpy(cqe + 24, &v, 4);
	cqe[22] = (uint8_t)(lid >> 8);
	cqe[23] = (uint8_t)lid;
}

static void report(uint16_t counter)
{
	cq_device_write(&f->cq, M5_CQE_REQ << 4, (uint32_t)M5_OP_SEND << 24 | FAKE_QPN, counter, 0);
}

static int poll_none(void)
{
	struct dev_dgram_in in;

	return m5_ud_poll(&f->ud.ib.base, &in, 1);
}

Test(m5_ud, a_short_datagram_with_a_short_address_is_one_block)
{
	struct m5_ud_ah ah = ah_make(false);
	struct dev_dgram_out out = one(&ah, "abcd", 4);

	setup(16);
	out.base[1] = "efg";
	out.len[1] = 3;
	cr_assert_eq(m5_ud_send(&f->ud.ib.base, &out, 1), 1);
	EXPECT_AT(f->d.buf,
		  /* control: send, 3 units */
		  0, 0, 0, 0x0a, 0x12, 0x34, 0x56, 3, 0, 0, 0, 0, 0, 0, 0, 0,
		  /* Q_Key, reserved, QP number, rate and SL, path, LID */
		  0x11, 0x22, 0x33, 0x44, 0, 0, 0, 0, 0x00, 0xab, 0xcd, 0xef, 3, 0, 1, 2,
		  /* inline: count, both pieces, zeros */
		  0x80, 0, 0, 7, 'a', 'b', 'c', 'd', 'e', 'f', 'g', 0, 0, 0, 0, 0);
	cr_expect_arr_eq(f->d.reg, f->d.buf, 64, "BlueFlame");
	cr_expect_eq(f->ud.sq.pi, 1);
	teardown();
}

Test(m5_ud, a_long_one_is_gathered_piece_by_piece)
{
	struct m5_ud_ah ah = ah_make(true);
	struct dev_dgram_out out = one(&ah, (const void *)0x0102030405060708ull, 16);

	setup(16);
	out.base[1] = (const void *)0x1112131415161718ull;
	out.len[1] = 0x400;
	cr_assert_eq(m5_ud_send(&f->ud.ib.base, &out, 1), 1);
	EXPECT_AT(f->d.buf, 0, 0, 0, 0x0a, 0x12, 0x34, 0x56, 6, 0, 0, 0, 0, 0, 0, 0, 0,
		  /* address: extended */
		  0x11, 0x22, 0x33, 0x44, 0, 0, 0, 0, 0x80, 0xab, 0xcd, 0xef, 3, 0, 1, 2);
	EXPECT_AT(f->d.buf + 48, 0x77, 0x77, 0x77, 0x77);
	EXPECT_AT(f->d.buf + 64, 0, 0, 0, 16, 0x00, 0x11, 0x11, 0x11, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0,
		  4, 0, 0x00, 0x11, 0x11, 0x11, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18);
	cr_expect_eq(f->ud.sq.pi, 2);
	teardown();
}

Test(m5_ud, an_empty_datagram_is_an_address_alone)
{
	struct m5_ud_ah ah = ah_make(false);
	struct dev_dgram_out out = one(&ah, NULL, 0);

	setup(16);
	cr_assert_eq(m5_ud_send(&f->ud.ib.base, &out, 1), 1);
	cr_expect_eq(f->d.buf[7], 2);
	teardown();
}

Test(m5_ud, inline_ends_at_its_limit)
{
	static const uint8_t bytes[M5_UD_INLINE + 1];
	struct m5_ud_ah ah = ah_make(true);
	struct dev_dgram_out out = one(&ah, bytes, M5_UD_INLINE);

	setup(16);
	cr_assert_eq(m5_ud_send(&f->ud.ib.base, &out, 1), 1);
	cr_expect_eq(f->d.buf[64], 0x80, "inline");
	cr_expect_eq(f->ud.sq.pi, M5_UD_BB);
	out.len[0]++;
	cr_assert_eq(m5_ud_send(&f->ud.ib.base, &out, 1), 1);
	cr_expect_eq(f->d.buf[128 + 64], 0, "gathered");
	teardown();
}

Test(m5_ud, a_burst_is_one_doorbell)
{
	struct m5_ud_ah ah = ah_make(true);
	struct dev_dgram_out out[6];

	setup(64);
	for (unsigned i = 0; i < 6; i++)
		out[i] = one(&ah, "x", 1);
	cr_assert_eq(m5_ud_send(&f->ud.ib.base, out, 6), 6);
	cr_expect_eq(sq_device_rings(&f->d), 1);
	cr_expect_eq(m5_ud_send(&f->ud.ib.base, out, 0), 0);
	cr_expect_eq(sq_device_rings(&f->d), 1, "an empty burst rings no doorbell");
	cr_expect_eq(f->ud.ib.base.tx_posted, 6);
	teardown();
}

/* Smallest queue, counters past 16 bits: always full or empty, never stuck. */
Test(m5_ud, room_comes_back_without_report_requests)
{
	static const uint8_t bytes[MTU];
	struct m5_ud_ah wide = ah_make(true), narrow = ah_make(false);
	struct dev_dgram_out out[3] = { one(&wide, bytes, 30), one(&narrow, bytes, 5),
					one(&wide, bytes, MTU) };
	uint32_t sent = 0, full = 0;
	int ret;

	setup(8);
	while (sent < 100000) {
		ret = m5_ud_send(&f->ud.ib.base, out, 3);
		f->d.sq.ci = f->ud.sq.ci;
		sq_device_run(&f->d);
		if (ret == -FI_EAGAIN) {
			full++;
			cr_assert_neq(f->d.head, f->d.tail, "full, and no WQE will report");
			report(f->d.done[f->d.head++ % SQ_DEVICE_MAX]);
			cr_assert_eq(poll_none(), 0);
			continue;
		}
		cr_assert_gt(ret, 0);
		sent += (uint32_t)ret;
		cr_assert_eq(f->ud.ib.base.tx_posted, sent);
	}
	cr_expect_gt(full, 1000);
	cr_expect(f->ud.ib.base.tx_posted - f->ud.ib.base.tx_done <= 8);
	teardown();
}

Test(m5_ud, a_requested_report_covers_all_datagrams_before_it)
{
	struct m5_ud_ah ah = ah_make(false);
	struct dev_dgram_out out = one(&ah, "x", 1);

	setup(64);
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(m5_ud_send(&f->ud.ib.base, &out, 1), 1);
	out.flags = DEV_DGRAM_REPORT;
	cr_assert_eq(m5_ud_send(&f->ud.ib.base, &out, 1), 1);
	sq_device_run(&f->d);
	cr_assert_eq(f->d.tail, 1);
	cr_expect(!dev_dgram_is_done(&f->ud.ib.base, 0));
	report(f->d.done[0]);
	cr_expect_eq(poll_none(), 0);
	cr_expect(dev_dgram_is_done(&f->ud.ib.base, 3));
	cr_expect_eq(f->ud.ib.base.tx_done, 4);
	teardown();
}

Test(m5_ud, received_bytes_stay_until_released)
{
	struct dev_dgram_in in[SLOTS + 1];

	setup(16);
	for (uint32_t i = 0; i < SLOTS; i++)
		arrive(i, 0x100 + i, 7);
	cr_assert_eq(m5_ud_poll(&f->ud.ib.base, in, 3), 3);
	cr_assert_eq(m5_ud_poll(&f->ud.ib.base, in + 3, SLOTS), SLOTS - 3);
	cr_expect_eq(f->ud.ib.base.rx_retained, SLOTS);
	for (uint32_t i = 0; i < SLOTS; i++) {
		struct dev_dgram_ah ah;

		cr_expect_eq(in[i].len, i);
		cr_expect_eq(in[i].data, f->slots[in[i].slot] + 64);
		ib_ud_id_lid(&ah.id, 0x100 + i, 7);
		cr_expect(dev_dgram_is_from(&ah, &in[i]));
	}
	cr_expect_eq(be32toh(f->rq_record), SLOTS);
	m5_ud_release(&f->ud.ib.base, in[5].slot);
	cr_expect_eq(be32toh(f->rq_record), SLOTS + 1, "the device had no buffer");
	cr_expect_eq(be32toh(f->cq.record[0]), SLOTS, "consumer index was published before");
	arrive(9, 1, 1);
	cr_assert_eq(m5_ud_poll(&f->ud.ib.base, in, 1), 1);
	cr_expect_eq(in[0].slot, 5);
	cr_expect_eq(f->ud.ib.base.rx_retained, SLOTS);
	teardown();
}

Test(m5_ud, is_idle_if_poll_would_find_nothing)
{
	struct m5_ud_ah ah = ah_make(false);
	struct dev_dgram_out out = one(&ah, "abcd", 4);

	setup(16);
	cr_expect(m5_ud_is_idle(&f->ud.ib.base));
	arrive(4, 7, 8);
	cr_expect_not(m5_ud_is_idle(&f->ud.ib.base));
	cr_expect_eq(poll_none(), 1);
	cr_expect(m5_ud_is_idle(&f->ud.ib.base));
	cr_assert_eq(m5_ud_send(&f->ud.ib.base, &out, 1), 1);
	report(0);
	cr_expect_not(m5_ud_is_idle(&f->ud.ib.base), "a report is pending");
	cr_expect_eq(poll_none(), 0);
	ib_ud_fail(&f->ud.ib, -FI_EIO);
	cr_expect_not(m5_ud_is_idle(&f->ud.ib.base), "poll returns the error");
	teardown();
}

Test(m5_ud, datagrams_of_impossible_length_are_dropped)
{
	static const uint32_t bad[] = { MTU + 1, (uint32_t)-1, (uint32_t)-40 };

	setup(16);
	for (unsigned i = 0; i < 3; i++) {
		arrive(bad[i], 1, 1);
		cr_expect_eq(poll_none(), 0);
	}
	cr_expect_eq(f->ud.ib.base.rx_retained, 0);
	teardown();
}

Test(m5_ud, small_data_in_the_cqe_is_copied_to_the_slot)
{
	struct dev_dgram_in in;
	uint32_t v = htobe32(41);
	uint8_t *cqe;

	setup(16);
	/* 128-byte CQEs have them in the first 64 bytes. */
	cq_device_fini(&f->cq);
	cq_device_init(&f->cq, 8, 128, 0);
	f->ud.cq = f->cq.cq;
	cqe = cq_device_at(&f->cq, 0);
	memset(cqe - 64, 0x5a, 41);
	cq_device_write(&f->cq, M5_CQE_RESP_SEND << 4 | M5_CQE_SCATTER64, FAKE_QPN, 0, 0);
	memcpy(cqe + 44, &v, 4);
	cr_assert_eq(m5_ud_poll(&f->ud.ib.base, &in, 1), 1);
	cr_expect_eq(in.len, 1);
	cr_expect_eq(in.data[0], 0x5a);
	teardown();
}

Test(m5_ud, the_first_error_ends_the_endpoint)
{
	struct m5_ud_ah ah = ah_make(false);
	struct dev_dgram_out out = one(&ah, "x", 1);
	struct dev_dgram_in in;

	setup(16);
	arrive(1, 1, 1);
	cq_device_at(&f->cq, 1)[55] = 0;
	cq_device_write(&f->cq, M5_CQE_REQ_ERR << 4, FAKE_QPN, 0, 0);
	cq_device_at(&f->cq, 1)[55] = 0x04;
	cr_expect_eq(m5_ud_poll(&f->ud.ib.base, &in, 4), 1, "earlier arrivals come first");
	cr_expect_eq(poll_none(), -FI_EACCES);
	cr_expect_eq(m5_ud_send(&f->ud.ib.base, &out, 1), -FI_EACCES);
	cq_device_write(&f->cq, M5_CQE_RESP_ERR << 4, FAKE_QPN, 1, 0);
	cq_device_at(&f->cq, 2)[55] = 0x05;
	cr_expect_eq(poll_none(), -FI_EACCES, "not the flushed ones");
	teardown();
}

Test(m5_ud, completions_of_unknown_wqes_are_harmless)
{
	setup(16);
	report(5);
	cq_device_write(&f->cq, M5_CQE_RESP_SEND_IMM << 4, FAKE_QPN, 0, 0);
	cr_expect_eq(poll_none(), 0);
	cr_expect_eq(f->ud.ib.base.tx_done, 0);
	cr_expect_eq(f->ud.ib.base.rx_retained, 0);
	teardown();
}
