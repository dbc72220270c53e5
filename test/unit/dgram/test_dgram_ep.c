/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Addresses of an endpoint, its close, and a failing device. */
#include <rdma/fi_errno.h>
#include <string.h>

#include "unit/dgram/dgram_pair.h"

static struct dgram_pair p;
static uint8_t out[1024], in[1024];

static void setup(void)
{
	memset(&p, 0, sizeof(p));
	fake_net_init(&p.net, 1);
	p.net.inline_max = 60;
}

TestSuite(dgram_ep, .init = setup);

static void remove_number(uint64_t number)
{
	bool gone;

	cr_assert_eq(dgram_av_remove(p.av, number, &gone), 0);
	for (int i = 0; i < 2; i++)
		dgram_ep_removed(p.ep[i], number);
}

Test(dgram_ep, a_removed_address_is_unknown_and_may_be_inserted_again)
{
	struct dev_desc desc;

	dgram_pair_open(&p);
	cr_assert_eq(dgram_pair_send(&p, out, 100, 0), 0);
	remove_number(p.number[1]);
	cr_expect_eq(dgram_pair_send(&p, out, 100, 0), -FI_EINVAL);
	dgram_pair_run(&p);
	cr_expect_eq(p.net.cnt.delivered, 1, "the message in flight arrives");
	cr_assert_eq(fake_net_ops.describe(p.ep[1]->dg, &desc), 0);
	cr_assert_eq(dgram_av_insert(p.av, &desc, &p.number[1]), 0);
	cr_expect_eq(dgram_pair_send(&p, out, 100, 0), 0, "resolved when it is used");
	dgram_pair_close(&p);
}

/* The device reports each eighth datagram. */
Test(dgram_ep, handles_of_removed_addresses_are_freed_when_their_datagrams_are_done)
{
	struct dev_desc desc;

	dgram_pair_open(&p);
	cr_assert_eq(fake_net_ops.describe(p.ep[1]->dg, &desc), 0);
	for (unsigned i = 0; i < 100; i++) {
		cr_assert_eq(dgram_pair_send(&p, out, 100, i % 3 ? 0 : FI_MORE), 0);
		remove_number(p.number[1]);
		cr_expect_gt(p.ep[0]->removed_cnt, 0, "the last datagram may use it");
		cr_expect_leq(p.ep[0]->removed_cnt, 8);
		dgram_pair_run(&p);
		cr_assert_eq(dgram_av_insert(p.av, &desc, &p.number[1]), 0);
	}
	cr_expect_eq(p.net.cnt.delivered, 100);
	dgram_pair_close(&p);
}

Test(dgram_ep, a_sender_is_named_while_it_is_in_the_av)
{
	dgram_pair_open(&p);
	dgram_pair_recv(&p, in, 8, 0);
	cr_assert_eq(dgram_pair_send(&p, out, 1, 0), 0);
	dgram_pair_run(&p);
	cr_expect_eq(dgram_pair_take(&p, 1, 0).data, p.number[0]);
	remove_number(p.number[0]);
	dgram_pair_recv(&p, in, 8, 0);
	cr_assert_eq(dgram_pair_send(&p, out, 1, 0), 0);
	dgram_pair_run(&p);
	cr_expect_eq(dgram_pair_take(&p, 1, 0).data, FI_ADDR_NOTAVAIL);
	dgram_pair_close(&p);
}

Test(dgram_ep, is_busy_until_its_last_datagram_has_left)
{
	uint64_t until;

	p.net.bytes_per_s = 1e6;
	dgram_pair_open(&p);
	cr_expect_not(dgram_ep_is_busy(p.ep[0]));
	cr_assert_eq(dgram_pair_send(&p, out, 1000, 0), 0);
	cr_assert_eq(dgram_pair_send(&p, out, 1000, FI_MORE), 0);
	cr_expect(dgram_ep_is_busy(p.ep[0]));
	until = p.net.now_ns + 1900000; /* Two datagrams take two milliseconds */
	fake_net_run(&p.net, until);
	dgram_ep_progress(p.ep[0]);
	cr_expect(dgram_ep_is_busy(p.ep[0]));
	fake_net_run(&p.net, until + 1000000);
	dgram_ep_progress(p.ep[0]);
	cr_expect_not(dgram_ep_is_busy(p.ep[0]));
	dgram_pair_run(&p);
	cr_expect_eq(p.ep[0]->dg->rx_retained, 0, "its own datagram has no sender");
	cr_expect_eq(p.net.cnt.delivered, 3, "%lu of %lu", p.net.cnt.delivered, p.net.cnt.sent);
	dgram_pair_close(&p);
}

Test(dgram_ep, a_device_failure_ends_receives_and_is_reported_once)
{
	dgram_pair_open(&p);
	dgram_pair_recv(&p, in, 8, 0);
	dgram_pair_recv(&p, in + 8, 8, 0);
	fake_port_of(p.ep[1]->dg)->status = -FI_EIO;
	dgram_ep_progress(p.ep[1]);
	dgram_ep_progress(p.ep[1]);
	cr_expect_eq(dgram_pair_take(&p, 1, FI_EIO).op_context, in);
	cr_expect_eq(dgram_pair_take(&p, 1, FI_EIO).op_context, in + 8);
	cr_expect_eq(dgram_pair_left(&p, 1), 0);
	cr_expect_eq(dgram_rx_post(p.ep[1], &(struct dgram_post){ 0 }), -FI_EIO);
	cr_expect_eq(dgram_tx_send(p.ep[1], &(struct dgram_send){ 0 }), -FI_EIO);
	cr_expect_not(dgram_ep_is_busy(p.ep[1]));
	cr_expect_eq(dgram_ep_arm(p.ep[1]), 0, "nothing prevents sleep");
	dgram_pair_close(&p);
}

Test(dgram_ep, closing_drops_receives_and_queued_datagrams)
{
	dgram_pair_open(&p);
	dgram_pair_recv(&p, in, 8, 0);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(dgram_pair_send(&p, out, 100, 0), 0);
	dgram_pair_run(&p);
	cr_expect_eq(p.ep[1]->queued_cnt, 2);
	dgram_pair_recv(&p, in, 8, 0);
	dgram_pair_recv(&p, in, 8, 0);
	dgram_pair_recv(&p, in, 8, 0);
	cr_expect_eq(dgram_pair_left(&p, 1), 3);
	dgram_pair_close(&p);
}

Test(dgram_ep, the_name_is_the_devices_description)
{
	struct dev_desc desc;

	dgram_pair_open(&p);
	cr_assert_eq(fake_net_ops.describe(p.ep[1]->dg, &desc), 0);
	cr_expect_eq(p.ep[1]->name_len, desc.len);
	cr_expect_arr_eq((uint8_t *)&p.ep[1]->name, desc.bytes, desc.len);
	dgram_pair_close(&p);
}
