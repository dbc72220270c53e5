/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tokens arrive once and in order; a client that stops between two instructions delays no other;
 * words that make no sense cost a bounded time.
 */
#include "local/crl_tokens.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "support/rng.h"

#define WORDS 8u

static struct crl_tokens new_tokens(void)
{
	struct crl_tokens tokens;
	void *mem = aligned_alloc(UTIL_CACHE_LINE, util_align_up(crl_tokens_bytes(WORDS), 64));

	memset(mem, 0, crl_tokens_bytes(WORDS));
	crl_tokens_init(&tokens, mem, WORDS);
	return tokens;
}

static uint32_t take(struct crl_tokens *tokens)
{
	uint32_t client = UINT32_MAX;

	cr_assert_eq(crl_tokens_take(tokens, &client), CRL_TOKEN_CLIENT);
	return client;
}

Test(crl_tokens, three_laps_full_and_empty)
{
	struct crl_tokens tokens = new_tokens();
	uint32_t client;

	for (int lap = 0; lap < 3; lap++) {
		cr_assert_eq(crl_tokens_take(&tokens, &client), CRL_TOKEN_NONE);
		cr_assert_not(crl_tokens_ready(&tokens));
		for (uint32_t i = 0; i < WORDS; i++)
			cr_assert(crl_tokens_put(&tokens, 1000 + i));
		cr_assert_not(crl_tokens_put(&tokens, 5), "full");
		cr_assert(crl_tokens_ready(&tokens));
		for (uint32_t i = 0; i < WORDS; i++)
			cr_assert_eq(take(&tokens), 1000 + i);
	}
	free(tokens.mem);
}

Test(crl_tokens, laps_continue_where_their_number_overflows)
{
	struct crl_tokens tokens = new_tokens();
	uint64_t pos = (uint64_t)UINT32_MAX * WORDS + WORDS - 2;

	for (uint64_t i = 0; i < WORDS; i++)
		atomic_store(&tokens.mem->words[(pos + i) % WORDS], (pos + i) / WORDS << 32);
	atomic_store(&tokens.mem->head, pos);
	tokens.pos = pos;
	for (uint32_t i = 0; i < 3 * WORDS; i++) {
		cr_assert(crl_tokens_put(&tokens, i));
		cr_assert_eq(take(&tokens), i);
	}
	free(tokens.mem);
}

Test(crl_tokens, a_client_that_stops_before_it_advances_the_hint_delays_no_other)
{
	struct crl_tokens tokens = new_tokens();

	for (uint32_t i = 0; i < 100; i++) {
		cr_assert(crl_tokens_put(&tokens, 1));
		atomic_fetch_sub(&tokens.mem->head, 1);
		cr_assert(crl_tokens_put(&tokens, 2));
		cr_assert_eq(take(&tokens), 1);
		cr_assert_eq(take(&tokens), 2);
	}
	free(tokens.mem);
}

Test(crl_tokens, a_hint_that_is_laps_old_is_passed)
{
	struct crl_tokens tokens = new_tokens();

	for (uint32_t i = 0; i < WORDS; i++) {
		cr_assert(crl_tokens_put(&tokens, 1));
		take(&tokens);
	}
	atomic_store(&tokens.mem->head, 0);
	cr_assert(crl_tokens_put(&tokens, 2));
	cr_assert_eq(take(&tokens), 2);
	free(tokens.mem);
}

Test(crl_tokens, a_hint_that_went_back_to_any_position_costs_no_token_and_no_order)
{
	struct crl_tokens tokens = new_tokens();
	struct rng rng = { .state = 7 };
	uint32_t put = 0, taken = 0;

	for (int step = 0; step < 20000; step++) {
		bool full = put - taken == WORDS;

		atomic_store(&tokens.mem->head, rng_below(&rng, put + 1));
		cr_assert_eq(crl_tokens_put(&tokens, put), !full, "step %d", step);
		put += !full;
		for (uint64_t i = rng_below(&rng, 3); i && taken < put; i--)
			cr_assert_eq(take(&tokens), taken++);
	}
	free(tokens.mem);
}

Test(crl_tokens, the_first_try_succeeds_where_the_hint_is_right_only)
{
	struct crl_tokens tokens = new_tokens();

	cr_assert(crl_tokens_put_first(&tokens, 1));
	cr_assert(crl_tokens_put_first(&tokens, 2));
	atomic_store(&tokens.mem->head, 1);
	cr_assert_not(crl_tokens_put_first(&tokens, 3), "filled");
	cr_assert_eq(take(&tokens), 1);
	atomic_store(&tokens.mem->head, 0);
	cr_assert_not(crl_tokens_put_first(&tokens, 3), "empty in a later lap");
	cr_assert(crl_tokens_put(&tokens, 3));
	cr_assert_eq(take(&tokens), 2);
	cr_assert_eq(take(&tokens), 3);
	free(tokens.mem);
}

Test(crl_tokens, a_repaired_hint_makes_room_again)
{
	struct crl_tokens tokens = new_tokens();

	atomic_store(&tokens.mem->head, 40 * WORDS);
	cr_assert_not(crl_tokens_put(&tokens, 1));
	crl_tokens_repair(&tokens);
	cr_assert(crl_tokens_put(&tokens, 1));
	cr_assert_eq(take(&tokens), 1);
	free(tokens.mem);
}

/* Any words at all: every call ends, and the server passes each of them. */
Test(crl_tokens, random_words_are_emptied_one_by_one)
{
	struct crl_tokens tokens = new_tokens();
	struct rng rng = { .state = 1 };
	uint32_t client;

	for (int run = 0; run < 1000; run++) {
		for (uint32_t i = 0; i < WORDS; i++)
			atomic_store(&tokens.mem->words[i], rng_next(&rng) >> (run % 64));
		atomic_store(&tokens.mem->head, rng_next(&rng) >> (run % 64));
		crl_tokens_put(&tokens, 3);
		for (uint32_t i = 0; i < 2 * WORDS; i++)
			crl_tokens_take(&tokens, &client);
		while (crl_tokens_take(&tokens, &client) != CRL_TOKEN_NONE)
			;
		crl_tokens_repair(&tokens);
	}
	free(tokens.mem);
}
