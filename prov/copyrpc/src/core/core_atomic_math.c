/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Arithmetic of atomic operations, a function each, with a case for each datatype: see
 * core_atomic_math.h.
 *
 * In the expressions below t is the target's value, b the operand, c the value to compare with.
 * Integers are computed as `wide`, an unsigned type at least as wide as int, where overflow is
 * defined.
 */
#include "core/core_atomic_math.h"

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

/*
 * Defines a case of a switch over datatypes: if `when`, stores `expr` as the new value. Operations
 * without a compare value pass the operand in that place.
 */
#define CORE_ATOMIC_CASE(id, type, wide_type, when, expr)                                          \
	case id: {                                                                                 \
		typedef wide_type wide;                                                            \
		type t, b, c;                                                                      \
                                                                                                   \
		memcpy(&t, value, sizeof(t));                                                      \
		memcpy(&b, operand, sizeof(b));                                                    \
		memcpy(&c, compare, sizeof(c));                                                    \
		if (!(when))                                                                       \
			return false;                                                              \
		t = (type)(wide)(expr);                                                            \
		core_atomic_put(value, &t, sizeof(t), CORE_ATOMIC_IS_LDBL(t));                     \
		return true;                                                                       \
	}

#define CORE_ATOMIC_INTEGERS(when, expr)                                                           \
	CORE_ATOMIC_CASE(FI_INT8, int8_t, uint32_t, when, expr)                                    \
	CORE_ATOMIC_CASE(FI_UINT8, uint8_t, uint32_t, when, expr)                                  \
	CORE_ATOMIC_CASE(FI_INT16, int16_t, uint32_t, when, expr)                                  \
	CORE_ATOMIC_CASE(FI_UINT16, uint16_t, uint32_t, when, expr)                                \
	CORE_ATOMIC_CASE(FI_INT32, int32_t, uint32_t, when, expr)                                  \
	CORE_ATOMIC_CASE(FI_UINT32, uint32_t, uint32_t, when, expr)                                \
	CORE_ATOMIC_CASE(FI_INT64, int64_t, uint64_t, when, expr)                                  \
	CORE_ATOMIC_CASE(FI_UINT64, uint64_t, uint64_t, when, expr)                                \
	CORE_ATOMIC_CASE(FI_INT128, core_int128, core_uint128, when, expr)                         \
	CORE_ATOMIC_CASE(FI_UINT128, core_uint128, core_uint128, when, expr)

#define CORE_ATOMIC_REALS(when, expr)                                                              \
	CORE_ATOMIC_CASE(FI_FLOAT, float, float, when, expr)                                       \
	CORE_ATOMIC_CASE(FI_DOUBLE, double, double, when, expr)                                    \
	CORE_ATOMIC_CASE(FI_LONG_DOUBLE, long double, long double, when, expr)

#define CORE_ATOMIC_COMPLEX(when, expr)                                                            \
	CORE_ATOMIC_CASE(FI_FLOAT_COMPLEX, float complex, float complex, when, expr)               \
	CORE_ATOMIC_CASE(FI_DOUBLE_COMPLEX, double complex, double complex, when, expr)            \
	CORE_ATOMIC_CASE(FI_LONG_DOUBLE_COMPLEX, long double complex, long double complex, when,   \
			 expr)

/* The body of an operation on integers, on ordered types (integers and reals), or on all types. */
#define CORE_ATOMIC_ON_INTEGERS(when, expr)                                                        \
	switch (type) {                                                                            \
		CORE_ATOMIC_INTEGERS(when, expr)                                                   \
	default: return false;                                                                     \
	}
#define CORE_ATOMIC_ON_ORDERED(when, expr)                                                         \
	switch (type) {                                                                            \
		CORE_ATOMIC_INTEGERS(when, expr)                                                   \
		CORE_ATOMIC_REALS(when, expr)                                                      \
	default: return false;                                                                     \
	}
#define CORE_ATOMIC_ON_ALL(when, expr)                                                             \
	switch (type) {                                                                            \
		CORE_ATOMIC_INTEGERS(when, expr)                                                   \
		CORE_ATOMIC_REALS(when, expr)                                                      \
		CORE_ATOMIC_COMPLEX(when, expr)                                                    \
	default: return false;                                                                     \
	}

static bool core_atomic_min(unsigned type, void *value, const void *operand, const void *compare)
{
	compare = operand;
	CORE_ATOMIC_ON_ORDERED(b < t, b)
}

static bool core_atomic_max(unsigned type, void *value, const void *operand, const void *compare)
{
	compare = operand;
	CORE_ATOMIC_ON_ORDERED(b > t, b)
}

static bool core_atomic_sum(unsigned type, void *value, const void *operand, const void *compare)
{
	compare = operand;
	CORE_ATOMIC_ON_ALL(true, (wide)t + (wide)b)
}

static bool core_atomic_prod(unsigned type, void *value, const void *operand, const void *compare)
{
	compare = operand;
	CORE_ATOMIC_ON_ALL(true, (wide)t * (wide)b)
}

static bool core_atomic_diff(unsigned type, void *value, const void *operand, const void *compare)
{
	compare = operand;
	CORE_ATOMIC_ON_ALL(true, (wide)t - (wide)b)
}

static bool core_atomic_lor(unsigned type, void *value, const void *operand, const void *compare)
{
	compare = operand;
	CORE_ATOMIC_ON_ALL(true, t || b)
}

static bool core_atomic_land(unsigned type, void *value, const void *operand, const void *compare)
{
	compare = operand;
	CORE_ATOMIC_ON_ALL(true, (t && b))
}

static bool core_atomic_lxor(unsigned type, void *value, const void *operand, const void *compare)
{
	compare = operand;
	CORE_ATOMIC_ON_ALL(true, !t != !b)
}

static bool core_atomic_bor(unsigned type, void *value, const void *operand, const void *compare)
{
	compare = operand;
	CORE_ATOMIC_ON_INTEGERS(true, t | b)
}

static bool core_atomic_band(unsigned type, void *value, const void *operand, const void *compare)
{
	compare = operand;
	CORE_ATOMIC_ON_INTEGERS(true, (t & b))
}

static bool core_atomic_bxor(unsigned type, void *value, const void *operand, const void *compare)
{
	compare = operand;
	CORE_ATOMIC_ON_INTEGERS(true, t ^ b)
}

static bool core_atomic_write(unsigned type, void *value, const void *operand, const void *compare)
{
	compare = operand;
	CORE_ATOMIC_ON_ALL(true, b)
}

/* Implements FI_ATOMIC_READ for all types. */
static bool core_atomic_read(unsigned type, void *value, const void *operand, const void *compare)
{
	return false;
}

static bool core_atomic_cswap(unsigned type, void *value, const void *operand, const void *compare)
{
	CORE_ATOMIC_ON_ALL(c == t, b)
}

static bool core_atomic_cswap_ne(unsigned type, void *value, const void *operand,
				 const void *compare)
{
	CORE_ATOMIC_ON_ALL(c != t, b)
}

static bool core_atomic_cswap_le(unsigned type, void *value, const void *operand,
				 const void *compare)
{
	CORE_ATOMIC_ON_ORDERED(c <= t, b)
}

static bool core_atomic_cswap_lt(unsigned type, void *value, const void *operand,
				 const void *compare)
{
	CORE_ATOMIC_ON_ORDERED(c < t, b)
}

static bool core_atomic_cswap_ge(unsigned type, void *value, const void *operand,
				 const void *compare)
{
	CORE_ATOMIC_ON_ORDERED(c >= t, b)
}

static bool core_atomic_cswap_gt(unsigned type, void *value, const void *operand,
				 const void *compare)
{
	CORE_ATOMIC_ON_ORDERED(c > t, b)
}

static bool core_atomic_mswap(unsigned type, void *value, const void *operand, const void *compare)
{
	CORE_ATOMIC_ON_INTEGERS(true, (b & c) | (t & ~c))
}

#define CORE_ATOMIC_BIT(type) (1u << (type))
/* Sets of datatypes. */
#define CORE_ATOMIC_INTEGER_TYPES                                                                  \
	((CORE_ATOMIC_BIT(FI_UINT64 + 1) - 1) | CORE_ATOMIC_BIT(FI_INT128) |                       \
	 CORE_ATOMIC_BIT(FI_UINT128))
#define CORE_ATOMIC_ORDERED_TYPES                                                                  \
	(CORE_ATOMIC_INTEGER_TYPES | CORE_ATOMIC_BIT(FI_FLOAT) | CORE_ATOMIC_BIT(FI_DOUBLE) |      \
	 CORE_ATOMIC_BIT(FI_LONG_DOUBLE))
#define CORE_ATOMIC_ALL_TYPES (CORE_ATOMIC_BIT(CORE_ATOMIC_TYPES) - 1)

static const struct {
	core_atomic_fn *fn;
	unsigned types; /* set of datatypes on which fn is defined */
} core_atomic_ops[CORE_ATOMIC_OPS] = {
	[FI_MIN] = { core_atomic_min, CORE_ATOMIC_ORDERED_TYPES },
	[FI_MAX] = { core_atomic_max, CORE_ATOMIC_ORDERED_TYPES },
	[FI_SUM] = { core_atomic_sum, CORE_ATOMIC_ALL_TYPES },
	[FI_PROD] = { core_atomic_prod, CORE_ATOMIC_ALL_TYPES },
	[FI_LOR] = { core_atomic_lor, CORE_ATOMIC_ALL_TYPES },
	[FI_LAND] = { core_atomic_land, CORE_ATOMIC_ALL_TYPES },
	[FI_BOR] = { core_atomic_bor, CORE_ATOMIC_INTEGER_TYPES },
	[FI_BAND] = { core_atomic_band, CORE_ATOMIC_INTEGER_TYPES },
	[FI_LXOR] = { core_atomic_lxor, CORE_ATOMIC_ALL_TYPES },
	[FI_BXOR] = { core_atomic_bxor, CORE_ATOMIC_INTEGER_TYPES },
	[FI_ATOMIC_READ] = { core_atomic_read, CORE_ATOMIC_ALL_TYPES },
	[FI_ATOMIC_WRITE] = { core_atomic_write, CORE_ATOMIC_ALL_TYPES },
	[FI_CSWAP] = { core_atomic_cswap, CORE_ATOMIC_ALL_TYPES },
	[FI_CSWAP_NE] = { core_atomic_cswap_ne, CORE_ATOMIC_ALL_TYPES },
	[FI_CSWAP_LE] = { core_atomic_cswap_le, CORE_ATOMIC_ORDERED_TYPES },
	[FI_CSWAP_LT] = { core_atomic_cswap_lt, CORE_ATOMIC_ORDERED_TYPES },
	[FI_CSWAP_GE] = { core_atomic_cswap_ge, CORE_ATOMIC_ORDERED_TYPES },
	[FI_CSWAP_GT] = { core_atomic_cswap_gt, CORE_ATOMIC_ORDERED_TYPES },
	[FI_MSWAP] = { core_atomic_mswap, CORE_ATOMIC_INTEGER_TYPES },
	[CORE_ATOMIC_DIFF] = { core_atomic_diff, CORE_ATOMIC_ALL_TYPES },
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
	if (op >= CORE_ATOMIC_OPS || type >= CORE_ATOMIC_TYPES)
		return NULL;
	return core_atomic_ops[op].types & CORE_ATOMIC_BIT(type) ? core_atomic_ops[op].fn : NULL;
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
