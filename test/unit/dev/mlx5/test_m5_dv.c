/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dev/mlx5/m5_dv.h"

#include <criterion/criterion.h>
#include <dlfcn.h>

TestSuite(m5_dv, .timeout = 200);

Test(m5_dv, functions_are_found_if_the_library_is_installed)
{
	void *lib = dlopen("libmlx5.so.1", RTLD_NOW | RTLD_LOCAL);
	const struct m5_dv *dv = m5_dv_get();

	cr_expect_eq(!!dv, !!lib);
	cr_expect_eq(m5_dv_get(), dv, "equal each time");
	if (dv) {
		cr_expect_not_null(dv->init_obj);
		cr_expect_not_null(dv->is_supported);
	}
}

Test(m5_dv, device_of_another_vendor_does_not_fit)
{
	struct ibv_device other = { .name = "none0" };

	cr_expect(!m5_dv_fits(&other));
}
