/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Exposures with two devices: registered with both, or not at all. (ring_rail_expose.c) */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>

#include "rail_pair.h"
#include "ring/ring_bulk.h"

static struct ring_pair pair;
static struct ring_end *b = &pair.end[1];
static uint8_t source[4096];
static struct core_exposure exposure;

static void start(void)
{
	rail_pair_start(&pair, false, &ring_pair_deaf);
	exposure = (struct core_exposure){ .chan = &b->conn.eng.chan };
}

static void finish(void)
{
	rail_pair_finish(&pair);
}

TestSuite(ring_rail_expose, .init = start, .fini = finish);

static int expose(size_t len)
{
	return ring_bulk_expose(exposure.chan, source, len, &exposure);
}

Test(ring_rail_expose, a_key_has_one_half_for_each_device)
{
	static const size_t lens[] = { 1, sizeof(source) };

	for (int i = 0; i < 2; i++) {
		cr_assert_eq(expose(lens[i]), 0);
		cr_expect_eq(b->dev.mem_cnt, 1);
		cr_expect_eq(b->second.mem_cnt, 1);
		cr_expect_neq((uint32_t)exposure.key, 0);
		cr_expect_neq(exposure.key >> 32, 0);
		ring_bulk_unexpose(exposure.chan, &exposure);
		cr_expect_eq(b->dev.mem_cnt + b->second.mem_cnt, 0);
	}
}

Test(ring_rail_expose, bytes_that_one_device_cannot_register_are_not_exposed)
{
	struct fake_dev *devs[] = { &b->dev, &b->second };

	for (int i = 0; i < 2; i++) {
		devs[i]->fail_reg = -FI_ENOMEM;
		cr_expect_eq(expose(sizeof(source)), -FI_ENOMEM);
		cr_expect_eq(b->dev.mem_cnt + b->second.mem_cnt, 0);
		devs[i]->fail_reg = 0;
	}
}

Test(ring_rail_expose, an_exposure_outlives_the_rail_and_then_has_one_device)
{
	cr_assert_eq(expose(sizeof(source)), 0);
	fake_link_of(b->conn.rail->link)->down = -FI_EIO;
	while (ring_rails_poll(ring_end_transport(b)))
		;
	cr_expect_eq(b->second.mem_cnt, 0, "the device may be closed");
	cr_expect_eq(b->dev.mem_cnt, 1);
	ring_bulk_unexpose(exposure.chan, &exposure);
	cr_expect_eq(b->dev.mem_cnt, 0);
	cr_assert_eq(expose(sizeof(source)), 0);
	cr_expect_eq(exposure.key >> 32, 0);
	ring_bulk_unexpose(exposure.chan, &exposure);
}
