/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* poll_into: expected datagrams are placed, others arrive whole and once, and no buffer is lost. */
#include <criterion/criterion.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "support/rng.h"
#include "unit/dev/udp/udp_pair.h"
#include "util/param.h"

#define HEAD    16u
#define PART    2000u
#define RUN     16u
#define BYTES   (HEAD + PART)
#define RX_CNT  8u
#define PATTERN 0xEE

static struct udp_pair pair;
static uint8_t place_bytes[RUN * PART];

static struct dev_dgram_target place_of(uint32_t parts)
{
	memset(place_bytes, PATTERN, sizeof(place_bytes));
	return (struct dev_dgram_target){
		.base = place_bytes, .len = parts * PART, .head_len = HEAD, .part_len = PART
	};
}

/** Sends datagrams n, n+1, ... in one burst, the last one of `last_len` bytes. */
static void send_run(uint32_t n, uint32_t cnt, uint32_t last_len)
{
	static uint8_t bytes[RUN][65000];
	struct dev_dgram_out out[RUN];
	uint32_t i, len;

	for (i = 0; i < cnt; i++) {
		len = i + 1 < cnt ? BYTES : last_len;
		udp_fill_bytes(bytes[i], len, n + i);
		out[i] = (struct dev_dgram_out){ .to = pair.to[0],
						 .base = { bytes[i] },
						 .len = { len } };
	}
	cr_assert_eq(udp_dgram_ops.send(pair.dg[0], out, cnt), (int)cnt);
}

/**
 * Calls poll_into when something has arrived. A datagram without bytes is found late, by one of 16
 * calls.
 */
static int into(const struct dev_dgram_target *place, struct dev_dgram_in *in, unsigned cnt)
{
	struct pollfd pfd = { .fd = ((struct udp_dgram *)pair.dg[1])->sock.fd, .events = POLLIN };
	unsigned i;
	int n;

	cr_assert_eq(poll(&pfd, 1, 60000), 1);
	for (i = 0; i < 16; i++) {
		n = udp_dgram_ops.poll_into(pair.dg[1], place, in, cnt);
		if (n != -FI_EAGAIN)
			break;
	}
	return n;
}

/** Returns true for datagram n with its payload in part i of the place. */
static bool is_placed(const struct dev_dgram_in *in, uint32_t i, uint32_t n)
{
	uint8_t want[BYTES];

	udp_fill_bytes(want, in->len, n);
	return !memcmp(in->data, want, HEAD) &&
	       !memcmp(place_bytes + (size_t)i * PART, want + HEAD, in->len - HEAD);
}

static void release(const struct dev_dgram_in *in, int cnt)
{
	while (cnt-- > 0)
		udp_dgram_ops.release(pair.dg[1], in[cnt].slot);
}

/** Expects all buffers to be free. */
static void over(void)
{
	cr_expect_eq(pair.dg[1]->rx_retained, 0);
	cr_expect_eq(((struct udp_dgram *)pair.dg[1])->free_cnt, RX_CNT);
	udp_pair_close(&pair);
}

/** Polls for `cnt` datagrams from number n on, the last one of `last_len` bytes. */
static void expect_whole(uint32_t n, uint32_t cnt, uint32_t last_len)
{
	struct dev_dgram_in in;
	uint32_t i;

	for (i = 0; i < cnt; i++) {
		cr_assert_eq(udp_pair_poll(pair.dg[1], &in, 1), 1);
		cr_assert_eq(in.len, i + 1 < cnt ? BYTES : last_len);
		cr_assert(udp_check_bytes(in.data, in.len, n + i));
		release(&in, 1);
	}
}

static void parts_are_in_their_places(int family)
{
	struct dev_dgram_target place = place_of(RUN);
	struct dev_dgram_in in[RUN];
	uint32_t seen = 0;
	int n, i;

	if (!udp_pair_open(&pair, family, RX_CNT))
		cr_skip_test("no such address here");
	cr_expect_eq(udp_dgram_ops.poll_into(pair.dg[1], &place, in, RUN), -FI_EAGAIN);
	send_run(0, RUN, BYTES - 500);
	while (seen < RUN) {
		place = place_of(RUN - seen < 3 ? 3 : RUN - seen);
		n = into(&place, in, RUN);
		cr_assert_gt(n, 0);
		for (i = 0; i < n; i++)
			cr_assert(is_placed(&in[i], (uint32_t)i, seen + (uint32_t)i));
		cr_assert(dev_dgram_is_from(pair.to[1], &in[0]));
		release(in, n);
		seen += (uint32_t)n;
	}
	over();
}

Test(udp_into, parts_are_in_their_places)
{
	parts_are_in_their_places(AF_INET);
}

Test(udp_into, parts_are_in_their_places_with_ipv6)
{
	parts_are_in_their_places(AF_INET6);
}

Test(udp_into, a_datagram_without_payload_arrives_whole)
{
	struct dev_dgram_target place = place_of(RUN);
	struct dev_dgram_in in[RUN];
	const uint32_t lens[] = { 0, 1, HEAD };
	unsigned i;

	cr_assert(udp_pair_open(&pair, AF_INET, RX_CNT));
	for (i = 0; i < 3; i++) {
		send_run(i, 1, lens[i]);
		cr_expect_eq(into(&place, in, RUN), 0);
		expect_whole(i, 1, lens[i]);
	}
	over();
}

Test(udp_into, a_datagram_longer_than_its_part_arrives_whole)
{
	struct dev_dgram_target place = place_of(RUN);
	struct dev_dgram_in in[RUN];
	const uint32_t lens[] = { BYTES + 1, 4 * BYTES, 65000 };
	unsigned i;

	cr_assert(udp_pair_open(&pair, AF_INET, RX_CNT));
	for (i = 0; i < 3; i++) {
		if (lens[i] > pair.to[0]->mtu)
			continue;
		send_run(i, 1, lens[i]);
		cr_expect_eq(into(&place, in, RUN), 0);
		expect_whole(i, 1, lens[i]);
	}
	over();
}

/* Small datagrams before the last part, and a run that continues behind the place. */
Test(udp_into, a_run_that_is_longer_than_the_place_is_not_cut)
{
	struct dev_dgram_target place = place_of(3);
	struct dev_dgram_in in[RUN];
	int n;

	cr_assert(udp_pair_open(&pair, AF_INET, RX_CNT));
	send_run(0, RUN, BYTES);
	n = into(&place, in, RUN);
	cr_assert(n == 0 || n == 1, "merged by the kernel, or not");
	if (n)
		cr_assert(is_placed(&in[0], 0, 0));
	release(in, n);
	expect_whole((uint32_t)n, RUN - (uint32_t)n, BYTES);
	over();
}

Test(udp_into, datagrams_put_back_arrive_whole_and_once)
{
	struct dev_dgram_in in[RUN], more;
	uint32_t first;
	int n;

	cr_assert(udp_pair_open(&pair, AF_INET, RX_CNT));
	for (first = 0; first < RUN; first += 3) {
		struct dev_dgram_target place = place_of(RUN);

		send_run(100, RUN, BYTES - 1);
		n = into(&place, in, RUN);
		if (n != (int)RUN)
			cr_skip_test("this kernel does not merge runs");
		udp_dgram_ops.put_back(pair.dg[1], &place, first);
		release(in, (int)first);
		cr_expect_eq(udp_dgram_ops.poll_into(pair.dg[1], &place, in, RUN), 0,
			     "datagrams put back come first");
		expect_whole(100 + first, RUN - first, BYTES - 1);
		cr_expect_eq(udp_dgram_ops.poll(pair.dg[1], &more, 1), 0);
	}
	over();
}

Test(udp_into, a_short_target_or_too_few_buffers_leave_it_to_poll)
{
	struct dev_dgram_target place = place_of(2);
	struct dev_dgram_in in[RUN], retained[RX_CNT];
	unsigned i;

	cr_assert(udp_pair_open(&pair, AF_INET, RX_CNT));
	send_run(0, 1, BYTES);
	cr_expect_eq(into(&place, in, RUN), 0);
	expect_whole(0, 1, BYTES);
	place = place_of(RUN);
	for (i = 0; i < RX_CNT - 1; i++) {
		send_run(i, 1, BYTES);
		cr_assert_eq(udp_pair_poll(pair.dg[1], &retained[i], 1), 1);
	}
	send_run(i, 1, BYTES);
	cr_expect_eq(into(&place, in, RUN), 0, "poll_into may need two");
	expect_whole(i, 1, BYTES);
	release(retained, (int)i);
	over();
}

/* Expected and unexpected datagrams, and wrong put_backs, in any order. */
static void whatever_comes(void)
{
	struct dev_dgram_in in[RUN];
	struct dev_dgram_target place;
	struct rng rng = { 5 };
	uint32_t sent = 0, seen = 0, step, first;
	int n, i;

	cr_assert(udp_pair_open(&pair, AF_INET, RX_CNT));
	for (step = 0; step < 20000 || seen < sent; step++) {
		if (step < 20000 && sent - seen < 32 && rng_chance(&rng, 1, 3)) {
			uint32_t run = 1 + (uint32_t)rng_below(&rng, RUN);

			send_run(sent, run, (uint32_t)rng_below(&rng, BYTES + 100));
			sent += run;
		}
		place = place_of(3 + (uint32_t)rng_below(&rng, RUN - 2));
		n = udp_dgram_ops.poll_into(pair.dg[1], &place, in, RUN);
		first = n > 0 && rng_chance(&rng, 1, 2) ? (uint32_t)rng_below(&rng, (uint32_t)n)
							: RUN;
		if (first < RUN)
			udp_dgram_ops.put_back(pair.dg[1], &place, first);
		for (i = 0; i < n && i < (int)first; i++)
			cr_assert(is_placed(&in[i], (uint32_t)i, seen++));
		release(in, i);
		if (n == -FI_EAGAIN)
			continue;
		n = udp_dgram_ops.poll(pair.dg[1], in, 5);
		cr_assert_geq(n, 0);
		for (i = 0; i < n; i++)
			cr_assert(udp_check_bytes(in[i].data, in[i].len, seen++));
		release(in, n);
	}
	cr_expect_eq(seen, sent);
	over();
}

Test(udp_into, no_datagram_is_lost_or_mixed_up)
{
	whatever_comes();
}

/* Without GSO and GRO a run is several datagrams, each of which may be placed. */
Test(udp_into, without_gso_and_gro_the_result_is_equal)
{
	util_params.udp_plain = 1;
	whatever_comes();
}
