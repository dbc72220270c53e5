/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Selection of the engine by FI_COPYRPC_PATHS and FI_COPYRPC_ENDPOINT. */
#include "ofi/base/cpr_engine.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <rdma/fi_errno.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/forbid.h"
#include "util/param.h"

static struct util_params before;

static void setup(void)
{
	before = util_params;
	util_params.endpoint = NULL;
	util_params.device = "nobody"; /* no such device, on any machine */
}

static void teardown(void)
{
	util_params = before;
}

TestSuite(cpr_engine, .init = setup, .fini = teardown);

static const char *name_of(enum cpr_kind kind, const char *paths)
{
	util_params.paths = paths;
	return cpr_engine_of(kind)->name;
}

Test(cpr_engine, shared_memory_in_first_place_has_its_own_engine)
{
	cr_expect_str_eq(name_of(CPR_RC, "shm"), "rc/shm");
	cr_expect_str_eq(name_of(CPR_RC, "shm,nic,udp"), "rc/shm");
	cr_expect_str_eq(name_of(CPR_RC, "nic,shm"), "rc/shm", "there is no such device");
	cr_expect_str_eq(name_of(CPR_RC, "udp,shm"), "rc");
	cr_expect_str_eq(name_of(CPR_RC, "udp"), "rc");
	cr_expect_str_eq(name_of(CPR_UD, "shm,udp"), "ud");
}

/**
 * The engine that calls the progress of shared memory needs shared memory as its first transport.
 */
Test(cpr_engine, an_engine_for_other_paths_does_not_open)
{
	const struct core_progress_ops *ops;
	const struct core_upcalls up = { 0 };
	struct core_progress *engine;

	util_params.paths = "shm,udp";
	ops = cpr_engine_of(CPR_RC);
	util_params.paths = "udp";
	cr_expect_eq(ops->open(&up, &engine), -FI_ENODEV);
	util_params.paths = "shm,udp";
	cr_assert_eq(ops->open(&up, &engine), 0);
	ops->close(engine);
}

/** Fails with the domain, not with its first peer, whether datagrams are its only path or not. */
Test(cpr_engine, an_invalid_fault_setting_does_not_open)
{
	static const char *const paths[] = { "udp", "shm,udp" };
	const struct core_upcalls up = { 0 };

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		const struct core_progress_ops *ops;
		struct core_progress *engine;

		util_params.paths = paths[i];
		ops = cpr_engine_of(CPR_RC);
		util_params.fault = "drop=2";
		cr_expect_eq(ops->open(&up, &engine), -FI_EINVAL, "%s", paths[i]);
		util_params.fault = "drop=0.2";
		cr_assert_eq(ops->open(&up, &engine), 0);
		ops->close(engine);
	}
}

Test(cpr_engine, where_the_system_refuses_shared_memory_other_paths_remain)
{
	const struct core_upcalls up = { 0 };
	struct core_progress *engine;

	forbid(SYS_memfd_create, EPERM);
	cr_expect_str_eq(name_of(CPR_RC, "shm,nic,udp"), "rc");
	cr_expect_eq(cpr_engine_check(CPR_RC), 0);
	cr_assert_eq(cpr_engine_of(CPR_RC)->open(&up, &engine), 0);
	cpr_engine_of(CPR_RC)->close(engine);
	util_params.paths = "shm";
	cr_expect_eq(cpr_engine_check(CPR_RC), -FI_ENODATA);
}

/* Which paths an engine has must not depend on the descriptors that were left. */
Test(cpr_engine, without_descriptors_no_path_is_left_out)
{
	const struct core_progress_ops *ops;
	const struct core_upcalls up = { 0 };
	struct core_progress *engine = NULL;
	int ret = 0, least = dup(0);
	struct rlimit lim;

	close(least);
	util_params.paths = "shm,udp";
	ops = cpr_engine_of(CPR_RC);
	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &lim), 0);
	for (int more = 0; more < 16; more++) {
		lim.rlim_cur = (rlim_t)(least + more);
		cr_assert_eq(setrlimit(RLIMIT_NOFILE, &lim), 0);
		ret = ops->open(&up, &engine);
		if (!ret)
			break;
		cr_expect_eq(ret, -FI_EMFILE, "%d descriptors: %d", more, ret);
	}
	cr_assert_eq(ret, 0);
	ops->close(engine);
}

Test(cpr_engine, a_kind_without_a_path_is_not_offered)
{
	util_params.paths = "shm";
	cr_expect_eq(cpr_engine_check(CPR_RC), 0);
	cr_expect_eq(cpr_engine_check(CPR_UD), -FI_ENODATA, "memory is left to rc");
	util_params.paths = "nic";
	cr_expect_eq(cpr_engine_check(CPR_RC), -FI_ENODATA);
	util_params.paths = "shm,udp";
	cr_expect_eq(cpr_engine_check(CPR_RC), 0);
	cr_expect_eq(cpr_engine_check(CPR_UD), 0);
	util_params.paths = "what";
	cr_expect_eq(cpr_engine_check(CPR_RC), -FI_ENODATA);
}

Test(cpr_engine, the_endpoint_parameter_selects_one_kind)
{
	util_params.paths = "shm,udp";
	util_params.endpoint = "";
	cr_expect_eq(cpr_engine_check(CPR_RC), 0);
	cr_expect_eq(cpr_engine_check(CPR_UD), 0);
	util_params.endpoint = "rc";
	cr_expect_eq(cpr_engine_check(CPR_RC), 0);
	cr_expect_eq(cpr_engine_check(CPR_UD), -FI_ENODATA);
	util_params.endpoint = "ud";
	cr_expect_eq(cpr_engine_check(CPR_RC), -FI_ENODATA);
	cr_expect_eq(cpr_engine_check(CPR_UD), 0);
	util_params.endpoint = "rd";
	cr_expect_eq(cpr_engine_check(CPR_RC), -FI_ENODATA);
	cr_expect_eq(cpr_engine_check(CPR_UD), -FI_ENODATA);
}

Test(cpr_engine, without_a_device_there_is_no_nic)
{
	struct fid_nic *nic = (struct fid_nic *)&nic;

	util_params.paths = "shm,nic,udp";
	cr_expect_eq(cpr_engine_nic(CPR_RC, &nic), 0);
	cr_expect_null(nic);
}
