/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Arithmetic of atomic operations, written once per class of types: see core_atomic_math.h.
 *
 * In the expressions below t is the target's value, b the operand, c the value to compare with.
 * Integers are computed in an unsigned type at least as wide as int, where overflow is defined.
 */
#include "core/rma/core_atomic_math.h"

#include <complex.h>
#include <stdint.h>
#include <string.h>

__extension__ typedef __int128 core_int128;
__extension__ typedef unsigned __int128 core_uint128;

/* Bytes of a long double that carry its value. On x86 the padding is left unchanged. */
#define CORE_ATOMIC_LDBL_LEN (__LDBL_MANT_DIG__ == 64 ? 10 : sizeof(long double))

#define CORE_ATOMIC_IS_LDBL(t)                                                                     \
	(__builtin_types_compatible_p(__typeof__(t), long double) ||                               \
	 __builtin_types_compatible_p(__typeof__(t), long double complex))

static inline void core_atomic_put(void *value, const void *t, size_t size, bool is_ldbl)
{
	size_t part = is_ldbl ? sizeof(long double) : size;

	for (size_t i = 0; i < size; i += part)
		memcpy((uint8_t *)value + i, (const uint8_t *)t + i,
		       is_ldbl ? CORE_ATOMIC_LDBL_LEN : part);
}

/* Defines an operation with one operand: if `when`, the new value is `expr`. */
#define CORE_ATOMIC_UPDATE(op, name, type, when, expr)                                             \
	static bool core_atomic_##op##_##name(void *value, const void *operand,                    \
					      const void *compare)                                 \
	{                                                                                          \
		type t, b;                                                                         \
                                                                                                   \
		(void)compare;                                                                     \
		memcpy(&t, value, sizeof(t));                                                      \
		memcpy(&b, operand, sizeof(b));                                                    \
		if (!(when))                                                                       \
			return false;                                                              \
		t = (type)(expr);                                                                  \
		core_atomic_put(value, &t, sizeof(t), CORE_ATOMIC_IS_LDBL(t));                     \
		return true;                                                                       \
	}

/* Defines a comparing operation: if `when`, the new value is `expr`. */
#define CORE_ATOMIC_SWAP(op, name, type, when, expr)                                               \
	static bool core_atomic_##op##_##name(void *value, const void *operand,                    \
					      const void *compare)                                 \
	{                                                                                          \
		type t, b, c;                                                                      \
                                                                                                   \
		memcpy(&t, value, sizeof(t));                                                      \
		memcpy(&b, operand, sizeof(b));                                                    \
		memcpy(&c, compare, sizeof(c));                                                    \
		if (!(when))                                                                       \
			return false;                                                              \
		t = (type)(expr);                                                                  \
		core_atomic_put(value, &t, sizeof(t), CORE_ATOMIC_IS_LDBL(t));                     \
		return true;                                                                       \
	}

/* Defines the operations of all types, with the type's expressions for sum, product, difference. */
#define CORE_ATOMIC_ANY(name, type, plus, times, minus)                                            \
	CORE_ATOMIC_UPDATE(SUM, name, type, true, plus)                                            \
	CORE_ATOMIC_UPDATE(PROD, name, type, true, times)                                          \
	CORE_ATOMIC_UPDATE(DIFF, name, type, true, minus)                                          \
	CORE_ATOMIC_UPDATE(LOR, name, type, true, t || b)                                          \
	CORE_ATOMIC_UPDATE(LAND, name, type, true, t &&b)                                          \
	CORE_ATOMIC_UPDATE(LXOR, name, type, true, (t && !b) || (!t && b))                         \
	CORE_ATOMIC_UPDATE(WRITE, name, type, true, b)                                             \
	CORE_ATOMIC_SWAP(CSWAP, name, type, c == t, b)                                             \
	CORE_ATOMIC_SWAP(CSWAP_NE, name, type, c != t, b)

/* Defines the operations of ordered types. */
#define CORE_ATOMIC_ORDERED(name, type)                                                            \
	CORE_ATOMIC_UPDATE(MIN, name, type, b < t, b)                                              \
	CORE_ATOMIC_UPDATE(MAX, name, type, b > t, b)                                              \
	CORE_ATOMIC_SWAP(CSWAP_LE, name, type, c <= t, b)                                          \
	CORE_ATOMIC_SWAP(CSWAP_LT, name, type, c < t, b)                                           \
	CORE_ATOMIC_SWAP(CSWAP_GE, name, type, c >= t, b)                                          \
	CORE_ATOMIC_SWAP(CSWAP_GT, name, type, c > t, b)

/* Defines the operations of integers. */
#define CORE_ATOMIC_BITS(name, type)                                                               \
	CORE_ATOMIC_UPDATE(BOR, name, type, true, t | b)                                           \
	CORE_ATOMIC_UPDATE(BAND, name, type, true, t &b)                                           \
	CORE_ATOMIC_UPDATE(BXOR, name, type, true, t ^ b)                                          \
	CORE_ATOMIC_SWAP(MSWAP, name, type, true, (b & c) | (t & ~c))

#define CORE_ATOMIC_INTEGER(name, type, wide)                                                      \
	CORE_ATOMIC_ANY(name, type, (wide)t + (wide)b, (wide)t * (wide)b, (wide)t - (wide)b)       \
	CORE_ATOMIC_ORDERED(name, type)                                                            \
	CORE_ATOMIC_BITS(name, type)

#define CORE_ATOMIC_REAL(name, type)                                                               \
	CORE_ATOMIC_ANY(name, type, t + b, t * b, t - b)                                           \
	CORE_ATOMIC_ORDERED(name, type)

#define CORE_ATOMIC_COMPLEX(name, type) CORE_ATOMIC_ANY(name, type, t + b, t * b, t - b)

CORE_ATOMIC_INTEGER(INT8, int8_t, uint32_t)
CORE_ATOMIC_INTEGER(UINT8, uint8_t, uint32_t)
CORE_ATOMIC_INTEGER(INT16, int16_t, uint32_t)
CORE_ATOMIC_INTEGER(UINT16, uint16_t, uint32_t)
CORE_ATOMIC_INTEGER(INT32, int32_t, uint32_t)
CORE_ATOMIC_INTEGER(UINT32, uint32_t, uint32_t)
CORE_ATOMIC_INTEGER(INT64, int64_t, uint64_t)
CORE_ATOMIC_INTEGER(UINT64, uint64_t, uint64_t)
CORE_ATOMIC_INTEGER(INT128, core_int128, core_uint128)
CORE_ATOMIC_INTEGER(UINT128, core_uint128, core_uint128)
CORE_ATOMIC_REAL(FLOAT, float)
CORE_ATOMIC_REAL(DOUBLE, double)
CORE_ATOMIC_REAL(LONG_DOUBLE, long double)
CORE_ATOMIC_COMPLEX(FLOAT_COMPLEX, float complex)
CORE_ATOMIC_COMPLEX(DOUBLE_COMPLEX, double complex)
CORE_ATOMIC_COMPLEX(LONG_DOUBLE_COMPLEX, long double complex)

/* Implements FI_ATOMIC_READ for all types. */
static bool core_atomic_read(void *value, const void *operand, const void *compare)
{
	(void)value;
	(void)operand;
	(void)compare;
	return false;
}

#define CORE_ATOMIC_INTEGERS(op)                                                                   \
	[FI_INT8] = core_atomic_##op##_INT8, [FI_UINT8] = core_atomic_##op##_UINT8,                \
	[FI_INT16] = core_atomic_##op##_INT16, [FI_UINT16] = core_atomic_##op##_UINT16,            \
	[FI_INT32] = core_atomic_##op##_INT32, [FI_UINT32] = core_atomic_##op##_UINT32,            \
	[FI_INT64] = core_atomic_##op##_INT64, [FI_UINT64] = core_atomic_##op##_UINT64,            \
	[FI_INT128] = core_atomic_##op##_INT128, [FI_UINT128] = core_atomic_##op##_UINT128
#define CORE_ATOMIC_REALS(op)                                                                      \
	CORE_ATOMIC_INTEGERS(op), [FI_FLOAT] = core_atomic_##op##_FLOAT,                           \
				  [FI_DOUBLE] = core_atomic_##op##_DOUBLE,                         \
				  [FI_LONG_DOUBLE] = core_atomic_##op##_LONG_DOUBLE
#define CORE_ATOMIC_ALL(op)                                                                        \
	CORE_ATOMIC_REALS(op), [FI_FLOAT_COMPLEX] = core_atomic_##op##_FLOAT_COMPLEX,              \
			       [FI_DOUBLE_COMPLEX] = core_atomic_##op##_DOUBLE_COMPLEX,            \
			       [FI_LONG_DOUBLE_COMPLEX] = core_atomic_##op##_LONG_DOUBLE_COMPLEX

static core_atomic_fn *const core_atomic_fns[CORE_ATOMIC_OPS][CORE_ATOMIC_TYPES] = {
	[FI_MIN] = { CORE_ATOMIC_REALS(MIN) },
	[FI_MAX] = { CORE_ATOMIC_REALS(MAX) },
	[FI_SUM] = { CORE_ATOMIC_ALL(SUM) },
	[FI_PROD] = { CORE_ATOMIC_ALL(PROD) },
	[FI_LOR] = { CORE_ATOMIC_ALL(LOR) },
	[FI_LAND] = { CORE_ATOMIC_ALL(LAND) },
	[FI_BOR] = { CORE_ATOMIC_INTEGERS(BOR) },
	[FI_BAND] = { CORE_ATOMIC_INTEGERS(BAND) },
	[FI_LXOR] = { CORE_ATOMIC_ALL(LXOR) },
	[FI_BXOR] = { CORE_ATOMIC_INTEGERS(BXOR) },
	[FI_ATOMIC_READ] = { [0 ... CORE_ATOMIC_TYPES - 1] = core_atomic_read },
	[FI_ATOMIC_WRITE] = { CORE_ATOMIC_ALL(WRITE) },
	[FI_CSWAP] = { CORE_ATOMIC_ALL(CSWAP) },
	[FI_CSWAP_NE] = { CORE_ATOMIC_ALL(CSWAP_NE) },
	[FI_CSWAP_LE] = { CORE_ATOMIC_REALS(CSWAP_LE) },
	[FI_CSWAP_LT] = { CORE_ATOMIC_REALS(CSWAP_LT) },
	[FI_CSWAP_GE] = { CORE_ATOMIC_REALS(CSWAP_GE) },
	[FI_CSWAP_GT] = { CORE_ATOMIC_REALS(CSWAP_GT) },
	[FI_MSWAP] = { CORE_ATOMIC_INTEGERS(MSWAP) },
	[CORE_ATOMIC_DIFF] = { CORE_ATOMIC_ALL(DIFF) },
};

struct core_atomic_shape {
	size_t size;
	size_t align;
};

#define CORE_ATOMIC_SHAPE(type)                                                                    \
	{                                                                                          \
		sizeof(type), _Alignof(type)                                                       \
	}

static const struct core_atomic_shape core_atomic_shapes[CORE_ATOMIC_TYPES] = {
	[FI_INT8] = CORE_ATOMIC_SHAPE(int8_t),
	[FI_UINT8] = CORE_ATOMIC_SHAPE(uint8_t),
	[FI_INT16] = CORE_ATOMIC_SHAPE(int16_t),
	[FI_UINT16] = CORE_ATOMIC_SHAPE(uint16_t),
	[FI_INT32] = CORE_ATOMIC_SHAPE(int32_t),
	[FI_UINT32] = CORE_ATOMIC_SHAPE(uint32_t),
	[FI_INT64] = CORE_ATOMIC_SHAPE(int64_t),
	[FI_UINT64] = CORE_ATOMIC_SHAPE(uint64_t),
	[FI_FLOAT] = CORE_ATOMIC_SHAPE(float),
	[FI_DOUBLE] = CORE_ATOMIC_SHAPE(double),
	[FI_FLOAT_COMPLEX] = CORE_ATOMIC_SHAPE(float complex),
	[FI_DOUBLE_COMPLEX] = CORE_ATOMIC_SHAPE(double complex),
	[FI_LONG_DOUBLE] = CORE_ATOMIC_SHAPE(long double),
	[FI_LONG_DOUBLE_COMPLEX] = CORE_ATOMIC_SHAPE(long double complex),
	[FI_INT128] = CORE_ATOMIC_SHAPE(core_int128),
	[FI_UINT128] = CORE_ATOMIC_SHAPE(core_uint128),
};

core_atomic_fn *core_atomic_math(unsigned type, unsigned op)
{
	return op < CORE_ATOMIC_OPS && type < CORE_ATOMIC_TYPES ? core_atomic_fns[op][type] : NULL;
}

bool core_atomic_is_valid(enum core_atomic_kind kind, unsigned type, unsigned op)
{
	bool compares = op >= FI_CSWAP && op <= FI_MSWAP;

	if (!core_atomic_math(type, op))
		return false;
	switch (kind) {
	case CORE_ATOMIC_BASE: return !compares && op != FI_ATOMIC_READ;
	case CORE_ATOMIC_FETCH: return !compares;
	case CORE_ATOMIC_COMPARE: return compares;
	default: return false;
	}
}

size_t core_atomic_size(unsigned type)
{
	return type < CORE_ATOMIC_TYPES ? core_atomic_shapes[type].size : 0;
}

size_t core_atomic_align(unsigned type)
{
	return type < CORE_ATOMIC_TYPES ? core_atomic_shapes[type].align : 0;
}
