/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Received bytes stay where they are until released, in any order; buffers are never lost. */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <unistd.h>

#include "support/rng.h"
#include "unit/dev/udp/udp_pair.h"
#include "util/param.h"

#define HELD_MAX 64u

static struct udp_pair pair;

static void send_one(uint32_t n, uint32_t len)
{
	uint8_t bytes[2048];
	struct dev_dgram_out out = { .to = pair.to[0], .base = { bytes }, .len = { len } };

	udp_fill_bytes(bytes, len, n);
	cr_assert_eq(udp_dgram_ops.send(pair.dg[0], &out, 1), 1);
}

/** `cnt` datagrams of one length in one burst: the kernel joins them if it can. */
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

Test(udp_rx, a_buffer_that_is_held_is_not_written_to)
{
	struct dev_dgram_in held[4], more;
	uint32_t i;

	cr_assert(udp_pair_open(&pair, AF_INET, 4));
	for (i = 0; i < 4; i++) {
		send_one(i, 100);
		cr_assert_eq(udp_pair_poll(pair.dg[1], &held[i], 1), 1);
	}
	for (; i < 8; i++)
		send_one(i, 100);
	cr_expect_eq(udp_dgram_ops.poll(pair.dg[1], &more, 1), 0, "there is no buffer");
	for (i = 0; i < 4; i++)
		cr_expect(udp_check_bytes(held[i].data, 100, i));
	udp_dgram_ops.release(pair.dg[1], held[2].slot);
	cr_assert_eq(udp_pair_poll(pair.dg[1], &more, 1), 1);
	cr_expect(udp_check_bytes(more.data, 100, 4), "the socket kept it meanwhile");
	udp_pair_close(&pair);
}

/* Any mixture of runs, of taking a few at a time, and of releasing in any order. */
static void whatever_is_held(void)
{
	struct dev_dgram_in held[HELD_MAX];
	uint32_t number[HELD_MAX], held_cnt = 0, sent = 0, seen = 0, i, run;
	struct rng rng = { 9 };
	int got, step;

	cr_assert(udp_pair_open(&pair, AF_INET, HELD_MAX));
	for (step = 0; step < 20000; step++) {
		if (sent - seen < 32 && rng_chance(&rng, 1, 3)) {
			run = 1 + (uint32_t)rng_below(&rng, 16);
			send_run(sent, run, 1 + (uint32_t)rng_below(&rng, 2048));
			sent += run;
		}
		got = udp_dgram_ops.poll(pair.dg[1], &held[held_cnt],
					 HELD_MAX - held_cnt < 5 ? HELD_MAX - held_cnt : 5);
		cr_assert_geq(got, 0);
		for (i = 0; i < (uint32_t)got; i++)
			number[held_cnt + i] = seen++;
		held_cnt += (uint32_t)got;
		while (held_cnt && (held_cnt > HELD_MAX / 2 || rng_chance(&rng, 1, 2))) {
			i = (uint32_t)rng_below(&rng, held_cnt);
			cr_assert(udp_check_bytes(held[i].data, held[i].len, number[i]));
			udp_dgram_ops.release(pair.dg[1], held[i].slot);
			held_cnt--;
			held[i] = held[held_cnt];
			number[i] = number[held_cnt];
		}
		cr_assert_eq(pair.dg[1]->rx_retained, held_cnt);
	}
	while (held_cnt)
		udp_dgram_ops.release(pair.dg[1], held[--held_cnt].slot);
	while (seen < sent && udp_pair_poll(pair.dg[1], held, 1) > 0) {
		seen++;
		udp_dgram_ops.release(pair.dg[1], held[0].slot);
	}
	cr_expect_eq(udp_dgram_ops.poll(pair.dg[1], held, 1), 0);
	cr_expect_eq(seen, sent);
	cr_expect_eq(((struct udp_dgram *)pair.dg[1])->free_cnt, HELD_MAX, "all buffers are back");
	udp_pair_close(&pair);
}

Test(udp_rx, nothing_is_lost_or_mixed_up_whatever_is_held)
{
	whatever_is_held();
}

Test(udp_rx, without_offloads_it_is_the_same)
{
	util_params.udp_plain = 1;
	whatever_is_held();
}

Test(udp_rx, a_run_is_one_buffer_where_the_kernel_cuts_and_joins)
{
	struct udp_sock *sock;
	struct dev_dgram_in in[16];
	int i;

	cr_assert(udp_pair_open(&pair, AF_INET, 16));
	sock = &((struct udp_dgram *)pair.dg[0])->sock;
	if (!sock->gso || !sock->gro)
		cr_skip_test("this kernel does not");
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
