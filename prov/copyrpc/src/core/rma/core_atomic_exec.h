/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How does the memory change in one step?
 *
 * Element by element: read, compute (core_atomic_math.h), compare and exchange, again if somebody was
 * quicker. Elements of up to 8 bytes change by the processor's own instructions, which makes them
 * atomic with respect to everybody: other endpoints, domains and threads, other processes that
 * share the memory, and the application's __atomic operations. So do 16 bytes that are aligned to
 * 16, on x86-64 processors with AVX (their 16-byte loads are atomic, and a read may
 * not write). Larger and other ones change under a lock of the process: atomic among the
 * operations that peers do through this process, but not against the application's own.
 *
 * A target is aligned as C aligns its type; operands and results are where they are.
 *
 * Shown by test/unit/core/rma/test_core_atomic_exec.c.
 */
#ifndef CORE_ATOMIC_EXEC_H
#define CORE_ATOMIC_EXEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/rma/core_atomic_math.h"

static inline bool core_atomic_is_aligned(unsigned type, const void *target)
{
	return ((uintptr_t)target & (core_atomic_align(type) - 1)) == 0;
}

/**
 * Does an operation (there is a function for it) to `count` elements at `target`. operand and
 * compare: as many elements, NULL where the operation has none. result: room for the old values,
 * or NULL. Nothing of these overlaps.
 */
void core_atomic_exec(unsigned type, unsigned op, void *target, const void *operand,
		      const void *compare, void *result, size_t count);

#endif
