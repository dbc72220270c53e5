/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Transport keys of Open MPI's launcher: random ones are secrets, those of other forms are not. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "openmpi/pml_copyrpc_key.h"
#include "support/rng.h"

/* Out of line: the compiler warns of bytes behind constant strings that are never read. */
static __attribute__((noinline)) bool is_secret(const char *key)
{
	return pml_key_is_secret(key);
}

Test(pml_copyrpc_key, random_keys_are_secrets)
{
	struct rng rng = { 7 };
	unsigned cnt = 0;
	char key[40];

	for (unsigned i = 0; i < 10000; i++) {
		snprintf(key, sizeof(key), "%016llx-%016llx", (unsigned long long)rng_next(&rng),
			 (unsigned long long)rng_next(&rng));
		cnt += is_secret(key);
	}
	cr_expect_geq(cnt, 9999);
	cr_expect(is_secret("EC229150C3CDE3A2-7db9db01ca7e6e36"));
}

Test(pml_copyrpc_key, numbers_of_jobs_are_none)
{
	cr_expect_not(is_secret("012cc14200000000-012cc14200000000"));
	cr_expect_not(is_secret("000000000001e240-0000000000000001"));
	cr_expect_not(is_secret("00000000c3cde3a2-00000000ca7e6e36"));
	cr_expect_not(is_secret("ec229150c3cde3a2-ec229150c3cde3a2"));
}

Test(pml_copyrpc_key, other_forms_are_none)
{
	cr_expect_not(is_secret(NULL));
	cr_expect_not(is_secret(""));
	cr_expect_not(is_secret("ec229150c3cde3a2-7db9db01ca7e6e3"));
	cr_expect_not(is_secret("ec229150c3cde3a2-7db9db01ca7e6e361"));
	cr_expect_not(is_secret("ec229150c3cde3a2 7db9db01ca7e6e36"));
	cr_expect_not(is_secret("ec229150c3cde3ag-7db9db01ca7e6e36"));
	cr_expect_not(is_secret("ec229150c3cde3a2--db9db01ca7e6e36"));
	cr_expect_not(is_secret(" c229150c3cde3a2-0x7db9db01ca7e6e"));
}
