/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "shm_far.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/param.h"

struct far far;

bool far_patient(void)
{
	static uint64_t end;

	if (!end)
		end = util_clock_ns() + 100 * UTIL_NS_PER_S;
	return util_clock_ns() < end;
}

uint8_t far_pattern(size_t i)
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
	local = (struct iovec){ (uint8_t *)(uintptr_t)far.desk->addr[0] + offer->first.off + from,
				to - from };
	return shm_bulk_put_vec(pair_shm_link(&far.transport), &local, 1, &offer->dst[idx - 1], 1,
				to - from);
}

static void sender_by_hand(enum far_sender how)
{
	struct shm_offer *offer = pair_shm_link(&far.transport)->peer_offer;
	uint32_t last = 0, gen;
	bool written = false;
	int idx;

	for (;;) {
		idx = claim_one(offer, last, &gen);
		if (idx < 0)
			continue;
		last = gen;
		if (how == FAR_STOPS)
			raise(SIGSTOP);
		if (how == FAR_DEFERS)
			usleep(20000);
		if (how != FAR_FAILS)
			written = write_part(offer, idx);
		__atomic_store_n(&offer->done,
				 shm_offer_word(gen, written ? 1 : 1 | SHM_OFFER_FAILED),
				 __ATOMIC_RELEASE);
	}
}

/* Exposes what the receiver requests, in place of what it requested before. */
static void serve_desk(struct dev_mem **mem, size_t *cnt)
{
	const struct dev_link_ops *ops = far.transport.link->ops;

	if (__atomic_load_n(&far.desk->want, __ATOMIC_ACQUIRE) == far.desk->have)
		return;
	while (*cnt)
		ops->unexpose(far.transport.link, mem[--*cnt]);
	for (; *cnt < far.desk->cnt; ++*cnt) {
		cr_assert_eq(ops->expose(far.transport.link,
					 (void *)(uintptr_t)far.desk->addr[*cnt],
					 far.desk->len[*cnt], &mem[*cnt]),
			     0);
		far.desk->key[*cnt] = mem[*cnt]->remote_key;
	}
	__atomic_store_n(&far.desk->have, far.desk->want, __ATOMIC_RELEASE);
}

static void sender(enum far_sender how)
{
	struct dev_mem *mem[FAR_CROWD];
	struct dev_event ev;
	size_t cnt = 0;

	if (how == FAR_COMPUTES)
		pause();
	if (how != FAR_POLLS)
		sender_by_hand(how);
	for (;;) {
		serve_desk(mem, &cnt);
		shm_dev_ops.poll((struct dev *)far.dev, &ev);
	}
}

void far_start(enum far_sender how)
{
	int sv[2], prot = PROT_READ | PROT_WRITE;
	char c = 0;
	size_t i;

	util_params.single_copy = 1;
	far.sender = how;
	far.src = mmap(NULL, FAR_LEN, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	far.dst = mmap(NULL, FAR_LEN + FAR_CROWD * 64, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	far.desk = mmap(NULL, sizeof(*far.desk), prot, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	far.pid = fork();
	cr_assert_geq(far.pid, 0);
	far.dev = pair_dev();
	for (i = 0; !far.pid && i < FAR_LEN; i++)
		far.src[i] = far_pattern(i);
	pair_join(far.dev, &far.transport, 4096, sv[!far.pid]);
	if (!far.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		cr_assert_eq(write(sv[1], &c, 1), 1);
		sender(how);
		_exit(1);
	}
	cr_assert_eq(read(sv[0], &c, 1), 1);
	cr_assert(far.transport.link->caps & DEV_CAP_PUT);
}

void far_stop(void)
{
	kill(far.pid, SIGKILL);
	cr_assert_eq(waitpid(far.pid, NULL, 0), far.pid);
}

void far_get_exposed(struct dev_get *g, size_t cnt)
{
	size_t i;

	far.dev->switches = (struct util_switches){ .events = 1, .shared = far.shares_processor };
	far.desk->cnt = cnt;
	for (i = 0; i < cnt; i++) {
		far.desk->addr[i] = g[i].remote_addr;
		far.desk->len[i] = g[i].len;
	}
	__atomic_store_n(&far.desk->want, far.desk->want + 1, __ATOMIC_RELEASE);
	while (far.sender == FAR_POLLS &&
	       __atomic_load_n(&far.desk->have, __ATOMIC_ACQUIRE) != far.desk->want &&
	       far_patient())
		;
	for (i = 0; i < cnt; i++) {
		g[i].remote_key = far.desk->key[i];
		g[i].status = 1;
		cr_assert_eq(far.transport.link->ops->get(far.transport.link, &g[i]), 0);
	}
}

struct dev_get *far_await(void)
{
	struct dev_event ev = { 0 };

	while (!shm_dev_ops.poll((struct dev *)far.dev, &ev) && far_patient())
		;
	cr_assert_eq(ev.kind, DEV_EV_GET);
	cr_assert_eq(ev.link, far.transport.link);
	return ev.get;
}

void far_expect_bytes(size_t at, size_t from, size_t len)
{
	size_t i, bad = 0;

	for (i = 0; i < 32; i++)
		bad += far.dst[at - 32 + i] != 0xee || far.dst[at + len + i] != 0xee;
	for (i = 0; i < len; i++)
		bad += far.dst[at + i] != far_pattern(from + i);
	cr_assert_eq(bad, 0, "%zu of %zu bytes are wrong", bad, len);
}

uint32_t far_get_checked(size_t from, size_t len)
{
	struct iovec iov = { far.dst + 32, len };
	struct dev_get g = {
		.remote_addr = (uintptr_t)far.src + from, .iov = &iov, .iov_cnt = 1, .len = len
	};

	memset(far.dst, 0xee, len + 64);
	far_get_exposed(&g, 1);
	cr_assert_eq(far_await(), &g);
	cr_assert_eq(g.status, 0);
	far_expect_bytes(32, from, len);
	return pair_shm_link(&far.transport)->share.round.parts -
	       pair_shm_link(&far.transport)->share.mine;
}
