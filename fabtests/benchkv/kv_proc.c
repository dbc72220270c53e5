/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Counters of the kernel and of the device model: see kv_proc.h. */
#include "kv_proc.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* Adds up the numbers behind each of the `cnt` names in a file of a process. */
static uint64_t kv_proc_sum(pid_t pid, const char *file, const char *const *names, unsigned cnt)
{
	char path[64], line[256];
	unsigned long long value;
	uint64_t sum = 0;
	FILE *in;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	in = fopen(path, "r");
	if (!in)
		return 0;
	while (fgets(line, sizeof(line), in))
		for (unsigned i = 0; i < cnt; i++)
			if (!strncmp(line, names[i], strlen(names[i])) &&
			    sscanf(line + strlen(names[i]), "%llu", &value) == 1)
				sum += value;
	fclose(in);
	return sum;
}

uint64_t kv_proc_memory(pid_t pid)
{
	static const char *const names[] = { "Pss:" };

	return kv_proc_sum(pid, "smaps_rollup", names, 1);
}

uint64_t kv_proc_switches(pid_t pid)
{
	static const char *const names[] = { "voluntary_ctxt_switches:",
					     "nonvoluntary_ctxt_switches:" };

	return kv_proc_sum(pid, "status", names, 2);
}

uint64_t kv_proc_cpu(pid_t pid)
{
	static const char *const names[] = { "" };

	return kv_proc_sum(pid, "schedstat", names, 1) / 1000;
}

typedef long long (*kv_counter)(const char *name);

/* Returns the model's function, NULL unless the program runs under copyrpc_hca(1). */
static kv_counter kv_adapter_counter(void)
{
	void *symbol = dlsym(RTLD_DEFAULT, "copyrpc_hca_counter");
	kv_counter counter;

	memcpy(&counter, &symbol, sizeof(counter));
	return counter;
}

bool kv_adapter_read(struct kv_adapter *adapter)
{
	kv_counter counter = kv_adapter_counter();

	*adapter = (struct kv_adapter){ .doorbells = 0 };
	if (!counter || counter("doorbells") < 0)
		return false;
	*adapter = (struct kv_adapter){
		.doorbells = (uint64_t)counter("doorbells"),
		.cqes = (uint64_t)(counter("cqes_req") + counter("cqes_resp")),
		.packets = (uint64_t)counter("packets_out"),
		.qps = (uint64_t)counter("qps"),
	};
	return true;
}
