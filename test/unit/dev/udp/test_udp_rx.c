/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Received bytes are unchanged until released, in any order, and no buffer is lost. */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <unistd.h>

#include "support/rng.h"
#include "unit/dev/udp/udp_pair.h"
#include "util/param.h"

#define RETAINED_MAX 64u

static struct udp_pair pair;

static void send_one(uint32_t n, uint32_t len)
{
	uint8_t bytes[2048];
	struct dev_dgram_out out = { .to = pair.to[0], .base = { bytes }, .len = { len } };

	udp_fill_bytes(bytes, len, n);
	cr_assert_eq(udp_dgram_ops.send(pair.dg[0], &out, 1), 1);
}

/** Sends `cnt` datagrams of one length in one burst. The kernel merges them if it can. */
static void send_run(uint32_t n, uint32_t cnt, uint32_t len)
{
	static uint8_t bytes[16][2048];
	struct dev_dgram_out out[16];
	uint32_t i;

	for (i = 0; i < cnt; i++) {
		udp_fill_bytes(bytes[i], len, n + i);
		out[i] = (struct dev_dgram_out){ .to = pair.to[0],
						 .base = { bytes[i] },
						 .len = { len } };
	}
	cr_assert_eq(udp_dgram_ops.send(pair.dg[0], out, cnt), (int)cnt);
}

Test(udp_rx, a_retained_buffer_is_not_overwritten)
{
	struct dev_dgram_in retained[4], more;
	uint32_t i;

	cr_assert(udp_pair_open(&pair, AF_INET, 4));
	for (i = 0; i < 4; i++) {
		send_one(i, 100);
		cr_assert_eq(udp_pair_poll(pair.dg[1], &retained[i], 1), 1);
	}
	for (; i < 8; i++)
		send_one(i, 100);
	cr_expect_eq(udp_dgram_ops.poll(pair.dg[1], &more, 1), 0, "no free buffer");
	for (i = 0; i < 4; i++)
		cr_expect(udp_check_bytes(retained[i].data, 100, i));
	udp_dgram_ops.release(pair.dg[1], retained[2].slot);
	cr_assert_eq(udp_pair_poll(pair.dg[1], &more, 1), 1);
	cr_expect(udp_check_bytes(more.data, 100, 4), "the socket kept the datagram");
	udp_pair_close(&pair);
}

/* Any mixture of runs, of receiving a few at a time, and of releasing in any order. */
static void whatever_is_held(void)
{
	struct dev_dgram_in retained[RETAINED_MAX];
	uint32_t number[RETAINED_MAX], retained_cnt = 0, sent = 0, seen = 0, i, run;
	struct rng rng = { 9 };
	int got, step;

	cr_assert(udp_pair_open(&pair, AF_INET, RETAINED_MAX));
	for (step = 0; step < 20000; step++) {
		if (sent - seen < 32 && rng_chance(&rng, 1, 3)) {
			run = 1 + (uint32_t)rng_below(&rng, 16);
			send_run(sent, run, 1 + (uint32_t)rng_below(&rng, 2048));
			sent += run;
		}
		got = udp_dgram_ops.poll(
			pair.dg[1], &retained[retained_cnt],
			RETAINED_MAX - retained_cnt < 5 ? RETAINED_MAX - retained_cnt : 5);
		cr_assert_geq(got, 0);
		for (i = 0; i < (uint32_t)got; i++)
			number[retained_cnt + i] = seen++;
		retained_cnt += (uint32_t)got;
		while (retained_cnt &&
		       (retained_cnt > RETAINED_MAX / 2 || rng_chance(&rng, 1, 2))) {
			i = (uint32_t)rng_below(&rng, retained_cnt);
			cr_assert(udp_check_bytes(retained[i].data, retained[i].len, number[i]));
			udp_dgram_ops.release(pair.dg[1], retained[i].slot);
			retained_cnt--;
			retained[i] = retained[retained_cnt];
			number[i] = number[retained_cnt];
		}
		cr_assert_eq(pair.dg[1]->rx_retained, retained_cnt);
	}
	while (retained_cnt)
		udp_dgram_ops.release(pair.dg[1], retained[--retained_cnt].slot);
	while (seen < sent && udp_pair_poll(pair.dg[1], retained, 1) > 0) {
		seen++;
		udp_dgram_ops.release(pair.dg[1], retained[0].slot);
	}
	cr_expect_eq(udp_dgram_ops.poll(pair.dg[1], retained, 1), 0);
	cr_expect_eq(seen, sent);
	cr_expect_eq(((struct udp_dgram *)pair.dg[1])->free_cnt, RETAINED_MAX,
		     "all buffers are back");
	udp_pair_close(&pair);
}

Test(udp_rx, no_datagram_is_lost_or_mixed_up_while_others_are_retained)
{
	whatever_is_held();
}

Test(udp_rx, without_gso_and_gro_the_result_is_equal)
{
	util_params.udp_plain = 1;
	whatever_is_held();
}

Test(udp_rx, a_run_is_one_buffer_with_gso_and_gro)
{
	struct udp_sock *sock;
	struct dev_dgram_in in[16];
	int i;

	cr_assert(udp_pair_open(&pair, AF_INET, 16));
	sock = &((struct udp_dgram *)pair.dg[0])->sock;
	if (!sock->gso || !sock->gro)
		cr_skip_test("no GSO or GRO in this kernel");
	send_run(0, 16, 1400);
	cr_assert_eq(udp_pair_poll(pair.dg[1], in, 16), 16);
	for (i = 0; i < 16; i++) {
		cr_expect_eq(in[i].slot, in[0].slot);
		cr_expect(udp_check_bytes(in[i].data, 1400, (uint32_t)i));
	}
	udp_pair_close(&pair);
}

Test(udp_rx, an_empty_datagram_is_a_datagram)
{
	struct dev_dgram_in in;

	cr_assert(udp_pair_open(&pair, AF_INET, 4));
	send_one(0, 0);
	cr_assert_eq(udp_pair_poll(pair.dg[1], &in, 1), 1);
	cr_expect_eq(in.len, 0);
	udp_dgram_ops.release(pair.dg[1], in.slot);
	cr_expect_eq(pair.dg[1]->rx_retained, 0);
	udp_pair_close(&pair);
}

Test(udp_rx, a_broken_socket_ends_the_endpoint)
{
	struct dev_dgram_in in;
	int fd;

	cr_assert(udp_pair_open(&pair, AF_INET, 4));
	fd = ((struct udp_dgram *)pair.dg[1])->sock.fd;
	close(fd);
	cr_expect_eq(udp_dgram_ops.poll(pair.dg[1], &in, 1), -FI_EIO);
	cr_expect_eq(udp_dgram_ops.poll(pair.dg[1], &in, 1), -FI_EIO);
	((struct udp_dgram *)pair.dg[1])->sock.fd = -1;
	udp_pair_close(&pair);
}
