/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What does FI_COPYRPC_PATHS mean on a machine with this or that device? (ring_paths.c) */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "ring/ring_paths.h"
#include "wire/wire_cm.h"

static struct ring_paths paths;

static int get(const char *text)
{
	memset(&paths, 0xFF, sizeof(paths));
	return ring_paths_read(text, false, &paths);
}

Test(ring_paths, shared_memory_is_always_there)
{
	cr_assert_eq(get("shm"), 0);
	cr_expect_eq(paths.cnt, 1);
	cr_expect_eq(paths.lane[0], &ring_lane_shm);
	cr_expect_eq(paths.lane[0]->path, WIRE_CM_PATH_SHM);
}

Test(ring_paths, a_path_that_is_one_of_several_need_not_be_there)
{
	cr_assert_eq(get("shm,nic"), 0);
	cr_expect_geq(paths.cnt, 1);
	cr_expect_eq(paths.lane[0], &ring_lane_shm);
	cr_assert_eq(get("nic,shm"), 0);
	cr_expect_eq(paths.lane[paths.cnt - 1], &ring_lane_shm);
}

Test(ring_paths, naming_one_twice_changes_nothing)
{
	cr_assert_eq(get("shm,shm,shm,shm,shm,shm"), 0);
	cr_expect_eq(paths.cnt, 1);
}

Test(ring_paths, what_is_no_list_of_paths_is_refused)
{
	static const char *const no[] = { "",     ",",   "shm,",    ",shm", "shm,,nic", "sh",
					  "shmm", "SHM", "shm nic", " shm", "shm, nic", "udp" };

	for (unsigned i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		cr_expect_eq(get(no[i]), -FI_EINVAL, "\"%s\"", no[i]);
}

Test(ring_paths, a_path_alone_without_a_device_is_an_error)
{
	static const char *const alone[] = { "nic", "verbs", "mlx5", "verbs,mlx5" };

	for (unsigned i = 0; i < 4; i++) {
		int ret = get(alone[i]);

		/* There may be an RDMA device on this machine. */
		if (ret)
			cr_expect_eq(ret, -FI_ENODEV, "%s", alone[i]);
		else
			cr_expect_eq(paths.lane[0]->path, WIRE_CM_PATH_NIC, "%s", alone[i]);
	}
}
