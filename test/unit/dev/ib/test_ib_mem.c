/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Without a device: what needs one is shown by test/rxe. */
#include "dev/ib/ib_mem.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

Test(ib_mem, memory_is_zeroed_aligned_and_at_least_what_was_asked_for)
{
	static const size_t lens[] = { 1,       4096,         4097, 65536, (2 << 20) - 4096,
				       2 << 20, (2 << 20) + 1 };

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		struct ib_mem mem;
		uint8_t *bytes;

		cr_assert_eq(ib_mem_map(&mem, lens[i]), 0);
		bytes = mem.addr;
		cr_expect_eq((uintptr_t)bytes % 4096, 0);
		cr_expect_eq(mem.len, lens[i]);
		cr_expect_geq(mem.map_len, lens[i]);
		cr_expect_leq(mem.map_len - lens[i], lens[i] / 8 + 4096, "little is wasted");
		cr_expect_null(mem.mr);
		cr_expect_eq(bytes[0] | bytes[lens[i] - 1], 0);
		bytes[lens[i] - 1] = 1;
		ib_mem_fini(&mem);
	}
}

Test(ib_mem, fini_is_harmless_on_nothing_and_twice)
{
	struct ib_mem mem = { 0 };

	ib_mem_fini(&mem);
	cr_assert_eq(ib_mem_map(&mem, 4096), 0);
	ib_mem_fini(&mem);
	cr_expect_null(mem.addr);
	ib_mem_fini(&mem);
}

Test(ib_mem, a_child_does_not_get_it)
{
	struct ib_mem mem;
	int status;
	pid_t pid;

	cr_assert_eq(ib_mem_map(&mem, 4096), 0);
	pid = fork();
	if (!pid) {
		unsigned char in_core;

		_exit(mincore(mem.addr, 4096, &in_core) ? 0 : 1);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect(WIFEXITED(status) && !WEXITSTATUS(status), "it is mapped in the child");
	ib_mem_fini(&mem);
}

Test(ib_mem, no_memory_is_an_error_and_leaves_nothing)
{
	struct ib_mem mem;

	cr_expect_eq(ib_mem_map(&mem, 1ull << 60), -FI_ENOMEM);
	cr_expect_null(mem.addr);
	ib_mem_fini(&mem);
}
