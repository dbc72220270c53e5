/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How does an engine come by a connection, and what becomes of it when its peer is gone?
 * (ring_engine.c) The last tests run whole engines over fake devices, with the handshake.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "ring/ring_event.h"
#include "support/ring_pair.h"
#include "util/param.h"

static struct ring_pair pair;
static struct ring_end *a, *b;
static char story[64];

static void tell(char what)
{
	story[strlen(story)] = what;
}

static enum core_rx_verdict tell_msg(struct core_chan *chan, uint32_t op, const uint8_t *data,
				     uint32_t len, core_hold_t hold)
{
	(void)chan;
	(void)op;
	(void)data;
	(void)len;
	(void)hold;
	tell('m');
	return CORE_RX_DONE;
}

static void tell_get(struct core_chan *chan, struct core_get *get)
{
	(void)chan;
	(void)get;
	tell('g');
}

static void tell_down(struct core_chan *chan, int err)
{
	(void)chan;
	tell(err == -FI_ECONNRESET ? 'd' : err == -FI_EIO ? 'e' : '?');
}

static const struct core_upcalls upcalls = {
	.on_msg = tell_msg,
	.on_get_done = tell_get,
	.on_down = tell_down,
};

static void start(bool direct)
{
	const struct ring_pair_cfg cfg = { .direct = direct, .rx_len = { 4096, 4096 }, .seed = 1 };

	ring_pair_init(&pair, &cfg, &upcalls);
	a = &pair.end[0];
	b = &pair.end[1];
	a->dev.eager = b->dev.eager = true;
	a->conn.up_told = true;
	a->engine.event_fd = -1;
}

static void send_some(struct ring_end *end, unsigned cnt)
{
	struct iovec iov = { .iov_base = "some", .iov_len = 4 };
	struct core_frame frame = ring_frame(1, &iov);

	while (cnt--)
		cr_assert_eq(end->conn.chan.ops->send(&end->conn.chan, &frame, 0), 0);
}

static void peer_is_gone(void)
{
	struct ring_event ev = { .kind = RING_EVENT_DOWN, .conn = &a->conn, .err = -FI_ECONNRESET };

	ring_event_push(&a->engine, &ev);
	ring_engine_events_cold(&a->engine);
}

Test(ring_engine, all_that_had_arrived_is_delivered_before_the_end)
{
	start(true);
	send_some(b, 3);
	peer_is_gone();
	cr_expect_str_eq(story, "mmmd");
	cr_expect_eq(a->conn.err, -FI_ECONNRESET);
	ring_pair_fini(&pair);
}

Test(ring_engine, reads_and_transfers_that_had_ended_count_as_well)
{
	static char to[4];
	struct iovec iov = { .iov_base = to, .iov_len = 4 };
	struct core_get get = {
		.remote_addr = (uintptr_t) "from", .iov = &iov, .iov_cnt = 1, .len = 4
	};
	uint64_t value;

	start(false);
	a->dev.get_later = true;
	cr_assert_eq(a->conn.chan.ops->get(&a->conn.chan, &get), 0);
	cr_assert_eq(a->link->ops->read_consumer(a->link, &value), 0);
	send_some(b, 1);
	fake_link_deliver(b->link);
	peer_is_gone();
	cr_expect_str_eq(story, "mgd");
	cr_expect_eq(get.status, 0);
	ring_pair_fini(&pair);
}

Test(ring_engine, nonsense_among_the_last_words_is_the_reason_that_core_hears)
{
	start(true);
	send_some(b, 2);
	memset(b->link->tx_base, 0xFF, 24);
	memset(fake_link_of(b->link)->image, 0xFF, 24);
	peer_is_gone();
	cr_expect_str_eq(story, "e");
	cr_expect(util_list_is_empty(&a->engine.failed), "core hears of it once");
	ring_pair_fini(&pair);
}

Test(ring_engine, core_hears_once_of_a_connection_that_failed_and_then_went_down)
{
	start(true);
	ring_conn_fail_cold(&a->conn, -FI_EIO, "test");
	peer_is_gone();
	cr_expect_str_eq(story, "e");
	ring_pair_fini(&pair);
}

Test(ring_engine, it_does_not_sleep_while_something_is_left_to_do)
{
	struct iovec iov = { .iov_base = "some", .iov_len = 4 };
	struct core_frame frame = ring_frame(1, &iov);
	struct ring_event ev = { .kind = RING_EVENT_FAILED };

	start(true);
	a->engine.event_fd = eventfd(0, EFD_NONBLOCK);
	cr_expect_eq(ring_engine_arm(&a->engine), 0);
	cr_assert_eq(a->conn.chan.ops->send(&a->conn.chan, &frame, CORE_SEND_MORE), 0);
	cr_expect_eq(ring_engine_arm(&a->engine), -FI_EAGAIN, "a batch is held");
	ring_end_progress(a);
	cr_expect_eq(ring_engine_arm(&a->engine), 0);
	ring_event_push(&a->engine, &ev);
	cr_expect_eq(ring_engine_arm(&a->engine), -FI_EAGAIN, "the control thread has news");
	cr_expect_eq(ring_engine_arm(&a->engine), -FI_EAGAIN, "and still has");
	cr_assert(ring_event_pop(&a->engine, &ev));
	cr_expect_eq(ring_engine_arm(&a->engine), 0);
	ring_conn_fail_cold(&a->conn, -FI_EIO, "test");
	cr_expect_eq(ring_engine_arm(&a->engine), -FI_EAGAIN, "core does not know of a failure");
	ring_end_progress(a);
	cr_expect_eq(ring_engine_arm(&a->engine), 0);
	ring_pair_fini(&pair);
}

/* ---- with the handshake ---- */

struct whole {
	struct core_engine *engine;
	struct core_engine_ep *eep;
	struct sockaddr_storage addr;
	struct core_chan *chan;
	int up, down, failed;
	int err;
	struct sockaddr_storage failed_addr;
};

static struct whole wholes[2];

/* core's endpoint is opaque to an engine. */
static struct whole *whole_of(struct core_ep *ep)
{
	return (struct whole *)ep;
}

static struct whole *whole_of_chan(struct core_chan *chan)
{
	return chan == wholes[0].chan ? &wholes[0] : &wholes[1];
}

static void whole_up(struct core_ep *ep, struct core_chan *chan, const struct sockaddr *addr,
		     uint64_t incarnation)
{
	(void)addr;
	cr_expect_neq(incarnation, 0);
	whole_of(ep)->chan = chan;
	whole_of(ep)->up++;
}

static void whole_failed(struct core_ep *ep, const struct sockaddr *addr, int err)
{
	whole_of(ep)->failed++;
	whole_of(ep)->err = err;
	memcpy(&whole_of(ep)->failed_addr, addr, sizeof(struct sockaddr_in));
}

static void whole_down(struct core_chan *chan, int err)
{
	struct whole *w = whole_of_chan(chan);

	w->down++;
	w->err = err;
	w->chan = NULL;
	chan->ops->close(chan);
}

static const struct core_upcalls whole_upcalls = {
	.on_msg = tell_msg,
	.on_up = whole_up,
	.on_connect_failed = whole_failed,
	.on_down = whole_down,
};

/** What whole_open gives an engine: NULL for the direct device. */
static const struct ring_paths *whole_paths;

static void whole_open(struct whole *w)
{
	struct sockaddr_in any = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	util_params.mem = 64u << 20;
	util_params.peer_timeout_ms = 60000;
	if (whole_paths)
		cr_assert_eq(ring_engine_open(whole_paths, &whole_upcalls, &w->engine), 0);
	else
		cr_assert_eq(ring_pair_engine_open(&whole_upcalls, &w->engine), 0);
	cr_assert_eq(ring_engine_ep_open(w->engine, (struct core_ep *)w, (struct sockaddr *)&any,
					 &w->eep),
		     0);
	ring_engine_ep_addr(w->eep, &w->addr);
}

static void whole_close(struct whole *w)
{
	if (w->chan)
		w->chan->ops->close(w->chan);
	ring_engine_ep_close(w->eep);
	ring_engine_close(w->engine);
}

static void whole_progress(struct whole *w)
{
	if (whole_paths)
		ring_engine_any_ops.progress(w->engine);
	else
		ring_pair_engine_progress(w->engine);
}

/** Progress on both until *what is not 0, for at most some minutes. */
static void until(const int *what)
{
	unsigned i;

	for (i = 0; i < 60000 && !*what; i++) {
		whole_progress(&wholes[0]);
		whole_progress(&wholes[1]);
		if (!*what)
			usleep(1000);
	}
	cr_assert(*what);
}

static void connect_wholes(void)
{
	cr_assert_eq(ring_engine_connect(wholes[0].eep, (struct sockaddr *)&wholes[1].addr), 0);
}

Test(ring_engine, two_engines_shake_hands_and_talk, .timeout = 200)
{
	struct iovec iov = { .iov_base = "some", .iov_len = 4 };
	struct core_frame frame = ring_frame(1, &iov);
	const int *told;

	whole_open(&wholes[0]);
	whole_open(&wholes[1]);
	connect_wholes();
	until(&wholes[0].up);
	until(&wholes[1].up);
	cr_assert_eq(wholes[0].chan->ops->send(wholes[0].chan, &frame, 0), 0);
	while (!story[0])
		ring_pair_engine_progress(wholes[1].engine);
	cr_expect_str_eq(story, "m");

	/* One end closes: the other hears of it once, and can close its own. */
	wholes[0].chan->ops->close(wholes[0].chan);
	wholes[0].chan = NULL;
	told = &wholes[1].down;
	until(told);
	cr_expect_eq(wholes[1].err, -FI_ESHUTDOWN);
	whole_close(&wholes[0]);
	whole_close(&wholes[1]);
}

Test(ring_engine, a_link_that_cannot_be_polled_is_a_connect_that_failed, .timeout = 200)
{
	whole_open(&wholes[0]);
	whole_open(&wholes[1]);
	((struct fake_dev *)wholes[0].engine->lanes[0].dev)->fail_attach = -FI_ENOMEM;
	connect_wholes();
	until(&wholes[0].failed);
	cr_expect_eq(wholes[0].err, -FI_ENOMEM);
	cr_expect_eq(wholes[0].up, 0);
	cr_expect_arr_eq(&wholes[0].failed_addr, &wholes[1].addr, sizeof(struct sockaddr_in));
	whole_close(&wholes[0]);
	whole_close(&wholes[1]);
}

Test(ring_engine, an_endpoint_may_close_in_the_middle_of_a_handshake, .timeout = 200)
{
	unsigned i;

	for (i = 0; i < 20; i++) {
		memset(wholes, 0, sizeof(wholes));
		whole_open(&wholes[0]);
		whole_open(&wholes[1]);
		connect_wholes();
		usleep(100 * i);
		whole_close(&wholes[i % 2]);
		whole_close(&wholes[!(i % 2)]);
	}
}

/* ---- several devices ---- */

static void meet(void)
{
	whole_open(&wholes[0]);
	whole_open(&wholes[1]);
	connect_wholes();
	until(&wholes[0].up);
	until(&wholes[1].up);
}

static void part(void)
{
	whole_close(&wholes[0]);
	whole_close(&wholes[1]);
}

static struct ring_lane *lane_of(const struct whole *w)
{
	return ring_conn_of(w->chan)->lane;
}

static void send_and_see(struct whole *from, struct whole *to)
{
	struct iovec iov = { .iov_base = "some", .iov_len = 4 };
	struct core_frame frame = ring_frame(1, &iov);

	memset(story, 0, sizeof(story));
	cr_assert_eq(from->chan->ops->send(from->chan, &frame, 0), 0);
	for (unsigned i = 0; i < 10000 && !story[0]; i++) {
		whole_progress(from);
		whole_progress(to);
	}
	cr_expect_str_eq(story, "m");
}

Test(ring_engine, over_a_nic_engines_meet_in_datagrams, .timeout = 200)
{
	whole_paths = &ring_pair_paths_nic;
	meet();
	cr_expect_eq(lane_of(&wholes[0])->ops, &ring_lane_pair_nic);
	send_and_see(&wholes[0], &wholes[1]);
	send_and_see(&wholes[1], &wholes[0]);
	wholes[0].chan->ops->close(wholes[0].chan);
	wholes[0].chan = NULL;
	until(&wholes[1].down);
	cr_expect_eq(wholes[1].err, -FI_ESHUTDOWN);
	part();
}

Test(ring_engine, where_both_lanes_lead_the_first_one_is_taken, .timeout = 200)
{
	whole_paths = &ring_pair_paths_both;
	meet();
	cr_expect_eq(lane_of(&wholes[0]), &wholes[0].engine->lanes[0]);
	cr_expect_eq(lane_of(&wholes[1]), &wholes[1].engine->lanes[0]);
	send_and_see(&wholes[0], &wholes[1]);
	part();
}

Test(ring_engine, where_one_end_lacks_a_lane_the_other_is_taken, .timeout = 200)
{
	whole_paths = &ring_pair_paths_both;
	whole_open(&wholes[0]);
	whole_paths = &ring_pair_paths_nic;
	whole_open(&wholes[1]);
	connect_wholes();
	until(&wholes[0].up);
	until(&wholes[1].up);
	cr_expect_eq(lane_of(&wholes[0]), &wholes[0].engine->lanes[1]);
	send_and_see(&wholes[0], &wholes[1]);
	send_and_see(&wholes[1], &wholes[0]);
	part();
}

Test(ring_engine, a_device_that_does_not_open_is_left_out_if_another_does)
{
	struct core_engine *engine;

	fake_nic_absent = true;
	cr_assert_eq(ring_engine_open(&ring_pair_paths_both, &whole_upcalls, &engine), 0);
	cr_expect_eq(engine->lane_cnt, 1);
	ring_engine_close(engine);
	cr_expect_eq(ring_engine_open(&ring_pair_paths_nic, &whole_upcalls, &engine), -FI_ENODEV);
}

Test(ring_engine, send_rings_count_against_the_budget, .timeout = 200)
{
	size_t mem;

	whole_paths = &ring_pair_paths_nic;
	meet();
	mem = ring_conn_of(wholes[0].chan)->link->rx_len +
	      ring_conn_of(wholes[0].chan)->link->tx_len;
	cr_expect_eq(wholes[0].engine->ring_mem, mem);
	wholes[0].chan->ops->close(wholes[0].chan);
	wholes[0].chan = NULL;
	cr_expect_eq(wholes[0].engine->ring_mem, 0);
	until(&wholes[1].down);
	part();
}

Test(ring_engine, a_link_that_goes_down_ends_its_connection_and_the_pair_meets_again,
     .timeout = 200)
{
	whole_paths = &ring_pair_paths_nic;
	meet();
	fake_link_of(ring_conn_of(wholes[0].chan)->link)->down = -FI_EIO;
	until(&wholes[0].down);
	cr_expect_eq(wholes[0].err, -FI_EIO);
	until(&wholes[1].down);
	wholes[0].up = wholes[1].up = 0;
	connect_wholes();
	until(&wholes[0].up);
	until(&wholes[1].up);
	send_and_see(&wholes[0], &wholes[1]);
	part();
}
