/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Use of the rings of a connection: refusals that count, growth, and rings that are quiet. */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>

#include "engine/eng_event.h"
#include "ring/ring_len.h"
#include "ring/ring_room.h"
#include "support/ring_pair.h"
#include "util/clock.h"
#include "util/param.h"

#define LEN 4096u

static struct ring_pair pair;
static struct ring_end *a;

static void start(void)
{
	const struct ring_pair_cfg cfg = { .direct = true, .rx_len = { LEN, LEN }, .seed = 1 };

	ring_pair_init(&pair, &cfg, &ring_pair_deaf);
	a = &pair.end[0];
	pthread_mutex_init(&a->engine.lock, NULL);
	a->eep.look_queued = false;
	util_params.mem = 256u << 20;
	util_params.ring_size = 0;
	a->engine.mem = util_params.mem / 2;
}

static void stop(void)
{
	eng_event_forget(&a->eep, NULL);
	ring_pair_fini(&pair);
}

TestSuite(ring_room, .init = start, .fini = stop);

/** Finds no room `cnt` times, each time `step` bytes further on. */
static void refuse(unsigned cnt, uint64_t step)
{
	for (; cnt; cnt--) {
		a->conn.tx.flow.producer += step;
		ring_room_refused(&a->conn);
	}
}

Test(ring_room, a_ring_that_was_full_for_many_laps_is_too_small)
{
	refuse(RING_ROOM_REFUSALS - 1, LEN / 2);
	cr_expect_not(a->conn.eng.wants_room);
	refuse(1, LEN / 2);
	cr_expect(a->conn.eng.wants_room);
	cr_expect(a->eep.look_queued);
}

Test(ring_room, attempts_without_traffic_count_once)
{
	refuse(1, LEN);
	refuse(100 * RING_ROOM_REFUSALS, 0);
	cr_expect_eq(a->conn.room.refused_cnt, 1);
	refuse(15, 32);
	cr_expect_eq(a->conn.room.refused_cnt, 1);
	refuse(1, LEN / 2);
	cr_expect_eq(a->conn.room.refused_cnt, 2);
}

Test(ring_room, it_asks_again_while_it_finds_no_room)
{
	struct eng_event ev;

	refuse(RING_ROOM_REFUSALS, LEN / 2);
	cr_assert(eng_event_pop(&a->engine, &ev));
	refuse(RING_ROOM_REFUSALS - 1, LEN / 2);
	cr_expect_not(a->eep.look_queued);
	refuse(1, LEN / 2);
	cr_expect(a->eep.look_queued);
	cr_expect_eq(a->engine.cramped_cnt, 1);
}

Test(ring_room, nobody_has_a_ring_larger_than_the_default)
{
	a->conn.tx.len = RING_LEN_DEFAULT;
	refuse(2 * RING_ROOM_REFUSALS, RING_LEN_DEFAULT);
	cr_expect_not(a->conn.eng.wants_room);
}

Test(ring_room, messages_and_calls_without_room_count)
{
	a->conn.tx.flow.producer = LEN;
	cr_expect_eq(ring_transport_no_space_cold(&a->conn), -FI_EAGAIN);
	cr_expect_eq(a->conn.room.refused_cnt, 1);
	a->conn.tx.flow.producer = 2 * LEN; /* none of it released */
	cr_expect_eq(ring_transport_refuse_cold(&a->conn, 64, 64, -FI_EAGAIN), -FI_EAGAIN);
	cr_expect_eq(a->conn.room.refused_cnt, 2);
	a->conn.tx.flow.producer = 3 * LEN;
	a->conn.tx.flow.remote_consumer = 3 * LEN;
	a->conn.tx.credit = 0;
	ring_transport_refuse_cold(&a->conn, 64, 64, -FI_EAGAIN);
	cr_expect_eq(a->conn.room.refused_cnt, 2, "credit is short, not room");
}

Test(ring_room, a_ring_grows_while_memory_is_left)
{
	cr_expect(ring_room_grows(&a->conn.eng));
	a->conn.rx.len = RING_LEN_DEFAULT;
	cr_expect_not(ring_room_grows(&a->conn.eng));
	a->conn.rx.len = RING_LEN_MANY;
	cr_expect(ring_room_grows(&a->conn.eng));
	a->engine.mem = util_params.mem / 4 * 3;
	cr_expect_not(ring_room_grows(&a->conn.eng), "the last quarter is for new peers");
	a->engine.mem = 0;
	util_params.ring_size = LEN;
	a->conn.rx.len = LEN;
	cr_expect_not(ring_room_grows(&a->conn.eng), "the user has chosen the size");
}

/** Lets time pass since the last look. */
static void wait_ns(uint64_t ns)
{
	a->conn.room.seen_ns -= ns;
}

Test(ring_room, a_large_ring_shrinks_when_it_was_quiet)
{
	a->conn.rx.len = RING_LEN_DEFAULT;
	cr_expect_not(ring_room_shrinks(&a->conn.eng), "the first look");
	cr_expect_not(ring_room_shrinks(&a->conn.eng), "too soon");
	wait_ns(RING_ROOM_QUIET_NS);
	cr_expect(ring_room_shrinks(&a->conn.eng));
	a->engine.mem = 0;
	cr_expect_not(ring_room_shrinks(&a->conn.eng), "there is memory");
	a->engine.mem = util_params.mem / 2;
	a->conn.rx.len = RING_LEN_MANY;
	cr_expect_not(ring_room_shrinks(&a->conn.eng), "it is small");
}

Test(ring_room, traffic_of_either_end_keeps_a_ring)
{
	a->conn.rx.len = RING_LEN_DEFAULT;
	ring_room_shrinks(&a->conn.eng);
	for (unsigned i = 0; i < 3; i++) {
		wait_ns(RING_ROOM_QUIET_NS);
		a->conn.rx.producer += i == 0 ? 32 : 0;
		a->conn.tx.flow.producer += i == 1 ? 32 : 0;
		a->conn.link->access_cnt += i == 2;
		cr_expect_not(ring_room_shrinks(&a->conn.eng));
	}
	wait_ns(RING_ROOM_QUIET_NS);
	cr_expect(ring_room_shrinks(&a->conn.eng));
}
