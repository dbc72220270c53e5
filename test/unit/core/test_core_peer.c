/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Peers that connect, shut down, die and return: each operation ends exactly once. */
#include <criterion/criterion.h>
#include <malloc.h>
#include <netinet/in.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "support/core_pair.h"
#include "support/pool_used.h"
#include "unit/core/no_memory.h"

static struct node nodes[3];
static struct core_cqe e;
static struct fi_cq_err_entry err;
static uint8_t out[20000], in[20000];

static void setup(void)
{
	nodes_open_plain(nodes, 3);
}

static void teardown(void)
{
	nodes_close(nodes, 3);
}

static void ends_with(struct node *n, void *context, int code)
{
	cr_assert_eq(node_poll(n, &e, &err), -FI_EAVAIL);
	cr_assert_eq(err.err, code, "error %d", err.err);
	cr_assert_eq(err.op_context, context);
}

Test(core_peer, a_failed_handshake_ends_queued_sends, .init = setup, .fini = teardown)
{
	fake_engine_cfg.connect_err = -FI_EHOSTUNREACH;
	cr_assert_eq(node_send(&nodes[0], 1, out, 8, true, 1, 0, &out[0]), 0);
	cr_assert_eq(node_send(&nodes[0], 1, out, 20000, true, 1, 0, &out[1]), 0);
	nodes_settle(nodes, 3);
	ends_with(&nodes[0], &out[0], FI_EHOSTUNREACH);
	ends_with(&nodes[0], &out[1], FI_EHOSTUNREACH);
	cr_assert_eq(node_poll(&nodes[0], &e, &err), 0);
	cr_assert_eq(nodes[0].tx_cntr.errors, 2);
	fake_engine_cfg.connect_err = 0;
	cr_assert_eq(node_send(&nodes[0], 1, out, 8, true, 1, 0, &out[0]), 0);
	nodes_settle(nodes, 3);
	cr_assert_eq(node_poll(&nodes[0], &e, &err), 1, "the next use tries again");
}

/* A caller that tries again has success once there is memory; an unknown address never has it. */
Test(core_peer, without_memory_for_a_peer_the_first_use_returns_eagain, .init = setup,
     .fini = teardown)
{
	struct no_memory *taken;
	ssize_t sent, received, unknown;

	if (!NO_MEMORY_WORKS)
		cr_skip_test("a sanitizer needs memory itself");
	taken = no_memory_begin();
	sent = node_send(&nodes[0], 1, out, 8, true, 1, 0, &out[0]);
	received = node_recv(&nodes[0], 1, in, 8, true, 1, 0, 0, &in[0]);
	unknown = node_send(&nodes[0], 99, out, 8, true, 1, 0, &out[0]);
	no_memory_end(taken);
	cr_expect_eq(sent, -FI_EAGAIN);
	cr_expect_eq(received, -FI_EAGAIN);
	cr_expect_eq(unknown, -FI_EINVAL);
	cr_assert_eq(node_send(&nodes[0], 1, out, 8, true, 1, 0, &out[0]), 0);
	nodes_settle(nodes, 3);
	cr_assert_eq(node_poll(&nodes[0], &e, &err), 1);
}

Test(core_peer, an_inject_before_the_connection_returns_eagain, .init = setup, .fini = teardown)
{
	cr_assert_eq(node_send(&nodes[0], 1, out, 8, true, 1, FI_INJECT, NULL), -FI_EAGAIN);
	nodes_settle(nodes, 3);
	cr_assert_eq(node_send(&nodes[0], 1, out, 8, true, 1, FI_INJECT, NULL), 0);
	cr_assert_eq(node_send(&nodes[0], 2, out, 0, true, 1, FI_INJECT, NULL), 0,
		     "an empty message can be queued");
}

Test(core_peer, an_inject_returns_the_error_of_the_failed_connect, .init = setup, .fini = teardown)
{
	fake_engine_cfg.connect_err = -FI_ECONNREFUSED;
	cr_assert_eq(node_send(&nodes[0], 1, out, 8, true, 1, FI_INJECT, NULL), -FI_EAGAIN);
	nodes_settle(nodes, 3);
	cr_assert_eq(node_send(&nodes[0], 1, out, 8, true, 1, FI_INJECT, NULL), -FI_ECONNREFUSED);
	fake_engine_cfg.connect_err = 0;
	cr_assert_eq(node_send(&nodes[0], 1, out, 8, true, 1, FI_INJECT, NULL), -FI_EAGAIN,
		     "the next use tries again");
	nodes_settle(nodes, 3);
	cr_assert_eq(node_send(&nodes[0], 1, out, 8, true, 1, FI_INJECT, NULL), 0);
}

Test(core_peer, the_engine_learns_whether_the_peer_was_up_before, .init = setup, .fini = teardown)
{
	fake_engine_cfg.connect_err = -FI_ECONNREFUSED;
	node_send(&nodes[0], 1, out, 8, true, 1, 0, &out);
	nodes_settle(nodes, 3);
	fake_engine_cfg.connect_err = 0;
	node_send(&nodes[0], 1, out, 8, true, 1, 0, NULL);
	nodes_settle(nodes, 3);
	cr_expect_eq(fake_engine_reconnects(), 0);
	fake_engine_kill(&nodes[0].ep, &nodes[1].ep, -FI_ECONNRESET);
	nodes_settle(nodes, 3);
	node_send(&nodes[0], 1, out, 8, true, 1, 0, NULL);
	cr_expect_eq(fake_engine_reconnects(), 1);
	node_send(&nodes[1], 2, out, 8, true, 1, 0, NULL);
	nodes_settle(nodes, 3);
	fake_engine_kill(&nodes[1].ep, &nodes[2].ep, -FI_ESHUTDOWN);
	nodes_settle(nodes, 3);
	node_send(&nodes[2], 1, out, 8, true, 1, 0, NULL);
	nodes_settle(nodes, 3);
	cr_expect_eq(fake_engine_reconnects(), 2, "the other end had connected");
}

Test(core_peer, an_old_connect_error_is_dropped_when_the_peer_connects, .init = setup,
     .fini = teardown)
{
	fake_engine_cfg.connect_err = -FI_ECONNREFUSED;
	cr_assert_eq(node_send(&nodes[0], 1, out, 8, true, 1, FI_INJECT, NULL), -FI_EAGAIN);
	nodes_settle(nodes, 3);
	fake_engine_cfg.connect_err = 0;
	node_send(&nodes[1], 0, out, 8, true, 1, 0, NULL);
	nodes_settle(nodes, 3);
	cr_expect_eq(node_send(&nodes[0], 1, out, 8, true, 1, FI_INJECT, NULL), 0);
	fake_engine_kill(&nodes[0].ep, &nodes[1].ep, -FI_ESHUTDOWN);
	nodes_settle(nodes, 3);
	cr_expect_eq(node_send(&nodes[0], 1, out, 8, true, 1, FI_INJECT, NULL), -FI_EAGAIN);
}

Test(core_peer, an_inject_returns_only_the_error_of_its_own_attempt_and_once, .init = setup,
     .fini = teardown)
{
	fake_engine_cfg.connect_err = -FI_ECONNREFUSED;
	node_send(&nodes[0], 1, out, 8, true, 1, FI_INJECT, NULL);
	nodes_settle(nodes, 3);
	cr_assert_eq(node_send(&nodes[0], 1, out, 8, true, 1, FI_INJECT, NULL), -FI_ECONNREFUSED);
	node_send(&nodes[0], 1, out, 8, true, 1, 0, &out);
	nodes_settle(nodes, 3);
	ends_with(&nodes[0], &out, FI_ECONNREFUSED);
	cr_assert_eq(node_send(&nodes[0], 1, out, 8, true, 1, FI_INJECT, NULL), -FI_EAGAIN,
		     "that attempt was made for a send");
}

Test(core_peer, a_death_ends_open_sends_and_directed_receives, .init = setup, .fini = teardown)
{
	node_send(&nodes[0], 1, out, 8, true, 1, 0, NULL);
	node_send(&nodes[0], 2, out, 8, true, 1, 0, NULL);
	nodes_settle(nodes, 3);
	while (node_poll(&nodes[0], &e, &err) == 1)
		;
	node_send(&nodes[0], 1, out, 20000, true, 2, 0, &out[0]); /* announced, not fetched */
	node_send(&nodes[0], 1, out, 8, true, 2, FI_DELIVERY_COMPLETE, &out[1]);
	node_send(&nodes[0], 1, out, 8, true, 2, FI_MATCH_COMPLETE, &out[3]);
	node_send(&nodes[0], 2, out, 20000, true, 2, 0, &out[2]); /* to another peer */
	node_recv(&nodes[0], 1, in, 8, true, 1, 0, 0, &in[0]);
	node_recv(&nodes[0], 2, in, 8, true, 1, 0, 0, &in[1]);
	node_recv(&nodes[0], FI_ADDR_UNSPEC, in, 8, true, 1, 0, 0, &in[2]);
	fake_engine_kill(&nodes[0].ep, &nodes[1].ep, -FI_ECONNRESET);
	nodes_settle(nodes, 3);
	ends_with(&nodes[0], &in[0], FI_ECONNRESET);
	ends_with(&nodes[0], &out[0], FI_ECONNRESET);
	ends_with(&nodes[0], &out[1], FI_ECONNRESET);
	ends_with(&nodes[0], &out[3], FI_ECONNRESET);
	cr_assert_eq(node_poll(&nodes[0], &e, &err), 0, "the others go on");
	cr_assert_eq(nodes[0].ep.tx_open, 1);
	node_send(&nodes[2], 0, out, 8, true, 1, 0, NULL);
	nodes_settle(nodes, 3);
	cr_assert_eq(node_poll(&nodes[0], &e, &err), 1);
	cr_assert_eq(e.e.op_context, &in[1]);
}

Test(core_peer, a_broken_connection_ends_one_receive_from_any_source, .init = setup,
     .fini = teardown)
{
	node_send(&nodes[0], 1, out, 8, true, 1, 0, NULL);
	nodes_settle(nodes, 3);
	while (node_poll(&nodes[0], &e, &err) == 1)
		;
	node_recv(&nodes[0], 2, in, 8, true, 1, 0, 0, &in[0]);
	node_recv(&nodes[0], FI_ADDR_UNSPEC, in, 8, true, 1, 0, 0, &in[1]);
	node_recv(&nodes[0], FI_ADDR_UNSPEC, in, 8, true, 2, 0, 0, &in[2]);
	node_recv(&nodes[0], FI_ADDR_UNSPEC, in, 8, false, 0, 0, 0, &in[3]);
	fake_engine_kill(&nodes[0].ep, &nodes[1].ep, -FI_EIO);
	nodes_settle(nodes, 3);
	ends_with(&nodes[0], &in[1], FI_EIO);
	cr_assert_eq(node_poll(&nodes[0], &e, &err), -FI_EAVAIL, "of each kind");
	cr_expect_eq(err.op_context, &in[3]);
	cr_assert_eq(node_poll(&nodes[0], &e, &err), 0, "the others stay");
}

Test(core_peer, a_peer_that_is_gone_ends_no_receive_from_any_source, .init = setup,
     .fini = teardown)
{
	static const int gone[] = { -FI_ESHUTDOWN, -FI_ECONNRESET, -FI_ECONNABORTED,
				    -FI_ETIMEDOUT };

	node_recv(&nodes[0], FI_ADDR_UNSPEC, in, 8, true, 7, 0, 0, &in);
	for (size_t i = 0; i < sizeof(gone) / sizeof(gone[0]); i++) {
		node_send(&nodes[1], 0, out, 8, true, 1, 0, NULL);
		nodes_settle(nodes, 3);
		fake_engine_kill(&nodes[0].ep, &nodes[1].ep, gone[i]);
		nodes_settle(nodes, 3);
		cr_expect_eq(node_poll(&nodes[0], &e, &err), 0, "%s", fi_strerror(-gone[i]));
	}
}

Test(core_peer, messages_that_arrived_before_a_death_are_delivered_after_it, .init = setup,
     .fini = teardown)
{
	size_t used;
	unsigned i;

	nodes[0].dom.limits.unexpected_mem = 1500; /* some of it stays in the ring */
	for (i = 0; i < 5; i++) {
		node_fill(out, 700, i);
		node_send(&nodes[1], 0, out, 700, true, i, 0, NULL);
		nodes_settle(nodes, 3);
	}
	fake_engine_kill(&nodes[0].ep, &nodes[1].ep, -FI_ECONNRESET);
	nodes_settle(nodes, 3);
	cr_assert_eq(fake_engine_retained(), 0);
	used = nodes[0].dom.unexpected_used;
	cr_expect_gt(used, 1500, "a death may exceed the limit");
	node_send(&nodes[2], 0, out, 700, true, 9, 0, NULL);
	nodes_settle(nodes, 3);
	cr_expect_eq(nodes[0].dom.unexpected_used, used, "others may not");
	cr_expect_gt(fake_engine_retained(), 0);
	for (i = 0; i < 5; i++) {
		node_recv(&nodes[0], FI_ADDR_UNSPEC, in, 700, true, i, 0, 0, &in);
		cr_assert_eq(node_poll(&nodes[0], &e, &err), 1);
		cr_assert(node_check(in, 700, i));
	}
}

Test(core_peer, a_half_received_message_ends_with_its_sender, .init = setup, .fini = teardown)
{
	fake_engine_cfg.room = 3;
	node_recv(&nodes[0], FI_ADDR_UNSPEC, in, sizeof(in), true, 1, 0, 0, &in);
	node_send(&nodes[1], 0, out, 9999, true, 1, 0, NULL);
	core_dom_progress(&nodes[1].dom); /* connected */
	core_dom_progress(&nodes[1].dom); /* three frames of four */
	core_dom_progress(&nodes[0].dom);
	cr_assert_eq(pool_used(&nodes[0].ep.rx_reqs), 0, "it has begun");
	fake_engine_kill(&nodes[0].ep, &nodes[1].ep, -FI_ECONNRESET);
	nodes_settle(nodes, 3);
	cr_assert_eq(node_poll(&nodes[0], &e, &err), -FI_EAVAIL);
	cr_assert_eq(err.op_context, &in);
}

Test(core_peer, receives_stay_posted_after_an_orderly_shutdown, .init = setup, .fini = teardown)
{
	node_send(&nodes[1], 0, out, 8, true, 1, 0, NULL);
	nodes_settle(nodes, 3);
	node_recv(&nodes[0], 1, in, 8, true, 2, 0, 0, &in);
	fake_engine_kill(&nodes[0].ep, &nodes[1].ep, -FI_ESHUTDOWN);
	nodes_settle(nodes, 3);
	cr_assert_eq(node_poll(&nodes[0], &e, &err), 0);
	node_send(&nodes[1], 0, out, 8, true, 2, 0, NULL);
	nodes_settle(nodes, 3);
	cr_assert_eq(node_poll(&nodes[0], &e, &err), 1);
	cr_assert_eq(e.e.op_context, &in);
}

Test(core_peer, a_directed_receive_does_not_reconnect_after_an_orderly_shutdown, .init = setup,
     .fini = teardown)
{
	node_send(&nodes[1], 0, out, 8, true, 1, 0, NULL);
	nodes_settle(nodes, 3);
	fake_engine_kill(&nodes[0].ep, &nodes[1].ep, -FI_ESHUTDOWN);
	nodes_settle(nodes, 3);
	node_recv(&nodes[0], 1, in, 8, true, 2, 0, 0, &in);
	nodes_settle(nodes, 3);
	cr_expect_eq(nodes[0].ep.peers[1]->state, CORE_PEER_IDLE);
}

Test(core_peer, a_failed_connect_does_not_affect_a_connected_peer, .init = setup, .fini = teardown)
{
	struct sockaddr_storage addr;

	node_send(&nodes[0], 1, out, 8, true, 1, 0, NULL);
	nodes_settle(nodes, 3);
	core_ep_addr(&nodes[1].ep, &addr);
	core_peer_on_connect_failed(&nodes[0].ep, (struct sockaddr *)&addr, -FI_ETIMEDOUT);
	cr_expect_eq(nodes[0].ep.peers[1]->state, CORE_PEER_UP);
}

Test(core_peer, a_receive_directed_at_a_dead_peer_ends_if_the_reconnect_fails, .init = setup,
     .fini = teardown)
{
	node_send(&nodes[1], 0, out, 8, true, 1, 0, NULL);
	nodes_settle(nodes, 3);
	fake_engine_kill(&nodes[0].ep, &nodes[1].ep, -FI_ECONNRESET);
	nodes_settle(nodes, 3);
	fake_engine_cfg.connect_err = -FI_ECONNREFUSED;
	node_recv(&nodes[0], 1, in, 8, true, 2, 0, 0, &in);
	nodes_settle(nodes, 3);
	ends_with(&nodes[0], &in, FI_ECONNREFUSED);
}

/* A process is watched from the first connection on. */
Test(core_peer, a_receive_directed_at_an_idle_peer_stays_until_that_peer_fails, .init = setup,
     .fini = teardown)
{
	node_recv(&nodes[0], 1, in, 8, true, 1, 0, 0, &in);
	nodes_settle(nodes, 3);
	cr_expect_eq(nodes[0].ep.peers[1]->state, CORE_PEER_IDLE, "a receive does not connect");
	cr_expect_eq(node_poll(&nodes[0], &e, &err), 0);
	node_send(&nodes[1], 0, out, 8, true, 2, 0, NULL);
	nodes_settle(nodes, 3);
	cr_expect_eq(node_poll(&nodes[0], &e, &err), 0, "another tag");
	fake_engine_kill(&nodes[0].ep, &nodes[1].ep, -FI_ECONNRESET);
	nodes_settle(nodes, 3);
	ends_with(&nodes[0], &in, FI_ECONNRESET);
}

Test(core_peer, an_unnamed_peer_is_named_when_its_address_is_inserted, .init = setup,
     .fini = teardown)
{
	struct sockaddr_storage addr;
	uint64_t idx;
	bool gone;

	core_av_remove(nodes[0].ep.av, 1, &gone);
	cr_assert(gone);
	core_ep_av_removed(&nodes[0].ep, 1);
	node_send(&nodes[1], 0, out, 8, true, 1, 0, NULL);
	nodes_settle(nodes, 3);
	node_recv(&nodes[0], FI_ADDR_UNSPEC, in, 8, true, 1, 0, 0, &in);
	cr_assert_eq(node_poll(&nodes[0], &e, &err), 1);
	cr_assert_eq(e.src, FI_ADDR_NOTAVAIL);
	core_ep_addr(&nodes[1].ep, &addr);
	core_av_insert(nodes[0].ep.av, (struct sockaddr *)&addr, &idx);
	core_ep_av_inserted(&nodes[0].ep, idx);
	node_send(&nodes[1], 0, out, 8, true, 1, 0, NULL);
	nodes_settle(nodes, 3);
	node_recv(&nodes[0], idx, in, 8, true, 1, 0, 0, &in);
	cr_assert_eq(node_poll(&nodes[0], &e, &err), 1);
	cr_assert_eq(e.src, idx);
}

Test(core_peer, removing_an_address_ends_open_operations_to_it, .init = setup, .fini = teardown)
{
	bool gone;

	node_send(&nodes[0], 1, out, 20000, true, 1, 0, &out);
	nodes_settle(nodes, 3);
	core_av_remove(nodes[0].ep.av, 1, &gone);
	core_ep_av_removed(&nodes[0].ep, 1);
	ends_with(&nodes[0], &out, FI_ESHUTDOWN);
	cr_assert_eq(nodes[0].ep.tx_open, 0);
	cr_assert_eq(node_send(&nodes[0], 1, out, 8, true, 1, 0, NULL), -FI_EINVAL);
}

Test(core_peer, a_channel_stops_before_operations_end, .init = setup, .fini = teardown)
{
	bool gone;

	node_send(&nodes[0], 1, out, 20000, true, 1, 0, &out);
	nodes_settle(nodes, 3);
	cr_assert_eq(fake_engine_exposed(), 1);
	core_av_remove(nodes[0].ep.av, 1, &gone);
	core_ep_av_removed(&nodes[0].ep, 1);
	ends_with(&nodes[0], &out, FI_ESHUTDOWN);
	cr_expect_eq(fake_engine_exposed(), 0);
	cr_expect_eq(fake_engine_exposed_at_stop(), 1);
}

Test(core_peer, removing_an_address_gives_up_its_handshake, .init = setup, .fini = teardown)
{
	bool gone;

	fake_engine_cfg.lazy_up = 3;
	node_send(&nodes[0], 1, out, 8, true, 1, 0, &out);
	core_av_remove(nodes[0].ep.av, 1, &gone);
	core_ep_av_removed(&nodes[0].ep, 1);
	ends_with(&nodes[0], &out, FI_ESHUTDOWN);
	nodes_settle(nodes, 3);
	cr_expect(util_list_is_empty(&nodes[0].ep.unnamed));
	cr_expect(util_list_is_empty(&nodes[1].ep.known), "not connected");
}

Test(core_peer, an_address_is_busy_while_sends_wait_for_room, .init = setup, .fini = teardown)
{
	cr_expect_not(core_ep_av_is_busy(&nodes[0].ep, 1));
	node_send(&nodes[0], 1, out, 8, true, 1, 0, NULL);
	nodes_settle(nodes, 3);
	cr_expect_not(core_ep_av_is_busy(&nodes[0].ep, 1));
	fake_engine_cfg.room = 0;
	node_send(&nodes[0], 1, out, 8, true, 1, 0, NULL);
	cr_expect(core_ep_av_is_busy(&nodes[0].ep, 1));
	fake_engine_cfg.room = 100;
	nodes_settle(nodes, 3);
	cr_expect_not(core_ep_av_is_busy(&nodes[0].ep, 1));
}

Test(core_peer, messages_of_a_removed_peer_are_received, .init = setup, .fini = teardown)
{
	bool gone;

	node_send(&nodes[1], 0, out, 8, true, 1, 0, NULL);
	nodes_settle(nodes, 3);
	node_recv(&nodes[0], 1, in, 8, true, 1, 0, 0, &in[0]);
	cr_assert_eq(node_poll(&nodes[0], &e, &err), 1);
	fake_engine_cfg.no_delivery = true;
	node_recv(&nodes[0], FI_ADDR_UNSPEC, in, 8, true, 2, 0, 0, &in[2]);
	for (uint64_t tag = 2; tag < 5; tag++)
		node_send(&nodes[1], 0, out + tag, 8, true, tag, 0, NULL);
	nodes_settle(nodes, 3);
	cr_assert_eq(node_poll(&nodes[0], &e, &err), 0, "unread");
	core_av_remove(nodes[0].ep.av, 1, &gone);
	core_ep_av_removed(&nodes[0].ep, 1);
	cr_assert_eq(node_poll(&nodes[0], &e, &err), 1);
	cr_expect_eq(e.e.op_context, &in[2], "a receive that waited has it");
	for (uint64_t tag = 3; tag < 5; tag++) {
		node_recv(&nodes[0], FI_ADDR_UNSPEC, in, 8, true, tag, 0, 0, &in[tag]);
		cr_assert_eq(node_poll(&nodes[0], &e, &err), 1);
		cr_expect_eq(e.e.op_context, &in[tag], "and one that comes later");
		cr_expect_eq(e.src, FI_ADDR_NOTAVAIL);
	}
}

Test(core_peer, an_address_without_use_has_no_peer, .init = setup, .fini = teardown)
{
	cr_assert_eq(nodes[0].ep.peer_cnt, 0);
	cr_assert(util_list_is_empty(&nodes[0].ep.known));
}

/* The table doubles: its peers are still found, and the new half is empty. */
Test(core_peer, the_table_of_peers_grows_empty, .init = setup, .fini = teardown)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct core_ep *ep = &nodes[0].ep;
	uint64_t idx = 0, i, named = 0;

	mallopt(M_PERTURB, 0x55);
	for (uint16_t port = 20000; idx < 64; port++) {
		addr.sin_port = htons(port);
		cr_assert_eq(core_av_insert(ep->av, (struct sockaddr *)&addr, &idx), 0);
		if (idx != 16 && idx != 64)
			continue;
		cr_assert(core_peer_get(ep, idx));
		cr_assert(ep->peer_cnt > idx);
	}
	for (i = 0; i < ep->peer_cnt; i++)
		named += ep->peers[i] != NULL;
	cr_expect_eq(named, 2);
	mallopt(M_PERTURB, 0);
}
