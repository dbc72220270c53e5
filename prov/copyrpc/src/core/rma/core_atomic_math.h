/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is the new value?
 *
 * The arithmetic of fi_atomic(3): a function for each pair of an operation and a datatype that
 * means something, found in a table. A function works on one element in memory of its caller's,
 * at any alignment; that the target changes in one step is core_atomic_exec.h.
 *
 *   integers  all operations; sums and products wrap, signed ones too
 *   reals     no bitwise operations, no MSWAP; comparisons with a NaN are false, LOR and the like
 *             give 1 and 0
 *   complex   neither those nor any that needs an order
 *
 * Comparisons are those of C on the values: 0.0 equals -0.0, whatever their bits.
 *
 * Shown by test/unit/core/rma/test_core_atomic_math.c.
 */
#ifndef CORE_ATOMIC_MATH_H
#define CORE_ATOMIC_MATH_H

#include <rdma/fi_domain.h>
#include <stdbool.h>
#include <stddef.h>

#define CORE_ATOMIC_TYPES (FI_UINT128 + 1u) /* datatypes that we know */
/** addr - buf: a name of libfabric 2; in the headers of 1.x the number means "no operation". */
#define CORE_ATOMIC_DIFF 19u
#define CORE_ATOMIC_OPS  (CORE_ATOMIC_DIFF + 1u)

/** Which operands there are, and what comes back: the three families of calls. */
enum core_atomic_kind {
	CORE_ATOMIC_BASE,    /* one operand, nothing comes back */
	CORE_ATOMIC_FETCH,   /* one operand (none: FI_ATOMIC_READ), the old value comes back */
	CORE_ATOMIC_COMPARE, /* an operand and what to compare with, the old value comes back */
	CORE_ATOMIC_KINDS,
};

/**
 * Makes the old value in *value the new one: true; false: it stays what it was, and nothing is to
 * be stored. `operand` is NULL for FI_ATOMIC_READ, `compare` for all but the comparing operations.
 */
typedef bool core_atomic_fn(void *value, const void *operand, const void *compare);

/** The function, or NULL: the pair means nothing. Any numbers may be asked for. */
core_atomic_fn *core_atomic_math(unsigned type, unsigned op);

/** May this operation be called this way? Any numbers may be asked for. */
bool core_atomic_is_valid(enum core_atomic_kind kind, unsigned type, unsigned op);

/** Bytes of an element; 0: no such type. */
size_t core_atomic_size(unsigned type);

/** What the address of a target must be a multiple of; 0: no such type. */
size_t core_atomic_align(unsigned type);

static inline bool core_atomic_has_operand(unsigned op)
{
	return op != FI_ATOMIC_READ;
}

#endif
