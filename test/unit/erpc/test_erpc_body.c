/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Bodies: received bytes remain as long as there are references. */
#include "erpc/base/erpc_body.h"

#include <criterion/criterion.h>
#include <string.h>

#include "erpc/erpc_progress.h"
#include "erpc/erpc_setup.h"
#include "support/fake_net.h"
#include "support/pool_used.h"

#define RX_CNT 6u
#define LEN    48u /* of a packet, with its header */

static struct fake_net net;
static struct erpc_ep *ep;
static struct erpc_session *s;

static void failed(struct erpc_session *failing)
{
}

static void setup(void)
{
	struct dev_dgram_attr dg_attr = { .rx_cnt = RX_CNT, .tx_cnt = 8 };
	struct erpc_ep_attr attr = { .tx_cnt = 8, .seed = 1, .failed = failed };
	struct wire_erpc_params params;

	fake_net_init(&net, 1);
	cr_assert_eq(fake_net_ops.open(fake_net_dev(&net), &dg_attr, &attr.dg), 0);
	cr_assert_eq(erpc_ep_open(&attr, &ep), 0);
	cr_assert_eq(erpc_session_open(ep, &params, &s), 0);
}

static void teardown(void)
{
	erpc_session_close(s);
	cr_expect_eq(ep->dg->rx_retained, 0, "every buffer of the device was returned");
	cr_expect_eq(pool_used(&ep->bodies), 0);
	erpc_ep_close(ep);
	fake_net_fini(&net);
}

static uint8_t byte_of(unsigned number, uint32_t at)
{
	return (uint8_t)(number * 31 + at);
}

/** Receives a packet as a body. Returns its buffer to the device unless the body kept it. */
static struct erpc_body *arrive(unsigned number, bool *kept)
{
	uint8_t bytes[LEN];
	struct dev_dgram_in in;
	struct erpc_body *body;
	uint32_t at;

	for (at = 0; at < LEN; at++)
		bytes[at] = byte_of(number, at);
	fake_net_forge(&net, 9, 0, bytes, LEN, 0);
	fake_net_run(&net, net.now_ns);
	cr_assert_eq(ep->dg->ops->poll(ep->dg, &in, 1), 1, "a buffer was free");
	*kept = false;
	body = erpc_body_of(s, &in, kept);
	cr_assert_not_null(body);
	if (!*kept)
		ep->dg->ops->release(ep->dg, in.slot);
	return body;
}

static bool is_whole(const struct erpc_body *body, unsigned number)
{
	uint32_t at;

	for (at = WIRE_ERPC_HDR_LEN; at < LEN; at++)
		if (body->data[at - WIRE_ERPC_HDR_LEN] != byte_of(number, at))
			return false;
	return body->len == LEN - WIRE_ERPC_HDR_LEN;
}

TestSuite(erpc_body, .init = setup, .fini = teardown);

/** More packets arrive than the device has buffers; other sessions can still receive. */
Test(erpc_body, beyond_half_of_the_buffers_bodies_are_copied)
{
	struct erpc_body *all[4 * RX_CNT];
	unsigned i, in_device = 0;
	bool kept;

	for (i = 0; i < 4 * RX_CNT; i++) {
		all[i] = arrive(i, &kept);
		in_device += kept;
		cr_assert_eq(kept, i < RX_CNT / 2);
		cr_assert_eq(kept, !all[i]->heap);
		cr_assert_eq(ep->dg->rx_retained, in_device);
	}
	for (i = 0; i < 4 * RX_CNT; i++) {
		cr_assert(is_whole(all[i], i));
		erpc_body_put(all[i]);
	}
	cr_expect_eq(ep->dg->rx_retained, 0);
	erpc_body_put(arrive(0, &kept));
	cr_expect(kept, "the device's buffers are used again");
}

Test(erpc_body, the_last_reference_frees_it)
{
	struct erpc_body *body;
	unsigned i;
	bool kept;

	body = arrive(7, &kept);
	body->refs += 2;
	for (i = 0; i < 2; i++) {
		erpc_body_put(body);
		cr_expect_eq(ep->dg->rx_retained, 1);
		cr_expect_eq(pool_used(&ep->bodies), 1);
		cr_expect(is_whole(body, 7));
	}
	erpc_body_put(body);
	cr_expect_eq(ep->dg->rx_retained, 0);
	cr_expect_eq(pool_used(&ep->bodies), 0);
	cr_expect(util_list_is_empty(&s->bodies));
}

Test(erpc_body, delivered_bytes_count_as_retained_until_freed)
{
	struct erpc_body *delivered = erpc_body_new(s, 100), *undelivered = erpc_body_new(s, 1000);

	delivered->delivered = true;
	delivered->refs++;
	s->resp.retained_len = delivered->len;
	erpc_body_put(delivered);
	cr_expect_eq(s->resp.retained_len, 100);
	erpc_body_put(undelivered);
	cr_expect_eq(s->resp.retained_len, 100, "an undelivered body does not count");
	erpc_body_put(delivered);
	cr_expect_eq(s->resp.retained_len, 0);
}

Test(erpc_body, assembled_bodies_use_the_heap)
{
	static const uint32_t lens[] = { 0, 1, 5000, ERPC_BUF_LARGE };
	unsigned i;

	for (i = 0; i < 4; i++) {
		struct erpc_body *body = erpc_body_new(s, lens[i]);

		cr_assert_eq(body->len, lens[i]);
		cr_assert_eq(body->data, body->heap);
		memset(body->heap, 1, lens[i]);
		cr_expect_eq(ep->dg->rx_retained, 0);
		erpc_body_put(body);
	}
}

/** teardown checks that the buffers are back. */
Test(erpc_body, close_frees_retained_bodies)
{
	bool kept;

	arrive(1, &kept)->refs += 3;
	cr_expect(kept);
	arrive(2, &kept);
	erpc_body_new(s, 300)->refs++;
	cr_expect_eq(pool_used(&ep->bodies), 3);
}
