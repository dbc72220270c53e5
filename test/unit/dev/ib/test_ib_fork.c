/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Registered memory in processes that fork: dev/ib/ib_fork.c. */
#include "dev/ib/ib_fork.h"

#include <criterion/criterion.h>

Test(ib_fork, kernels_from_5_12_on_copy_registered_pages)
{
	cr_expect(ib_fork_is_copied("5.12.0"));
	cr_expect(ib_fork_is_copied("5.12"));
	cr_expect(ib_fork_is_copied("5.100.3-generic"));
	cr_expect(ib_fork_is_copied("6.1.0-13-amd64"));
	cr_expect(ib_fork_is_copied("6.18.44"));
	cr_expect(ib_fork_is_copied("10.0"));
}

Test(ib_fork, older_or_unknown_kernels_do_not)
{
	cr_expect_not(ib_fork_is_copied("5.11.22"));
	cr_expect_not(ib_fork_is_copied("4.18.0-553.el8.x86_64"));
	cr_expect_not(ib_fork_is_copied("5"));
	cr_expect_not(ib_fork_is_copied(""));
	cr_expect_not(ib_fork_is_copied("linux"));
}
