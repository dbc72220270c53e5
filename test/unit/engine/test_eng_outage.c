/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Outages of a transport's device: what the handshake knows, when it is reopened, and which
 * connections return to it.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "cm/conn/cm_conn.h"
#include "cm/ep/cm_ep.h"
#include "eng_fixture.h"
#include "engine/eng_conn.h"
#include "engine/eng_event.h"
#include "engine/eng_outage.h"
#include "util/clock.h"
#include "wire/wire_cm.h"

#define BOTH (WIRE_CM_PATH_SHM | WIRE_CM_PATH_NIC)

static int state, reopen_ret;
static bool improve;
static unsigned reopened, polls;
static struct eng_transport_ops frail;
static struct eng_transports transports;
static struct eng_transport *transport;

static int health(struct eng_transport *t)
{
	return state;
}

static int reopen(struct eng_transport *t)
{
	reopened++;
	if (!eng_outage_is_closed(t))
		t->ops->close(t);
	if (reopen_ret)
		return reopen_ret;
	state = 0;
	return t->ops->open(t);
}

static bool improves(const struct eng_conn *conn)
{
	return improve;
}

static bool count_poll(struct eng_transport *t)
{
	polls++;
	return false;
}

static int open_frail(struct eng_transport *t)
{
	int ret;

	t->ops = &fake_transport_ops[1]; /* which the fake transport knows */
	ret = t->ops->open(t);
	t->ops = &frail;
	return ret;
}

static void start(void)
{
	state = reopen_ret = 0;
	reopened = 0;
	frail = fake_transport_ops[1];
	frail.open = open_frail;
	frail.poll = count_poll;
	frail.health = health;
	frail.reopen = reopen;
	transports = (struct eng_transports){ 2, { &fake_transport_ops[0], &frail } };
	whole_open(&wholes[0], &transports);
	transport = eng_transport_at(wholes[0].engine, 1);
	fake_cfg.fail_prepare = 0;
}

static void stop(void)
{
	whole_close(&wholes[0]);
}

TestSuite(eng_outage, .init = start, .fini = stop, .timeout = 200);

static uint32_t sound(void)
{
	return cm_ep_sound_paths(wholes[0].eep->cep, BOTH);
}

static int prepare(struct eng_conn **conn)
{
	struct cm_params params = { .path = WIRE_CM_PATH_NIC };
	void *user = NULL;
	struct cm_conn *cm = calloc(1, sizeof(*cm));
	int ret = eng_cm_ops.prepare(wholes[0].eep, cm, &params, &user);

	*conn = user;
	if (ret)
		cm_conn_put(cm);
	return ret;
}

static void look(void)
{
	transport->reopen_ns = 0;
	eng_outage_look(wholes[0].engine);
}

static bool is_awake(void)
{
	struct pollfd p = { .fd = wholes[0].engine->base.wait_fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

Test(eng_outage, a_port_that_is_down_takes_its_path_away_until_it_is_up)
{
	struct eng_conn *conn;

	look();
	cr_expect_eq(sound(), BOTH);
	cr_expect_not(wholes[0].engine->has_outage);
	state = -FI_ENETDOWN;
	look();
	cr_expect_eq(sound(), WIRE_CM_PATH_SHM);
	cr_expect_eq(cm_ep_sound_paths(wholes[0].eep->cep, WIRE_CM_PATH_NIC), WIRE_CM_PATH_NIC,
		     "the only one stays");
	cr_expect(wholes[0].engine->has_outage);
	cr_assert_eq(prepare(&conn), 0, "it may be up in time");
	eng_conn_free(conn);
	state = 0;
	look();
	cr_expect_eq(sound(), BOTH);
	cr_expect_not(wholes[0].engine->has_outage);
	cr_expect_eq(reopened, 0);
}

Test(eng_outage, a_failed_device_is_reopened_when_no_connection_is_left)
{
	struct eng_conn *before, *after;

	cr_assert_eq(prepare(&before), 0);
	state = -FI_EIO;
	look();
	look();
	cr_expect_eq(reopened, 0, "a connection refers to it");
	cr_expect_eq(prepare(&after), -FI_ENODEV);
	eng_conn_free(before);
	look();
	cr_expect_eq(reopened, 1);
	cr_expect_eq(transport->outage, 0);
	cr_assert_eq(prepare(&after), 0);
	eng_conn_free(after);
	cr_expect_eq(transport->user_cnt, 0);
}

Test(eng_outage, states_of_endpoints_are_closed_with_the_device_and_made_anew)
{
	struct eng_conn *conn;

	cr_assert_eq(prepare(&conn), 0);
	cr_assert_eq(fake_calls('o'), 1);
	state = -FI_EIO;
	look();
	cr_expect_eq(fake_calls('c'), 0, "a connection refers to it");
	eng_conn_free(conn);
	reopen_ret = -FI_ENODEV;
	look();
	look();
	cr_expect_eq(fake_calls('c'), 1, "once, also if the device is not back yet");
	reopen_ret = 0;
	look();
	cr_expect_eq(fake_calls('o'), 1);
	cr_assert_eq(prepare(&conn), 0);
	cr_expect_eq(fake_calls('o'), 2);
	eng_conn_free(conn);
}

/** Goes to sleep and wakes up, without a poll. On a busy machine a look may be due already. */
static void arm(void)
{
	struct core_engine *engine = wholes[0].engine;
	int ret;

	polls = 0;
	for (int i = 0; (ret = eng_arm(&engine->base)) == -FI_EAGAIN && i < 100; i++)
		eng_events_cold(engine);
	cr_assert_eq(ret, 0);
	eng_disarm(&engine->base);
	cr_expect_eq(polls, 0);
}

Test(eng_outage, a_device_that_is_away_is_tried_again_and_not_touched_meanwhile)
{
	struct eng_conn *conn;

	state = -FI_EIO;
	reopen_ret = -FI_ENODEV;
	look();
	look();
	cr_expect_eq(reopened, 2);
	cr_expect(eng_outage_is_closed(transport));
	cr_expect_eq(sound(), WIRE_CM_PATH_SHM);
	cr_expect_eq(prepare(&conn), -FI_ENODEV);
	arm();
	reopen_ret = 0;
	look();
	cr_expect_eq(sound(), BOTH);
}

Test(eng_outage, attempts_to_open_a_device_are_half_a_second_apart)
{
	state = -FI_EIO;
	reopen_ret = -FI_ENODEV;
	for (int i = 0; i < 10; i++) {
		look();
		transport->reopen_ns += 1000 * 1000000000ull; /* this machine may be slow */
		eng_outage_look(wholes[0].engine);
		eng_outage_look(wholes[0].engine);
	}
	cr_expect_eq(reopened, 10);
	reopen_ret = 0;
	look();
}

Test(eng_outage, the_first_refusal_of_a_device_is_a_reason_to_look_at_it)
{
	struct eng_conn *conn;

	fake_cfg.fail_prepare = -FI_EIO;
	cr_expect_eq(prepare(&conn), -FI_ENODEV);
	cr_expect(wholes[0].eep->look_queued);
	cr_expect(is_awake(), "a thread that sleeps looks, too");
	cr_expect_eq(prepare(&conn), -FI_EIO, "the device lives, and refuses");
	fake_cfg.fail_prepare = 0;
	cr_assert_eq(prepare(&conn), 0);
	eng_conn_free(conn);
	cr_expect_not(transport->refused);
	eng_progress(&wholes[0].engine->base);
	cr_expect_not(wholes[0].engine->has_outage, "it lives");
}

Test(eng_outage, a_connection_that_comes_after_the_failure_is_refused_and_a_reason_to_look)
{
	struct eng_conn *conn;

	cr_assert_eq(prepare(&conn), 0);
	state = -FI_EIO; /* Links that it would notify: none. */
	eng_conn_up(conn);
	cr_expect_eq(transport->user_cnt, 0);
	cr_expect_eq(transport->conn_cnt, 0);
	cr_expect(wholes[0].engine->must_look);
	eng_events_cold(wholes[0].engine);
	cr_expect_eq(reopened, 1);
	cr_expect_eq(transport->outage, 0);
}

Test(eng_outage, a_device_that_was_closed_wakes_no_thread_by_a_copy_of_its_descriptor)
{
	int copy = dup(transport->ops->wait_fd(transport));
	uint64_t one = 1;

	cr_assert_geq(copy, 0);
	cr_assert_eq(write(copy, &one, sizeof(one)), sizeof(one));
	cr_assert(is_awake());
	state = -FI_EIO;
	look();
	cr_expect_eq(reopened, 1);
	cr_expect_not(is_awake());
	cr_assert_eq(write(transport->ops->wait_fd(transport), &one, sizeof(one)), sizeof(one));
	cr_expect(is_awake(), "the new one does");
	close(copy);
}

Test(eng_outage, a_device_that_cannot_be_waited_for_stays_closed)
{
	struct core_engine *engine = wholes[0].engine;
	int fd = engine->base.wait_fd, full = open("/dev/null", O_RDONLY);

	state = -FI_EIO;
	engine->base.wait_fd = full; /* no set of descriptors: refuses */
	look();
	cr_expect_eq(reopened, 1);
	cr_expect(eng_outage_is_closed(transport));
	cr_expect(engine->has_outage);
	engine->base.wait_fd = fd;
	close(full);
	look();
	cr_expect_eq(transport->outage, 0);
	cr_expect_not(engine->has_outage);
}

/* ---- connections that return: here the frail device is that of the better path ---- */

static int open_better(struct eng_transport *t)
{
	int ret;

	t->ops = &fake_transport_ops[0];
	ret = t->ops->open(t);
	t->ops = &frail;
	return ret;
}

static void start_better(void)
{
	state = reopen_ret = 0;
	frail = fake_transport_ops[0];
	frail.open = open_better;
	frail.poll = count_poll;
	frail.progress = NULL;
	frail.improves = improves;
	improve = false;
	frail.health = health;
	frail.reopen = reopen;
	transports = (struct eng_transports){ 2, { &frail, &fake_transport_ops[1] } };
	whole_open(&wholes[0], &transports);
	whole_open(&wholes[1], &fake_transports_both);
	transport = eng_transport_at(wholes[0].engine, 0);
}

TestSuite(eng_outage_better, .init = start_better, .fini = wholes_close, .timeout = 200);

static uint32_t meet(void)
{
	wholes[0].up = wholes[1].up = 0;
	wholes_connect();
	wholes_until(&wholes[0].up);
	wholes_until(&wholes[1].up);
	return eng_conn_of(wholes[0].chan)->transport->ops->path;
}

Test(eng_outage_better, connections_made_in_an_outage_may_return_after_it)
{
	look();
	cr_expect_eq(wholes[0].regained, 0, "there was no outage");
	state = -FI_ENETDOWN;
	look();
	cr_expect_eq(wholes[0].regained, 0, "not yet");
	cr_assert_eq(meet(), WIRE_CM_PATH_NIC);
	cr_expect_eq(eng_chan_better(wholes[0].chan, true), 0);
	cr_expect_eq(eng_chan_better(wholes[0].chan, false), 0);
	state = 0;
	look();
	cr_expect_eq(wholes[0].regained, 1);
	cr_expect_eq(eng_chan_better(wholes[0].chan, true), WIRE_CM_PATH_SHM);
	cr_expect_eq(eng_chan_better(wholes[0].chan, false), WIRE_CM_PATH_SHM);
	cr_expect_eq(eng_chan_better(wholes[1].chan, true), 0, "nothing was out here");
	cr_expect_eq(eng_chan_better(wholes[1].chan, false), WIRE_CM_PATH_SHM);
	look();
	cr_expect_eq(wholes[0].regained, 1, "too soon");
	wholes[0].engine->offer_ns = 0;
	look();
	cr_expect_eq(wholes[0].regained, 2, "again, for those that could not");
	state = -FI_ENETDOWN;
	look();
	cr_expect_eq(eng_chan_better(wholes[0].chan, true), 0, "it is out again");
}

Test(eng_outage_better, connections_that_cannot_profit_do_not_return)
{
	state = -FI_ENETDOWN;
	look();
	state = 0;
	look();
	cr_assert_eq(meet(), WIRE_CM_PATH_SHM);
	cr_expect_eq(eng_chan_better(wholes[0].chan, true), 0, "it has the best path");
	look();
	cr_expect_eq(wholes[0].regained, 0);
}

/** Notes the outages once more, as for a connection that comes up now. */
static uint32_t paths_noted(struct eng_conn *conn)
{
	conn->out_paths = 0;
	conn->engine->detour_cnt = 0;
	eng_outage_on_up(conn);
	cr_assert_eq(conn->engine->detour_cnt, conn->out_paths != 0);
	return conn->out_paths;
}

Test(eng_outage_better, a_handshake_may_have_begun_before_the_end_of_the_outage)
{
	state = -FI_ENETDOWN;
	look();
	meet();
	cr_expect_eq(wholes[0].engine->detour_cnt, 1);
	state = 0;
	look();
	cr_expect_eq(paths_noted(eng_conn_of(wholes[0].chan)), WIRE_CM_PATH_SHM);
	transport->back_ns = 1;
	cr_expect_eq(paths_noted(eng_conn_of(wholes[0].chan)), 0, "long ago");
	transport->back_ns = util_clock_ns();
	cr_expect_eq(paths_noted(eng_conn_of(wholes[0].chan)), WIRE_CM_PATH_SHM);
	wholes[0].chan->ops->close(wholes[0].chan);
	wholes[0].chan = NULL;
	cr_expect_eq(wholes[0].engine->detour_cnt, 0);
}

Test(eng_outage_better, connections_that_lack_a_device_of_their_path_may_return_to_it)
{
	cr_assert_eq(meet(), WIRE_CM_PATH_SHM);
	improve = true;
	look();
	cr_expect_eq(wholes[0].regained, 0, "none lacks one");
	cr_expect_eq(eng_chan_better(wholes[0].chan, true), 0);
	cr_expect_eq(eng_chan_better(wholes[0].chan, false), WIRE_CM_PATH_SHM, "the peer may");
	for (int i = 0; i < 2; i++)
		eng_outage_lacks(eng_conn_of(wholes[0].chan));
	eng_outage_on_up(eng_conn_of(wholes[0].chan));
	cr_expect_eq(wholes[0].engine->detour_cnt, 1);
	look();
	cr_expect_eq(wholes[0].regained, 1, "there was no other outage");
	cr_expect_eq(eng_chan_better(wholes[0].chan, true), WIRE_CM_PATH_SHM);
	improve = false;
	cr_expect_eq(eng_chan_better(wholes[0].chan, true), 0, "not back");
	cr_expect_eq(eng_chan_better(wholes[0].chan, false), 0);
	improve = true;
	state = -FI_ENETDOWN;
	look();
	cr_expect_eq(eng_chan_better(wholes[0].chan, true), 0, "the path is out");
	wholes[0].chan->ops->close(wholes[0].chan);
	wholes[0].chan = NULL;
	cr_expect_eq(wholes[0].engine->detour_cnt, 0);
}
