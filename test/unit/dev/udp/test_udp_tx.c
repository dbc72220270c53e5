/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Bursts of every shape arrive unchanged, with and without GSO. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <string.h>

#include "support/rng.h"
#include "unit/dev/udp/udp_pair.h"

#define BURST 40u

static struct udp_pair pair;
static uint8_t bytes[BURST][9000];
static uint32_t lens[BURST];

/** Expects datagrams `first` and up, whole and in order, from endpoint 0. */
static void expect_burst(uint32_t first, uint32_t cnt)
{
	struct dev_dgram_in in[7];
	uint32_t n = 0;
	int got, i;

	while (n < cnt) {
		got = udp_pair_poll(pair.dg[1], in, 7);
		cr_assert_gt(got, 0, "%u of %u arrived", n, cnt);
		for (i = 0; i < got; i++, n++) {
			cr_assert_eq(in[i].len, lens[n]);
			cr_assert(udp_check_bytes(in[i].data, in[i].len, first + n));
			cr_assert(dev_dgram_is_from(pair.to[1], &in[i]));
			udp_dgram_ops.release(pair.dg[1], in[i].slot);
		}
	}
	cr_assert_eq(pair.dg[1]->rx_retained, 0);
}

/** Sends a burst of random lengths: runs, single datagrams, shorter ends; in one or two pieces. */
static void send_burst(struct rng *rng, uint32_t first, uint32_t cnt)
{
	struct dev_dgram_out out[BURST];
	uint32_t i, len = 1000, cut, posted = pair.dg[0]->tx_posted;
	unsigned done = 0;
	int ret;

	for (i = 0; i < cnt; i++) {
		if (rng_chance(rng, 1, 5))
			len = 1 + (uint32_t)rng_below(rng, rng_chance(rng, 1, 4) ? 8999 : 64);
		lens[i] = len;
		udp_fill_bytes(bytes[i], len, first + i);
		cut = rng_chance(rng, 1, 2) ? (uint32_t)rng_below(rng, len + 1) : len;
		out[i] = (struct dev_dgram_out){
			.to = pair.to[0],
			.base = { bytes[i], bytes[i] + cut },
			.len = { cut, len - cut },
		};
	}
	while (done < cnt) {
		ret = udp_dgram_ops.send(pair.dg[0], out + done, cnt - done);
		cr_assert_gt(ret, 0);
		done += (unsigned)ret;
	}
	cr_assert_eq(pair.dg[0]->tx_posted, posted + cnt);
	cr_assert_eq(pair.dg[0]->tx_done, posted + cnt, "the kernel has copied all");
	memset(bytes, 0xEE, sizeof(bytes));
}

static void random_bursts(int family, bool gso)
{
	struct rng rng = { 5 };
	uint32_t first = 0, cnt, i;

	if (!udp_pair_open(&pair, family, 256))
		cr_skip_test("no loopback of this family");
	if (!gso)
		((struct udp_dgram *)pair.dg[0])->sock.gso = false;
	for (i = 0; i < 300; i++) {
		cnt = 1 + (uint32_t)rng_below(&rng, BURST);
		send_burst(&rng, first, cnt);
		expect_burst(first, cnt);
		first += cnt;
	}
	udp_pair_close(&pair);
}

Test(udp_tx, bursts_arrive_over_ipv4)
{
	random_bursts(AF_INET, true);
}

Test(udp_tx, bursts_arrive_over_ipv6)
{
	FILE *file = fopen("/proc/net/if_inet6", "re");
	bool found = file && fgetc(file) != EOF;

	if (file)
		fclose(file);
	if (!found)
		cr_skip_test("no IPv6 here");
	random_bursts(AF_INET6, true);
}

Test(udp_tx, bursts_arrive_without_segmentation)
{
	random_bursts(AF_INET, false);
}

/** Sends a run of 20 datagrams of `len` bytes. Returns true if it was gathered. */
static bool is_gathered(uint32_t len)
{
	uint8_t *gather = udp_gather_buf((struct udp_dgram *)pair.dg[0]);
	struct dev_dgram_out out[20];
	uint32_t cnt = 20;

	memset(gather, 0, UDP_BUF_LEN);
	for (uint32_t i = 0; i < cnt; i++) {
		lens[i] = len;
		udp_fill_bytes(bytes[i], len, i);
		out[i] = (struct dev_dgram_out){
			.to = pair.to[0],
			.base = { bytes[i], bytes[i] + 16 },
			.len = { 16, len - 16 },
		};
	}
	for (uint32_t done = 0; done < cnt;) {
		int ret = udp_dgram_ops.send(pair.dg[0], out + done, cnt - done);

		cr_assert_gt(ret, 0);
		done += (uint32_t)ret;
	}
	expect_burst(0, cnt);
	return gather[1];
}

Test(udp_tx, short_datagrams_of_a_run_are_gathered)
{
	cr_assert(udp_pair_open(&pair, AF_INET, 256));
	cr_expect(is_gathered(17));
	cr_expect(is_gathered(1472));
	cr_expect(is_gathered(UDP_GATHER_MAX), "more than the buffer holds");
	cr_expect_not(is_gathered(UDP_GATHER_MAX + 1));
	((struct udp_dgram *)pair.dg[0])->sock.gso = false;
	cr_expect_not(is_gathered(1472));
	udp_pair_close(&pair);
}

Test(udp_tx, the_longest_datagram_arrives)
{
	static uint8_t big[UDP_MTU_MAX];
	struct dev_dgram_out out = { .base = { big } };
	struct dev_dgram_in in;

	cr_assert(udp_pair_open(&pair, AF_INET, 4));
	out.to = pair.to[0];
	out.len[0] = pair.to[0]->mtu;
	udp_fill_bytes(big, out.len[0], 1);
	cr_assert_eq(udp_dgram_ops.send(pair.dg[0], &out, 1), 1);
	cr_assert_eq(udp_pair_poll(pair.dg[1], &in, 1), 1);
	cr_expect_eq(in.len, out.len[0]);
	cr_expect(udp_check_bytes(in.data, in.len, 1));
	udp_dgram_ops.release(pair.dg[1], in.slot);
	udp_pair_close(&pair);
}

/* Without a reader, the sender's socket fills up or the reader's overflows. Both are harmless. */
Test(udp_tx, a_flood_is_refused_or_lost_and_harmless)
{
	static uint8_t data[8192];
	struct dev_dgram_out out[16];
	struct dev_dgram_in in[16];
	int i, ret, got, cnt = 0;

	cr_assert(udp_pair_open(&pair, AF_INET, 64));
	for (i = 0; i < 16; i++)
		out[i] = (struct dev_dgram_out){ .to = pair.to[0],
						 .base = { data },
						 .len = { sizeof(data) } };
	for (i = 0; i < 2000; i++) {
		ret = udp_dgram_ops.send(pair.dg[0], out, 16);
		cr_assert(ret > 0 || ret == -FI_EAGAIN);
	}
	while ((got = udp_dgram_ops.poll(pair.dg[1], in, 16)) > 0) {
		for (i = 0; i < got; i++, cnt++)
			udp_dgram_ops.release(pair.dg[1], in[i].slot);
	}
	cr_expect_eq(got, 0);
	cr_expect_gt(cnt, 0);
	cr_expect_gt(udp_dgram_ops.send(pair.dg[0], out, 1), 0);
	cr_expect_gt(udp_pair_poll(pair.dg[1], in, 16), 0);
	udp_pair_close(&pair);
}

/*
 * Sends a run of equal datagrams to a destination for which the kernel has an error, and expects
 * that they count as lost, that GSO stays in use, and that others are reached.
 */
static void lost_alone(in_addr_t host, in_port_t port)
{
	struct udp_dgram *ud;
	struct dev_dgram_out out[3];
	struct udp_ah *ah;
	union udp_addr own;
	bool gso;
	uint32_t i;

	cr_assert(udp_pair_open(&pair, AF_INET, 64));
	ud = (struct udp_dgram *)pair.dg[0];
	gso = ud->sock.gso;
	ah = (struct udp_ah *)pair.to[0];
	own = ah->addr;
	ah->addr.in.sin_addr.s_addr = host ? host : own.in.sin_addr.s_addr;
	ah->addr.in.sin_port = port;
	for (i = 0; i < 3; i++)
		out[i] = (struct dev_dgram_out){ .to = pair.to[0],
						 .base = { bytes[i] },
						 .len = { 100 } };
	cr_expect_eq(udp_dgram_ops.send(pair.dg[0], out, 3), 3, "lost");
	cr_expect_eq(ud->status, 0);
	cr_expect_eq(ud->sock.gso, gso);
	ah->addr = own;
	for (i = 0; i < 3; i++)
		udp_fill_bytes(bytes[i], lens[i] = 100, i);
	cr_expect_eq(udp_dgram_ops.send(pair.dg[0], out, 3), 3);
	expect_burst(0, 3);
	udp_pair_close(&pair);
}

Test(udp_tx, an_error_of_one_destination_is_a_loss)
{
	lost_alone(htonl(INADDR_BROADCAST), htons(9)); /* EACCES */
	lost_alone(0, 0);                              /* EINVAL */
}
