/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Streaming copies, one per vector width (m5_bf.h).
 *
 * Loads, stores and loop are one piece of assembly: no compiler, optimisation level or sanitizer
 * puts an instruction between two stores. That would be a pause in the copy, and the device would
 * take its first part for the whole.
 */
#include "dev/mlx5/m5_bf.h"

#if defined(__x86_64__)

void m5_bf_copy(void *reg, const void *wqe, unsigned blocks)
{
	__asm__ volatile("1:\n\t"
			 "movdqa (%1), %%xmm0\n\t"
			 "movdqa 16(%1), %%xmm1\n\t"
			 "movdqa 32(%1), %%xmm2\n\t"
			 "movdqa 48(%1), %%xmm3\n\t"
			 "movntdq %%xmm0, (%0)\n\t"
			 "movntdq %%xmm1, 16(%0)\n\t"
			 "movntdq %%xmm2, 32(%0)\n\t"
			 "movntdq %%xmm3, 48(%0)\n\t"
			 "add $64, %1\n\t"
			 "add $64, %0\n\t"
			 "dec %2\n\t"
			 "jnz 1b"
			 : "+r"(reg), "+r"(wqe), "+r"(blocks)
			 :
			 : "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3");
}

__attribute__((target("avx512f"))) void m5_bf_copy_wide(void *reg, const void *wqe, unsigned blocks)
{
	__asm__ volatile("1:\n\t"
			 "vmovdqa64 (%1), %%zmm0\n\t"
			 "vmovntdq %%zmm0, (%0)\n\t"
			 "add $64, %1\n\t"
			 "add $64, %0\n\t"
			 "dec %2\n\t"
			 "jnz 1b"
			 : "+r"(reg), "+r"(wqe), "+r"(blocks)
			 :
			 : "memory", "cc", "zmm0");
}

bool m5_bf_has_wide(void)
{
	return __builtin_cpu_supports("avx512f");
}

#elif defined(__aarch64__)

void m5_bf_copy(void *reg, const void *wqe, unsigned blocks)
{
	__asm__ volatile("1:\n\t"
			 "ldp q0, q1, [%1]\n\t"
			 "ldp q2, q3, [%1, #32]\n\t"
			 "stnp q0, q1, [%0]\n\t"
			 "stnp q2, q3, [%0, #32]\n\t"
			 "add %1, %1, #64\n\t"
			 "add %0, %0, #64\n\t"
			 "subs %w2, %w2, #1\n\t"
			 "b.ne 1b"
			 : "+r"(reg), "+r"(wqe), "+r"(blocks)
			 :
			 : "memory", "cc", "v0", "v1", "v2", "v3");
}

void m5_bf_copy_wide(void *reg, const void *wqe, unsigned blocks)
{
	m5_bf_copy(reg, wqe, blocks);
}

bool m5_bf_has_wide(void)
{
	return false;
}

#else
#error "name this architecture's streaming stores"
#endif
