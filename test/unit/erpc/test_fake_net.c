/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The simulated network of the session tests: times, faults, checks. */
#include "support/fake_net.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PORTS 3u

static struct fake_net net;
static struct dev_dgram *dg[PORTS];
static struct dev_dgram_ah *to[PORTS][PORTS];
static uint8_t bytes[4096];

static void eps_open(uint32_t rx_cnt)
{
	struct dev_dgram_attr attr = { .rx_cnt = rx_cnt, .tx_cnt = 64 };
	struct dev_desc desc;
	uint32_t i, j;

	for (i = 0; i < PORTS; i++)
		cr_assert_eq(fake_net_ops.open(fake_net_dev(&net), &attr, &dg[i]), 0);
	for (i = 0; i < PORTS; i++)
		for (j = 0; j < PORTS; j++) {
			cr_assert_eq(fake_net_ops.describe(dg[j], &desc), 0);
			cr_assert_eq(fake_net_ops.resolve(dg[i], &desc, &to[i][j]), 0);
		}
}

static void setup(void)
{
	uint32_t i;

	fake_net_init(&net, 1);
	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7 + (i >> 8));
}

static void teardown(void)
{
	uint32_t i, j;

	for (i = 0; i < PORTS; i++) {
		for (j = 0; j < PORTS; j++)
			fake_net_ops.forget(dg[i], to[i][j]);
		fake_net_ops.close(dg[i]);
	}
	fake_net_fini(&net);
}

static int send_from(uint32_t i, uint32_t j, uint32_t len)
{
	struct dev_dgram_out out = { .to = to[i][j],
				     .base = { bytes, bytes + 16 },
				     .len = { len < 16 ? len : 16, len < 16 ? 0 : len - 16 } };

	return fake_net_ops.send(dg[i], &out, 1);
}

/** Receives all datagrams at j. Returns their number and the length of the last one. */
static uint32_t receive(uint32_t j, uint32_t *len)
{
	struct dev_dgram_in in;
	uint32_t n = 0;

	while (fake_net_ops.poll(dg[j], &in, 1) > 0) {
		*len = in.len;
		cr_assert(!memcmp(in.data, bytes, in.len) || net.faults.damage);
		fake_net_ops.release(dg[j], in.slot);
		n++;
	}
	return n;
}

TestSuite(fake_net, .init = setup, .fini = teardown);

Test(fake_net, a_datagram_takes_transmission_and_latency)
{
	uint32_t len;

	net.bytes_per_s = 1e9;
	eps_open(8);
	cr_assert_eq(send_from(0, 1, 1000), 1);
	fake_net_run(&net, 6999);
	cr_expect_eq(receive(1, &len), 0);
	fake_net_run(&net, 7000);
	cr_expect_eq(receive(1, &len), 1, "1 us to send, 5 us of latency, 1 us behind the queue");
	cr_expect_eq(len, 1000);
	cr_expect(fake_net_is_idle(&net));
}

Test(fake_net, two_senders_share_the_receivers_link)
{
	uint32_t len, i;

	net.bytes_per_s = 1e9;
	net.queue_max = 8000;
	eps_open(32);
	for (i = 0; i < 10; i++) {
		send_from(0, 2, 1000);
		send_from(1, 2, 1000);
	}
	fake_net_run(&net, 6000 + 10 * 1000);
	cr_expect_eq(receive(2, &len), 10);
	fake_net_run(&net, 1000000);
	cr_expect_eq(receive(2, &len) + net.cnt.queue_full, 10);
	cr_expect_gt(net.cnt.queue_full, 0);
	cr_expect_leq(fake_port_of(dg[2])->queue_peak, 8000);
}

Test(fake_net, without_a_buffer_a_datagram_is_lost)
{
	uint32_t len, i;

	eps_open(4);
	for (i = 0; i < 6; i++)
		send_from(0, 1, 10);
	fake_net_run(&net, 10000);
	cr_expect_eq(net.cnt.no_buffer, 2);
	cr_expect_eq(receive(1, &len), 4);
}

Test(fake_net, faults_have_their_rates_and_are_counted)
{
	uint32_t len, i, got = 0;

	net.faults = (struct fake_faults){ .drop = 100000,
					   .dup = 100000,
					   .reorder = 100000,
					   .reorder_ns = 50000,
					   .corrupt = 100000,
					   .damage = 100000 };
	eps_open(64);
	for (i = 0; i < 10000; i++) {
		send_from(0, 1, 64);
		fake_net_run(&net, net.now_ns + 1000);
		got += receive(1, &len);
	}
	fake_net_run(&net, net.now_ns + 1000000);
	got += receive(1, &len);
	cr_expect_eq(got, 10000 - net.cnt.dropped + net.cnt.doubled);
	cr_expect(net.cnt.dropped > 1700 && net.cnt.dropped < 2100, "%lu", net.cnt.dropped);
	cr_expect(net.cnt.corrupt > 800 && net.cnt.corrupt < 1000);
	cr_expect(net.cnt.doubled > 700 && net.cnt.doubled < 950);
	cr_expect(net.cnt.damaged > 700 && net.cnt.damaged < 950);
	cr_expect(net.cnt.reordered > 850 && net.cnt.reordered < 1150);
}

static void lose_the_second(struct fake_net *n, struct fake_pkt *pkt, void *arg)
{
	*(uint32_t *)arg += pkt->len;
	pkt->copies = pkt->nth != 1;
	pkt->as_seen = true;
}

Test(fake_net, the_hook_decides)
{
	uint32_t seen = 0, len = 0;

	eps_open(8);
	net.hook = lose_the_second;
	net.hook_arg = &seen;
	net.faults.drop = 1000000;
	send_from(0, 1, 100);
	send_from(0, 1, 200);
	send_from(0, 1, 300);
	fake_net_run(&net, 10000);
	cr_expect_eq(receive(1, &len), 2);
	cr_expect_eq(len, 300);
	cr_expect_eq(seen, 600);
}

Test(fake_net, a_forged_datagram_has_its_source)
{
	struct dev_dgram_in in;

	eps_open(8);
	fake_net_forge(&net, 0, 1, bytes, 20, 10);
	fake_net_forge(&net, 99, 1, bytes, 20, 20);
	cr_expect(fake_net_step(&net, 1000));
	cr_expect_eq(net.now_ns, 10);
	cr_assert_eq(fake_net_ops.poll(dg[1], &in, 1), 1);
	cr_expect(dev_dgram_is_from(to[1][0], &in));
	fake_net_ops.release(dg[1], in.slot);
	fake_net_run(&net, 1000);
	cr_assert_eq(fake_net_ops.poll(dg[1], &in, 1), 1);
	cr_expect_not(dev_dgram_is_from(to[1][0], &in));
	fake_net_ops.release(dg[1], in.slot);
}

Test(fake_net, a_nic_keeps_the_bytes_until_it_reports)
{
	struct dev_dgram_out out = { .base = { bytes }, .len = { 500 } };
	uint32_t len;

	net.inline_max = 60;
	net.bytes_per_s = 1e9;
	eps_open(8);
	out.to = to[0][1];
	cr_assert_eq(fake_net_ops.send(dg[0], &out, 1), 1);
	out.flags = DEV_DGRAM_REPORT;
	cr_assert_eq(fake_net_ops.send(dg[0], &out, 1), 1);
	fake_net_run(&net, 999);
	receive(0, &len);
	cr_expect_eq(dg[0]->tx_done, 0);
	fake_net_run(&net, 1000);
	cr_expect_eq(dg[0]->tx_done, 0, "only a poll advances it");
	receive(0, &len);
	cr_expect_eq(dg[0]->tx_done, 2);
}

/** Returns true if `what` ends the process. */
static bool is_fatal(void (*what)(void))
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		signal(SIGABRT, SIG_DFL); /* without a report */
		what();
		_exit(0);
	}
	return waitpid(pid, &status, 0) == pid && status;
}

static void change_too_early(void)
{
	struct dev_dgram_out out = {
		.to = to[0][1], .base = { bytes }, .len = { 500 }, .flags = DEV_DGRAM_REPORT
	};
	uint32_t len;

	if (fake_net_ops.send(dg[0], &out, 1) != 1)
		return;
	bytes[499]++;
	fake_net_run(&net, 100000);
	receive(0, &len);
}

static void release_free_buffer(void)
{
	fake_net_ops.release(dg[0], 3);
}

static void send_too_much(void)
{
	send_from(0, 1, 1025);
}

static void close_with_addresses(void)
{
	fake_net_ops.close(dg[0]);
}

Test(fake_net, a_violation_ends_the_test)
{
	net.inline_max = 60;
	eps_open(8);
	cr_expect(is_fatal(change_too_early));
	cr_expect(is_fatal(release_free_buffer));
	cr_expect(is_fatal(send_too_much));
	cr_expect(is_fatal(close_with_addresses));
}
