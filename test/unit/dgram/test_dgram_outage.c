/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Endpoints whose device, or queue pair, fails and comes back. */
#include "dgram/dgram_outage.h"

#include <poll.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "unit/dgram/dgram_pair.h"

static struct dgram_pair p;
static uint8_t out[1024], in[1024];
static int state, event_fd;
static unsigned opened, closed, reads;
static bool is_away;

static int frail_open(struct dev **dev)
{
	if (is_away)
		return -FI_ENODEV;
	opened++;
	event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	state = 0;
	*dev = fake_net_dev(&p.net);
	return 0;
}

static void frail_close(struct dev *dev)
{
	closed++;
	close(event_fd);
}

static int frail_health(struct dev *dev)
{
	reads++;
	return state;
}

static int frail_wait_fd(struct dev *dev)
{
	return event_fd;
}

static const struct dev_ops frail_ops = {
	.open = frail_open,
	.close = frail_close,
	.health = frail_health,
	.wait_fd = frail_wait_fd,
};

static struct dgram_over over;

static void setup(void)
{
	memset(&p, 0, sizeof(p));
	fake_net_init(&p.net, 1);
	p.net.inline_max = 60;
	dgram_pair_open(&p);
	over = *p.engine.over;
	over.dev_ops = &frail_ops;
	p.engine.over = &over;
	p.engine.base.wait_fd = epoll_create1(EPOLL_CLOEXEC);
	cr_assert_eq(dgram_outage_init(&p.engine), 0);
}

static void teardown(void)
{
	dgram_pair_close(&p);
	dgram_outage_fini(&p.engine);
	close(p.engine.base.wait_fd);
	cr_expect_eq(opened, closed);
}

TestSuite(dgram_outage, .init = setup, .fini = teardown, .timeout = 200);

/** Lets the timer expire, once or never (0). */
static void set_timer(long ns)
{
	struct itimerspec at = { .it_value.tv_nsec = ns };
	struct pollfd pfd = { .fd = p.engine.timer_fd, .events = POLLIN };

	cr_assert_eq(timerfd_settime(p.engine.timer_fd, 0, &at, NULL), 0);
	cr_assert_eq(poll(&pfd, 1, ns ? 60000 : 0), ns ? 1 : 0);
}

static bool timer_runs(void)
{
	struct itimerspec at;

	cr_assert_eq(timerfd_gettime(p.engine.timer_fd, &at), 0);
	return at.it_value.tv_sec || at.it_value.tv_nsec;
}

static void fail_queue_pair(int i)
{
	fake_port_of(p.ep[i]->dg)->status = -FI_EIO;
	dgram_ep_progress(p.ep[i]);
	cr_assert_eq(p.ep[i]->err, -FI_EIO);
	cr_assert(timer_runs());
}

static void fail_device(void)
{
	state = -FI_EIO;
	fail_queue_pair(0);
	fail_queue_pair(1);
}

static void progress_when_due(void)
{
	set_timer(1);
	dgram_engine_progress(&p.engine.base);
}

/** Inserts the present address of endpoint i. */
static void insert(int i)
{
	struct dev_desc desc;

	cr_assert_eq(fake_net_ops.describe(p.ep[i]->dg, &desc), 0);
	cr_assert_eq(dgram_av_insert(p.av, &desc, &p.number[i]), 0);
	for (int k = 0; k < 2; k++)
		cr_assert_eq(dgram_ep_inserted(p.ep[k], p.number[i]), 0);
}

static void send_and_receive(void)
{
	dgram_pair_recv(&p, in, sizeof(in), 0);
	cr_assert_eq(dgram_pair_send(&p, out, 100, 0), 0);
	dgram_pair_run(&p);
	cr_expect_eq(dgram_pair_take(&p, 1, 0).data, p.number[0]);
}

Test(dgram_outage, endpoints_of_a_failed_device_are_made_anew_when_it_is_back)
{
	uint64_t before = p.number[1];
	uint8_t name[sizeof(p.ep[1]->name)];

	memcpy(name, &p.ep[1]->name, sizeof(name));
	fail_device();
	progress_when_due();
	cr_expect_eq(closed, 1);
	cr_expect_eq(opened, 2);
	cr_expect_eq(p.ep[0]->err, 0);
	cr_expect_eq(p.ep[1]->err, 0);
	cr_expect_not(timer_runs());
	cr_expect_neq(memcmp(name, &p.ep[1]->name, sizeof(name)), 0, "its address is another one");
	cr_assert_eq(dgram_pair_send(&p, out, 100, 0), 0);
	dgram_pair_run(&p);
	cr_expect_eq(p.net.cnt.nobody, 1, "the old one leads nowhere");
	insert(0);
	insert(1);
	cr_expect_neq(p.number[1], before);
	dgram_pair_take(&p, 0, 0);
	send_and_receive();
}

Test(dgram_outage, a_device_that_is_away_is_tried_again_and_not_touched_meanwhile)
{
	struct dgram_conf conf = { .av = p.av, .min_multi_recv = &p.min_multi_recv };
	struct iovec iov = { in, 8 };
	struct dgram_post post = { .iov = &iov, .iov_cnt = 1 };
	struct dgram_ep *ep;

	is_away = true;
	fail_device();
	progress_when_due();
	cr_expect_eq(p.engine.dev, NULL);
	cr_expect_eq(p.ep[1]->dg, NULL);
	progress_when_due();
	cr_expect_eq(closed, 1);
	cr_expect_eq(dgram_pair_send(&p, out, 8, 0), -FI_EIO);
	cr_expect_eq(dgram_rx_post(p.ep[1], &post), -FI_EIO);
	cr_expect_eq(dgram_ep_inserted(p.ep[0], p.number[1]), 0);
	dgram_ep_removed(p.ep[0], p.number[1]);
	cr_expect_not(dgram_ep_is_busy(p.ep[0]));
	cr_expect_eq(dgram_engine_arm(&p.engine.base), 0);
	dgram_engine_disarm(&p.engine.base);
	cr_expect_eq(dgram_ep_open(&p.engine, &conf, &ep), -FI_ENODEV);
	is_away = false;
	progress_when_due();
	cr_expect_eq(p.ep[0]->err, 0);
	insert(0);
	insert(1);
	send_and_receive();
}

Test(dgram_outage, a_queue_pair_that_fails_alone_is_made_anew_alone)
{
	const struct dev_dgram *other = p.ep[0]->dg;

	fail_queue_pair(1);
	progress_when_due();
	cr_expect_eq(p.ep[1]->err, 0);
	cr_expect_eq(p.ep[0]->dg, other);
	cr_expect_eq(closed, 0);
	insert(1);
	send_and_receive();
}

Test(dgram_outage, nothing_is_tried_before_the_timer_expires)
{
	fail_device();
	set_timer(0);
	dgram_engine_progress(&p.engine.base);
	cr_expect_eq(closed, 0);
	cr_expect_eq(p.ep[0]->err, -FI_EIO);
}

Test(dgram_outage, a_sleeping_thread_is_woken_by_the_device_and_by_the_timer)
{
	struct pollfd pfd = { .fd = p.engine.base.wait_fd, .events = POLLIN };
	uint64_t one = 1;

	cr_expect_eq(poll(&pfd, 1, 0), 0);
	cr_assert_eq(write(event_fd, &one, sizeof(one)), sizeof(one));
	cr_expect_eq(poll(&pfd, 1, 0), 1);
	cr_assert_eq(read(event_fd, &one, sizeof(one)), sizeof(one));
	reads = 0;
	cr_expect_eq(dgram_engine_arm(&p.engine.base), 0);
	cr_expect_eq(reads, 1);
	fail_device();
	cr_expect_eq(poll(&pfd, 1, 60000), 1);
	while (p.ep[0]->err)
		dgram_engine_progress(&p.engine.base);
	cr_expect_eq(poll(&pfd, 1, 0), 0);
}

Test(dgram_outage, gathered_and_queued_datagrams_are_lost)
{
	for (int i = 0; i < 3; i++)
		cr_assert_eq(dgram_pair_send(&p, out, 100, 0), 0);
	dgram_pair_run(&p);
	cr_assert_eq(p.ep[1]->queued_cnt, 3);
	cr_assert_eq(dgram_pair_send(&p, out, 100, FI_MORE), 0);
	fail_device();
	progress_when_due();
	cr_expect_eq(p.ep[0]->burst_cnt, 0);
	cr_expect_eq(p.ep[1]->queued_cnt, 0);
	for (int i = 0; i < 4; i++)
		dgram_pair_take(&p, 0, 0); /* a send ends when the device has the datagram */
	insert(0);
	insert(1);
	send_and_receive();
}

Test(dgram_outage, a_new_endpoint_opens_a_failed_device_anew)
{
	struct dgram_conf conf = { .av = p.av, .min_multi_recv = &p.min_multi_recv };
	struct dgram_ep *ep;

	state = -FI_EIO;
	cr_assert_eq(dgram_ep_open(&p.engine, &conf, &ep), 0);
	cr_expect_eq(closed, 1);
	cr_expect_eq(p.ep[0]->err, -FI_EIO, "until the timer expires");
	progress_when_due();
	cr_expect_eq(p.ep[0]->err, 0);
	dgram_ep_close(ep);
}
