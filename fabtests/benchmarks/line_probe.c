/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Instructions with known accesses, to check insn_count -l: see x86_access.h.
 *
 * Each instruction has lines of its own in an arena, of which it touches some. Prints the arena as
 * "arena FIRST LAST", then "END ADDRESS" for each line that an end touches.
 * fabtests/scripts/line-check compares that with what insn_count saw.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define LINE  64u
#define CASES 64u
#define EACH  16u /* lines of a case */
#define ROUND 3u  /* parts of a round besides the preparation */

static _Alignas(4096) uint8_t arena[CASES * EACH * LINE];
static _Alignas(64) uint64_t far_word[2 * LINE / sizeof(uint64_t)];
static unsigned case_cnt;
static bool expecting;

/** Returns the lines of the next case. While expecting, prints which `cnt` of them it touches. */
static uint8_t *lines_of(unsigned first, unsigned cnt)
{
	uint8_t *at = arena + (size_t)case_cnt++ * EACH * LINE;

	for (; expecting && cnt; cnt--)
		printf("0 %p\n", (void *)(at + (size_t)first++ * LINE));
	return at;
}

/* CASE(FIRST, CNT, CODE): CODE accesses memory at %1 and touches CNT lines from the FIRST on. */
#define CASE(first, cnt, code)                                                                     \
	do {                                                                                       \
		uint8_t *at = lines_of(first, cnt);                                                \
		unsigned long one = 1;                                                             \
                                                                                                   \
		if (!expecting)                                                                    \
			__asm__ volatile(code                                                      \
					 : "+a"(one)                                               \
					 : "r"(at)                                                 \
					 : "rcx", "rdx", "xmm7", "memory", "cc");                  \
	} while (0)

static void probe_integers(void)
{
	CASE(0, 1, "movl (%1), %%edx");
	CASE(0, 1, "movb %%al, 63(%1)");
	CASE(0, 2, "movq %%rax, 57(%1)");
	CASE(0, 2, "movl %%eax, 61(%1)");
	CASE(0, 2, "movw %%ax, 63(%1)");
	CASE(1, 1, "movq 64(%1), %%rdx");
	CASE(3, 1, "movl %%eax, 192(%1)");
	CASE(2, 1, "movl $16, %%ecx; movl %%eax, 64(%1, %%rcx, 4)");
	CASE(1, 1, "movq $8, %%rcx; addq %%rax, (%1, %%rcx, 8)");
	CASE(0, 0, "leaq (%1), %%rdx");
	CASE(0, 0, "prefetcht0 (%1); prefetchw 64(%1); nopw (%1)");
	CASE(0, 1, "movl $7, 4(%1)");
	CASE(0, 1, "cmpb $0, 5(%1)");
	CASE(0, 1, "movzbl 63(%1), %%edx");
	CASE(0, 2, "movzwl 63(%1), %%edx");
	CASE(0, 1, "movslq 60(%1), %%rdx");
	CASE(0, 1, "sete 63(%1)");
	CASE(0, 2, "cmovne 60(%1), %%rdx");
	CASE(0, 1, "lock xaddq %%rax, (%1)");
	CASE(0, 1, "xorl %%eax, %%eax; movl $1, %%edx; lock cmpxchgl %%edx, 60(%1)");
	CASE(0, 1, "btsl $3, 60(%1)");
	CASE(0, 1, "imull $3, 60(%1), %%edx");
	CASE(0, 1, "testl $3, 60(%1)");
	CASE(0, 1, "incw 62(%1)");
	CASE(0, 1, "pushq (%1); popq %%rdx");
	CASE(0, 2, "fldt 55(%1); fstpt 55(%1)");
	CASE(0, 1, "fldl 56(%1); fstp %%st(0)");
}

static void probe_vectors(void)
{
	CASE(0, 2, "movups 49(%1), %%xmm7");
	CASE(0, 1, "movups %%xmm7, 48(%1)");
	CASE(0, 1, "movsd 56(%1), %%xmm7");
	CASE(0, 1, "movss 60(%1), %%xmm7");
	CASE(0, 1, "movq %%xmm7, 56(%1)");
	CASE(0, 1, "movd %%xmm7, 60(%1)");
	CASE(0, 2, "movdqu 50(%1), %%xmm7");
	CASE(1, 1, "movhps 120(%1), %%xmm7");
	CASE(0, 1, "cvtsi2sdl 60(%1), %%xmm7");
	CASE(0, 1, "addsd 56(%1), %%xmm7");
	CASE(0, 1, "paddd 48(%1), %%xmm7");
	if (__builtin_cpu_supports("avx2")) {
		CASE(0, 2, "vmovdqu 33(%1), %%ymm7");
		CASE(0, 1, "vmovdqu 48(%1), %%xmm7");
		CASE(0, 1, "vpbroadcastd 60(%1), %%ymm7");
		CASE(0, 1, "vmovsd %%xmm7, 56(%1)");
	}
	if (__builtin_cpu_supports("avx512vl")) {
		CASE(1, 1, "vmovdqu64 64(%1), %%zmm7");
		CASE(3, 1, "vmovdqu64 192(%1), %%zmm16");
		CASE(1, 1, "vmovdqu64 %%ymm16, 96(%1)");
		CASE(0, 2, "vmovdqu64 %%zmm7, 1(%1)");
	}
	if (__builtin_cpu_supports("avx2"))
		__asm__ volatile("vzeroupper" ::: "memory");
}

/** Copies and fills with repeated instructions, and with libc. */
static void probe_strings(void)
{
	uint8_t *from = lines_of(0, 3), *to = lines_of(1, 2);
	unsigned long cnt = 130;

	if (!expecting) {
		to += 70;
		cnt = 100;
		from += 63;
		__asm__ volatile("rep movsb" : "+S"(from), "+D"(to), "+c"(cnt) : : "memory");
	}
	to = lines_of(0, 4);
	cnt = 32;
	if (!expecting)
		__asm__ volatile("rep stosq" : "+D"(to), "+c"(cnt) : "a"(0ul) : "memory");
	to = lines_of(2, 0);
	cnt = 0;
	if (!expecting)
		__asm__ volatile("rep stosq" : "+D"(to), "+c"(cnt) : "a"(0ul) : "memory");
	from = lines_of(0, 8);
	to = lines_of(0, 8);
	if (!expecting)
		memcpy(to, from, 8u * LINE);
}

static void probe(void)
{
	case_cnt = 0;
	probe_integers();
	probe_vectors();
	probe_strings();
}

int main(void)
{
	unsigned i;

	memset(arena, 0, sizeof(arena));
	printf("arena %p %p\n", (void *)arena, (void *)(arena + sizeof(arena)));
	expecting = true;
	probe();
	/* the other end: a word, whose address is relative to the instruction */
	printf("1 %p\n", (void *)(arena + sizeof(arena) - LINE));
	expecting = false;
	raise(SIGUSR2);
	raise(SIGUSR1);
	probe();
	raise(SIGUSR1);
	__asm__ volatile("addq $1, %0" : "+m"(arena[sizeof(arena) - LINE])::"cc");
	raise(SIGUSR1);
	__asm__ volatile("movl $1, 64+%0" : "+m"(far_word[0]));
	raise(SIGUSR1);
	/* Touches a line in two rounds: it is common, and not among those that are expected. */
	for (i = 0; i < ROUND; i++) {
		arena[sizeof(arena) - 2 * LINE] = (uint8_t)i;
		raise(SIGUSR1);
	}
	raise(SIGUSR1);
	for (i = 0; i < ROUND; i++) {
		arena[sizeof(arena) - 2 * LINE] = (uint8_t)i;
		raise(SIGUSR1);
	}
	raise(SIGUSR2);
	return 0;
}
