/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Messages in parts and confirmed ones arrive in order and whole, or are refused. */
#include "core/msg/core_rx_bulk.h"

#include <criterion/criterion.h>
#include <string.h>

#include "support/core_pair.h"
#include "wire/wire_op.h"

static struct node nodes[2];
static struct core_cqe e;
static struct fi_cq_err_entry err;
static uint8_t out[20000], in[20000];

static void setup(void)
{
	nodes_open_plain(nodes, 2);
	memset(in, 0, sizeof(in));
}

static void teardown(void)
{
	nodes_close(nodes, 2);
}

TestSuite(core_rx_bulk, .init = setup, .fini = teardown);

Test(core_rx_bulk, parts_behind_held_ones_stay_in_order)
{
	fake_engine_cfg.room = 1;
	fake_engine_cfg.eager_max = 1000;
	nodes[1].dom.limits.unexpected_mem = 1000;
	node_fill(out, 5000, 7);
	node_send(&nodes[0], 1, out, 5000, true, 7, 0, NULL);
	for (int i = 0; i < 100 && !fake_engine_held(); i++) {
		core_dom_progress(&nodes[0].dom);
		core_dom_progress(&nodes[1].dom);
	}
	cr_assert_eq(fake_engine_held(), 1);
	nodes[1].dom.limits.unexpected_mem = 1 << 20; /* enough for what comes now */
	nodes_settle(nodes, 2);
	cr_assert_gt(fake_engine_held(), 1);
	node_recv(&nodes[1], 0, in, sizeof(in), true, 7, 0, FI_COMPLETION, &in);
	cr_assert_eq(node_poll(&nodes[1], &e, &err), 1);
	cr_assert(node_check(in, 5000, 7));
	cr_assert_eq(fake_engine_held(), 0);
}

/** The channel of node 1 to node 0. */
static struct core_chan *meet(void)
{
	node_send(&nodes[0], 1, out, 0, false, 0, 0, NULL);
	nodes_settle(nodes, 2);
	node_recv(&nodes[1], 0, in, 0, false, 0, 0, FI_COMPLETION, NULL);
	cr_assert_eq(node_poll(&nodes[1], &e, &err), 1);
	return nodes[1].ep.peers[0]->chan;
}

/** PART (offset 0) or CONT of message `id`, with `len` bytes of 0x55. */
static enum core_rx_verdict hear_part(struct core_chan *chan, uint32_t id, uint64_t total,
				      uint64_t offset, uint32_t len)
{
	struct wire_part part = { .total_len = total, .send_id = id };
	struct wire_cont cont = { .offset = offset, .id = id, .kind = WIRE_CONT_SENT };
	uint8_t bytes[16 + 200];

	memcpy(bytes, offset ? (void *)&cont : (void *)&part, 16);
	memset(bytes + 16, 0x55, len);
	return core_rx_on_msg(chan, offset ? WIRE_OP_CONT : WIRE_OP_PART, bytes, 16 + len, 0);
}

Test(core_rx_bulk, a_part_with_a_byte_too_many_is_refused_and_goes_nowhere)
{
	static const uint64_t totals[] = { 50, 150 }; /* kept in the record, and beside it */
	struct core_chan *chan = meet();
	uint32_t id = 1;

	memset(in, 0xEE, sizeof(in));
	for (unsigned i = 0; i < 2; i++) {
		for (unsigned posted = 0; posted < 2; posted++, id++) {
			if (posted)
				node_recv(&nodes[1], 0, in, sizeof(in), false, 0, 0, FI_COMPLETION,
					  NULL);
			cr_assert_eq(hear_part(chan, id, totals[i], 0, 40), CORE_RX_DONE);
			cr_assert_eq(hear_part(chan, id, totals[i], 40, (uint32_t)totals[i] - 39),
				     CORE_RX_BAD, "%u bytes, posted %u", (unsigned)totals[i],
				     posted);
			cr_assert_eq(in[40], 0xEE);
		}
	}
	cr_assert_eq(node_poll(&nodes[1], &e, &err), 0);
}

Test(core_rx_bulk, a_message_that_was_asked_for_gives_its_id_back)
{
	fake_engine_cfg.room = 1;
	fake_engine_cfg.caps &= ~(uint32_t)CORE_CHAN_GET;
	node_recv(&nodes[1], 0, in, sizeof(in), true, 7, 0, FI_COMPLETION, NULL);
	node_fill(out, sizeof(out), 7);
	node_send(&nodes[0], 1, out, sizeof(out), true, 7, FI_DELIVERY_COMPLETE, NULL);
	for (int i = 0; i < 100 && !nodes[1].ep.rx_ids.used_cnt; i++) {
		core_dom_progress(&nodes[0].dom);
		core_dom_progress(&nodes[1].dom);
	}
	cr_assert_eq(nodes[1].ep.rx_ids.used_cnt, 1);
	nodes_settle(nodes, 2);
	cr_assert_eq(node_poll(&nodes[1], &e, &err), 1);
	cr_assert(node_check(in, sizeof(in), 7));
	cr_assert_eq(nodes[1].ep.rx_ids.used_cnt, 0);
}

Test(core_rx_bulk, a_kept_message_counts_as_delivered)
{
	static const size_t kept[] = { 0, 1, 999, 1000 }; /* in one piece */
	size_t i;

	for (i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		node_fill(out, kept[i], (uint32_t)i);
		node_send(&nodes[0], 1, out, kept[i], true, 7, FI_COMPLETION | FI_DELIVERY_COMPLETE,
			  &out);
		nodes_settle(nodes, 2);
		cr_assert_eq(node_poll(&nodes[0], &e, &err), 1, "%zu: nothing", kept[i]);
		node_recv(&nodes[1], 0, in, sizeof(in), true, 7, 0, FI_COMPLETION, &in);
		nodes_settle(nodes, 2);
		cr_assert_eq(node_poll(&nodes[1], &e, &err), 1);
		cr_assert(node_check(in, kept[i], (uint32_t)i));
		cr_assert_eq(node_poll(&nodes[0], &e, &err), 0, "%zu: twice", kept[i]);
	}
}

/** RNDV and DLVR of nothing that makes sense, and answers that would not fit: calls are refused, and nothing stays. */
Test(core_rx_bulk, calls_that_make_no_sense_are_refused)
{
	static const struct {
		uint32_t op, len, resp_max;
	} bad[] = {
		{ WIRE_OP_RNDV, 23, 16 },              /* an announcement cut short */
		{ WIRE_OP_RNDV, 25, 16 },              /* and a long one */
		{ WIRE_OP_RNDV, 24, 15 },              /* no room for the answer */
		{ WIRE_OP_DLVR, 8, 15 },               /* the same */
		{ WIRE_OP_DLVR | WIRE_F_TAG, 7, 16 },  /* a tag cut short */
		{ WIRE_OP_CONT, 32, 16 },              /* of nothing */
		{ WIRE_OP_CONT | WIRE_F_TAG, 40, 16 }, /* with a tag */
		{ WIRE_OP_MSG, 8, 16 },                /* no call */
		{ WIRE_OP_PART, 32, 16 },              /* no call */
	};
	struct core_chan *chan = meet();
	uint8_t bytes[64] = { 0 };
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct core_call_ref ref = { .call_id = 1, .resp_max = bad[i].resp_max };

		memcpy(bytes, &bad[i].op, 4);
		cr_expect_eq(core_rx_on_call(chan, ref, bytes, 4 + bad[i].len, 0), CORE_RX_BAD,
			     "case %zu", i);
	}
	cr_expect_eq(nodes[1].ep.unexps.used_cnt, 0);
}

/** What is missing, twice there or of another message does not go into it. */
Test(core_rx_bulk, parts_out_of_turn_are_refused)
{
	struct core_chan *chan = meet();

	cr_assert_eq(hear_part(chan, 1, 150, 0, 40), CORE_RX_DONE);
	cr_expect_eq(hear_part(chan, 1, 150, 41, 10), CORE_RX_BAD, "one is missing");
	cr_expect_eq(hear_part(chan, 1, 150, 39, 10), CORE_RX_BAD, "it was there");
	cr_expect_eq(hear_part(chan, 2, 150, 40, 10), CORE_RX_BAD, "another");
	cr_assert_eq(hear_part(chan, 1, 150, 40, 110), CORE_RX_DONE);
	cr_expect_eq(hear_part(chan, 1, 150, 150, 1), CORE_RX_BAD, "it is over");
	node_recv(&nodes[1], 0, in, sizeof(in), false, 0, 0, FI_COMPLETION, NULL);
	cr_assert_eq(node_poll(&nodes[1], &e, &err), 1);
	cr_expect_eq(e.e.len, 150);
	cr_expect_eq(in[149], 0x55);
}
