/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A peer that is in the AV under two of its addresses: core/core_peer_name.c. */
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "core/core_peer_name.h"
#include "support/core_pair.h"

#define FIRST 1u /* of node 1, in the AV of node 0 */

static struct node nodes[2];
static struct sockaddr_in second_addr;
static unsigned second; /* index of a further address of it */
static struct core_cqe e;
static struct fi_cq_err_entry err;
static uint8_t out[2000], in[40][64];

/** Connects node 0 to node 1, and inserts the further address. */
static void setup(void)
{
	uint64_t idx;

	nodes_open_plain(nodes, 2);
	cr_assert_eq(node_send(&nodes[0], FIRST, out, 0, true, 99, 0, NULL), 0);
	nodes_settle(nodes, 2);
	cr_assert_eq(node_poll(&nodes[0], &e, &err), 1);
	cr_assert_eq(node_recv(&nodes[1], FI_ADDR_UNSPEC, NULL, 0, true, 99, 0, 0, NULL), 0);
	cr_assert_eq(node_poll(&nodes[1], &e, &err), 1);
	second_addr = (struct sockaddr_in){ .sin_family = AF_INET,
					    .sin_port = htons(4711),
					    .sin_addr.s_addr = htonl(0x0A000001) };
	cr_assert_eq(core_av_insert(nodes[0].ep.av, (struct sockaddr *)&second_addr, &idx), 0);
	cr_assert_eq(core_ep_av_inserted(&nodes[0].ep, idx), 0);
	second = (unsigned)idx;
}

static void teardown(void)
{
	nodes_close(nodes, 2);
}

TestSuite(core_peer_alias, .init = setup, .fini = teardown);

static struct core_peer *peer_at(unsigned idx)
{
	return core_peer_lookup(&nodes[0].ep, idx);
}

/** Sends to the further address, and leaves the handshake unfinished. */
static void send_to_second(uint64_t tag, void *context)
{
	fake_engine_cfg.lazy_up = UINT32_MAX;
	cr_assert_eq(node_send(&nodes[0], second, out, 8, true, tag, 0, context), 0);
	cr_assert_eq(peer_at(second)->state, CORE_PEER_CONNECTING);
}

/** Lets the handshake find that the address is one of the connected node. */
static void find(void)
{
	core_peer_on_alias(&nodes[0].ep, (struct sockaddr *)&second_addr,
			   peer_at(FIRST)->incarnation);
}

static void expect_completion(struct node *n, void *context)
{
	cr_assert_eq(node_poll(n, &e, &err), 1, "no completion");
	cr_expect_eq(e.e.op_context, context);
}

static void expect_error(struct node *n, void *context, int code)
{
	cr_assert_eq(node_poll(n, &e, &err), -FI_EAVAIL);
	cr_expect_eq(err.err, code, "%d", err.err);
	cr_expect_eq(err.op_context, context);
}

static void remove_address(unsigned idx)
{
	bool gone;

	core_ep_av_removed(&nodes[0].ep, idx);
	cr_assert_eq(core_av_remove(nodes[0].ep.av, idx, &gone), 0);
}

Test(core_peer_alias, messages_to_both_addresses_use_one_connection_in_order)
{
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(node_recv(&nodes[1], 0, in[i], 64, true, i, 0, 0, in[i]), 0);
	send_to_second(0, &out[0]);
	send_to_second(1, &out[1]);
	find();
	cr_assert_eq(node_send(&nodes[0], second, out, 8, true, 2, 0, &out[2]), 0);
	cr_expect_eq(peer_at(second), peer_at(FIRST));
	nodes_settle(nodes, 2);
	for (unsigned i = 0; i < 3; i++) {
		expect_completion(&nodes[0], &out[i]);
		expect_completion(&nodes[1], in[i]);
	}
}

Test(core_peer_alias, its_messages_come_from_the_first_address)
{
	cr_assert_eq(node_recv(&nodes[0], FI_ADDR_UNSPEC, in[0], 64, true, 5, 0, 0, in[0]), 0);
	send_to_second(1, &out[0]);
	find();
	cr_assert_eq(node_send(&nodes[1], 0, out, 8, true, 5, 0, NULL), 0);
	nodes_settle(nodes, 2);
	expect_completion(&nodes[0], &out[0]);
	expect_completion(&nodes[0], in[0]);
	cr_expect_eq(e.src, FIRST);
}

Test(core_peer_alias, receives_directed_at_the_second_address_find_its_messages)
{
	/* One message comes before the addresses are known to be one, and one afterwards. */
	cr_assert_eq(node_recv(&nodes[0], second, in[0], 64, true, 5, 0, 0, in[0]), 0);
	cr_assert_eq(node_recv(&nodes[0], second, in[1], 64, true, 5, 0, 0, in[1]), 0);
	cr_assert_eq(node_send(&nodes[1], 0, out, 8, true, 5, 0, NULL), 0);
	nodes_settle(nodes, 2);
	cr_assert_eq(node_poll(&nodes[0], &e, &err), 0, "they may be different processes");
	send_to_second(1, &out[0]);
	find();
	expect_completion(&nodes[0], in[0]);
	cr_assert_eq(node_send(&nodes[1], 0, out, 8, true, 5, 0, NULL), 0);
	cr_assert_eq(node_send(&nodes[1], 0, out, 8, true, 5, 0, NULL), 0);
	nodes_settle(nodes, 2);
	expect_completion(&nodes[0], &out[0]);
	expect_completion(&nodes[0], in[1]);
	cr_assert_eq(node_recv(&nodes[0], second, in[2], 64, true, 5, 0, 0, in[2]), 0);
	expect_completion(&nodes[0], in[2]);
}

Test(core_peer_alias, a_directed_multi_receive_takes_what_has_come)
{
	cr_assert_eq(node_recv(&nodes[0], second, out, 2000, false, 0, 0, FI_MULTI_RECV, out), 0);
	cr_assert_eq(node_send(&nodes[1], 0, in[0], 8, false, 0, 0, NULL), 0);
	cr_assert_eq(node_send(&nodes[1], 0, in[0], 8, false, 0, 0, NULL), 0);
	nodes_settle(nodes, 2);
	send_to_second(1, in[0]);
	find();
	expect_completion(&nodes[0], out);
	expect_completion(&nodes[0], out);
	cr_expect_eq(e.e.len, 8);
}

Test(core_peer_alias, receives_keep_their_order)
{
	/* More than are searched in order: a message hashes them. */
	for (unsigned i = 0; i < 40; i++)
		cr_assert_eq(node_recv(&nodes[0], i % 2 ? second : FIRST, in[i], 64, true, 5, 0, 0,
				       in[i]),
			     0);
	cr_assert_eq(node_send(&nodes[1], 0, out, 8, true, 6, 0, NULL), 0);
	nodes_settle(nodes, 2);
	send_to_second(1, &out[0]);
	find();
	for (unsigned i = 0; i < 40; i++)
		cr_assert_eq(node_send(&nodes[1], 0, out, 8, true, 5, 0, NULL), 0);
	nodes_settle(nodes, 2);
	expect_completion(&nodes[0], &out[0]);
	for (unsigned i = 0; i < 40; i++)
		expect_completion(&nodes[0], in[i]);
}

Test(core_peer_alias, the_addresses_may_be_of_two_processes_after_a_failure)
{
	send_to_second(1, &out[0]);
	find();
	nodes_settle(nodes, 2);
	expect_completion(&nodes[0], &out[0]);
	cr_assert_eq(node_recv(&nodes[0], second, in[0], 64, true, 5, 0, 0, in[0]), 0);
	fake_engine_kill(&nodes[0].ep, &nodes[1].ep, -FI_ECONNRESET);
	nodes_settle(nodes, 2);
	expect_error(&nodes[0], in[0], FI_ECONNRESET);
	cr_expect_null(peer_at(second));
	cr_expect_eq(peer_at(FIRST)->alias_cnt, 0);
	fake_engine_cfg.lazy_up = 0;
	cr_assert_eq(node_send(&nodes[0], second, out, 8, true, 2, 0, &out[1]), 0);
	nodes_settle(nodes, 2);
	expect_error(&nodes[0], &out[1], FI_ECONNREFUSED);
}

Test(core_peer_alias, either_address_may_leave_the_av)
{
	send_to_second(1, &out[0]);
	find();
	nodes_settle(nodes, 2);
	expect_completion(&nodes[0], &out[0]);
	cr_expect_not(core_ep_av_is_busy(&nodes[0].ep, second));
	remove_address(FIRST);
	cr_expect_null(peer_at(FIRST));
	cr_assert_eq(node_recv(&nodes[0], second, in[0], 64, true, 5, 0, 0, in[0]), 0);
	cr_assert_eq(node_send(&nodes[1], 0, out, 8, true, 5, 0, NULL), 0);
	cr_assert_eq(node_send(&nodes[0], second, out, 8, true, 2, 0, &out[1]), 0);
	nodes_settle(nodes, 2);
	expect_completion(&nodes[0], &out[1]);
	expect_completion(&nodes[0], in[0]);
	cr_expect_eq(e.src, second);
	cr_assert_eq(node_recv(&nodes[0], second, in[1], 64, true, 5, 0, 0, in[1]), 0);
	remove_address(second);
	cr_expect_null(peer_at(second), "the last one ends the connection");
}

Test(core_peer_alias, the_second_address_leaves_the_av_without_an_end)
{
	send_to_second(1, &out[0]);
	find();
	remove_address(second);
	cr_expect_null(peer_at(second));
	cr_assert_eq(node_send(&nodes[0], FIRST, out, 8, true, 2, 0, &out[1]), 0);
	nodes_settle(nodes, 2);
	expect_completion(&nodes[0], &out[0]);
	expect_completion(&nodes[0], &out[1]);
}

Test(core_peer_alias, a_peer_in_no_av_gets_the_address)
{
	struct core_peer *peer;

	remove_address(FIRST);
	nodes_settle(nodes, 2);
	fake_engine_cfg.lazy_up = 0;
	cr_assert_eq(node_send(&nodes[1], 0, out, 8, true, 5, 0, NULL), 0);
	nodes_settle(nodes, 2);
	cr_assert_not(util_list_is_empty(&nodes[0].ep.unnamed));
	peer = UTIL_CONTAINER_OF(nodes[0].ep.unnamed.next, struct core_peer, ep_link);
	send_to_second(1, &out[0]);
	core_peer_on_alias(&nodes[0].ep, (struct sockaddr *)&second_addr, peer->incarnation);
	cr_expect_eq(peer_at(second), peer);
	cr_expect_eq(peer->fi_addr, second);
	nodes_settle(nodes, 2);
	expect_completion(&nodes[0], &out[0]);
}

Test(core_peer_alias, a_connection_that_has_ended_meanwhile_is_not_used)
{
	uint64_t incarnation = peer_at(FIRST)->incarnation;

	send_to_second(1, &out[0]);
	fake_engine_kill(&nodes[0].ep, &nodes[1].ep, -FI_ESHUTDOWN);
	nodes_settle(nodes, 2);
	fake_engine_cfg.lazy_up = 0;
	core_peer_on_alias(&nodes[0].ep, (struct sockaddr *)&second_addr, incarnation);
	cr_expect_neq(peer_at(second), peer_at(FIRST));
	nodes_settle(nodes, 2);
	expect_error(&nodes[0], &out[0], FI_ECONNREFUSED);
}
