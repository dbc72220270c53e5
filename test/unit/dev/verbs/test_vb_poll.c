/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dev/verbs/vb_poll.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>

#include "vb_pair.h"

TestSuite(vb_poll, .fini = pair_fini, .timeout = 200);

static struct vb_dev *devs[2];

Test(vb_poll, events_of_many_links_keep_their_order_within_each)
{
	struct transport transports[8][2];
	unsigned got[8] = { 0 };

	pair_open(devs, NULL);
	for (int i = 0; i < 8; i++)
		pair_link(devs, 4096, true, transports[i]);
	for (int n = 0; n < 5; n++)
		for (int i = 0; i < 8; i++)
			cr_assert_eq(pair_write(&transports[i][0], 32u * (1 + n)), 0);
	for (int n = 0; n < 40; n++) {
		struct dev_event ev = pair_wait(devs[1], DEV_EV_IMM);
		int i = 0;

		while (transports[i][1].link != ev.link)
			i++;
		cr_assert_eq(ev.imm, ++got[i]);
		pair_take(&transports[i][1], ev.imm);
	}
}

Test(vb_poll, the_shared_receive_queue_lasts_for_ever)
{
	struct transport transports[2];

	pair_open(devs, &pair_small);
	pair_link(devs, 4096, true, transports);
	for (unsigned i = 0; i < 10 * pair_small.srq_depth; i++) {
		struct dev_event ev;

		while (pair_write(&transports[0], 32))
			cr_assert_not(pair_poll(devs[0], &ev, 1));
		pair_take(&transports[1], pair_wait(devs[1], DEV_EV_IMM).imm);
		cr_assert_leq(devs[1]->srq_posted, pair_small.srq_depth);
		cr_assert_geq(devs[1]->srq_posted, pair_small.srq_depth * 2 / 3);
	}
}

Test(vb_poll, a_receiver_that_stops_polling_loses_nothing)
{
	struct vb_tune tune = {
		.srq_depth = 6, .sq_depth = 64, .signal_interval = 16, .chunk_len = 4096
	};
	struct transport transports[2];
	struct dev_event ev;

	pair_open(devs, &tune);
	pair_link(devs, 1 << 14, true, transports);
	for (int i = 0; i < 48; i++)
		cr_assert_eq(pair_write(&transports[0], 64), 0);
	cr_assert_not(pair_poll(devs[0], &ev, 300), "more writes than receives: they wait");
	for (int i = 0; i < 48; i++)
		pair_take(&transports[1], pair_wait(devs[1], DEV_EV_IMM).imm);
}

/* Devices reuse the numbers of queue pairs that are gone. */
Test(vb_poll, fetched_completions_of_a_closed_link_are_not_a_later_one_with_its_number)
{
	struct transport transports[2], other[2];
	struct dev_event ev;
	uint32_t qpn;

	pair_open(devs, NULL);
	pair_link(devs, 4096, true, other);
	pair_link(devs, 4096, true, transports);
	for (int i = 0; i < 4; i++)
		cr_assert_eq(pair_write(&transports[0], 32), 0);
	cr_assert_not(pair_poll(devs[0], &ev, 300), "all have arrived");
	pair_take(&transports[1], pair_wait(devs[1], DEV_EV_IMM).imm);
	cr_assert_eq(devs[1]->wc_cnt - devs[1]->wc_at, 3, "fetched, not returned");
	qpn = ((struct vb_link *)transports[1].link)->ib.qpn;
	pair_close_last();
	cr_assert_eq(ib_qpns_set(&devs[1]->qpns, qpn, other[1].link), 0);
	cr_expect_not(pair_poll(devs[1], &ev, 300));
	cr_expect_eq(devs[1]->stray_cnt, 3);
	ib_qpns_clear(&devs[1]->qpns, qpn);
}

Test(vb_poll, completions_of_detached_links_are_dropped_and_counted)
{
	struct transport transports[2], other[2];
	struct dev_event ev;

	pair_open(devs, NULL);
	pair_link(devs, 4096, true, transports);
	pair_link(devs, 4096, true, other);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(pair_write(&transports[0], 32), 0);
	pair_take(&transports[1], pair_wait(devs[1], DEV_EV_IMM).imm);
	/* The other two have arrived once a later one of this sender has. */
	cr_assert_eq(pair_write(&other[0], 32), 0);
	do
		cr_assert(pair_poll(devs[1], &ev, PAIR_PATIENCE_S * 1000));
	while (ev.link == transports[1].link);
	pair_take(&other[1], ev.imm);
	transports[0].link->ops->detach(transports[0].link);
	for (int i = 0; i < 3; i++)
		vb_poll_other(devs[0],
			      &(struct ibv_wc){ .wr_id = VB_KIND_WRITE,
						.status = IBV_WC_WR_FLUSH_ERR,
						.qp_num = 0xffffff },
			      &ev);
	cr_expect_eq(devs[0]->stray_cnt, 3);
}

Test(vb_poll, an_illegal_operation_ends_the_link)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;
	struct transport transports[2];
	struct dev_event ev;

	pair_open(devs, &pair_small);
	pair_link(devs, 4096, true, transports);
	cr_assert_eq(ibv_post_send(((struct vb_link *)transports[0].link)->ib.qp, &wr, &bad), 0);
	ev = pair_wait(devs[1], DEV_EV_DOWN);
	cr_expect_eq(ev.link, transports[1].link);
	cr_expect_eq(ev.status, -FI_EIO);
	cr_expect_eq(devs[1]->srq_posted, pair_small.srq_depth - 1);
}
