/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Counters of the kernel and of the device model: they grow with what is counted. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "benchkv/kv_proc.h"

/* The model's function as the program finds it: only this test's executable has it. */
long long copyrpc_hca_counter(const char *name);

static long long base = -1;

__attribute__((visibility("default"))) long long copyrpc_hca_counter(const char *name)
{
	static const char *const names[] = { "doorbells", "cqes_req", "cqes_resp", "packets_out",
					     "qps" };

	for (unsigned i = 0; base >= 0 && i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return base + (1ll << (4 * i));
	return -1;
}

Test(kv_proc, memory_grows_with_touched_pages)
{
	size_t len = 32u << 20;
	uint64_t before = kv_proc_memory(getpid()), after;
	char *pages = malloc(len);

	cr_assert_neq(pages, NULL);
	memset(pages, 1, len);
	after = kv_proc_memory(getpid());
	cr_assert_gt(before, 0);
	cr_assert_geq(after - before, (len >> 10) / 2);
	free(pages);
}

Test(kv_proc, sleeps_are_context_switches)
{
	uint64_t before = kv_proc_switches(getpid());

	for (int i = 0; i < 10; i++)
		usleep(1000);
	cr_assert_geq(kv_proc_switches(getpid()) - before, 10);
}

Test(kv_proc, work_is_processor_time)
{
	uint64_t before = kv_proc_cpu(getpid());

	while (kv_proc_cpu(getpid()) - before < 10000)
		for (volatile unsigned i = 0; i < 1000000;)
			i++;
	cr_assert_gt(before, 0);
}

Test(kv_proc, a_process_that_is_gone_counts_nothing)
{
	cr_assert_eq(kv_proc_memory(0), 0);
	cr_assert_eq(kv_proc_switches(0), 0);
	cr_assert_eq(kv_proc_cpu(0), 0);
}

Test(kv_proc, counters_of_the_adapter_go_to_their_fields)
{
	struct kv_adapter adapter;

	cr_assert_not(kv_adapter_read(&adapter));
	cr_assert_eq(adapter.doorbells, 0);
	base = 1000;
	cr_assert(kv_adapter_read(&adapter));
	cr_assert_eq(adapter.doorbells, 1001);
	cr_assert_eq(adapter.cqes, 1016 + 1256);
	cr_assert_eq(adapter.packets, 1000 + 4096);
	cr_assert_eq(adapter.qps, 1000 + 65536);
}
