/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Ends of shared copies: senders that stop or fail, links that are closed or withdrawn. */
#include "dev/shm/shm_share.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shm_far.h"
#include "util/clock.h"

TestSuite(shm_share_ends, .fini = pair_fini, .timeout = 200);

/* Runs gets until the sender has claimed a part that it has not written yet. */
static void await_claimed_part(struct dev_get *g)
{
	const struct shm_link *link = pair_shm_link(&far.transport);
	struct dev_event ev;
	bool ended;

	while (far_patient()) {
		far_get_exposed(g, 1);
		for (ended = false; !ended && far_patient();) {
			ended = shm_dev_ops.poll((struct dev *)far.dev, &ev);
			if (link->share.state == SHM_SHARE_OFFERED &&
			    (uint32_t)link->share.claim == link->share.round.parts &&
			    link->share.mine < link->share.round.parts &&
			    __atomic_load_n(&link->ctrl->offer.done, __ATOMIC_RELAXED) >> 32 !=
				    link->share.gen)
				return;
		}
	}
	cr_assert_fail("no part was claimed");
}

/* Begins a get of FAR_LEN bytes, of which the sender has claimed a part and stops. */
static void begin_stopped_get(struct dev_get *g, struct iovec *iov)
{
	*iov = (struct iovec){ NULL, FAR_LEN };
	*g = (struct dev_get){ .iov = iov, .iov_cnt = 1, .len = FAR_LEN };
	far_start(FAR_STOPS);
	iov->iov_base = far.dst;
	g->remote_addr = (uintptr_t)far.src;
	await_claimed_part(g);
	cr_assert_eq(waitpid(far.pid, NULL, WUNTRACED), far.pid);
}

/* Lets a stopped sender go on, and waits until it has reported its part. */
static void resume_sender(uint32_t gen)
{
	struct shm_offer *offer = &pair_shm_link(&far.transport)->ctrl->offer;

	cr_assert_eq(kill(far.pid, SIGCONT), 0);
	while (__atomic_load_n(&offer->done, __ATOMIC_ACQUIRE) >> 32 != gen && far_patient())
		usleep(1000);
}

static size_t count_other_than(uint8_t byte)
{
	size_t k, bad = 0;

	for (k = 0; k < FAR_LEN; k++)
		bad += far.dst[k] != byte;
	return bad;
}

Test(shm_share_ends, arm_fails_while_a_get_is_pending)
{
	struct iovec iov = { NULL, FAR_LEN };
	struct dev_get g = { .iov = &iov, .iov_cnt = 1, .len = FAR_LEN };

	far_start(FAR_DEFERS);
	iov.iov_base = far.dst;
	g.remote_addr = (uintptr_t)far.src;
	await_claimed_part(&g);
	cr_expect_eq(shm_dev_ops.arm((struct dev *)far.dev), -FI_EAGAIN,
		     "no event would end a sleep");
	far.transport.link->ops->detach(far.transport.link);
	cr_expect_eq(pair_shm_link(&far.transport)->share.round.cnt, 0);
	cr_expect_eq(far.dev->bulk_cnt, 0);
	far_stop();
}

Test(shm_share_ends, detaching_drops_pending_gets)
{
	struct iovec iov[2] = { { NULL, FAR_LEN / 2 }, { NULL, FAR_LEN / 2 } };
	struct dev_get g[2];
	struct dev_event ev;
	int i;

	far_start(FAR_COMPUTES);
	for (i = 0; i < 2; i++) {
		iov[i].iov_base = far.dst + i * (FAR_LEN / 2);
		g[i] = (struct dev_get){ .remote_addr = (uintptr_t)far.src,
					 .iov = &iov[i],
					 .iov_cnt = 1,
					 .len = FAR_LEN / 2 };
		cr_assert_eq(far.transport.link->ops->get(far.transport.link, &g[i]), 0);
	}
	cr_assert(!shm_dev_ops.poll((struct dev *)far.dev, &ev));
	far.transport.link->ops->detach(far.transport.link);
	cr_expect_eq(far.dev->bulk_cnt, 0);
	for (i = 0; i < 100; i++)
		cr_expect(!shm_dev_ops.poll((struct dev *)far.dev, &ev));
	far_stop();
}

Test(shm_share_ends, detaching_does_not_wait_for_a_dead_sender)
{
	struct iovec iov;
	struct dev_get g;
	uint64_t start_ns;

	begin_stopped_get(&g, &iov);
	far_stop();
	start_ns = util_clock_ns();
	far.transport.link->ops->detach(far.transport.link);
	cr_expect_lt(util_clock_ns() - start_ns, SHM_SHARE_GRACE_NS);
	cr_expect_eq(far.dev->bulk_cnt, 0);
}

/* The rest of the copy is made here, and what the sender then does comes too late. */
Test(shm_share_ends, a_get_does_not_wait_for_ever_for_a_stopped_sender)
{
	struct iovec iov;
	struct dev_get g;

	begin_stopped_get(&g, &iov);
	cr_assert_eq(far_await(), &g);
	cr_expect_eq(g.status, 0);
	for (size_t k = 0; k < FAR_LEN; k++)
		cr_assert_eq(far.dst[k], far_pattern(k), "byte %zu", k);
	memset(far.dst, 0x11, FAR_LEN);
	resume_sender(pair_shm_link(&far.transport)->share.owed_gen);
	cr_expect_eq(count_other_than(0x11), 0, "the sender has written into a buffer given back");
	cr_expect_eq(far.dev->bulk_cnt, 0);
	far_stop();
}

/* A late call of the sender would read the ranges of the next round. */
Test(shm_share_ends, nothing_is_offered_while_the_sender_owes_a_part)
{
	const struct shm_link *link;
	struct iovec iov;
	struct dev_get g;
	uint32_t gen;

	begin_stopped_get(&g, &iov);
	cr_assert_eq(far_await(), &g);
	link = pair_shm_link(&far.transport);
	gen = link->share.gen;
	far_get_exposed(&g, 1);
	cr_assert_eq(far_await(), &g);
	cr_expect_eq(link->share.gen, gen, "read by the receiver alone");
	resume_sender(gen);
	far_get_exposed(&g, 1);
	cr_assert_eq(far_await(), &g);
	cr_expect_eq(link->share.gen, gen + 1, "offered again");
	far_stop();
}

/* After detach the user may reuse the buffer. */
Test(shm_share_ends, after_detach_a_stopped_sender_writes_nothing)
{
	struct iovec iov;
	struct dev_get g;

	begin_stopped_get(&g, &iov);
	far.transport.link->ops->detach(far.transport.link); /* the test's timeout is the limit */
	cr_expect_eq(far.dev->bulk_cnt, 0);
	memset(far.dst, 0x11, FAR_LEN);
	resume_sender(pair_shm_link(&far.transport)->share.owed_gen);
	cr_expect_eq(count_other_than(0x11), 0, "the sender has written into a buffer given back");
	far_stop();
}

Test(shm_share_ends, others_go_on_while_a_link_is_withdrawn)
{
	struct transport from, to;
	struct dev_event ev = { 0 };
	struct iovec iov;
	struct dev_get g;
	uint32_t others = 0;

	begin_stopped_get(&g, &iov);
	pair_open(pair_dev(), &from, 4096, far.dev, &to, 4096);
	cr_assert(!far.transport.link->ops->withdraw(far.transport.link),
		  "a call may be in the kernel");
	pair_write(&from, 1);
	while (far_patient()) {
		if (!shm_dev_ops.poll((struct dev *)far.dev, &ev))
			continue;
		if (ev.kind != DEV_EV_IMM)
			break;
		others++;
		pair_write(&from, 1);
	}
	cr_expect_eq(ev.kind, DEV_EV_WITHDRAWN);
	cr_expect_eq(ev.link, far.transport.link);
	cr_expect_gt(others, 1000);
	cr_expect(far.transport.link->ops->withdraw(far.transport.link), "nothing is left");
	far_stop();
}

Test(shm_share_ends, withdrawing_without_a_part_of_the_sender_takes_no_time)
{
	struct iovec iov = { NULL, FAR_LEN };
	struct dev_get g = { .iov = &iov, .iov_cnt = 1, .len = FAR_LEN };
	struct dev_event ev;

	far_start(FAR_COMPUTES);
	iov.iov_base = far.dst;
	g.remote_addr = (uintptr_t)far.src;
	cr_expect(far.transport.link->ops->withdraw(far.transport.link));
	far_get_exposed(&g, 1);
	cr_assert(!shm_dev_ops.poll((struct dev *)far.dev, &ev));
	cr_expect(far.transport.link->ops->withdraw(far.transport.link));
	cr_expect_eq(far.dev->bulk_cnt, 0);
	far_stop();
}
