/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A link that goes from its queue pair to DC and back, on queues in memory (m5_move.h). Queue pairs
 * are made and connected on the device model only: test/integ/dev/dev_link with "moves".
 */
#include "dev/mlx5/m5_move.h"

#include "bytes.h"
#include "dev/mlx5/m5_dlink.h"
#include "dev/mlx5/m5_imm.h"
#include "fake_dev.h"
#include "util/param.h"

#define OWN_DCT 0x0d0e0fu
#define DCI_QPN 0x654321u
#define OWN_ID  0x00abu
#define PEER_ID 0x1234u

/* Messages, by the table in m5_move.h. */
#define OFFER  1
#define READY  3
#define REFUSE 4
#define LEFT   5

static struct fake_dev *f;
static struct fake_link *l;
static struct sq_device dci_queue;
static struct m5_scq dci_scq;
static struct cq_device dci_cq;
static uint64_t dci_words[16];
static struct ibv_qp qp;
static struct dev_event ev;

static void setup_in(enum m5_move_state state)
{
	struct m5_dci *dci;
	struct m5_link *link;

	f = fake_dev_make();
	m5_dcis_init(&f->dev.dc.pool);
	dci = &f->dev.dc.pool.dci[0];
	sq_device_init(&dci_queue, 16, 256, 0);
	cq_device_init(&dci_cq, 16, 64, 0);
	dci_scq.cq = dci_cq.cq;
	dci_scq.attached_cnt = 0;
	dci->sq = dci_queue.sq;
	dci->sq.uar = &dci_queue.uar;
	dci->sq.qpn = DCI_QPN;
	dci->scq = &dci_scq;
	m5_sparse_init(&dci->users, dci_words, 16);
	f->dev.dc.pool.cnt = 1;
	f->dev.dc.dctn = OWN_DCT;
	l = fake_link_make(f, 16, FAKE_QPN);
	link = &l->link;
	link->ib.qp = &qp;
	link->users.user = calloc(16, sizeof(uint64_t));
	m5_dlink_init(&link->dc.pool);
	link->dc.id = OWN_ID;
	link->dc.peer_imm = PEER_ID << 16;
	link->dc.inline_max = 172;
	link->dc.av.dqp_dct = htobe32(0x0a0b0c | M5_AV_EXT);
	link->move.state = state;
	link->ib.base.caps = DEV_CAP_MOVE;
	f->scq.link_cnt = 2;
	link->sq.uar->user_cnt = 2;
	util_params.rc_max = 0;
	if (state == M5_MOVE_ON_RC) {
		cr_assert_eq(m5_link_attach(&link->ib.base), 0);
		return;
	}
	m5_move_park(link);
	link->dc.is_on = true;
	link->ib.base.caps |= DEV_CAP_DC;
	cr_assert_eq(m5_link_attach(&link->ib.base), 0);
}

static void teardown(void)
{
	free(l->link.users.user);
	sq_device_fini(&dci_queue);
	cq_device_fini(&dci_cq);
	fake_link_free(l);
	fake_dev_free(f);
}

static int write_imm(void)
{
	return m5_link_ops_inline.write_imm(&l->link.ib.base, 0, 32, 1);
}

static bool poll_one(void)
{
	memset(&ev, 0, sizeof(ev));
	return m5_dev_ops_inline.poll((struct dev *)&f->dev, &ev);
}

static void arrive(uint8_t byte)
{
	fake_arrive(f, OWN_DCT, 0, OWN_ID << 16 | m5_imm_of_byte(byte));
}

/* Ends what the queue pair, or the initiator, has executed up to the block `counter`. */
static void rc_done(uint16_t counter)
{
	cq_device_write(&f->tx, 0, 0x09000000 | FAKE_QPN, counter, 0);
}

static void dc_done(uint16_t counter)
{
	cq_device_write(&dci_cq, 0, 0x09000000 | DCI_QPN, counter, 0);
}

/* Checks that the WQE at `counter` of the initiator is a byte of a message. */
static void expect_byte(uint16_t counter, uint8_t byte)
{
	const uint8_t *wqe = dci_queue.buf + (size_t)(counter % 16) * 64;
	uint32_t imm;

	memcpy(&imm, wqe + 12, sizeof(imm));
	cr_expect_eq(wqe[3], 0x09, "WRITE with an immediate");
	cr_expect_eq(wqe[7] & 0x3f, 5, "of no bytes");
	cr_expect_eq(be32toh(imm), PEER_ID << 16 | m5_imm_of_byte(byte));
}

static void expect_down(void)
{
	for (unsigned i = 0; i < 3 && !poll_one(); i++)
		;
	cr_expect_eq(ev.kind, DEV_EV_DOWN);
	cr_expect_eq(ev.status, -FI_EIO);
}

Test(m5_move, writes_wait_until_the_queue_pair_has_executed_all)
{
	struct m5_link *link;

	setup_in(M5_MOVE_ON_RC);
	link = &l->link;
	cr_assert_eq(write_imm(), 0);
	cr_assert_eq(m5_link_move(&link->ib.base, false), 0);
	cr_expect_eq(m5_link_move(&link->ib.base, true), -FI_EAGAIN, "one is in progress");
	cr_expect_eq(write_imm(), -FI_EAGAIN);
	cr_expect_not(poll_one());
	cr_expect_eq(fake_link_wqe(l, 2)[3], 0, "a NOP");
	cr_expect_eq(fake_link_wqe(l, 2)[11], M5_CTRL_SIGNAL, "that reports");
	cr_expect(m5_move_may_sleep(link));
	cr_expect_eq(write_imm(), -FI_EAGAIN);
	rc_done(2);
	cr_expect_not(poll_one());
	cr_expect_not(poll_one());
	cr_expect_eq(link->move.state, M5_MOVE_LEFT);
	cr_expect(link->ib.base.caps & DEV_CAP_DC);
	cr_expect_eq(link->ib.base.inline_max, 172);
	expect_byte(0, LEFT);
	cr_assert_eq(write_imm(), 0);
	cr_expect_eq(f->dev.dc.pool.dci[0].sq.pi, 4, "by DC, behind the message");
	cr_expect_eq(dci_queue.buf[2 * 64 + 3], 0x09);
	cr_expect_eq(m5_link_move(&link->ib.base, true), -FI_EAGAIN, "the peer has not left");
	teardown();
}

Test(m5_move, the_ends_of_simple_accesses_are_reported_before_the_link_moves)
{
	struct dev_link *base;

	setup_in(M5_MOVE_ON_RC);
	base = &l->link.ib.base;
	cr_assert_eq(
		m5_link_ops_inline.access(base, l->page, 8, 4096, 1, NULL,
					  DEV_ACCESS_WRITE | DEV_ACCESS_SILENT | DEV_ACCESS_MORE),
		0);
	cr_assert_eq(m5_link_move(base, false), 0);
	cr_expect_eq(m5_link_ops_inline.access(base, l->page, 8, 4096, 1, NULL, DEV_ACCESS_WRITE),
		     -FI_EAGAIN);
	cr_expect_not(poll_one());
	rc_done(0); /* of the access, the last of its run */
	cr_assert(poll_one());
	cr_expect_eq(ev.kind, DEV_EV_ACCESS);
	cr_expect_eq(ev.value, 1);
	cr_expect_not(poll_one());
	cr_expect_eq(l->link.move.state, M5_MOVE_LEFT);
	teardown();
}

/* Posts a write of one block that reports, or a simple access of one that does not. */
static void post_block(bool is_access)
{
	struct dev_link *base = &l->link.ib.base;

	if (is_access)
		cr_assert_eq(m5_link_ops_inline.access(base, l->page, 8, 4096, 1, NULL,
						       DEV_ACCESS_WRITE | DEV_ACCESS_SILENT),
			     0);
	else
		cr_assert_eq(m5_link_ops_inline.write_imm_ack(base, 0, 16, 1), 0);
}

Test(m5_move, accesses_that_the_end_of_a_write_has_retired_are_reported_before_the_link_moves)
{
	struct m5_link *link;

	setup_in(M5_MOVE_ON_RC);
	link = &l->link;
	for (unsigned i = 0; i < 15; i++)
		post_block(i == 13); /* so near the queue's end that no signal is due for room */
	cr_assert(link->access_quiet);
	rc_done(14);
	cr_assert(poll_one());
	cr_expect_eq(ev.kind, DEV_EV_ACK);
	cr_expect_eq(m5_sq_in_flight(&link->sq), 0);
	cr_assert_eq(m5_link_move(&link->ib.base, false), 0);
	cr_expect_not(poll_one());
	cr_assert_eq(link->move.state, M5_MOVE_TO_DC);
	cr_expect_eq(fake_link_wqe(l, 15)[11], M5_CTRL_SIGNAL, "a NOP that reports");
	rc_done(15);
	cr_assert(poll_one());
	cr_expect_eq(ev.kind, DEV_EV_ACCESS);
	cr_expect_eq(ev.value, 1);
	cr_expect_not(poll_one());
	cr_expect_eq(link->move.state, M5_MOVE_LEFT);
	teardown();
}

Test(m5_move, an_idle_link_leaves_at_once_and_drops_its_queue_pair_after_the_peer)
{
	struct m5_link *link;

	setup_in(M5_MOVE_ON_RC);
	link = &l->link;
	link->ib.qp = NULL; /* there is no kernel to destroy it */
	cr_assert_eq(m5_link_move(&link->ib.base, false), 0);
	cr_expect_not(poll_one());
	cr_expect_eq(link->move.state, M5_MOVE_LEFT);
	cr_expect_eq(ib_qpns_get(&f->dev.qpns, FAKE_QPN), link, "the peer may write by it");
	fake_arrive(f, FAKE_QPN, 0, 7);
	cr_assert(poll_one());
	cr_expect_eq(ev.imm, 7);
	arrive(LEFT);
	cr_expect_not(poll_one());
	cr_expect_eq(link->move.state, M5_MOVE_ON_DC);
	cr_expect_null(ib_qpns_get(&f->dev.qpns, FAKE_QPN));
	cr_expect_eq(f->dev.active_cnt, 1, "the initiators' alone");
	teardown();
}

Test(m5_move, the_end_that_is_left_follows)
{
	struct m5_link *link;

	setup_in(M5_MOVE_ON_RC);
	link = &l->link;
	cr_assert_eq(write_imm(), 0);
	arrive(LEFT);
	cr_expect_not(poll_one());
	cr_expect_eq(link->move.state, M5_MOVE_TO_DC);
	cr_expect_not(poll_one());
	link->ib.qp = NULL;
	rc_done(2);
	cr_expect_not(poll_one());
	cr_expect_not(poll_one());
	cr_expect_eq(link->move.state, M5_MOVE_ON_DC);
	expect_byte(0, LEFT);
	teardown();
}

Test(m5_move, to_the_queue_pair_when_the_peer_is_ready_and_the_initiator_idle)
{
	struct m5_link *link;

	setup_in(M5_MOVE_CONNECTED);
	link = &l->link;
	cr_assert_eq(write_imm(), 0);
	arrive(READY);
	cr_expect_not(poll_one());
	cr_expect_eq(link->move.state, M5_MOVE_TO_RC);
	cr_expect_eq(write_imm(), -FI_EAGAIN);
	cr_expect_not(poll_one());
	cr_expect_eq(f->dev.dc.pool.dci[0].sq.pi, 3, "a NOP that reports");
	dc_done(2);
	cr_expect_not(poll_one());
	cr_expect_not(poll_one());
	cr_expect_eq(link->move.state, M5_MOVE_ON_RC);
	cr_expect_not(link->ib.base.caps & DEV_CAP_DC);
	cr_expect_eq(link->ib.base.inline_max, M5_INLINE_MAX);
	cr_assert_eq(write_imm(), 0);
	cr_expect_eq(link->sq.pi, 2, "by the queue pair");
	cr_expect_eq(link->move.cnt, 1);
	teardown();
}

Test(m5_move, a_peer_that_leaves_meanwhile_is_followed_without_a_move)
{
	struct m5_link *link;

	setup_in(M5_MOVE_CONNECTED);
	link = &l->link;
	cr_assert_eq(write_imm(), 0);
	arrive(READY);
	cr_expect_not(poll_one());
	link->ib.qp = NULL;
	arrive(LEFT);
	cr_expect_not(poll_one());
	cr_expect_eq(link->move.state, M5_MOVE_ON_DC);
	cr_expect_not(poll_one());
	cr_assert_eq(write_imm(), 0);
	teardown();
}

Test(m5_move, without_a_queue_pair_an_offer_is_refused)
{
	static const uint8_t offer[] = { OFFER, 1, 2, 3, 4, 5, 6 };

	setup_in(M5_MOVE_ON_DC);
	cr_expect_eq(m5_link_move(&l->link.ib.base, true), -FI_ENOSPC);
	cr_expect_eq(m5_link_move(&l->link.ib.base, false), -FI_EALREADY);
	for (unsigned i = 0; i < sizeof(offer); i++) {
		cr_expect_eq(f->dev.dc.pool.dci[0].sq.pi, 0);
		arrive(offer[i]);
		cr_expect_not(poll_one());
	}
	cr_expect_not(poll_one());
	expect_byte(0, REFUSE);
	cr_expect_eq(l->link.move.state, M5_MOVE_ON_DC);
	cr_assert_eq(write_imm(), 0);
	teardown();
}

Test(m5_move, messages_wait_for_room)
{
	struct m5_dci *dci;

	setup_in(M5_MOVE_ON_DC);
	dci = &f->dev.dc.pool.dci[0];
	while (!write_imm())
		;
	for (unsigned i = 0; i < 7; i++)
		arrive(i ? (uint8_t)i : OFFER);
	cr_expect_not(poll_one());
	cr_expect_not(poll_one());
	cr_expect_eq(l->link.move.tx_cnt, 1);
	cr_expect_not(m5_move_may_sleep(&l->link));
	dc_done((uint16_t)(dci->sq.pi - 2));
	cr_expect_not(poll_one());
	cr_expect_not(poll_one());
	cr_expect_eq(l->link.move.tx_cnt, 0);
	cr_expect(util_list_is_empty(&f->dev.early));
	teardown();
}

static void arrive_offer(void)
{
	for (unsigned i = 0; i < 7; i++) {
		arrive(i ? 9 : OFFER);
		cr_expect_not(poll_one());
	}
	cr_expect_not(poll_one());
}

Test(m5_move, the_response_to_an_offer_that_crossed_and_failed_means_nothing_to_the_next_one)
{
	static const uint8_t responses[] = { READY, REFUSE };

	for (unsigned i = 0; i < 2; i++) {
		setup_in(M5_MOVE_OFFERED);
		l->link.ib.qp = NULL;
		l->link.move.peer.is_eth = true; /* cannot be connected to */
		arrive_offer();
		expect_byte(0, REFUSE);
		cr_assert_eq(l->link.move.state, M5_MOVE_ON_DC);
		l->link.move.state = M5_MOVE_OFFERED;
		arrive(responses[i]);
		cr_expect_not(poll_one());
		cr_expect_eq(l->link.move.state, M5_MOVE_OFFERED);
		cr_expect_not(l->link.ib.dead);
		arrive(REFUSE); /* the second response is to the second offer */
		cr_expect_not(poll_one());
		cr_expect_eq(l->link.move.state, M5_MOVE_ON_DC);
		arrive(responses[i]);
		expect_down();
		teardown();
	}
}

static void expect_violation(enum m5_move_state state, uint8_t msg)
{
	setup_in(state);
	for (unsigned i = 0; i < (msg <= 2 ? 7 : 1); i++)
		arrive(i ? 9 : msg);
	expect_down();
	cr_expect_eq(write_imm(), -FI_EAGAIN, "state %d, message %u", state, msg);
	cr_expect_not(poll_one());
	teardown();
}

Test(m5_move, messages_of_another_state_end_the_link)
{
	expect_violation(M5_MOVE_NEVER, LEFT);
	expect_violation(M5_MOVE_ON_DC, LEFT);
	expect_violation(M5_MOVE_ON_DC, 2); /* ACCEPT without an offer */
	expect_violation(M5_MOVE_ON_DC, 0);
	expect_violation(M5_MOVE_ON_DC, 255);
	expect_violation(M5_MOVE_ON_DC, READY);
	expect_violation(M5_MOVE_ON_DC, REFUSE);
	expect_violation(M5_MOVE_OFFERED, READY);
	expect_violation(M5_MOVE_ON_RC, READY);
	expect_violation(M5_MOVE_ON_RC, REFUSE);
	expect_violation(M5_MOVE_ON_RC, OFFER);
	expect_violation(M5_MOVE_CONNECTED, OFFER);
	expect_violation(M5_MOVE_CONNECTED, LEFT);
}

Test(m5_move, a_peer_that_does_not_wait_for_responses_is_ended)
{
	setup_in(M5_MOVE_ON_DC);
	while (!write_imm())
		;
	for (unsigned n = 0; n <= M5_MOVE_BYTES && !l->link.ib.dead; n++)
		for (unsigned i = 0; i < 7; i++) {
			arrive(i ? 9 : OFFER);
			if (poll_one())
				break;
		}
	cr_expect(l->link.ib.dead);
	teardown();
}

Test(m5_move, an_offer_too_many_is_refused_before_a_queue_pair_is_made)
{
	setup_in(M5_MOVE_ON_DC);
	util_params.rc_max = 2;
	util_params.rc_interval_ms = 1000;
	l->link.move.offers.taken_ns = util_clock_ns() + 3600 * UTIL_NS_PER_S;
	arrive_offer();
	expect_byte(0, REFUSE);
	cr_expect_eq(l->link.move.state, M5_MOVE_ON_DC);
	cr_expect_eq(f->dev.rc_cnt, 0);
	cr_assert_eq(write_imm(), 0);
	teardown();
}

Test(m5_move, a_peer_that_offers_without_pause_is_ended)
{
	setup_in(M5_MOVE_ON_DC);
	util_params.rc_interval_ms = 1000;
	l->link.move.offers.any_ns = util_clock_ns() + 3600 * UTIL_NS_PER_S;
	for (unsigned i = 0; i < 7; i++)
		arrive(i ? 9 : OFFER);
	expect_down();
	cr_expect_eq(f->dev.dc.pool.dci[0].sq.pi, 0, "no response");
	teardown();
}

Test(m5_move, a_write_that_fails_meanwhile_ends_the_link)
{
	struct m5_link *link;

	setup_in(M5_MOVE_ON_RC);
	link = &l->link;
	cr_assert_eq(write_imm(), 0);
	cr_assert_eq(m5_link_move(&link->ib.base, false), 0);
	cr_expect_not(poll_one());
	cq_device_write(&f->tx, M5_CQE_REQ_ERR << 4, 0x09000000 | FAKE_QPN, 0, 0);
	cr_assert(poll_one());
	cr_expect_eq(ev.kind, DEV_EV_DOWN);
	cr_expect_not(poll_one());
	cr_expect_eq(write_imm(), -FI_EAGAIN);
	cr_expect_null(ib_qpns_get(&f->dev.qpns, FAKE_QPN));
	cr_expect_null(ib_qpns_get(&f->dev.qpns, m5_dlink_number(OWN_ID)));
	teardown();
}
