/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Gets over two links: each byte arrives, whichever link fails. (ring_rail.c) */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "rail_pair.h"
#include "ring/ring_rail.h"

#define LEN (256u << 10)

static struct ring_pair pair;
static struct ring_end *a, *b;
static struct core_get *done;
static unsigned done_cnt;
static bool down;

static void on_done(struct core_chan *chan, struct core_get *get)
{
	cr_assert_not(down, "gets end before the channel");
	done = get;
	done_cnt++;
}

static void on_down(struct core_chan *chan, int err)
{
	down = true;
}

static const struct core_upcalls upcalls = { .on_get_done = on_done, .on_down = on_down };

static void start(void)
{
	rail_pair_start(&pair, false, &upcalls);
	a = &pair.end[0];
	b = &pair.end[1];
}

static void finish(void)
{
	rail_pair_finish(&pair);
	cr_expect_eq(a->rails.user_cnt + b->rails.user_cnt, 0);
}

static uint8_t source[LEN], sink[LEN];
static struct core_exposure exposure;
static struct iovec iov[3] = { { sink, 1000 },
			       { sink + 1000, LEN / 2 },
			       { sink + 1000 + LEN / 2, LEN - 1000 - LEN / 2 } };

static void expose(size_t len)
{
	for (size_t i = 0; i < LEN; i++)
		source[i] = (uint8_t)(i * 7 + (i >> 8));
	memset(sink, 0, LEN);
	exposure.chan = &b->conn.eng.chan;
	cr_assert_eq(ring_bulk_expose(&b->conn.eng.chan, source, len, &exposure), 0);
}

static struct core_get request(size_t len)
{
	return (struct core_get){ .remote_addr = (uintptr_t)source,
				  .remote_key = exposure.key,
				  .iov = iov,
				  .iov_cnt = 3,
				  .len = len };
}

static struct fake_link *first_of(struct ring_end *end)
{
	return fake_link_of(end->conn.link);
}

static struct fake_link *rail_of(struct ring_end *end)
{
	return fake_link_of(end->conn.rail->link);
}

static void poll_rails(struct ring_end *end)
{
	while (ring_rails_poll(ring_end_transport(end)))
		;
}

static void check_ended(const struct core_get *get)
{
	cr_assert_eq(done, get);
	cr_expect_eq(done_cnt, 1);
	cr_expect_eq(get->status, 0);
	cr_expect_arr_eq(source, sink, get->len);
	cr_expect_eq(a->dev.mem_cnt + a->second.mem_cnt, 0);
	cr_expect(util_list_is_empty(&a->conn.gets));
	cr_expect_not(down);
	cr_expect_eq(a->conn.eng.err, 0);
}

Test(ring_rail, each_link_moves_half_and_the_get_ends_with_the_last_one)
{
	for (int rail_first = 0; rail_first < 2; rail_first++) {
		struct core_get get;

		done = NULL;
		done_cnt = 0;
		start();
		expose(LEN);
		cr_expect_neq(exposure.key >> 32, 0);
		get = request(LEN);
		cr_assert_eq(ring_bulk_get(&a->conn.eng.chan, &get), 0);
		cr_assert(first_of(a)->get && rail_of(a)->get);
		cr_expect_eq(first_of(a)->get->len, LEN / 2);
		cr_expect_eq(rail_of(a)->get->len, LEN / 2);
		if (rail_first)
			poll_rails(a);
		else
			ring_end_progress(a);
		cr_expect_null(done);
		if (rail_first)
			ring_end_progress(a);
		else
			poll_rails(a);
		check_ended(&get);
		ring_bulk_unexpose(&b->conn.eng.chan, &exposure);
		finish();
	}
}

Test(ring_rail, an_odd_length_is_moved_whole)
{
	struct core_get get;

	start();
	expose(LEN);
	get = request(RING_RAIL_MIN + 4097);
	cr_assert_eq(ring_bulk_get(&a->conn.eng.chan, &get), 0);
	cr_expect_eq(first_of(a)->get->len % RING_RAIL_ALIGN, 0);
	cr_expect_eq(first_of(a)->get->len + rail_of(a)->get->len, get.len);
	ring_end_progress(a);
	poll_rails(a);
	check_ended(&get);
	cr_expect_eq(sink[get.len], 0);
	ring_bulk_unexpose(&b->conn.eng.chan, &exposure);
	finish();
}

static void expect_whole(size_t len, uint64_t key)
{
	struct core_get get = request(len);

	done = NULL;
	get.remote_key = key;
	cr_assert_eq(ring_bulk_get(&a->conn.eng.chan, &get), 0);
	cr_expect_eq(first_of(a)->get->len, len);
	if (a->conn.rail->link)
		cr_expect_null(rail_of(a)->get);
	ring_end_progress(a);
	cr_expect_eq(done, &get);
	cr_expect_eq(get.status, 0);
	cr_expect_arr_eq(source, sink, len);
	memset(sink, 0, LEN);
}

Test(ring_rail, what_is_short_or_not_exposed_there_goes_over_the_first_link)
{
	start();
	expose(RING_RAIL_MIN - 1);
	cr_expect_neq(exposure.key >> 32, 0, "for a takeover");
	expect_whole(RING_RAIL_MIN - 1, exposure.key);
	ring_bulk_unexpose(&b->conn.eng.chan, &exposure);
	expose(LEN);
	expect_whole(RING_RAIL_MIN - 1, exposure.key);
	expect_whole(LEN, (uint32_t)exposure.key);
	a->conn.rail->is_ready = false;
	expect_whole(LEN, exposure.key);
	ring_bulk_unexpose(&b->conn.eng.chan, &exposure);
	finish();
}

/* A rail that fails: nothing is lost, and nothing of it writes into the buffers any more. */
Test(ring_rail, what_a_failed_rail_did_not_move_goes_over_the_first_link)
{
	struct core_get get;

	start();
	expose(LEN);
	get = request(LEN);
	cr_assert_eq(ring_bulk_get(&a->conn.eng.chan, &get), 0);
	rail_of(a)->shown = false;
	rail_of(a)->down = -FI_ETIMEDOUT;
	poll_rails(a);
	cr_expect_null(a->conn.rail->link, "detached and closed");
	cr_expect_str_neq(ring_life_name(&a->conn.eng), "verbs-rails");
	cr_expect_eq(a->rails.user_cnt, 0);
	cr_expect_eq(a->second.mem_cnt, 0);
	cr_expect_null(done);
	cr_expect_eq(first_of(a)->get->len, LEN / 2, "has one place: the other half waits");
	cr_expect_eq(ring_rails_arm(ring_end_transport(a)), -FI_EAGAIN, "nobody else would see it");
	ring_end_progress(a);
	cr_expect_null(done);
	poll_rails(a);
	cr_assert(first_of(a)->get);
	ring_end_progress(a);
	check_ended(&get);

	get = request(LEN);
	cr_assert_eq(ring_bulk_get(&a->conn.eng.chan, &get), 0);
	cr_expect_eq(first_of(a)->get->len, LEN, "the next one is whole");
	ring_end_progress(a);
	ring_bulk_unexpose(&b->conn.eng.chan, &exposure);
	finish();
}

Test(ring_rail, a_part_that_cannot_be_registered_goes_over_the_first_link)
{
	struct core_get get;

	start();
	expose(LEN);
	get = request(LEN);
	a->second.fail_reg = -FI_ENOMEM;
	cr_assert_eq(ring_bulk_get(&a->conn.eng.chan, &get), 0);
	cr_expect_null(rail_of(a)->get);
	ring_end_progress(a);
	cr_expect_null(done);
	poll_rails(a);
	ring_end_progress(a);
	check_ended(&get);
	ring_bulk_unexpose(&b->conn.eng.chan, &exposure);
	finish();
}

Test(ring_rail, an_error_of_one_part_is_that_of_the_get)
{
	struct core_get get;

	start();
	expose(LEN);
	get = request(LEN);
	cr_assert_eq(ring_bulk_get(&a->conn.eng.chan, &get), 0);
	rail_of(a)->shown = false;
	rail_of(a)->down = -FI_ETIMEDOUT;
	a->dev.fail_reg = -FI_ENOMEM;
	poll_rails(a);
	cr_expect_null(done, "the other part goes on");
	ring_end_progress(a);
	cr_assert_eq(done, &get);
	cr_expect_eq(get.status, -FI_ENOMEM);
	cr_expect_eq(a->conn.eng.err, 0);
	a->dev.fail_reg = 0;
	ring_bulk_unexpose(&b->conn.eng.chan, &exposure);
	finish();
}

Test(ring_rail, a_get_that_the_first_link_refuses_begins_nowhere)
{
	struct core_get one, two;

	start();
	expose(LEN);
	one = request(LEN);
	two = request(LEN);
	cr_assert_eq(ring_bulk_get(&a->conn.eng.chan, &one), 0);
	cr_expect_eq(ring_bulk_get(&a->conn.eng.chan, &two), -FI_EAGAIN);
	poll_rails(a);
	ring_end_progress(a);
	check_ended(&one);
	ring_bulk_unexpose(&b->conn.eng.chan, &exposure);
	finish();
}

Test(ring_rail, the_end_of_the_connection_ends_both_parts_once)
{
	struct core_get get;

	start();
	expose(LEN);
	get = request(LEN);
	cr_assert_eq(ring_bulk_get(&a->conn.eng.chan, &get), 0);
	rail_of(a)->shown = false;
	rail_of(a)->down = -FI_ETIMEDOUT;
	poll_rails(a); /* one half waits, too */
	ring_conn_fail_cold(&a->conn, -FI_EIO, "test");
	eng_events_cold(&a->engine);
	cr_assert_eq(done, &get);
	cr_expect_eq(done_cnt, 1);
	cr_expect_eq(get.status, -FI_EIO);
	cr_expect(down);
	cr_expect_eq(sink[0], 0);
	cr_expect_eq(sink[LEN - 1], 0);
	ring_bulk_unexpose(&b->conn.eng.chan, &exposure);
	finish();
}

Test(ring_rail, a_connection_that_closes_leaves_nothing_of_its_gets)
{
	struct core_get get, other;

	start();
	expose(LEN);
	get = request(LEN);
	cr_assert_eq(ring_bulk_get(&a->conn.eng.chan, &get), 0);
	rail_of(a)->shown = false;
	rail_of(a)->down = -FI_ETIMEDOUT;
	poll_rails(a);
	cr_expect_not(util_list_is_empty(&a->rails.waiting));
	other = request(RING_RAIL_MIN - 1);
	cr_expect_eq(ring_bulk_get(&a->conn.eng.chan, &other), -FI_EAGAIN);
	memset(&get, 0xDB, sizeof(get)); /* core has ended it and freed it */
	ring_life_stop(&a->conn.eng);
	cr_expect(util_list_is_empty(&a->conn.gets));
	cr_expect_null(done);
	ring_bulk_unexpose(&b->conn.eng.chan, &exposure);
	finish();
}

/** Attaches the rail of `a` as that of a new connection. */
static void attach_anew(void)
{
	struct ring_rail *rail = a->conn.rail;

	rail->is_tested = false;
	rail->is_ready = false;
	rail->attached = false;
	rail->link->ops->detach(rail->link);
	ring_rail_attach(&a->conn);
}

Test(ring_rail, a_rail_is_used_once_a_read_over_it_has_come_back)
{
	struct core_get get;

	start();
	attach_anew();
	cr_expect(a->conn.rail->is_tested);
	cr_expect_not(a->conn.rail->is_ready);
	cr_expect_str_neq(ring_life_name(&a->conn.eng), "verbs-rails");
	expose(LEN);
	get = request(LEN);
	cr_expect_not(ring_rail_takes(&a->conn, &get));
	poll_rails(a);
	cr_expect(a->conn.rail->is_ready);
	cr_expect_str_eq(ring_life_name(&a->conn.eng), "verbs-rails");
	cr_expect(ring_rail_takes(&a->conn, &get));
	ring_bulk_unexpose(&b->conn.eng.chan, &exposure);
	finish();
}

/* The fake link ends the test at a second READ while one is outstanding. */
Test(ring_rail, a_rail_whose_read_does_not_come_back_is_never_used)
{
	start();
	a->second.lose_reads = true;
	attach_anew();
	expose(LEN);
	for (int i = 0; i < 20; i++) {
		expect_whole(i % 2 ? LEN : RING_RAIL_MIN, exposure.key);
		poll_rails(a);
		cr_expect_not(a->conn.rail->is_ready);
		cr_expect(rail_of(a)->read_busy);
	}
	rail_of(a)->down = -FI_ETIMEDOUT;
	poll_rails(a);
	cr_expect_null(a->conn.rail->link, "its device has given up");
	cr_expect_eq(a->rails.user_cnt, 0);
	cr_expect_eq(a->conn.eng.err, 0);
	cr_expect_eq(a->second.write_cnt + a->second.mem_cnt, 0);
	expect_whole(LEN, exposure.key);
	ring_bulk_unexpose(&b->conn.eng.chan, &exposure);
	finish();
}

Test(ring_rail, a_read_that_found_no_room_is_posted_for_the_next_long_get)
{
	start();
	a->second.no_read = true;
	attach_anew();
	cr_expect_not(a->conn.rail->is_tested);
	expose(LEN);
	expect_whole(LEN, exposure.key);
	cr_expect_not(a->conn.rail->is_tested);
	a->second.no_read = false;
	expect_whole(RING_RAIL_MIN - 1, exposure.key);
	expect_whole(LEN, (uint32_t)exposure.key);
	poll_rails(a);
	cr_expect_not(rail_of(a)->read_busy, "nothing that could use it");
	expect_whole(LEN, exposure.key);
	cr_expect(rail_of(a)->read_busy);
	cr_expect_not(a->conn.rail->is_ready);
	poll_rails(a);
	cr_expect(a->conn.rail->is_ready);
	ring_bulk_unexpose(&b->conn.eng.chan, &exposure);
	finish();
}

Test(ring_rail, a_connection_may_end_before_the_read_has_come_back)
{
	start();
	attach_anew();
	cr_expect(rail_of(a)->read_busy);
	ring_life_stop(&a->conn.eng);
	cr_expect_null(a->conn.rail->link);
	cr_expect_eq(a->second.link_cnt, 0);
	cr_expect_eq(a->rails.user_cnt, 0);
	poll_rails(a);
	finish();
}

Test(ring_rail, a_rail_that_cannot_be_attached_is_none)
{
	struct ring_rail *rail;

	start();
	rail = a->conn.rail;
	rail->link->ops->detach(rail->link);
	rail->attached = false;
	rail->is_ready = false;
	a->second.fail_attach = -FI_ENOMEM;
	ring_rail_attach(&a->conn);
	cr_expect_null(rail->link);
	cr_expect_eq(a->rails.user_cnt, 0);
	expose(LEN);
	expect_whole(LEN, exposure.key);
	ring_bulk_unexpose(&b->conn.eng.chan, &exposure);
	finish();
}

Test(ring_rail, descriptions_of_link_and_rail_are_separated)
{
	struct dev_desc both = { .len = 64 }, first, other;

	for (uint32_t i = 0; i < both.len; i++)
		both.bytes[i] = (uint8_t)i;
	cr_assert_eq(ring_rail_split(&both, false, &first, &other), 0);
	cr_expect_eq(first.len, 64, "a peer without a second device");
	cr_expect_eq(other.len, 0);
	cr_assert_eq(ring_rail_split(&both, true, &first, &other), 0);
	cr_expect_eq(first.len, 32);
	cr_expect_eq(other.len, 32);
	cr_expect_arr_eq(first.bytes, both.bytes, 32);
	cr_expect_arr_eq(other.bytes, both.bytes + 32, 32);
	both.len = 63;
	cr_expect_eq(ring_rail_split(&both, true, &first, &other), -FI_EIO);
}

Test(ring_rail, a_rail_without_one_of_the_peer_is_freed)
{
	struct dev_desc none = { 0 };

	start();
	ring_rail_establish(&b->conn, &none);
	cr_expect_null(b->conn.rail);
	cr_expect_eq(b->rails.user_cnt, 0);
	finish();
}
