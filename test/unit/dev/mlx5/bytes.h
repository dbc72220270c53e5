/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Are these bytes exactly those, and where did "those" come from? Each use names its origin. */
#ifndef UNIT_MLX5_BYTES_H
#define UNIT_MLX5_BYTES_H

#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

/** The first bytes at `at` are these, all of them. */
#define EXPECT_AT(at, ...)                                                                         \
	do {                                                                                       \
		static const uint8_t want_[] = { __VA_ARGS__ };                                    \
		const uint8_t *got_ = (const void *)(at);                                          \
		size_t i_;                                                                         \
		for (i_ = 0; i_ < sizeof(want_); i_++)                                             \
			cr_assert_eq(got_[i_], want_[i_], "byte %zu is %02x, not %02x", i_,        \
				     got_[i_], want_[i_]);                                         \
	} while (0)

#endif
