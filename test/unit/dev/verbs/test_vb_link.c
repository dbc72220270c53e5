/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "dev/ib/ib_desc.h"
#include "dev/ib/ib_qp.h"
#include "vb_pair.h"

TestSuite(vb_link, .fini = pair_fini, .timeout = 200);

static struct vb_dev *devs[2];
static struct transport transports[2];

static struct vb_link *vb(struct transport *transport)
{
	return (struct vb_link *)transport->link;
}

/* Writes once there is room in the send queue. */
static void write_soon(struct transport *transport, uint32_t len)
{
	struct dev_event ev;
	int ret;

	while ((ret = pair_write(transport, len)) == -FI_EAGAIN)
		cr_assert_not(pair_poll(transport->dev, &ev, 1), "no event");
	cr_assert_eq(ret, 0);
}

Test(vb_link, ring_sizes_that_are_no_power_of_two_or_too_small_are_refused)
{
	static const uint64_t bad[] = { 0, 512, 1000, 4097, IB_RING_MAX * 2 };
	struct dev_link *link;

	pair_open(devs, NULL);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_eq(vb_link_create((struct dev *)devs[0], bad[i], &link), -FI_EINVAL);
}

Test(vb_link, bytes_arrive_at_the_same_offset_inline_and_not)
{
	static const uint32_t lens[] = { 32, 64, 192, 224, 256, 4096, 64, 65536, 32 };

	pair_open(devs, NULL);
	pair_link(devs, 1 << 18, true, transports);
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		struct dev_event ev;

		cr_assert_eq(pair_write(&transports[0], lens[i]), 0);
		ev = pair_wait(devs[1], DEV_EV_IMM);
		cr_expect_eq(ev.link, transports[1].link);
		cr_expect_eq(ev.imm, lens[i] / 32);
		pair_take(&transports[1], ev.imm);
	}
}

Test(vb_link, three_laps_of_a_small_ring_both_ways_at_small_depths)
{
	pair_open(devs, &pair_small);
	pair_link(devs, 1024, true, transports);
	for (int i = 0; i < 3 * 1024 / 64; i++) {
		write_soon(&transports[0], 64);
		write_soon(&transports[1], 64);
		pair_take(&transports[1], pair_wait(devs[1], DEV_EV_IMM).imm);
		pair_take(&transports[0], pair_wait(devs[0], DEV_EV_IMM).imm);
	}
	cr_expect_eq(transports[1].rx_pos, 3 * 1024);
}

Test(vb_link, a_full_send_queue_is_eagain_and_polling_makes_room)
{
	struct vb_tune tune = pair_small;
	unsigned sent = 0;

	tune.srq_depth = 20; /* otherwise the receiver has no room */
	pair_open(devs, &tune);
	pair_link(devs, 1 << 16, true, transports);
	while (!pair_write(&transports[0], 32))
		sent++;
	cr_assert_eq(sent, tune.sq_depth, "not polled");
	for (; sent < 20; sent++)
		write_soon(&transports[0], 32);
	for (; sent; sent--)
		pair_take(&transports[1], pair_wait(devs[1], DEV_EV_IMM).imm);
}

Test(vb_link, numbers_of_wqes_wrap_at_32_bits)
{
	pair_open(devs, &pair_small);
	pair_link(devs, 1 << 14, true, transports);
	vb(&transports[0])->sq_head = vb(&transports[0])->sq_done = UINT32_MAX - 5;
	for (int i = 0; i < 30; i++) {
		write_soon(&transports[0], 32);
		pair_take(&transports[1], pair_wait(devs[1], DEV_EV_IMM).imm);
	}
	cr_expect_eq(vb(&transports[0])->sq_head, 24);
}

Test(vb_link, every_interval_one_wqe_is_signalled_and_retires_all_before)
{
	struct vb_tune tune = {
		.srq_depth = 64, .sq_depth = 32, .signal_interval = 8, .chunk_len = 4096
	};
	struct dev_event ev;

	pair_open(devs, &tune);
	pair_link(devs, 1 << 14, true, transports);
	for (int i = 0; i < 7; i++)
		cr_assert_eq(pair_write(&transports[0], 32), 0);
	for (int i = 0; i < 7; i++)
		pair_take(&transports[1], pair_wait(devs[1], DEV_EV_IMM).imm);
	cr_expect_not(pair_poll(devs[0], &ev, 50));
	cr_expect_eq(vb(&transports[0])->sq_done, 0, "no WQE was signalled");
	cr_assert_eq(pair_write(&transports[0], 32), 0);
	pair_take(&transports[1], pair_wait(devs[1], DEV_EV_IMM).imm);
	cr_expect_not(pair_poll(devs[0], &ev, 50));
	cr_expect_eq(vb(&transports[0])->sq_done, 8);
}

Test(vb_link, retiring_compares_across_the_wrap_and_never_goes_back)
{
	struct vb_link link = { .sq_done = UINT32_MAX - 1 };

	vb_link_retire(&link, UINT32_MAX);
	cr_expect_eq(link.sq_done, 0);
	vb_link_retire(&link, UINT32_MAX - 3);
	cr_expect_eq(link.sq_done, 0);
	vb_link_retire(&link, 5);
	cr_expect_eq(link.sq_done, 6);
	link.sq_depth = 4;
	link.sq_head = 10;
	cr_expect_eq(vb_link_sq_room(&link), 0);
}

Test(vb_link, the_peers_consumer_word_is_read)
{
	uint64_t value;

	pair_open(devs, NULL);
	pair_link(devs, 4096, true, transports);
	for (uint64_t pos = 1; pos < 1ull << 40; pos *= 97) {
		struct dev_event ev;

		*transports[1].link->consumer_word = pos;
		cr_assert_eq(transports[0].link->ops->read_consumer(transports[0].link, &value), 0);
		ev = pair_wait(devs[0], DEV_EV_READ);
		cr_expect_eq(ev.link, transports[0].link);
		cr_expect_eq(ev.value, pos);
	}
}

Test(vb_link, reading_the_word_fails_while_the_send_queue_is_full)
{
	uint64_t value;

	pair_open(devs, &pair_small);
	pair_link(devs, 1 << 14, true, transports);
	while (!pair_write(&transports[0], 32))
		;
	cr_expect_eq(transports[0].link->ops->read_consumer(transports[0].link, &value),
		     -FI_EAGAIN);
}

Test(vb_link, writes_before_attach_are_returned_after_it_in_order)
{
	struct dev_event ev;

	pair_open(devs, &pair_small);
	pair_link(devs, 1 << 14, false, transports);
	cr_assert_eq(transports[0].link->ops->attach(transports[0].link), 0);
	for (int i = 0; i < 20; i++) {
		write_soon(&transports[0], 32u * (1 + i % 3));
		cr_assert_not(pair_poll(devs[1], &ev, 2));
	}
	cr_assert_not(pair_poll(devs[1], &ev, 100));
	cr_assert_eq(transports[1].link->ops->attach(transports[1].link), 0);
	write_soon(&transports[0], 64);
	for (int i = 0; i < 21; i++) {
		ev = pair_wait(devs[1], DEV_EV_IMM);
		cr_expect_eq(ev.link, transports[1].link);
		pair_take(&transports[1], ev.imm);
	}
	cr_expect_eq(transports[1].rx_pos, transports[0].tx_pos);
}

Test(vb_link, no_event_follows_detach)
{
	struct dev_event ev;

	pair_open(devs, NULL);
	pair_link(devs, 4096, true, transports);
	for (int i = 0; i < 4; i++)
		cr_assert_eq(pair_write(&transports[0], 32), 0);
	pair_take(&transports[1], pair_wait(devs[1], DEV_EV_IMM).imm);
	transports[1].link->ops->detach(transports[1].link);
	cr_expect_not(pair_poll(devs[1], &ev, 100));
}

Test(vb_link, a_malformed_description_leaves_the_link_unconnected)
{
	struct dev_link *link;
	struct dev_desc desc;

	pair_open(devs, NULL);
	cr_assert_eq(vb_link_create((struct dev *)devs[0], 4096, &link), 0);
	cr_assert_eq(link->ops->describe(link, &desc), 0);
	desc.bytes[0] ^= 1;
	cr_expect_eq(link->ops->connect(link, &desc), -FI_EINVAL);
	cr_expect_null(link->tx_base);
	link->ops->close(link);
}

Test(vb_link, a_dead_peer_is_a_timeout_and_other_links_go_on)
{
	struct transport other[2];
	struct dev_event ev;

	pair_open(devs, NULL);
	pair_link(devs, 4096, true, transports);
	pair_link(devs, 4096, true, other);
	transports[1].link->ops->detach(transports[1].link);
	cr_assert_eq(pair_write(&transports[0], 64), 0);
	ev = pair_wait(devs[0], DEV_EV_DOWN);
	cr_expect_eq(ev.link, transports[0].link);
	cr_expect_lt(ev.status, 0);
	cr_expect_eq(pair_write(&transports[0], 64), -FI_EAGAIN, "a dead link refuses writes");
	cr_assert_eq(pair_write(&other[0], 64), 0);
	pair_take(&other[1], pair_wait(devs[1], DEV_EV_IMM).imm);
	cr_expect_not(pair_poll(devs[0], &ev, 100), "DOWN comes once");
}

Test(vb_link, a_failed_post_is_down_after_earlier_arrivals)
{
	struct dev_event ev;

	pair_open(devs, NULL);
	pair_link(devs, 4096, true, transports);
	cr_assert_eq(pair_write(&transports[1], 64), 0);
	ev = pair_wait(devs[0], DEV_EV_IMM);
	pair_take(&transports[0], ev.imm);
	vb_link_fail_cold(vb(&transports[0]), EINVAL);
	ev = pair_wait(devs[0], DEV_EV_DOWN);
	cr_expect_eq(ev.status, -FI_EIO);
	cr_expect_not(pair_poll(devs[0], &ev, 20));
}

/* Where another way is there, a link must not wait as long as one without it. */
Test(vb_link, a_brief_link_gives_a_silent_peer_up_sooner)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct dev_desc desc;
	struct dev_link *link;

	pair_open(devs, NULL);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(vb_link_create((struct dev *)devs[0], 1024, &link), 0);
		link->caps |= i ? DEV_CAP_BRIEF : 0;
		cr_assert_eq(link->ops->describe(link, &desc), 0);
		cr_assert_eq(link->ops->connect(link, &desc), 0);
		cr_assert_eq(
			ibv_query_qp(((struct vb_link *)link)->ib.qp, &attr, IBV_QP_TIMEOUT, &init),
			0);
		cr_expect_eq(attr.timeout, ib_qp_timeout(i ? DEV_BRIEF_MS : 5000));
		link->ops->close(link);
	}
}
