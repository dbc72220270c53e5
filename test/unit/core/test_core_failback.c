/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Return to a better path: the connection is another one afterwards, and no operation ends with an
 * error, whichever end asks and whatever is in flight. Rings of another size and random traffic are
 * in files of their own, test_core_failback_sizes.c and test_core_failback_traffic.c.
 */
#include "core/core_failback.h"
#include "core/core_pending.h"
#include "core/msg/core_post.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "core/core_handler.h"
#include "core/core_op.h"
#include "core/rpc/core_rpc.h"
#include "support/core_pair.h"
#include "unit/core/failback_pair.h"
#include "util/clock.h"

#define LEN 20000u

static struct core_cqe e;
static struct fi_cq_err_entry err;
static uint8_t out[LEN], in[LEN];

TestSuite(core_failback, .init = pair_setup, .fini = pair_teardown, .timeout = 200);

/** Replies to the call that has arrived at an end. */
static void reply_to_call(unsigned at)
{
	struct core_rpc_handle *handle = node_take(&pair_nodes[at]);
	struct iovec iov = { .iov_base = out, .iov_len = 4 };

	cr_assert_not_null(handle);
	cr_assert_eq(core_rpc_reply(&pair_nodes[at].ep, handle, handle->seq, &iov, 1, 4, 0), 0);
}

Test(core_failback, an_idle_connection_is_replaced_at_once)
{
	pair_mark();
	pair_look(0);
	nodes_settle(pair_nodes, 2);
	pair_expect_moved();
	cr_expect_eq(pair_peer_at(0)->state, CORE_PEER_UP, "the end that closes connects again");
	pair_expect_traffic();
}

Test(core_failback, both_ends_may_ask_at_once)
{
	pair_mark();
	pair_look(0);
	pair_look(1);
	nodes_settle(pair_nodes, 2);
	pair_expect_moved();
	pair_expect_traffic();
}

Test(core_failback, without_a_common_path_the_connection_goes_on)
{
	pair_mark();
	pair_look(0);
	core_dom_progress(&pair_nodes[0].dom);
	cr_assert_eq(pair_peer_at(0)->failback.question, CORE_FAILBACK_ASKED);
	cr_expect_eq(node_send(&pair_nodes[0], 1, out, 8, true, 1, 0, out), 0);
	fake_engine_cfg.better = PAIR_BETTER << 1; /* of the other end */
	nodes_settle(pair_nodes, 2);
	cr_expect(pair_is_marked(0) && pair_is_marked(1));
	cr_expect_not(pair_peer_at(0)->holds);
	pair_expect_end(0, out);
	cr_expect(util_list_is_empty(&pair_nodes[0].dom.work));
	cr_expect(util_list_is_empty(&pair_nodes[1].dom.work));
	fake_engine_cfg.better = PAIR_BETTER;
	pair_peer_at(0)->failback.last_ns = util_clock_ns() - CORE_FAILBACK_PAUSE_MAX / 2;
	core_failback_look(&pair_nodes[0].ep);
	cr_expect_not(pair_peer_at(0)->holds, "the peer has had no such path");
	pair_peer_at(0)->failback.last_ns = util_clock_ns() - CORE_FAILBACK_PAUSE_MAX;
	core_failback_look(&pair_nodes[0].ep);
	nodes_settle(pair_nodes, 2);
	pair_expect_moved();
}

Test(core_failback, nothing_begins_while_an_end_drains, .init = pair_make_async)
{
	pair_mark();
	fake_engine_cfg.no_acks = true;
	cr_assert_eq(node_send(&pair_nodes[0], 1, out, 8, true, 1, 0, &out[0]), 0);
	nodes_settle(pair_nodes, 2);
	pair_look(0);
	nodes_settle(pair_nodes, 2);
	cr_expect(pair_is_marked(0), "a send is not acknowledged");
	cr_expect_eq(node_send(&pair_nodes[0], 1, out, 8, true, 1, 0, &out[1]), 0, "queued");
	cr_expect_eq(node_send(&pair_nodes[0], 1, out, 8, true, 1, FI_INJECT, NULL), -FI_EAGAIN);
	nodes_settle(pair_nodes, 2);
	cr_expect_eq(fake_engine_queued(), 0);
	cr_expect_eq(node_poll(&pair_nodes[0], &e, &err), 0);
	fake_engine_cfg.no_acks = false;
	nodes_settle(pair_nodes, 2);
	pair_expect_moved();
	pair_expect_end(0, &out[0]);
	pair_expect_end(0, &out[1]);
}

/* A caller that sleeps waits for its completion, and no other event follows. */
Test(core_failback, calls_wait_for_the_next_connection, .init = pair_make_async)
{
	struct iovec iov = { .iov_base = out, .iov_len = 8 };
	struct core_rpc_request request = {
		.iov = &iov, .iov_cnt = 1, .len = 8, .resp = in, .resp_max = 8, .context = &request
	};

	fake_engine_cfg.no_acks = true;
	cr_assert_eq(node_send(&pair_nodes[0], 1, out, 8, true, 1, 0, &out[0]), 0);
	pair_mark();
	pair_look(0);
	nodes_settle(pair_nodes, 2);
	cr_assert(pair_peer_at(0)->holds);
	cr_expect_eq(core_rpc_room(&pair_nodes[0].ep, 1, 8, 8), CORE_OP_QUEUE_MAX);
	cr_expect_eq(core_rpc_room(&pair_nodes[0].ep, 1, 4000, 8), CORE_RPC_QUEUE_BYTES / 4000);
	cr_expect_eq(core_rpc_room(&pair_nodes[0].ep, 1, 5000, 8), -FI_EMSGSIZE);
	cr_expect_eq(core_rpc_shortage(&pair_nodes[0].ep, 1, 5000, 8), -FI_EMSGSIZE);
	cr_expect_eq(core_rpc_shortage(&pair_nodes[0].ep, 1, 8, 8), CORE_SHORT_NONE);
	request.len = 5000;
	cr_expect_eq(core_rpc_call(&pair_nodes[0].ep, 1, &request), -FI_EMSGSIZE);
	request.len = 8;
	cr_expect_eq(core_rpc_call(&pair_nodes[0].ep, 1, &request), 0);
	nodes_settle(pair_nodes, 2);
	cr_expect_eq(fake_engine_queued(), 0);
	fake_engine_cfg.no_acks = false;
	nodes_settle(pair_nodes, 2);
	pair_expect_moved();
	pair_expect_end(0, &out[0]);
	reply_to_call(1);
	nodes_settle(pair_nodes, 2);
	pair_expect_end(0, &request);
}

Test(core_failback, a_call_that_waits_is_sent_if_the_connection_stays)
{
	struct iovec iov = { .iov_base = out, .iov_len = 8 };
	struct core_rpc_request request = {
		.iov = &iov, .iov_cnt = 1, .len = 8, .resp = in, .resp_max = 8, .context = &request
	};

	cr_assert_eq(node_send(&pair_nodes[0], 1, out, LEN, true, 1, 0, out), 0);
	nodes_settle(pair_nodes, 2);
	pair_mark();
	pair_look(0);
	nodes_settle(pair_nodes, 2);
	cr_expect_eq(core_rpc_call(&pair_nodes[0].ep, 1, &request), 0);
	pair_expire(0);
	nodes_settle(pair_nodes, 2);
	cr_expect(pair_is_marked(0));
	reply_to_call(1);
	nodes_settle(pair_nodes, 2);
	pair_expect_end(0, &request);
}

Test(core_failback, a_message_that_nobody_receives_keeps_the_connection)
{
	for (unsigned at = 0; at < 2; at++) { /* of the end that asks, and of its peer */
		pair_mark();
		cr_assert_eq(node_send(&pair_nodes[at], 1 - at, out, LEN, true, 1, 0, &out[0]), 0);
		nodes_settle(pair_nodes, 2);
		pair_look(0);
		nodes_settle(pair_nodes, 2);
		cr_assert_eq(node_send(&pair_nodes[0], 1, out, 8, true, 2, 0, &out[1]), 0);
		cr_expect(pair_peer_at(at)->holds);
		pair_expire(at);
		nodes_settle(pair_nodes, 2);
		cr_expect(pair_is_marked(0) && pair_is_marked(1));
		cr_expect_not(pair_peer_at(0)->holds);
		cr_expect_not(pair_peer_at(1)->holds);
		pair_expect_end(0, &out[1]);
		cr_assert_eq(node_recv(&pair_nodes[1 - at], at, in, LEN, true, 1, 0, 0, in), 0);
		nodes_settle(pair_nodes, 2);
		pair_expect_end(at, &out[0]);
		pair_expect_end(1 - at, in);
		pair_look(0);
		nodes_settle(pair_nodes, 2);
		pair_expect_moved();
	}
}

Test(core_failback, what_has_arrived_and_what_is_awaited_stay)
{
	node_fill(out, 500, 3);
	cr_assert_eq(node_send(&pair_nodes[0], 1, out, 500, true, 1, 0, out), 0);
	cr_assert_eq(node_recv(&pair_nodes[1], 0, in, LEN, true, 2, 0, 0, &in[2]), 0);
	nodes_settle(pair_nodes, 2);
	pair_expect_end(0, out);
	pair_mark();
	pair_look(0);
	nodes_settle(pair_nodes, 2);
	pair_expect_moved();
	cr_expect_eq(node_poll(&pair_nodes[1], &e, &err), 0, "a directed receive goes on");
	cr_assert_eq(node_recv(&pair_nodes[1], 0, in, LEN, true, 1, 0, 0, &in[1]), 0);
	pair_expect_end(1, &in[1]);
	cr_expect(node_check(in, 500, 3));
	cr_assert_eq(node_send(&pair_nodes[0], 1, out, 8, true, 2, 0, out), 0);
	nodes_settle(pair_nodes, 2);
	pair_expect_end(1, &in[2]);
}

Test(core_failback, the_ends_of_silent_sends_are_asked_for)
{
	for (unsigned at = 0; at < 2; at++) { /* of the end that asks, and of its peer */
		pair_make_async();
		fake_engine_cfg.no_acks = fake_engine_cfg.acks_when_asked = true;
		pair_nodes[at].ep.tx.cntr = NULL; /* which would tell of their ends */
		cr_assert_eq(core_tx_send_buf(&pair_nodes[at].ep, out, 8, 1 - at, 1, 0, NULL, 0,
					      true, CORE_POST_LEAVES),
			     0);
		nodes_settle(pair_nodes, 2);
		cr_assert(core_pending_is_open(&pair_peer_at(at)->pending));
		pair_mark();
		pair_look(0);
		nodes_settle(pair_nodes, 2);
		pair_expect_moved();
	}
}

Test(core_failback, a_failure_meanwhile_ends_what_waits_once)
{
	pair_mark();
	fake_engine_cfg.no_delivery = true;
	pair_look(0);
	nodes_settle(pair_nodes, 2);
	cr_assert_eq(pair_peer_at(0)->failback.question, CORE_FAILBACK_ASKED);
	cr_assert_eq(node_send(&pair_nodes[0], 1, out, 8, true, 1, 0, out), 0);
	fake_engine_kill(&pair_nodes[0].ep, &pair_nodes[1].ep, -FI_EIO);
	nodes_settle(pair_nodes, 2);
	cr_expect_eq(node_poll(&pair_nodes[0], &e, &err), -FI_EAVAIL);
	cr_expect_eq(err.err, FI_EIO);
	cr_expect_eq(node_poll(&pair_nodes[0], &e, &err), 0);
	cr_expect_not(pair_peer_at(0)->holds);
	fake_engine_cfg.no_delivery = false;
	pair_expect_traffic();
}

Test(core_failback, a_peer_that_closes_meanwhile_has_closed)
{
	cr_assert_eq(node_recv(&pair_nodes[0], 1, in, 8, true, 1, 0, 0, in), 0);
	fake_engine_cfg.no_delivery = true;
	pair_look(0);
	nodes_settle(pair_nodes, 2);
	cr_assert_eq(pair_peer_at(0)->failback.question, CORE_FAILBACK_ASKED);
	cr_assert_eq(node_send(&pair_nodes[0], 1, out, 8, true, 1, 0, out), 0);
	fake_engine_kill(&pair_nodes[0].ep, &pair_nodes[1].ep, -FI_ESHUTDOWN);
	nodes_settle(pair_nodes, 2);
	cr_expect_eq(node_poll(&pair_nodes[0], &e, &err), -FI_EAVAIL, "it has not agreed");
	cr_expect_eq(err.err, FI_ESHUTDOWN);
	fake_engine_cfg.no_delivery = false;
}

Test(core_failback, attempts_are_rare_and_become_rarer)
{
	struct core_failback *failback = &pair_peer_at(0)->failback;
	uint64_t pause_ns = CORE_FAILBACK_PAUSE_NS;

	core_failback_look(&pair_nodes[0].ep);
	nodes_settle(pair_nodes, 2);
	cr_assert_eq(failback->pause_ns, CORE_FAILBACK_PAUSE_NS);
	for (unsigned i = 0; i < 10; i++) {
		pair_mark();
		core_failback_look(&pair_nodes[0].ep);
		core_failback_look(&pair_nodes[1].ep);
		nodes_settle(pair_nodes, 2);
		cr_expect(pair_is_marked(0), "too soon, at both ends");
		failback->last_ns = util_clock_ns() - failback->pause_ns;
		cr_expect_lt(pair_peer_at(1)->failback.rest_ns,
			     util_clock_ns() + failback->pause_ns, "earlier than the next attempt");
		pair_peer_at(1)->failback.rest_ns = 0;
		core_failback_look(&pair_nodes[0].ep);
		nodes_settle(pair_nodes, 2);
		cr_expect_not(pair_is_marked(0));
		pause_ns = 2 * pause_ns < CORE_FAILBACK_PAUSE_MAX ? 2 * pause_ns
								  : CORE_FAILBACK_PAUSE_MAX;
		cr_expect_eq(failback->pause_ns, pause_ns);
		cr_expect_eq(pair_peer_at(1)->failback.pause_ns, pause_ns);
	}
	failback->last_ns = util_clock_ns() - 3 * failback->pause_ns;
	core_failback_look(&pair_nodes[0].ep);
	cr_expect_eq(failback->pause_ns, CORE_FAILBACK_PAUSE_NS, "long ago");
}

/* An end that knows the peer by no address begins with each connection anew. */
Test(core_failback, a_peer_that_has_forgotten_the_last_attempts_has_to_wait)
{
	struct core_failback *failback = &pair_peer_at(0)->failback;
	struct core_failback *peers = &pair_peer_at(1)->failback;

	failback->pause_ns = CORE_FAILBACK_PAUSE_MAX;
	failback->last_ns = util_clock_ns() - CORE_FAILBACK_PAUSE_MAX;
	core_failback_look(&pair_nodes[0].ep);
	nodes_settle(pair_nodes, 2);
	pair_mark();
	for (unsigned i = 0; i < 10; i++) {
		peers->last_ns = peers->pause_ns = 0;
		core_failback_look(&pair_nodes[1].ep);
		nodes_settle(pair_nodes, 2);
		cr_expect(pair_is_marked(0), "replaced just now");
		cr_expect_not(pair_peer_at(1)->holds);
	}
	cr_expect_eq(peers->pause_ns, CORE_FAILBACK_PAUSE_NS, "it may ask again");
	pair_expect_traffic();
	cr_expect_geq(failback->rest_ns, util_clock_ns() + CORE_FAILBACK_PAUSE_MAX / 4);
	failback->rest_ns = util_clock_ns();
	peers->last_ns = 0;
	core_failback_look(&pair_nodes[1].ep);
	nodes_settle(pair_nodes, 2);
	pair_expect_moved();
}

/* The peer of a receive may die at any time: each end has to learn of it. */
Test(core_failback, both_ends_learn_that_the_other_is_gone)
{
	for (unsigned at = 0; at < 2; at++)
		cr_assert_eq(node_recv(&pair_nodes[at], 1 - at, in, 8, true, 1, 0, 0, &in[at]), 0);
	pair_look(0);
	fake_engine_cfg.connect_err = -FI_ECONNREFUSED;
	nodes_settle(pair_nodes, 2);
	for (unsigned at = 0; at < 2; at++) {
		cr_expect_eq(pair_peer_at(at)->state, CORE_PEER_DEAD);
		cr_expect_eq(node_poll(&pair_nodes[at], &e, &err), -FI_EAVAIL);
		cr_expect_eq(err.err, FI_ECONNREFUSED);
		cr_expect_eq(err.op_context, &in[at]);
	}
}

Test(core_failback, what_waits_ends_with_the_error_of_the_next_connection)
{
	fake_engine_cfg.no_delivery = true;
	pair_look(0);
	nodes_settle(pair_nodes, 2);
	cr_assert_eq(node_send(&pair_nodes[0], 1, out, 8, true, 1, 0, out), 0);
	fake_engine_cfg.no_delivery = false;
	fake_engine_cfg.connect_err = -FI_ETIMEDOUT;
	nodes_settle(pair_nodes, 2);
	cr_expect_eq(node_poll(&pair_nodes[0], &e, &err), -FI_EAVAIL);
	cr_expect_eq(err.err, FI_ETIMEDOUT);
	cr_expect_eq(err.op_context, out);
	cr_expect_eq(pair_nodes[0].ep.tx_open, 0);
}

/** Passes a FAILBACK of the peer to node 0. */
static enum core_rx_verdict take(uint32_t op, uint32_t kind, uint32_t paths, uint32_t len)
{
	uint8_t bytes[32] = { 0 };
	struct wire_failback failback = { .kind = kind, .paths = paths };
	uint32_t at = wire_ext_len(op);

	memcpy(bytes + at, &failback, sizeof(failback));
	return core_upcall_table.on_msg(pair_peer_at(0)->chan, op, bytes, at + len, 0);
}

Test(core_failback, what_the_state_does_not_permit_is_refused)
{
	cr_expect_eq(take(WIRE_OP_FAILBACK, WIRE_FAILBACK_YES, 0, 8), CORE_RX_BAD, "not asked");
	cr_expect_eq(take(WIRE_OP_FAILBACK, WIRE_FAILBACK_NO, 0, 8), CORE_RX_BAD);
	cr_expect_eq(take(WIRE_OP_FAILBACK, 0, 0, 8), CORE_RX_BAD);
	cr_expect_eq(take(WIRE_OP_FAILBACK | WIRE_F_TAG, WIRE_FAILBACK_ASK, 2, 8), CORE_RX_BAD);
	cr_expect_eq(take(WIRE_OP_FAILBACK | WIRE_F_DATA32, WIRE_FAILBACK_ASK, 2, 8), CORE_RX_BAD);
	cr_expect_eq(take(WIRE_OP_FAILBACK, WIRE_FAILBACK_ASK, 2, 7), CORE_RX_BAD);
	cr_expect_eq(take(WIRE_OP_FAILBACK, WIRE_FAILBACK_ASK, 2, 9), CORE_RX_BAD);
	fake_engine_cfg.no_delivery = true;
	pair_look(0);
	nodes_settle(pair_nodes, 2);
	cr_expect_eq(take(WIRE_OP_FAILBACK, 0, 0, 8), CORE_RX_BAD);
	cr_expect_eq(take(WIRE_OP_FAILBACK, 5, 0, 8), CORE_RX_BAD);
	cr_expect_eq(take(WIRE_OP_FAILBACK, WIRE_FAILBACK_YES, 2, 8), CORE_RX_BAD);
	cr_expect_eq(take(WIRE_OP_FAILBACK, WIRE_FAILBACK_ASK, PAIR_BETTER, 8), CORE_RX_DONE);
	cr_expect_eq(take(WIRE_OP_FAILBACK, WIRE_FAILBACK_ASK, PAIR_BETTER, 8), CORE_RX_BAD,
		     "twice");
	nodes_settle(pair_nodes, 2);
	cr_expect_eq(pair_peer_at(0)->failback.reply, CORE_FAILBACK_AGREED);
	cr_expect_eq(take(WIRE_OP_FAILBACK, WIRE_FAILBACK_ASK, PAIR_BETTER, 8), CORE_RX_BAD,
		     "agreed");
	cr_expect_eq(take(WIRE_OP_FAILBACK, WIRE_FAILBACK_YES, 0, 8), CORE_RX_DONE);
	cr_expect_eq(take(WIRE_OP_FAILBACK, WIRE_FAILBACK_NO, 0, 8), CORE_RX_BAD, "granted");
	fake_engine_cfg.no_delivery = false;
}

Test(core_failback, a_question_that_is_refused_gives_an_end_no_more_time)
{
	uint64_t until_ns;

	cr_assert_eq(node_send(&pair_nodes[0], 1, out, LEN, true, 1, 0, out), 0);
	nodes_settle(pair_nodes, 2);
	pair_look(0);
	until_ns = pair_peer_at(0)->failback.until_ns;
	fake_engine_cfg.better = PAIR_BETTER << 1;
	cr_expect_eq(take(WIRE_OP_FAILBACK, WIRE_FAILBACK_ASK, PAIR_BETTER, 8), CORE_RX_DONE);
	cr_expect_eq(pair_peer_at(0)->failback.until_ns, until_ns);
	cr_expect_eq(pair_peer_at(0)->failback.question, CORE_FAILBACK_DRAINS);
}

Test(core_failback, a_thread_may_sleep_while_a_refusal_waits_for_room)
{
	struct core_work *work = &pair_peer_at(0)->failback.work;

	fake_engine_cfg.no_delivery = true;
	fake_engine_cfg.room = 1;
	cr_assert_eq(node_send(&pair_nodes[0], 1, out, 8, true, 1, 0, out), 0);
	fake_engine_cfg.better = PAIR_BETTER << 1;
	cr_expect_eq(take(WIRE_OP_FAILBACK, WIRE_FAILBACK_ASK, PAIR_BETTER, 8), CORE_RX_DONE);
	core_dom_progress(&pair_nodes[0].dom);
	cr_assert_eq(pair_peer_at(0)->failback.reply, CORE_FAILBACK_NO);
	util_list_remove(&work->link);
	cr_expect_not(work->retry(work));
	cr_assert_eq(pair_peer_at(0)->failback.reply, CORE_FAILBACK_NO);
	fake_engine_cfg.room = 2; /* since the last progress */
	util_list_remove(&work->link);
	cr_expect(work->retry(work));
	cr_expect_eq(pair_peer_at(0)->failback.reply, CORE_FAILBACK_NONE);
	pair_peer_at(1)->failback.question = CORE_FAILBACK_ASKED;
	fake_engine_cfg.no_delivery = false;
	nodes_settle(pair_nodes, 2);
	cr_expect_eq(pair_peer_at(1)->failback.pause_ns, CORE_FAILBACK_PAUSE_MAX);
}

/* The work of the peer's operations may have been asked first. */
Test(core_failback, no_thread_sleeps_when_the_time_to_drain_ends)
{
	struct core_peer *peer = pair_peer_at(0);

	cr_assert_eq(node_send(&pair_nodes[0], 1, out, LEN, true, 1, 0, out), 0);
	nodes_settle(pair_nodes, 2);
	pair_look(0);
	cr_assert_eq(node_send(&pair_nodes[0], 1, out, 8, true, 2, 0, &out[1]), 0);
	cr_assert(peer->holds);
	util_list_remove(&peer->work.link);
	cr_expect_not(core_op_retry(&peer->work));
	pair_expire(0);
	util_list_remove(&peer->failback.work.link);
	cr_expect(core_failback_retry(&peer->failback.work));
	cr_expect_not(peer->holds);
	core_dom_progress(&pair_nodes[0].dom);
	pair_expect_end(0, &out[1]);
}

Test(core_failback, what_waits_for_the_next_connection_delays_the_end_of_an_address)
{
	fake_engine_cfg.no_delivery = true;
	pair_look(0);
	core_dom_progress(&pair_nodes[0].dom);
	cr_assert_eq(node_send(&pair_nodes[0], 1, out, 8, true, 1, 0, out), 0);
	cr_expect(core_ep_av_is_busy(&pair_nodes[0].ep, 1));
	fake_engine_cfg.no_delivery = false;
	fake_engine_cfg.lazy_up = 1000000;
	nodes_settle(pair_nodes, 2);
	cr_assert_eq(pair_peer_at(0)->state, CORE_PEER_CONNECTING);
	cr_expect(core_ep_av_is_busy(&pair_nodes[0].ep, 1));
	cr_expect_not(core_ep_av_is_busy(&pair_nodes[1].ep, 0), "nothing waits");
}

Test(core_failback, ends_that_ask_at_once_have_made_one_attempt)
{
	pair_peer_at(0)->failback.pause_ns = pair_peer_at(1)->failback.pause_ns = 0;
	pair_look(0);
	pair_look(1);
	nodes_settle(pair_nodes, 2);
	for (unsigned at = 0; at < 2; at++)
		cr_expect_eq(pair_peer_at(at)->failback.pause_ns, CORE_FAILBACK_PAUSE_NS);
}

Test(core_failback, a_peer_that_agrees_while_it_owes_a_response_has_failed)
{
	cr_assert_eq(node_send(&pair_nodes[0], 1, out, LEN, true, 1, 0, out), 0);
	nodes_settle(pair_nodes, 2);
	pair_peer_at(0)->failback.question = CORE_FAILBACK_ASKED;
	cr_expect_eq(take(WIRE_OP_FAILBACK, WIRE_FAILBACK_YES, 0, 8), CORE_RX_DONE);
	nodes_settle(pair_nodes, 2);
	cr_expect_eq(node_poll(&pair_nodes[0], &e, &err), -FI_EAVAIL);
	cr_expect_eq(err.err, FI_EIO);
}
