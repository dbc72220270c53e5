/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connections that are replaced for the size of their rings: questions, replies, notes. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "cm/conn/cm_conn.h"
#include "eng_fixture.h"
#include "engine/eng_outage.h"
#include "engine/eng_room.h"
#include "util/clock.h"
#include "wire/wire_cm.h"

static bool can_grow, can_shrink;
static struct eng_transport_ops sized;
static const struct eng_transports transports = { 1, { &sized } };

static bool grows(const struct eng_conn *conn)
{
	return can_grow;
}

static bool shrinks(struct eng_conn *conn)
{
	return can_shrink;
}

static int open_sized(struct eng_transport *t)
{
	int ret;

	t->ops = &fake_transport_ops[0]; /* which the fake transport knows */
	ret = t->ops->open(t);
	t->ops = &sized;
	return ret;
}

static bool poll_nothing(struct eng_transport *t)
{
	return false;
}

static void start(void)
{
	can_grow = can_shrink = false;
	sized = fake_transport_ops[0];
	sized.open = open_sized;
	sized.poll = poll_nothing;
	sized.progress = NULL;
	sized.grows = grows;
	sized.shrinks = shrinks;
	wholes_meet(&transports, &transports);
}

TestSuite(eng_room, .init = start, .fini = wholes_close, .timeout = 200);

static struct eng_conn *conn_of(unsigned at)
{
	return eng_conn_of(wholes[at].chan);
}

static void look(unsigned at)
{
	wholes[at].engine->offer_ns = 0;
	whole_progress(&wholes[at]);
}

Test(eng_room, an_end_asks_once_it_wants_room)
{
	look(0);
	cr_expect_eq(wholes[0].regained, 0);
	cr_expect_eq(eng_chan_better(wholes[0].chan, true), 0);
	eng_room_want(conn_of(0));
	eng_room_want(conn_of(0));
	cr_expect_eq(wholes[0].engine->cramped_cnt, 1);
	look(0);
	cr_expect_eq(wholes[0].regained, 1);
	cr_expect_eq(eng_chan_better(wholes[0].chan, true), CORE_BETTER_ROOM);
	look(0);
	cr_expect_eq(wholes[0].regained, 1, "the next time it finds no room");
	whole_close_chan(&wholes[0]);
	cr_expect_eq(wholes[0].engine->cramped_cnt, 0);
}

Test(eng_room, the_peer_agrees_if_it_has_memory)
{
	cr_expect_eq(eng_chan_better(wholes[1].chan, false), CORE_BETTER_QUIET);
	can_grow = true;
	cr_expect_eq(eng_chan_better(wholes[1].chan, false), CORE_BETTER_SIZES);
	cr_expect_eq(eng_chan_better(wholes[1].chan, true), 0, "but does not ask");
}

Test(eng_room, an_end_that_is_short_of_memory_asks_for_idle_rings)
{
	can_shrink = true;
	cr_expect_eq(eng_chan_better(wholes[0].chan, true), CORE_BETTER_QUIET);
	look(0);
	cr_expect_eq(wholes[0].regained, 0, "it is not short");
	eng_room_note_short(wholes[0].engine);
	eng_cm_ops.tick(wholes[0].eep);
	look(0);
	cr_expect_eq(wholes[0].regained, 1);
	wholes[0].eep->look_ns = 0;
	eng_cm_ops.tick(wholes[0].eep);
	look(0);
	cr_expect_eq(wholes[0].regained, 2, "again, as an idle ring is seen by two looks");
	wholes[0].engine->short_ns = util_clock_ns();
	wholes[0].eep->look_ns = 0;
	eng_cm_ops.tick(wholes[0].eep);
	look(0);
	cr_expect_eq(wholes[0].regained, 2, "no peer has come for long");
}

Test(eng_room, peers_without_the_feature_are_not_asked)
{
	can_grow = can_shrink = true;
	eng_room_want(conn_of(0));
	conn_of(0)->cm->features &= ~WIRE_CM_FEATURE_ROOM;
	cr_expect_eq(eng_chan_better(wholes[0].chan, true), 0);
	cr_expect_eq(eng_chan_better(wholes[0].chan, false), 0);
}

Test(eng_room, a_connection_that_has_failed_is_not_replaced)
{
	can_grow = can_shrink = true;
	eng_room_want(conn_of(0));
	conn_of(0)->err = -FI_EIO;
	cr_expect_eq(eng_chan_better(wholes[0].chan, true), 0);
	cr_expect_eq(eng_chan_better(wholes[0].chan, false), 0);
	conn_of(0)->err = 0;
}

static void meet_again(void)
{
	whole_close_chan(&wholes[0]);
	whole_close_chan(&wholes[1]);
	wholes[0].up = wholes[1].up = 0;
	fake_size = ENG_SIZE_DEFAULT;
	wholes_connect();
	wholes_until(&wholes[0].up);
	wholes_until(&wholes[1].up);
}

Test(eng_room, the_next_connection_of_a_noted_peer_has_another_size)
{
	uint64_t incarnation = cm_conn_incarnation(conn_of(0)->cm);

	cr_expect_eq(eng_room_size(wholes[0].engine, incarnation), ENG_SIZE_DEFAULT);
	eng_chan_resize(wholes[0].chan, true);
	eng_chan_resize(wholes[1].chan, true);
	for (int i = 0; i < 2; i++)
		cr_expect_eq(eng_room_size(wholes[0].engine, incarnation), ENG_SIZE_LARGE,
			     "also if the attempt is repeated");
	cr_expect_eq(eng_room_size(wholes[0].engine, incarnation + 1), ENG_SIZE_DEFAULT);
	meet_again();
	cr_expect_eq(fake_size, ENG_SIZE_LARGE);
	eng_chan_resize(wholes[0].chan, false);
	eng_chan_resize(wholes[1].chan, false);
	meet_again();
	cr_expect_eq(fake_size, ENG_SIZE_SMALL, "the latest note counts");
	for (int i = 0; i < 2; i++)
		wholes[0].engine->notes[i].end_ns = wholes[1].engine->notes[i].end_ns =
			util_clock_ns();
	cr_expect_eq(eng_room_size(wholes[0].engine, incarnation), ENG_SIZE_DEFAULT, "long ago");
	meet_again();
	cr_expect_eq(fake_size, ENG_SIZE_DEFAULT);
}

Test(eng_room, notes_of_many_peers_replace_the_oldest)
{
	struct cm_conn peer = { 0 }, *own = conn_of(0)->cm;

	conn_of(0)->cm = &peer;
	for (peer.peer_inc = 1; peer.peer_inc <= ENG_ROOM_NOTES + 1; peer.peer_inc++)
		eng_chan_resize(wholes[0].chan, true);
	conn_of(0)->cm = own;
	cr_expect_eq(eng_room_size(wholes[0].engine, 1), ENG_SIZE_DEFAULT);
	for (uint64_t inc = 2; inc <= ENG_ROOM_NOTES + 1; inc++)
		cr_expect_eq(eng_room_size(wholes[0].engine, inc), ENG_SIZE_LARGE);
	cr_expect_eq(eng_room_size(wholes[0].engine, ENG_ROOM_NOTES + 2), ENG_SIZE_DEFAULT);
}
