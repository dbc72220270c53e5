/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tests of copies between regions of this process. */
#include "unit/model/kernel/border_bench.h"

#include "model/fabric/mdl_nic.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>

#define ROUNDS 2000000u

TestSuite(krn_mem, .init = border_setup, .fini = border_teardown, .timeout = 200);

static struct mdl_mr region(void *at, uint64_t addr)
{
	return (struct mdl_mr){
		.proc = mdl_self.slot, .addr = addr, .user_addr = (uintptr_t)at, .length = MDL_PAGE
	};
}

Test(krn_mem, bytes_of_any_length_and_place_move)
{
	uint8_t from[64], to[64], expected[64];
	struct mdl_mr source = region(from, 0x1000), target = region(to, 0x5000);

	for (uint32_t i = 0; i < sizeof(from); i++)
		from[i] = (uint8_t)(i + 1);
	for (uint32_t len = 0; len <= 17; len++) {
		for (uint32_t at = 0; at < 9; at++) {
			memset(to, 0, sizeof(to));
			memset(expected, 0, sizeof(expected));
			memcpy(expected + 8 - at, from + at, len);
			cr_assert_eq(krn_mem_copy(&target, 0x5008 - at, &source, 0x1000 + at, len),
				     0);
			cr_assert_arr_eq(to, expected, sizeof(to), "%u bytes at %u", len, at);
		}
	}
}

static uint64_t word;
static bool is_over;

static void *count(void *arg)
{
	while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
		__atomic_store_n(&word, 0x3e0, __ATOMIC_RELAXED);
		__atomic_store_n(&word, 0x400, __ATOMIC_RELAXED);
	}
	return NULL;
}

Test(krn_mem, a_word_that_changes_meanwhile_moves_whole)
{
	uint64_t seen = 0x3e0;
	struct mdl_mr source = region(&word, 0), target = region(&seen, 0);
	pthread_t thread;

	word = 0x3e0;
	cr_assert_eq(pthread_create(&thread, NULL, count, NULL), 0);
	for (uint32_t i = 0; i < ROUNDS && (seen == 0x3e0 || seen == 0x400); i++)
		krn_mem_copy(&target, 0, &source, 0, sizeof(word));
	__atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	cr_expect(seen == 0x3e0 || seen == 0x400, "%#lx", (unsigned long)seen);
}
