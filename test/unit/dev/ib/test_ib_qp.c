/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dev/ib/ib_qp.h"

#include <criterion/criterion.h>

static uint64_t tries_ns(uint8_t timeout)
{
	return (4096ull << timeout) * (IB_RETRIES + 1);
}

Test(ib_qp, the_longest_timeout_within_the_peer_timeout_is_used)
{
	for (unsigned ms = 100; ms <= 3600000; ms = ms * 5 / 4) {
		uint8_t timeout = ib_qp_timeout(ms);

		cr_expect_leq(tries_ns(timeout), (uint64_t)ms * 1000000, "%u ms", ms);
		if (timeout < IB_TIMEOUT_MAX)
			cr_expect_gt(tries_ns(timeout + 1), (uint64_t)ms * 1000000, "%u ms", ms);
	}
}

Test(ib_qp, the_timeout_is_never_0_which_would_mean_for_ever)
{
	cr_expect_eq(ib_qp_timeout(0), 1);
	cr_expect_eq(ib_qp_timeout(1), 5);
	cr_expect_eq(ib_qp_timeout(UINT32_MAX), IB_TIMEOUT_MAX);
}

Test(ib_qp, psns_have_24_bits_and_differ)
{
	uint32_t first = ib_qp_psn();
	unsigned same = 0;

	for (int i = 0; i < 100; i++) {
		uint32_t psn = ib_qp_psn();

		cr_assert_leq(psn, IB_QPN_MAX);
		same += psn == first;
	}
	cr_assert_lt(same, 3);
}
