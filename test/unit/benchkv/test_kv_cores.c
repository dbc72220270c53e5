/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Processors of a node: threads go to one after the other, and a bound node is noticed. */
#include <criterion/criterion.h>
#include <sched.h>
#include <unistd.h>

#include "benchkv/kv_cores.h"

static cpu_set_t usable;

static void look(void)
{
	cr_assert_eq(sched_getaffinity(0, sizeof(usable), &usable), 0);
}

/* Returns the processor that has number `index` among the usable ones. */
static int processor(int index)
{
	int cpu = 0;

	while (!CPU_ISSET(cpu, &usable) || index--)
		cpu++;
	return cpu;
}

/* Binds to the processor number `index` of all, and expects it to be `cpu`. */
static void bind_and_compare(uint32_t index, int cpu)
{
	cpu_set_t now;

	cr_assert_eq(sched_setaffinity(0, sizeof(usable), &usable), 0);
	kv_cores_bind(index);
	cr_assert_eq(sched_getaffinity(0, sizeof(now), &now), 0);
	cr_assert_eq(CPU_COUNT(&now), 1);
	cr_assert(CPU_ISSET(cpu, &now), "thread %u is not on processor %d", index, cpu);
}

Test(kv_cores, threads_go_to_one_processor_after_the_other, .init = look)
{
	int cnt = CPU_COUNT(&usable);

	for (int i = 0; i < 2 * cnt + 1; i++)
		bind_and_compare((uint32_t)i, processor(i % cnt));
}

Test(kv_cores, a_node_bound_to_one_processor_lacks_others, .init = look)
{
	bool alone = sysconf(_SC_NPROCESSORS_ONLN) == 1;

	cr_assert_eq(kv_cores_usable(), (uint32_t)CPU_COUNT(&usable));
	kv_cores_bind(0);
	cr_assert_eq(kv_cores_usable(), 1);
	cr_assert_eq(kv_cores_lacking(1), 0, "one thread has one processor");
	cr_assert_eq(kv_cores_lacking(6), alone ? 0 : 1);
}

Test(kv_cores, a_node_that_has_all_processors_lacks_none, .init = look)
{
	if (CPU_COUNT(&usable) < sysconf(_SC_NPROCESSORS_ONLN))
		cr_skip_test("the test is bound to fewer processors than there are");
	cr_assert_eq(kv_cores_lacking(10000), 0);
}
