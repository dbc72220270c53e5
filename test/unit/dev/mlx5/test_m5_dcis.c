/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dev/mlx5/m5_dcis.h"

#include "sq_device.h"
#include "support/rng.h"

#define DCIS  3u
#define LINKS 8u
#define MANY  200u

TestSuite(m5_dcis, .timeout = 200);

static struct m5_dcis pool;
static struct sq_device device[DCIS];
static uint64_t words[DCIS][64];
static struct m5_dlink link[MANY];

static void setup(uint32_t links)
{
	m5_dcis_init(&pool);
	for (uint32_t i = 0; i < DCIS; i++) {
		sq_device_init(&device[i], 64, 256, 0);
		pool.dci[i].sq = device[i].sq;
		pool.dci[i].sq.uar = &device[i].uar;
		m5_sparse_init(&pool.dci[i].users, words[i], 64);
	}
	pool.cnt = DCIS;
	pool.link_cnt = links;
	for (uint32_t i = 0; i < MANY; i++)
		m5_dlink_init(&link[i]);
}

static void teardown(void)
{
	for (uint32_t i = 0; i < DCIS; i++)
		sq_device_fini(&device[i]);
}

/* Posts one WQE of a link. Returns whether it got a DCI. */
static bool post(uint32_t n)
{
	struct m5_dci *dci = m5_dcis_take(&pool, &link[n]);
	struct m5_wqe wqe;
	uint8_t flags;

	if (!dci)
		return false;
	for (uint32_t i = 0; i < DCIS; i++)
		cr_assert_eq(pool.dci[i].owner == &link[n], &pool.dci[i] == dci, "one at most");
	cr_assert_eq(link[n].dci, dci);
	if (!m5_sq_has_room(&dci->sq, 2))
		return false;
	m5_wqe_begin(&wqe, m5_sq_reserve(&dci->sq, 2));
	wqe.end = (uint8_t *)wqe.ctrl + 2 * M5_BB;
	flags = m5_dcis_signal(&pool, dci, 2);
	m5_wqe_end(&wqe, dci->sq.pi, M5_OP_WRITE_IMM, dci->sq.qpn, flags, 0);
	m5_sq_commit(&dci->sq, 2, flags);
	m5_sq_ring(&dci->sq);
	m5_dcis_posted(&pool, dci);
	return true;
}

/* The device executes everything that is posted to DCI `i`, and its completions are polled. */
static void execute(uint32_t i)
{
	struct sq_device *d = &device[i];

	d->sq.ci = pool.dci[i].sq.ci;
	sq_device_run(d);
	while (d->head != d->tail)
		cr_assert(m5_sq_retire(&pool.dci[i].sq, d->done[d->head++ % SQ_DEVICE_MAX]));
	if (m5_dci_is_idle(&pool.dci[i]))
		m5_dcis_pass_on(&pool, &pool.dci[i]);
}

static uint32_t index_of(const struct m5_dlink *l)
{
	return (uint32_t)(l->dci - pool.dci);
}

Test(m5_dcis, links_keep_their_initiators_while_there_is_one_for_each)
{
	uint32_t at[DCIS];

	setup(DCIS);
	for (uint32_t n = 0; n < DCIS; n++) {
		cr_assert(post(n));
		at[n] = index_of(&link[n]);
	}
	for (uint32_t round = 0; round < 500; round++) {
		cr_assert(post(round % DCIS));
		cr_assert_eq(index_of(&link[round % DCIS]), at[round % DCIS]);
		if (round % 16 == 0)
			for (uint32_t i = 0; i < DCIS; i++)
				execute(i);
	}
	for (uint32_t i = 0; i < DCIS; i++)
		cr_expect_lt(device[i].head, device[i].wqes / 4, "few WQEs report");
	teardown();
}

Test(m5_dcis, with_more_links_every_wqe_reports)
{
	setup(DCIS + 1);
	for (uint32_t i = 0; i < 20; i++)
		cr_assert(post(0));
	execute(index_of(&link[0]));
	cr_expect_eq(device[index_of(&link[0])].head, 20);
	teardown();
}

static void execute_all(void)
{
	for (uint32_t i = 0; i < DCIS; i++)
		execute(i);
}

/* Posts one WQE and executes it. Returns whether that changed a target. */
static bool change(uint32_t n)
{
	bool had_one = link[n].dci;

	cr_assert(post(n));
	execute_all();
	return !had_one;
}

Test(m5_dcis, of_links_that_post_often_the_one_idle_for_longest_leaves)
{
	setup(LINKS);
	for (uint32_t n = 0; n < 2 * DCIS; n++)
		change(n % DCIS);
	change(0);
	cr_assert(post(3));
	cr_expect_null(link[1].dci, "link 1 posted before links 2 and 0");
	cr_expect_not_null(link[0].dci);
	cr_expect_not_null(link[2].dci);
	teardown();
}

/* The one idle for longest would be the next to post: each post would change a target. */
Test(m5_dcis, links_that_post_in_turn_leave_some_targets_in_place)
{
	uint32_t changes = 0;

	setup(LINKS);
	for (uint32_t i = 0; i < 1000 * LINKS; i++)
		changes += change(i % LINKS);
	cr_expect_leq(changes, 1000 * (LINKS - DCIS + 1) + DCIS, "%u", changes);
	teardown();
}

Test(m5_dcis, a_link_that_posts_often_is_left_by_none)
{
	uint32_t changes = 0;

	setup(LINKS);
	change(0);
	change(0);
	for (uint32_t i = 0; i < 1000; i++) {
		change(1 + i % (LINKS - 1));
		changes += change(0);
	}
	cr_expect_eq(changes, 0);
	teardown();
}

Test(m5_dcis, a_link_that_posted_often_and_stopped_leaves_first)
{
	setup(LINKS);
	change(0);
	change(0);
	for (uint32_t i = 0; link[0].dci; i++) {
		cr_assert_leq(i, 2 * M5_DCI_RECENT);
		change(1 + i % (LINKS - 1));
	}
	teardown();
}

Test(m5_dcis, a_busy_initiator_is_never_taken)
{
	setup(LINKS);
	for (uint32_t n = 0; n < DCIS; n++)
		cr_assert(post(n));
	for (uint32_t n = DCIS; n < LINKS; n++)
		cr_expect(!post(n));
	for (uint32_t n = 0; n < DCIS; n++)
		cr_expect_not_null(link[n].dci);
	teardown();
}

Test(m5_dcis, those_that_wait_are_served_in_order)
{
	setup(LINKS);
	for (uint32_t n = 0; n < DCIS; n++)
		cr_assert(post(n));
	cr_assert(!post(5));
	cr_assert(!post(4));
	cr_assert(!post(5));
	execute(0);
	cr_expect_not_null(link[5].dci);
	cr_expect(!post(4), "the idle one is reserved");
	cr_expect(post(5));
	execute(1);
	cr_expect_not_null(link[4].dci);
	cr_expect(post(4));
	teardown();
}

Test(m5_dcis, a_reservation_ends)
{
	uint32_t refusals = 0;

	setup(LINKS);
	for (uint32_t n = 0; n < DCIS; n++)
		cr_assert(post(n));
	cr_assert(!post(5)); /* and it never comes back */
	execute(0);
	while (!post(6))
		cr_assert_leq(++refusals, M5_DCI_RESERVED);
	cr_expect_geq(refusals, M5_DCI_RESERVED);
	cr_expect_null(link[5].dci);
	teardown();
}

Test(m5_dcis, a_link_that_others_wait_for_has_a_quota)
{
	uint32_t posts = 0;

	setup(LINKS);
	for (uint32_t n = 0; n < DCIS; n++)
		cr_assert(post(n));
	cr_assert(!post(5));
	while (posts < 1000 && post(0))
		posts++;
	cr_expect_leq(posts, M5_DCI_QUOTA);
	execute(0);
	cr_expect_null(link[0].dci);
	cr_expect_not_null(link[5].dci);
	teardown();
}

Test(m5_dcis, a_link_over_its_quota_does_not_leave_a_busy_initiator)
{
	struct m5_dci *busy;

	setup(LINKS);
	for (uint32_t n = 0; n < DCIS; n++)
		cr_assert(post(n));
	for (uint32_t i = 1; i < M5_DCI_QUOTA; i++)
		if (!post(0))
			execute(index_of(&link[0]));
	cr_assert(!post(5));
	while (post(0))
		;
	busy = link[0].dci;
	execute(index_of(&link[1]));
	cr_expect_not_null(link[5].dci);
	execute(index_of(&link[2]));
	cr_expect_eq(link[0].dci, busy, "it waits, and its writes are under way");
	cr_expect(post(6), "another takes the idle one");
	execute((uint32_t)(busy - pool.dci));
	cr_expect_eq(link[0].dci, busy, "none was before it");
	cr_expect(post(0));
	teardown();
}

/* Two over their quota wait for each other, if a link may wait for its own idle initiator. */
Test(m5_dcis, a_link_over_its_quota_keeps_an_idle_initiator_that_no_other_can_take)
{
	setup(LINKS);
	for (uint32_t n = 0; n < DCIS; n++)
		cr_assert(post(n));
	for (uint32_t i = 1; i < M5_DCI_QUOTA; i++)
		if (!post(0))
			cr_assert_fail("room for %u", i);
	cr_assert(!post(5));
	cr_assert(!post(0), "over its quota, and busy");
	execute(index_of(&link[1]));
	cr_assert(post(5));
	for (uint32_t i = 0; i < 2 * M5_DCI_QUOTA; i++) {
		cr_assert(post(5), "post %u: none waits but link 0, for its own", i);
		execute(index_of(&link[5]));
	}
	execute(index_of(&link[0]));
	cr_expect(post(0));
	teardown();
}

Test(m5_dcis, what_does_not_report_is_made_to_when_another_link_waits)
{
	setup(DCIS);
	for (uint32_t n = 0; n < DCIS; n++)
		cr_assert(post(n));
	for (uint32_t i = 0; i < DCIS; i++)
		execute(i);
	cr_assert(!m5_dci_is_idle(&pool.dci[0]), "no report so far");
	pool.link_cnt++;
	cr_assert(!post(5));
	for (uint32_t i = 0; i < DCIS; i++)
		execute(i);
	cr_expect_not_null(link[5].dci);
	cr_expect(post(5));
	teardown();
}

Test(m5_dcis, a_link_that_leaves_lets_others_in)
{
	setup(LINKS);
	for (uint32_t n = 0; n < DCIS; n++)
		cr_assert(post(n));
	cr_assert(!post(4));
	cr_assert(!post(5));
	m5_dcis_leave(&pool, &link[4]);
	execute(1);
	cr_expect_not_null(link[5].dci, "the one that left does not wait any more");
	m5_dcis_leave(&pool, &link[5]);
	cr_expect_null(link[5].dci);
	cr_expect_null(pool.dci[1].owner);
	teardown();
}

/* Random posts and completions: each link gets its share of posts. */
Test(m5_dcis, no_link_starves)
{
	struct rng rng = { .state = 20261126 };
	uint32_t cnt[LINKS] = { 0 };

	setup(LINKS);
	for (uint32_t round = 0; round < 100000; round++) {
		uint32_t n = (uint32_t)rng_below(&rng, LINKS);

		cnt[n] += post(n);
		if (rng_below(&rng, 3) == 0)
			execute((uint32_t)rng_below(&rng, DCIS));
	}
	for (uint32_t n = 0; n < LINKS; n++)
		cr_expect_gt(cnt[n], 100000 / LINKS / 20, "link %u: %u posts", n, cnt[n]);
	teardown();
}

/* Links post in the same order in each round, as the engine's list of those with bytes to send. */
Test(m5_dcis, no_link_of_many_starves)
{
	uint32_t cnt[MANY] = { 0 };

	setup(MANY);
	for (uint32_t round = 0; round < 2000; round++) {
		for (uint32_t n = 0; n < MANY; n++)
			cnt[n] += post(n);
		for (uint32_t i = 0; i < DCIS; i++)
			execute(i);
	}
	for (uint32_t n = 0; n < MANY; n++)
		cr_expect_gt(cnt[n], 2000 * DCIS / MANY / 3, "link %u: %u posts", n, cnt[n]);
	teardown();
}
