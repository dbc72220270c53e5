/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Offers of a peer: only exposed bytes are copied, and nothing a peer writes hurts. */
#include "dev/shm/shm_expose.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "shm_pair.h"
#include "util/param.h"

TestSuite(shm_expose, .fini = pair_fini, .timeout = 200);

#define LEN (64u << 10)

static struct shm_dev *victim_dev;
static struct transport peer, victim, other_peer, other;
static struct shm_offer *offer; /* of the peer, as the victim sees it */
static struct dev_mem *mem;
static uint8_t memory[3 * LEN], got[4 * LEN];
static uint32_t gen;

/* Exposes the middle of `memory` to the peer. */
static void start(void)
{
	struct shm_dev *peer_dev = pair_dev();

	util_params.single_copy = 1;
	victim_dev = pair_dev();
	pair_open(peer_dev, &peer, 1024, victim_dev, &victim, 1024);
	pair_open(peer_dev, &other_peer, 1024, victim_dev, &other, 1024);
	cr_assert(victim.link->caps & DEV_CAP_PUT);
	offer = pair_shm_link(&victim)->peer_offer;
	memset(memory, 0x5e, sizeof(memory));
	memset(memory + LEN, 0x22, LEN);
	cr_assert_eq(victim.link->ops->expose(victim.link, memory + LEN, LEN, &mem), 0);
}

static void end(void)
{
	victim.link->ops->unexpose(victim.link, mem);
	cr_expect_eq(victim_dev->bulk_cnt, 0);
	cr_expect(util_list_is_empty(&victim_dev->exposed));
}

/* Offers a round of one get in two parts. */
static void offer_range(uint64_t key, uint64_t off, uint64_t len)
{
	memset(got, 0, sizeof(got));
	offer->claim = shm_offer_word(++gen, SHM_OFFER_CLOSED);
	offer->cnt = 1;
	offer->parts = 2;
	offer->first = (struct shm_source){ key, off, len };
	offer->dst[0] = (struct iovec){ got, len < sizeof(got) ? len : sizeof(got) };
	offer->claim = shm_offer_word(gen, 1);
}

/* Returns true if the victim has claimed a part; false if it ignores the offer. */
static bool is_copied(void)
{
	struct dev_event ev;

	for (int i = 0; i < 100; i++)
		cr_assert(!shm_dev_ops.poll((struct dev *)victim_dev, &ev));
	return (uint32_t)offer->claim != 1;
}

static size_t count_in_got(uint8_t byte)
{
	size_t cnt = 0;

	for (size_t i = 0; i < sizeof(got); i++)
		cnt += got[i] == byte;
	return cnt;
}

Test(shm_expose, a_part_of_exposed_memory_is_written)
{
	start();
	offer_range(mem->remote_key, 0, LEN);
	cr_expect(is_copied());
	cr_expect_eq(offer->done, shm_offer_word(gen, 1));
	cr_expect_eq(count_in_got(0x22), LEN / 2);
	end();
}

Test(shm_expose, nothing_but_exposed_memory_is_copied)
{
	struct dev_mem *others;
	const uint64_t ranges[][2] = {
		{ 0, LEN + 1 },
		{ 1, LEN },
		{ LEN, 1 },
		{ LEN + 1, 0 },
		{ UINT64_MAX, 2 },
		{ UINT64_MAX - LEN + 1, LEN },
		{ 1, UINT64_MAX },
		{ 0, UINT64_MAX },
		{ UINT64_MAX / 2, LEN },
		{ (uintptr_t)memory, LEN },
	};
	uint64_t keys[4];

	start();
	cr_assert_eq(other.link->ops->expose(other.link, memory, LEN, &others), 0);
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		offer_range(mem->remote_key, ranges[i][0], ranges[i][1]);
		cr_expect(!is_copied(), "range %zu", i);
	}
	keys[0] = others->remote_key; /* of another peer */
	keys[1] = mem->remote_key + (1u << UTIL_IDMAP_SLOT_BITS);
	keys[2] = mem->remote_key | 1ull << 32;
	keys[3] = UINT32_MAX;
	for (int i = 0; i < 4; i++) {
		offer_range(keys[i], 0, LEN);
		cr_expect(!is_copied(), "key %d", i);
	}
	cr_expect_eq(count_in_got(0), sizeof(got));
	other.link->ops->unexpose(other.link, others);
	end();
}

Test(shm_expose, memory_that_is_no_longer_exposed_is_not_copied)
{
	struct dev_mem *again;
	uint64_t key;

	start();
	key = mem->remote_key;
	victim.link->ops->unexpose(victim.link, mem);
	cr_assert_eq(victim.link->ops->expose(victim.link, memory, LEN, &again), 0);
	offer_range(key, 0, LEN);
	cr_expect(!is_copied(), "the key of the memory exposed before");
	mem = again;
	end();
}

Test(shm_expose, detaching_revokes_what_is_exposed)
{
	start();
	victim.link->ops->detach(victim.link);
	cr_expect_eq(victim_dev->bulk_cnt, 0);
	offer_range(mem->remote_key, 0, LEN);
	cr_expect(!is_copied());
	end();
}

/* Or a peer could keep this process copying for it. */
Test(shm_expose, no_more_bytes_are_copied_than_are_exposed)
{
	start();
	offer_range(mem->remote_key, 0, LEN);
	cr_expect(is_copied());
	for (int i = 0; i < 10; i++) {
		offer_range(mem->remote_key, 0, LEN);
		is_copied();
	}
	cr_expect_eq(count_in_got(0), sizeof(got), "nothing is left");
	cr_expect_eq(offer->done, shm_offer_word(gen, 1 | SHM_OFFER_FAILED));
	end();
}

/* The kernel reads the ranges at the beginning of the call. */
Test(shm_expose, a_revoked_range_is_not_written)
{
	start();
	offer_range(mem->remote_key, 0, LEN);
	offer->dst[0].iov_len = 0;
	cr_expect(is_copied());
	cr_expect_eq(offer->done, shm_offer_word(gen, 1 | SHM_OFFER_FAILED));
	cr_expect_eq(count_in_got(0), sizeof(got));
	end();
}

Test(shm_expose, a_dead_peers_exposures_can_still_be_ended)
{
	start();
	pair_link_close(other.link);
	pair_shm_link(&victim)->dead = true;
	offer_range(mem->remote_key, 0, LEN);
	cr_expect(!is_copied());
	end();
}

/* The words of an offer, one after the other and together, with values of each class. */
Test(shm_expose, a_malformed_offer_is_harmless)
{
	static const uint64_t values[] = {
		0,         1,          2,          16,      17,      127,        128,
		129,       UINT32_MAX, 1ull << 32, 1 << 20, 1 << 31, 1ull << 47, UINT64_MAX - 1,
		UINT64_MAX
	};
	const uint64_t cnt = sizeof(values) / sizeof(values[0]);
	uint64_t seed = 0x0ffe2;

	start();
	for (int run = 0; run < 20000; run++) {
		uint64_t r = pair_rand(&seed);

		offer_range(mem->remote_key, 0, LEN);
		offer->cnt = r & 1 ? 1 : (uint32_t)values[(r >> 8) % cnt];
		offer->parts = r & 2 ? 2 : (uint32_t)values[(r >> 16) % cnt];
		offer->first.len = r & 4 ? LEN : values[(r >> 24) % cnt];
		offer->dst[0].iov_base = r & 8 ? got : (void *)(uintptr_t)values[(r >> 32) % cnt];
		offer->dst[0].iov_len = r & 16 ? LEN / 2 : values[(r >> 40) % cnt];
		for (int i = 0; i < 15; i++)
			offer->more[i] = offer->first;
		offer->claim = r & 32 ? shm_offer_word(gen, (uint32_t)values[(r >> 48) % cnt])
				      : offer->claim;
		pair_write(&peer, 1);
		cr_assert(pair_expect(victim_dev, &victim, 1, 3));
		cr_assert(!pair_expect(victim_dev, &victim, 1, 3));
	}
	end();
}
