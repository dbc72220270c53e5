/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Comparison with expected bytes. Each use names the origin of the bytes. */
#ifndef UNIT_MLX5_BYTES_H
#define UNIT_MLX5_BYTES_H

#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

/** Expects these bytes at `at`. */
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
