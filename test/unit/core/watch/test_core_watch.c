/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which waits are found, shown and recorded, with their causes. (core/watch/core_watch.h) */
#include "core/watch/core_watch.h"
#include "core/msg/core_post.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/rpc/core_rpc.h"
#include "support/core_pair.h"
#include "util/clock.h"
#include "util/event.h"
#include "util/job.h"
#include "util/param.h"
#include "util/stats.h"

#define TICK_NS (5 * UTIL_NS_PER_S / 2)

static struct node nodes[2];
static struct copyrpc_stats_peer row; /* of the connection of node 0 */
static uint64_t now_ns;
static char bytes[20000];

static void setup(void)
{
	util_params.watch_s = 10;
	now_ns = util_clock_ns();
	nodes_open_plain(nodes, 2);
}

static struct core_peer *peer_of(struct node *n)
{
	return n->ep.peers[1];
}

/** Connects node 0 with node 1, with counters. */
static void connect_them(void)
{
	cr_assert_eq(node_send(&nodes[0], 1, bytes, 8, true, 99, 0, NULL), 0);
	nodes_settle(nodes, 2);
	row = (struct copyrpc_stats_peer){ .addr.family = AF_INET };
	peer_of(&nodes[0])->chan->stats = &row;
}

/** Looks several times, a tick apart. */
static void look(unsigned ticks)
{
	while (ticks--) {
		now_ns += TICK_NS;
		core_watch_ep_at(&nodes[0].ep, now_ns);
	}
}

/** Returns the wait in the page, or NULL; fails if there are several. */
static const struct copyrpc_stats_wait *shown(void)
{
	const struct copyrpc_stats_page *page = util_stats_make_page();
	const struct copyrpc_stats_wait *rows =
		(const void *)((const char *)page + page->tables[COPYRPC_STATS_WAITS].offset);
	const struct copyrpc_stats_wait *found = NULL;

	for (uint32_t i = 1; i < UTIL_STATS_WAITS; i++)
		if (rows[i].row.state == COPYRPC_STATS_LIVE) {
			cr_assert_null(found);
			found = &rows[i];
		}
	return found;
}

/** Returns the number of stall events of a kind; *last is the last one. */
static unsigned events(uint32_t kind, struct copyrpc_stats_event *last)
{
	const struct copyrpc_stats_page *page = util_stats_make_page();
	const struct copyrpc_stats_event *rows =
		(const void *)((const char *)page + page->tables[COPYRPC_STATS_STALLS].offset);
	struct copyrpc_stats_event event;
	unsigned cnt = 0;

	for (uint32_t i = 1; i < UTIL_STATS_STALLS; i++)
		if (util_event_read(&rows[i], &event) && event.kind == kind) {
			*last = event;
			cnt++;
		}
	return cnt;
}

static void expect_wait(enum copyrpc_stats_cause cause, unsigned ticks)
{
	const struct copyrpc_stats_wait *wait = shown();

	cr_assert_not_null(wait);
	cr_expect_eq(wait->cause, (uint32_t)cause, "%u", wait->cause);
	cr_expect_eq(now_ns - util_event_clock() - wait->since_ns, ticks * TICK_NS, "%lu",
		     (unsigned long)(now_ns - util_event_clock() - wait->since_ns));
}

/** Sends a message that needs a receive buffer. */
static void send_long(uint64_t tag)
{
	cr_assert_eq(node_send(&nodes[0], 1, bytes, sizeof(bytes), true, tag, 0, NULL), 0);
	nodes_settle(nodes, 2);
}

static void receive_long(uint64_t tag)
{
	cr_assert_eq(
		node_recv(&nodes[1], FI_ADDR_UNSPEC, bytes, sizeof(bytes), true, tag, 0, 0, NULL),
		0);
	nodes_settle(nodes, 2);
}

Test(core_watch, operations_that_end_between_looks_do_not_wait, .init = setup)
{
	struct copyrpc_stats_event event;

	connect_them();
	look(20);
	cr_expect_null(shown());
	for (unsigned i = 0; i < 20; i++) {
		send_long(i);
		look(1);
		receive_long(i);
	}
	cr_expect_null(shown());
	cr_expect_eq(events(COPYRPC_STATS_WAIT, &event), 0);
	nodes_close(nodes, 2);
}

Test(core_watch, a_receive_that_is_not_posted_is_waited_for, .init = setup)
{
	struct copyrpc_stats_event event;

	connect_them();
	send_long(7);
	look(1);
	cr_expect_null(shown(), "found once");
	look(1);
	expect_wait(COPYRPC_STATS_FOR_RECEIVE, 1);
	look(2);
	cr_expect_eq(events(COPYRPC_STATS_WAIT, &event), 0);
	look(10);
	expect_wait(COPYRPC_STATS_FOR_RECEIVE, 13);
	cr_expect_eq(events(COPYRPC_STATS_WAIT, &event), 1);
	cr_expect_eq(event.values[0], COPYRPC_STATS_FOR_RECEIVE);
	cr_expect_eq(event.values[1], 4 * TICK_NS);
	receive_long(7);
	look(1);
	cr_expect_null(shown());
	cr_expect_eq(events(COPYRPC_STATS_WAIT_END, &event), 1);
	cr_expect_eq(event.values[1], 14 * TICK_NS);
	nodes_close(nodes, 2);
}

Test(core_watch, a_response_is_waited_for_whatever_its_call_was_before, .init = setup)
{
	struct util_pool *calls = &nodes[0].ep.rpc.calls;
	struct iovec iov = { .iov_base = bytes, .iov_len = 8 };
	struct core_rpc_request request = {
		.iov = &iov,
		.iov_cnt = 1,
		.len = 8,
		.resp = bytes + 8,
		.resp_max = 8,
	};
	struct core_rpc_call *call;

	connect_them();
	call = util_pool_alloc(calls);
	cr_assert_not_null(call);
	memset(call, 0xbe, sizeof(*call));
	util_pool_release(calls, call);
	cr_assert_eq(core_rpc_call(&nodes[0].ep, 1, &request), 0);
	look(1);
	cr_expect_null(shown()); /* not open at an earlier look */
	look(1);
	expect_wait(COPYRPC_STATS_FOR_RESPONSE, 1);
	nodes_close(nodes, 2);
}

Test(core_watch, a_connection_is_waited_for, .init = setup)
{
	fake_engine_cfg.lazy_up = 1000000;
	cr_assert_eq(node_send(&nodes[0], 1, bytes, 8, true, 1, 0, NULL), 0);
	look(3);
	expect_wait(COPYRPC_STATS_FOR_CONNECTION, 2);
	nodes_close(nodes, 2);
	cr_expect_null(shown(), "no wait outlives its peer");
}

Test(core_watch, a_peer_that_connects_while_it_is_waited_for_gets_its_name, .init = setup)
{
	struct util_job_name far = { .rank = 17, .pid = 4711, .host = "there" };

	fake_engine_cfg.lazy_up = 1;
	cr_assert_eq(node_send(&nodes[0], 1, bytes, sizeof(bytes), true, 7, 0, NULL), 0);
	look(3);
	expect_wait(COPYRPC_STATS_FOR_CONNECTION, 2);
	cr_expect_eq(shown()->rank, -1);
	cr_expect_str_eq(shown()->host, "");
	nodes_settle(nodes, 2);
	cr_assert_not_null(peer_of(&nodes[0])->chan);
	peer_of(&nodes[0])->chan->identity = &far;
	look(1);
	cr_assert_not_null(shown());
	cr_expect_eq(shown()->rank, 17);
	cr_expect_eq(shown()->pid, 4711);
	cr_expect_str_eq(shown()->host, "there");
	peer_of(&nodes[0])->chan->identity = NULL;
	nodes_close(nodes, 2);
}

Test(core_watch, room_credit_and_queue_differ_by_what_was_refused, .init = setup)
{
	connect_them();
	fake_engine_cfg.room = 1;
	fake_engine_cfg.no_delivery = true;
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(node_send(&nodes[0], 1, bytes, 8, true, i, 0, NULL), 0);
	look(3);
	expect_wait(COPYRPC_STATS_FOR_ROOM, 2);
	row.no_credit++;
	look(1);
	expect_wait(COPYRPC_STATS_FOR_CREDIT, 3);
	look(1);
	expect_wait(COPYRPC_STATS_FOR_CREDIT, 4);
	row.no_queue += 2;
	row.no_space++;
	look(1);
	expect_wait(COPYRPC_STATS_FOR_QUEUE, 5);
	fake_engine_cfg.no_delivery = false;
	nodes_settle(nodes, 2);
	look(1);
	cr_expect_null(shown());
	nodes_close(nodes, 2);
}

Test(core_watch, a_simple_access_is_waited_for, .init = setup)
{
	struct core_simple *simple;

	connect_them();
	simple = &peer_of(&nodes[0])->simple;
	simple->awaited = simple->tail = 2;
	look(3);
	expect_wait(COPYRPC_STATS_FOR_ACK, 2);
	simple->head = 1;
	look(1);
	cr_expect_null(shown(), "one ended meanwhile");
	look(1);
	expect_wait(COPYRPC_STATS_FOR_ACK, 1);
	simple->head = 2;
	look(1);
	cr_expect_null(shown());
	nodes_close(nodes, 2);
}

static void setup_async(void)
{
	setup();
	fake_engine_cfg.caps |= CORE_CHAN_ASYNC;
}

Test(core_watch, an_acknowledgement_is_waited_for_while_none_comes, .init = setup_async)
{
	connect_them();
	fake_engine_cfg.no_acks = true;
	cr_assert_eq(node_send(&nodes[0], 1, bytes, 8, true, 1, 0, NULL), 0);
	cr_assert_eq(node_send(&nodes[0], 1, bytes, 8, true, 2, 0, NULL), 0);
	nodes_settle(nodes, 2);
	look(3);
	expect_wait(COPYRPC_STATS_FOR_ACK, 2);
	fake_engine_cfg.no_acks = false;
	cr_assert_eq(node_send(&nodes[0], 1, bytes, 8, true, 3, 0, NULL), 0);
	nodes_settle(nodes, 2);
	look(1);
	cr_expect_null(shown());
	nodes_close(nodes, 2);
}

Test(core_watch, sends_that_are_acknowledged_between_looks_do_not_wait, .init = setup_async)
{
	connect_them();
	for (unsigned i = 0; i < 20; i++) {
		fake_engine_cfg.no_acks = false;
		cr_assert_eq(node_send(&nodes[0], 1, bytes, 8, true, 1, 0, NULL), 0);
		nodes_settle(nodes, 2);
		cr_assert_not(core_pending_is_open(&peer_of(&nodes[0])->pending));
		fake_engine_cfg.no_acks = true;
		cr_assert_eq(node_send(&nodes[0], 1, bytes, 8, true, 2, 0, NULL), 0);
		nodes_settle(nodes, 2);
		cr_assert(core_pending_is_open(&peer_of(&nodes[0])->pending));
		look(1);
		cr_expect_null(shown(), "look %u", i);
	}
	nodes_close(nodes, 2);
}

Test(core_watch, a_receive_from_one_peer_is_shown_and_recorded_if_that_is_stopped, .init = setup)
{
	struct copyrpc_stats_event event;
	pid_t pid = fork();
	int status;

	if (!pid)
		for (;;)
			pause();
	nodes[0].ep.directed = true;
	connect_them();
	cr_assert_eq(node_recv(&nodes[0], FI_ADDR_UNSPEC, bytes, 8, true, 6, 0, 0, NULL), 0);
	look(3);
	cr_expect_null(shown(), "any peer may send it");
	cr_assert_eq(node_recv(&nodes[0], 1, bytes, 8, true, 7, 0, 0, NULL), 0);
	look(2);
	expect_wait(COPYRPC_STATS_FOR_MESSAGE, 1);
	look(4);
	expect_wait(COPYRPC_STATS_FOR_MESSAGE, 5);
	cr_expect_eq(events(COPYRPC_STATS_WAIT, &event), 0, "it may be posted for long");
	peer_of(&nodes[0])->chan->pid = pid;
	kill(pid, SIGSTOP);
	cr_assert_eq(waitpid(pid, &status, WUNTRACED), pid);
	look(1);
	cr_expect_eq(events(COPYRPC_STATS_WAIT, &event), 1);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	cr_assert_eq(node_recv(&nodes[0], 1, bytes, 8, false, 0, 0, 0, NULL), 0);
	cr_assert_eq(node_send(&nodes[1], 0, bytes, 8, true, 7, 0, NULL), 0);
	nodes_settle(nodes, 2);
	look(1);
	cr_expect_null(shown(), "another receive is the oldest");
	look(1);
	expect_wait(COPYRPC_STATS_FOR_MESSAGE, 1);
	nodes_close(nodes, 2);
}

Test(core_watch, time_in_which_this_process_did_not_look_does_not_count, .init = setup)
{
	struct copyrpc_stats_event event;

	connect_them();
	send_long(7);
	look(2);
	now_ns += 3600 * UTIL_NS_PER_S; /* stopped */
	look(1);
	expect_wait(COPYRPC_STATS_FOR_RECEIVE, 2);
	cr_expect_eq(events(COPYRPC_STATS_WAIT, &event), 0);
	look(2);
	cr_expect_eq(events(COPYRPC_STATS_WAIT, &event), 1);
	receive_long(7);
	nodes_close(nodes, 2);
}

Test(core_watch, stalls_and_losses_are_recorded_when_they_begin_and_end, .init = setup)
{
	struct copyrpc_stats_event event;

	connect_them();
	look(2);
	for (unsigned i = 0; i < 5; i++) {
		row.no_space += 10;
		row.resent += 3;
		look(1);
	}
	cr_expect_eq(events(COPYRPC_STATS_STALL, &event), 1);
	cr_expect_eq(event.values[0], COPYRPC_STATS_FOR_ROOM);
	cr_expect_eq(event.values[1], 10);
	cr_expect_eq(events(COPYRPC_STATS_LOSSES, &event), 1);
	cr_expect_eq(event.values[0], 3);
	cr_expect_eq(events(COPYRPC_STATS_STALL_END, &event), 0);
	look(5);
	cr_expect_eq(events(COPYRPC_STATS_STALL_END, &event), 1);
	cr_expect_eq(event.values[0], 50);
	cr_expect_eq(event.values[1], 5 * TICK_NS);
	cr_expect_eq(events(COPYRPC_STATS_LOSSES_END, &event), 1);
	cr_expect_eq(event.values[0], 15);
	cr_expect_eq(events(COPYRPC_STATS_LOSSES, &event), 1);
	nodes_close(nodes, 2);
}

static void expect_text(const char *part)
{
	char text[384];

	core_watch_text(peer_of(&nodes[0]), now_ns, text, sizeof(text));
	cr_expect(strstr(text, part) != NULL, "no \"%s\" in %s", part, text);
}

Test(core_watch, the_line_names_process_time_cause_and_peer, .init = setup)
{
	struct util_job_name far = { .rank = 17, .pid = 4711, .host = "there" };
	char text[64];
	int status;
	pid_t pid = fork();

	if (!pid)
		for (;;)
			pause();
	setenv("OMPI_COMM_WORLD_RANK", "3", 1);
	connect_them();
	send_long(7);
	look(5);
	expect_text("rank 3 (");
	expect_text(", pid ");
	expect_text(") waits 10 s for a receive buffer of ");
	expect_text(", from which nothing has arrived for 10 s");
	row.rx_messages++;
	look(1);
	expect_text(", which makes progress: something arrived from it in the last 1 s");
	peer_of(&nodes[0])->chan->identity = &far;
	expect_text("of rank 17 (there, pid 4711) at ");
	far.host[0] = '\0';
	expect_text("of rank 17 (pid 4711) at ");
	far.rank = -1;
	expect_text("of pid 4711 at ");
	far.host[0] = 't';
	expect_text("of pid 4711 on there at ");
	peer_of(&nodes[0])->chan->pid = pid;
	kill(pid, SIGSTOP);
	cr_assert_eq(waitpid(pid, &status, WUNTRACED), pid);
	snprintf(text, sizeof(text), "of pid %d on there at ", (int)pid);
	expect_text(text);
	expect_text(", which is stopped");
	peer_of(&nodes[0])->chan->identity = NULL;
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	receive_long(7);
	nodes_close(nodes, 2);
}

Test(core_watch, a_look_takes_peers_in_turn, .init = setup)
{
	struct core_peer *peer;

	connect_them();
	peer = peer_of(&nodes[0]);
	look(1);
	cr_expect_eq(nodes[0].ep.known.prev, &peer->ep_link, "the last one looked at");
	cr_expect_eq(peer->watch.stats, &row);
	nodes_close(nodes, 2);
}

Test(core_watch, nobody_waits_for_the_ack_of_an_injected_message, .init = setup)
{
	fake_engine_cfg.caps |= CORE_CHAN_ASYNC;
	fake_engine_cfg.no_acks = true;
	connect_them();
	fake_engine_cfg.no_acks = false;
	nodes_settle(nodes, 2);
	fake_engine_cfg.no_acks = true;
	nodes[0].ep.tx.cntr = NULL; /* which would tell of their ends */
	cr_assert_eq(
		core_tx_send_buf(&nodes[0].ep, bytes, 8, 1, 7, 0, NULL, 0, true, CORE_POST_LEAVES),
		0);
	cr_assert(core_pending_is_open(&peer_of(&nodes[0])->pending));
	look(10);
	cr_expect_null(shown());
	cr_assert_eq(node_send(&nodes[0], 1, bytes, 8, true, 99, 0, NULL), 0);
	look(10);
	cr_expect(shown() && shown()->cause == COPYRPC_STATS_FOR_ACK);
	nodes_close(nodes, 2);
}
