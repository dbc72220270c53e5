/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dev/ib/ib_wc.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

Test(ib_wc, only_success_is_0)
{
	cr_expect_eq(ib_wc_errno(IBV_WC_SUCCESS), 0);
	for (int s = 1; s < 64; s++)
		cr_expect_lt(ib_wc_errno((enum ibv_wc_status)s), 0, "%d", s);
}

Test(ib_wc, every_failure_has_advice)
{
	for (int s = 1; s <= IBV_WC_GENERAL_ERR; s++)
		cr_expect_gt(strlen(ib_wc_advice((enum ibv_wc_status)s)), 20, "%d", s);
	cr_expect_not_null(ib_wc_advice((enum ibv_wc_status)1000));
}

Test(ib_wc, retry_exceeded_is_a_timeout_and_mentions_the_network)
{
	cr_expect_eq(ib_wc_errno(IBV_WC_RETRY_EXC_ERR), -FI_ETIMEDOUT);
	cr_expect_not_null(strstr(ib_wc_advice(IBV_WC_RETRY_EXC_ERR), "network"));
	cr_expect_eq(ib_wc_errno(IBV_WC_REM_ACCESS_ERR), -FI_EREMOTEIO);
	cr_expect_eq(ib_wc_errno(IBV_WC_WR_FLUSH_ERR), -FI_ECONNABORTED);
}
