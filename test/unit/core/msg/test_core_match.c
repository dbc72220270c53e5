/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests of matching. The oracle is a list that is searched from its beginning.
 *
 * Each round draws an alphabet of tags, masks and sources, then alternates between phases that
 * fill one of the queues and phases that drain it: post, arrive (and keep), find, peek, cancel,
 * take. Now and then two sources become one. After every step both queues are compared with the
 * oracle's, and the matcher's invariants (core_match.c) are checked. COPYRPC_TEST_SEED and
 * COPYRPC_TEST_STEPS as in rng.h.
 */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/msg/core_match.h"
#include "support/rng.h"
#include "unit/core/msg/match_queued.h"
#include "unit/core/must.h"
#include "unit/core/no_memory.h"
#include "util/clock.h"

#define OBJS_MAX 512

struct model {
	struct core_match *m;
	struct rng rng;
	/* Alphabet. */
	unsigned tag_cnt, mask_cnt, src_cnt;
	bool any;
	uint64_t tags[OBJS_MAX], masks[32];
	/* Oracle: queued objects, oldest first, and free ones. */
	struct core_match_recv *posted[OBJS_MAX];
	struct core_match_msg *unexpected[OBJS_MAX];
	unsigned posted_cnt, unexpected_cnt;
	struct core_match_recv *recv_free[OBJS_MAX];
	struct core_match_msg *msg_free[OBJS_MAX];
	unsigned recv_free_cnt, msg_free_cnt;
};

static struct core_match_recv recvs[OBJS_MAX];
static struct core_match_msg msgs[OBJS_MAX];

static bool oracle_accepts(const struct core_match_recv *r, uint64_t tag, uint64_t src)
{
	return (r->tag & ~r->ignore) == (tag & ~r->ignore) &&
	       (r->src == CORE_MATCH_ANY || r->src == src);
}

static int oracle_find_posted(const struct model *o, uint64_t tag, uint64_t src)
{
	for (unsigned i = 0; i < o->posted_cnt; i++) {
		if (oracle_accepts(o->posted[i], tag, src))
			return (int)i;
	}
	return -1;
}

static int oracle_find_unexpected(const struct model *o, const struct core_match_recv *r)
{
	for (unsigned i = 0; i < o->unexpected_cnt; i++) {
		if (oracle_accepts(r, o->unexpected[i]->tag, o->unexpected[i]->src))
			return (int)i;
	}
	return -1;
}

static void oracle_drop_posted(struct model *o, unsigned i)
{
	o->recv_free[o->recv_free_cnt++] = o->posted[i];
	memmove(&o->posted[i], &o->posted[i + 1], (--o->posted_cnt - i) * sizeof(o->posted[0]));
}

static void oracle_drop_unexpected(struct model *o, unsigned i)
{
	o->msg_free[o->msg_free_cnt++] = o->unexpected[i];
	memmove(&o->unexpected[i], &o->unexpected[i + 1],
		(--o->unexpected_cnt - i) * sizeof(o->unexpected[0]));
}

static void check_shapes(const struct core_match *m, unsigned posted_cnt)
{
	size_t hashed = 0;

	for (int s = 0; s < CORE_MATCH_SHAPES; s++) {
		const struct core_match_shape *r = &m->recv_shapes[s];
		const struct core_match_shape *u = &m->msg_shapes[s];

		MUST(!!r->cnt == !!(m->live & 1u << s));
		MUST(r->table.key_cnt <= r->cnt);
		MUST(!!r->table.key_cnt == !!r->cnt);
		MUST(u->table.key_cnt <= (m->indexed & 1u << s ? m->unexpected_cnt : 0));
		hashed += r->cnt;
	}
	for (const struct util_list *it = m->excess.next; it != &m->excess; it = it->next)
		hashed++;
	MUST(hashed == m->hashed_cnt);
	MUST(core_match_posted_cnt(m) == posted_cnt);
}

static void check_all(struct model *o)
{
	struct util_list *it = core_match_posted(o->m)->next;

	for (unsigned i = 0; i < o->posted_cnt; i++, it = it->next)
		MUST(it == &o->posted[i]->order);
	MUST(it == core_match_posted(o->m));
	it = core_match_unexpected(o->m)->next;
	for (unsigned i = 0; i < o->unexpected_cnt; i++, it = it->next)
		MUST(it == &o->unexpected[i]->order);
	MUST(it == core_match_unexpected(o->m));
	MUST(o->m->unexpected_cnt == o->unexpected_cnt);
	check_shapes(o->m, o->posted_cnt);
}

static uint64_t draw_tag(struct model *o)
{
	return o->tags[rng_below(&o->rng, o->tag_cnt)];
}

static uint64_t draw_src(struct model *o)
{
	return rng_below(&o->rng, o->src_cnt);
}

static void draw_recv(struct model *o, struct core_match_recv *r)
{
	r->tag = draw_tag(o);
	r->ignore = o->masks[rng_below(&o->rng, o->mask_cnt)];
	r->src = o->any && rng_chance(&o->rng, 1, 3) ? CORE_MATCH_ANY : draw_src(o);
}

static void step_post(struct model *o)
{
	struct core_match_recv *r;
	struct core_match_msg *got;
	int want;

	if (!o->recv_free_cnt)
		return;
	r = o->recv_free[--o->recv_free_cnt];
	memset(r, 0x5A, sizeof(*r));
	draw_recv(o, r);
	want = oracle_find_unexpected(o, r);
	got = core_match_post(o->m, r);
	MUST(got == (want < 0 ? NULL : o->unexpected[want]));
	if (want < 0) {
		o->posted[o->posted_cnt++] = r;
		return;
	}
	o->recv_free[o->recv_free_cnt++] = r;
	oracle_drop_unexpected(o, (unsigned)want);
}

static void step_arrive(struct model *o)
{
	uint64_t tag = draw_tag(o), src = draw_src(o);
	int want = oracle_find_posted(o, tag, src);
	struct core_match_recv *expected = want < 0 ? NULL : o->posted[want];
	struct core_match_msg *msg;

	MUST(core_match_find(o->m, tag, src) == expected);
	MUST(core_match_arrive(o->m, tag, src) == expected);
	if (want >= 0) {
		oracle_drop_posted(o, (unsigned)want);
	} else if (o->msg_free_cnt) {
		msg = o->msg_free[--o->msg_free_cnt];
		memset(msg, 0x5A, sizeof(*msg));
		msg->tag = tag;
		msg->src = src;
		core_match_keep(o->m, msg);
		o->unexpected[o->unexpected_cnt++] = msg;
	}
}

static void step_peek(struct model *o)
{
	struct core_match_recv r;
	int want;

	draw_recv(o, &r);
	want = oracle_find_unexpected(o, &r);
	MUST(core_match_peek(o->m, r.tag, r.ignore, r.src) ==
	     (want < 0 ? NULL : o->unexpected[want]));
}

static void step_cancel(struct model *o)
{
	unsigned i;

	if (!o->posted_cnt)
		return;
	i = (unsigned)rng_below(&o->rng, o->posted_cnt);
	core_match_cancel(o->m, o->posted[i]);
	oracle_drop_posted(o, i);
}

static void step_take(struct model *o)
{
	unsigned i;

	if (!o->unexpected_cnt)
		return;
	i = (unsigned)rng_below(&o->rng, o->unexpected_cnt);
	core_match_take(o->m, o->unexpected[i]);
	oracle_drop_unexpected(o, i);
}

/* The objects of the oracle are the same ones, so it needs no change. */
static void step_rename(struct model *o)
{
	uint64_t from = draw_src(o), to = draw_src(o);

	core_match_rename(o->m, from, to);
	for (unsigned i = 0; from != to && i < o->posted_cnt; i++)
		MUST(o->posted[i]->src != from);
}

/* Steps drawn with odds that make the queues grow (even phases) or shrink (odd ones). */
static void run_phase(struct model *o, unsigned phase, unsigned steps)
{
	unsigned post = (unsigned)rng_below(&o->rng, 10);
	unsigned out = phase % 2 ? 4 + (unsigned)rng_below(&o->rng, 12) : 1;

	while (steps--) {
		unsigned pick = (unsigned)rng_below(&o->rng, 11 + 2 * out);

		if (rng_chance(&o->rng, 1, 500))
			step_rename(o);
		if (pick < post)
			step_post(o);
		else if (pick < 10)
			step_arrive(o);
		else if (pick < 11)
			step_peek(o);
		else if (pick < 11 + out)
			step_cancel(o);
		else
			step_take(o);
		check_all(o);
	}
}

static void draw_alphabet(struct model *o)
{
	static const unsigned tag_cnts[] = { 1, 2, 7, 60, OBJS_MAX };
	static const unsigned mask_cnts[] = { 1, 2, 4, 8, 9, 32 };

	o->tag_cnt = tag_cnts[rng_below(&o->rng, 5)];
	o->mask_cnt = mask_cnts[rng_below(&o->rng, 6)];
	o->src_cnt = 1 + (unsigned)rng_below(&o->rng, rng_chance(&o->rng, 1, 2) ? 3 : 60);
	o->any = rng_chance(&o->rng, 2, 3);
	for (unsigned i = 0; i < o->tag_cnt; i++)
		o->tags[i] = rng_chance(&o->rng, 1, 2) ? i : rng_next(&o->rng);
	for (unsigned i = 1; i < o->mask_cnt; i++)
		o->masks[i] = rng_chance(&o->rng, 1, 2) ? rng_below(&o->rng, 16)
							: rng_next(&o->rng) | rng_next(&o->rng);
	o->masks[0] = rng_chance(&o->rng, 1, 4) ? UINT64_MAX : 0;
}

static void run_empty(struct model *o)
{
	while (o->posted_cnt) {
		step_cancel(o);
		check_all(o);
	}
	while (o->unexpected_cnt) {
		step_take(o);
		check_all(o);
	}
	MUST(!o->m->hashed_cnt && !o->m->live);
	MUST(o->m->indexed == 0);
}

static void open_round(struct model *o, uint64_t seed, uint64_t first_seq)
{
	memset(o, 0, sizeof(*o));
	o->rng.state = seed;
	o->m = core_match_open();
	MUST(o->m);
	o->m->seq = o->m->past_cnt = first_seq;
	for (unsigned i = 0; i < OBJS_MAX; i++) {
		o->recv_free[o->recv_free_cnt++] = &recvs[i];
		o->msg_free[o->msg_free_cnt++] = &msgs[i];
	}
	draw_alphabet(o);
}

/* Runs all phases, without memory from phase `starve` on (-1: never). */
static void run_round(struct model *o, unsigned steps, int starve)
{
	struct no_memory *taken = NULL;

	for (int phase = 0; phase < 6; phase++) {
		if (phase == starve)
			taken = no_memory_begin();
		run_phase(o, (unsigned)phase, steps / 6);
	}
	run_empty(o);
	if (starve >= 0)
		no_memory_end(taken);
	core_match_close(o->m);
}

static void run_rounds(uint64_t first_seq, int rounds, bool starve)
{
	static struct model o;
	uint64_t only = rng_env("COPYRPC_TEST_SEED", 0);
	unsigned steps = (unsigned)rng_env("COPYRPC_TEST_STEPS", 3000);
	uint64_t seed = only ? only : util_clock_ns();

	for (int i = 0; i < (only ? 1 : rounds); i++) {
		fprintf(stderr, "core_match: COPYRPC_TEST_SEED=%" PRIu64 "\n", seed);
		open_round(&o, seed++, first_seq);
		run_round(&o, steps, starve ? i % 3 : -1);
	}
}

Test(core_match, random_operations_match_as_a_list_scan)
{
	run_rounds(0, 60, false);
}

Test(core_match, order_survives_the_overflow_of_sequence_numbers)
{
	run_rounds(UINT64_MAX - 300, 20, false);
}

Test(core_match, without_memory_matching_is_correct_but_slower)
{
	if (!NO_MEMORY_WORKS)
		cr_skip("a sanitizer needs the memory itself");
	run_rounds(0, 30, true);
}

/* --- single cases --------------------------------------------------------------------------- */

Test(core_match, equal_receives_are_matched_in_the_order_of_posting)
{
	static const unsigned lens[] = { 1, CORE_MATCH_LAZY, CORE_MATCH_LAZY + 1, 100 };
	struct core_match *m = core_match_open();

	for (unsigned n = 0; n < sizeof(lens) / sizeof(lens[0]); n++) {
		for (unsigned i = 0; i < lens[n]; i++)
			post(m, &recvs[i], 7, 0, 3);
		MUST(!core_match_arrive(m, 8, 3));
		MUST(!core_match_arrive(m, 7, 2));
		for (unsigned i = 0; i < lens[n]; i++)
			MUST(core_match_arrive(m, 7, 3) == &recvs[i]);
		MUST(!core_match_arrive(m, 7, 3));
	}
	core_match_close(m);
}

Test(core_match, receives_taken_in_the_order_of_posting_are_never_hashed)
{
	struct core_match *m = core_match_open();

	for (unsigned lap = 0; lap < 3; lap++) {
		for (unsigned i = 0; i < 100; i++)
			post(m, &recvs[i], i, 0, 3);
		for (unsigned i = 0; i < 100; i++)
			MUST(core_match_arrive(m, i, 3) == &recvs[i]);
		MUST(!m->recv_shapes[0].table.slots);
	}
	core_match_close(m);
}

Test(core_match, a_hashed_receive_is_older_than_unhashed_ones)
{
	struct core_match *m = core_match_open();

	for (unsigned i = 0; i < 2 * CORE_MATCH_LAZY; i++)
		post(m, &recvs[i], i % 2, 0, 3);
	MUST(!core_match_arrive(m, 2, 3));
	MUST(m->hashed_cnt == 2 * CORE_MATCH_LAZY);
	for (unsigned i = 0; i < CORE_MATCH_LAZY; i++)
		post(m, &recvs[100 + i], i % 2, 0, 3);
	MUST(core_match_fresh_cnt(m) == CORE_MATCH_LAZY);
	for (unsigned i = 1; i < 2 * CORE_MATCH_LAZY; i += 2)
		MUST(core_match_arrive(m, 1, 3) == &recvs[i]);
	for (unsigned i = 1; i < CORE_MATCH_LAZY; i += 2)
		MUST(core_match_arrive(m, 1, 3) == &recvs[100 + i]);
	for (unsigned i = 0; i < 2 * CORE_MATCH_LAZY; i += 2)
		MUST(core_match_arrive(m, 0, 3) == &recvs[i]);
	MUST(!m->hashed_cnt);
	for (unsigned i = 0; i < CORE_MATCH_LAZY; i += 2)
		MUST(core_match_arrive(m, 0, 3) == &recvs[100 + i]);
	MUST(util_list_is_empty(core_match_posted(m)));
	core_match_close(m);
}

Test(core_match, equal_messages_are_taken_in_the_order_of_arrival)
{
	static const unsigned lens[] = { 1, CORE_MATCH_SCAN, CORE_MATCH_SCAN + 1, 100 };
	struct core_match *m = core_match_open();
	struct core_match_recv r = { .tag = 7, .ignore = 0, .src = 3 };

	for (unsigned n = 0; n < sizeof(lens) / sizeof(lens[0]); n++) {
		for (unsigned i = 0; i < lens[n]; i++)
			keep(m, &msgs[i], 7, 3);
		MUST(!core_match_peek(m, 8, 0, 3));
		MUST(!core_match_peek(m, 7, 0, 4));
		for (unsigned i = 0; i < lens[n]; i++) {
			MUST(core_match_peek(m, 7, 0, CORE_MATCH_ANY) == &msgs[i]);
			MUST(core_match_post(m, &r) == &msgs[i]);
		}
		MUST(!core_match_peek(m, 0, UINT64_MAX, CORE_MATCH_ANY));
	}
	core_match_close(m);
}

Test(core_match, the_oldest_receive_of_several_shapes_is_taken)
{
	struct core_match *m = core_match_open();

	for (unsigned i = 0; i < 40; i++)
		post(m, &recvs[i], 1000 + i, 0, 1);
	post(m, &recvs[40], 5, 0xF0, CORE_MATCH_ANY);
	post(m, &recvs[41], 5, 0, 1);
	post(m, &recvs[42], 5, 0, CORE_MATCH_ANY);
	MUST(core_match_arrive(m, 5, 1) == &recvs[40]);
	MUST(core_match_arrive(m, 5, 1) == &recvs[41]);
	MUST(core_match_arrive(m, 5, 1) == &recvs[42]);
	MUST(!core_match_arrive(m, 5, 1));
	for (unsigned i = 0; i < 40; i++)
		core_match_cancel(m, &recvs[i]);
	core_match_close(m);
}

Test(core_match, more_shapes_than_tables_still_match_in_order)
{
	struct core_match *m = core_match_open();

	for (unsigned i = 0; i < 64; i++)
		post(m, &recvs[i], 0, (uint64_t)1 << i, CORE_MATCH_ANY);
	MUST(!core_match_arrive(m, 3, 0));
	MUST(!util_list_is_empty(&m->excess));
	for (unsigned i = 63; i > 0; i--)
		MUST(core_match_arrive(m, (uint64_t)1 << i, 0) == &recvs[i]);
	MUST(core_match_arrive(m, 0, 0) == &recvs[0]);
	core_match_close(m);
}

/** Searches in vain with a mask of one bit, which is a shape of its own. */
static void search_by(struct core_match *m, unsigned bit)
{
	MUST(!core_match_peek(m, 1000, 1ull << bit, 0));
}

static bool has_index(const struct core_match *m, unsigned bit)
{
	for (int s = 0; s < CORE_MATCH_SHAPES; s++)
		if ((m->indexed & 1u << s) && m->msg_shapes[s].ignore == 1ull << bit)
			return true;
	return false;
}

Test(core_match, an_index_is_replaced_only_if_it_is_not_used)
{
	enum { CNT = 4 * CORE_MATCH_SCAN, FIRST = 40, NEW = FIRST + CORE_MATCH_SHAPES };
	struct core_match *m = core_match_open();
	unsigned i, bit;

	for (i = 0; i < CNT; i++) {
		msgs[i] = (struct core_match_msg){ .tag = i };
		core_match_keep(m, &msgs[i]);
	}
	for (bit = FIRST; bit < NEW; bit++)
		search_by(m, bit);
	search_by(m, NEW);
	for (bit = FIRST; bit < NEW; bit++)
		cr_expect(has_index(m, bit), "bit %u", bit);
	cr_expect_not(has_index(m, NEW));
	/* Searches use all indexes but the first, until the new one replaces it. */
	for (i = 0; i < CNT; i++)
		for (bit = FIRST + 1; bit <= NEW; bit++)
			search_by(m, bit);
	cr_expect_not(has_index(m, FIRST));
	for (bit = FIRST + 1; bit <= NEW; bit++)
		cr_expect(has_index(m, bit), "bit %u", bit);
	for (i = 0; i < CNT; i++)
		core_match_take(m, &msgs[i]);
	core_match_close(m);
}
