/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dev/shm/shm_share.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <unistd.h>

#include "shm_far.h"

TestSuite(shm_share, .fini = pair_fini, .timeout = 200);

static void get_many(int cnt)
{
	uint64_t seed = 0xfe7c4, r;

	for (; cnt; cnt--) {
		r = pair_rand(&seed);
		far_get_checked(r % 5000, r % 3 ? SHM_ROUND_MIN - 2 + (r >> 20) % 5
						: (r >> 20) % (FAR_LEN - 5000) + 1);
	}
}

Test(shm_share, both_ends_copy_and_every_byte_is_right)
{
	uint32_t shared = 0;

	far_start(FAR_POLLS);
	get_many(150);
	while (!shared && far_patient())
		shared = far_get_checked(0, FAR_LEN);
	cr_expect_gt(shared, 0, "the sender never helped");
	far_stop();
}

Test(shm_share, a_get_does_not_wait_for_a_computing_sender)
{
	far_start(FAR_COMPUTES);
	cr_expect_eq(far_get_checked(0, FAR_LEN), 0);
	cr_expect_eq(far.dev->bulk_cnt, 0);
	far_stop();
}

/*
 * Starts `cnt` gets at once, of `len` bytes each from different places. Returns the number of
 * rounds.
 */
static uint32_t get_crowd(size_t cnt, size_t len)
{
	static struct iovec iov[FAR_CROWD];
	static struct dev_get g[FAR_CROWD];
	uint32_t gen = pair_shm_link(&far.transport)->share.gen;
	size_t i, room = len + 64;

	memset(far.dst, 0xee, cnt * room);
	for (i = 0; i < cnt; i++) {
		iov[i] = (struct iovec){ far.dst + i * room + 32, len };
		g[i] = (struct dev_get){ .remote_addr = (uintptr_t)far.src + i * 100,
					 .iov = &iov[i],
					 .iov_cnt = 1,
					 .len = len };
	}
	far_get_exposed(g, cnt);
	for (i = 0; i < cnt; i++) {
		cr_assert_eq(far_await(), &g[i], "gets end in order");
		cr_assert_eq(g[i].status, 0);
		far_expect_bytes(i * room + 32, i * 100, len);
	}
	return pair_shm_link(&far.transport)->share.gen - gen;
}

Test(shm_share, waiting_gets_are_copied_together)
{
	far_start(FAR_COMPUTES);
	cr_expect_eq(get_crowd(4, 64 << 10), 1);
	cr_expect_eq(get_crowd(5, 64 << 10), 2);
	cr_expect_eq(get_crowd(16, 2048), 1);
	cr_expect_eq(get_crowd(34, 2048), 2, "the last two are too short to be offered");
	cr_expect_eq(get_crowd(3, SHM_ROUND_LEN), 3);
	cr_expect_eq(far.dev->bulk_cnt, 0);
	far_stop();
}

Test(shm_share, both_ends_copy_a_round_of_several_gets)
{
	uint64_t seed = 0xc0d;
	int i;

	far_start(FAR_POLLS);
	for (i = 0; i < 60; i++)
		get_crowd(1 + pair_rand(&seed) % FAR_CROWD, 1 + pair_rand(&seed) % (96 << 10));
	far_stop();
}

/* One page of the sender is missing: only the get of that page fails. */
Test(shm_share, one_get_of_a_round_can_fail)
{
	struct iovec iov[3];
	struct dev_get g[3];
	int i;

	far_start(FAR_POLLS);
	memset(far.dst, 0xee, FAR_LEN + 64);
	for (i = 0; i < 3; i++) {
		iov[i] = (struct iovec){ far.dst + 32 + i * 65536, 60000 };
		g[i] = (struct dev_get){ .remote_addr = i == 1 ? 4096 : (uintptr_t)far.src,
					 .iov = &iov[i],
					 .iov_cnt = 1,
					 .len = 60000 };
	}
	far_get_exposed(g, 3);
	for (i = 0; i < 3; i++) {
		cr_assert_eq(far_await(), &g[i]);
		cr_expect_eq(g[i].status, i == 1 ? -FI_EFAULT : 0);
		if (i != 1)
			far_expect_bytes(32 + (size_t)i * 65536, 0, 60000);
	}
	far_stop();
}

/* Bounds the time that another thread waits for the domain's lock. */
Test(shm_share, one_poll_copies_at_most_one_part)
{
	struct iovec iov[2] = { { NULL, FAR_LEN / 2 }, { NULL, FAR_LEN / 2 } };
	struct dev_get g = { .iov = iov, .iov_cnt = 2, .len = FAR_LEN };
	struct dev_event ev;
	size_t i, polls = 0;

	far_start(FAR_COMPUTES);
	g.remote_addr = (uintptr_t)far.src;
	for (int cnt = 1; cnt <= 2; cnt++) {
		iov[0] = (struct iovec){ far.dst, cnt == 1 ? FAR_LEN : FAR_LEN / 2 };
		iov[1].iov_base = far.dst + FAR_LEN / 2;
		g.iov_cnt = (size_t)cnt;
		memset(far.dst, 0xee, FAR_LEN);
		cr_assert_eq(far.transport.link->ops->get(far.transport.link, &g), 0);
		for (polls = 1; !shm_dev_ops.poll((struct dev *)far.dev, &ev); polls++)
			cr_assert_lt(polls, 1000);
		cr_expect_geq(polls, FAR_LEN / (cnt == 1 ? SHM_PART_MAX : SHM_PART_LOCAL));
		for (i = 0; i < FAR_LEN && far.dst[i] == far_pattern(i); i++)
			;
		cr_expect_eq(i, FAR_LEN, "byte %zu is wrong", i);
	}
	far_stop();
}

/* Where both ends have a copy to make, each makes its own. */
Test(shm_share, a_get_is_not_offered_to_a_peer_that_has_bytes_to_get)
{
	struct iovec iov = { NULL, FAR_LEN };
	struct dev_get g = { .iov = &iov, .iov_cnt = 1, .len = FAR_LEN };
	struct shm_link *link;
	struct dev_mem *mem;

	far_start(FAR_POLLS);
	link = (struct shm_link *)far.transport.link;
	iov.iov_base = far.dst + 32;
	g.remote_addr = (uintptr_t)far.src;
	for (uint32_t round = 1; round <= 2; round++) {
		uint32_t offers = link->share.gen;

		if (round == 2)
			cr_assert_eq(link->base.ops->expose(&link->base, far.dst, 1, &mem), 0);
		memset(far.dst, 0xee, FAR_LEN + 64);
		far_get_exposed(&g, 1);
		cr_assert_eq(far_await(), &g);
		far_expect_bytes(32, 0, FAR_LEN);
		cr_expect_eq(link->share.gen != offers, round == 1);
	}
	link->base.ops->unexpose(&link->base, mem);
	far_stop();
}

/* The sender may wait for the processor on which this end would wait for the sender. */
Test(shm_share, a_get_is_not_offered_on_a_shared_processor)
{
	struct shm_link *link;

	far_start(FAR_POLLS);
	link = (struct shm_link *)far.transport.link;
	far.shares_processor = true;
	far_get_checked(0, 256 << 10);
	cr_expect_eq(link->share.gen, 0);
	far.shares_processor = false;
	far_get_checked(0, 256 << 10);
	cr_expect_eq(link->share.gen, 1);
	far_stop();
}

/* The peer of another link writes whenever its last batch was received. */
Test(shm_share, a_stream_of_others_does_not_starve_a_get)
{
	struct shm_dev *other = pair_dev();
	struct transport from, to;
	struct dev_get g = { .iov_cnt = 1, .len = FAR_LEN };
	struct iovec iov = { NULL, FAR_LEN };
	struct dev_event ev = { 0 };

	far_start(FAR_COMPUTES);
	pair_open(other, &from, 4096, far.dev, &to, 4096);
	iov.iov_base = far.dst;
	g.iov = &iov;
	g.remote_addr = (uintptr_t)far.src;
	cr_assert_eq(far.transport.link->ops->get(far.transport.link, &g), 0);
	pair_write(&from, 1);
	while (far_patient()) {
		if (!shm_dev_ops.poll((struct dev *)far.dev, &ev))
			continue;
		if (ev.kind == DEV_EV_GET)
			break;
		pair_write(&from, 1);
	}
	cr_expect_eq(ev.get, &g);
	cr_expect_eq(g.status, 0);
	far_stop();
}

Test(shm_share, polling_waits_for_a_part_that_the_sender_keeps)
{
	uint32_t late = 0;

	far_start(FAR_DEFERS);
	while (late < 3 && far_patient())
		late += far_get_checked(7, FAR_LEN - 7);
	cr_expect_geq(late, 3);
	cr_expect_eq(far.dev->bulk_cnt, 0);
	far_stop();
}

Test(shm_share, a_part_that_the_sender_could_not_write_is_read)
{
	int i;

	far_start(FAR_FAILS);
	for (i = 0; i < 10; i++)
		far_get_checked(0, FAR_LEN);
	far_stop();
}
