/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sends over a device that copies and over one that gathers later. */
#include <rdma/fi_errno.h>
#include <string.h>

#include "support/rng.h"
#include "unit/dgram/dgram_pair.h"

static struct dgram_pair p;
static uint8_t out[2048], in[2048];

static void setup(void)
{
	memset(&p, 0, sizeof(p));
	fake_net_init(&p.net, 1);
	for (size_t i = 0; i < sizeof(out); i++)
		out[i] = (uint8_t)(i * 7 + i / 256);
}

TestSuite(dgram_tx, .init = setup);

static void open_nic(void)
{
	p.net.inline_max = 60;
	dgram_pair_open(&p);
}

/* Sends `len` bytes of `out` in `pieces` buffers and checks their arrival. */
static void arrives(size_t len, size_t pieces)
{
	struct iovec iov[DGRAM_IOV_MAX];
	struct dgram_send s = { .dest = p.number[1], .iov = iov, .iov_cnt = pieces, .len = len };
	size_t at = 0;

	for (size_t i = 0; i < pieces; i++) {
		size_t part = i + 1 < pieces ? len / pieces : len - at;

		iov[i] = (struct iovec){ out + at, part };
		at += part;
	}
	memset(in, 0xEE, sizeof(in));
	dgram_pair_recv(&p, in, sizeof(in), 0);
	cr_assert_eq(dgram_tx_send(p.ep[0], &s), 0);
	cr_expect_eq(dgram_pair_take(&p, 0, 0).flags, FI_SEND | FI_MSG);
	dgram_pair_run(&p);
	cr_assert_eq(dgram_pair_take(&p, 1, 0).len, len);
	cr_expect_arr_eq(in, out, len);
	cr_expect_eq(in[len], 0xEE);
}

static void all_shapes_arrive(void)
{
	static const size_t lens[] = { 0, 1, 59, 60, 61, 1023, 1024 };

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++)
		for (size_t pieces = lens[i] ? 1 : 0; pieces <= DGRAM_IOV_MAX; pieces++)
			arrives(lens[i], pieces);
	dgram_pair_close(&p);
}

Test(dgram_tx, every_shape_arrives_whole_where_the_device_copies)
{
	dgram_pair_open(&p);
	all_shapes_arrive();
}

Test(dgram_tx, every_shape_arrives_whole_where_the_device_gathers)
{
	open_nic();
	all_shapes_arrive();
}

Test(dgram_tx, a_buffer_is_free_on_return)
{
	open_nic();
	dgram_pair_recv(&p, in, sizeof(in), 0);
	cr_assert_eq(dgram_pair_send(&p, out, 700, 0), 0);
	memset(out, 0, 700);
	dgram_pair_run(&p);
	cr_expect_eq(in[699], (uint8_t)(699 * 7 + 699 / 256));
	dgram_pair_close(&p);
}

Test(dgram_tx, fi_more_gathers_datagrams_in_order)
{
	open_nic();
	for (uint32_t i = 0; i < 5; i++)
		cr_assert_eq(dgram_pair_send(&p, out + i, 1, i < 4 ? FI_MORE : 0), 0);
	cr_expect_eq(p.net.cnt.sent, 5);
	for (uint32_t i = 0; i < 3; i++)
		cr_assert_eq(dgram_pair_send(&p, out + i, 1, FI_MORE), 0);
	cr_expect_eq(p.net.cnt.sent, 5);
	dgram_ep_progress(p.ep[0]);
	cr_expect_eq(p.net.cnt.sent, 8, "reading a queue flushes them");
	for (uint32_t i = 0; i < DGRAM_BURST; i++)
		cr_assert_eq(dgram_pair_send(&p, out + i, 1, FI_MORE), 0);
	cr_expect_eq(p.net.cnt.sent, 8 + DGRAM_BURST, "a burst is bounded");
	cr_expect_eq(dgram_pair_left(&p, 0), 8 + DGRAM_BURST);
	dgram_pair_close(&p);
}

Test(dgram_tx, an_invalid_send_is_refused)
{
	struct dgram_send s = { .dest = 77 };

	open_nic();
	cr_expect_eq(dgram_tx_send(p.ep[0], &s), -FI_EINVAL);
	s.dest = FI_ADDR_UNSPEC;
	cr_expect_eq(dgram_tx_send(p.ep[0], &s), -FI_EINVAL);
	cr_expect_eq(dgram_pair_send(&p, out, p.ep[0]->dg->mtu + 1, 0), -FI_EMSGSIZE);
	cr_expect_eq(dgram_pair_left(&p, 0), 0);
	cr_expect_eq(p.sent[0].value + p.sent[0].errors, 0);
	dgram_pair_close(&p);
}

Test(dgram_tx, only_requested_completions_are_written)
{
	struct iovec iov = { out, 8 };
	struct dgram_send s = { .dest = p.number[1], .iov = &iov, .iov_cnt = 1, .len = 8 };

	open_nic();
	s.dest = p.number[1];
	s.silent = true;
	cr_assert_eq(dgram_tx_send(p.ep[0], &s), 0);
	cr_expect_eq(dgram_pair_left(&p, 0), 0);
	p.tx[0].selective = true;
	s.silent = false;
	cr_assert_eq(dgram_tx_send(p.ep[0], &s), 0);
	cr_expect_eq(dgram_pair_left(&p, 0), 0);
	s.flags = FI_COMPLETION;
	cr_assert_eq(dgram_tx_send(p.ep[0], &s), 0);
	cr_expect_eq(dgram_pair_left(&p, 0), 1);
	cr_expect_eq(p.sent[0].value, 3);
	dgram_pair_close(&p);
}

/* Sends on a slow link until it is full. Returns the number of datagrams. */
static uint32_t fill(void)
{
	uint32_t cnt = 0;

	while (dgram_pair_send(&p, out, 500, 0) == 0 && cnt < 10000)
		cnt++;
	return cnt;
}

Test(dgram_tx, a_full_device_returns_eagain_and_loses_nothing)
{
	uint32_t cnt;

	p.net.bytes_per_s = 1e6;
	open_nic();
	cnt = fill();
	cr_expect_geq(cnt, DGRAM_TX_CNT);
	cr_expect_leq(cnt, DGRAM_TX_CNT + DGRAM_BURST);
	cr_expect_eq(dgram_pair_send(&p, out, 500, 0), -FI_EAGAIN);
	dgram_pair_run(&p);
	cr_expect_eq(p.net.cnt.delivered, cnt);
	cr_expect_eq(p.ep[1]->queued_cnt, cnt);
	cr_expect_eq(fill(), cnt, "all of the room has come back");
	dgram_pair_close(&p);
}

/* fake_net fails the test if a slot changes before its datagram has left. */
Test(dgram_tx, slots_are_not_reused_too_early)
{
	struct rng rng = { .state = 7 };

	p.net.bytes_per_s = 5e7;
	p.net.busy_chance = 200000;
	open_nic();
	for (uint32_t i = 0; i < 20000; i++) {
		size_t len = rng_below(&rng, 1025);
		int ret = dgram_pair_send(&p, out + i % 64, len, rng_below(&rng, 3) ? 0 : FI_MORE);

		cr_assert(ret == 0 || ret == -FI_EAGAIN);
		if (rng_below(&rng, 2))
			fake_net_run(&p.net, p.net.now_ns + rng_below(&rng, 20000));
		if (ret == 0)
			dgram_pair_take(&p, 0, 0);
	}
	dgram_pair_run(&p);
	cr_expect_eq(p.net.cnt.sent, p.sent[0].value);
	dgram_pair_close(&p);
}

Test(dgram_tx, the_prefix_is_not_transmitted)
{
	struct iovec apart[3] = { { out, DGRAM_PREFIX }, { out + 100, 30 }, { out + 200, 700 } };
	struct dgram_send s = { .iov = apart, .iov_cnt = 3, .len = DGRAM_PREFIX + 730 };

	p.prefix = DGRAM_PREFIX;
	open_nic();
	s.dest = p.number[1];
	memset(in, 0xEE, sizeof(in));
	dgram_pair_recv(&p, in, sizeof(in), 0);
	dgram_pair_recv(&p, in + 1000, 1000, 0);
	cr_assert_eq(dgram_tx_send(p.ep[0], &s), 0);
	cr_assert_eq(dgram_pair_send(&p, out, DGRAM_PREFIX + 8, 0), 0);
	dgram_pair_run(&p);
	cr_expect_eq(dgram_pair_take(&p, 1, 0).len, DGRAM_PREFIX + 730);
	cr_expect_arr_eq(in + DGRAM_PREFIX, out + 100, 30);
	cr_expect_arr_eq(in + DGRAM_PREFIX + 30, out + 200, 700);
	cr_expect_eq(dgram_pair_take(&p, 1, 0).len, DGRAM_PREFIX + 8);
	cr_expect_arr_eq(in + 1000 + DGRAM_PREFIX, out + DGRAM_PREFIX, 8);
	cr_expect_eq(in[0] & in[DGRAM_PREFIX - 1] & in[1000], 0xEE, "the entry is unchanged");
	dgram_pair_close(&p);
}

Test(dgram_tx, the_prefix_counts_in_no_limit)
{
	p.prefix = DGRAM_PREFIX;
	open_nic();
	cr_expect_eq(dgram_pair_send(&p, out, p.ep[0]->dg->mtu + DGRAM_PREFIX, 0), 0);
	cr_expect_eq(dgram_pair_send(&p, out, p.ep[0]->dg->mtu + DGRAM_PREFIX + 1, 0),
		     -FI_EMSGSIZE);
	cr_expect_eq(dgram_pair_send(&p, out, DGRAM_PREFIX, 0), 0, "an empty message");
	cr_expect_eq(dgram_pair_send(&p, out, DGRAM_PREFIX - 1, 0), -FI_EINVAL);
	dgram_pair_close(&p);
}
