/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Atomic updates of elements, one loop per width: see core_atomic_exec.h. */
#include "core/rma/core_atomic_exec.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

/* Operands and result of the next element. */
struct core_atomic_args {
	core_atomic_fn *fn;
	unsigned type;
	const uint8_t *operand; /* or NULL */
	const uint8_t *compare; /* or NULL */
	uint8_t *result;        /* or NULL */
	size_t size;
};

static void core_atomic_next(struct core_atomic_args *args, const void *old)
{
	if (args->result) {
		memcpy(args->result, old, args->size);
		args->result += args->size;
	}
	if (args->operand)
		args->operand += args->size;
	if (args->compare)
		args->compare += args->size;
}

/* Loop over elements of a width that the processor can compare and exchange. */
#define CORE_ATOMIC_LOOP(name, word, load, exchange)                                               \
	static void name(word *target, struct core_atomic_args *args, size_t count)                \
	{                                                                                          \
		word old, new;                                                                     \
                                                                                                   \
		for (; count; count--, target++) {                                                 \
			old = load(target);                                                        \
			do {                                                                       \
				new = old;                                                         \
				if (!args->fn(args->type, &new, args->operand, args->compare))     \
					break;                                                     \
			} while (!exchange(target, &old, new));                                    \
			core_atomic_next(args, &old);                                              \
		}                                                                                  \
	}

#define CORE_ATOMIC_LOAD(target) __atomic_load_n(target, __ATOMIC_SEQ_CST)
#define CORE_ATOMIC_EXCHANGE(target, old, new)                                                     \
	__atomic_compare_exchange_n(target, old, new, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)

CORE_ATOMIC_LOOP(core_atomic_exec_8, uint8_t, CORE_ATOMIC_LOAD, CORE_ATOMIC_EXCHANGE)
CORE_ATOMIC_LOOP(core_atomic_exec_16, uint16_t, CORE_ATOMIC_LOAD, CORE_ATOMIC_EXCHANGE)
CORE_ATOMIC_LOOP(core_atomic_exec_32, uint32_t, CORE_ATOMIC_LOAD, CORE_ATOMIC_EXCHANGE)
CORE_ATOMIC_LOOP(core_atomic_exec_64, uint64_t, CORE_ATOMIC_LOAD, CORE_ATOMIC_EXCHANGE)

#ifdef __x86_64__
__extension__ typedef unsigned __int128 core_atomic_word128;

static inline core_atomic_word128 core_atomic_load128(const core_atomic_word128 *target)
{
	typedef long long vector __attribute__((vector_size(16), may_alias));
	core_atomic_word128 value;
	vector v;

	__asm__ volatile("movdqa %1, %0" : "=x"(v) : "m"(*target) : "memory");
	memcpy(&value, &v, sizeof(value));
	return value;
}

static inline bool core_atomic_exchange128(core_atomic_word128 *target, core_atomic_word128 *old,
					   core_atomic_word128 new)
{
	uint64_t low = (uint64_t)*old, high = (uint64_t)(*old >> 64);
	bool done;

	__asm__ volatile("lock cmpxchg16b %1"
			 : "=@ccz"(done), "+m"(*target), "+a"(low), "+d"(high)
			 : "b"((uint64_t) new), "c"((uint64_t)(new >> 64))
			 : "memory");
	*old = (core_atomic_word128)high << 64 | low;
	return done;
}

CORE_ATOMIC_LOOP(core_atomic_exec_128, core_atomic_word128, core_atomic_load128,
		 core_atomic_exchange128)

static bool core_atomic_try_128(void *target, struct core_atomic_args *args, size_t count)
{
	/* Every processor with AVX has cmpxchg16b. */
	if ((uintptr_t)target & 15 || !__builtin_cpu_supports("avx"))
		return false;
	core_atomic_exec_128(target, args, count);
	return true;
}
#else
static bool core_atomic_try_128(void *target, struct core_atomic_args *args, size_t count)
{
	return false;
}
#endif

#define CORE_ATOMIC_SIZE_MAX 32u /* FI_LONG_DOUBLE_COMPLEX */

/** Updates elements that no instruction covers, under a lock of the process. */
static void core_atomic_exec_locked(uint8_t *target, struct core_atomic_args *args, size_t count)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	uint8_t old[CORE_ATOMIC_SIZE_MAX], new[CORE_ATOMIC_SIZE_MAX];

	assert(args->size <= sizeof(old));
	pthread_mutex_lock(&lock);
	for (; count; count--, target += args->size) {
		memcpy(old, target, args->size);
		memcpy(new, old, args->size);
		if (args->fn(args->type, new, args->operand, args->compare))
			memcpy(target, new, args->size);
		core_atomic_next(args, old);
	}
	pthread_mutex_unlock(&lock);
}

void core_atomic_exec(unsigned type, unsigned op, void *target, const void *operand,
		      const void *compare, void *result, size_t count)
{
	struct core_atomic_args args = {
		.fn = core_atomic_math(type, op),
		.type = type,
		.operand = operand,
		.compare = compare,
		.result = result,
		.size = core_atomic_size(type),
	};
	bool is_word = ((uintptr_t)target & (args.size - 1)) == 0;

	assert(args.fn && core_atomic_is_aligned(type, target));
	if (args.size == 1)
		core_atomic_exec_8(target, &args, count);
	else if (args.size == 2 && is_word)
		core_atomic_exec_16(target, &args, count);
	else if (args.size == 4 && is_word)
		core_atomic_exec_32(target, &args, count);
	else if (args.size == 8 && is_word)
		core_atomic_exec_64(target, &args, count);
	else if (args.size != 16 || !core_atomic_try_128(target, &args, count))
		core_atomic_exec_locked(target, &args, count);
}
