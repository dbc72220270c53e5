/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dev/verbs/vb_ud.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "util/clock.h"
#include "vb_ud_pair.h"

TestSuite(vb_ud, .fini = ud_pair_close, .timeout = 200);

Test(vb_ud, a_burst_arrives_with_its_senders_id)
{
	struct dev_dgram_out out[3];
	struct dev_dgram_in in[3];

	ud_pair_open(16, 16);
	out[0] = ud_pair_text(0, "one");
	out[1] = ud_pair_text(0, "");
	out[2] = ud_pair_text(0, "two");
	out[2].base[1] = "three";
	out[2].len[1] = 5;
	cr_assert_eq(vb_ud_send(ud_pair[0], out, 3), 3);
	ud_pair_await(1, in, 3);
	cr_expect_arr_eq(in[0].data, "one", 3);
	cr_expect_eq(in[1].len, 0);
	cr_expect_eq(in[2].len, 8);
	cr_expect_arr_eq(in[2].data, "twothree", 8);
	for (int i = 0; i < 3; i++) {
		cr_expect(dev_dgram_is_from(ud_pair_way[1], &in[i]));
		vb_ud_release(ud_pair[1], in[i].slot);
	}
	cr_expect_eq(ud_pair[1]->rx_retained, 0);
}

Test(vb_ud, gathered_buffers_are_read_until_done)
{
	static uint8_t bytes[4096];
	struct dev_mem *mem;
	struct dev_dgram_out out;
	struct dev_dgram_in in;
	uint64_t end;

	ud_pair_open(16, 16);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7 + (i >> 8));
	cr_assert_eq(vb_dev_mem_reg((struct dev *)ud_pair_devs[0], bytes, sizeof(bytes),
				    DEV_MEM_LOCAL, &mem),
		     0);
	out = (struct dev_dgram_out){ .to = ud_pair_way[0],
				      .base = { bytes, bytes + 100 },
				      .len = { 100, ud_pair_way[0]->mtu - 100 },
				      .mem = { mem, mem },
				      .flags = DEV_DGRAM_REPORT };
	cr_assert_eq(vb_ud_send(ud_pair[0], &out, 1), 1);
	ud_pair_await(1, &in, 1);
	cr_expect_eq(in.len, ud_pair_way[0]->mtu);
	cr_expect_arr_eq(in.data, bytes, ud_pair_way[0]->mtu);
	end = util_clock_ns() + PAIR_PATIENCE_S * UTIL_NS_PER_S;
	while (!dev_dgram_is_done(ud_pair[0], 0)) {
		cr_assert_eq(vb_ud_poll(ud_pair[0], &in, 1), 0);
		cr_assert_lt(util_clock_ns(), end);
	}
	vb_dev_mem_dereg((struct dev *)ud_pair_devs[0], mem);
}

/* Smallest send queue: always full, and room comes without DEV_DGRAM_REPORT. */
Test(vb_ud, a_full_send_queue_empties_itself)
{
	struct dev_dgram_out out[32];
	struct dev_dgram_in in[32];
	int sent = 0, got = 0, ret;
	uint64_t end;

	ud_pair_open(64, 8);
	end = util_clock_ns() + PAIR_PATIENCE_S * UTIL_NS_PER_S;
	for (int i = 0; i < 32; i++)
		out[i] = ud_pair_text(0, "again");
	while (got < 500) {
		if (sent - got < 32) {
			ret = vb_ud_send(ud_pair[0], out, 32);
			cr_assert(ret == -FI_EAGAIN || (ret > 0 && ret <= 8));
			sent += ret > 0 ? ret : 0;
		}
		cr_assert_eq(vb_ud_poll(ud_pair[0], in, 32), 0);
		ret = vb_ud_poll(ud_pair[1], in, 32);
		cr_assert_geq(ret, 0);
		for (int i = 0; i < ret; i++)
			vb_ud_release(ud_pair[1], in[i].slot);
		got += ret;
		cr_assert_lt(util_clock_ns(), end, "%d of %d came", got, sent);
	}
	cr_expect_eq((uint32_t)sent, ud_pair[0]->tx_posted);
}

/* A datagram without a free buffer is dropped, and overwrites none. */
Test(vb_ud, retained_datagrams_are_not_overwritten)
{
	struct dev_dgram_out a, b;
	struct dev_dgram_in in[4], late;

	ud_pair_open(4, 16);
	a = ud_pair_text(0, "first");
	b = ud_pair_text(0, "other");
	for (int i = 0; i < 4; i++)
		cr_assert_eq(vb_ud_send(ud_pair[0], &a, 1), 1);
	ud_pair_await(1, in, 4);
	for (int i = 0; i < 4; i++)
		cr_assert_eq(vb_ud_send(ud_pair[0], &b, 1), 1);
	for (int i = 0; i < 1000; i++)
		cr_assert_eq(vb_ud_poll(ud_pair[1], &late, 1), 0);
	for (int i = 0; i < 4; i++)
		cr_expect_arr_eq(in[i].data, "first", 5);
	for (int i = 3; i >= 0; i--)
		vb_ud_release(ud_pair[1], in[i].slot);
	cr_assert_eq(vb_ud_send(ud_pair[0], &b, 1), 1);
	ud_pair_await(1, &late, 1);
	cr_expect_arr_eq(late.data, "other", 5);
}

/*
 * Returns true if the armed endpoint sleeps. One late event for an earlier completion is allowed.
 */
static bool sleeps(struct dev_dgram *dg, struct pollfd *pfd)
{
	for (int woken = 0; woken < 2; woken++) {
		cr_assert_eq(vb_ud_arm(dg), 0);
		if (!poll(pfd, 1, 50))
			return true;
	}
	return false;
}

/*
 * Returns true if the disarmed endpoint stays quiet. The device may still raise one event for an
 * arm that found an arrival.
 */
static bool stays_disarmed(struct dev_dgram *dg, struct pollfd *pfd)
{
	for (int woken = 0; woken < 2; woken++) {
		vb_ud_disarm(dg);
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

	ud_pair_open(16, 16);
	out = ud_pair_text(0, "wake");
	pfd = (struct pollfd){ .fd = ib_ud_wait_fd(ud_pair[1]), .events = POLLIN };
	for (int i = 0; i < 3; i++) {
		cr_assert(sleeps(ud_pair[1], &pfd), "nothing came");
		cr_assert_eq(vb_ud_send(ud_pair[0], &out, 1), 1);
		cr_assert_eq(poll(&pfd, 1, PAIR_PATIENCE_S * 1000), 1);
		cr_assert_eq(vb_ud_arm(ud_pair[1]), -FI_EAGAIN, "an arrival is pending");
		cr_assert(stays_disarmed(ud_pair[1], &pfd));
		ud_pair_await(1, &in, 1);
		vb_ud_release(ud_pair[1], in.slot);
	}
}
