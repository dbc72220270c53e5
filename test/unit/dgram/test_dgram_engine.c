/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Progress and sleep of all endpoints of a domain, over real sockets. */
#include "dgram/dgram_engine.h"

#include <criterion/criterion.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/fi_errno.h>

#include "dgram/dgram_ep.h"

#define EPS 3

static struct core_progress *engine;
static struct dgram_av *av;
static struct dgram_ep *eps[EPS];
static struct core_comp none;
static struct core_cntr received[EPS];
static struct core_comp rx[EPS];
static uint64_t number[EPS];
static size_t min_multi_recv;

static void setup(void)
{
	struct sockaddr_in local = { .sin_family = AF_INET };
	struct dgram_conf conf = { .local = (struct sockaddr *)&local,
				   .tx = &none,
				   .min_multi_recv = &min_multi_recv };
	struct dev_desc desc;

	local.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	av = dgram_av_open();
	conf.av = av;
	cr_assert_eq(dgram_over_udp.progress_ops->open(NULL, &engine), 0);
	for (int i = 0; i < EPS; i++) {
		rx[i].cntr = &received[i];
		conf.rx = &rx[i];
		cr_assert_eq(dgram_ep_open(dgram_engine_of(engine), &conf, &eps[i]), 0);
		cr_assert_eq(dgram_over_udp.import(&eps[i]->name, &desc), 0);
		cr_assert_eq(dgram_av_insert(av, &desc, &number[i]), 0);
	}
}

static void teardown(void)
{
	for (int i = 0; i < EPS; i++)
		dgram_ep_close(eps[i]);
	dgram_av_close(av);
	dgram_over_udp.progress_ops->close(engine);
}

TestSuite(dgram_engine, .init = setup, .fini = teardown);

static void send_to(int i)
{
	struct iovec iov = { "x", 1 };
	struct dgram_send s = { .dest = number[i], .iov = &iov, .iov_cnt = 1, .len = 1 };

	cr_assert_eq(dgram_tx_send(eps[0], &s), 0);
}

static void post(int i)
{
	static char buf[8];
	struct iovec iov = { buf, sizeof(buf) };
	struct dgram_post p = { .iov = &iov, .iov_cnt = 1 };

	cr_assert_eq(dgram_rx_post(eps[i], &p), 0);
}

static int readable(int ms)
{
	struct pollfd pfd = { .fd = engine->wait_fd, .events = POLLIN };

	return poll(&pfd, 1, ms);
}

Test(dgram_engine, one_progress_call_serves_all_endpoints)
{
	for (int i = 0; i < EPS; i++) {
		post(i);
		send_to(i);
	}
	for (int i = 0; i < EPS; i++) {
		while (!received[i].value) {
			if (!dgram_engine_arm(engine))
				cr_assert_eq(readable(60000), 1);
			dgram_engine_progress(engine);
		}
		cr_expect_eq(received[i].value, 1);
	}
	dgram_engine_disarm(engine);
}

Test(dgram_engine, sleeps_until_a_datagram_arrives_for_any_endpoint)
{
	cr_assert_eq(dgram_engine_arm(engine), 0);
	cr_expect_eq(readable(0), 0);
	send_to(EPS - 1);
	cr_expect_eq(readable(30000), 1);
	cr_expect_eq(dgram_engine_arm(engine), -FI_EAGAIN);
	post(EPS - 1);
	dgram_engine_progress(engine);
	cr_expect_eq(received[EPS - 1].value, 1);
	cr_expect_eq(dgram_engine_arm(engine), 0);
	dgram_engine_disarm(engine);
}

Test(dgram_engine, gathered_datagrams_prevent_sleep)
{
	struct iovec iov = { "x", 1 };
	struct dgram_send s = {
		.dest = number[1], .iov = &iov, .iov_cnt = 1, .len = 1, .flags = FI_MORE
	};

	cr_assert_eq(dgram_tx_send(eps[0], &s), 0);
	cr_expect_eq(dgram_engine_arm(engine), -FI_EAGAIN);
	dgram_engine_progress(engine);
	cr_expect_eq(eps[0]->burst_cnt, 0);
}
