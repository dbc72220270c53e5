/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core/core_pending.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>

#include "core/core_peer.h"
#include "core/msg/core_post.h"
#include "support/core_pair.h"
#include "support/rng.h"

static struct node nodes[2];
static struct node *a = &nodes[0];
static int ctx[3000];

static void setup(void)
{
	fake_engine_reset();
	fake_engine_cfg.caps |= CORE_CHAN_ASYNC;
	fake_engine_cfg.no_acks = true;
	fake_engine_cfg.room = 100000;
	node_limits = (struct core_limits){ .eager_max = 2048,
					    .single_copy_min = 1 << 20,
					    .unexpected_mem = 1 << 20 };
	nodes_open(nodes, 2);
	/* The first send connects. */
	cr_assert_eq(node_send(a, 1, "", 0, true, 1, FI_INJECT_COMPLETE, NULL), 0);
	nodes_settle(nodes, 2);
	cr_assert_eq(node_poll(a, &(struct core_cqe){ 0 }, NULL), 1);
	cr_assert_eq(a->tx_cntr.value, 1);
	a->tx_cntr.value = 0;
}

static void teardown(void)
{
	nodes_close(nodes, 2);
}

TestSuite(core_pending, .init = setup, .fini = teardown);

static void arrive(void)
{
	fake_engine_cfg.no_acks = false;
	core_dom_progress(&a->dom);
	fake_engine_cfg.no_acks = true;
}

static ssize_t post(void *context, uint64_t flags, bool silent)
{
	return core_tx_send_buf(&a->ep, "x", 1, 1, 7, 0, context, flags, true,
				silent ? CORE_POST_LEAVES : CORE_POST_COMPLETES);
}

/** Expects that the next completion is a successful one with this context. */
static void expect_good(const void *context)
{
	struct core_cqe e;

	cr_assert_eq(node_poll(a, &e, NULL), 1);
	cr_expect_eq(e.e.op_context, context);
	cr_expect_eq(e.e.flags, FI_SEND | FI_TAGGED);
}

static void expect_bad(const void *context, int err)
{
	struct fi_cq_err_entry entry = { 0 };

	cr_assert_eq(node_poll(a, &(struct core_cqe){ 0 }, &entry), -FI_EAVAIL);
	cr_expect_eq(entry.op_context, context);
	cr_expect_eq(entry.err, err);
	cr_expect_eq(entry.flags, FI_SEND | FI_TAGGED);
}

static void expect_none(void)
{
	cr_expect_eq(node_poll(a, &(struct core_cqe){ 0 }, NULL), 0);
}

Test(core_pending, a_send_completes_when_it_is_acknowledged)
{
	cr_assert_eq(post(&ctx[0], 0, false), 0);
	core_dom_progress(&a->dom);
	expect_none();
	cr_expect_eq(a->tx_cntr.value, 0);
	arrive();
	expect_good(&ctx[0]);
	cr_expect_eq(a->tx_cntr.value, 1);
	expect_none();
}

Test(core_pending, many_sends_complete_in_order)
{
	for (int i = 0; i < 3000; i++)
		cr_assert_eq(post(&ctx[i], 0, false), 0);
	expect_none();
	arrive();
	for (int i = 0; i < 3000; i++)
		expect_good(&ctx[i]);
	expect_none();
	cr_expect_eq(a->tx_cntr.value, 3000);
}

/* By core_pending_add each, whatever room there is: the short way counts nothing. */
Test(core_pending, silent_sends_are_counted)
{
	for (int lap = 0; lap < 3; lap++) {
		for (int i = 0; i < 5; i++)
			cr_assert_eq(post(NULL, 0, true), 0);
		arrive();
		cr_expect_eq(a->tx_cntr.value, 5u * (unsigned)(lap + 1));
	}
	expect_none();
}

Test(core_pending, sends_complete_without_a_counter)
{
	a->ep.tx.cntr = NULL;
	core_comp_update(&a->ep.tx);
	for (int lap = 0; lap < 100; lap++) {
		for (int i = 0; i < 40; i++)
			cr_assert_eq(post(&ctx[i], 0, false), 0);
		expect_none();
		arrive();
		for (int i = 0; i < 40; i++)
			expect_good(&ctx[i]);
	}
	expect_none();
}

/* Full slots of which the first entries have ended: the next entry is at the first slot again. */
Test(core_pending, sends_before_a_wrap_wait_for_their_acknowledgement)
{
	struct core_chan *chan = core_peer_lookup(&a->ep, 1)->chan;
	struct core_pending *pending = &chan->peer->pending;
	uint64_t first = 0;
	unsigned cnt = 0, ended;

	a->ep.tx.cntr = NULL;
	core_comp_update(&a->ep.tx);
	do {
		cr_assert_eq(post(&ctx[cnt], 0, false), 0);
		first = cnt++ ? first : *chan->posted;
	} while (pending->next != pending->slots + pending->mask + 1);
	core_pending_on_acked(chan, first);
	expect_good(&ctx[0]);
	cr_assert_eq(pending->next, pending->slots);
	core_pending_on_acked(chan, first);
	expect_none();
	arrive();
	for (ended = 1; ended < cnt; ended++)
		expect_good(&ctx[ended]);
	expect_none();
}

/* Returns how many sends precede the next acknowledgement: often none, or what fills the slots. */
static unsigned portion(struct rng *rng, const struct core_pending *pending)
{
	switch (rng_below(rng, 3)) {
	case 0: return (unsigned)(pending->stop - pending->next);
	case 1: return 0;
	default: return (unsigned)rng_below(rng, 40);
	}
}

/* Sends common and silent messages, acknowledges random portions: each completes once, in order. */
static void play(struct rng *rng, unsigned silent_of_8)
{
	struct core_chan *chan = core_peer_lookup(&a->ep, 1)->chan;
	static uint64_t pos[3000];
	unsigned sent = 0, arrived = 0, completed = 0;
	bool silent[3000];

	while (completed < 2000) {
		for (unsigned n = portion(rng, &chan->peer->pending); n && sent < 3000;
		     n--, sent++) {
			silent[sent] = rng_below(rng, 8) < silent_of_8;
			cr_assert_eq(post(silent[sent] ? NULL : &ctx[sent], 0, silent[sent]), 0);
			pos[sent] = *chan->posted;
		}
		arrived += (unsigned)rng_below(rng, sent - arrived + 1);
		if (arrived)
			core_pending_on_acked(chan, pos[arrived - 1]);
		for (; completed < arrived; completed++)
			if (!silent[completed])
				expect_good(&ctx[completed]);
		expect_none();
	}
	core_pending_on_acked(chan, pos[sent - 1]);
	for (; completed < sent; completed++)
		if (!silent[completed])
			expect_good(&ctx[completed]);
	cr_expect_not(core_pending_is_open(&chan->peer->pending));
}

Test(core_pending, mixed_kinds_complete_in_order_at_any_acknowledgement)
{
	struct rng rng = { .state = rng_env("COPYRPC_TEST_SEED", 1) };

	a->ep.tx.cntr = NULL;
	core_comp_update(&a->ep.tx);
	for (unsigned silent_of_8 = 0; silent_of_8 <= 8; silent_of_8++)
		play(&rng, silent_of_8);
	expect_none();
}

/* The acknowledgement of some of them leaves the others, each with its error. */
Test(core_pending, silent_sends_that_have_not_arrived_fail_one_by_one)
{
	struct core_chan *chan = core_peer_lookup(&a->ep, 1)->chan;
	struct rng rng = { .state = rng_env("COPYRPC_TEST_SEED", 2) };
	unsigned sent = 100 + (unsigned)rng_below(&rng, 100);
	unsigned arrived = (unsigned)rng_below(&rng, sent);
	uint64_t pos[200];

	a->ep.tx.cntr = NULL;
	core_comp_update(&a->ep.tx);
	for (unsigned i = 0; i < sent; i++) {
		cr_assert_eq(post(NULL, 0, true), 0);
		pos[i] = *chan->posted;
	}
	for (unsigned i = 0; i < arrived; i += 1 + (unsigned)rng_below(&rng, 9))
		core_pending_on_acked(chan, pos[i]);
	core_pending_on_acked(chan, pos[arrived]);
	expect_none();
	fake_engine_kill(&a->ep, &nodes[1].ep, -FI_EIO);
	nodes_settle(nodes, 2);
	for (unsigned i = arrived + 1; i < sent; i++)
		expect_bad(NULL, FI_EIO);
	expect_none();
}

Test(core_pending, a_send_with_inject_complete_completes_at_once)
{
	cr_assert_eq(post(&ctx[0], FI_INJECT_COMPLETE, false), 0);
	expect_good(&ctx[0]);
	cr_assert_eq(node_send(a, 1, "y", 1, true, 9, FI_INJECT_COMPLETE | FI_MORE, &ctx[1]), 0);
	expect_good(&ctx[1]);
	fake_engine_kill(&a->ep, &nodes[1].ep, -FI_EIO);
	nodes_settle(nodes, 2);
	expect_none();
}

static const struct core_chan_ops *fake_ops;

static int send_several(struct core_chan *chan, uint64_t packed, uint64_t ext0, uint64_t ext1,
			const void *buf, size_t len)
{
	return fake_ops->send_buf(chan, packed, ext0, ext1, buf, len) | CORE_SEND_LONG;
}

/** Sends messages of at most, and of more than the domain's limit. Fails their peer, or not. */
static void copied_sends(bool is_eager, bool fails)
{
	struct core_peer *peer = core_peer_lookup(&a->ep, 1);
	struct core_chan_ops several = *peer->chan->ops;
	static uint8_t bytes[3000];

	fake_ops = peer->chan->ops;
	several.send_buf = send_several;
	peer->chan->ops = &several;
	peer->chan->eager_min = is_eager ? sizeof(bytes) : 0;
	core_peer_set_eager(peer);
	for (size_t len = 2048; len <= sizeof(bytes); len += sizeof(bytes) - 2048) {
		cr_assert_eq(core_tx_send_buf(&a->ep, bytes, len, 1, 7, 0, &ctx[len],
					      FI_INJECT_COMPLETE, true, CORE_POST_COMPLETES),
			     0);
		nodes_settle(nodes, 2);
		expect_good(&ctx[len]);
	}
	peer->chan->ops = fake_ops;
	if (fails)
		fake_engine_kill(&a->ep, &nodes[1].ep, -FI_EIO);
	else
		arrive();
	nodes_settle(nodes, 2);
}

Test(core_pending, a_long_send_with_inject_complete_that_is_lost_has_an_error_completion)
{
	a->ep.tx.cntr = NULL;
	for (unsigned eager = 0; eager < 2; eager++) {
		copied_sends(eager, false);
		expect_none();
	}
	copied_sends(true, true);
	expect_bad(NULL, FI_EIO);
	expect_none();
}

Test(core_pending, a_long_send_in_parts_likewise)
{
	a->ep.tx.cntr = NULL;
	copied_sends(false, true);
	expect_bad(NULL, FI_EIO);
	expect_none();
}

/* Counts when it completes. */
Test(core_pending, counters_count_a_long_send_with_inject_complete_once)
{
	copied_sends(true, true);
	expect_none();
	cr_expect_eq(a->tx_cntr.value, 2);
	cr_expect_eq(a->tx_cntr.errors, 0);
}

Test(core_pending, a_silent_send_that_fails_has_an_error_completion)
{
	a->ep.tx.selective = true;
	cr_assert_eq(post(&ctx[0], 0, false), 0);
	cr_assert_eq(post(NULL, 0, true), 0);
	arrive();
	expect_none();
	cr_assert_eq(post(&ctx[1], 0, false), 0);
	cr_assert_eq(post(&ctx[2], FI_COMPLETION, false), 0);
	cr_assert_eq(post(NULL, 0, true), 0);
	cr_assert_eq(post(&ctx[3], 0, true), 0);
	fake_engine_kill(&a->ep, &nodes[1].ep, -FI_EIO);
	nodes_settle(nodes, 2);
	expect_bad(&ctx[1], FI_EIO);
	expect_bad(&ctx[2], FI_EIO);
	expect_bad(NULL, FI_EIO);
	expect_bad(&ctx[3], FI_EIO);
	expect_none();
	cr_expect_eq(a->tx_cntr.errors, 4);
}

/* These are on the hot path. */
Test(core_pending, a_silent_send_that_fails_has_its_context_without_a_counter_too)
{
	a->ep.tx.selective = true;
	a->ep.tx.cntr = NULL;
	core_comp_update(&a->ep.tx);
	for (int i = 0; i < 100; i++)
		cr_assert_eq(post(i % 3 ? &ctx[i] : NULL, 0, true), 0);
	fake_engine_kill(&a->ep, &nodes[1].ep, -FI_EIO);
	nodes_settle(nodes, 2);
	for (int i = 0; i < 100; i++)
		expect_bad(i % 3 ? &ctx[i] : NULL, FI_EIO);
	expect_none();
}

Test(core_pending, after_an_orderly_shutdown_only_sends_with_a_completion_fail)
{
	a->ep.tx.cntr = NULL;
	cr_assert_eq(post(NULL, 0, true), 0);
	cr_assert_eq(post(&ctx[0], 0, false), 0);
	fake_engine_kill(&a->ep, &nodes[1].ep, -FI_ESHUTDOWN);
	nodes_settle(nodes, 2);
	expect_bad(&ctx[0], FI_ESHUTDOWN);
	expect_none();
}

Test(core_pending, await_is_called_only_for_injected_sends_with_a_completion)
{
	a->ep.tx.cntr = NULL;
	cr_assert_eq(post(NULL, 0, true), 0);
	cr_expect_eq(fake_engine_awaits(), 0);
	cr_assert_eq(node_send(a, 1, "y", 1, true, 9, FI_INJECT, &ctx[0]), 0);
	cr_expect_eq(fake_engine_awaits(), 1);
	cr_assert_eq(post(&ctx[1], 0, false), 0);
	cr_expect_eq(fake_engine_awaits(), 1, "not for sends that are not injected");
}

Test(core_pending, queued_and_pipelined_sends_complete_when_acknowledged)
{
	static uint8_t bytes[20000];

	fake_engine_cfg.room = 2;
	fake_engine_cfg.no_delivery = true;
	cr_assert_eq(node_send(a, 1, bytes, 1, true, 1, 0, &ctx[0]), 0);
	cr_assert_eq(node_send(a, 1, bytes, sizeof(bytes), true, 2, 0, &ctx[1]), 0);
	cr_assert_eq(node_send(a, 1, bytes, 1, true, 3, 0, &ctx[2]), 0);
	fake_engine_cfg.no_delivery = false;
	nodes_settle(nodes, 2);
	cr_expect_eq(a->ep.tx_open, 0, "all of it has left");
	expect_none();
	arrive();
	expect_good(&ctx[0]);
	cr_expect_eq(node_poll(a, &(struct core_cqe){ 0 }, NULL), 1);
	cr_expect_eq(node_poll(a, &(struct core_cqe){ 0 }, NULL), 1);
	expect_none();
}
