/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests of the vector registers of an interrupted program: reading and writing as the processor
 * does.
 *
 * A trap stands between instructions that load a register and store it; the handler reads and
 * changes it.
 */
#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>

#include "model/kernel/krn_vector.h"

static uint8_t seen[64], set[64];
static uint32_t reg, len;
static bool zero_upper, change;

static void handler(int number, siginfo_t *info, void *context)
{
	void *area = ((ucontext_t *)context)->uc_mcontext.fpregs;

	if (change)
		krn_vector_set(area, reg, set, len, zero_upper);
	else
		krn_vector_get(area, reg, seen, len);
}

static void setup(void)
{
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };

	sigaction(SIGTRAP, &action, NULL);
	for (int i = 0; i < 64; i++)
		set[i] = 0xc0 + i;
}

TestSuite(krn_vector, .init = setup);

__attribute__((target("avx"))) static void trap_ymm3(const uint8_t in[32], uint8_t out[32])
{
	__asm__ volatile("vmovdqu %0, %%ymm3\n\tint3\n\tvmovdqu %%ymm3, %1"
			 :
			 : "m"(*(const uint8_t(*)[32])in), "m"(*(uint8_t(*)[32])out)
			 : "xmm3", "memory");
}

__attribute__((target("avx512f"))) static void trap_zmm17(const uint8_t in[64], uint8_t out[64])
{
	__asm__ volatile("vmovdqu64 %0, %%zmm17\n\tint3\n\tvmovdqu64 %%zmm17, %1"
			 :
			 : "m"(*(const uint8_t(*)[64])in), "m"(*(uint8_t(*)[64])out)
			 : "xmm17", "memory");
}

__attribute__((target("avx512f"))) static void trap_zmm5(const uint8_t in[64], uint8_t out[64])
{
	__asm__ volatile("vmovdqu64 %0, %%zmm5\n\tint3\n\tvmovdqu64 %%zmm5, %1"
			 :
			 : "m"(*(const uint8_t(*)[64])in), "m"(*(uint8_t(*)[64])out)
			 : "xmm5", "memory");
}

static void both_ways(void (*trap)(const uint8_t *, uint8_t *), uint32_t which, uint32_t bytes)
{
	uint8_t in[64], out[64] = { 0 };

	for (uint32_t i = 0; i < 64; i++)
		in[i] = i + 1;
	reg = which;
	len = bytes;
	change = false;
	trap(in, out);
	cr_expect_arr_eq(seen, in, bytes);
	cr_expect_arr_eq(out, in, bytes, "looking changes nothing");
	change = true;
	trap(in, out);
	cr_expect_arr_eq(out, set, bytes);
}

Test(krn_vector, a_register_of_32_bytes)
{
	if (!__builtin_cpu_supports("avx"))
		cr_skip("no AVX");
	both_ways(trap_ymm3, 3, 32);
}

Test(krn_vector, a_register_of_64_bytes)
{
	if (!__builtin_cpu_supports("avx512f"))
		cr_skip("no AVX-512");
	both_ways(trap_zmm5, 5, 64);
}

Test(krn_vector, a_register_above_16)
{
	if (!__builtin_cpu_supports("avx512f"))
		cr_skip("no AVX-512");
	both_ways(trap_zmm17, 17, 64);
}

Test(krn_vector, what_is_above_stays_or_becomes_zero)
{
	static const uint8_t zero[48];
	uint8_t in[64], out[64];

	if (!__builtin_cpu_supports("avx512f"))
		cr_skip("no AVX-512");
	memset(in, 0x77, sizeof(in));
	reg = 5;
	len = 16;
	change = true;
	zero_upper = false;
	trap_zmm5(in, out);
	cr_expect_arr_eq(out, set, 16);
	cr_expect_arr_eq(out + 16, in + 16, 48);
	zero_upper = true;
	trap_zmm5(in, out);
	cr_expect_arr_eq(out + 16, zero, 48);
}
