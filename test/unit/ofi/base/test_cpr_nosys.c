/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Entries of op tables for calls that are not offered (cpr_nosys.h). */
#include "ofi/base/cpr_nosys.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>

Test(cpr_nosys, every_entry_refuses_and_touches_nothing)
{
	cr_expect_eq(cpr_no_bind(NULL, NULL, 0), -FI_ENOSYS);
	cr_expect_eq(cpr_no_control(NULL, 0, NULL), -FI_ENOSYS);
	cr_expect_eq(cpr_no_ops_open(NULL, NULL, 0, NULL, NULL), -FI_ENOSYS);
	cr_expect_eq(cpr_no_tx_ctx(NULL, 0, NULL, NULL, NULL), -FI_ENOSYS);
	cr_expect_eq(cpr_no_rx_ctx(NULL, 0, NULL, NULL, NULL), -FI_ENOSYS);
	cr_expect_eq(cpr_no_size_left(NULL), -FI_ENOSYS);
	cr_expect_eq(cpr_no_getpeer(NULL, NULL, NULL), -FI_ENOSYS);
	cr_expect_eq(cpr_no_connect(NULL, NULL, NULL, 0), -FI_ENOSYS);
	cr_expect_eq(cpr_no_listen(NULL), -FI_ENOSYS);
	cr_expect_eq(cpr_no_accept(NULL, NULL, 0), -FI_ENOSYS);
	cr_expect_eq(cpr_no_reject(NULL, NULL, NULL, 0), -FI_ENOSYS);
	cr_expect_eq(cpr_no_shutdown(NULL, 0), -FI_ENOSYS);
}

Test(cpr_nosys, options_are_refused_as_unknown)
{
	cr_expect_eq(cpr_no_getopt(NULL, 0, 0, NULL, NULL), -FI_ENOPROTOOPT);
	cr_expect_eq(cpr_no_setopt(NULL, 0, 0, NULL, 0), -FI_ENOPROTOOPT);
}
