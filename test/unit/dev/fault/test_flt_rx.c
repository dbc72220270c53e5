/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Each fault alone, and all together: received and counted datagrams add up to those sent. */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "dev/fault/flt_dgram.h"
#include "support/fake_net.h"

#define BURST 8u

static struct fake_net net;
static struct dev_dgram *from, *dg; /* dg: with faults */
static struct dev_dgram_ah *to;
static uint32_t seen[20000];

static uint64_t simulated_ns(void)
{
	return net.now_ns;
}

static void open_with(const char *text)
{
	struct dev_dgram_attr attr = { .rx_cnt = 64, .tx_cnt = 64 };
	struct flt_config cfg;
	struct dev_dgram *below;
	struct dev_desc desc;
	char why[128];

	fake_net_init(&net, 1);
	cr_assert(flt_config_read(&cfg, text, why, sizeof(why)), "%s", why);
	cr_assert_eq(fake_net_ops.open(fake_net_dev(&net), &attr, &from), 0);
	cr_assert_eq(fake_net_ops.open(fake_net_dev(&net), &attr, &below), 0);
	cr_assert_eq(flt_wrap(&cfg, below, &dg), 0);
	((struct flt_dgram *)dg)->now_ns = simulated_ns;
	cr_assert_eq(dg->ops->describe(dg, &desc), 0);
	cr_assert_eq(from->ops->resolve(from, &desc, &to), 0);
	memset(seen, 0, sizeof(seen));
}

static void close_all(void)
{
	cr_expect_eq(dg->rx_retained, 0);
	dg->ops->close(dg);
	from->ops->forget(from, to);
	from->ops->close(from);
	fake_net_fini(&net);
}

static void send_number(uint32_t n)
{
	struct dev_dgram_out out = { .to = to, .base = { &n }, .len = { sizeof(n) } };

	cr_assert_eq(from->ops->send(from, &out, 1), 1);
}

/** Receives all pending datagrams and returns their number. *last is the number of the last one. */
static uint32_t take(uint32_t *last)
{
	struct dev_dgram_in in[BURST];
	uint32_t cnt = 0;
	int ret, i;

	while ((ret = dg->ops->poll(dg, in, BURST)) > 0) {
		for (i = 0; i < ret; i++, cnt++) {
			cr_assert_eq(in[i].len, 4);
			memcpy(last, in[i].data, 4);
			seen[*last]++;
			dg->ops->release(dg, in[i].slot);
		}
	}
	cr_assert_eq(ret, 0);
	return cnt;
}

static uint32_t send_and_take(uint32_t cnt)
{
	uint32_t i, last, got = 0;

	for (i = 0; i < cnt; i++) {
		send_number(i);
		fake_net_run(&net, net.now_ns + 1000);
		got += take(&last);
	}
	fake_net_run(&net, net.now_ns + 100 * FLT_DEFER_NS);
	return got + take(&last);
}

static bool about(uint64_t value, uint64_t expected)
{
	return value > expected * 8 / 10 && value < expected * 12 / 10;
}

Test(flt_rx, dropped_datagrams_do_not_arrive, .fini = close_all)
{
	uint32_t got;

	open_with("drop=0.1,seed=1");
	got = send_and_take(20000);
	cr_expect_eq(got + flt_counters(dg)->dropped, 20000);
	cr_expect(about(flt_counters(dg)->dropped, 2000));
	cr_expect_eq(flt_counters(dg)->received, 20000);
}

Test(flt_rx, corrupt_datagrams_do_not_arrive_and_are_counted_separately, .fini = close_all)
{
	uint32_t got;

	open_with("corrupt=0.1,seed=1");
	got = send_and_take(20000);
	cr_expect_eq(got + flt_counters(dg)->corrupt, 20000);
	cr_expect(about(flt_counters(dg)->corrupt, 2000));
	cr_expect_eq(flt_counters(dg)->dropped, 0);
}

Test(flt_rx, duplicated_datagrams_arrive_twice, .fini = close_all)
{
	uint32_t got, i, twice = 0;

	open_with("dup=0.1,seed=1");
	got = send_and_take(20000);
	for (i = 0; i < 20000; i++) {
		cr_assert(seen[i] == 1 || seen[i] == 2);
		twice += seen[i] == 2;
	}
	cr_expect_eq(got, 20000 + twice);
	cr_expect_eq(twice, flt_counters(dg)->duplicated);
	cr_expect(about(twice, 2000));
}

Test(flt_rx, delayed_datagrams_arrive_after_the_delay, .fini = close_all)
{
	uint32_t last;

	open_with("delay=2ms");
	send_number(5);
	fake_net_run(&net, 5000);
	cr_expect_eq(take(&last), 0);
	cr_expect_eq(flt_next_ns((struct flt_dgram *)dg), 2005000);
	fake_net_run(&net, 2004999);
	cr_expect_eq(take(&last), 0);
	fake_net_run(&net, 2005000);
	cr_assert_eq(take(&last), 1);
	cr_expect_eq(last, 5);
	cr_expect_eq(flt_next_ns((struct flt_dgram *)dg), UINT64_MAX);
}

Test(flt_rx, deferred_datagrams_are_passed_by_others, .fini = close_all)
{
	uint32_t i, last, before = 0, backwards = 0;

	open_with("reorder=0.1,seed=1");
	for (i = 0; i < 20000; i++) {
		struct dev_dgram_in in;

		send_number(i);
		fake_net_run(&net, net.now_ns + 10000);
		while (dg->ops->poll(dg, &in, 1) == 1) {
			memcpy(&last, in.data, 4);
			seen[last]++;
			backwards += last < before;
			cr_assert(last + FLT_PASS_MAX + FLT_DEFER_MAX > before);
			before = last;
			dg->ops->release(dg, in.slot);
		}
	}
	fake_net_run(&net, net.now_ns + FLT_DEFER_NS);
	take(&last);
	for (i = 0; i < 20000; i++)
		cr_assert_eq(seen[i], 1, "%u", i);
	cr_expect(about(flt_counters(dg)->deferred, 2000));
	cr_expect_gt(backwards, 1000);
}

Test(flt_rx, a_deferred_datagram_that_none_passes_arrives_in_time, .fini = close_all)
{
	uint32_t last;

	open_with("reorder=1");
	send_number(5);
	fake_net_run(&net, 5000);
	cr_expect_eq(take(&last), 0);
	fake_net_run(&net, 5000 + FLT_DEFER_NS);
	cr_expect_eq(take(&last), 1);
}

Test(flt_rx, the_same_seed_repeats_the_faults, .fini = close_all)
{
	struct flt_cnt first;
	uint32_t got;

	open_with("drop=0.1,dup=0.1,corrupt=0.1,reorder=0.1,seed=42");
	got = send_and_take(2000);
	first = *flt_counters(dg);
	close_all();
	open_with("drop=0.1,dup=0.1,corrupt=0.1,reorder=0.1,seed=42");
	cr_expect_eq(send_and_take(2000), got);
	cr_expect(!memcmp(&first, flt_counters(dg), sizeof(first)));
}

Test(flt_rx, datagrams_without_a_cell_are_lost_and_counted, .fini = close_all)
{
	uint32_t i, last, got = 0, cells = 64 + FLT_CELLS;

	open_with("delay=10s");
	for (i = 0; i < cells + 10; i++) {
		send_number(i);
		fake_net_run(&net, net.now_ns + 1000);
		got += take(&last);
	}
	fake_net_run(&net, net.now_ns + 10000);
	got += take(&last);
	cr_expect_eq(got, 0);
	cr_expect_eq(flt_counters(dg)->no_room, 10);
	fake_net_run(&net, net.now_ns + FLT_DELAY_MAX_NS);
	cr_expect_eq(take(&last), cells);
}

/* A retained datagram stays unchanged while others come and go. One longer than the mtu is lost. */
Test(flt_rx, a_retained_datagram_stays_unchanged, .fini = close_all)
{
	static uint8_t big[2000];
	struct dev_dgram_in retained, more;
	uint32_t i, number;

	open_with("dup=1");
	send_number(77);
	fake_net_run(&net, net.now_ns + 5000);
	cr_assert_eq(dg->ops->poll(dg, &retained, 1), 1);
	cr_expect_eq((uintptr_t)retained.data % 64, 0);
	for (i = 0; i < 200; i++) {
		send_number(i);
		fake_net_run(&net, net.now_ns + 5000);
		while (dg->ops->poll(dg, &more, 1) == 1)
			dg->ops->release(dg, more.slot);
	}
	memcpy(&number, retained.data, 4);
	cr_expect_eq(number, 77);
	cr_expect_eq(dg->rx_retained, 1);
	dg->ops->release(dg, retained.slot);
	fake_net_forge(&net, 0, 1, big, sizeof(big), 0);
	fake_net_run(&net, net.now_ns + 5000);
	cr_expect_eq(dg->ops->poll(dg, &more, 1), 0);
	cr_expect_eq(flt_counters(dg)->no_room, 2);
}

Test(flt_rx, an_error_of_the_device_below_is_returned, .fini = close_all)
{
	struct dev_dgram_in in;

	open_with("drop=0.5");
	fake_port_of(((struct flt_dgram *)dg)->below)->status = -FI_EIO;
	cr_expect_eq(dg->ops->poll(dg, &in, 1), -FI_EIO);
}
