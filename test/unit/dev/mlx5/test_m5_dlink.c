/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Origin of the golden bytes: the programmer's manual's WQE and its address vector, by hand (see
 * test_m5_wqe.c).
 */
#include "dev/mlx5/m5_dlink.h"

#include "bytes.h"
#include "fake_dev.h"

#define DCTN    0x0a0b0cu
#define OWN_DCT 0x0d0e0fu
#define PEER_ID 0x1234u
#define OWN_ID  0x00abu

TestSuite(m5_dlink, .timeout = 200);

static unsigned resets;
static bool without_address;       /* the port has none: no queue pair becomes ready to receive */
static void (*during_reset)(void); /* or NULL */

/* Stands for the kernel: a queue pair may enter any state. */
int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	if (!(mask & IBV_QP_STATE))
		return 0;
	resets += attr->qp_state == IBV_QPS_RESET;
	if (attr->qp_state == IBV_QPS_RESET && during_reset)
		during_reset();
	return without_address && attr->qp_state == IBV_QPS_RTR ? EINVAL : 0;
}

static struct fake_dev *f;
static struct fake_link *l;
static struct sq_device device;
static struct m5_scq scq;
static struct cq_device tx;
static uint64_t words[16];
static uint8_t ring[4096];
static struct dev_event ev;

static void make_dci(void)
{
	struct m5_dci *dci = &f->dev.dc.pool.dci[0];

	m5_dcis_init(&f->dev.dc.pool);
	sq_device_init(&device, 16, 256, 0);
	cq_device_init(&tx, 16, 64, 0);
	scq = (struct m5_scq){ .cq = tx.cq };
	dci->sq = device.sq;
	dci->sq.uar = &device.uar;
	dci->scq = &scq;
	m5_sparse_init(&dci->users, words, 16);
	f->dev.dc.pool.cnt = 1;
	f->dev.dc.dctn = OWN_DCT;
}

static void setup(bool extended)
{
	struct m5_link *link;

	f = fake_dev_make();
	make_dci();
	l = fake_link_make(f, 16, 0);
	link = &l->link;
	link->sq = (struct m5_sq){ .qpn = m5_dlink_number(OWN_ID), .pi = 2, .rung = 2 };
	link->scq = NULL;
	m5_dlink_init(&link->dc.pool);
	link->dc.id = OWN_ID;
	link->dc.peer_imm = PEER_ID << 16;
	link->dc.is_on = true;
	link->dc.inline_max = extended ? 172 : 204;
	link->dc.av.qkey = htobe32(0x01020304);
	link->dc.av.rsvd = htobe32(0x05060708);
	link->dc.av.dqp_dct = htobe32(DCTN | (extended ? M5_AV_EXT : 0));
	link->dc.av.rgid[15] = 0x99;
	link->ib.base.rx_base = ring;
	link->ib.base.rx_len = sizeof(ring);
	for (uint32_t i = 0; i < FAKE_RING; i++)
		link->ib.base.tx_base[i] = (uint8_t)(i * 13 + 5);
	cr_assert_eq(m5_link_attach(&link->ib.base), 0);
	cr_assert_eq(f->dev.active_cnt, 1, "the initiators' queue is polled");
}

static void teardown(void)
{
	sq_device_fini(&device);
	cq_device_fini(&tx);
	fake_link_free(l);
	fake_dev_free(f);
}

static int write_imm(uint64_t off, uint32_t len, uint32_t imm)
{
	return m5_link_ops_inline.write_imm(&l->link.ib.base, off, len, imm);
}

static const uint8_t *wqe_at(uint16_t counter)
{
	return device.buf + (size_t)(counter % 16) * 64;
}

static bool poll_one(void)
{
	memset(&ev, 0, sizeof(ev));
	return m5_dev_ops_inline.poll((struct dev *)&f->dev, &ev);
}

Test(m5_dlink, a_write_names_its_target_and_its_link)
{
	setup(true);
	cr_assert_eq(write_imm(64, 32, 7), 0);
	EXPECT_AT(wqe_at(0), 0, 0, 0, 0x09, 0x12, 0x34, 0x56, 8, 0, 0, 0, 0, 0x12, 0x34, 0, 7,
		  /* access key, target */
		  1, 2, 3, 4, 5, 6, 7, 8, 0x80, 0x0a, 0x0b, 0x0c);
	cr_expect_eq(wqe_at(0)[16 + 47], 0x99, "the address vector is copied whole");
	EXPECT_AT(wqe_at(0) + 64, 0, 0, 0x7f, 0, 0, 0, 0, 0x40, 0, 0x22, 0x22, 0x22, 0, 0, 0, 0,
		  0x80, 0, 0, 32);
	cr_expect_arr_eq(wqe_at(0) + 84, l->link.ib.base.tx_base + 64, 32);
	cr_expect_eq(f->dev.dc.pool.dci[0].sq.pi, 2, "two blocks");
	cr_expect_arr_eq(device.reg, wqe_at(0), 128, "BlueFlame copies the WQE whole");
	teardown();
}

Test(m5_dlink, a_short_address_vector_saves_its_second_part)
{
	setup(false);
	cr_assert_eq(write_imm(64, 32, 7), 0);
	EXPECT_AT(wqe_at(0) + 24, 0x00, 0x0a, 0x0b, 0x0c);
	EXPECT_AT(wqe_at(0) + 32, 0, 0, 0x7f, 0, 0, 0, 0, 0x40);
	cr_assert_eq(write_imm(256, 204, 7), 0);
	cr_expect_eq(f->dev.dc.pool.dci[0].sq.pi, 2 + 4, "the largest inline write");
	cr_assert_eq(write_imm(256, 205, 7), 0);
	cr_expect_eq(f->dev.dc.pool.dci[0].sq.pi, 2 + 4 + 1, "fetched");
	EXPECT_AT(wqe_at(6) + 48, 0, 0, 0, 205, 0, 0x11, 0x11, 0x11);
	teardown();
}

Test(m5_dlink, an_immediate_that_is_too_large_is_in_the_link_word)
{
	setup(true);
	cr_assert_eq(write_imm(64, 64, 0x12345), 0);
	EXPECT_AT(wqe_at(0) + 12, 0x12, 0x34, 0, 0);
	EXPECT_AT(l->link.ib.base.tx_base + 64 + 24, 0x45, 0x23, 0x01, 0, 0, 0, 0, 0);
	teardown();
}

Test(m5_dlink, a_short_immediate_that_is_too_large_extends_the_write_by_its_word)
{
	setup(true);
	cr_assert_eq(write_imm(96, 32, 0x81ff0002), 0);
	EXPECT_AT(wqe_at(0) + 12, 0x12, 0x34, 0, 0);
	EXPECT_AT(wqe_at(0) + 64, 0, 0, 0x7f, 0, 0, 0, 0, 88);
	EXPECT_AT(wqe_at(0) + 80, 0x80, 0, 0, 40, 0x02, 0, 0xff, 0x81);
	teardown();
}

Test(m5_dlink, a_write_that_finds_no_room_changes_nothing)
{
	uint8_t before[FAKE_RING];
	unsigned cnt = 0;

	setup(true);
	while (!write_imm(0, 512, 16))
		cr_assert_leq(++cnt, 8);
	memcpy(before, l->link.ib.base.tx_base, sizeof(before));
	cr_expect_eq(write_imm(96, 32, 0x81ff0002), -FI_EAGAIN);
	cr_expect_arr_eq(before, l->link.ib.base.tx_base, sizeof(before));
	teardown();
}

/* Simulates an arrival and polls it. */
static void expect_imm(uint32_t brief, uint32_t imm)
{
	fake_arrive(f, OWN_DCT, 0, OWN_ID << 16 | brief);
	cr_assert(poll_one());
	cr_assert_eq(ev.kind, DEV_EV_IMM);
	cr_assert_eq(ev.link, &l->link.ib.base);
	cr_assert_eq(ev.imm, imm);
}

Test(m5_dlink, arrivals_are_found_by_their_id)
{
	setup(true);
	expect_imm(3, 3);
	expect_imm(0x8082, 0x80010002);
	expect_imm(0, 0);
	fake_arrive(f, OWN_DCT, 0, (OWN_ID + 1) << 16 | 1);
	fake_arrive(f, OWN_DCT, 0, 1);
	cr_expect(!poll_one());
	cr_expect_eq(f->dev.stray_cnt, 2, "of no link");
	teardown();
}

Test(m5_dlink, arrivals_before_attach_are_kept_in_order)
{
	setup(true);
	m5_link_unlist(&l->link);
	util_list_push_back(&f->dev.waiting, &l->link.ib.cold);
	fake_arrive(f, OWN_DCT, 0, OWN_ID << 16 | 2);
	fake_arrive(f, OWN_DCT, 1, OWN_ID << 16);
	fake_arrive(f, OWN_DCT, 2, OWN_ID << 16 | 0x8082);
	cr_expect(!poll_one());
	cr_expect_eq(f->dev.stray_cnt, 0);
	cr_assert_eq(m5_link_attach(&l->link.ib.base), 0);
	cr_assert(poll_one());
	cr_expect_eq(ev.imm, 2);
	cr_assert(poll_one());
	cr_expect_eq(ev.imm, 0, "in the link word");
	cr_assert(poll_one());
	cr_expect_eq(ev.imm, 0x80010002);
	cr_expect(util_list_is_empty(&f->dev.early) || !poll_one());
	teardown();
}

static void make_ids(void)
{
	f->dev.dc.ids = malloc(sizeof(*f->dev.dc.ids));
	m5_ids_init(f->dev.dc.ids);
}

Test(m5_dlink, nothing_that_came_by_a_retired_id_is_kept)
{
	struct m5_link *link;

	setup(true);
	make_ids();
	link = &l->link;
	m5_link_unlist(link);
	link->dc.id = m5_ids_take(f->dev.dc.ids);
	util_list_push_back(&f->dev.waiting, &link->ib.cold);
	fake_arrive(f, OWN_DCT, 0, link->dc.id << 16 | 2);
	cr_expect(!poll_one());
	cr_assert(!ib_early_is_empty(&link->ib.early));
	m5_dlink_retire(link);
	cr_expect(ib_early_is_empty(&link->ib.early), "written by a peer that has a queue pair");
	fake_arrive(f, OWN_DCT, 1, 1 << 16 | 2);
	cr_expect(!poll_one());
	cr_expect_eq(f->dev.stray_cnt, 1);
	cr_expect(ib_early_is_empty(&link->ib.early));
	cr_expect_eq(m5_ids_retired(f->dev.dc.ids), 1);
	m5_dlink_retire(link);
	util_list_remove(&link->ib.cold);
	free(f->dev.dc.ids);
	teardown();
}

/* The number of a destroyed queue pair is soon another link's. */
Test(m5_dlink, a_link_that_fails_to_connect_forgets_the_number_of_its_queue_pair)
{
	struct m5_link *failed = calloc(1, sizeof(*failed));
	struct dev_desc desc = { 0 };
	struct ib_desc peer = { .mtu = IBV_MTU_4096,
				.rd_atomic = 1,
				.is_eth = true,
				.gid.raw = { [15] = 1 },
				.ring_addr = 4096,
				.ring_len = 4096,
				.word_addr = 8192,
				.flags = IB_DESC_DC | IB_DESC_DC_WANTED,
				.dctn = DCTN,
				.dc_id = PEER_ID };

	setup(true);
	make_ids();
	failed->dev = &f->dev;
	failed->dc.id = m5_ids_take(f->dev.dc.ids);
	failed->sq.qpn = FAKE_QPN;
	failed->is_known = true;
	failed->ib.base.ops = &m5_link_ops;
	util_list_init(&failed->ib.cold);
	f->dev.ib.port_attr.active_mtu = IBV_MTU_4096;
	ib_desc_encode(&peer, &desc);
	cr_assert_eq(m5_link_connect(&failed->ib.base, &desc), -FI_EHOSTUNREACH, "Ethernet");
	cr_assert_eq(ib_qpns_set(&f->dev.qpns, FAKE_QPN, l), 0);
	m5_link_close(&failed->ib.base);
	m5_dev_defer_destroy(&f->dev);
	cr_expect_eq(ib_qpns_get(&f->dev.qpns, FAKE_QPN), l, "the other link is there");
	free(f->dev.dc.ids);
	f->dev.dc.ids = NULL;
	teardown();
}

Test(m5_dlink, an_ack_is_reported_and_makes_the_initiator_idle)
{
	struct m5_dci *dci;

	setup(true);
	dci = &f->dev.dc.pool.dci[0];
	cr_assert_eq(m5_link_ops_inline.write_imm_ack(&l->link.ib.base, 0, 32, 1), 0);
	cr_expect(!m5_dci_is_idle(dci));
	cq_device_write(&tx, 0, 0x09000000 | dci->sq.qpn, 0, 0);
	cr_assert(poll_one());
	cr_expect_eq(ev.kind, DEV_EV_ACK);
	cr_expect_eq(ev.link, &l->link.ib.base);
	cr_expect(m5_dci_is_idle(dci));
	teardown();
}

/* Posts a write that reports, with another link waiting behind it. */
static void post_and_wait(struct m5_dlink *waiter)
{
	m5_dlink_init(waiter);
	cr_assert_eq(m5_link_ops_inline.write_imm_ack(&l->link.ib.base, 0, 32, 1), 0);
	cr_assert_null(m5_dcis_take(&f->dev.dc.pool, waiter));
	resets = 0;
}

/* Polls the link's end. Its initiator starts again, and serves the link that waits. */
static void expect_down(const struct m5_dlink *waiter, int err)
{
	const struct m5_dci *dci = &f->dev.dc.pool.dci[0];

	cr_assert(poll_one());
	cr_expect_eq(ev.kind, DEV_EV_DOWN);
	cr_expect_eq(ev.link, &l->link.ib.base);
	cr_expect_eq(ev.status, err);
	cr_expect_eq(resets, 1);
	cr_expect(m5_dci_is_idle(dci));
	cr_expect_eq(waiter->dci, dci);
	cr_expect_eq(f->dev.active_cnt, 0, "no link is left");
	cr_expect(!poll_one());
	cr_expect_eq(write_imm(0, 32, 1), -FI_EAGAIN);
}

Test(m5_dlink, no_end_of_a_write_follows_the_end_of_its_link)
{
	struct m5_dlink waiter;

	setup(true);
	post_and_wait(&waiter);
	m5_link_fail(&l->link, -FI_ENETDOWN);
	cq_device_write(&tx, 0, 0x09000000 | f->dev.dc.pool.dci[0].sq.qpn, 0, 0);
	expect_down(&waiter, -FI_ENETDOWN);
	cr_expect_eq(f->dev.dc.pool.dci[0].scq->cq.ci, 1, "the completion is removed");
	teardown();
}

Test(m5_dlink, an_initiator_that_fails_without_a_completion_ends_its_link)
{
	struct m5_dlink waiter;

	setup(true);
	post_and_wait(&waiter);
	m5_poll_dci_failed(&f->dev, 0x999999, -FI_EIO);
	cr_expect_eq(resets, 0, "no initiator's number");
	m5_poll_dci_failed(&f->dev, f->dev.dc.pool.dci[0].sq.qpn, -FI_EIO);
	expect_down(&waiter, -FI_EIO);
	m5_dcis_leave(&f->dev.dc.pool, &waiter);
	m5_poll_dci_failed(&f->dev, f->dev.dc.pool.dci[0].sq.qpn, -FI_EIO);
	cr_expect_eq(resets, 2, "it belongs to no link");
	teardown();
}

Test(m5_dlink, an_initiator_that_could_not_start_is_started_again)
{
	struct m5_dci *dci;
	struct m5_dlink waiter;

	setup(true);
	dci = &f->dev.dc.pool.dci[0];
	post_and_wait(&waiter);
	without_address = true;
	m5_poll_dci_failed(&f->dev, dci->sq.qpn, -FI_EIO);
	cr_assert(poll_one());
	cr_expect_null(waiter.dci, "its port has no address");
	m5_dct_restart(&f->dev);
	cr_expect_null(waiter.dci);
	without_address = false;
	m5_dct_restart(&f->dev);
	cr_expect_eq(waiter.dci, dci);
	cr_expect_eq(resets, 3);
	m5_dct_restart(&f->dev);
	cr_expect_eq(resets, 3, "once is enough");
	teardown();
}

/* Stands for the last writes of the peer, or for early ones to a link that is not attached. */
static void arrive(void)
{
	fake_arrive(f, 0x999999, 0, 1);
}

Test(m5_dlink, the_cursor_stays_among_the_active_queues)
{
	setup(true);
	cr_assert_eq(write_imm(64, 32, 7), 0);
	cq_device_write(&tx, M5_CQE_REQ_ERR << 4, f->dev.dc.pool.dci[0].sq.qpn, 0, 0);
	during_reset = arrive;
	for (int i = 0; i < 4 && !poll_one(); i++)
		;
	cr_expect_eq(ev.kind, DEV_EV_DOWN);
	cr_expect_eq(f->dev.active_cnt, 0);
	cr_expect_eq(f->dev.cursor, 0);
	during_reset = NULL;
	teardown();
}

Test(m5_dlink, the_consumer_word_is_read_by_the_initiator)
{
	uint64_t value = 4096;

	setup(true);
	cr_assert_eq(m5_link_ops_inline.read_consumer(&l->link.ib.base, &value), 0);
	EXPECT_AT(wqe_at(0), 0, 0, 0, 0x10, 0x12, 0x34, 0x56, 6, 0, 0, 0, 8);
	EXPECT_AT(wqe_at(0) + 64, 0, 0, 0x7e, 0, 0, 0, 0, 0, 0, 0x33, 0x33, 0x33);
	cr_expect_eq(m5_link_ops_inline.read_consumer(&l->link.ib.base, &value), -FI_EAGAIN);
	memcpy(l->page, &value, sizeof(value));
	cq_device_write(&tx, 0, 0x10000000 | 0x123456, 0, 0);
	cr_assert(poll_one());
	cr_expect_eq(ev.kind, DEV_EV_READ);
	cr_expect_eq(ev.value, 4096);
	teardown();
}

/* Local buffer of a put, with the key 0xa1. */
static uint8_t bytes[4096];
static struct iovec iov = { bytes, 0 };
static struct ibv_mr mr = { .lkey = 0xa1 };
static struct ib_user user = { .mr = &mr };

static int put(struct dev_get *get, size_t len, unsigned flags)
{
	iov.iov_len = len;
	*get = (struct dev_get){ .remote_addr = 0x5000,
				 .remote_key = 0xbeef,
				 .iov = &iov,
				 .iov_cnt = 1,
				 .len = len,
				 .mem = { &user.base },
				 .flags = flags };
	return m5_link_ops_inline.put(&l->link.ib.base, get);
}

Test(m5_dlink, a_put_is_a_write_of_the_initiator)
{
	struct dev_get get;

	setup(true);
	cr_assert_eq(put(&get, 1000, 0), 0);
	EXPECT_AT(wqe_at(0), 0, 0, 0, 0x08, 0x12, 0x34, 0x56, 6, 0, 0, 0, 8, 0, 0, 0, 0,
		  /* access key, target */
		  1, 2, 3, 4, 5, 6, 7, 8, 0x80, 0x0a, 0x0b, 0x0c);
	EXPECT_AT(wqe_at(0) + 64, 0, 0, 0, 0, 0, 0, 0x50, 0, 0, 0, 0xbe, 0xef, 0, 0, 0, 0, 0, 0, 3,
		  0xe8, 0, 0, 0, 0xa1);
	cq_device_write(&tx, 0, 0x08000000 | 0x123456, 0, 0);
	cr_assert(poll_one());
	cr_expect_eq(ev.kind, DEV_EV_GET);
	cr_expect_eq(ev.get, &get);
	cr_expect_eq(get.status, 0);
	teardown();
}

Test(m5_dlink, a_short_put_is_inline_behind_the_address_vector)
{
	struct dev_get get;

	setup(true);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(3 * i);
	cr_assert_eq(put(&get, 172, DEV_GET_INLINE), 0);
	EXPECT_AT(wqe_at(0), 0, 0, 0, 0x08, 0x12, 0x34, 0x56, 16);
	EXPECT_AT(wqe_at(0) + 80, 0x80, 0, 0, 172);
	cr_expect_arr_eq(wqe_at(0) + 84, bytes, 172);
	cr_expect_eq(f->dev.dc.pool.dci[0].sq.pi, 4, "the largest");
	teardown();
}

/* The WRITE and the READ behind it fit wherever they stand. */
Test(m5_dlink, a_placed_put_fits_the_smallest_queue)
{
	struct dev_get get;

	for (unsigned inlined = 0; inlined < 2; inlined++)
		for (uint16_t at = 0; at < 16; at++) {
			struct m5_sq *sq;

			setup(true);
			l->link.ib.reads_max = 4;
			sq = &f->dev.dc.pool.dci[0].sq;
			sq->pi = sq->rung = sq->ci = sq->last = at;
			cr_assert_eq(
				put(&get, 172, DEV_GET_PLACED | (inlined ? DEV_GET_INLINE : 0)), 0);
			while (!put(&get, 172, DEV_GET_PLACED | (inlined ? DEV_GET_INLINE : 0)))
				;
			cr_expect_leq(m5_sq_in_flight(sq), 16, "at %u", at);
			teardown();
		}
}

/* Which path two ends choose: neither, one or both prefer DC; one has none, or another MTU. */
Test(m5_dlink, one_end_that_prefers_dc_is_enough)
{
	struct ib_desc peer = { .flags = IB_DESC_DC, .mtu = IBV_MTU_2048 };

	setup(true);
	f->dev.ib.port_attr.active_mtu = IBV_MTU_2048;
	l->link.dc.is_wanted = false;
	cr_expect(!m5_dlink_is_chosen(&l->link, &peer));
	peer.flags |= IB_DESC_DC_WANTED;
	cr_expect(m5_dlink_is_chosen(&l->link, &peer));
	l->link.dc.is_wanted = true;
	cr_expect(m5_dlink_is_chosen(&l->link, &peer));
	peer.flags = IB_DESC_DC;
	cr_expect(m5_dlink_is_chosen(&l->link, &peer));
	peer.mtu = IBV_MTU_4096;
	cr_expect(!m5_dlink_is_chosen(&l->link, &peer));
	peer.mtu = IBV_MTU_1024;
	cr_expect(!m5_dlink_is_chosen(&l->link, &peer));
	peer.mtu = IBV_MTU_2048;
	peer.flags = 0;
	cr_expect(!m5_dlink_is_chosen(&l->link, &peer));
	peer.flags = IB_DESC_DC | IB_DESC_DC_WANTED;
	l->link.dc.id = 0;
	cr_expect(!m5_dlink_is_chosen(&l->link, &peer));
	teardown();
}

/* A peer of an older version neither finds the flag in a description nor sends it. */
Test(m5_dlink, a_link_moves_if_both_ends_know_moves_and_have_dc_with_one_mtu)
{
	struct ib_desc own = { 0 }, peer = { .flags = IB_DESC_DC, .mtu = IBV_MTU_2048 };

	setup(true);
	f->dev.ib.port_attr.active_mtu = IBV_MTU_2048;
	m5_dlink_describe(&l->link, &own);
	cr_expect_not(own.flags & IB_DESC_MOVES);
	cr_expect_not(m5_dlink_may_move(&l->link, &peer));
	peer.flags |= IB_DESC_MOVES;
	cr_expect_not(m5_dlink_may_move(&l->link, &peer));
	l->link.move.is_known = true;
	m5_dlink_describe(&l->link, &own);
	cr_expect(own.flags & IB_DESC_MOVES);
	cr_expect(m5_dlink_may_move(&l->link, &peer));
	peer.mtu = IBV_MTU_4096;
	cr_expect_not(m5_dlink_may_move(&l->link, &peer));
	peer.mtu = IBV_MTU_2048;
	peer.flags = IB_DESC_DC;
	cr_expect_not(m5_dlink_may_move(&l->link, &peer));
	cr_expect_eq(m5_link_move(&l->link.ib.base, true), -FI_ENOSYS);
	teardown();
}
