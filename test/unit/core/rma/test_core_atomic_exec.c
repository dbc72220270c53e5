/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Execution of atomic operations: elements change atomically, and no other memory changes. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "core/rma/core_atomic_exec.h"
#include "support/rng.h"
#include "unit/core/must.h"

#define COUNT_MAX 9u
#define BYTES_MAX (COUNT_MAX * 32u)

static void fill(struct rng *r, uint8_t *bytes, size_t len)
{
	/* Few different values make comparisons succeed and fail. */
	for (size_t i = 0; i < len; i++)
		bytes[i] = rng_chance(r, 1, 2) ? 0 : (uint8_t)rng_below(r, 4);
}

/* Compares each pair of operation and type, at legal alignments, with core_atomic_math. */
Test(core_atomic_exec, arrays_are_updated_element_by_element)
{
	_Alignas(64) uint8_t target[64 + BYTES_MAX + 64], model[sizeof(target)];
	uint8_t operand[BYTES_MAX + 1], compare[BYTES_MAX + 1], result[BYTES_MAX + 3];
	struct rng r = { 3 };

	for (unsigned round = 0; round < 60; round++) {
		for (unsigned type = 0; type < CORE_ATOMIC_TYPES; type++) {
			size_t size = core_atomic_size(type);

			for (unsigned op = 0; op < CORE_ATOMIC_OPS; op++) {
				size_t align = core_atomic_align(type);
				size_t off = 64 - align * rng_below(&r, 32 / align + 1);
				size_t count = rng_below(&r, COUNT_MAX) + 1;
				bool swap = op >= FI_CSWAP && op <= FI_MSWAP;
				bool wants = swap || rng_chance(&r, 1, 2);
				core_atomic_fn *fn = core_atomic_math(type, op);

				if (!fn)
					continue;
				fill(&r, target, sizeof(target));
				fill(&r, operand, sizeof(operand));
				fill(&r, compare, sizeof(compare));
				memcpy(model, target, sizeof(model));
				memset(result, 0xEE, sizeof(result));
				MUST(core_atomic_is_aligned(type, target + off));
				core_atomic_exec(type, op, target + off,
						 core_atomic_has_operand(op) ? operand + 1 : NULL,
						 swap ? compare + 1 : NULL,
						 wants ? result + 1 : NULL, count);
				MUST(result[0] == 0xEE && result[1 + count * size] == 0xEE);
				MUST(!wants || !memcmp(result + 1, model + off, count * size));
				for (size_t i = 0; i < count; i++)
					fn(type, model + off + i * size, operand + 1 + i * size,
					   compare + 1 + i * size);
				MUST(!memcmp(model, target, sizeof(model)));
			}
		}
	}
}

Test(core_atomic_exec, alignment_is_that_of_the_type)
{
	for (unsigned type = 0; type < CORE_ATOMIC_TYPES; type++) {
		for (uintptr_t addr = 64; addr < 128; addr++)
			MUST(core_atomic_is_aligned(type, (void *)addr) ==
			     (addr % core_atomic_align(type) == 0));
	}
}

Test(core_atomic_exec, reads_and_failed_swaps_do_not_write)
{
	void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t one[32] = { 1 }, old[32];

	MUST(page != MAP_FAILED);
	for (unsigned type = 0; type < CORE_ATOMIC_TYPES; type++) {
		memset(old, 0xEE, sizeof(old));
		core_atomic_exec(type, FI_ATOMIC_READ, page, NULL, NULL, old, 1);
		MUST(old[0] == 0 && old[core_atomic_size(type) - 1] == 0);
		core_atomic_exec(type, FI_CSWAP, page, one, one, old, 1);
		MUST(old[0] == 0);
	}
	munmap(page, 4096);
}

/*
 * Threads add to the same elements: no update is lost, no old value returned twice. The application
 * adds to the first element with its own instructions.
 */
#define THREADS 4u
#define ROUNDS  20000u

struct adder {
	unsigned type;
	void *target;
	bool is_application;
};

static void *adder_run(void *arg)
{
	struct adder *a = arg;
	uint8_t one[32] = { 1 };

	if (a->type == FI_DOUBLE_COMPLEX || a->type == FI_DOUBLE)
		memcpy(one, &(double){ 1 }, sizeof(double));
	if (a->type == FI_LONG_DOUBLE_COMPLEX)
		memcpy(one, &(long double){ 1 }, sizeof(long double));
	for (unsigned i = 0; i < ROUNDS; i++) {
		if (a->is_application && a->type == FI_UINT64)
			__atomic_fetch_add((uint64_t *)a->target, 1, __ATOMIC_RELAXED);
		else if (a->is_application && a->type == FI_INT8)
			__atomic_fetch_add((uint8_t *)a->target, 1, __ATOMIC_RELAXED);
		else
			core_atomic_exec(a->type, FI_SUM, a->target, one, NULL, NULL, 1);
	}
	return NULL;
}

static void add_together(unsigned type, void *target)
{
	struct adder adders[THREADS];
	pthread_t threads[THREADS];

	for (unsigned i = 0; i < THREADS; i++) {
		adders[i] = (struct adder){ type, target, i == 0 };
		MUST(!pthread_create(&threads[i], NULL, adder_run, &adders[i]));
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

Test(core_atomic_exec, no_update_of_threads_or_application_is_lost)
{
	_Alignas(64) uint8_t memory[128] = { 0 };
	uint64_t sum;
	double real;
	long double wide;

	add_together(FI_UINT64, memory);
	memcpy(&sum, memory, sizeof(sum));
	MUST(sum == THREADS * ROUNDS);

	memset(memory, 0, sizeof(memory));
	add_together(FI_INT8, memory + 3);
	MUST(memory[3] == (uint8_t)(THREADS * ROUNDS) && !memory[2] && !memory[4]);

	memset(memory, 0, sizeof(memory));
	add_together(FI_INT128, memory);
	memcpy(&sum, memory, sizeof(sum));
	MUST(sum == THREADS * ROUNDS);

	memset(memory, 0, sizeof(memory));
	add_together(FI_DOUBLE, memory);
	memcpy(&real, memory, sizeof(real));
	MUST(real == THREADS * ROUNDS);

	/* 16 bytes without alignment, and a type larger than a word. */
	memset(memory, 0, sizeof(memory));
	add_together(FI_DOUBLE_COMPLEX, memory + 8);
	memcpy(&real, memory + 8, sizeof(real));
	MUST(real == THREADS * ROUNDS);

	memset(memory, 0, sizeof(memory));
	add_together(FI_LONG_DOUBLE_COMPLEX, memory);
	memcpy(&wide, memory, sizeof(wide));
	MUST(wide == THREADS * ROUNDS);
}

/* Writes pairs of equal halves in one thread; reads must return equal halves. */
static void *pair_writer(void *target)
{
	for (uint64_t i = 0; i < ROUNDS; i++) {
		uint64_t pair[2] = { i, i };

		core_atomic_exec(FI_UINT128, FI_ATOMIC_WRITE, target, pair, NULL, NULL, 1);
	}
	return NULL;
}

Test(core_atomic_exec, sixteen_bytes_are_never_torn)
{
	_Alignas(64) uint64_t target[2] = { 0 };
	uint64_t pair[2] = { 0 };
	pthread_t thread;

	MUST(!pthread_create(&thread, NULL, pair_writer, target));
	while (pair[0] != ROUNDS - 1) {
		core_atomic_exec(FI_UINT128, FI_ATOMIC_READ, target, NULL, NULL, pair, 1);
		MUST(pair[0] == pair[1]);
	}
	pthread_join(thread, NULL);
}
