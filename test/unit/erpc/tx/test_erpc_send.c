/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What is said joins a batch, or leaves: by what is under way, and by what the sender did before. */
#include "erpc/tx/erpc_send.h"

#include <criterion/criterion.h>

#include "support/erpc_pair.h"

static struct erpc_pair p;

/* Of a batch that waits behind others, most messages take the short way: each arrives as it was said. */
Test(erpc_send, messages_of_any_length_join_a_batch_that_waits)
{
	struct pair_end *e = &p.end[0];
	uint32_t i;

	erpc_pair_init(&p, rng_env("COPYRPC_TEST_SEED", 4));
	p.net.mtu = 1024;
	erpc_pair_open(&p);
	for (i = 0; i < 4000; i++) {
		e->len_exact = i % 80;
		e->len_max = 80;
		pair_send(e, rng_chance(&p.rng, 1, 20) ? CORE_SEND_NOW : 0);
		if (rng_chance(&p.rng, 1, 30))
			erpc_pair_run(&p, 3000);
	}
	erpc_pair_settle(&p);
	cr_expect_gt(e->port->stats.frames, 3 * e->port->stats.batches, "they shared batches");
	erpc_pair_check(&p);
	erpc_pair_fini(&p);
}

/** `cnt` messages and no progress in between: batches that left before any progress, and behind it. */
static void burst(unsigned cnt, uint64_t *at_once, uint64_t *in_all)
{
	struct pair_end *e = &p.end[0];
	uint64_t before = e->port->stats.batches;

	while (cnt--)
		cr_assert_eq(pair_send(e, 0), 0);
	*at_once = e->port->stats.batches - before;
	erpc_pair_settle(&p);
	*in_all = e->port->stats.batches - before;
}

static void expect_burst(unsigned cnt, uint64_t at_once, uint64_t in_all)
{
	uint64_t was_at_once, was_in_all;

	burst(cnt, &was_at_once, &was_in_all);
	cr_expect_eq(was_at_once, at_once, "%lu of %u", was_at_once, cnt);
	cr_expect_eq(was_in_all, in_all, "%lu of %u", was_in_all, cnt);
}

Test(erpc_send, who_sends_in_bursts_begins_with_none_by_itself)
{
	unsigned i;

	erpc_pair_init(&p, rng_env("COPYRPC_TEST_SEED", 5));
	erpc_pair_open(&p);
	p.end[0].len_exact = 16;
	p.end[0].len_max = 16;
	expect_burst(1, 1, 1);
	expect_burst(5, 1, 2);
	expect_burst(1, 1, 1);
	expect_burst(5, 1, 2);
	expect_burst(5, 1, 2);
	for (i = 0; i < 5; i++)
		expect_burst(5 - i % 4, 0, 1); /* 5 4 3 2 5 */
	expect_burst(1, 0, 1);                 /* for once it waits in vain */
	for (i = 0; i < 3; i++)
		expect_burst(1, 1, 1);
	expect_burst(2, 1, 2);
	expect_burst(2, 1, 2);
	expect_burst(2, 0, 1);
	erpc_pair_check(&p);
	erpc_pair_fini(&p);
}

/* Behind a message, but not before progress: it is no burst, and the next one waits for nobody. */
Test(erpc_send, who_makes_progress_between_messages_sends_no_bursts)
{
	struct pair_end *e = &p.end[0];
	uint64_t batches;
	unsigned i;

	erpc_pair_init(&p, rng_env("COPYRPC_TEST_SEED", 6));
	erpc_pair_open(&p);
	for (i = 0; i < 20; i++) {
		batches = e->port->stats.batches;
		cr_assert_eq(pair_send(e, 0), 0);
		cr_expect_eq(e->port->stats.batches, batches + 1, "round %u", i);
		erpc_port_progress(e->port, p.net.now_ns);
		cr_assert_eq(pair_send(e, 0), 0);
		erpc_pair_settle(&p);
	}
	erpc_pair_check(&p);
	erpc_pair_fini(&p);
}
