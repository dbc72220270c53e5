/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sessions of whole engines while their device is out, and after it is back. */
#include "erpc/transport/erpc_outage.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "dev/udp/udp.h"
#include "engine/eng_outage.h"
#include "erpc/transport/erpc_transport.h"
#include "unit/erpc/transport/sessions_fixture.h"
#include "util/clock.h"
#include "wire/wire_cm.h"

#define LONG_MS 60000 /* a wakeup that takes longer is missing */

/** Returns the state of the only transport and address of the first endpoint. */
static struct erpc_transport_ep *state_of(void)
{
	return wholes[0].eep->ep_state[0][0];
}

/* ---- UDP sockets on a device that can fail ---- */

struct frail {
	int state; /* result of health */
	int fd;    /* of its events */
	bool is_open;
};

static struct frail frails[8];
static unsigned frail_cnt;
static int frail_ret;

static int frail_open(struct dev **dev)
{
	struct frail *frail = &frails[frail_cnt];

	if (frail_ret)
		return frail_ret;
	cr_assert_lt(++frail_cnt, sizeof(frails) / sizeof(frails[0]));
	frail->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	frail->is_open = true;
	*dev = (struct dev *)frail;
	return 0;
}

static void frail_close(struct dev *dev)
{
	struct frail *frail = (struct frail *)dev;

	cr_assert(frail->is_open);
	frail->is_open = false;
	close(frail->fd);
}

static int frail_health(struct dev *dev)
{
	uint64_t cnt;

	cr_expect_neq(read(((struct frail *)dev)->fd, &cnt, sizeof(cnt)), 0);
	return ((struct frail *)dev)->state;
}

static int frail_wait_fd(struct dev *dev)
{
	return ((struct frail *)dev)->fd;
}

static const struct dev_ops frail_ops = {
	.name = "frail",
	.open = frail_open,
	.close = frail_close,
	.health = frail_health,
	.wait_fd = frail_wait_fd,
};

static const struct erpc_transport_dev frail_cfg = {
	.dgram = &udp_dgram_ops,
	.dev = &frail_ops,
	.rx_cnt = 1024,
	.tx_cnt = 64,
};

static int open_frail(struct eng_transport *transport)
{
	return erpc_transport_open(transport, &frail_cfg);
}

static const struct eng_transport_ops frail_transport =
	ERPC_TRANSPORT_OPS(WIRE_CM_PATH_UD, "frail", open_frail, .health = erpc_outage_health,
			   .reopen = erpc_outage_reopen);
static const struct eng_transports frail_only = { .cnt = 1, .ops = { &frail_transport } };
static const struct eng_transports frail_or_udp = {
	.cnt = 2, .ops = { &frail_transport, &erpc_transport_udp }
};

static struct frail *frail_of(const struct whole *w)
{
	return (struct frail *)erpc_of(w)->dev;
}

static uint32_t path_of(const struct whole *w)
{
	return eng_conn_of(w->chan)->transport->ops->path;
}

static void look(const struct whole *w)
{
	transport_of(w)->reopen_ns = 0;
	eng_outage_look(w->engine);
}

/** Expects that the connection ends at both ends, at the first one with this error. */
static void expect_end(int err)
{
	wholes_until(&wholes[0].down);
	cr_expect_eq(wholes[0].err, err);
	wholes_until(&wholes[1].down);
	cr_expect_eq(wholes[1].err, -FI_EIO);
}

/** Connects the two again, in an outage or after it, and uses the connection. */
static void meet_again(void)
{
	wholes[0].up = wholes[1].up = 0;
	wholes_connect();
	wholes_until(&wholes[0].up);
	wholes_until(&wholes[1].up);
	send_and_receive(&wholes[0], &wholes[1]);
	send_and_receive(&wholes[1], &wholes[0]);
	settle();
}

TestSuite(erpc_outage, .timeout = 200);

Test(erpc_outage, a_failed_device_ends_sessions_and_its_queues_are_made_anew)
{
	const struct erpc_ep *before;

	wholes_meet(&frail_only, &frail_only);
	send_and_receive(&wholes[0], &wholes[1]);
	before = state_of()->ep;
	frail_of(&wholes[0])->state = -FI_EIO;
	look(&wholes[0]);
	cr_expect_eq(before->err, -FI_EIO);
	expect_end(-FI_EIO);
	look(&wholes[0]);
	cr_expect_not(frails[0].is_open);
	cr_expect_eq(frail_of(&wholes[0]), &frails[2]);
	cr_expect_eq(state_of(), NULL, "until a session needs it");
	meet_again();
	cr_expect_eq(path_of(&wholes[0]), WIRE_CM_PATH_UD);
	wholes_close();
}

Test(erpc_outage, a_device_that_is_away_is_not_touched_and_tried_again)
{
	wholes_meet(&frail_or_udp, &frail_or_udp);
	frail_ret = -FI_ENODEV;
	frail_of(&wholes[0])->state = -FI_EIO;
	look(&wholes[0]);
	expect_end(-FI_EIO);
	look(&wholes[0]);
	cr_expect(eng_outage_is_closed(transport_of(&wholes[0])));
	cr_expect_eq(erpc_outage_health(transport_of(&wholes[0])), -FI_ENODEV);
	meet_again();
	cr_expect_eq(path_of(&wholes[0]), WIRE_CM_PATH_UDP);
	frail_ret = 0;
	look(&wholes[0]);
	cr_expect_not(eng_outage_is_closed(transport_of(&wholes[0])));
	cr_expect_eq(eng_chan_better(wholes[0].chan, true), WIRE_CM_PATH_UD);
	wholes_close();
}

Test(erpc_outage, a_queue_pair_that_fails_alone_ends_like_its_device)
{
	wholes_meet(&frail_only, &frail_only);
	erpc_ep_fail(state_of()->ep, -FI_EINVAL);
	expect_end(-FI_EINVAL);
	wholes_until(&wholes[1].down);
	look(&wholes[0]);
	cr_expect_not(frails[0].is_open);
	meet_again();
	wholes_close();
}

Test(erpc_outage, sessions_outlast_a_port_that_is_down_until_their_time_is_over)
{
	struct erpc_transport *transport;

	wholes_meet(&frail_only, &frail_only);
	transport = erpc_of(&wholes[0]);
	frail_of(&wholes[0])->state = -FI_ENETDOWN;
	look(&wholes[0]);
	cr_expect_gt(transport->down_until_ns, util_clock_ns());
	send_and_receive(&wholes[0], &wholes[1]);
	cr_expect_eq(wholes[0].down, 0);
	transport->down_until_ns = 1;
	look(&wholes[0]);
	expect_end(-FI_ENETDOWN);
	cr_expect_eq(state_of()->ep->err, 0, "the queue pair stays");
	cr_expect(frails[0].is_open);
	meet_again();
	cr_expect_gt(transport->down_until_ns, util_clock_ns(), "these have their time");
	frail_of(&wholes[0])->state = 0;
	look(&wholes[0]);
	cr_expect_eq(transport->down_until_ns, 0);
	wholes_close();
}

Test(erpc_outage, sessions_of_a_port_that_is_down_end_at_once_where_there_is_another_path)
{
	wholes_meet(&frail_or_udp, &frail_or_udp);
	cr_assert_eq(path_of(&wholes[0]), WIRE_CM_PATH_UD);
	frail_of(&wholes[0])->state = -FI_ENETDOWN;
	look(&wholes[0]);
	expect_end(-FI_ENETDOWN);
	meet_again();
	cr_expect_eq(path_of(&wholes[0]), WIRE_CM_PATH_UDP);
	wholes_close();
}

Test(erpc_outage, an_event_of_the_device_wakes_a_thread_that_then_sleeps_again)
{
	uint64_t one = 1;

	wholes_meet(&frail_only, &frail_only);
	settle();
	arm(&wholes[0]);
	cr_expect_not(wakes(&wholes[0], 0));
	cr_assert_eq(write(frail_of(&wholes[0])->fd, &one, sizeof(one)), sizeof(one));
	cr_assert(wakes(&wholes[0], LONG_MS));
	transport_of(&wholes[0])->ops->disarm(transport_of(&wholes[0]));
	arm(&wholes[0]);
	cr_expect_not(wakes(&wholes[0], 0));
	frail_of(&wholes[0])->state = -FI_EIO;
	cr_expect_eq(transport_of(&wholes[0])->ops->arm(transport_of(&wholes[0])), -FI_EAGAIN);
	expect_end(-FI_EIO);
	wholes_close();
}

Test(erpc_outage, a_failed_queue_pair_whose_sessions_have_ended_lets_threads_sleep)
{
	wholes_meet(&frail_only, &frail_only);
	settle();
	frail_of(&wholes[0])->state = -FI_EIO;
	cr_assert_eq(transport_of(&wholes[0])->ops->arm(transport_of(&wholes[0])), -FI_EAGAIN);
	transport_of(&wholes[0])->ops->flush(transport_of(&wholes[0]));
	cr_expect_eq(transport_of(&wholes[0])->ops->arm(transport_of(&wholes[0])), 0);
	expect_end(-FI_EIO);
	wholes_close();
}
