/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Figures of a process that the kernel and the device model have: memory, context switches, work of
 * the adapter. Read by the main thread between runs. Tested by test/unit/benchkv/test_kv_proc.c.
 */
#ifndef KV_PROC_H
#define KV_PROC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/** Work of all adapters of the fabric since its programs started. */
struct kv_adapter {
	uint64_t doorbells;
	uint64_t cqes;
	uint64_t packets;
	uint64_t qps; /* queue pairs that exist now */
};

/** Returns the memory of a process in KiB, with its share of shared pages; 0 if unknown. */
uint64_t kv_proc_memory(pid_t pid);

/** Returns the context switches of the first thread of a process; 0 if unknown. */
uint64_t kv_proc_switches(pid_t pid);

/** Returns the processor time of the first thread of a process in us; 0 if unknown. */
uint64_t kv_proc_cpu(pid_t pid);

/** Stores the present counters. Returns false, and zeros, unless the device model counts. */
bool kv_adapter_read(struct kv_adapter *adapter);

#endif
