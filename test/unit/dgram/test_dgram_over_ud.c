/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Probe without a device; test/suite.d covers the rest with one. */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "dgram/dgram_over.h"

static void expect_probe_like_open(const struct dgram_over *over)
{
	struct core_progress *engine = NULL;
	struct dev_about about = { 0 };
	uint32_t mtu = 0;
	int ret = over->probe(over, NULL, &about, &mtu);

	cr_expect(ret == 0 || ret == -FI_ENODEV);
	cr_expect_eq(over->progress_ops->open(NULL, &engine), ret);
	cr_expect_eq(ret == 0, mtu >= 256);
	if (engine)
		over->progress_ops->close(engine);
}

Test(dgram_over_ud, probe_succeeds_exactly_where_open_does)
{
	expect_probe_like_open(&dgram_over_mlx5);
	expect_probe_like_open(&dgram_over_verbs);
}

Test(dgram_over_ud, the_name_is_that_of_the_path)
{
	cr_expect_str_eq(dgram_over_mlx5.name, "mlx5");
	cr_expect_str_eq(dgram_over_verbs.name, "verbs");
	cr_expect_not(dgram_over_mlx5.is_ip || dgram_over_verbs.is_ip);
}
