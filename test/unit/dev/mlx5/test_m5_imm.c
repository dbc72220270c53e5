/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Origin of the golden values: the table in m5_imm.h. */
#include "dev/mlx5/m5_imm.h"

#include <criterion/criterion.h>

static uint32_t short_imm(uint32_t advance, uint32_t units)
{
	return 0x80000000u | advance << 16 | units;
}

Test(m5_imm, golden_values)
{
	cr_expect_eq(m5_imm_pack(1), 1);
	cr_expect_eq(m5_imm_pack(0x7fff), 0x7fff);
	cr_expect_eq(m5_imm_pack(short_imm(0, 1)), 0x8001);
	cr_expect_eq(m5_imm_pack(short_imm(1, 2)), 0x8082);
	cr_expect_eq(m5_imm_pack(short_imm(255, 127)), 0xffff);
}

Test(m5_imm, what_does_not_fit_goes_into_the_link_word)
{
	cr_expect_eq(m5_imm_pack(0x8000), M5_IMM_IN_WORD);
	cr_expect_eq(m5_imm_pack(0x7fffffff), M5_IMM_IN_WORD);
	cr_expect_eq(m5_imm_pack(short_imm(256, 1)), M5_IMM_IN_WORD);
	cr_expect_eq(m5_imm_pack(short_imm(0, 128)), M5_IMM_IN_WORD);
	cr_expect_eq(m5_imm_pack(short_imm(0x7fff, 0xffff)), M5_IMM_IN_WORD);
}

Test(m5_imm, bytes_of_messages_are_no_immediates_of_an_engine)
{
	for (uint32_t byte = 0; byte < 256; byte++) {
		uint32_t brief = m5_imm_of_byte((uint8_t)byte);

		cr_assert(m5_imm_is_byte(brief));
		cr_assert_eq(m5_imm_byte(brief), byte);
		cr_assert_eq(m5_imm_unpack(brief), short_imm(byte, 0), "no units: not legal");
	}
	for (uint32_t units = 1; units <= 127; units++)
		cr_assert_not(m5_imm_is_byte(m5_imm_pack(short_imm(255, units))));
	cr_expect_not(m5_imm_is_byte(M5_IMM_IN_WORD));
	cr_expect_not(m5_imm_is_byte(0x7f80));
	cr_expect_eq(m5_imm_unpack(M5_IMM_IN_WORD), 0);
}

Test(m5_imm, every_brief_form_is_that_of_one_immediate)
{
	for (uint32_t brief = 1; brief <= 0xffff; brief++)
		cr_assert_eq(m5_imm_pack(m5_imm_unpack(brief)), brief);
}

Test(m5_imm, units_of_both_forms)
{
	cr_expect_eq(dev_imm_units(0x12345), 0x12345);
	cr_expect_eq(dev_imm_units(short_imm(0x7fff, 0xfffe)), 0xfffe);
}
