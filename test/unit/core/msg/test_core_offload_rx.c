/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tag matching by a device: unexpected requests, races for a listed receive, and receives
 * that end without a message.
 */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "support/pool_used.h"
#include "unit/core/msg/offload_fixture.h"

TestSuite(core_offload_rx, .init = off_setup, .fini = off_teardown);

/* ---- unexpected requests ---- */

/** Peeks at, discards or claims the message with tag 2. */
static void peek(uint64_t flags)
{
	struct iovec iov = { off_ins[2], OFF_LONG };
	struct core_recv r = { .src = FI_ADDR_UNSPEC,
			       .iov = &iov,
			       .iov_cnt = 1,
			       .tag = 2,
			       .context = off_ins[2],
			       .flags = FI_COMPLETION | FI_PEEK | flags,
			       .tagged = true };

	cr_assert_eq(core_rx_peek(&off_nodes[1].ep, &r), 0);
	cr_assert_eq(node_poll(&off_nodes[1], &off_cqe, &off_err), 1);
	cr_expect_eq(off_cqe.e.op_context, off_ins[2]);
	cr_expect_eq(off_cqe.e.len, OFF_LONG);
	cr_expect_eq(off_cqe.e.tag, 2);
	cr_expect_eq(off_cqe.e.data, 6);
	cr_expect_eq(off_cqe.src, 0);
	cr_expect_eq(off_cqe.e.flags, FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA);
}

static void claim(uint64_t flags)
{
	struct iovec iov = { off_ins[2], OFF_LONG };
	struct core_recv r = { .src = FI_ADDR_UNSPEC,
			       .iov = &iov,
			       .iov_cnt = 1,
			       .tag = 2,
			       .context = off_ins[2],
			       .flags = FI_COMPLETION | FI_CLAIM | flags,
			       .tagged = true };

	cr_assert_eq(core_rx_claim(&off_nodes[1].ep, &r), 0);
}

Test(core_offload_rx, an_unexpected_request_is_taken_by_a_later_receive)
{
	off_keep();
	peek(0);
	off_settle();
	off_check_none(0);
	off_post(2);
	off_settle();
	off_check_received(2, 2, OFF_LONG, 0);
	cr_expect_eq(off_cqe.e.data, 6);
	off_check_sent(0, 2);
}

Test(core_offload_rx, an_unexpected_request_is_discarded)
{
	off_keep();
	peek(FI_DISCARD);
	off_settle();
	off_check_sent(0, 2);
	off_check_none(1);
	cr_expect_eq(pool_used(&off_nodes[1].ep.unexps), 0);
}

Test(core_offload_rx, an_unexpected_request_is_claimed)
{
	off_keep();
	peek(FI_CLAIM);
	off_settle();
	off_check_none(0);
	off_post(2); /* no more for this one */
	off_settle();
	off_check_none(1);
	claim(0);
	off_settle();
	off_check_received(2, 2, OFF_LONG, 0);
	off_check_sent(0, 2);
}

Test(core_offload_rx, a_claimed_request_is_discarded)
{
	off_keep();
	peek(FI_CLAIM);
	claim(FI_DISCARD);
	off_settle();
	cr_expect_eq(node_poll(&off_nodes[1], &off_cqe, &off_err), 1);
	off_check_sent(0, 2);
	cr_expect_eq(off_ins[2][0], 0xA5);
}

/** Posts a receive for a request that the device has reported, and this end has not seen. */
Test(core_offload_rx, a_receive_that_was_listed_too_late_gets_the_request)
{
	off_connect(0);
	fake_tags_cfg.hold = true;
	off_send(0, 1, 0, OFF_LONG, 0);
	fake_tags_run();
	cr_assert_eq(fake_tags_cnt.unexpected, 1);
	off_post(0);
	core_dom_progress(&off_nodes[1].dom);
	cr_expect_eq(fake_tags_cnt.appends, fake_tags_cnt.sure_removes + 1, "that of meet too");
	cr_expect_eq(fake_tags_cnt.sure_removes, 1);
	fake_tags_cfg.hold = false;
	off_settle();
	off_check_received(0, 0, OFF_LONG, 0);
	off_check_sent(0, 0);
	/* The list works on, though entries were stored meanwhile. */
	off_post(1);
	off_settle();
	off_send(0, 1, 1, OFF_LONG, 0);
	off_settle();
	off_check_received(1, 1, OFF_LONG, 0);
	off_check_sent(0, 1);
	cr_expect_eq(fake_tags_cnt.matches, 1);
}

/** A get and a notice that find no room are tried again. */
Test(core_offload_rx, a_kept_request_waits_for_room)
{
	off_keep();
	fake_engine_cfg.gets_refused = 3;
	off_post(2);
	off_check_none(1);
	fake_tags_cfg.refused = 100;
	off_settle();
	off_check_received(2, 2, OFF_LONG, 0);
	off_check_none(0);
	fake_tags_cfg.refused = 0;
	off_settle();
	off_check_sent(0, 2);
}

Test(core_offload_rx, a_kept_request_dies_with_its_sender)
{
	off_keep();
	fake_engine_cfg.gets_refused = 1000000;
	off_post(2);
	off_settle();
	fake_engine_kill(&off_nodes[0].ep, &off_nodes[1].ep, -FI_ECONNRESET);
	off_settle();
	off_check_err(0, off_outs[2], FI_ECONNRESET);
	off_check_err(1, off_ins[2], FI_ECONNRESET);
	cr_expect_eq(pool_used(&off_nodes[1].ep.unexps), 0);
	fake_engine_cfg.gets_refused = 0;
}

Test(core_offload_rx, a_failed_get_ends_both_ends)
{
	off_keep();
	fake_engine_cfg.get_err = -FI_EIO;
	off_post(2);
	off_settle();
	off_check_err(1, off_ins[2], FI_EIO);
	cr_expect_neq(node_poll(&off_nodes[0], &off_cqe, &off_err), 0, "the send ends");
}

/* ---- races for a listed receive ---- */

Test(core_offload_rx, a_message_of_the_channel_takes_a_listed_receive)
{
	off_connect(0);
	off_post(0);
	off_list(1);
	off_send(0, 1, 0, OFF_SHORT, 0);
	off_settle();
	off_check_received(0, 0, OFF_SHORT, 0);
	cr_expect_eq(fake_tags_cnt.removes, 1);
	cr_expect_eq(off_nodes[1].ep.offload->listed_cnt, 0);
}

/** Another node's message, behind in time: the device has given the receive away. */
static void lose_race(bool is_read)
{
	off_connect(0);
	off_connect(2);
	off_post_len(FI_ADDR_UNSPEC, 0, OFF_LONG);
	cr_assert_eq(node_recv(&off_nodes[1], FI_ADDR_UNSPEC, off_ins[1], OFF_LONG, true, 0, 0,
			       FI_COMPLETION, off_ins[1]),
		     0);
	off_list(2);
	fake_tags_cfg.hold_reads = !is_read;
	fake_tags_cfg.hold = true;
	off_send(0, 1, 0, OFF_LONG, 0);
	core_dom_progress(&off_nodes[1].dom); /* polls before it takes messages */
	fake_tags_run();
	cr_assert_eq(fake_tags_cnt.matches, 1);
	fake_tags_cfg.hold = false;
	off_send(2, 1, 0, OFF_SHORT, 0);
	off_nodes[1].dom.progress_ops->progress(off_nodes[1].dom.progress);
	fake_tags_cfg.hold_reads = false;
	off_settle();
}

static void check_race(void)
{
	unsigned late = 0;

	for (unsigned i = 0; i < 2; i++) {
		cr_assert_eq(node_poll(&off_nodes[1], &off_cqe, &off_err), 1);
		late += off_cqe.e.op_context == off_ins[1];
		cr_expect_eq(off_cqe.src, off_cqe.e.op_context == off_ins[1] ? 2 : 0);
		cr_expect_eq(off_cqe.e.len,
			     off_cqe.e.op_context == off_ins[1] ? OFF_SHORT : OFF_LONG);
	}
	cr_expect_eq(late, 1);
	cr_expect(node_check(off_ins[0], OFF_LONG, 0));
	cr_expect(node_check(off_ins[1], OFF_SHORT, 0));
	off_check_sent(0, 0);
	off_check_sent(2, 0);
	cr_expect_gt(fake_tags_cnt.removes, 0);
}

Test(core_offload_rx, a_matched_receive_is_not_for_a_message_of_the_channel)
{
	lose_race(false);
	check_race();
}

Test(core_offload_rx, a_receive_that_has_ended_is_not_for_a_message_of_the_channel)
{
	lose_race(true);
	check_race();
}

/** Truncation outside of the list, and a receive that must not take the message instead. */
Test(core_offload_rx, a_receive_behind_an_unlisted_one_is_not_listed)
{
	off_connect(0);
	off_post_len(FI_ADDR_UNSPEC, 0, OFF_SHORT); /* too short for the list */
	cr_assert_eq(node_recv(&off_nodes[1], FI_ADDR_UNSPEC, off_ins[1], OFF_LONG, true, 0, 0,
			       FI_COMPLETION, off_ins[1]),
		     0);
	off_list(0);
	off_send(0, 1, 0, OFF_LONG, 0);
	off_settle();
	off_check_err(1, off_ins[0], FI_ETRUNC);
	cr_expect(node_check(off_ins[0], OFF_SHORT, 0));
	cr_expect_eq(off_ins[0][OFF_SHORT], 0xA5);
	off_check_sent(0, 0);
	off_send(0, 1, 0, OFF_LONG, 0);
	off_settle();
	off_check_received(1, 0, OFF_LONG, 0);
	off_check_sent(0, 0);
}

Test(core_offload_rx, a_request_longer_than_its_receive_is_truncated)
{
	off_connect(0);
	off_post_len(0, 0, 5000);
	off_list(1);
	off_send(0, 1, 0, OFF_LONG, FI_REMOTE_CQ_DATA);
	off_settle();
	off_check_err(1, off_ins[0], FI_ETRUNC);
	cr_expect_eq(off_err.len, 5000);
	cr_expect_eq(off_err.olen, OFF_LONG - 5000);
	cr_expect(node_check(off_ins[0], 5000, 0));
	cr_expect_eq(off_ins[0][5000], 0xA5);
	off_check_sent(0, 0);
	cr_expect_eq(fake_tags_cnt.matches, 1);
	cr_expect_eq(fake_tags_cnt.finishes, 1);
}

/** A device that has refused a receive gets it later, though no other receive comes or goes. */
Test(core_offload_rx, a_refused_receive_is_listed_later)
{
	off_connect(0);
	fake_tags_cfg.refused = 100;
	off_post(0);
	off_list(0);
	fake_tags_cfg.refused = 0;
	off_list(1);
}

/** An entry is in use until the bytes of its message have come. */
Test(core_offload_rx, a_receive_is_listed_when_an_entry_is_free)
{
	off_connect(0);
	fake_tags_cfg.room = 1;
	fake_tags_cfg.hold_reads = true;
	off_post(0);
	off_post(1);
	off_list(1);
	off_send(0, 1, 0, OFF_LONG, 0);
	off_list(1);
	fake_tags_cfg.hold_reads = false;
	off_settle();
	off_check_received(0, 0, OFF_LONG, 0);
	off_list(1);
}

/** A receive outside of the list keeps a younger one out, until it has ended. */
Test(core_offload_rx, a_receive_is_listed_when_the_older_one_has_ended)
{
	off_connect(0);
	off_post_len(FI_ADDR_UNSPEC, 0, OFF_SHORT);
	cr_assert_eq(node_recv(&off_nodes[1], 0, off_ins[1], OFF_LONG, true, 0, 0, FI_COMPLETION,
			       off_ins[1]),
		     0);
	off_list(0);
	off_send(0, 1, 0, OFF_SHORT, 0);
	off_list(1);
	off_check_received(0, 0, OFF_SHORT, 0);
	off_send(0, 1, 0, OFF_LONG, 0);
	off_settle();
	off_check_received(1, 0, OFF_LONG, 0);
	cr_expect_eq(fake_tags_cnt.matches, 1);
}

/* ---- receives that end without a message ---- */

Test(core_offload_rx, a_listed_receive_is_cancelled)
{
	off_connect(0);
	off_post(0);
	off_post(1);
	off_list(2);
	cr_expect_eq(core_rx_cancel(&off_nodes[1].ep, off_ins[0]), 0);
	off_check_err(1, off_ins[0], FI_ECANCELED);
	cr_expect_eq(fake_tags_cnt.removes, 1);
	off_send(0, 1, 0, OFF_LONG, 0);
	off_settle();
	off_check_none(1);
	cr_expect_eq(off_ins[0][0], 0xA5);
}

/** The device has a message for the receive: it ends with that. */
Test(core_offload_rx, a_matched_receive_is_not_cancelled)
{
	off_connect(0);
	off_post(0);
	off_list(1);
	fake_tags_cfg.hold = true;
	off_send(0, 1, 0, OFF_LONG, 0);
	fake_tags_run();
	fake_tags_cfg.hold = false;
	cr_expect_eq(core_rx_cancel(&off_nodes[1].ep, off_ins[0]), -FI_ENOENT);
	off_check_received(0, 0, OFF_LONG, 0);
	off_settle();
	off_check_sent(0, 0);
}

Test(core_offload_rx, a_flush_cancels_listed_receives)
{
	off_connect(0);
	for (unsigned i = 0; i < 3; i++)
		off_post_len(i ? FI_ADDR_UNSPEC : 0, i, OFF_LONG);
	off_list(3);
	core_rx_flush(&off_nodes[1].ep);
	for (unsigned i = 0; i < 3; i++)
		off_check_err(1, off_ins[i], FI_ECANCELED);
	cr_expect_eq(off_nodes[1].ep.offload->listed_cnt, 0);
}

Test(core_offload_rx, the_death_of_a_peer_ends_its_listed_receives)
{
	off_connect(0);
	off_connect(2);
	off_post_len(0, 0, OFF_LONG);
	off_post_len(2, 1, OFF_LONG);
	off_post(2);
	off_list(3);
	fake_engine_kill(&off_nodes[0].ep, &off_nodes[1].ep, -FI_ECONNRESET);
	off_settle();
	off_check_err(1, off_ins[0], FI_ECONNRESET);
	off_check_none(1);
	for (unsigned i = 1; i < 3; i++) {
		off_send(2, 1, i, OFF_LONG, 0);
		off_settle();
		off_check_received(i, i, OFF_LONG, 2);
		off_check_sent(2, i);
	}
	cr_expect_eq(fake_tags_cnt.matches, 2);
}

/** A receive whose message was not read ends with an error when its sender dies. */
static void die_matched(unsigned met)
{
	off_connect(0);
	if (met > 1)
		off_connect(2);
	off_post(0);
	off_list(1);
	fake_tags_cfg.hold_reads = true;
	off_send(0, 1, 0, OFF_LONG, 0);
	off_settle();
	cr_assert_eq(fake_tags_cnt.matches, 1);
	fake_engine_kill(&off_nodes[0].ep, &off_nodes[1].ep, -FI_ECONNRESET);
	off_settle();
	fake_tags_cfg.hold_reads = false;
	off_check_err(0, off_outs[0], FI_ECONNRESET);
	cr_assert_eq(node_poll(&off_nodes[1], &off_cqe, &off_err), -FI_EAVAIL);
	cr_expect_eq(off_err.op_context, off_ins[0]);
	off_check_none(1);
	cr_expect_eq(off_ins[0][0], 0xA5);
}

Test(core_offload_rx, a_matched_receive_ends_with_the_last_peer)
{
	die_matched(1);
}

Test(core_offload_rx, a_matched_receive_ends_with_its_peer)
{
	die_matched(2);
}

/** Closes node 1 with receives listed and matched, and a request kept. */
Test(core_offload_rx, an_endpoint_closes_with_open_receives_and_requests)
{
	off_connect(0);
	off_connect(2);
	off_post(0);
	off_post(1);
	off_list(2);
	fake_tags_cfg.hold_reads = true;
	off_send(0, 1, 0, OFF_LONG, 0);
	off_send(2, 1, 2, OFF_LONG, 0);
	off_settle();
	cr_assert_eq(fake_tags_cnt.matches, 1);
	cr_assert_eq(fake_tags_cnt.unexpected, 1);
	core_ep_close(&off_nodes[1].ep);
	off_check_none(1);
	cr_expect_eq(off_ins[0][0], 0xA5);
	off_nodes[1].ep = (struct core_ep){ .av = off_nodes[1].ep.av };
	cr_assert_eq(core_ep_open(&off_nodes[1].ep, &off_nodes[1].dom, NULL), 0);
	off_settle();
	cr_expect_eq(off_nodes[0].ep.tx_open, 0);
	cr_expect_eq(off_nodes[2].ep.tx_open, 0);
}
