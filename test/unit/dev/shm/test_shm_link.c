/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dev/shm/shm_link.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "shm_pair.h"

TestSuite(shm_link, .fini = pair_fini, .timeout = 200);

static struct shm_dev *da, *db;
static struct transport a, b;

static void setup_of(uint64_t rx_a, uint64_t rx_b)
{
	da = pair_dev();
	db = pair_dev();
	pair_open(da, &a, rx_a, db, &b, rx_b);
}

static void setup(void)
{
	setup_of(4096, 4096);
}

static uint64_t word_at(uint64_t off)
{
	return *shm_link_word(b.link->rx_base, off & (b.link->rx_len - 1));
}

Test(shm_link, bytes_and_immediate_arrive_at_the_same_offset, .init = setup)
{
	struct dev_event ev;

	memcpy(a.link->tx_base + 32, "hello", 6);
	cr_assert_eq(a.link->ops->write_imm(a.link, 0, 64, 2), 0);
	cr_assert(shm_dev_ops.poll((struct dev *)db, &ev));
	cr_expect_eq(ev.link, b.link);
	cr_expect_eq(ev.kind, DEV_EV_IMM);
	cr_expect_eq(ev.imm, 2);
	cr_expect_str_eq((char *)b.link->rx_base + 32, "hello");
	cr_expect(!shm_dev_ops.poll((struct dev *)db, &ev));
	cr_expect(!shm_dev_ops.poll((struct dev *)da, &ev));
}

Test(shm_link, a_link_is_direct_and_sets_inband_len, .init = setup)
{
	cr_expect(a.link->caps & DEV_CAP_DIRECT);
	cr_expect_eq(a.link->inband_len, DEV_IMM_UNIT * 5);
	cr_expect_eq(a.link->inband_len % DEV_IMM_UNIT, 0);
	cr_expect_eq(shm_link_ahead(SHM_RING_MIN, SHM_AHEAD_LARGE), 1);
	cr_expect_eq(shm_link_ahead(8192, SHM_AHEAD_LARGE), 8);
	cr_expect_eq(shm_link_ahead(SHM_RING_MAX, SHM_AHEAD_LARGE), SHM_AHEAD_LARGE);
}

Test(shm_link, each_direction_has_its_readers_ring_length)
{
	setup_of(1024, 65536);
	cr_expect_eq(a.link->rx_len, 1024);
	cr_expect_eq(a.link->tx_len, 65536);
	cr_expect_eq(b.link->tx_len, 1024);
	cr_expect_eq(b.link->inband_len, 64);
	pair_write(&a, 1000);
	pair_write(&b, 20);
	cr_expect(pair_expect(db, &b, 1000, 1));
	cr_expect(pair_expect(da, &a, 20, 1));
}

Test(shm_link, illegal_ring_sizes_are_refused)
{
	static const uint64_t lens[] = { 0,    1,       512,        1023,       1025,
					 4095, 3 << 20, 1ull << 31, 1ull << 63, UINT64_MAX };
	struct dev_link *link;
	size_t i;

	da = pair_dev();
	for (i = 0; i < sizeof(lens) / sizeof(lens[0]); i++)
		cr_expect_eq(shm_dev_ops.link_create((struct dev *)da, lens[i], &link), -FI_EINVAL);
}

Test(shm_link, wrap_marker_moves_the_next_head_to_offset_0, .init = setup)
{
	pair_write(&a, 120);
	cr_expect(pair_expect(db, &b, 120, 1));
	pair_write(&a, 8); /* 32 of these bytes are the marker's */
	cr_expect_eq(a.tx_pos, 4096);
	cr_expect(pair_expect(db, &b, 8, 1));
	pair_write(&a, 1);
	cr_expect(pair_expect(db, &b, 1, 1));
	cr_expect_eq(pair_shm_link(&b)->rx_off, 32);
}

/* Returns the longest legal write: not across the end, with inband_len bytes free behind it. */
static uint32_t room(const struct transport *from, const struct transport *to)
{
	const struct dev_link *link = from->link;
	uint64_t free_len = link->tx_len - link->inband_len - (from->tx_pos - to->rx_pos);
	uint64_t to_end = link->tx_len - (from->tx_pos & (link->tx_len - 1));

	return (uint32_t)((free_len < to_end ? free_len : to_end) / DEV_IMM_UNIT);
}

static void expect_clear_stretch(void)
{
	uint64_t k;

	cr_assert_geq(pair_shm_link(&a)->cleared, pair_shm_link(&a)->ahead_small);
	cr_assert_leq(pair_shm_link(&a)->cleared, pair_shm_link(&a)->ahead_large);
	for (k = 0; k <= pair_shm_link(&a)->cleared * DEV_IMM_UNIT; k += DEV_IMM_UNIT)
		cr_assert_eq(word_at(a.tx_pos + k), 0, "word %lu ahead of the head", (long)k);
}

/* Random writes, up to exactly full, read in order. The ring is full of bytes like link words. */
static void run_property(uint64_t len, uint64_t seed, int steps)
{
	uint32_t sent[4096], head = 0, tail = 0, max, imm;
	uint64_t state = seed;

	setup_of(1024, len);
	while (steps--) {
		max = room(&a, &b);
		if (max && pair_rand(&state) % 3) {
			imm = 1 + (uint32_t)(pair_rand(&state) % (pair_rand(&state) % 4 ? 4 : max));
			imm = imm > max ? max : imm;
			pair_write(&a, imm);
			expect_clear_stretch();
			sent[head++ % 4096] = imm;
		} else if (tail != head) {
			cr_assert(pair_expect(db, &b, sent[tail++ % 4096], 1), "seed %lx",
				  (long)seed);
		} else {
			struct dev_event ev;

			cr_assert(!shm_dev_ops.poll((struct dev *)db, &ev), "seed %lx", (long)seed);
		}
	}
	while (tail != head)
		cr_assert(pair_expect(db, &b, sent[tail++ % 4096], 1), "seed %lx", (long)seed);
	cr_assert_eq(a.tx_pos, b.rx_pos);
	cr_assert_gt(a.tx_pos, 3 * len);
	pair_close(&a, &b);
}

Test(shm_link, random_writes_arrive_in_order_over_many_laps)
{
	uint64_t len, seed;

	for (len = 1024; len <= 65536; len *= 4)
		for (seed = 1; seed <= 5; seed++)
			run_property(len, seed * 0x9e3779b97f4a7c15ull, 40000);
}

Test(shm_link, ring_of_the_least_size_fills_and_empties_exactly)
{
	int lap, i;

	setup_of(1024, 1024);
	for (lap = 0; lap < 100; lap++) {
		for (i = 0; room(&a, &b); i++)
			pair_write(&a, 1);
		cr_assert_eq(i, (1024 - (int)a.link->inband_len) / 32);
		while (i--)
			cr_assert(pair_expect(db, &b, 1, 1));
		cr_assert(!pair_expect(db, &b, 1, 1));
	}
}

Test(shm_link, writes_of_the_whole_room_wrap_for_three_laps)
{
	int lap;
	uint32_t max;

	setup_of(1024, 1024);
	for (lap = 0; lap < 9; lap++) {
		max = room(&a, &b);
		pair_write(&a, max);
		cr_assert(pair_expect(db, &b, max, 1));
	}
	cr_expect_geq(a.tx_pos, 3 * 1024);
}

Test(shm_link, consumer_word_is_read_by_the_other_end, .init = setup)
{
	uint64_t value = 1;

	cr_assert_eq(a.link->ops->read_consumer(a.link, &value), 1);
	cr_expect_eq(value, 0);
	*b.link->consumer_word = 0x123456789abcdef0;
	cr_assert_eq(a.link->ops->read_consumer(a.link, &value), 1);
	cr_expect_eq(value, 0x123456789abcdef0);
}

static void expect_down(uint64_t word, uint64_t off)
{
	struct transport c, d;
	struct dev_event ev;

	setup_of(4096, 4096);
	pair_open(da, &c, 4096, db, &d, 4096);
	while (a.tx_pos < off) {
		pair_write(&a, 1);
		cr_assert(pair_expect(db, &b, 1, 4));
	}
	*shm_link_word(a.link->tx_base, off) = word;
	pair_write(&c, 3);
	memset(&ev, 0, sizeof(ev));
	while (pair_poll(db, &ev, 4) && ev.kind != DEV_EV_DOWN)
		;
	cr_assert_eq(ev.kind, DEV_EV_DOWN, "word %lx at %lu", (long)word, (long)off);
	cr_expect_eq(ev.link, b.link);
	cr_expect_eq(ev.status, -FI_EIO);
	shm_inbox_post(db->inbox, pair_shm_link(&b)->id);
	pair_write(&c, 5);
	cr_expect(pair_poll(db, &ev, 4) && ev.link == d.link, "the other link still works");
	while (pair_poll(db, &ev, 100))
		cr_expect_eq(ev.link, d.link, "no event follows DOWN");
	cr_expect(!b.link->ops->poll(b.link, &ev));
	pair_close(&a, &b);
	pair_close(&c, &d);
}

Test(shm_link, illegal_word_ends_that_link_alone)
{
	expect_down(129, 0);
	expect_down(UINT32_MAX, 0);
	expect_down(1ull << 32, 0);
	expect_down(UINT64_MAX, 0);
	expect_down(0x0800000000000001, 0);
	expect_down(128, 32);
	expect_down(2, 4096 - 32);
}

Test(shm_link, a_word_that_reaches_exactly_the_end_is_legal)
{
	setup_of(1024, 4096);
	pair_write(&a, 30);
	cr_expect(pair_expect(db, &b, 30, 1));
	pair_write(&a, 98);
	cr_expect(pair_expect(db, &b, 98, 1));
	cr_expect_eq(pair_shm_link(&b)->rx_off, 0);
}

Test(shm_link, an_overwritten_control_page_is_harmless, .init = setup)
{
	uint64_t value;

	memset(pair_shm_link(&b)->ctrl, 0xa5, SHM_PAGE); /* the peer's mapping can */
	pair_write(&b, 1);
	pair_write(&a, 1);
	cr_expect(pair_expect(da, &a, 1, 2));
	cr_expect(pair_expect(db, &b, 1, 2));
	cr_expect_eq(a.link->ops->read_consumer(a.link, &value), 1);
}

Test(shm_link, closing_leaves_no_descriptor_and_no_id)
{
	int before = pair_fd_cnt(), i;

	for (i = 0; i < 300; i++) {
		setup();
		cr_assert_eq(pair_shm_link(&a)->id, 0);
		pair_close(&a, &b);
		pair_dev_close(da);
		pair_dev_close(db);
	}
	cr_expect_eq(pair_fd_cnt(), before);
}

Test(shm_link, link_that_was_only_created_can_be_closed)
{
	struct dev_link *link;
	int before = pair_fd_cnt();

	da = pair_dev();
	cr_assert_eq(shm_dev_ops.link_create((struct dev *)da, 1024, &link), 0);
	link->ops->detach(link);
	link->ops->close(link);
	pair_dev_close(da);
	cr_expect_eq(pair_fd_cnt(), before);
}

Test(shm_link, ids_are_distinct_and_their_end_is_an_error)
{
	struct dev_link *link, *first;

	da = pair_dev();
	cr_assert_eq(shm_dev_ops.link_create((struct dev *)da, 1024, &first), 0);
	memset(da->ids, 0xff, sizeof(da->ids));
	cr_expect_eq(shm_dev_ops.link_create((struct dev *)da, 1024, &link), -FI_ENOSPC);
	da->ids[63] &= ~(1ull << 63);
	cr_assert_eq(shm_dev_ops.link_create((struct dev *)da, 1024, &link), 0);
	cr_expect_eq(((struct shm_link *)link)->id, SHM_LINKS_MAX - 1);
	link->ops->close(link);
	first->ops->close(first);
	cr_expect_eq(da->ids[0] & 1, 0);
	cr_expect_eq(da->ids[63] >> 63, 0);
}

Test(shm_link, failed_create_gives_its_id_back)
{
	struct rlimit lim = { 4096, RLIM_INFINITY };
	struct dev_link *link;

	da = pair_dev();
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &lim), 0);
	cr_expect_eq(shm_dev_ops.link_create((struct dev *)da, 1024, &link), -FI_ENOSPC);
	cr_expect_eq(da->ids[0], 0);
}

Test(shm_link, a_link_to_oneself_works)
{
	struct transport c, d;

	da = pair_dev();
	pair_open(da, &c, 1024, da, &d, 1024);
	pair_write(&c, 2);
	cr_expect(pair_expect(da, &d, 2, 2));
	pair_write(&d, 4);
	cr_expect(pair_expect(da, &c, 4, 2));
}

Test(shm_link, without_membarrier_on_either_side_the_writer_fences)
{
	struct dev_desc desc_a, desc_b;
	struct dev_link *la, *lb;
	int end;

	for (end = 0; end < 2; end++) {
		da = pair_dev();
		db = pair_dev();
		(end ? da : db)->membarrier = false;
		la = pair_half(da, 1024, &desc_a);
		lb = pair_half(db, 1024, &desc_b);
		cr_assert_eq(la->ops->connect(la, &desc_b), 0);
		cr_assert_eq(lb->ops->connect(lb, &desc_a), 0);
		cr_expect(((struct shm_link *)la)->tx_fence);
		cr_expect(((struct shm_link *)lb)->tx_fence);
	}
}
