/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Execution of an atomic operation on local memory. Called by core_atomic_target.c.
 *
 * Per element: read, compute (core_atomic_math.h), compare and exchange; repeat if the element has
 * changed meanwhile. Elements of up to 8 bytes use processor instructions and are atomic with
 * respect to other endpoints, domains, threads, processes that share the memory, and __atomic
 * operations of the application. So are 16 bytes aligned to 16 on x86-64 with AVX, where 16-byte
 * loads are atomic (a read must not write). All others change under a lock of the process: atomic
 * among operations of peers through this process, not against the application's own.
 *
 * A target has the alignment of its C type; operands and results may be unaligned.
 */
#ifndef CORE_RMA_CORE_ATOMIC_EXEC_H
#define CORE_RMA_CORE_ATOMIC_EXEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/core_atomic_math.h"

static inline bool core_atomic_is_aligned(unsigned type, const void *target)
{
	return ((uintptr_t)target & (core_atomic_align(type) - 1)) == 0;
}

/**
 * Executes a valid operation on `count` elements at `target`. operand, compare: `count` elements,
 * or NULL if the operation has none. result: receives the old values, or NULL. None of them
 * overlap.
 */
void core_atomic_exec(unsigned type, unsigned op, void *target, const void *operand,
		      const void *compare, void *result, size_t count);

#endif
