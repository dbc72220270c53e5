/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dev/shm/shm_share.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <rdma/fi_errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shm_pair.h"
#include "util/clock.h"
#include "util/param.h"

TestSuite(shm_share, .fini = pair_fini, .timeout = 200);

/* Returns true until both processes happen to run at once, or for very long. */
static bool patient(void)
{
	static uint64_t end;

	if (!end)
		end = util_clock_ns() + 100 * UTIL_NS_PER_S;
	return util_clock_ns() < end;
}

#define LEN   (4u << 20)
#define CROWD 40

/** Behaviour of the sender. */
enum sender {
	SENDER_POLLS, /* copies parts */
	SENDER_COMPUTES,
	SENDER_DEFERS, /* claims one part of each get and defers writing it */
	SENDER_FAILS,  /* claims one part of each get and fails to write it */
	SENDER_STOPS,  /* claims one part and stops */
};

static struct shm_dev *dev;
static struct transport transport;
static uint8_t *src, *dst;
static pid_t pid;

static uint8_t pattern(size_t i)
{
	return (uint8_t)(i * 31 + (i >> 8) * 7 + (i >> 16));
}

/* Claims a part like shm_share.c. Returns its index, or -1. */
static int claim_one(struct shm_offer *offer)
{
	uint64_t claim = __atomic_load_n(&offer->claim, __ATOMIC_ACQUIRE);
	uint32_t parts = __atomic_load_n(&offer->round.parts, __ATOMIC_RELAXED);

	if ((uint32_t)claim >= parts ||
	    !__atomic_compare_exchange_n(&offer->claim, &claim, claim + 1, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		return -1;
	return (int)(uint32_t)claim;
}

static void write_part(struct shm_offer *offer, int idx)
{
	struct shm_vec vec;

	shm_round_part(&offer->round, (uint32_t)idx, true, &vec);
	shm_bulk_put_vec(pair_shm_link(&transport), &vec);
}

static void sender_by_hand(enum sender how)
{
	struct shm_offer *offer = pair_shm_link(&transport)->peer_offer;
	uint32_t last = 0, gen;
	int idx;

	for (;;) {
		gen = (uint32_t)(__atomic_load_n(&offer->claim, __ATOMIC_RELAXED) >> 32);
		if (gen == last || (idx = claim_one(offer)) < 0)
			continue;
		last = gen;
		if (how == SENDER_STOPS)
			pause();
		if (how == SENDER_DEFERS) {
			usleep(20000);
			write_part(offer, idx);
		} else {
			__atomic_store_n(&offer->failed, 1, __ATOMIC_RELAXED);
		}
		__atomic_fetch_add(&offer->done, 1, __ATOMIC_RELEASE);
	}
}

static void sender(enum sender how)
{
	struct dev_event ev;

	if (how == SENDER_COMPUTES)
		pause();
	if (how != SENDER_POLLS)
		sender_by_hand(how);
	transport.link->ops->expose(transport.link, 1);
	for (;;)
		shm_dev_ops.poll((struct dev *)dev, &ev);
}

static void start(enum sender how)
{
	int sv[2], prot = PROT_READ | PROT_WRITE;
	char c = 0;
	size_t i;

	util_params.single_copy = 1;
	src = mmap(NULL, LEN, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	dst = mmap(NULL, LEN + CROWD * 64, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	pid = fork();
	cr_assert_geq(pid, 0);
	dev = pair_dev();
	for (i = 0; !pid && i < LEN; i++)
		src[i] = pattern(i);
	pair_join(dev, &transport, 4096, sv[!pid]);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		cr_assert_eq(write(sv[1], &c, 1), 1);
		sender(how);
		_exit(1);
	}
	cr_assert_eq(read(sv[0], &c, 1), 1);
	cr_assert(transport.link->caps & DEV_CAP_PUT);
}

static void stop(void)
{
	kill(pid, SIGKILL);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
}

/* Polls until the next get has ended. */
static struct dev_get *await(void)
{
	struct dev_event ev = { 0 };

	while (!shm_dev_ops.poll((struct dev *)dev, &ev) && patient())
		;
	cr_assert_eq(ev.kind, DEV_EV_GET);
	cr_assert_eq(ev.link, transport.link);
	return ev.get;
}

static void expect_bytes(size_t at, size_t from, size_t len)
{
	size_t i, bad = 0;

	for (i = 0; i < 32; i++)
		bad += dst[at - 32 + i] != 0xee || dst[at + len + i] != 0xee;
	for (i = 0; i < len; i++)
		bad += dst[at + i] != pattern(from + i);
	cr_assert_eq(bad, 0, "%zu of %zu bytes are wrong", bad, len);
}

/* Gets [from, from + len) and checks every byte. Returns the parts that the sender wrote. */
static uint32_t get_checked(size_t from, size_t len)
{
	struct iovec iov = { dst + 32, len };
	struct dev_get g = { .remote_addr = (uintptr_t)src + from,
			     .iov = &iov,
			     .iov_cnt = 1,
			     .len = len,
			     .status = 1 };

	memset(dst, 0xee, len + 64);
	cr_assert_eq(transport.link->ops->get(transport.link, &g), 0);
	cr_assert_eq(await(), &g);
	cr_assert_eq(g.status, 0);
	expect_bytes(32, from, len);
	return pair_shm_link(&transport)->share.round.parts - pair_shm_link(&transport)->share.mine;
}

static void get_many(int cnt)
{
	uint64_t seed = 0xfe7c4, r;

	for (; cnt; cnt--) {
		r = pair_rand(&seed);
		get_checked(r % 5000, r % 3 ? SHM_ROUND_MIN - 2 + (r >> 20) % 5
					    : (r >> 20) % (LEN - 5000) + 1);
	}
}

Test(shm_share, both_ends_copy_and_every_byte_is_right)
{
	uint32_t shared = 0;

	start(SENDER_POLLS);
	get_many(150);
	while (!shared && patient())
		shared = get_checked(0, LEN);
	cr_expect_gt(shared, 0, "the sender never helped");
	stop();
}

Test(shm_share, a_get_does_not_wait_for_a_computing_sender)
{
	start(SENDER_COMPUTES);
	cr_expect_eq(get_checked(0, LEN), 0);
	cr_expect_eq(dev->bulk_cnt, 0);
	stop();
}

/*
 * Starts `cnt` gets at once, of `len` bytes each from different places. Returns the number of
 * rounds.
 */
static uint32_t get_crowd(size_t cnt, size_t len)
{
	static struct iovec iov[CROWD];
	static struct dev_get g[CROWD];
	uint32_t gen = pair_shm_link(&transport)->share.gen;
	size_t i, room = len + 64;

	memset(dst, 0xee, cnt * room);
	for (i = 0; i < cnt; i++) {
		iov[i] = (struct iovec){ dst + i * room + 32, len };
		g[i] = (struct dev_get){ .remote_addr = (uintptr_t)src + i * 100,
					 .iov = &iov[i],
					 .iov_cnt = 1,
					 .len = len,
					 .status = 1 };
		cr_assert_eq(transport.link->ops->get(transport.link, &g[i]), 0);
	}
	for (i = 0; i < cnt; i++) {
		cr_assert_eq(await(), &g[i], "gets end in order");
		cr_assert_eq(g[i].status, 0);
		expect_bytes(i * room + 32, i * 100, len);
	}
	return pair_shm_link(&transport)->share.gen - gen;
}

Test(shm_share, waiting_gets_are_copied_together)
{
	start(SENDER_COMPUTES);
	cr_expect_eq(get_crowd(4, 64 << 10), 1);
	cr_expect_eq(get_crowd(5, 64 << 10), 2);
	cr_expect_eq(get_crowd(16, 2048), 1);
	cr_expect_eq(get_crowd(34, 2048), 2, "the last two are too short to be offered");
	cr_expect_eq(get_crowd(3, SHM_ROUND_LEN), 3);
	cr_expect_eq(dev->bulk_cnt, 0);
	stop();
}

Test(shm_share, both_ends_copy_a_round_of_several_gets)
{
	uint64_t seed = 0xc0d;
	int i;

	start(SENDER_POLLS);
	for (i = 0; i < 60; i++)
		get_crowd(1 + pair_rand(&seed) % CROWD, 1 + pair_rand(&seed) % (96 << 10));
	stop();
}

/* One page of the sender is missing: only the get of that page fails. */
Test(shm_share, one_get_of_a_round_can_fail)
{
	struct iovec iov[3];
	struct dev_get g[3];
	int i;

	start(SENDER_POLLS);
	memset(dst, 0xee, LEN + 64);
	for (i = 0; i < 3; i++) {
		iov[i] = (struct iovec){ dst + 32 + i * 65536, 60000 };
		g[i] = (struct dev_get){ .remote_addr = i == 1 ? 4096 : (uintptr_t)src,
					 .iov = &iov[i],
					 .iov_cnt = 1,
					 .len = 60000 };
		cr_assert_eq(transport.link->ops->get(transport.link, &g[i]), 0);
	}
	for (i = 0; i < 3; i++) {
		cr_assert_eq(await(), &g[i]);
		cr_expect_eq(g[i].status, i == 1 ? -FI_EFAULT : 0);
		if (i != 1)
			expect_bytes(32 + (size_t)i * 65536, 0, 60000);
	}
	stop();
}

/* Bounds the time that another thread waits for the domain's lock. */
Test(shm_share, one_poll_copies_at_most_one_part)
{
	struct iovec iov[2] = { { NULL, LEN / 2 }, { NULL, LEN / 2 } };
	struct dev_get g = { .iov = iov, .iov_cnt = 2, .len = LEN };
	struct dev_event ev;
	size_t i, polls = 0;

	start(SENDER_COMPUTES);
	g.remote_addr = (uintptr_t)src;
	for (int cnt = 1; cnt <= 2; cnt++) {
		iov[0] = (struct iovec){ dst, cnt == 1 ? LEN : LEN / 2 };
		iov[1].iov_base = dst + LEN / 2;
		g.iov_cnt = (size_t)cnt;
		memset(dst, 0xee, LEN);
		cr_assert_eq(transport.link->ops->get(transport.link, &g), 0);
		for (polls = 1; !shm_dev_ops.poll((struct dev *)dev, &ev); polls++)
			cr_assert_lt(polls, 1000);
		cr_expect_geq(polls, LEN / SHM_PART_MAX);
		for (i = 0; i < LEN && dst[i] == pattern(i); i++)
			;
		cr_expect_eq(i, LEN, "byte %zu is wrong", i);
	}
	stop();
}

/* The peer of another link writes whenever its last batch was received. */
Test(shm_share, a_stream_of_others_does_not_starve_a_get)
{
	struct shm_dev *other = pair_dev();
	struct transport from, to;
	struct dev_get g = { .iov_cnt = 1, .len = LEN };
	struct iovec iov = { NULL, LEN };
	struct dev_event ev = { 0 };

	start(SENDER_COMPUTES);
	pair_open(other, &from, 4096, dev, &to, 4096);
	iov.iov_base = dst;
	g.iov = &iov;
	g.remote_addr = (uintptr_t)src;
	cr_assert_eq(transport.link->ops->get(transport.link, &g), 0);
	pair_write(&from, 1);
	while (patient()) {
		if (!shm_dev_ops.poll((struct dev *)dev, &ev))
			continue;
		if (ev.kind == DEV_EV_GET)
			break;
		pair_write(&from, 1);
	}
	cr_expect_eq(ev.get, &g);
	cr_expect_eq(g.status, 0);
	stop();
}

Test(shm_share, polling_waits_for_a_part_that_the_sender_keeps)
{
	uint32_t late = 0;

	start(SENDER_DEFERS);
	while (late < 3 && patient())
		late += get_checked(7, LEN - 7);
	cr_expect_geq(late, 3);
	cr_expect_eq(dev->bulk_cnt, 0);
	stop();
}

Test(shm_share, a_part_that_the_sender_could_not_write_is_read)
{
	int i;

	start(SENDER_FAILS);
	for (i = 0; i < 10; i++)
		get_checked(0, LEN);
	stop();
}

/* Runs gets until the sender has claimed a part that it has not written yet. */
static void await_claimed_part(struct dev_get *g)
{
	const struct shm_link *link = pair_shm_link(&transport);
	struct dev_event ev;
	bool ended;

	while (patient()) {
		cr_assert_eq(transport.link->ops->get(transport.link, g), 0);
		for (ended = false; !ended && patient();) {
			ended = shm_dev_ops.poll((struct dev *)dev, &ev);
			if ((uint32_t)link->share.claim == link->share.round.parts &&
			    link->share.mine < link->share.round.parts &&
			    !__atomic_load_n(&link->ctrl->offer.done, __ATOMIC_RELAXED))
				return;
		}
	}
	cr_assert_fail("no part was claimed");
}

Test(shm_share, arm_fails_while_a_get_is_pending)
{
	struct iovec iov = { NULL, LEN };
	struct dev_get g = { .iov = &iov, .iov_cnt = 1, .len = LEN };

	start(SENDER_DEFERS);
	iov.iov_base = dst;
	g.remote_addr = (uintptr_t)src;
	await_claimed_part(&g);
	cr_expect_eq(shm_dev_ops.arm((struct dev *)dev), -FI_EAGAIN, "no event would end a sleep");
	transport.link->ops->detach(transport.link); /* waits for the writer of local memory */
	cr_expect_eq(pair_shm_link(&transport)->share.round.cnt, 0);
	cr_expect_eq(dev->bulk_cnt, 0);
	stop();
}

Test(shm_share, detaching_drops_pending_gets)
{
	struct iovec iov[2] = { { NULL, LEN / 2 }, { NULL, LEN / 2 } };
	struct dev_get g[2];
	struct dev_event ev;
	int i;

	start(SENDER_COMPUTES);
	for (i = 0; i < 2; i++) {
		iov[i].iov_base = dst + i * (LEN / 2);
		g[i] = (struct dev_get){
			.remote_addr = (uintptr_t)src, .iov = &iov[i], .iov_cnt = 1, .len = LEN / 2
		};
		cr_assert_eq(transport.link->ops->get(transport.link, &g[i]), 0);
	}
	cr_assert(!shm_dev_ops.poll((struct dev *)dev, &ev));
	transport.link->ops->detach(transport.link);
	cr_expect_eq(dev->bulk_cnt, 0);
	for (i = 0; i < 100; i++)
		cr_expect(!shm_dev_ops.poll((struct dev *)dev, &ev));
	stop();
}

Test(shm_share, detaching_does_not_wait_for_a_dead_sender)
{
	struct iovec iov = { NULL, LEN };
	struct dev_get g = { .iov = &iov, .iov_cnt = 1, .len = LEN };

	start(SENDER_STOPS);
	iov.iov_base = dst;
	g.remote_addr = (uintptr_t)src;
	await_claimed_part(&g);
	stop();
	transport.link->ops->detach(transport.link);
	cr_expect_eq(dev->bulk_cnt, 0);
}

static void *resume_later(void *arg)
{
	usleep(1300 * 1000);
	*(bool *)arg = true;
	kill(pid, SIGCONT);
	return NULL;
}

/* Runs gets until the sender is stopped between the claim of a part and its writing. */
static void stop_inside_a_part(struct dev_get *g)
{
	const struct shm_link *link = pair_shm_link(&transport);
	struct dev_event ev;

	while (patient()) {
		await_claimed_part(g);
		cr_assert_eq(kill(pid, SIGSTOP), 0);
		cr_assert_eq(waitpid(pid, NULL, WUNTRACED), pid);
		if (link->ctrl->offer.done != link->share.round.parts - link->share.mine)
			return;
		kill(pid, SIGCONT); /* too late */
		while (!shm_dev_ops.poll((struct dev *)dev, &ev))
			;
	}
	cr_assert_fail("no part was claimed");
}

/*
 * After detach the user may reuse the buffer: a later write of a stopped process would overwrite
 * it.
 */
Test(shm_share, detaching_waits_for_a_stopped_sender)
{
	struct iovec iov = { NULL, LEN };
	struct dev_get g = { .iov = &iov, .iov_cnt = 1, .len = LEN };
	bool resumed = false;
	pthread_t thread;
	size_t k, bad = 0;

	start(SENDER_DEFERS);
	iov.iov_base = dst;
	g.remote_addr = (uintptr_t)src;
	stop_inside_a_part(&g);
	pthread_create(&thread, NULL, resume_later, &resumed);
	transport.link->ops->detach(transport.link);
	cr_expect(resumed, "a part was not written yet");
	memset(dst, 0x11, LEN);
	pthread_join(thread, NULL);
	usleep(100 * 1000);
	for (k = 0; k < LEN; k++)
		bad += dst[k] != 0x11;
	cr_expect_eq(bad, 0, "%zu bytes were written afterwards", bad);
	stop();
}

Test(shm_share, a_malformed_offer_is_harmless)
{
	static const uint32_t counts[] = {
		0, 1, 2, SHM_ROUND_GETS, SHM_ROUND_GETS + 1, UINT32_MAX
	};
	static const uint64_t words[] = { 0, 1, 1ull << 47, UINT64_MAX - 1, UINT64_MAX };
	struct shm_dev *da = pair_dev(), *db = pair_dev();
	struct shm_offer *offer;
	struct transport a, b;
	int i, k, n, gen = 1;

	util_params.single_copy = 1;
	pair_open(da, &a, 1024, db, &b, 1024);
	offer = pair_shm_link(&b)->peer_offer;
	b.link->ops->expose(b.link, 1);
	for (i = 0; i < 6; i++)
		for (k = 0; k < 5; k++)
			for (n = 0; n < 5; n++) {
				offer->round.cnt = counts[i];
				offer->round.parts = counts[(i + k + n) % 6];
				offer->round.of[0].src = words[k];
				offer->round.of[0].dst = words[n];
				offer->round.of[0].len = words[(k + n) % 5];
				offer->claim = (uint64_t)gen++ << 32;
				pair_write(&a, 1);
				cr_assert(pair_expect(db, &b, 1, 3));
				cr_assert(!pair_expect(db, &b, 1, 3));
			}
	b.link->ops->expose(b.link, -1);
	cr_expect_eq(db->bulk_cnt, 0);
}
