/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dev/verbs/vb_ud.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <sched.h>
#include <string.h>

#include "util/clock.h"
#include "vb_pair.h"

static struct vb_dev *devs[2];
static struct dev_dgram *dgs[2];
static struct dev_dgram_ah *ahs[2]; /* the way to the other one */

static void close_all(void)
{
	for (int i = 0; i < 2; i++) {
		if (ahs[i])
			vb_ud_forget(dgs[i], ahs[i]);
		if (dgs[i])
			vb_ud_close(dgs[i]);
		ahs[i] = NULL;
		dgs[i] = NULL;
	}
	pair_fini();
}

TestSuite(vb_ud, .fini = close_all, .timeout = 200);

static void open_all(uint32_t rx_cnt, uint32_t tx_cnt)
{
	struct dev_dgram_attr attr = { .rx_cnt = rx_cnt, .tx_cnt = tx_cnt };
	struct dev_desc descs[2];

	pair_open(devs, NULL);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(vb_ud_open((struct dev *)devs[i], &attr, &dgs[i]), 0);
		cr_assert_eq(ib_ud_describe(dgs[i], &descs[i]), 0);
	}
	for (int i = 0; i < 2; i++)
		cr_assert_eq(vb_ud_resolve(dgs[i], &descs[!i], &ahs[i]), 0);
}

static struct dev_dgram_out text(int from, const char *what)
{
	return (struct dev_dgram_out){ .to = ahs[from],
				       .base = { what },
				       .len = { (uint32_t)strlen(what) } };
}

/** Waits for cnt datagrams. */
static void await(int at, struct dev_dgram_in *in, int cnt)
{
	uint64_t end = util_clock_ns() + PAIR_PATIENCE_S * UTIL_NS_PER_S;
	int ret, n = 0;

	while (n < cnt) {
		ret = vb_ud_poll(dgs[at], in + n, (unsigned)(cnt - n));
		cr_assert_geq(ret, 0);
		n += ret;
		cr_assert_lt(util_clock_ns(), end, "%d of %d came", n, cnt);
		sched_yield();
	}
}

Test(vb_ud, a_burst_arrives_and_says_from_whom)
{
	struct dev_dgram_out out[3];
	struct dev_dgram_in in[3];

	open_all(16, 16);
	out[0] = text(0, "one");
	out[1] = text(0, "");
	out[2] = text(0, "two");
	out[2].base[1] = "three";
	out[2].len[1] = 5;
	cr_assert_eq(vb_ud_send(dgs[0], out, 3), 3);
	await(1, in, 3);
	cr_expect_arr_eq(in[0].data, "one", 3);
	cr_expect_eq(in[1].len, 0);
	cr_expect_eq(in[2].len, 8);
	cr_expect_arr_eq(in[2].data, "twothree", 8);
	for (int i = 0; i < 3; i++) {
		cr_expect(dev_dgram_is_from(ahs[1], &in[i]));
		vb_ud_release(dgs[1], in[i].slot);
	}
	cr_expect_eq(dgs[1]->rx_held, 0);
}

Test(vb_ud, what_is_gathered_needs_its_memory_until_it_is_done)
{
	static uint8_t bytes[4096];
	struct dev_mem *mem;
	struct dev_dgram_out out;
	struct dev_dgram_in in;
	uint64_t end;

	open_all(16, 16);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7 + (i >> 8));
	cr_assert_eq(
		vb_dev_mem_reg((struct dev *)devs[0], bytes, sizeof(bytes), DEV_MEM_LOCAL, &mem),
		0);
	out = (struct dev_dgram_out){ .to = ahs[0],
				      .base = { bytes, bytes + 100 },
				      .len = { 100, ahs[0]->mtu - 100 },
				      .mem = { mem, mem },
				      .flags = DEV_DGRAM_REPORT };
	cr_assert_eq(vb_ud_send(dgs[0], &out, 1), 1);
	await(1, &in, 1);
	cr_expect_eq(in.len, ahs[0]->mtu);
	cr_expect_arr_eq(in.data, bytes, ahs[0]->mtu);
	end = util_clock_ns() + PAIR_PATIENCE_S * UTIL_NS_PER_S;
	while (!dev_dgram_is_done(dgs[0], 0)) {
		cr_assert_eq(vb_ud_poll(dgs[0], &in, 1), 0);
		cr_assert_lt(util_clock_ns(), end);
	}
	vb_dev_mem_dereg((struct dev *)devs[0], mem);
}

/* The smallest send queue: full all the time, and room comes although nobody asked for a report. */
Test(vb_ud, a_full_send_queue_empties_itself)
{
	struct dev_dgram_out out[32];
	struct dev_dgram_in in[32];
	int sent = 0, got = 0, ret;
	uint64_t end;

	open_all(64, 8);
	end = util_clock_ns() + PAIR_PATIENCE_S * UTIL_NS_PER_S;
	for (int i = 0; i < 32; i++)
		out[i] = text(0, "again");
	while (got < 500) {
		if (sent - got < 32) {
			ret = vb_ud_send(dgs[0], out, 32);
			cr_assert(ret == -FI_EAGAIN || (ret > 0 && ret <= 8));
			sent += ret > 0 ? ret : 0;
		}
		cr_assert_eq(vb_ud_poll(dgs[0], in, 32), 0);
		ret = vb_ud_poll(dgs[1], in, 32);
		cr_assert_geq(ret, 0);
		for (int i = 0; i < ret; i++)
			vb_ud_release(dgs[1], in[i].slot);
		got += ret;
		cr_assert_lt(util_clock_ns(), end, "%d of %d came", got, sent);
	}
	cr_expect_eq((uint32_t)sent, dgs[0]->tx_posted);
}

/* Nothing is overwritten for want of a buffer: what finds none is lost. */
Test(vb_ud, held_datagrams_are_not_overwritten)
{
	struct dev_dgram_out a, b;
	struct dev_dgram_in in[4], late;

	open_all(4, 16);
	a = text(0, "first");
	b = text(0, "other");
	for (int i = 0; i < 4; i++)
		cr_assert_eq(vb_ud_send(dgs[0], &a, 1), 1);
	await(1, in, 4);
	for (int i = 0; i < 4; i++)
		cr_assert_eq(vb_ud_send(dgs[0], &b, 1), 1);
	for (int i = 0; i < 1000; i++)
		cr_assert_eq(vb_ud_poll(dgs[1], &late, 1), 0);
	for (int i = 0; i < 4; i++)
		cr_expect_arr_eq(in[i].data, "first", 5);
	for (int i = 3; i >= 0; i--)
		vb_ud_release(dgs[1], in[i].slot);
	cr_assert_eq(vb_ud_send(dgs[0], &b, 1), 1);
	await(1, &late, 1);
	cr_expect_arr_eq(late.data, "other", 5);
}

/* Armed, and nothing wakes it; a late report of what was taken before may, once. */
static bool sleeps(struct dev_dgram *dg, struct pollfd *pfd)
{
	for (int woken = 0; woken < 2; woken++) {
		cr_assert_eq(vb_ud_arm(dg), 0);
		if (!poll(pfd, 1, 50))
			return true;
	}
	return false;
}

Test(vb_ud, an_idle_endpoint_sleeps_and_an_arrival_wakes_it)
{
	struct dev_dgram_out out;
	struct dev_dgram_in in;
	struct pollfd pfd;

	open_all(16, 16);
	out = text(0, "wake");
	pfd = (struct pollfd){ .fd = vb_ud_wait_fd(dgs[1]), .events = POLLIN };
	for (int i = 0; i < 3; i++) {
		cr_assert(sleeps(dgs[1], &pfd), "nothing came");
		cr_assert_eq(vb_ud_send(dgs[0], &out, 1), 1);
		cr_assert_eq(poll(&pfd, 1, PAIR_PATIENCE_S * 1000), 1);
		cr_assert_eq(vb_ud_arm(dgs[1]), -FI_EAGAIN, "something is there");
		vb_ud_disarm(dgs[1]);
		cr_assert_eq(poll(&pfd, 1, 0), 0, "disarmed");
		await(1, &in, 1);
		vb_ud_release(dgs[1], in.slot);
	}
}

Test(vb_ud, a_stranger_without_the_q_key_is_not_heard)
{
	struct dev_dgram_ah *wrong;
	struct dev_dgram_in in;
	struct dev_dgram_out out;
	struct dev_desc desc;

	open_all(16, 16);
	cr_assert_eq(ib_ud_describe(dgs[1], &desc), 0);
	desc.bytes[12] ^= 1;
	cr_assert_eq(vb_ud_resolve(dgs[0], &desc, &wrong), 0);
	out = text(0, "let me in");
	out.to = wrong;
	out.flags = DEV_DGRAM_REPORT;
	cr_assert_eq(vb_ud_send(dgs[0], &out, 1), 1);
	out = text(0, "it is me");
	cr_assert_eq(vb_ud_send(dgs[0], &out, 1), 1);
	await(1, &in, 1);
	cr_expect_arr_eq(in.data, "it is me", 8);
	while (!dev_dgram_is_done(dgs[0], 0))
		cr_assert_eq(vb_ud_poll(dgs[0], &in, 1), 0);
	vb_ud_forget(dgs[0], wrong);
}
