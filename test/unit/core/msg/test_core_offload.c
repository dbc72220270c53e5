/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tag matching by a device: contact, requests, and messages that wait for them. */
#include "core/msg/core_offload.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "core/core_handler.h"
#include "unit/core/msg/offload_fixture.h"
#include "util/param.h"
#include "wire/wire_op.h"

TestSuite(core_offload, .init = off_setup, .fini = off_teardown);

/* ---- contact ---- */

Test(core_offload, two_ends_make_contact)
{
	off_connect(0);
	for (unsigned n = 0; n < 2; n++) {
		cr_expect(off_peer(n, !n)->is_ready);
		cr_expect(off_peer(n, !n)->has_replied);
		cr_expect_eq(off_peer(n, !n)->id, off_peer(!n, n)->own_id);
	}
	cr_expect_eq(fake_tags_cnt.opens, 2);
}

/** Sends a long message, which is to go by the channel. */
static void check_channel(unsigned n)
{
	off_post(0);
	off_settle();
	off_send(n, 1, 0, OFF_LONG, 0);
	off_settle();
	off_check_sent(n, 0);
	off_check_received(0, 0, OFF_LONG, n);
	cr_expect_eq(fake_tags_cnt.sends, 0);
}

Test(core_offload, an_end_without_a_list_ignores_contact)
{
	cr_assert_eq(node_send(&off_nodes[0], 1, off_outs[3], OFF_SHORT, true, 3, FI_COMPLETION,
			       off_outs[3]),
		     0);
	core_dom_progress(&off_nodes[0].dom);
	util_params.tag_offload = 0;
	core_dom_progress(&off_nodes[1].dom);
	off_post(3);
	off_settle();
	off_check_sent(0, 3);
	off_check_received(3, 3, OFF_SHORT, 0);
	cr_assert(off_peer(0, 1));
	cr_assert_not(off_peer(1, 0));
	cr_expect_not(off_peer(0, 1)->is_ready);
	check_channel(0);
}

Test(core_offload, without_a_device_all_goes_by_the_channel)
{
	fake_tags_cfg.open_err = -FI_EOPNOTSUPP;
	off_connect(0);
	cr_expect_null(off_nodes[0].ep.offload);
	check_channel(0);
	fake_tags_cfg.open_err = 0;
	fake_tags_cfg.peer_err = -FI_ENOSPC;
	off_connect(2);
	cr_expect_null(off_nodes[2].ep.offload);
	check_channel(2);
}

/** Node 1 cannot connect to the queue pairs of node 0, which can do so: neither sends requests. */
Test(core_offload, a_device_that_does_not_connect_leaves_all_to_the_channel)
{
	cr_assert_eq(node_send(&off_nodes[0], 1, off_outs[3], OFF_SHORT, true, 3, FI_COMPLETION,
			       off_outs[3]),
		     0);
	off_post(3);
	for (unsigned i = 0; i < 50; i++) {
		core_dom_progress(&off_nodes[0].dom);
		fake_tags_cfg.connect_err = -FI_EINVAL;
		core_dom_progress(&off_nodes[1].dom);
		fake_tags_cfg.connect_err = 0;
	}
	off_check_sent(0, 3);
	off_check_received(3, 3, OFF_SHORT, 0);
	check_channel(0);
	cr_assert_eq(node_recv(&off_nodes[0], 1, off_ins[1], OFF_LONG, true, 1, 0, FI_COMPLETION,
			       off_ins[1]),
		     0);
	off_send(1, 0, 1, OFF_LONG, 0);
	off_settle();
	off_check_sent(1, 1);
	cr_expect_eq(fake_tags_cnt.sends, 0);
	cr_expect_eq(node_poll(&off_nodes[0], &off_cqe, &off_err), 1);
}

/** Messages that follow the connection at once may fill the channel before HELLO. */
Test(core_offload, a_full_channel_does_not_hinder_contact)
{
	fake_engine_cfg.room = 2;
	off_send(0, 1, 3, OFF_SHORT, 0);
	core_dom_progress(&off_nodes[0].dom);
	core_dom_progress(&off_nodes[1].dom);
	for (unsigned i = 0; i < 3; i++)
		off_send(1, 0, i, OFF_SHORT, 0);
	fake_engine_cfg.no_delivery = true; /* both send HELLO, if there is room */
	for (unsigned i = 0; i < 2; i++)
		core_dom_progress(&off_nodes[i].dom);
	fake_engine_cfg.no_delivery = false;
	core_dom_progress(&off_nodes[1].dom); /* takes HELLO of node 0 */
	off_settle();
	off_check_sent(0, 3);
	for (unsigned i = 0; i < 3; i++)
		off_check_sent(1, i);
	cr_expect(off_peer(0, 1)->is_ready);
	cr_expect(off_peer(1, 0)->is_ready);
}

/** Delivers a message of contact to node 0. */
static enum core_rx_verdict receive_tags(struct wire_tags tags, uint32_t flags, uint32_t len)
{
	uint8_t bytes[128] = { 0 };
	uint32_t at = wire_ext_len(flags);

	memcpy(bytes + at, &tags, sizeof(tags));
	return core_upcall_table.on_msg(core_peer_lookup(&off_nodes[0].ep, 1)->chan,
					WIRE_OP_TAGS | flags, bytes, at + len, 0);
}

Test(core_offload, malformed_contact_is_refused)
{
	const uint32_t head = sizeof(struct wire_tags), whole = head + CORE_TAGS_DESC_LEN;
	struct wire_tags hello = { .kind = WIRE_TAGS_HELLO, .id = 1 };
	struct wire_tags ready = { .kind = WIRE_TAGS_READY };

	off_connect(0);
	off_peer(0, 1)->own_id = 0;
	off_peer(0, 1)->is_ready = false;
	cr_expect_eq(receive_tags(hello, 0, head - 1), CORE_RX_BAD, "no header");
	cr_expect_eq(receive_tags(hello, 0, whole - 1), CORE_RX_BAD, "a short description");
	cr_expect_eq(receive_tags(hello, 0, whole + 1), CORE_RX_BAD, "a long description");
	cr_expect_eq(receive_tags(hello, WIRE_F_TAG, whole), CORE_RX_BAD, "a tag");
	cr_expect_eq(receive_tags(hello, WIRE_F_DATA32, whole), CORE_RX_BAD, "data");
	hello.id = 0;
	cr_expect_eq(receive_tags(hello, 0, whole), CORE_RX_BAD, "no number");
	hello.id = 1;
	hello.zero = 1;
	cr_expect_eq(receive_tags(hello, 0, whole), CORE_RX_BAD, "reserved bytes");
	hello.zero = 0;
	hello.kind = 0;
	cr_expect_eq(receive_tags(hello, 0, whole), CORE_RX_BAD, "kind 0");
	hello.kind = WIRE_TAGS_READY + 1;
	cr_expect_eq(receive_tags(hello, 0, whole), CORE_RX_BAD, "an unknown kind");
	cr_expect_eq(receive_tags(ready, 0, head + 1), CORE_RX_BAD, "bytes behind READY");
	off_peer(0, 1)->is_greeted = false;
	cr_expect_eq(receive_tags(ready, 0, head), CORE_RX_BAD, "READY before HELLO");
	off_peer(0, 1)->is_greeted = true;
	off_peer(0, 1)->own_id = off_peer(1, 0)->id;
	hello.kind = WIRE_TAGS_HELLO;
	cr_expect_eq(receive_tags(hello, 0, whole), CORE_RX_BAD, "HELLO twice");
	cr_expect_eq(receive_tags(ready, 0, head), CORE_RX_DONE);
	cr_expect_eq(receive_tags(ready, 0, head), CORE_RX_BAD, "READY twice");
}

/* ---- requests ---- */

/** Receives from any source or the sender, with data or without: no frame is sent. */
Test(core_offload, a_long_message_goes_by_a_request)
{
	off_connect(0);
	for (unsigned i = 0; i < 4; i++) {
		uint64_t flags = i & 1 ? FI_REMOTE_CQ_DATA : 0;

		memset(off_ins, 0xA5, sizeof(off_ins));
		off_post_len(i & 2 ? 0 : FI_ADDR_UNSPEC, i, OFF_LONG);
		off_settle();
		fake_engine_cfg.no_delivery = true;
		off_send(0, 1, i, OFF_LONG - i, flags);
		off_settle();
		cr_expect_eq(fake_engine_queued(), 0);
		fake_engine_cfg.no_delivery = false;
		off_check_sent(0, i);
		off_check_received(i, i, OFF_LONG - i, 0);
		cr_expect_eq(off_cqe.e.flags, FI_RECV | FI_TAGGED | flags);
		cr_expect_eq(off_cqe.e.data, i & 1 ? 3 * i : 0);
		cr_expect_eq(fake_tags_cnt.matches, i + 1);
	}
	cr_expect_eq(fake_tags_cnt.unexpected, 0);
}

/* All channels of the fake engine count in one row. */
Test(core_offload, requests_are_counted_and_who_matches_them)
{
	const struct copyrpc_stats_peer *stats;
	struct copyrpc_stats_peer before;

	off_connect(0);
	stats = off_peer(0, 1)->peer->chan->stats;
	before = *stats;
	for (unsigned i = 0; i < 2; i++) {
		off_post(i);
		off_list(1);
		off_send(0, 1, i, OFF_LONG, 0);
		off_settle();
		off_check_sent(0, i);
		off_check_received(i, i, OFF_LONG, 0);
	}
	off_keep();
	cr_expect_eq(stats->tag_requests - before.tag_requests, 3);
	cr_expect_eq(stats->tag_matches - before.tag_matches, 2);
	cr_expect_eq(stats->tag_unmatched - before.tag_unmatched, 1);
}

/** Sends `len` bytes of outs[0] with this tag and these data. */
static void send_by_channel(size_t len, bool tagged, uint64_t tag, uint64_t data)
{
	struct iovec iov = { off_outs[0], len };
	struct core_send s = { .dest = 1,
			       .iov = &iov,
			       .iov_cnt = 1,
			       .len = len,
			       .tag = tag,
			       .data = data,
			       .context = off_outs[0],
			       .flags = FI_COMPLETION | FI_REMOTE_CQ_DATA,
			       .tagged = tagged };

	cr_assert_eq(node_recv(&off_nodes[1], 0, off_ins[0], OFF_LONG, tagged, tag, 0,
			       FI_COMPLETION, off_ins[0]),
		     0);
	off_settle();
	cr_assert_eq(core_tx_send(&off_nodes[0].ep, &s), 0);
	off_settle();
	off_check_sent(0, 0);
	cr_assert_eq(node_poll(&off_nodes[1], &off_cqe, &off_err), 1);
	cr_expect_eq(off_cqe.e.data, data);
	cr_expect_eq(off_cqe.e.tag, tag);
	cr_expect(node_check(off_ins[0], len, 0));
	cr_expect_eq(fake_tags_cnt.sends, 0);
}

Test(core_offload, other_messages_go_by_the_channel)
{
	off_connect(0);
	send_by_channel(OFF_LONG, true, 1ull << CORE_OFFLOAD_TAG_BITS, 1);
	send_by_channel(OFF_LONG, true, 0, 1ull << 32);
	send_by_channel(OFF_SHORT, true, 0, 1);
	send_by_channel(5000, true, 0, 1); /* in parts */
	send_by_channel(OFF_LONG, false, 0, 1);
}

/** Tagged messages wait behind a request, untagged ones only behind those. */
Test(core_offload, messages_wait_for_the_end_of_a_request)
{
	off_connect(0);
	off_post(0);
	off_list(1);
	fake_tags_cfg.hold_requests = true;
	off_send(0, 1, 0, OFF_LONG, 0);
	cr_assert_eq(fake_tags_cnt.sends, 1);
	cr_assert_eq(node_send(&off_nodes[0], 1, off_outs[2], OFF_SHORT, false, 0, FI_COMPLETION,
			       off_outs[2]),
		     0);
	off_check_sent(0, 2);
	off_send(0, 1, 1, OFF_SHORT, 0);
	cr_assert_eq(node_send(&off_nodes[0], 1, off_outs[3], OFF_SHORT, false, 0, FI_COMPLETION,
			       off_outs[3]),
		     0);
	off_settle();
	off_check_none(0);
	fake_tags_cfg.hold_requests = false;
	off_settle();
	off_check_received(0, 0, OFF_LONG, 0);
	off_check_sent(0, 0);
	off_check_sent(0, 1);
	off_check_sent(0, 3);
	off_post(1);
	off_check_received(1, 1, OFF_SHORT, 0);
}

Test(core_offload, messages_wait_until_a_request_is_kept)
{
	off_connect(0);
	fake_tags_cfg.hold_requests = true;
	off_send(0, 1, 0, OFF_LONG, 0);
	off_send(0, 1, 1, OFF_SHORT, 0);
	off_settle();
	off_check_none(0);
	fake_tags_cfg.hold_requests = false;
	off_settle();
	off_check_sent(0, 1);
	off_check_none(0);
	off_post(1);
	off_check_received(1, 1, OFF_SHORT, 0);
	off_post(0);
	off_settle();
	off_check_received(0, 0, OFF_LONG, 0);
	off_check_sent(0, 0);
}

Test(core_offload, requests_follow_each_other)
{
	off_connect(0);
	off_post(0);
	off_post(1);
	off_list(2);
	fake_tags_cfg.hold_requests = true;
	off_send(0, 1, 0, OFF_LONG, 0);
	off_send(0, 1, 1, OFF_LONG, 0);
	cr_expect_eq(fake_tags_cnt.sends, 2);
	fake_tags_cfg.hold_requests = false;
	off_settle();
	for (unsigned i = 0; i < 2; i++) {
		off_check_received(i, i, OFF_LONG, 0);
		off_check_sent(0, i);
	}
}

/** A request could overtake messages that the peer has not parsed. */
Test(core_offload, behind_messages_on_their_way_the_channel_is_used)
{
	off_connect(0);
	off_post(0);
	off_post(1);
	off_list(2);
	fake_engine_cfg.no_delivery = true;
	off_send(0, 1, 0, OFF_SHORT, 0);
	off_send(0, 1, 1, OFF_LONG, 0);
	cr_expect_eq(fake_engine_queued(), 2);
	cr_expect_eq(fake_tags_cnt.sends, 0);
	fake_engine_cfg.no_delivery = false;
	off_settle();
	off_check_received(0, 0, OFF_SHORT, 0);
	off_check_received(1, 1, OFF_LONG, 0);
	off_check_sent(0, 0);
	off_check_sent(0, 1);
	off_post(2);
	off_settle();
	off_send(0, 1, 2, OFF_LONG, 0);
	cr_expect_eq(fake_tags_cnt.sends, 1);
	off_settle();
	off_check_received(2, 2, OFF_LONG, 0);
}

Test(core_offload, a_refused_request_is_sent_again)
{
	off_connect(0);
	off_post(0);
	off_list(1);
	fake_tags_cfg.refused = 100;
	off_send(0, 1, 0, OFF_LONG, 0);
	off_settle();
	off_check_none(0);
	fake_tags_cfg.refused = 0;
	off_settle();
	off_check_received(0, 0, OFF_LONG, 0);
	off_check_sent(0, 0);
	cr_expect_eq(fake_tags_cnt.sends, 1);
	fake_tags_cfg.send_err = -FI_EINVAL;
	off_post(1);
	off_settle();
	off_send(0, 1, 1, OFF_LONG, 0);
	off_settle();
	off_check_received(1, 1, OFF_LONG, 0);
	off_check_sent(0, 1);
	cr_expect_eq(fake_tags_cnt.sends, 1, "by the channel");
}
