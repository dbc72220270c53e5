/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Merged core domains: one lock, one progress. Work that progress continues, and sleep. */
#include "core/core_dom.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>

#define DOMS 4

struct counted {
	struct core_progress base;
	int progress;
	bool busy;
	bool armed;
};

static struct core_dom doms[DOMS];
static struct counted engines[DOMS];
static int opened;

static struct counted *counted_of(struct core_progress *base)
{
	return UTIL_CONTAINER_OF(base, struct counted, base);
}

static int fake_open(const struct core_upcalls *up, struct core_progress **base)
{
	*base = &engines[opened++].base;
	return 0;
}

static void fake_close(struct core_progress *base)
{
}

static void fake_progress(struct core_progress *base)
{
	counted_of(base)->progress++;
}

static int fake_arm(struct core_progress *base)
{
	struct counted *counted = counted_of(base);

	counted->armed = !counted->busy;
	return counted->busy ? -FI_EAGAIN : 0;
}

static void fake_disarm(struct core_progress *base)
{
	counted_of(base)->armed = false;
}

static const struct core_progress_ops ops = {
	.open = fake_open,
	.close = fake_close,
	.progress = fake_progress,
	.arm = fake_arm,
	.disarm = fake_disarm,
};

static void setup(void)
{
	static const struct core_limits limits;

	for (int i = 0; i < DOMS; i++)
		cr_assert_eq(core_dom_init(&doms[i], &ops, NULL, &limits, true), 0);
}

static void teardown(void)
{
	for (int i = 0; i < DOMS; i++)
		core_dom_fini(&doms[i]);
}

TestSuite(core_dom, .init = setup, .fini = teardown);

static void merge(int a, int b)
{
	core_dom_lock(&doms[a]);
	core_dom_lock(&doms[b]);
	core_dom_merge(&doms[a], &doms[b]);
	core_dom_unlock(&doms[a]);
}

static void expect_progress(int of, int n0, int n1, int n2, int n3)
{
	core_dom_lock(&doms[of]);
	core_dom_progress(&doms[of]);
	core_dom_unlock(&doms[of]);
	cr_expect_eq(engines[0].progress, n0);
	cr_expect_eq(engines[1].progress, n1);
	cr_expect_eq(engines[2].progress, n2);
	cr_expect_eq(engines[3].progress, n3);
	for (int i = 0; i < DOMS; i++)
		engines[i].progress = 0;
}

Test(core_dom, a_single_domain_makes_its_own_progress)
{
	expect_progress(1, 0, 1, 0, 0);
	cr_expect_not(core_dom_is_merged(&doms[1]));
	cr_expect_eq(core_dom_arm(&doms[1]), 0);
}

Test(core_dom, progress_of_one_runs_each_merged_domain_once)
{
	merge(0, 2);
	expect_progress(0, 1, 0, 1, 0);
	expect_progress(2, 1, 0, 1, 0);
	expect_progress(2, 1, 0, 1, 0);
	expect_progress(1, 0, 1, 0, 0);
	merge(1, 3);
	merge(0, 1);
	for (int i = 0; i < DOMS; i++)
		expect_progress(i, 1, 1, 1, 1);
}

Test(core_dom, merged_domains_have_one_lock)
{
	merge(0, 1);
	merge(2, 3);
	cr_expect_eq(core_dom_bias(&doms[0]), core_dom_bias(&doms[1]));
	cr_expect_neq(core_dom_bias(&doms[0]), core_dom_bias(&doms[2]));
	merge(0, 3);
	for (int i = 1; i < DOMS; i++)
		cr_expect_eq(core_dom_bias(&doms[0]), core_dom_bias(&doms[i]));
	core_dom_lock(&doms[3]);
	cr_expect_not(core_dom_trylock(&doms[1]));
	core_dom_unlock(&doms[3]);
	cr_expect(core_dom_trylock(&doms[1]));
	core_dom_unlock(&doms[1]);
}

static int armed_cnt(void)
{
	int cnt = 0;

	for (int i = 0; i < DOMS; i++)
		cnt += engines[i].armed;
	return cnt;
}

Test(core_dom, merged_domains_are_armed_together)
{
	merge(0, 1);
	merge(0, 2);
	for (int i = 0; i < 3; i++) {
		cr_expect_eq(core_dom_arm(&doms[i]), 0);
		cr_expect_eq(armed_cnt(), 3);
		core_dom_disarm(&doms[(i + 1) % 3]);
		cr_expect_eq(armed_cnt(), 0);
		expect_progress(i, 1, 1, 1, 0);
	}
}

Test(core_dom, a_busy_domain_prevents_sleep_of_merged_ones)
{
	merge(0, 1);
	engines[1].busy = true;
	for (int i = 0; i < 2; i++)
		cr_expect_eq(core_dom_arm(&doms[i]), -FI_EAGAIN);
	cr_expect_eq(core_dom_arm(&doms[2]), 0);
	engines[1].busy = false;
	cr_expect_eq(core_dom_arm(&doms[0]), 0);
}

static int works[DOMS];

struct fake_work {
	struct core_work work;
	int of;
	bool stuck; /* retry does nothing */
};

static void count_work(struct core_work *work)
{
	struct fake_work *fake = UTIL_CONTAINER_OF(work, struct fake_work, work);

	if (++works[fake->of] < 3)
		core_dom_work(&doms[fake->of], work);
}

Test(core_dom, queued_work_of_a_merged_domain_continues)
{
	struct fake_work fakes[2] = { { .work.run = count_work, .of = 0 },
				      { .work.run = count_work, .of = 1 } };

	merge(0, 1);
	for (int i = 0; i < 2; i++) {
		util_list_init(&fakes[i].work.link);
		core_dom_work(&doms[i], &fakes[i].work);
	}
	for (int n = 1; n <= 4; n++) {
		expect_progress(n & 1, 1, 1, 0, 0);
		cr_expect_eq(works[0], n < 3 ? n : 3);
		cr_expect_eq(works[1], n < 3 ? n : 3);
		for (int i = 0; i < 2; i++)
			cr_expect_eq(core_dom_arm(&doms[i]), n < 3 ? -FI_EAGAIN : 0);
	}
}

Test(core_dom, a_lock_from_before_the_merge_is_exchanged)
{
	struct util_bias *old = core_dom_bias(&doms[1]);

	merge(0, 1);
	util_bias_lock(old);
	core_dom_lock_again(&doms[1], old);
	cr_expect_not(core_dom_trylock(&doms[0]));
	cr_expect(util_bias_trylock(old));
	util_bias_unlock(old);
	core_dom_unlock(&doms[1]);
}

static bool retry_work(struct core_work *work)
{
	struct fake_work *fake = UTIL_CONTAINER_OF(work, struct fake_work, work);

	works[fake->of]++;
	if (fake->stuck)
		core_dom_work(&doms[fake->of], work);
	return !fake->stuck;
}

Test(core_dom, work_that_the_engine_unblocks_is_tried_before_sleep)
{
	struct fake_work fake = { .work = { .run = count_work, .retry = retry_work },
				  .of = 1,
				  .stuck = true };

	merge(0, 1);
	util_list_init(&fake.work.link);
	core_dom_work(&doms[1], &fake.work);
	for (int n = 1; n <= 3; n++) {
		cr_expect_eq(core_dom_arm(&doms[n & 1]), 0);
		cr_expect_eq(works[1], n);
	}
	expect_progress(0, 1, 1, 0, 0);
	cr_expect(util_list_is_empty(&fake.work.link), "work was still queued");
	core_dom_work(&doms[1], &fake.work);
	fake.stuck = false;
	cr_expect_eq(core_dom_arm(&doms[0]), -FI_EAGAIN, "something was done");
	cr_expect_eq(core_dom_arm(&doms[0]), 0);
}
