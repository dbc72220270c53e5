/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Numbers are stored little endian at any address, and no neighbouring byte changes. */
#include "wire/wire_le.h"

#include <criterion/criterion.h>

#include "support/rng.h"

#define GUARD 0xA5

static void expect(const uint8_t *room, size_t at, const uint8_t *want, size_t len)
{
	for (size_t i = 0; i < 24; i++)
		cr_assert_eq(room[i], i >= at && i < at + len ? want[i - at] : GUARD,
			     "byte %zu of %zu at %zu", i, len, at);
}

Test(wire_le, the_low_byte_comes_first_at_any_address)
{
	static const uint8_t want[8] = { 8, 7, 6, 5, 4, 3, 2, 1 };
	uint8_t room[24];

	for (size_t at = 1; at <= 8; at++) {
		memset(room, GUARD, sizeof(room));
		wire_put16(room + at, 0x0708);
		expect(room, at, want, 2);
		cr_expect_eq(wire_get16(room + at), 0x0708);
		wire_put32(room + at, 0x05060708);
		expect(room, at, want, 4);
		cr_expect_eq(wire_get32(room + at), 0x05060708);
		wire_put64(room + at, 0x0102030405060708);
		expect(room, at, want, 8);
		cr_expect_eq(wire_get64(room + at), 0x0102030405060708);
	}
}

Test(wire_le, get_returns_the_number_that_was_put)
{
	static const uint64_t odd[] = { 0,          1,          0x7F,       0x80,      0xFF,
					0x100,      0x7FFF,     0x8000,     0xFFFF,    1ull << 31,
					UINT32_MAX, 1ull << 32, 1ull << 63, UINT64_MAX };
	struct rng rng = { .state = 1 };
	uint8_t room[8];

	for (unsigned i = 0; i < 1000; i++) {
		uint64_t v = i < 14 ? odd[i] : rng_next(&rng);

		wire_put64(room, v);
		cr_assert_eq(wire_get64(room), v);
		cr_assert_eq(wire_get32(room), (uint32_t)v);
		cr_assert_eq(wire_get16(room), (uint16_t)v);
	}
}

Test(wire_le, one_byte_anywhere_is_not_zero)
{
	uint8_t room[40] = { 0 };

	cr_expect(wire_is_zero(room, 0));
	cr_expect(wire_is_zero(room, sizeof(room)));
	for (size_t i = 0; i < sizeof(room); i++) {
		room[i] = (uint8_t)(1u << i % 8);
		cr_expect_not(wire_is_zero(room, sizeof(room)));
		cr_expect(wire_is_zero(room, i), "a byte beyond the end was read");
		cr_expect(wire_is_zero(room + i + 1, sizeof(room) - i - 1));
		room[i] = 0;
	}
}
