/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tests of the time and the memory that matching takes with long queues. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "core/msg/core_match.h"
#include "unit/core/msg/match_queued.h"
#include "unit/core/must.h"
#include "util/clock.h"

#define LARGE_OBJS   160000u
#define IN_ORDER_CNT 20
#define COST_ROUNDS  5
#define COST_TRIES   8

/* Objects of the tests below alone: what is static costs the search for leaks of every test. */
static struct core_match_recv *large_recvs;
static struct core_match_msg *large_msgs;

static void cost_setup(void)
{
	large_recvs = calloc(LARGE_OBJS, sizeof(*large_recvs));
	large_msgs = calloc(LARGE_OBJS, sizeof(*large_msgs));
	MUST(large_recvs && large_msgs);
}

static void cost_teardown(void)
{
	free(large_recvs);
	free(large_msgs);
}

TestSuite(core_match_cost, .init = cost_setup, .fini = cost_teardown);

static uint64_t cost_clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * UTIL_NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* Returns CPU ns per message with `cnt` posted receives, the youngest matched first. */
static uint64_t cost_posted(struct core_match *m, unsigned cnt)
{
	uint64_t start = cost_clock_ns();

	for (unsigned i = 0; i < cnt; i++)
		post(m, &large_recvs[i], i * 3, 0x8000000000000000ull, i % 2 ? CORE_MATCH_ANY : 1);
	for (unsigned i = cnt; i-- > 0;)
		MUST(core_match_arrive(m, i * 3, 1) == &large_recvs[i]);
	return (cost_clock_ns() - start) / cnt;
}

/* Returns CPU ns per message with `cnt` unexpected messages, the youngest matched first. */
static uint64_t cost_unexpected(struct core_match *m, unsigned cnt)
{
	struct core_match_recv r = { .ignore = 0x8000000000000000ull };
	uint64_t start = cost_clock_ns();

	for (unsigned i = 0; i < cnt; i++)
		keep(m, &large_msgs[i], i * 3, 1);
	for (unsigned i = cnt; i-- > 0;) {
		r.tag = i * 3;
		r.src = i % 2 ? CORE_MATCH_ANY : 1;
		MUST(core_match_post(m, &r) == &large_msgs[i]);
	}
	return (cost_clock_ns() - start) / cnt;
}

/* Returns the minimum of several rounds, to exclude the load of other processes. */
static uint64_t cost_least(uint64_t (*run)(struct core_match *, unsigned), unsigned cnt)
{
	struct core_match *m = core_match_open();
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < COST_ROUNDS; i++) {
		uint64_t ns = run(m, cnt);

		least = ns < least ? ns : least;
	}
	core_match_close(m);
	return least + 1;
}

/* Returns CPU ns of a search in order, through half of a queue of `cnt`. */
static uint64_t cost_in_order(struct core_match *m, unsigned cnt)
{
	uint64_t start = cost_clock_ns();

	for (unsigned i = 0; i < IN_ORDER_CNT; i++)
		for (unsigned at = 0; at < cnt / 2; at++)
			MUST(*(volatile uint64_t *)&large_recvs[at].tag != UINT64_MAX);
	return (cost_clock_ns() - start) / IN_ORDER_CNT;
}

/*
 * Expects a cost far below that of a search in order: a few misses of the cache, which other
 * processes may have taken, against a queue of many times that.
 */
static void expect_flat(uint64_t (*run)(struct core_match *, unsigned))
{
	uint64_t hashed, in_order;
	int tries = 0;

	do {
		hashed = cost_least(run, LARGE_OBJS);
		in_order = cost_least(cost_in_order, LARGE_OBJS);
	} while (4 * hashed >= in_order && ++tries < COST_TRIES);

	cr_expect_lt(4 * hashed, in_order, "%" PRIu64 " ns each, %" PRIu64 " ns in order", hashed,
		     in_order);
}

Test(core_match_cost, cost_per_receive_does_not_grow_with_the_queue)
{
	expect_flat(cost_posted);
}

Test(core_match_cost, cost_per_message_does_not_grow_with_the_queue)
{
	expect_flat(cost_unexpected);
}

static size_t table_bytes(const struct core_match *m)
{
	size_t slots = 0;

	for (int s = 0; s < CORE_MATCH_SHAPES; s++) {
		if (m->recv_shapes[s].table.slots)
			slots += m->recv_shapes[s].table.mask + 1;
		if (m->msg_shapes[s].table.slots)
			slots += m->msg_shapes[s].table.mask + 1;
	}
	return slots * sizeof(struct core_match_slot);
}

Test(core_match_cost, a_large_queue_frees_its_memory_when_it_is_empty)
{
	struct core_match_recv r = { .src = 1 };
	struct core_match *m = core_match_open();

	for (unsigned i = 0; i < LARGE_OBJS; i++)
		post(m, &large_recvs[i], i, 0, 1);
	MUST(!core_match_arrive(m, LARGE_OBJS, 1));
	MUST(table_bytes(m) > 1 << 20);
	for (unsigned i = 0; i < LARGE_OBJS; i++)
		MUST(core_match_arrive(m, i, 1) == &large_recvs[i]);
	MUST(table_bytes(m) <= 1 << 20);
	for (unsigned i = 0; i < LARGE_OBJS; i++)
		keep(m, &large_msgs[i], i, 1);
	for (r.tag = LARGE_OBJS; r.tag-- > 0;)
		MUST(core_match_post(m, &r) == &large_msgs[r.tag]);
	MUST(table_bytes(m) <= 1 << 20);
	core_match_close(m);
}
