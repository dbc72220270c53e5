/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Streaming copies, one per vector width (m5_bf.h).
 *
 * The compiler's builtins for streaming stores cannot be widened, merged or turned into a call. The
 * loops stay simple: compilers recognise a copy with a variable tail as memmove. Sanitizers are
 * off: a check between two stores is a pause in the copy, and the device would take its first part
 * for the whole.
 */
#include "dev/mlx5/m5_bf.h"

#include <stdint.h>

#define M5_BF_AS_WRITTEN __attribute__((no_sanitize("address"), no_sanitize("undefined")))

#if defined(__x86_64__)

#include <immintrin.h>

M5_BF_AS_WRITTEN void m5_bf_copy(void *reg, const void *wqe, unsigned blocks)
{
	const __m128i *src = wqe;
	__m128i *dst = reg;

	do {
		__m128i a = src[0], b = src[1], c = src[2], d = src[3];

		_mm_stream_si128(dst, a);
		_mm_stream_si128(dst + 1, b);
		_mm_stream_si128(dst + 2, c);
		_mm_stream_si128(dst + 3, d);
		src += 4;
		dst += 4;
	} while (--blocks);
}

M5_BF_AS_WRITTEN __attribute__((target("avx512f"))) void m5_bf_copy_wide(void *reg, const void *wqe,
									 unsigned blocks)
{
	const __m512i *src = wqe;
	__m512i *dst = reg;

	do {
		_mm512_stream_si512(dst++, *src++);
	} while (--blocks);
}

bool m5_bf_has_wide(void)
{
	return __builtin_cpu_supports("avx512f");
}

#elif defined(__aarch64__)

void m5_bf_copy(void *reg, const void *wqe, unsigned blocks)
{
	const uint8_t *src = wqe;
	uint8_t *dst = reg;

	do {
		__asm__ volatile("ldp q0, q1, [%1]\n\t"
				 "ldp q2, q3, [%1, #32]\n\t"
				 "stnp q0, q1, [%0]\n\t"
				 "stnp q2, q3, [%0, #32]"
				 :
				 : "r"(dst), "r"(src)
				 : "memory", "v0", "v1", "v2", "v3");
		src += 64;
		dst += 64;
	} while (--blocks);
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
