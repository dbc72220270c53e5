/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Probe without a device; test/suite.d covers the rest with one. */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "dgram/dgram_over.h"

Test(dgram_over_verbs, probe_succeeds_exactly_where_open_does)
{
	struct core_engine *engine = NULL;
	struct dev_about about = { 0 };
	uint32_t mtu = 0;
	int ret = dgram_over_verbs.probe(NULL, &about, &mtu);

	cr_expect(ret == 0 || ret == -FI_ENODEV);
	cr_expect_eq(dgram_over_verbs.engine_ops->open(NULL, &engine), ret);
	cr_expect_eq(ret == 0, mtu >= 256);
	if (engine)
		dgram_over_verbs.engine_ops->close(engine);
}

Test(dgram_over_verbs, the_name_is_that_of_the_path)
{
	cr_expect_str_eq(dgram_over_verbs.name, "verbs");
	cr_expect_not(dgram_over_verbs.is_ip);
}
