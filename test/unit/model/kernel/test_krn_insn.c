/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests of the decoder with the stores that drivers copy WQEs with. The bytes come from an
 * assembler.
 */
#include <criterion/criterion.h>

#include "model/kernel/krn_insn.h"

/* Decodes with 0x1000 times its number in every general register. */
static struct krn_insn decode(const uint8_t *code)
{
	uint64_t regs[16];

	for (uint64_t i = 0; i < 16; i++)
		regs[i] = i * 0x1000;
	return krn_insn_decode(code, regs, 0);
}

static void expect(const uint8_t *code, enum krn_insn_kind kind, uint8_t size, uint8_t reg,
		   uint64_t address, uint8_t len)
{
	struct krn_insn insn = decode(code);

	cr_expect_eq(insn.kind, kind, "kind %d", insn.kind);
	cr_expect_eq(insn.size, size, "size %u", insn.size);
	cr_expect_eq(insn.reg, reg, "register %u", insn.reg);
	cr_expect_eq(insn.address, address, "address %#lx", insn.address);
	cr_expect_eq(insn.len, len, "length %u", insn.len);
}

#define CODE(...)                                                                                  \
	(const uint8_t[16])                                                                        \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}

Test(krn_insn, vector_stores_of_16_32_and_64_bytes)
{
	/* movntdq %xmm1,0x10(%rdi) */
	expect(CODE(0x66, 0x0f, 0xe7, 0x4f, 0x10), INSN_STORE_VEC, 16, 1, 0x7010, 5);
	/* vmovdqu64 %zmm16,(%rdi) */
	expect(CODE(0x62, 0xe1, 0xfe, 0x48, 0x7f, 0x07), INSN_STORE_VEC, 64, 16, 0x7000, 6);
	/* vmovdqu64 %zmm31,0x40(%rdi): the displacement counts 64 bytes */
	expect(CODE(0x62, 0x61, 0xfe, 0x48, 0x7f, 0x7f, 0x01), INSN_STORE_VEC, 64, 31, 0x7040, 7);
	/* vmovntdq %zmm0,-0x80(%rdi) */
	expect(CODE(0x62, 0xf1, 0x7d, 0x48, 0xe7, 0x47, 0xfe), INSN_STORE_VEC, 64, 0, 0x6f80, 7);
	/* vmovdqu8 %xmm17,0x20(%rsi) */
	expect(CODE(0x62, 0xe1, 0x7f, 0x08, 0x7f, 0x4e, 0x02), INSN_STORE_VEC, 16, 17, 0x6020, 7);
}

Test(krn_insn, vector_loads)
{
	/* vmovdqa32 (%rsi),%ymm16 */
	expect(CODE(0x62, 0xe1, 0x7d, 0x28, 0x6f, 0x06), INSN_LOAD_VEC, 32, 16, 0x6000, 6);
}

Test(krn_insn, a_displacement_of_four_bytes_counts_bytes)
{
	/* vmovups %zmm9,0x10(%rax,%rcx,8) */
	expect(CODE(0x62, 0x71, 0x7c, 0x48, 0x11, 0x8c, 0xc8, 0x10, 0, 0, 0), INSN_STORE_VEC, 64, 9,
	       0x8010, 11);
}

Test(krn_insn, a_masked_store_is_not_decoded)
{
	/* vmovdqu64 %zmm1,(%rdi){%k1} */
	cr_expect_eq(decode(CODE(0x62, 0xf1, 0xfe, 0x49, 0x7f, 0x0f)).kind, INSN_OTHER);
}
