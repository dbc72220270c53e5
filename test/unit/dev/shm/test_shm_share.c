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
	SENDER_STOPS,  /* claims one part of each get and stops before it writes it */
};

/** Exposures that the receiver requests, in memory of both. */
struct desk {
	uint32_t want, have; /* requests, and those that the sender has fulfilled */
	size_t cnt;
	uint64_t addr[CROWD], len[CROWD], key[CROWD];
};

static struct shm_dev *dev;
static struct transport transport;
static struct desk *desk;
static enum sender sender_is;
static uint8_t *src, *dst;
static pid_t pid;

static uint8_t pattern(size_t i)
{
	return (uint8_t)(i * 31 + (i >> 8) * 7 + (i >> 16));
}

/* Claims a part of a generation other than `last`. Returns its index and *gen, or -1. */
static int claim_one(struct shm_offer *offer, uint32_t last, uint32_t *gen)
{
	uint64_t claim = __atomic_load_n(&offer->claim, __ATOMIC_ACQUIRE);
	uint32_t parts = __atomic_load_n(&offer->parts, __ATOMIC_RELAXED);

	*gen = (uint32_t)(claim >> 32);
	if (*gen == last || (uint32_t)claim >= parts ||
	    !__atomic_compare_exchange_n(&offer->claim, &claim, claim + 1, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		return -1;
	return (int)(uint32_t)claim;
}

/* Writes a part of the only get. Returns true if all of it was written. */
static bool write_part(struct shm_offer *offer, int idx)
{
	struct iovec local;
	uint64_t from, to;

	shm_part_of(offer->first.len, offer->parts, (uint32_t)idx, &from, &to);
	local = (struct iovec){ (uint8_t *)(uintptr_t)desk->addr[0] + offer->first.off + from,
				to - from };
	return shm_bulk_put_vec(pair_shm_link(&transport), &local, 1, &offer->dst[idx - 1], 1,
				to - from);
}

static void sender_by_hand(enum sender how)
{
	struct shm_offer *offer = pair_shm_link(&transport)->peer_offer;
	uint32_t last = 0, gen;
	bool written = false;
	int idx;

	for (;;) {
		idx = claim_one(offer, last, &gen);
		if (idx < 0)
			continue;
		last = gen;
		if (how == SENDER_STOPS)
			raise(SIGSTOP);
		if (how == SENDER_DEFERS)
			usleep(20000);
		if (how != SENDER_FAILS)
			written = write_part(offer, idx);
		__atomic_store_n(&offer->done,
				 shm_offer_word(gen, written ? 1 : 1 | SHM_OFFER_FAILED),
				 __ATOMIC_RELEASE);
	}
}

/* Exposes what the receiver requests, in place of what it requested before. */
static void serve_desk(struct dev_mem **mem, size_t *cnt)
{
	const struct dev_link_ops *ops = transport.link->ops;

	if (__atomic_load_n(&desk->want, __ATOMIC_ACQUIRE) == desk->have)
		return;
	while (*cnt)
		ops->unexpose(transport.link, mem[--*cnt]);
	for (; *cnt < desk->cnt; ++*cnt) {
		cr_assert_eq(ops->expose(transport.link, (void *)(uintptr_t)desk->addr[*cnt],
					 desk->len[*cnt], &mem[*cnt]),
			     0);
		desk->key[*cnt] = mem[*cnt]->remote_key;
	}
	__atomic_store_n(&desk->have, desk->want, __ATOMIC_RELEASE);
}

static void sender(enum sender how)
{
	struct dev_mem *mem[CROWD];
	struct dev_event ev;
	size_t cnt = 0;

	if (how == SENDER_COMPUTES)
		pause();
	if (how != SENDER_POLLS)
		sender_by_hand(how);
	for (;;) {
		serve_desk(mem, &cnt);
		shm_dev_ops.poll((struct dev *)dev, &ev);
	}
}

static void start(enum sender how)
{
	int sv[2], prot = PROT_READ | PROT_WRITE;
	char c = 0;
	size_t i;

	util_params.single_copy = 1;
	sender_is = how;
	src = mmap(NULL, LEN, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	dst = mmap(NULL, LEN + CROWD * 64, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	desk = mmap(NULL, sizeof(*desk), prot, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
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

/* Starts `cnt` gets of exposures of their bytes. */
static void get_exposed(struct dev_get *g, size_t cnt)
{
	size_t i;

	desk->cnt = cnt;
	for (i = 0; i < cnt; i++) {
		desk->addr[i] = g[i].remote_addr;
		desk->len[i] = g[i].len;
	}
	__atomic_store_n(&desk->want, desk->want + 1, __ATOMIC_RELEASE);
	while (sender_is == SENDER_POLLS &&
	       __atomic_load_n(&desk->have, __ATOMIC_ACQUIRE) != desk->want && patient())
		;
	for (i = 0; i < cnt; i++) {
		g[i].remote_key = desk->key[i];
		g[i].status = 1;
		cr_assert_eq(transport.link->ops->get(transport.link, &g[i]), 0);
	}
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
	struct dev_get g = {
		.remote_addr = (uintptr_t)src + from, .iov = &iov, .iov_cnt = 1, .len = len
	};

	memset(dst, 0xee, len + 64);
	get_exposed(&g, 1);
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
					 .len = len };
	}
	get_exposed(g, cnt);
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
	}
	get_exposed(g, 3);
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
		get_exposed(g, 1);
		for (ended = false; !ended && patient();) {
			ended = shm_dev_ops.poll((struct dev *)dev, &ev);
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

/* Begins a get of LEN bytes, of which the sender has claimed a part and stops. */
static void begin_stopped_get(struct dev_get *g, struct iovec *iov)
{
	*iov = (struct iovec){ NULL, LEN };
	*g = (struct dev_get){ .iov = iov, .iov_cnt = 1, .len = LEN };
	start(SENDER_STOPS);
	iov->iov_base = dst;
	g->remote_addr = (uintptr_t)src;
	await_claimed_part(g);
	cr_assert_eq(waitpid(pid, NULL, WUNTRACED), pid);
}

/* Lets a stopped sender go on, and waits until it has reported its part. */
static void resume_sender(uint32_t gen)
{
	struct shm_offer *offer = &pair_shm_link(&transport)->ctrl->offer;

	cr_assert_eq(kill(pid, SIGCONT), 0);
	while (__atomic_load_n(&offer->done, __ATOMIC_ACQUIRE) >> 32 != gen && patient())
		usleep(1000);
}

static size_t count_other_than(uint8_t byte)
{
	size_t k, bad = 0;

	for (k = 0; k < LEN; k++)
		bad += dst[k] != byte;
	return bad;
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
	transport.link->ops->detach(transport.link);
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
	struct iovec iov;
	struct dev_get g;
	uint64_t start_ns;

	begin_stopped_get(&g, &iov);
	stop();
	start_ns = util_clock_ns();
	transport.link->ops->detach(transport.link);
	cr_expect_lt(util_clock_ns() - start_ns, SHM_SHARE_GRACE_NS);
	cr_expect_eq(dev->bulk_cnt, 0);
}

/* The rest of the copy is made here, and what the sender then does comes too late. */
Test(shm_share, a_get_does_not_wait_for_ever_for_a_stopped_sender)
{
	struct iovec iov;
	struct dev_get g;

	begin_stopped_get(&g, &iov);
	cr_assert_eq(await(), &g);
	cr_expect_eq(g.status, 0);
	for (size_t k = 0; k < LEN; k++)
		cr_assert_eq(dst[k], pattern(k), "byte %zu", k);
	memset(dst, 0x11, LEN);
	resume_sender(pair_shm_link(&transport)->share.owed_gen);
	cr_expect_eq(count_other_than(0x11), 0, "the sender has written into a buffer given back");
	cr_expect_eq(dev->bulk_cnt, 0);
	stop();
}

/* A late call of the sender would read the ranges of the next round. */
Test(shm_share, nothing_is_offered_while_the_sender_owes_a_part)
{
	const struct shm_link *link;
	struct iovec iov;
	struct dev_get g;
	uint32_t gen;

	begin_stopped_get(&g, &iov);
	cr_assert_eq(await(), &g);
	link = pair_shm_link(&transport);
	gen = link->share.gen;
	get_exposed(&g, 1);
	cr_assert_eq(await(), &g);
	cr_expect_eq(link->share.gen, gen, "read by the receiver alone");
	resume_sender(gen);
	get_exposed(&g, 1);
	cr_assert_eq(await(), &g);
	cr_expect_eq(link->share.gen, gen + 1, "offered again");
	stop();
}

/* After detach the user may reuse the buffer. */
Test(shm_share, after_detach_a_stopped_sender_writes_nothing)
{
	struct iovec iov;
	struct dev_get g;

	begin_stopped_get(&g, &iov);
	transport.link->ops->detach(transport.link); /* the test's timeout is the limit */
	cr_expect_eq(dev->bulk_cnt, 0);
	memset(dst, 0x11, LEN);
	resume_sender(pair_shm_link(&transport)->share.owed_gen);
	cr_expect_eq(count_other_than(0x11), 0, "the sender has written into a buffer given back");
	stop();
}

Test(shm_share, others_go_on_while_a_link_is_withdrawn)
{
	struct transport from, to;
	struct dev_event ev = { 0 };
	struct iovec iov;
	struct dev_get g;
	uint32_t others = 0;

	begin_stopped_get(&g, &iov);
	pair_open(pair_dev(), &from, 4096, dev, &to, 4096);
	cr_assert(!transport.link->ops->withdraw(transport.link), "a call may be in the kernel");
	pair_write(&from, 1);
	while (patient()) {
		if (!shm_dev_ops.poll((struct dev *)dev, &ev))
			continue;
		if (ev.kind != DEV_EV_IMM)
			break;
		others++;
		pair_write(&from, 1);
	}
	cr_expect_eq(ev.kind, DEV_EV_WITHDRAWN);
	cr_expect_eq(ev.link, transport.link);
	cr_expect_gt(others, 1000);
	cr_expect(transport.link->ops->withdraw(transport.link), "nothing is left");
	stop();
}

Test(shm_share, withdrawing_without_a_part_of_the_sender_takes_no_time)
{
	struct iovec iov = { NULL, LEN };
	struct dev_get g = { .iov = &iov, .iov_cnt = 1, .len = LEN };
	struct dev_event ev;

	start(SENDER_COMPUTES);
	iov.iov_base = dst;
	g.remote_addr = (uintptr_t)src;
	cr_expect(transport.link->ops->withdraw(transport.link));
	get_exposed(&g, 1);
	cr_assert(!shm_dev_ops.poll((struct dev *)dev, &ev));
	cr_expect(transport.link->ops->withdraw(transport.link));
	cr_expect_eq(dev->bulk_cnt, 0);
	stop();
}

/** Words that no sender writes which follows the rules, during the receiver's generation `gen`. */
static uint64_t impossible(int which, uint32_t gen, bool *is_claim)
{
	const uint64_t claims[] = { 0,
				    UINT64_MAX,
				    shm_offer_word(gen, 0),
				    shm_offer_word(gen, 100000),
				    shm_offer_word(gen + 1, 2),
				    shm_offer_word(gen, SHM_OFFER_CLOSED) };
	const uint64_t dones[] = { shm_offer_word(gen, 100000), shm_offer_word(gen, UINT32_MAX),
				   shm_offer_word(gen, 1) };

	*is_claim = which < 6;
	return *is_claim ? claims[which] : dones[which - 6];
}

Test(shm_share, impossible_words_end_the_link_and_nothing_else)
{
	struct shm_dev *da = pair_dev(), *db = pair_dev();
	static uint8_t from[SHM_PART_MAX * 4], to[SHM_PART_MAX * 4];
	struct iovec iov = { to, sizeof(to) };

	util_params.single_copy = 1;
	for (int which = 0; which < 9; which++) {
		struct dev_get g = { .iov = &iov, .iov_cnt = 1, .len = sizeof(to) };
		struct transport a, b;
		struct dev_event ev = { 0 };
		uint64_t word;
		bool is_claim;

		pair_open(da, &a, 1024, db, &b, 1024);
		g.remote_addr = (uintptr_t)from;
		cr_assert_eq(a.link->ops->get(a.link, &g), 0);
		while (!pair_shm_link(&a)->share.mine) /* the first part of four */
			cr_assert(!shm_dev_ops.poll((struct dev *)da, &ev));
		word = impossible(which, pair_shm_link(&a)->share.gen, &is_claim);
		if (is_claim)
			pair_shm_link(&a)->ctrl->offer.claim = word;
		else
			pair_shm_link(&a)->ctrl->offer.done = word;
		while (!shm_dev_ops.poll((struct dev *)da, &ev) && patient())
			;
		cr_expect_eq(ev.kind, DEV_EV_DOWN, "word %d", which);
		cr_expect_eq(ev.status, -FI_EIO);
		cr_expect_eq(ev.link, a.link);
		cr_expect(a.link->ops->withdraw(a.link));
		cr_expect(!shm_dev_ops.poll((struct dev *)da, &ev), "the last event");
		pair_close(&a, &b);
	}
}
