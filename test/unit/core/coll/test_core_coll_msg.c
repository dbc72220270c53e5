/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Messages of collective operations from a hostile or confused member. */
#include "core/coll/core_coll_msg.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "support/core_pair.h"
#include "unit/core/must.h"

static struct node nodes[2];
static struct core_coll_group group;
static struct core_chan chan;
static struct core_chan_ops ops;
static struct wire_coll_reply reply;
static size_t reply_len;
static unsigned replies;

static void on_joined(struct core_coll_group *g, int err)
{
	cr_assert_eq(err, 0);
}

static int take_reply(struct core_chan *c, struct core_call_ref ref, const struct iovec *iov,
		      size_t iov_cnt, size_t len, unsigned flags)
{
	cr_assert_leq(len, ref.resp_max);
	cr_assert_eq(iov_cnt, len > sizeof(reply) ? 2 : 1);
	memcpy(&reply, iov[0].iov_base, sizeof(reply));
	reply_len = len;
	replies++;
	return 0;
}

/* Puts node 0 in a group with node 1; the tests make up its messages. */
static void setup(void)
{
	fi_addr_t members[] = { 0, 1 };

	fake_engine_reset();
	node_limits = (struct core_limits){ .eager_max = 1024,
					    .single_copy_min = SIZE_MAX,
					    .unexpected_mem = 4096 };
	nodes_open(nodes, 2);
	cr_assert_eq(core_coll_init(&nodes[0].ep), 0);
	memset(&group, 0, sizeof(group));
	group.joined = on_joined;
	cr_assert_eq(core_coll_join(&nodes[0].ep, &group, members, 2, 0, true), 0);
	ops.reply = take_reply;
	chan.ops = &ops;
	chan.peer = core_peer_get(&nodes[0].ep, 1);
	replies = 0;
}

static void teardown(void)
{
	if (group.members)
		core_coll_leave(&group);
	nodes_close(nodes, 2);
	cr_expect_eq(nodes[0].dom.unexpected_used, 0);
}

TestSuite(core_coll_msg, .init = setup, .fini = teardown, .timeout = 100);

/* Delivers the header with `len` bytes behind it. */
static enum core_rx_verdict arrive_with(const struct wire_coll *coll, size_t len)
{
	uint8_t body[sizeof(*coll) + 4096] = { 0 };
	struct core_call_ref ref = { .resp_max = sizeof(reply) + 100 };
	struct core_head head = { .op = WIRE_OP_COLL, .body = body };

	memcpy(body, coll, sizeof(*coll));
	memset(body + sizeof(*coll), 0x5A, len);
	head.body_len = (uint32_t)(sizeof(*coll) + len);
	return core_coll_on_call(&chan, ref, &head, 0);
}

static struct wire_coll put(uint64_t len)
{
	return (struct wire_coll){
		.group = group.id, .from = 1, .len = len, .what = WIRE_COLL_PUT
	};
}

Test(core_coll_msg, illegal_messages_break_the_connection)
{
	static const struct wire_coll wrong[] = {
		{ .what = 0 },
		{ .what = 4 },
		{ .what = WIRE_COLL_PUT, .off = 1 },
		{ .what = WIRE_COLL_PUT, .status = 1 },
		{ .what = WIRE_COLL_PUT, .len = UINT64_MAX },
		{ .what = WIRE_COLL_ABORT },
		{ .what = WIRE_COLL_ABORT, .status = UINT32_MAX },
		{ .what = WIRE_COLL_ABORT, .status = 1, .len = 1 },
		{ .what = WIRE_COLL_READ, .len = 101 },
		{ .what = WIRE_COLL_READ, .status = 1 },
	};
	struct core_call_ref ref = { .resp_max = 100 };
	struct core_head tiny = { .op = WIRE_OP_COLL, .body_len = sizeof(struct wire_coll) - 1 };
	struct wire_coll coll = put(8);

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		cr_expect_eq(arrive_with(&wrong[i], 0), CORE_RX_BAD, "%zu", i);
	cr_expect_eq(core_coll_on_call(&chan, ref, &tiny, 0), CORE_RX_BAD);
	cr_expect_eq(arrive_with(&coll, 7), CORE_RX_BAD, "neither all bytes nor none");
	cr_expect_eq(replies, 0);
}

Test(core_coll_msg, a_member_cannot_send_for_another)
{
	struct wire_coll coll = put(0);

	coll.from = 0;
	cr_expect_eq(arrive_with(&coll, 0), CORE_RX_BAD);
	coll.from = 2;
	cr_expect_eq(arrive_with(&coll, 0), CORE_RX_BAD);
}

Test(core_coll_msg, unexpected_messages_are_kept_within_the_limit)
{
	struct wire_coll coll = put(1000);

	for (unsigned i = 0; i < 100; i++) {
		coll.seq = i;
		coll.group = i % 2 ? group.id : 12345;
		cr_assert_eq(arrive_with(&coll, 1000), CORE_RX_DONE);
		cr_assert_leq(nodes[0].dom.unexpected_used, 4096);
	}
	cr_expect_eq(replies, 100);
	cr_expect_eq(reply.status, FI_ENOMEM);
}

Test(core_coll_msg, bytes_that_were_not_announced_cannot_be_read)
{
	struct wire_coll coll = { .group = group.id, .from = 1, .len = 50, .what = WIRE_COLL_READ };

	cr_expect_eq(arrive_with(&coll, 0), CORE_RX_DONE);
	cr_expect_eq(reply.status, FI_ECANCELED);
	cr_expect_eq(reply_len, sizeof(reply));
}

Test(core_coll_msg, no_bytes_beyond_the_message_can_be_read)
{
	static uint8_t bytes[5000];
	struct core_coll_args args = {
		.call = { .coll = FI_BROADCAST, .buf = bytes, .len = sizeof(bytes) }, .size = 1
	};
	struct wire_coll coll = { .group = group.id, .from = 1, .len = 50, .what = WIRE_COLL_READ };

	fake_engine_cfg.no_delivery = true;
	cr_assert_eq(core_coll_post(&group, &args), 0);
	nodes_settle(nodes, 2);
	cr_expect_eq(arrive_with(&coll, 0), CORE_RX_DONE);
	cr_expect_eq(reply.status, 0);
	cr_expect_eq(reply_len, sizeof(reply) + 50);
	coll.off = sizeof(bytes) - 49;
	cr_expect_eq(arrive_with(&coll, 0), CORE_RX_BAD);
	coll.off = UINT64_MAX;
	cr_expect_eq(arrive_with(&coll, 0), CORE_RX_BAD);
	coll.off = 0;
	coll.len = 0;
	cr_expect_eq(arrive_with(&coll, 0), CORE_RX_BAD);
	coll.len = 100;
	for (unsigned i = 0; i < (sizeof(bytes) - 50) / 100; i++)
		cr_expect_eq(arrive_with(&coll, 0), CORE_RX_DONE);
	cr_expect_eq(arrive_with(&coll, 0), CORE_RX_BAD, "all bytes were read");
}

Test(core_coll_msg, an_abort_before_the_join_aborts_the_group)
{
	fi_addr_t members[] = { 0, 1 };
	struct core_coll_args args = { .call = { .coll = FI_BARRIER } };
	struct core_coll_group theirs = { .joined = on_joined };
	struct wire_coll coll = { .from = 1, .what = WIRE_COLL_ABORT, .status = FI_ECONNRESET };

	/* Node 1 joins first, to obtain the id. */
	cr_assert_eq(core_coll_init(&nodes[1].ep), 0);
	cr_assert_eq(core_coll_join(&nodes[1].ep, &theirs, members, 2, 77, true), 0);
	coll.group = theirs.id;
	core_coll_leave(&theirs);
	cr_expect_eq(arrive_with(&coll, 0), CORE_RX_DONE);
	core_coll_leave(&group);
	memset(&group, 0, sizeof(group));
	group.joined = on_joined;
	cr_assert_eq(core_coll_join(&nodes[0].ep, &group, members, 2, 77, true), 0);
	cr_expect_eq(group.id, coll.group);
	cr_expect_eq(core_coll_post(&group, &args), -FI_ECONNRESET);
	cr_expect_eq(arrive_with(&coll, 0), CORE_RX_DONE, "second abort");
}

/** Delivers an early PUT with its bytes, and the announcement of another one. */
static void arrive_early(void)
{
	struct wire_coll coll = put(1000);

	cr_assert_eq(arrive_with(&coll, 1000), CORE_RX_DONE);
	coll.seq = 1;
	cr_assert_eq(arrive_with(&coll, 0), CORE_RX_DONE);
	cr_assert_gt(nodes[0].dom.unexpected_used, 1000);
}

Test(core_coll_msg, leaving_the_group_frees_its_messages_alone)
{
	struct wire_coll other = put(10);
	size_t used;

	other.group = 12;
	cr_assert_eq(arrive_with(&other, 10), CORE_RX_DONE);
	used = nodes[0].dom.unexpected_used;
	arrive_early();
	core_coll_leave(&group);
	cr_expect_eq(nodes[0].dom.unexpected_used, used);
}

Test(core_coll_msg, an_abort_frees_the_messages_of_the_group)
{
	struct wire_coll coll = {
		.group = group.id, .from = 1, .what = WIRE_COLL_ABORT, .status = FI_ECONNRESET
	};
	struct wire_coll late = put(10);

	arrive_early();
	cr_assert_eq(arrive_with(&coll, 0), CORE_RX_DONE);
	cr_expect_eq(nodes[0].dom.unexpected_used, 0);
	cr_assert_eq(arrive_with(&late, 10), CORE_RX_DONE);
	cr_expect_eq(reply.status, FI_ECONNRESET);
	cr_expect_eq(nodes[0].dom.unexpected_used, 0);
}

/* The read of an announced message fails the group while the message is taken. */
Test(core_coll_msg, an_abort_while_a_kept_message_is_taken_ends_the_operation)
{
	static uint8_t bytes[5000];
	struct core_coll_args args = {
		.call = { .coll = FI_BROADCAST, .root = 1, .buf = bytes, .len = sizeof(bytes) },
		.size = 1,
	};
	struct wire_coll coll = put(sizeof(bytes));
	struct fi_cq_err_entry err = { 0 };
	struct core_cqe e = { 0 };

	cr_assert_eq(node_send(&nodes[0], 1, bytes, 1, false, 0, 0, NULL), 0);
	nodes_settle(nodes, 2);
	cr_assert_eq(node_poll(&nodes[0], &e, &err), 1);
	cr_assert_eq(arrive_with(&coll, 0), CORE_RX_DONE);
	cr_assert_eq(core_coll_post(&group, &args), 0);
	nodes_settle(nodes, 2);
	cr_expect_eq(node_poll(&nodes[0], &e, &err), -FI_EAVAIL, "node 1 has no collectives");
	cr_expect_eq(err.err, FI_EOPNOTSUPP);
	cr_expect_eq(nodes[0].dom.unexpected_used, 0);
}

Test(core_coll_msg, aborts_before_the_join_are_kept_once_beyond_the_limit)
{
	struct wire_coll coll = { .from = 1, .what = WIRE_COLL_ABORT, .status = FI_EIO };
	const struct util_list *kept = &nodes[0].ep.coll->unexp;
	size_t cnt = 0;

	nodes[0].dom.limits.unexpected_mem = 0;
	for (unsigned i = 0; i < 2 * CORE_COLL_ABORTS_MAX; i++) {
		coll.group = 2 * (i + 1); /* none has an even id */
		for (unsigned again = 0; again < 2; again++) {
			cr_assert_eq(arrive_with(&coll, 0), CORE_RX_DONE);
			cr_assert_eq(reply.status, 0);
		}
	}
	cr_expect_eq(nodes[0].dom.unexpected_used, 0);
	for (const struct util_list *it = kept->next; it != kept; it = it->next)
		cnt++;
	cr_expect_eq(cnt, CORE_COLL_ABORTS_MAX);
}

Test(core_coll_msg, an_endpoint_without_collectives_replies_with_an_error)
{
	struct wire_coll coll = put(0);

	chan.peer = core_peer_get(&nodes[1].ep, 0);
	cr_expect_eq(arrive_with(&coll, 0), CORE_RX_DONE);
	cr_expect_eq(reply.status, FI_EOPNOTSUPP);
}
