/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dev/ib/ib_port.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

Test(ib_port, empty_settings_select_any)
{
	struct ib_selection selection;

	cr_assert_eq(ib_selection_parse(NULL, NULL, &selection), 0);
	cr_expect_str_empty(selection.device);
	cr_expect_eq(selection.port, 0);
	cr_expect_eq(selection.gid_index, -1);
	cr_assert_eq(ib_selection_parse("", "", &selection), 0);
	cr_expect_str_empty(selection.device);
	cr_expect_eq(selection.gid_index, -1);
}

Test(ib_port, a_name_a_port_and_an_index_are_read)
{
	struct ib_selection selection;

	cr_assert_eq(ib_selection_parse("mlx5_0", "0", &selection), 0);
	cr_expect_str_eq(selection.device, "mlx5_0");
	cr_expect_eq(selection.port, 0);
	cr_expect_eq(selection.gid_index, 0);
	cr_assert_eq(ib_selection_parse("rxe1:255", "255", &selection), 0);
	cr_expect_str_eq(selection.device, "rxe1");
	cr_expect_eq(selection.port, 255);
	cr_expect_eq(selection.gid_index, 255);
}

Test(ib_port, anything_else_is_refused)
{
	static const char *const devices[] = { ":1",     "mlx5_0:", "mlx5_0:0",
					       "mlx5:x", "mlx5:1 ", "mlx5:256",
					       "m:-1",   "m:1:2",   "m:99999999999999999999999" };
	static const char *const indices[] = {
		"-1", "256", "x", "1x", " 1", "99999999999999999999"
	};
	char lengthy[IBV_SYSFS_NAME_MAX + 1];
	struct ib_selection selection;

	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++)
		cr_expect_eq(ib_selection_parse(devices[i], NULL, &selection), -FI_EINVAL, "%s",
			     devices[i]);
	for (size_t i = 0; i < sizeof(indices) / sizeof(indices[0]); i++)
		cr_expect_eq(ib_selection_parse(NULL, indices[i], &selection), -FI_EINVAL, "%s",
			     indices[i]);
	memset(lengthy, 'm', sizeof(lengthy) - 1);
	lengthy[sizeof(lengthy) - 1] = 0;
	cr_expect_eq(ib_selection_parse(lengthy, NULL, &selection), -FI_EINVAL);
	lengthy[sizeof(lengthy) - 2] = 0;
	cr_expect_eq(ib_selection_parse(lengthy, NULL, &selection), 0, "the longest name");
}

Test(ib_port, speed_is_width_times_rate_and_0_for_unknown_codes)
{
	cr_expect_eq(ib_port_speed(2, 32), 100000000000ull, "4X EDR");
	cr_expect_eq(ib_port_speed(2, 128), 400000000000ull, "4X NDR");
	cr_expect_eq(ib_port_speed(1, 1), 2500000000ull, "1X SDR");
	cr_expect_eq(ib_port_speed(3, 32), 0);
	cr_expect_eq(ib_port_speed(2, 0), 0);
}

Test(ib_port, an_unknown_device_is_reported)
{
	struct ib_selection selection;
	struct ib_port port;
	const char *why = NULL;

	cr_assert_eq(ib_selection_parse("no_such_device", NULL, &selection), 0);
	cr_assert_eq(ib_port_open(&selection, NULL, &port, &why), -FI_ENODEV);
	cr_expect_null(port.ctx);
	cr_expect_not_null(strstr(why, "no such device"));
}
