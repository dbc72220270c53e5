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

/* Until both processes happen to run at once, or hopelessly long. */
static bool patient(void)
{
	static uint64_t end;

	if (!end)
		end = util_clock_ns() + 100 * UTIL_NS_PER_S;
	return util_clock_ns() < end;
}

#define LEN (4u << 20)

/** What the sender does all day. */
enum sender {
	SENDER_POLLS, /* helps */
	SENDER_COMPUTES,
	SENDER_HOLDS, /* takes one piece of each fetch and keeps it a while */
	SENDER_FAILS, /* takes one piece of each fetch and cannot write it */
	SENDER_STOPS, /* takes one piece and no more is heard of it */
};

static struct shm_dev *dev;
static struct lane lane;
static uint8_t *src, *dst;
static pid_t pid;

static uint8_t pattern(size_t i)
{
	return (uint8_t)(i * 31 + (i >> 8) * 7 + (i >> 16));
}

/* Claims a piece by hand, as shm_share.c does: its index, or -1. */
static int claim_one(struct shm_offer *offer)
{
	uint64_t claim = __atomic_load_n(&offer->claim, __ATOMIC_ACQUIRE);
	uint64_t len = __atomic_load_n(&offer->len, __ATOMIC_RELAXED);
	uint32_t piece = __atomic_load_n(&offer->piece_len, __ATOMIC_RELAXED);

	if (!piece || (uint32_t)claim >= (len + piece - 1) / piece ||
	    !__atomic_compare_exchange_n(&offer->claim, &claim, claim + 1, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		return -1;
	return (int)(uint32_t)claim;
}

static void write_piece(struct shm_offer *offer, int idx)
{
	uint64_t from = (uint64_t)idx * offer->piece_len;
	uint64_t len = offer->len - from < offer->piece_len ? offer->len - from : offer->piece_len;
	struct iovec iov = { (void *)(uintptr_t)(offer->src + from), len };
	struct dev_get part = {
		.remote_addr = offer->dst + from, .iov = &iov, .iov_cnt = 1, .len = len
	};

	lane.link->ops->put(lane.link, &part);
}

static void sender_by_hand(enum sender how)
{
	struct shm_offer *offer = lane_shm(&lane)->peer_offer;
	uint32_t last = 0, gen;
	int idx;

	for (;;) {
		gen = (uint32_t)(__atomic_load_n(&offer->claim, __ATOMIC_RELAXED) >> 32);
		if (gen == last || (idx = claim_one(offer)) < 0)
			continue;
		last = gen;
		if (how == SENDER_STOPS)
			pause();
		if (how == SENDER_HOLDS) {
			usleep(20000);
			write_piece(offer, idx);
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
	lane.link->ops->lend(lane.link, 1);
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
	dst = mmap(NULL, LEN + 64, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	pid = fork();
	cr_assert_geq(pid, 0);
	dev = pair_dev();
	for (i = 0; !pid && i < LEN; i++)
		src[i] = pattern(i);
	pair_join(dev, &lane, 4096, sv[!pid]);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		cr_assert_eq(write(sv[1], &c, 1), 1);
		sender(how);
		_exit(1);
	}
	cr_assert_eq(read(sv[0], &c, 1), 1);
	cr_assert(lane.link->caps & DEV_CAP_PUT);
}

static void stop(void)
{
	kill(pid, SIGKILL);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
}

/* Fetches [from, from + len): 1 ended at once, 0 by event, and every byte is right. */
static int fetch(size_t from, size_t len)
{
	struct iovec iov = { dst + 32, len };
	struct dev_get g = { .remote_addr = (uintptr_t)src + from,
			     .iov = &iov,
			     .iov_cnt = 1,
			     .len = len,
			     .status = 1 };
	struct dev_event ev = { 0 };
	size_t i, bad = 0;
	int ret;

	memset(dst, 0xee, len + 64);
	ret = lane.link->ops->get(lane.link, &g);
	while (!ret && !shm_dev_ops.poll((struct dev *)dev, &ev))
		;
	if (!ret)
		cr_assert(ev.kind == DEV_EV_GET && ev.get == &g && ev.link == lane.link);
	cr_assert_eq(g.status, 0);
	for (i = 0; i < 32; i++)
		bad += dst[i] != 0xee || dst[32 + len + i] != 0xee;
	for (i = 0; i < len; i++)
		bad += dst[32 + i] != pattern(from + i);
	cr_assert_eq(bad, 0, "%zu of %zu bytes are wrong", bad, len);
	return ret;
}

static void fetch_many(int cnt)
{
	uint64_t seed = 0xfe7c4, r;

	for (; cnt; cnt--) {
		r = pair_rand(&seed);
		fetch(r % 5000,
		      r % 3 ? SHM_SHARE_MIN - 2 + (r >> 20) % 5 : (r >> 20) % (LEN - 5000) + 1);
	}
}

Test(shm_share, both_ends_copy_and_every_byte_is_right)
{
	uint32_t shared = 0;

	start(SENDER_POLLS);
	fetch_many(150);
	while (!shared && patient()) {
		fetch(0, LEN);
		shared += lane_shm(&lane)->share.theirs != 0;
	}
	cr_expect_gt(shared, 0, "the sender never helped");
	stop();
}

Test(shm_share, a_sender_that_computes_is_not_waited_for)
{
	start(SENDER_COMPUTES);
	cr_expect_eq(fetch(0, LEN), 1);
	cr_expect_eq(lane_shm(&lane)->share.theirs, 0);
	stop();
}

Test(shm_share, a_short_message_is_halved_a_long_one_quartered)
{
	static const struct {
		size_t len;
		uint32_t piece_len;
	} rows[] = {
		{ SHM_SHARE_MIN, SHM_SHARE_MIN / 2 },
		{ SHM_SHARE_MIN + 1, SHM_SHARE_MIN / 2 + 4096 },
		{ 64 << 10, 32 << 10 },
		{ SHM_SHARE_HALVES, SHM_SHARE_HALVES / 2 },
		{ 2 * SHM_SHARE_HALVES, SHM_SHARE_HALVES / 2 },
		{ LEN, SHM_SHARE_PIECE_MAX },
	};
	size_t i;

	start(SENDER_COMPUTES);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cr_expect_eq(fetch(0, rows[i].len), 1);
		cr_expect_eq(lane_shm(&lane)->ctrl->offer.piece_len, rows[i].piece_len, "%zu bytes",
			     rows[i].len);
	}
	stop();
}

Test(shm_share, a_piece_that_is_held_is_waited_for_by_polling)
{
	int late = 0;

	start(SENDER_HOLDS);
	while (late < 3 && patient())
		late += !fetch(7, LEN - 7);
	cr_expect_gt(late, 0);
	cr_expect_eq(dev->bulk_cnt, 0);
	stop();
}

Test(shm_share, a_piece_the_sender_could_not_write_is_read_again)
{
	int i;

	start(SENDER_FAILS);
	for (i = 0; i < 10; i++)
		fetch(0, LEN);
	stop();
}

Test(shm_share, while_a_fetch_waits_others_go_their_own_way)
{
	struct iovec iov = { dst, LEN };
	struct dev_get g = { .iov = &iov, .iov_cnt = 1, .len = LEN };

	start(SENDER_HOLDS);
	iov.iov_base = dst + 32;
	g.remote_addr = (uintptr_t)src;
	while (patient()) {
		if (lane.link->ops->get(lane.link, &g))
			continue; /* the sender came too late to claim */
		cr_assert_not_null(lane_shm(&lane)->share.get);
		cr_expect(!shm_share_fits(lane_shm(&lane), &g));
		cr_expect_eq(shm_dev_ops.arm((struct dev *)dev), -FI_EAGAIN,
			     "nothing would wake us");
		break;
	}
	lane.link->ops->detach(lane.link); /* waits for the writer of our memory */
	cr_expect_null(lane_shm(&lane)->share.get);
	stop();
}

Test(shm_share, detaching_does_not_wait_for_a_dead_sender)
{
	struct iovec iov = { NULL, LEN };
	struct dev_get g = { .iov = &iov, .iov_cnt = 1, .len = LEN };
	int ret = 1;

	start(SENDER_STOPS);
	iov.iov_base = dst;
	g.remote_addr = (uintptr_t)src;
	while (ret && patient())
		ret = lane.link->ops->get(lane.link, &g);
	cr_assert_eq(ret, 0);
	stop();
	lane.link->ops->detach(lane.link);
	cr_expect_eq(dev->bulk_cnt, 0);
}

static void *resume_later(void *arg)
{
	usleep(1300 * 1000);
	*(bool *)arg = true;
	kill(pid, SIGCONT);
	return NULL;
}

/* Fetches until the sender is stopped between the claim of a piece and its writing. */
static void stop_inside_a_piece(struct dev_get *g)
{
	const struct shm_link *link = lane_shm(&lane);
	struct dev_event ev;

	while (patient()) {
		if (lane.link->ops->get(lane.link, g))
			continue;
		cr_assert_eq(kill(pid, SIGSTOP), 0);
		cr_assert_eq(waitpid(pid, NULL, WUNTRACED), pid);
		if (link->ctrl->offer.done != link->share.theirs)
			return;
		kill(pid, SIGCONT); /* it was quicker */
		while (!shm_dev_ops.poll((struct dev *)dev, &ev))
			;
	}
	cr_assert_fail("no piece was held");
}

/* The buffer is the user's again afterwards: what a stopped process writes late would hit it. */
Test(shm_share, detaching_outwaits_a_stopped_sender)
{
	struct iovec iov = { NULL, LEN };
	struct dev_get g = { .iov = &iov, .iov_cnt = 1, .len = LEN };
	bool resumed = false;
	pthread_t thread;
	size_t k, bad = 0;

	start(SENDER_HOLDS);
	iov.iov_base = dst;
	g.remote_addr = (uintptr_t)src;
	stop_inside_a_piece(&g);
	pthread_create(&thread, NULL, resume_later, &resumed);
	lane.link->ops->detach(lane.link);
	cr_expect(resumed, "a piece was not written yet");
	memset(dst, 0x11, LEN);
	pthread_join(thread, NULL);
	usleep(100 * 1000);
	for (k = 0; k < LEN; k++)
		bad += dst[k] != 0x11;
	cr_expect_eq(bad, 0, "%zu bytes were written afterwards", bad);
	stop();
}

Test(shm_share, an_offer_of_nonsense_does_no_harm)
{
	static const uint32_t piece_lens[] = {
		0, 1, SHM_SHARE_PIECE_MIN - 1, SHM_SHARE_PIECE_MIN, SHM_SHARE_PIECE_MAX, UINT32_MAX
	};
	static const uint64_t words[] = { 0, 1, 1ull << 47, UINT64_MAX - 1, UINT64_MAX };
	struct shm_dev *da = pair_dev(), *db = pair_dev();
	struct shm_offer *offer;
	struct lane a, b;
	int i, k, n, gen = 1;

	util_params.single_copy = 1;
	pair_open(da, &a, 1024, db, &b, 1024);
	offer = lane_shm(&b)->peer_offer;
	b.link->ops->lend(b.link, 1);
	for (i = 0; i < 6; i++)
		for (k = 0; k < 5; k++)
			for (n = 0; n < 5; n++) {
				offer->piece_len = piece_lens[i];
				offer->src = words[k];
				offer->dst = words[n];
				offer->len = words[(k + n) % 5];
				offer->claim = (uint64_t)gen++ << 32;
				lane_write(&a, 1);
				cr_assert(lane_expect(db, &b, 1, 3));
				cr_assert(!lane_expect(db, &b, 1, 3));
			}
	b.link->ops->lend(b.link, -1);
	cr_expect_eq(db->bulk_cnt, 0);
}
