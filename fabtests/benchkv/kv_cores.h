/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Processors that the threads of a node may use. By default mpirun binds each of one or two
 * processes to one processor, and all daemons and clients of the node then share it.
 * Tested by test/unit/benchkv/test_kv_cores.c.
 */
#ifndef KV_CORES_H
#define KV_CORES_H

#include <stdint.h>

/**
 * Binds the calling thread to the processor number `index` of those that it may use; after the
 * last one they are counted from the first one again.
 */
void kv_cores_bind(uint32_t index);

/** Returns how many processors the calling thread may use; 0 if that is unknown. */
uint32_t kv_cores_usable(void);

/**
 * Returns how many processors the calling thread may use if it is bound to fewer than the machine
 * has and `threads` threads could use more; otherwise 0.
 */
uint32_t kv_cores_lacking(uint32_t threads);

#endif
