/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tests without a device. test/rxe runs those that need one. */
#include "dev/ib/ib_mem.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

Test(ib_mem, memory_is_zeroed_aligned_and_at_least_as_long_as_requested)
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
		cr_expect_leq(mem.map_len - lens[i], lens[i] / 8 + 4096,
			      "at most an eighth is wasted");
		cr_expect_null(mem.mr);
		cr_expect_eq(bytes[0] | bytes[lens[i] - 1], 0);
		bytes[lens[i] - 1] = 1;
		ib_mem_fini(&mem);
	}
}

Test(ib_mem, fini_is_harmless_on_an_empty_struct_and_twice)
{
	struct ib_mem mem = { 0 };

	ib_mem_fini(&mem);
	cr_assert_eq(ib_mem_map(&mem, 4096), 0);
	ib_mem_fini(&mem);
	cr_expect_null(mem.addr);
	ib_mem_fini(&mem);
}

Test(ib_mem, a_child_process_does_not_inherit_it)
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
	cr_expect(WIFEXITED(status) && !WEXITSTATUS(status), "mapped in the child");
	ib_mem_fini(&mem);
}

Test(ib_mem, no_memory_is_an_error_and_leaves_nothing)
{
	struct ib_mem mem;

	cr_expect_eq(ib_mem_map(&mem, 1ull << 60), -FI_ENOMEM);
	cr_expect_null(mem.addr);
	ib_mem_fini(&mem);
}

static long meminfo(const char *name)
{
	FILE *file = fopen("/proc/meminfo", "r");
	char line[128];
	long value = -1;

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, name, strlen(name)))
			value = strtol(line + strlen(name), NULL, 10);
	if (file)
		fclose(file);
	return value;
}

/* test/rxe reserves huge pages and runs this. */
Test(ib_mem, rings_use_huge_pages_while_some_are_free)
{
	long before = meminfo("HugePages_Free:");
	struct ib_mem big, small, none[16];
	unsigned i;

	if (before < 4 || before > 14 || meminfo("Hugepagesize:") != 2048)
		cr_skip_test("needs 4 to 14 free huge pages of 2 MiB");
	cr_assert_eq(ib_mem_map(&big, 4 << 20), 0);
	memset(big.addr, 1, big.len);
	cr_expect_eq(meminfo("HugePages_Free:"), before - 2);
	cr_assert_eq(ib_mem_map(&small, 64 << 10), 0);
	memset(small.addr, 1, small.len);
	cr_expect_eq(meminfo("HugePages_Free:"), before - 2, "small memory uses none");
	for (i = 0; i < 16; i++) {
		cr_assert_eq(ib_mem_map(&none[i], 2 << 20), 0,
			     "small pages are used when none is free");
		memset(none[i].addr, 1, none[i].len);
	}
	cr_expect_eq(meminfo("HugePages_Free:"), 0);
	for (i = 0; i < 16; i++)
		ib_mem_fini(&none[i]);
	ib_mem_fini(&small);
	ib_mem_fini(&big);
	cr_expect_eq(meminfo("HugePages_Free:"), before);
}
