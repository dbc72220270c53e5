/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What one frame does not carry, or what must be confirmed: which way it goes, when it ends, and what it lends. */
#include "core/msg/core_tx_bulk.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "support/core_pair.h"

#define EAGER 1000u
#define FETCH 10000u
#define LEN   (CORE_TX_PIPELINED_MAX + 5000u)

static struct node nodes[2];
static uint8_t out[LEN], in[LEN];
static struct core_cqe e;
static struct fi_cq_err_entry err;

static void setup(void)
{
	fake_engine_reset();
	node_limits = (struct core_limits){ .eager_max = EAGER,
					    .single_copy_min = FETCH,
					    .unexpected_mem = 1 << 20 };
	nodes_open(nodes, 2);
}

static void teardown(void)
{
	cr_expect_eq(fake_engine_lent(), 0);
	cr_expect_eq(fake_engine_held(), 0);
	cr_expect_eq(nodes[0].ep.tx_open, 0);
	nodes_close(nodes, 2);
}

TestSuite(core_tx_bulk, .init = setup, .fini = teardown);

static void send_it(size_t len, uint64_t flags)
{
	node_fill(out, len, 1);
	memset(in, 0, sizeof(in));
	cr_assert_eq(node_send(&nodes[0], 1, out, len, true, 0, FI_COMPLETION | flags, out), 0);
	nodes_settle(nodes, 2);
}

static bool has_left(void)
{
	int ret = node_poll(&nodes[0], &e, &err);

	cr_assert_neq(ret, -FI_EAVAIL, "%d", err.err);
	return ret;
}

/** A receive for it: it is whole. */
static void receive(size_t len)
{
	cr_assert_eq(node_recv(&nodes[1], 0, in, sizeof(in), true, 0, 0, FI_COMPLETION, in), 0);
	nodes_settle(nodes, 2);
	cr_assert_eq(node_poll(&nodes[1], &e, &err), 1);
	cr_expect_eq(e.e.len, len);
	cr_expect(node_check(in, len, 1), "%zu bytes", len);
}

Test(core_tx_bulk, up_to_a_length_parts_leave_unasked_and_from_there_it_is_fetched)
{
	static const size_t lens[] = {
		EAGER + 1, CORE_TX_SEGMENT_LEN, CORE_TX_SEGMENT_LEN + 1, FETCH - 1, FETCH, LEN
	};

	for (unsigned i = 0; i < 6; i++) {
		bool fetched = lens[i] >= FETCH;
		unsigned gets = fake_engine_gets();

		send_it(lens[i], 0);
		cr_expect_eq(has_left(), !fetched, "%zu bytes", lens[i]);
		cr_expect_eq(fake_engine_lent(), fetched);
		receive(lens[i]);
		cr_expect_eq(fake_engine_gets() - gets, fetched);
		cr_expect_eq(has_left(), fetched);
		cr_expect_eq(fake_engine_lent(), 0);
	}
}

/** A short one when the peer has it, in whosever buffer; a long one when its receive has. */
Test(core_tx_bulk, what_is_to_be_delivered_ends_when_it_is)
{
	static const size_t lens[] = { 0, 1, EAGER, EAGER + 1, FETCH, LEN };

	for (unsigned i = 0; i < 6; i++) {
		fake_engine_cfg.hold_delivery = true;
		send_it(lens[i], FI_DELIVERY_COMPLETE);
		cr_expect_not(has_left(), "%zu bytes, and nobody has them", lens[i]);
		fake_engine_cfg.hold_delivery = false;
		nodes_settle(nodes, 2);
		cr_expect_eq(has_left(), lens[i] <= EAGER, "%zu bytes", lens[i]);
		receive(lens[i]);
		cr_expect_eq(has_left(), lens[i] > EAGER, "%zu bytes", lens[i]);
	}
}

/** Memory that cannot be lent or fetched, and pieces: the receiver asks for parts, and they are all confirmed. */
Test(core_tx_bulk, what_cannot_be_fetched_is_sent_in_parts_when_it_is_asked_for)
{
	fake_engine_cfg.lend_err = -FI_ENOMEM;
	send_it(LEN, 0);
	cr_expect_not(has_left());
	cr_expect_eq(fake_engine_lent(), 0);
	receive(LEN);
	cr_expect(has_left());
	cr_expect_eq(fake_engine_gets(), 0);
}

Test(core_tx_bulk, pieces_are_not_lent)
{
	struct iovec iov[2] = { { out, 100 }, { out + 100, LEN - 100 } };
	struct core_send s = { .dest = 1,
			       .iov = iov,
			       .iov_cnt = 2,
			       .len = LEN,
			       .tagged = true,
			       .flags = FI_COMPLETION,
			       .context = out };

	node_fill(out, LEN, 1);
	cr_assert_eq(core_tx_send(&nodes[0].ep, &s), 0);
	nodes_settle(nodes, 2);
	cr_expect_eq(fake_engine_lent(), 0);
	receive(LEN);
	cr_expect(has_left());
	cr_expect_eq(fake_engine_gets(), 0);
}

/** The whole of it waits while there is no room, and again between its parts. */
Test(core_tx_bulk, what_has_no_room_goes_on_where_it_stopped)
{
	fake_engine_cfg.room = 1;
	fake_engine_cfg.lend_err = -FI_ENOMEM;
	send_it(LEN, 0);
	receive(LEN);
	cr_expect(has_left());
	send_it(FETCH - 1, 0);
	cr_expect(has_left());
	receive(FETCH - 1);
}

Test(core_tx_bulk, what_is_lent_comes_back_when_the_peer_dies)
{
	send_it(LEN, 0);
	cr_assert_eq(fake_engine_lent(), 1);
	fake_engine_kill(&nodes[0].ep, &nodes[1].ep, -FI_ECONNRESET);
	nodes_settle(nodes, 2);
	cr_expect_eq(fake_engine_lent(), 0);
	cr_assert_eq(node_poll(&nodes[0], &e, &err), -FI_EAVAIL);
	cr_expect_eq(err.op_context, out);
	cr_expect_eq(err.err, FI_ECONNRESET);
}

Test(core_tx_bulk, a_fetch_that_fails_is_an_error_at_both_ends)
{
	fake_engine_cfg.get_err = -FI_EIO;
	send_it(LEN, 0);
	cr_assert_eq(node_recv(&nodes[1], 0, in, sizeof(in), true, 0, 0, FI_COMPLETION, in), 0);
	nodes_settle(nodes, 2);
	for (unsigned i = 0; i < 2; i++) {
		cr_assert_eq(node_poll(&nodes[i], &e, &err), -FI_EAVAIL);
		cr_expect_eq(err.err, FI_EIO);
		cr_expect_eq(err.op_context, i ? in : out);
	}
}
