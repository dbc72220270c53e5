/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests of trap mode: a store to a UAR page reaches the NIC whole and once, whatever instructions a
 * driver uses. The stores are real: each raises the signal.
 */
#include "unit/model/kernel/border_bench.h"
#include "unit/model/broken_rule.h"

#include "model/kernel/krn_uar.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static char *uar;
static unsigned char wqe[256] __attribute__((aligned(64)));

/* Fills a WQE of `blocks` 64-byte blocks, each byte different. */
static void make_wqe(uint32_t blocks)
{
	for (uint32_t i = 0; i < sizeof(wqe); i++)
		wqe[i] = (unsigned char)(i * 7 + 1);
	wqe[7] = (unsigned char)(blocks * 4);
}

static void setup(void)
{
	uint32_t ctx;

	border_setup();
	ctx = border_open();
	uar = border_map_uar(ctx, 3);
	krn_trap_arm();
	make_wqe(1);
}

TestSuite(krn_trap, .init = setup, .fini = border_teardown);

/* Rings an 8-byte doorbell. The barrier makes the compiler reread what the NIC recorded. */
static void ring(uint32_t off)
{
	__asm__ volatile("" ::: "memory");
	*(volatile uint64_t *)(uar + off) = *(uint64_t *)wqe;
	__asm__ volatile("" ::: "memory");
}

static void expect(uint32_t writes, uint32_t off, uint32_t len)
{
	cr_expect_eq(notes.writes, writes, "%u calls", notes.writes);
	cr_expect_eq(notes.page, 3);
	cr_expect_eq(notes.off, off, "offset %#x", notes.off);
	cr_expect_eq(notes.len, len, "%u bytes", notes.len);
	cr_expect_arr_eq(notes.bytes, wqe, len);
	cr_expect_arr_eq(uar + off, wqe, len, "the page shows what was stored");
}

Test(krn_trap, a_doorbell_of_8_bytes)
{
	ring(0x800);
	expect(1, 0x800, 8);
	ring(0x900);
	expect(2, 0x900, 8);
	ring(0xa00);
	expect(3, 0xa00, 8);
}

Test(krn_trap, the_arm_register)
{
	ring(KRN_UAR_ARM);
	expect(1, KRN_UAR_ARM, 8);
}

/* Sanitizers would put their checks between the stores, which drivers do not have. */
__attribute__((noinline, no_sanitize("address", "undefined", "thread"))) static void copy_block(
	volatile uint64_t *to, const uint64_t *from)
{
	for (int i = 0; i < 8; i++)
		to[i] = from[i];
}

Test(krn_trap, a_copy_of_a_block_in_a_loop_is_one_write)
{
	copy_block((volatile uint64_t *)(uar + 0x800), (const uint64_t *)wqe);
	expect(1, 0x800, 64);
}

/* Sanitizers replace memmove() by one that copies bytes. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define OWN_MEMMOVE 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OWN_MEMMOVE 1
#endif
#ifndef OWN_MEMMOVE

Test(krn_trap, a_copy_by_memmove_is_one_write)
{
	memmove(uar + 0x900, wqe, 64);
	expect(1, 0x900, 64);
}

Test(krn_trap, blocks_copied_by_calls_of_memmove_are_put_together)
{
	make_wqe(3);
	for (int block = 0; block < 3; block++) {
		cr_expect_eq(notes.writes, 0);
		memmove(uar + 0xa00 + block * 64, wqe + block * 64, 64);
	}
	expect(1, 0xa00, 192);
}

Test(krn_trap, a_doorbell_ends_a_copy_that_was_not_finished)
{
	make_wqe(2);
	memmove(uar + 0x800, wqe, 64);
	cr_expect_eq(notes.writes, 0);
	wqe[3] ^= 1;
	ring(0x800);
	cr_expect_eq(notes.writes, 2, "the part, then the doorbell: %u", notes.writes);
	cr_expect_eq(notes.len, 8);
}

#endif /* OWN_MEMMOVE */

/* Copies with each kind of vector store that a driver may be compiled to and the processor has. */
#define VECTOR_COPY(name, feature, load, store, reg, bytes)                                        \
	Test(krn_trap, name)                                                                       \
	{                                                                                          \
		if (!__builtin_cpu_supports(feature))                                              \
			cr_skip_test("this processor has no " feature);                            \
		for (int i = 0; i < 64; i += bytes)                                                \
			__asm__ volatile(load " (%0), %%" reg "\n\t" store " %%" reg ", (%1)"      \
					 :                                                         \
					 : "r"(wqe + i), "r"(uar + 0x800 + i)                      \
					 : "memory", "xmm1");                                      \
		expect(1, 0x800, 64);                                                              \
	}

VECTOR_COPY(sse_stores, "sse2", "movdqa", "movdqa", "xmm1", 16)
VECTOR_COPY(sse_streaming_stores, "sse2", "movdqu", "movntdq", "xmm1", 16)
VECTOR_COPY(avx_stores, "avx2", "vmovdqu", "vmovdqu", "ymm1", 32)
VECTOR_COPY(avx_streaming_stores, "avx2", "vmovdqa", "vmovntdq", "ymm1", 32)
VECTOR_COPY(avx512_streaming_stores, "avx512f", "vmovdqa64", "vmovntdq", "zmm1", 64)

Test(krn_trap, registers_and_flags_are_what_the_instructions_left)
{
	uint64_t from = (uintptr_t)wqe, to = (uintptr_t)uar + 0x800, count = 8, carry = 0;

	__asm__ volatile("1: mov (%0), %%r10\n\t"
			 "mov %%r10, (%1)\n\t"
			 "add $8, %0\n\t"
			 "lea 8(%1), %1\n\t"
			 "sub $1, %2\n\t"
			 "jne 1b\n\t"
			 "cmp $1, %2\n\t"
			 "setb %b3"
			 : "+r"(from), "+r"(to), "+r"(count), "+r"(carry)
			 :
			 : "r10", "memory", "cc");
	expect(1, 0x800, 64);
	cr_expect_eq(from, (uintptr_t)wqe + 64);
	cr_expect_eq(to, (uintptr_t)uar + 0x840);
	cr_expect_eq(count, 0);
	cr_expect_eq(carry, 1, "0 is below 1");
}

/* The NIC runs before the next instruction, so the program reads what the NIC wrote. */
Test(krn_trap, the_program_sees_what_the_nic_did)
{
	uint32_t seen = 0;

	__asm__ volatile("mov (%1), %%r10\n\t"
			 "mov %%r10, (%2)\n\t"
			 "mov (%3), %0\n\t"
			 : "+r"(seen)
			 : "r"(wqe), "r"(uar + 0x800), "r"(&notes.writes)
			 : "r10", "memory");
	cr_expect_eq(seen, 1);
}

/* Effects after the doorbell are undone: the counter in memory is incremented once. */
Test(krn_trap, nothing_after_a_doorbell_happens_twice)
{
	uint32_t count = 5;

	__asm__ volatile("mov (%0), %%r10\n\t"
			 "mov %%r10, (%1)\n\t"
			 "mov (%2), %%r11d\n\t"
			 "add $1, %%r11d\n\t"
			 "mov %%r11d, (%2)\n\t"
			 "movdqu (%0), %%xmm1\n\t"
			 :
			 : "r"(wqe), "r"(uar + 0x900), "r"(&count)
			 : "r10", "r11", "xmm1", "memory");
	cr_expect_eq(count, 6);
	expect(1, 0x900, 8);
}

Test(krn_trap, string_moves)
{
	const void *from = wqe;
	void *to = uar + 0x800;
	uint64_t count = 8;

	__asm__ volatile("rep movsq" : "+S"(from), "+D"(to), "+c"(count) : : "memory");
	expect(1, 0x800, 64);
	cr_expect_eq(count, 0);
	cr_expect_eq(to, uar + 0x840);
}

/** These tests end by a signal, without cleanup. */
Test(krn_trap, what_is_no_store_ends_the_program, .signal = SIGABRT)
{
	border_teardown();
	broken_rule_expect("accessed by an instruction that trap mode cannot carry out");
	__asm__ volatile("lock addl $1, (%0)" : : "r"(uar + 0x800) : "memory", "cc");
}

Test(krn_trap, a_store_over_the_end_of_a_page_ends_the_program, .signal = SIGABRT)
{
	border_teardown();
	broken_rule_expect("a store of 16 bytes runs over the end of a UAR page");
	__asm__ volatile("movups %%xmm1, (%0)" : : "r"(uar + MDL_PAGE - 8) : "memory");
}

/* ---- other signals that end the program ---- */

/* Checks that the act ends a child by SIGSEGV, and with a line that contains the words. */
static void expect_death(void (*act)(void), const char *words)
{
	int said = memfd_create("said", MFD_CLOEXEC), status = 0;
	char line[512] = { 0 };
	pid_t pid = fork();

	if (!pid) {
		dup2(said, STDERR_FILENO);
		signal(SIGSEGV, SIG_DFL);
		krn_trap_arm();
		act();
		_exit(0);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "status %#x", status);
	cr_expect(pread(said, line, sizeof(line) - 1, 0) > 0);
	cr_expect(strstr(line, words), "%s", line);
	close(said);
}

static void send_the_signal(void)
{
	raise(SIGSEGV);
}

/* In assembly, as a compiler or a sanitizer would do something else. */
static void store_nowhere(void)
{
	__asm__ volatile("movl $1, (%0)" : : "r"(64ul) : "memory");
}

Test(krn_trap, a_signal_that_was_sent_ends_the_program)
{
	expect_death(send_the_signal, "signal 11, sent by process");
}

Test(krn_trap, a_fault_elsewhere_ends_the_program)
{
	expect_death(store_nowhere, "an access to 0x40, which is no UAR page");
}
