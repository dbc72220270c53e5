/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dev/shm/shm_poll.h"

#include <criterion/criterion.h>
#include <string.h>

#include "shm_pair.h"

TestSuite(shm_poll, .fini = pair_fini, .timeout = 200);

#define MANY 200

static struct shm_dev *da, *db;
static struct transport a[MANY], b[MANY];

static void setup_of(int cnt)
{
	int i;

	da = pair_dev();
	db = pair_dev();
	for (i = 0; i < cnt; i++)
		pair_open(da, &a[i], 1024, db, &b[i], 1024);
}

Test(shm_poll, a_device_without_links_has_no_event)
{
	struct dev_event ev;
	int i;

	da = pair_dev();
	for (i = 0; i < 1000; i++)
		cr_assert(!shm_dev_ops.poll((struct dev *)da, &ev));
}

Test(shm_poll, inline_constants_are_the_same_operations)
{
	struct dev_event ev;

	setup_of(1);
	pair_write(&a[0], 1);
	cr_expect(shm_dev_ops_inline.poll((struct dev *)db, &ev));
	cr_expect_eq(shm_link_ops_inline.write_imm(b[0].link, 0, 32, 1), 0);
	cr_expect(pair_expect(da, &a[0], 1, 1));
	cr_expect_str_eq(shm_dev_ops_inline.name, shm_dev_ops.name);
}

/* Returns one or two units in turns, but never across the end. */
static uint32_t imm_of(uint64_t pos, uint32_t turn)
{
	return (pos & 1023) == 992 ? 1 : 1 + turn % 2;
}

/* Links of all degrees of activity. Each message is delivered once, in order within its link. */
static void run_property(int cnt, uint64_t seed, int steps)
{
	static uint32_t sent[MANY], got[MANY];
	uint64_t state = seed, r;
	struct dev_event ev;
	int in_flight = 0, i;

	setup_of(cnt);
	memset(sent, 0, sizeof(sent));
	memset(got, 0, sizeof(got));
	while (steps--) {
		r = pair_rand(&state);
		/* favours the first links most of the time */
		i = (int)(r % (r >> 60 ? cnt : 3) % cnt);
		if ((r >> 32) % 2 && a[i].tx_pos - b[i].rx_pos <= 1024 - 64 - 64) {
			pair_write(&a[i], imm_of(a[i].tx_pos, sent[i]));
			sent[i]++;
			in_flight++;
		} else if (pair_poll(db, &ev, 1)) {
			i = (int)((struct transport *)ev.link->user - b);
			cr_assert_eq(ev.imm, imm_of(b[i].rx_pos - 32 * ev.imm, got[i]),
				     "link %d, seed %lx", i, (long)seed);
			got[i]++;
			in_flight--;
		}
		if (!(r >> 40 & 0xfff)) /* a silence that parks links */
			for (i = 0; i < 100000; i++)
				if (pair_poll(db, &ev, 1)) {
					got[(struct transport *)ev.link->user - b]++;
					in_flight--;
				}
	}
	for (i = 0; in_flight && i < 1000000; i++)
		in_flight -= pair_poll(db, &ev, 1);
	cr_assert_eq(in_flight, 0, "seed %lx", (long)seed);
	for (i = 0; i < cnt; i++)
		pair_close(&a[i], &b[i]);
}

Test(shm_poll, every_message_of_every_link_is_delivered_once)
{
	static const int cnts[] = { 1, 2, 15, 16, 17, 64, MANY };
	size_t i;

	for (i = 0; i < sizeof(cnts) / sizeof(cnts[0]); i++)
		run_property(cnts[i], 0xabcdef01u + i, 100000);
}

Test(shm_poll, a_stream_does_not_starve_the_other_links)
{
	struct dev_event ev;
	int i, polls = 0;

	setup_of(16);
	for (i = 1; i < 16; i++)
		pair_write(&a[i], 1);
	for (i = 1; i < 16; polls++) {
		if (a[0].tx_pos - b[0].rx_pos < 256)
			pair_write(&a[0], 1);
		cr_assert(pair_poll(db, &ev, 1));
		i += ev.link != b[0].link;
	}
	cr_expect_leq(polls, 16 * 16);
}

Test(shm_poll, a_parked_link_is_received_beside_a_stream)
{
	struct dev_event ev;
	int polls = 0;

	setup_of(2);
	cr_assert(shm_watch_park(db, pair_shm_link(&b[1])));
	pair_write(&a[1], 1);
	do {
		if (a[0].tx_pos - b[0].rx_pos < 256)
			pair_write(&a[0], 1);
		cr_assert(pair_poll(db, &ev, 1));
		polls++;
	} while (ev.link == b[0].link);
	cr_expect_leq(polls, 2);
}

Test(shm_poll, one_poll_looks_at_a_bounded_number_of_links)
{
	struct dev_event ev;
	int i;

	setup_of(MANY);
	cr_assert_eq(db->act_cnt, MANY);
	for (i = 0; i < MANY; i++)
		pair_shm_link(&a[i])->posted = 1; /* already posted: parking causes no post */
	db->cursor = 0;
	cr_assert(!shm_dev_ops.poll((struct dev *)db, &ev));
	cr_expect_eq(db->cursor, db->per_poll);
}

Test(shm_poll, link_poll_returns_only_events_of_its_link)
{
	struct dev_event ev;
	int i;

	setup_of(3);
	for (i = 0; i < 3; i++) {
		pair_write(&a[i], 1);
		pair_write(&a[i], 2);
	}
	cr_assert(b[1].link->ops->poll(b[1].link, &ev));
	cr_expect(ev.link == b[1].link && ev.imm == 1);
	cr_assert(b[1].link->ops->poll(b[1].link, &ev));
	cr_expect(ev.link == b[1].link && ev.imm == 2);
	cr_expect(!b[1].link->ops->poll(b[1].link, &ev));
	for (i = 0; pair_poll(db, &ev, 8); i++)
		cr_expect_neq(ev.link, b[1].link);
	cr_expect_eq(i, 4);
}

Test(shm_poll, link_poll_finds_a_write_without_notification)
{
	struct dev_event ev;

	setup_of(2);
	cr_assert(shm_watch_park(db, pair_shm_link(&b[0])));
	pair_shm_link(&a[0])->posted =
		pair_shm_link(&b[0])->epoch; /* simulates an early load of notify */
	pair_write(&a[0], 3);
	cr_assert(b[0].link->ops->poll(b[0].link, &ev));
	cr_expect_eq(ev.imm, 3);
}

Test(shm_poll, no_event_follows_detach)
{
	struct dev_event ev;
	int i;

	setup_of(3);
	for (i = 0; i < 3; i++)
		pair_write(&a[i], 1);
	b[1].link->ops->detach(b[1].link);
	for (i = 0; pair_poll(db, &ev, 8); i++)
		cr_expect_neq(ev.link, b[1].link);
	cr_expect_eq(i, 2);
	cr_expect(!b[1].link->ops->poll(b[1].link, &ev));
	pair_write(&a[1], 1);
	shm_inbox_post(db->inbox, pair_shm_link(&b[1])->id); /* a post after detach */
	cr_expect(!pair_poll(db, &ev, 100));
}

Test(shm_poll, writes_before_attach_are_delivered)
{
	struct dev_desc desc_a, desc_b;
	struct dev_link *la, *lb;
	struct dev_event ev;

	da = pair_dev();
	db = pair_dev();
	la = pair_half(da, 1024, &desc_a);
	lb = pair_half(db, 1024, &desc_b);
	cr_assert_eq(la->ops->connect(la, &desc_b), 0);
	cr_assert_eq(la->ops->attach(la), 0);
	cr_assert_eq(la->ops->write_imm(la, 0, 32, 1), 0);
	cr_assert_eq(lb->ops->connect(lb, &desc_a), 0);
	cr_expect(!shm_dev_ops.poll((struct dev *)db, &ev));
	cr_assert_eq(lb->ops->attach(lb), 0);
	cr_expect(shm_dev_ops.poll((struct dev *)db, &ev));
}
