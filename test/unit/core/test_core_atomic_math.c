/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Arithmetic of all operations on all types, as in fi_atomic(3).
 *
 * The model computes integers as sequences of bytes (schoolbook sums and products, bit by bit
 * comparisons), and reals and complex numbers as pairs of long doubles with values that are exact
 * in every format.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "core/core_atomic_math.h"
#include "support/rng.h"
#include "unit/core/must.h"

#define SIZE_MAX_ELEMENT 32u

enum class { SIGNED, UNSIGNED, REAL, COMPLEX };

struct type_row {
	unsigned type;
	enum class class;
	size_t size;
};

static const struct type_row types[] = {
	{ FI_INT8, SIGNED, 1 },
	{ FI_UINT8, UNSIGNED, 1 },
	{ FI_INT16, SIGNED, 2 },
	{ FI_UINT16, UNSIGNED, 2 },
	{ FI_INT32, SIGNED, 4 },
	{ FI_UINT32, UNSIGNED, 4 },
	{ FI_INT64, SIGNED, 8 },
	{ FI_UINT64, UNSIGNED, 8 },
	{ FI_INT128, SIGNED, 16 },
	{ FI_UINT128, UNSIGNED, 16 },
	{ FI_FLOAT, REAL, sizeof(float) },
	{ FI_DOUBLE, REAL, sizeof(double) },
	{ FI_LONG_DOUBLE, REAL, sizeof(long double) },
	{ FI_FLOAT_COMPLEX, COMPLEX, 2 * sizeof(float) },
	{ FI_DOUBLE_COMPLEX, COMPLEX, 2 * sizeof(double) },
	{ FI_LONG_DOUBLE_COMPLEX, COMPLEX, 2 * sizeof(long double) },
};
#define TYPES (sizeof(types) / sizeof(types[0]))

/* Valid operations, by family of call and class of type. */
struct op_row {
	unsigned op;
	bool base, fetch, compare;
	bool integer, real, complex;
};

static const struct op_row ops[] = {
	{ FI_MIN, 1, 1, 0, 1, 1, 0 },         { FI_MAX, 1, 1, 0, 1, 1, 0 },
	{ FI_SUM, 1, 1, 0, 1, 1, 1 },         { FI_PROD, 1, 1, 0, 1, 1, 1 },
	{ FI_LOR, 1, 1, 0, 1, 1, 1 },         { FI_LAND, 1, 1, 0, 1, 1, 1 },
	{ FI_BOR, 1, 1, 0, 1, 0, 0 },         { FI_BAND, 1, 1, 0, 1, 0, 0 },
	{ FI_LXOR, 1, 1, 0, 1, 1, 1 },        { FI_BXOR, 1, 1, 0, 1, 0, 0 },
	{ FI_ATOMIC_READ, 0, 1, 0, 1, 1, 1 }, { FI_ATOMIC_WRITE, 1, 1, 0, 1, 1, 1 },
	{ FI_CSWAP, 0, 0, 1, 1, 1, 1 },       { FI_CSWAP_NE, 0, 0, 1, 1, 1, 1 },
	{ FI_CSWAP_LE, 0, 0, 1, 1, 1, 0 },    { FI_CSWAP_LT, 0, 0, 1, 1, 1, 0 },
	{ FI_CSWAP_GE, 0, 0, 1, 1, 1, 0 },    { FI_CSWAP_GT, 0, 0, 1, 1, 1, 0 },
	{ FI_MSWAP, 0, 0, 1, 1, 0, 0 },       { CORE_ATOMIC_DIFF, 1, 1, 0, 1, 1, 1 },
};
#define OPS (sizeof(ops) / sizeof(ops[0]))

static bool has(const struct op_row *op, enum class class)
{
	return class <= UNSIGNED ? op->integer : class == REAL ? op->real : op->complex;
}

Test(core_atomic_math, valid_pairs_are_those_of_the_man_page)
{
	for (size_t o = 0; o < OPS; o++) {
		for (size_t t = 0; t < TYPES; t++) {
			const struct op_row *op = &ops[o];
			bool any = has(op, types[t].class);
			unsigned type = types[t].type;

			MUST(!!core_atomic_math(type, op->op) == any);
			MUST(core_atomic_is_valid(CORE_ATOMIC_BASE, type, op->op) ==
			     (any && op->base));
			MUST(core_atomic_is_valid(CORE_ATOMIC_FETCH, type, op->op) ==
			     (any && op->fetch));
			MUST(core_atomic_is_valid(CORE_ATOMIC_COMPARE, type, op->op) ==
			     (any && op->compare));
		}
	}
}

Test(core_atomic_math, unknown_types_and_operations_are_refused)
{
	static const unsigned bad[] = { 20, 21, 255, FI_NOOP, 1u << 31, UINT32_MAX };

	MUST(TYPES == CORE_ATOMIC_TYPES && OPS == CORE_ATOMIC_OPS);
	for (size_t b = 0; b < sizeof(bad) / sizeof(bad[0]); b++) {
		MUST(!core_atomic_math(bad[b], FI_SUM));
		MUST(!core_atomic_math(FI_INT8, bad[b]));
		MUST(!core_atomic_size(bad[b]) && !core_atomic_align(bad[b]));
		for (unsigned k = 0; k < CORE_ATOMIC_KINDS; k++)
			MUST(!core_atomic_is_valid(k, FI_INT8, bad[b]));
	}
	MUST(!core_atomic_math(CORE_ATOMIC_TYPES, FI_SUM));
	MUST(!core_atomic_is_valid(CORE_ATOMIC_KINDS, FI_INT8, FI_SUM));
	MUST(!core_atomic_is_valid(CORE_ATOMIC_KINDS, FI_INT8, FI_CSWAP));
}

Test(core_atomic_math, sizes_are_those_of_the_types)
{
	for (size_t t = 0; t < TYPES; t++) {
		MUST(core_atomic_size(types[t].type) == types[t].size);
		MUST(core_atomic_align(types[t].type) <= types[t].size);
		MUST(types[t].size <= SIZE_MAX_ELEMENT);
	}
	MUST(core_atomic_align(FI_FLOAT_COMPLEX) == _Alignof(float));
	MUST(core_atomic_align(FI_INT128) == 16);
}

/*
 * Integers, little endian, byte by byte.
 */
static int int_cmp(const struct type_row *t, const uint8_t *a, const uint8_t *b)
{
	for (size_t i = t->size; i-- > 0;) {
		uint8_t flip = t->class == SIGNED && i == t->size - 1 ? 0x80 : 0;

		if ((a[i] ^ flip) != (b[i] ^ flip))
			return (a[i] ^ flip) < (b[i] ^ flip) ? -1 : 1;
	}
	return 0;
}

static bool int_is_zero(const struct type_row *t, const uint8_t *a)
{
	static const uint8_t zero[16];

	return !memcmp(a, zero, t->size);
}

static void int_add(const struct type_row *t, uint8_t *a, const uint8_t *b, bool minus)
{
	unsigned carry = minus;

	for (size_t i = 0; i < t->size; i++) {
		carry += a[i] + (minus ? b[i] ^ 0xFFu : b[i]);
		a[i] = (uint8_t)carry;
		carry >>= 8;
	}
}

static void int_mul(const struct type_row *t, uint8_t *a, const uint8_t *b)
{
	uint8_t sum[16] = { 0 };

	for (size_t i = 0; i < t->size; i++) {
		unsigned carry = 0;

		for (size_t j = 0; i + j < t->size; j++) {
			carry += sum[i + j] + (unsigned)a[j] * b[i];
			sum[i + j] = (uint8_t)carry;
			carry >>= 8;
		}
	}
	memcpy(a, sum, t->size);
}

static void int_set(const struct type_row *t, uint8_t *a, bool truth)
{
	memset(a, 0, t->size);
	a[0] = truth;
}

static void int_bits(const struct type_row *t, unsigned op, uint8_t *a, const uint8_t *b,
		     const uint8_t *c)
{
	for (size_t i = 0; i < t->size; i++) {
		switch (op) {
		case FI_BOR: a[i] |= b[i]; break;
		case FI_BAND: a[i] &= b[i]; break;
		case FI_BXOR: a[i] ^= b[i]; break;
		default: a[i] = (uint8_t)((b[i] & c[i]) | (a[i] & ~c[i]));
		}
	}
}

/* Returns 1 if a comparing operation swaps, 0 if not, 2 for other operations. */
static int swaps(unsigned op, int cmp, bool unordered)
{
	switch (op) {
	case FI_CSWAP: return !unordered && cmp == 0;
	case FI_CSWAP_NE: return unordered || cmp != 0;
	case FI_CSWAP_LE: return !unordered && cmp <= 0;
	case FI_CSWAP_LT: return !unordered && cmp < 0;
	case FI_CSWAP_GE: return !unordered && cmp >= 0;
	case FI_CSWAP_GT: return !unordered && cmp > 0;
	default: return 2;
	}
}

static void int_model(const struct type_row *t, unsigned op, uint8_t *a, const uint8_t *b,
		      const uint8_t *c)
{
	bool ta = !int_is_zero(t, a), tb = !int_is_zero(t, b);
	int swap = swaps(op, int_cmp(t, c, a), false);

	if (swap == 1)
		memcpy(a, b, t->size);
	if (swap != 2)
		return;
	switch (op) {
	case FI_MIN:
		if (int_cmp(t, b, a) < 0)
			memcpy(a, b, t->size);
		break;
	case FI_MAX:
		if (int_cmp(t, b, a) > 0)
			memcpy(a, b, t->size);
		break;
	case FI_SUM: int_add(t, a, b, false); break;
	case CORE_ATOMIC_DIFF: int_add(t, a, b, true); break;
	case FI_PROD: int_mul(t, a, b); break;
	case FI_LOR: int_set(t, a, ta || tb); break;
	case FI_LAND: int_set(t, a, ta && tb); break;
	case FI_LXOR: int_set(t, a, ta != tb); break;
	case FI_ATOMIC_READ: break;
	case FI_ATOMIC_WRITE: memcpy(a, b, t->size); break;
	default: int_bits(t, op, a, b, c);
	}
}

static void check_fn(const struct type_row *t, unsigned op, const uint8_t *a, const uint8_t *b,
		     const uint8_t *c, const uint8_t *want)
{
	/* One byte off, so that no operand is aligned. */
	uint8_t value[SIZE_MAX_ELEMENT + 2], operand[SIZE_MAX_ELEMENT + 1];
	uint8_t compare[SIZE_MAX_ELEMENT + 1];
	bool is_swap = op >= FI_CSWAP && op <= FI_MSWAP, stored;

	memset(value, 0xA5, sizeof(value));
	memcpy(value + 1, a, t->size);
	memcpy(operand + 1, b, t->size);
	memcpy(compare + 1, c, t->size);
	stored = core_atomic_math(t->type, op)(t->type, value + 1,
					       op == FI_ATOMIC_READ ? NULL : operand + 1,
					       is_swap ? compare + 1 : NULL);
	if (memcmp(value + 1, want, t->size))
		cr_assert_fail("type %u, operation %u", t->type, op);
	MUST(value[0] == 0xA5 && value[t->size + 1] == 0xA5);
	MUST(stored || !memcmp(a, want, t->size));
	MUST(op != FI_ATOMIC_READ || !stored);
	MUST(op != FI_ATOMIC_WRITE || stored);
}

/* Returns an edge value (0, 1, -1, minimum, maximum) or a random one. */
static void int_pick(struct rng *r, const struct type_row *t, uint8_t *a)
{
	uint64_t what = rng_below(r, 8);

	memset(a, what == 1 || what == 3 ? 0xFF : 0, t->size);
	if (what == 2)
		a[t->size - 1] = 0x80;
	if (what == 3)
		a[t->size - 1] = 0x7F;
	if (what == 4)
		a[0] = 1;
	for (size_t i = 0; what > 4 && i < t->size; i++)
		a[i] = (uint8_t)rng_next(r);
}

Test(core_atomic_math, integers_wrap_and_compare_by_type)
{
	struct rng r = { 1 };
	uint8_t a[16], b[16], c[16], want[16];

	for (unsigned n = 0; n < 4000; n++) {
		for (size_t t = 0; t < TYPES; t++) {
			if (types[t].class > UNSIGNED)
				continue;
			int_pick(&r, &types[t], a);
			int_pick(&r, &types[t], b);
			if (rng_chance(&r, 1, 3))
				memcpy(c, a, sizeof(c));
			else
				int_pick(&r, &types[t], c);
			for (size_t o = 0; o < OPS; o++) {
				memcpy(want, a, sizeof(want));
				int_model(&types[t], ops[o].op, want, b, c);
				check_fn(&types[t], ops[o].op, a, b, c, want);
			}
		}
	}
}

/*
 * Reals and complex numbers.
 */
struct num {
	long double re, im;
};

static void put(const struct type_row *t, uint8_t *out, struct num n)
{
	float f[2] = { (float)n.re, (float)n.im };
	double d[2] = { (double)n.re, (double)n.im };
	long double l[2];

	memset(l, 0, sizeof(l)); /* padding included */
	l[0] = n.re;
	l[1] = n.im;
	if (t->type == FI_FLOAT || t->type == FI_FLOAT_COMPLEX)
		memcpy(out, f, t->size);
	else if (t->type == FI_DOUBLE || t->type == FI_DOUBLE_COMPLEX)
		memcpy(out, d, t->size);
	else
		memcpy(out, l, t->size);
}

static bool is_unordered(struct num a, struct num b)
{
	return isnan(a.re) || isnan(a.im) || isnan(b.re) || isnan(b.im);
}

static int num_cmp(struct num a, struct num b)
{
	if (a.re == b.re && a.im == b.im)
		return 0;
	return a.re < b.re ? -1 : 1;
}

static struct num num_model(unsigned op, struct num a, struct num b, struct num c)
{
	bool ta = a.re != 0 || a.im != 0, tb = b.re != 0 || b.im != 0;
	int swap = swaps(op, num_cmp(c, a), is_unordered(c, a));

	if (swap != 2)
		return swap ? b : a;
	switch (op) {
	case FI_MIN: return !is_unordered(a, b) && b.re < a.re ? b : a;
	case FI_MAX: return !is_unordered(a, b) && b.re > a.re ? b : a;
	case FI_SUM: return (struct num){ a.re + b.re, a.im + b.im };
	case CORE_ATOMIC_DIFF: return (struct num){ a.re - b.re, a.im - b.im };
	case FI_PROD: return (struct num){ a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re };
	case FI_LOR: return (struct num){ ta || tb, 0 };
	case FI_LAND: return (struct num){ ta && tb, 0 };
	case FI_LXOR: return (struct num){ ta != tb, 0 };
	case FI_ATOMIC_WRITE: return b;
	default: return a;
	}
}

/* Returns a small half: sums and products are exact in every format. Only +0, as -0 + 0 is +0. */
static struct num num_pick(struct rng *r, const struct type_row *t)
{
	struct num n = { ((int)rng_below(r, 33) - 16) / 2.0L, 0 };

	if (t->class == COMPLEX && rng_chance(r, 3, 4))
		n.im = ((int)rng_below(r, 33) - 16) / 2.0L;
	return n;
}

/* Makes zeros positive: the sign of a zero product depends on the order of operations. */
static void check_num(const struct type_row *t, unsigned op, struct num a, struct num b,
		      struct num c)
{
	uint8_t value[SIZE_MAX_ELEMENT], operand[SIZE_MAX_ELEMENT], compare[SIZE_MAX_ELEMENT];
	uint8_t bytes[SIZE_MAX_ELEMENT], zero[SIZE_MAX_ELEMENT];
	struct num want = num_model(op, a, b, c);
	core_atomic_fn *fn = core_atomic_math(t->type, op);

	put(t, value, a);
	put(t, operand, b);
	put(t, compare, c);
	fn(t->type, value, op == FI_ATOMIC_READ ? NULL : operand, compare);
	put(t, bytes, want);
	put(t, zero, (struct num){ 0, 0 });
	core_atomic_math(t->type, FI_SUM)(t->type, value, zero, NULL);
	core_atomic_math(t->type, FI_SUM)(t->type, bytes, zero, NULL);
	/* Equal by value: padding and payloads of NaNs may differ. */
	memcpy(operand, zero, sizeof(zero));
	memcpy(compare, value, sizeof(value));
	operand[0] = 1;
	if (isnan(want.re) || isnan(want.im)) {
		MUST(!core_atomic_math(t->type, FI_CSWAP)(t->type, bytes, operand, compare));
		return;
	}
	if (!core_atomic_math(t->type, FI_CSWAP)(t->type, bytes, operand, compare))
		cr_assert_fail("type %u, operation %u: %Lg%+Lgi, %Lg%+Lgi, %Lg%+Lgi", t->type, op,
			       a.re, a.im, b.re, b.im, c.re, c.im);
}

Test(core_atomic_math, reals_and_complex_numbers_are_those_of_c)
{
	struct rng r = { 2 };

	for (unsigned n = 0; n < 4000; n++) {
		for (size_t t = 0; t < TYPES; t++) {
			struct num a, b, c;

			if (types[t].class < REAL)
				continue;
			a = num_pick(&r, &types[t]);
			b = num_pick(&r, &types[t]);
			c = rng_chance(&r, 1, 3) ? a : num_pick(&r, &types[t]);
			for (size_t o = 0; o < OPS; o++) {
				if (has(&ops[o], types[t].class))
					check_num(&types[t], ops[o].op, a, b, c);
			}
		}
	}
}

Test(core_atomic_math, not_a_number_never_compares)
{
	const struct num nan_ = { NAN, 0 }, one = { 1, 0 }, two = { 2, 0 };

	for (size_t t = 0; t < TYPES; t++) {
		if (types[t].class < REAL)
			continue;
		for (size_t o = 0; o < OPS; o++) {
			if (!has(&ops[o], types[t].class) || ops[o].op == FI_PROD)
				continue;
			check_num(&types[t], ops[o].op, nan_, one, one);
			check_num(&types[t], ops[o].op, one, nan_, two);
			check_num(&types[t], ops[o].op, one, two, nan_);
			check_num(&types[t], ops[o].op, nan_, two, nan_);
		}
	}
}

Test(core_atomic_math, zeros_of_both_signs_are_equal_and_infinities_ordered)
{
	double value = -0.0, operand = 5, compare = 0.0;

	MUST(core_atomic_math(FI_DOUBLE, FI_CSWAP)(FI_DOUBLE, &value, &operand, &compare) &&
	     value == 5);
	operand = INFINITY;
	MUST(!core_atomic_math(FI_DOUBLE, FI_MIN)(FI_DOUBLE, &value, &operand, NULL) && value == 5);
	MUST(core_atomic_math(FI_DOUBLE, FI_MAX)(FI_DOUBLE, &value, &operand, NULL) &&
	     value == INFINITY);
	operand = -INFINITY;
	MUST(core_atomic_math(FI_DOUBLE, FI_MIN)(FI_DOUBLE, &value, &operand, NULL) &&
	     value == -INFINITY);
}
