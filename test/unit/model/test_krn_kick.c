/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests of kick mode: a rewritten store has its original effect for every thread, and other code is
 * unchanged.
 *
 * The stores are in a page of the test, far from other mappings, so that there is room for the
 * jumps: void place(void *to, uint64_t value).
 */
#include "unit/model/border_bench.h"

#include "model/krn_kick.h"
#include "model/krn_uar.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define CODE_AT ((char *)0x200000000000)

static char *uar, *code;
static uint32_t ctx;

typedef uint64_t (*place_fn)(void *to, uint64_t value);

static void new_page(void)
{
	code = mmap(CODE_AT, MDL_PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	cr_assert_eq(code, CODE_AT);
	memset(code, 0xcc, MDL_PAGE);
}

static void setup(void)
{
	setenv("COPYRPC_HCA_MODE", "kick", 1);
	border_setup();
	ctx = border_open();
	uar = border_map_uar(ctx, 3);
	krn_trap_arm();
	new_page();
}

TestSuite(krn_kick, .init = setup, .fini = border_teardown);

static uint64_t counted(enum mdl_count_id id)
{
	return mdl_count_get(&mdl_self.proc->count, id);
}

/* Writes an instruction and a return. */
static place_fn put(uint32_t at, const char *bytes, size_t len)
{
	memcpy(code + at, bytes, len);
	code[at + len] = (char)0xc3;
	return (place_fn)(void *)(code + at);
}

#define PUT(at, bytes) put(at, bytes, sizeof(bytes) - 1)
#define MOV_RSI_TO_RDI "\x48\x89\x37"

static void expect_doorbell(uint32_t off, uint64_t value)
{
	cr_expect_eq(notes.off, off, "offset %#x", notes.off);
	cr_expect_eq(notes.len, 8, "%u bytes", notes.len);
	cr_expect_arr_eq(notes.bytes, &value, 8);
}

/*
 * The length of the instruction determines how many bytes of the jump can be chosen, and so the
 * method.
 */
Test(krn_kick, a_store_of_any_length_traps_once)
{
	static const struct {
		const char *bytes;
		size_t len;
	} stores[] = {
		{ MOV_RSI_TO_RDI, 3 },                     /* mov %rsi, (%rdi) */
		{ "\x48\x89\x77\x00", 4 },                 /* one byte of distance */
		{ "\x48\x89\x74\x27\x00", 5 },             /* and an index: none */
		{ "\x48\x89\xb7\x00\x00\x00\x00", 7 },     /* four */
		{ "\x48\x89\xb4\x27\x00\x00\x00\x00", 8 }, /* and an index */
		{ "\x48\x0f\xc3\x37", 4 },                 /* movnti */
	};

	for (uint32_t i = 0; i < sizeof(stores) / sizeof(stores[0]); i++) {
		place_fn place = put(i * 64, stores[i].bytes, stores[i].len);
		uint64_t traps = counted(MDL_CNT_TRAPS), kicks = counted(MDL_CNT_KICKS);

		for (uint64_t n = 1; n <= 10; n++) {
			place(uar + 0x800, n << 40 | n);
			expect_doorbell(0x800, n << 40 | n);
		}
		cr_expect_eq(counted(MDL_CNT_TRAPS) - traps, 1, "store %u: %lu", i,
			     (unsigned long)(counted(MDL_CNT_TRAPS) - traps));
		cr_expect_eq(counted(MDL_CNT_KICKS) - kicks, 9, "store %u", i);
	}
	cr_expect_eq(notes.writes, 60);
}

Test(krn_kick, all_of_a_copy_goes_with_its_first_store)
{
	static unsigned char wqe[64] __attribute__((aligned(64)));
	/* 4 x { movdqa n(%rsi), %xmm0; movntdq %xmm0, n(%rdi) }; ret */
	static const char copy[] = "\x66\x0f\x6f\x06\x66\x0f\xe7\x07"
				   "\x66\x0f\x6f\x46\x10\x66\x0f\xe7\x47\x10"
				   "\x66\x0f\x6f\x46\x20\x66\x0f\xe7\x47\x20"
				   "\x66\x0f\x6f\x46\x30\x66\x0f\xe7\x47\x30";
	place_fn place = PUT(0, copy);

	for (uint32_t n = 1; n <= 5; n++) {
		for (uint32_t i = 0; i < 64; i++)
			wqe[i] = (unsigned char)(i * n + 3);
		wqe[7] = 4;
		place(uar + 0x900, (uintptr_t)wqe);
		cr_expect_eq(notes.writes, n);
		cr_expect_eq(notes.len, 64);
		cr_expect_arr_eq(notes.bytes, wqe, 64);
	}
	cr_expect_eq(counted(MDL_CNT_TRAPS), 1);
	cr_expect_eq(counted(MDL_CNT_KICKS), 4);
}

Test(krn_kick, the_red_zone_is_the_programs)
{
	/*
	 * mov %rsi, -8(%rsp); mov %rsi, -128(%rsp); mov %rsi, (%rdi); mov -8(%rsp), %rax; add
	 * -128(%rsp), %rax
	 */
	place_fn place = PUT(0, "\x48\x89\x74\x24\xf8\x48\x89\x74\x24\x80" MOV_RSI_TO_RDI
				"\x48\x8b\x44\x24\xf8\x48\x03\x44\x24\x80");

	for (uint64_t n = 1; n < 5; n++)
		cr_expect_eq(place(uar + 0x800, n << 33), n << 34);
	cr_expect_eq(counted(MDL_CNT_KICKS), 3);
}

/*
 * Calls with a distinct number in every register but rsp. Registers and flags are unchanged
 * afterwards.
 */
Test(krn_kick, registers_and_flags_stay)
{
	uint64_t regs[17], *at;
	place_fn place = PUT(0, MOV_RSI_TO_RDI), to;

	for (uint64_t n = 0; n < 4; n++) {
		for (uint32_t i = 0; i < 17; i++)
			regs[i] = 0x1111111111111111u * (i + 1) + n;
		regs[5] = (uintptr_t)uar + 0x800;
		at = regs;
		to = place;
		__asm__ volatile(
			"push %%rbp\n\tpush %%rbx\n\tpush %%r15\n\tmov %0, %%r15\n\t"
			"push %1\n\tpush %%r15\n\t"
			"mov 0(%%r15), %%rax\n\tmov 8(%%r15), %%rcx\n\tmov 16(%%r15), %%rdx\n\t"
			"mov 24(%%r15), %%rbx\n\tmov 32(%%r15), %%rsi\n\tmov 40(%%r15), %%rdi\n\t"
			"mov 48(%%r15), %%rbp\n\tmov 56(%%r15), %%r8\n\tmov 64(%%r15), %%r9\n\t"
			"mov 72(%%r15), %%r10\n\tmov 80(%%r15), %%r11\n\tmov 88(%%r15), %%r12\n\t"
			"mov 96(%%r15), %%r13\n\tmov 104(%%r15), %%r14\n\tstc\n\t"
			"call *8(%%rsp)\n\t"
			"mov (%%rsp), %%r15\n\tsetc 128(%%r15)\n\t"
			"mov %%rax, 0(%%r15)\n\tmov %%rcx, 8(%%r15)\n\tmov %%rdx, 16(%%r15)\n\t"
			"mov %%rbx, 24(%%r15)\n\tmov %%rsi, 32(%%r15)\n\tmov %%rdi, 40(%%r15)\n\t"
			"mov %%rbp, 48(%%r15)\n\tmov %%r8, 56(%%r15)\n\tmov %%r9, 64(%%r15)\n\t"
			"mov %%r10, 72(%%r15)\n\tmov %%r11, 80(%%r15)\n\tmov %%r12, 88(%%r15)\n\t"
			"mov %%r13, 96(%%r15)\n\tmov %%r14, 104(%%r15)\n\t"
			"lea 16(%%rsp), %%rsp\n\tpop %%r15\n\tpop %%rbx\n\tpop %%rbp\n\t"
			: "+a"(at), "+c"(to)
			:
			: "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
			  "memory", "cc");
		for (uint32_t i = 0; i < 14; i++)
			if (i != 5)
				cr_expect_eq(regs[i], 0x1111111111111111u * (i + 1) + n,
					     "register %u, call %lu", i, (unsigned long)n);
		cr_expect_eq(regs[16] & 0xff, 1, "the carry flag");
		expect_doorbell(0x800, 0x1111111111111111u * 5 + n);
	}
	cr_expect_eq(counted(MDL_CNT_KICKS), 3);
}

Test(krn_kick, vector_registers_stay)
{
	static unsigned char in[64] __attribute__((aligned(64))), out[64];
	place_fn place = PUT(0, MOV_RSI_TO_RDI);

	if (!__builtin_cpu_supports("avx"))
		cr_skip("no AVX");
	for (uint32_t n = 0; n < 4; n++) {
		void *to = uar + 0x800;

		for (uint32_t i = 0; i < 64; i++)
			in[i] = (unsigned char)(i + n * 64 + 1);
		__asm__ volatile("vmovdqu (%2), %%ymm2\n\tvmovdqu 32(%2), %%ymm15\n\t"
				 "call *%3\n\t"
				 "vmovdqu %%ymm2, (%4)\n\tvmovdqu %%ymm15, 32(%4)\n\tvzeroupper"
				 : "+D"(to)
				 : "S"(1ul), "r"(in), "r"(place), "r"(out)
				 : "memory", "xmm2", "xmm15", "rax", "cc");
		cr_expect_arr_eq(out, in, 64, "call %u", n);
	}
	cr_expect_eq(counted(MDL_CNT_KICKS), 3);
}

Test(krn_kick, a_rewritten_store_to_memory_is_a_store_to_memory)
{
	place_fn place = PUT(0, MOV_RSI_TO_RDI);
	uint64_t word = 0;

	place(uar + 0x800, 1);
	for (uint64_t n = 1; n < 5; n++) {
		place(&word, n);
		cr_expect_eq(word, n);
	}
	cr_expect_eq(notes.writes, 1);
	place(uar + 0x800, 2);
	cr_expect_eq(notes.writes, 2);
	cr_expect_eq(counted(MDL_CNT_KICKS), 1);
}

/*
 * A jump over the second of two stores would change its bytes. The second store keeps them, and
 * traps when it is reached by itself.
 */
Test(krn_kick, the_bytes_behind_a_place_are_left_alone)
{
	place_fn both = PUT(0, MOV_RSI_TO_RDI "\x48\x89\x7f\x10");
	place_fn second = (place_fn)(void *)(code + 3);
	char after[5];

	memcpy(after, code + 3, sizeof(after));
	for (uint64_t n = 1; n < 4; n++)
		both(uar + 0x800, n);
	cr_expect_eq(counted(MDL_CNT_TRAPS), 1);
	cr_expect_arr_eq(code + 3, after, sizeof(after));
	for (uint64_t n = 1; n < 4; n++)
		second(uar + 0x800 - 0x10, n);
	cr_expect_eq(counted(MDL_CNT_TRAPS), 4, "each of them");
	cr_expect_arr_eq(code + 3, after, sizeof(after));
	both(uar + 0x900, 9);
	cr_expect_eq(counted(MDL_CNT_TRAPS), 4);
}

/* Another library is mapped at the address of an unloaded one. */
Test(krn_kick, other_code_at_the_same_place_is_other_code)
{
	place_fn place = PUT(0, MOV_RSI_TO_RDI);

	place(uar + 0x800, 1);
	place(uar + 0x800, 2);
	new_page();
	cr_expect_null(krn_kick_code((uintptr_t)CODE_AT));
	place = PUT(0, "\x48\x89\x7f\x08"); /* mov %rdi, 8(%rdi) */
	for (int n = 0; n < 3; n++) {
		place(uar + 0x900 - 8, 0);
		expect_doorbell(0x900, (uintptr_t)uar + 0x900 - 8);
	}
	cr_expect_eq(counted(MDL_CNT_TRAPS), 2);
	cr_expect_eq(counted(MDL_CNT_KICKS), 3);
}

Test(krn_kick, a_store_that_depends_on_where_it_stands_is_left_alone)
{
	char *near = mmap(CODE_AT + 16 * MDL_PAGE, MDL_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED,
			  krn_ctx_get(ctx)->fd, 4 * MDL_PAGE);
	place_fn place = PUT(0, "\x48\x89\x35\xf9\x07\x01\x00"); /* mov %rsi, 0x10800 - 7(%rip) */

	cr_assert_eq(near, CODE_AT + 16 * MDL_PAGE);
	krn_uar_find(ctx);
	for (uint64_t n = 1; n < 4; n++) {
		place(NULL, n);
		expect_doorbell(0x800, n);
	}
	cr_expect_eq(counted(MDL_CNT_TRAPS), 3);
	cr_expect_eq(counted(MDL_CNT_KICKS), 0);
}

Test(krn_kick, the_c_librarys_copies_are_left_alone)
{
	static unsigned char wqe[64];
	void *(*copy)(void *, const void *, size_t);

	/* The library's memcpy: a sanitizer interposes its own. */
	*(void **)&copy = dlsym(dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD), "memmove");
	cr_assert(copy);
	for (int n = 0; n < 3; n++)
		copy(uar + 0x900, wqe, 64);
	cr_expect_geq(counted(MDL_CNT_TRAPS), 3);
	cr_expect_eq(counted(MDL_CNT_KICKS), 0);
}

enum { THREADS = 4, PLACES = 32, CALLS = 200 };
static pthread_barrier_t barrier;

static void *ring_all(void *pages)
{
	for (uint32_t p = 0; p < PLACES; p++) {
		place_fn place = (place_fn)(void *)(code + p * 64 + p % 8);

		pthread_barrier_wait(&barrier);
		for (uint64_t n = 1; n <= CALLS; n++)
			place((char *)pages + 0x800, n);
	}
	return NULL;
}

/* All threads execute the store while the first rewrites it. */
Test(krn_kick, threads_that_run_into_it_lose_nothing)
{
	pthread_t threads[THREADS];

	for (uint32_t p = 0; p < PLACES; p++)
		PUT(p * 64 + p % 8, MOV_RSI_TO_RDI);
	pthread_barrier_init(&barrier, NULL, THREADS);
	for (uint32_t t = 0; t < THREADS; t++)
		cr_assert_eq(
			pthread_create(&threads[t], NULL, ring_all, border_map_uar(ctx, 4 + t % 4)),
			0);
	for (uint32_t t = 0; t < THREADS; t++)
		pthread_join(threads[t], NULL);
	cr_expect_eq(counted(MDL_CNT_TRAPS) + counted(MDL_CNT_KICKS), THREADS * PLACES * CALLS);
	cr_expect_geq(counted(MDL_CNT_KICKS), PLACES, "most places are rewritten by the end");
}

Test(krn_kick, a_child_has_its_own)
{
	place_fn place = PUT(0, MOV_RSI_TO_RDI);
	int status;
	pid_t pid;

	place(uar + 0x800, 1);
	place(uar + 0x800, 2);
	pid = fork();
	if (!pid) {
		uint64_t word = 0;

		place(&word, 7);
		uar = border_map_uar(border_open(), 3);
		place(uar + 0x800, 3);
		_exit(word == 7 && notes.writes == 3 ? 0 : 1);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0);
	place(uar + 0x800, 4);
	cr_expect_eq(notes.writes, 3);
}
