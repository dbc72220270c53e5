/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Arithmetic of fi_atomic(3): a function for each operation. Called by core_atomic_exec.c, by
 * core/coll to reduce, and by ofi/ to validate operations. A function computes one element in the
 * caller's memory, at any alignment; core_atomic_exec.h makes it atomic.
 *
 *   integers  all operations; sums and products wrap, signed ones too
 *   reals     no bitwise operations, no MSWAP; comparisons with a NaN are false; logical
 *             operations return 1 or 0
 *   complex   as reals, without operations that need an order
 *
 * Values are compared as in C: 0.0 equals -0.0.
 */
#ifndef CORE_CORE_ATOMIC_MATH_H
#define CORE_CORE_ATOMIC_MATH_H

#include <rdma/fi_domain.h>
#include <stdbool.h>
#include <stddef.h>

#define CORE_ATOMIC_TYPES (FI_UINT128 + 1u) /* supported datatypes */
/** FI_DIFF of libfabric 2 (addr - buf); in libfabric 1.x the number is not an operation. */
#define CORE_ATOMIC_DIFF 19u
#define CORE_ATOMIC_OPS  (CORE_ATOMIC_DIFF + 1u)

/** Families of calls: operands and result. */
enum core_atomic_kind {
	CORE_ATOMIC_BASE,    /* one operand, no result */
	CORE_ATOMIC_FETCH,   /* one operand (FI_ATOMIC_READ: none), returns the old value */
	CORE_ATOMIC_COMPARE, /* operand and compare value, returns the old value */
	CORE_ATOMIC_KINDS,
};

/**
 * Replaces the old value in *value by the new one and returns true, or returns false if the target
 * does not change. `operand` is NULL for FI_ATOMIC_READ, `compare` unless the operation compares.
 * `type` is a datatype on which the operation is defined.
 */
typedef bool core_atomic_fn(unsigned type, void *value, const void *operand, const void *compare);

/** Returns the operation's function, or NULL if it is not defined on the type, for any numbers. */
core_atomic_fn *core_atomic_math(unsigned type, unsigned op);

/** Returns true if the family has this operation on this type. Any numbers are allowed. */
bool core_atomic_is_valid(enum core_atomic_kind kind, unsigned type, unsigned op);

/** Returns the bytes of an element, or 0 for an unknown type. */
size_t core_atomic_size(unsigned type);

/** Returns the alignment of a target, or 0 for an unknown type. */
size_t core_atomic_align(unsigned type);

static inline bool core_atomic_has_operand(unsigned op)
{
	return op != FI_ATOMIC_READ;
}

#endif
