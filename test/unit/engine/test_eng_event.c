/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Events of the control thread arrive in order and exactly once. (eng_event.h) */
#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "engine/eng_conn.h"
#include "engine/eng_event.h"

static struct core_engine engine;
static struct core_engine_ep eep[2];
static struct eng_conn conn[3];

static void start(void)
{
	util_list_init(&engine.events);
	util_list_init(&engine.failed);
	pthread_mutex_init(&engine.lock, NULL);
	engine.event_fd = eventfd(0, EFD_NONBLOCK);
	eep[0].engine = eep[1].engine = &engine;
}

static void stop(void)
{
	struct eng_event ev;

	while (eng_event_pop(&engine, &ev))
		;
	close(engine.event_fd);
	pthread_mutex_destroy(&engine.lock);
}

TestSuite(eng_event, .init = start, .fini = stop);

static void push(struct core_engine_ep *e, struct eng_conn *c, int err)
{
	struct eng_event ev = { .kind = ENG_EVENT_DOWN, .eep = e, .conn = c, .err = err };

	eng_event_push(&engine, &ev);
}

static bool bell_rang(void)
{
	uint64_t cnt;

	return read(engine.event_fd, &cnt, sizeof(cnt)) == sizeof(cnt);
}

Test(eng_event, a_look_is_queued_once_and_wakes_only_a_thread_that_waits)
{
	struct eng_event ev;

	eng_event_push_look(&eep[0], ENG_EVENT_WATCH);
	eng_event_push_look(&eep[0], ENG_EVENT_WATCH);
	cr_expect_not(bell_rang(), "a thread that sleeps without open operations sleeps on");
	cr_expect(eng_has_events(&engine), "one that makes progress finds it");
	eng_event_push_look(&eep[1], ENG_EVENT_WATCH);
	cr_assert(eng_event_pop(&engine, &ev));
	cr_expect(ev.kind == ENG_EVENT_WATCH && ev.eep == &eep[0]);
	cr_assert(eng_event_pop(&engine, &ev));
	cr_expect_eq(ev.eep, &eep[1]);
	cr_expect_not(eng_event_pop(&engine, &ev));
	engine.base.waits = true;
	eng_event_push_look(&eep[0], ENG_EVENT_WATCH);
	cr_expect(bell_rang());
	eng_event_push_look(&eep[0], ENG_EVENT_WATCH);
	cr_expect(bell_rang(), "the thread may have slept since");
	eng_event_forget(&eep[0], NULL);
	cr_expect_not(eng_event_pop(&engine, &ev));
	engine.base.waits = false;
}

Test(eng_event, a_tick_is_queued_once_beside_a_look_and_wakes_nobody)
{
	struct eng_event ev;

	engine.base.waits = true;
	eng_event_push_look(&eep[0], ENG_EVENT_TICK);
	cr_expect_not(bell_rang());
	eng_event_push_look(&eep[0], ENG_EVENT_TICK);
	eng_event_push_look(&eep[0], ENG_EVENT_WATCH);
	cr_expect(bell_rang());
	cr_assert(eng_event_pop(&engine, &ev));
	cr_expect(ev.kind == ENG_EVENT_TICK && ev.eep == &eep[0]);
	cr_assert(eng_event_pop(&engine, &ev));
	cr_expect_eq(ev.kind, ENG_EVENT_WATCH);
	cr_expect_not(eng_event_pop(&engine, &ev));
	eng_event_push_look(&eep[0], ENG_EVENT_TICK);
	cr_expect(eng_event_pop(&engine, &ev));
	engine.base.waits = false;
}

Test(eng_event, events_arrive_in_the_order_of_their_push)
{
	struct eng_event ev;
	int i;

	for (i = 0; i < 5; i++)
		push(&eep[0], &conn[i % 3], i);
	for (i = 0; i < 5; i++) {
		cr_assert(eng_event_pop(&engine, &ev));
		cr_expect_eq(ev.err, i);
		cr_expect_eq(ev.conn, &conn[i % 3]);
		cr_expect_eq(ev.eep, &eep[0]);
	}
	cr_expect_not(eng_event_pop(&engine, &ev));
}

Test(eng_event, one_load_shows_whether_an_event_is_queued)
{
	struct eng_event ev;

	cr_expect_not(eng_has_events(&engine));
	push(&eep[0], &conn[0], 0);
	cr_expect(eng_has_events(&engine));
	eng_event_pop(&engine, &ev);
	cr_expect_not(eng_has_events(&engine));
}

Test(eng_event, a_push_wakes_a_sleeping_thread)
{
	cr_expect_not(bell_rang());
	push(&eep[0], &conn[0], 0);
	push(&eep[0], &conn[1], 0);
	cr_expect(bell_rang());
	cr_expect_not(bell_rang());
}

Test(eng_event, freeing_a_connection_drops_its_events)
{
	struct eng_event ev;

	push(&eep[0], &conn[0], 1);
	push(&eep[0], &conn[1], 2);
	push(&eep[0], &conn[0], 3);
	eng_event_forget(&eep[0], &conn[0]);
	cr_assert(eng_event_pop(&engine, &ev));
	cr_expect_eq(ev.err, 2);
	cr_expect_not(eng_has_events(&engine));
}

Test(eng_event, closing_an_endpoint_drops_its_events)
{
	struct eng_event ev;

	push(&eep[0], &conn[0], 1);
	push(&eep[1], &conn[1], 2);
	push(&eep[0], NULL, 3);
	eng_event_forget(&eep[0], NULL);
	cr_assert(eng_event_pop(&engine, &ev));
	cr_expect_eq(ev.eep, &eep[1]);
	cr_expect_not(eng_event_pop(&engine, &ev));
}

#define PUSHES 20000

static void *push_many(void *arg)
{
	int i;

	for (i = 0; i < PUSHES; i++)
		push(arg, &conn[0], i);
	return NULL;
}

Test(eng_event, two_threads_lose_no_event)
{
	int next[2] = { 0, 0 };
	struct eng_event ev;
	pthread_t thread[2];
	int left = 2 * PUSHES;

	pthread_create(&thread[0], NULL, push_many, &eep[0]);
	pthread_create(&thread[1], NULL, push_many, &eep[1]);
	while (left) {
		if (!eng_has_events(&engine))
			continue;
		cr_assert(eng_event_pop(&engine, &ev));
		cr_assert_eq(ev.err, next[ev.eep == &eep[1]]++);
		left--;
	}
	pthread_join(thread[0], NULL);
	pthread_join(thread[1], NULL);
	cr_expect_not(eng_has_events(&engine));
}
