/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Messages are appended to a batch or leave at once, by batches in flight and previous bursts. */
#include "erpc/tx/erpc_send.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>

#include "erpc/tx/erpc_batch.h"
#include "support/erpc_pair.h"

static struct erpc_pair p;

/* Messages appended to a waiting batch take the fast path: each arrives unchanged. */
Test(erpc_send, messages_of_any_length_are_appended)
{
	struct pair_end *e = &p.end[0];
	uint32_t i;

	erpc_pair_start(&p, rng_env("COPYRPC_TEST_SEED", 4), 1024);
	for (i = 0; i < 4000; i++) {
		e->len_exact = i % 80;
		e->len_max = 80;
		pair_send(e, rng_chance(&p.rng, 1, 20) ? CORE_SEND_NOW : 0);
		if (rng_chance(&p.rng, 1, 30))
			erpc_pair_run(&p, 3000);
	}
	erpc_pair_settle(&p);
	cr_expect_gt(erpc_pair_frames(e->ep), 3 * erpc_pair_batches(e->ep), "they shared batches");
	erpc_pair_check(&p);
	erpc_pair_fini(&p);
}

/* With FI_MORE messages share a batch that is open, also where none is in flight. */
Test(erpc_send, messages_with_fi_more_are_appended)
{
	struct pair_end *e = &p.end[0];
	uint64_t before;

	erpc_pair_start(&p, rng_env("COPYRPC_TEST_SEED", 6), PAIR_MTU);
	e->len_exact = e->len_max = 16;
	for (unsigned i = 0; i < 10; i++) {
		before = erpc_pair_batches(e->ep);
		for (unsigned n = 0; n < 8; n++)
			cr_assert_eq(pair_send(e, CORE_SEND_MORE), 0);
		cr_expect_eq(erpc_pair_batches(e->ep), before, "nothing has left");
		erpc_pair_settle(&p);
		cr_expect_eq(erpc_pair_batches(e->ep), before + 1);
	}
	erpc_pair_check(&p);
	erpc_pair_fini(&p);
}

/*
 * Messages behind batches in flight gather in batches of several packets, so that slots do not
 * bound the bytes in flight. The first batches have one packet, for a low latency.
 */
Test(erpc_send, waiting_batches_have_several_packets)
{
	struct pair_end *e = &p.end[0];
	uint32_t span, one, many;

	erpc_pair_start(&p, rng_env("COPYRPC_TEST_SEED", 7), 1024);
	e->len_exact = 100;
	cr_assert_eq(pair_send(e, 0), 0);
	cr_assert_eq(pair_send(e, 0), 0);
	span = erpc_send_len(e->s) - ERPC_BATCH_HEAD;
	one = (e->s->payload - ERPC_BATCH_HEAD) / span;
	many = (ERPC_BATCH_PKTS * e->s->payload - ERPC_BATCH_HEAD) / span;
	while (!pair_send(e, 0))
		;
	/* One left at once, two have one packet, two long ones are in flight, one waits. */
	cr_expect_eq(e->sent, 1 + 2 * one + 3 * many, "%u, %u, %u", e->sent, one, many);
	erpc_pair_end(&p);
}

/**
 * Sends `cnt` messages without progress. Counts the batches that left before any progress, and in
 * total.
 */
static void burst(unsigned cnt, uint64_t *at_once, uint64_t *in_all)
{
	struct pair_end *e = &p.end[0];
	uint64_t before = erpc_pair_batches(e->ep);

	while (cnt--)
		cr_assert_eq(pair_send(e, 0), 0);
	*at_once = erpc_pair_batches(e->ep) - before;
	erpc_pair_settle(&p);
	*in_all = erpc_pair_batches(e->ep) - before;
}

static void expect_burst(unsigned cnt, uint64_t at_once, uint64_t in_all)
{
	uint64_t was_at_once, was_in_all;

	burst(cnt, &was_at_once, &was_in_all);
	cr_expect_eq(was_at_once, at_once, "%lu of %u", was_at_once, cnt);
	cr_expect_eq(was_in_all, in_all, "%lu of %u", was_in_all, cnt);
}

Test(erpc_send, after_bursts_no_message_leaves_alone)
{
	unsigned i;

	erpc_pair_start(&p, rng_env("COPYRPC_TEST_SEED", 5), PAIR_MTU);
	p.end[0].len_exact = 16;
	p.end[0].len_max = 16;
	expect_burst(1, 1, 1);
	expect_burst(5, 1, 2);
	expect_burst(1, 1, 1);
	expect_burst(5, 1, 2);
	expect_burst(5, 1, 2);
	for (i = 0; i < 5; i++)
		expect_burst(5 - i % 4, 0, 1); /* 5 4 3 2 5 */
	expect_burst(1, 0, 1);                 /* waits in vain once */
	for (i = 0; i < 3; i++)
		expect_burst(1, 1, 1);
	expect_burst(2, 1, 2);
	expect_burst(2, 1, 2);
	expect_burst(2, 0, 1);
	erpc_pair_check(&p);
	erpc_pair_fini(&p);
}

/*
 * A message after another one, but with progress in between, is no burst, and the next does not
 * wait.
 */
Test(erpc_send, messages_with_progress_in_between_are_no_burst)
{
	struct pair_end *e = &p.end[0];
	uint64_t batches;
	unsigned i;

	erpc_pair_start(&p, rng_env("COPYRPC_TEST_SEED", 6), PAIR_MTU);
	for (i = 0; i < 20; i++) {
		batches = erpc_pair_batches(e->ep);
		cr_assert_eq(pair_send(e, 0), 0);
		cr_expect_eq(erpc_pair_batches(e->ep), batches + 1, "round %u", i);
		erpc_ep_progress(e->ep, p.net.now_ns);
		cr_assert_eq(pair_send(e, 0), 0);
		erpc_pair_settle(&p);
	}
	erpc_pair_check(&p);
	erpc_pair_fini(&p);
}

/**
 * Sends until a message is refused; then a timer or work must exist. Returns true if one was
 * refused.
 */
static bool fill_up(struct pair_end *e)
{
	unsigned i;
	int ret;

	for (i = 0; i < 100; i++) {
		ret = pair_send(e, rng_chance(&p.rng, 1, 2) ? CORE_SEND_MORE : 0);
		if (!ret)
			continue;
		cr_assert_eq(ret, -FI_EAGAIN);
		cr_assert(!erpc_ep_is_quiet(e->ep) || erpc_ep_due_ns(e->ep) != UINT64_MAX,
			  "nothing wakes a sender that waits for room");
		return true;
	}
	return false;
}

static void waits_for_room(uint32_t drop, uint32_t busy, double pace_rate)
{
	unsigned round, full = 0;

	erpc_pair_init(&p, rng_env("COPYRPC_TEST_SEED", 7));
	p.net.faults.drop = drop;
	p.net.busy_chance = busy;
	p.net.bytes_per_s = pace_rate / 2;
	p.pace_rate = pace_rate;
	erpc_pair_open(&p);
	p.end[0].len_max = 20000;
	p.end[1].retain_chance = 20;
	for (round = 0; round < 400; round++) {
		full += fill_up(&p.end[0]);
		while (rng_chance(&p.rng, 1, 2) && pair_release(&p.end[1]))
			;
		erpc_pair_run(&p, rng_below(&p.rng, 100000));
	}
	cr_expect_gt(full, 20, "messages are refused now and then");
	erpc_pair_end(&p);
}

/* CORE_CHAN_WAKES: the sender may sleep, whatever it waits for. */
Test(erpc_send, a_sender_without_room_is_woken)
{
	waits_for_room(0, 0, 0);
	waits_for_room(300000, 0, 0);
	waits_for_room(10000, 500000, 0);
	waits_for_room(10000, 0, 50e6);
}

static int refuse_memory(struct dev *dev, const void *addr, size_t len, unsigned rights,
			 struct dev_mem **mem)
{
	return -FI_ENOMEM;
}

/* Nothing is in flight: no packet and no timer would wake the sender. */
Test(erpc_send, a_sender_without_memory_stays_awake)
{
	static const struct dev_ops none = { .mem_reg = refuse_memory };
	struct pair_end *e = &p.end[0];
	struct erpc_bufs *bufs;
	struct util_list free;

	erpc_pair_start(&p, 8, PAIR_MTU);
	bufs = &e->ep->bufs;
	e->len_exact = 1000;
	cr_assert_eq(pair_send(e, 0), 0);
	erpc_pair_settle(&p);
	cr_expect(erpc_ep_is_quiet(e->ep));
	bufs->dev_ops = &none;
	util_list_move(&bufs->cls[1].free, &free);
	cr_expect_eq(pair_send(e, 0), -FI_EAGAIN);
	cr_expect_not(erpc_ep_is_quiet(e->ep));
	util_list_move(&free, &bufs->cls[1].free);
	bufs->dev_ops = NULL;
	cr_expect_eq(pair_send(e, 0), 0);
	erpc_pair_end(&p);
}
