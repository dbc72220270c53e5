/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Comparison of an object's bytes with expected ones. */
#ifndef UNIT_WIRE_GOLDEN_H
#define UNIT_WIRE_GOLDEN_H

#include <criterion/criterion.h>
#include <stdint.h>

#define EXPECT_BYTES(got, ...)                                                                     \
	do {                                                                                       \
		static const uint8_t want_[] = { __VA_ARGS__ };                                    \
		cr_assert_eq(sizeof(got), sizeof(want_));                                          \
		cr_assert_arr_eq(&(got), want_, sizeof(want_));                                    \
	} while (0)

#endif
