/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Ring of the clients that have requests (crl_tokens.h has the algorithm). */
#include "local/crl_tokens.h"

void crl_tokens_init(struct crl_tokens *tokens, void *mem, uint32_t words)
{
	*tokens = (struct crl_tokens){
		.mem = mem,
		.mask = words - 1,
		.shift = (uint32_t)__builtin_ctz(words),
	};
}

/*
 * Returns the position to try after `pos`, where `word` is and `laps` laps have gone by. A filled
 * word of a later lap shows that all words before it were filled in that lap. An empty one shows it
 * for the lap before: the first empty word may be any from there on.
 */
static uint64_t crl_tokens_next(const struct crl_tokens *tokens, uint64_t pos, uint64_t word,
				uint32_t laps)
{
	uint64_t ahead = laps - !(uint32_t)word;

	return pos + (ahead << tokens->shift) + 1;
}

bool crl_tokens_put(struct crl_tokens *tokens, uint32_t client)
{
	uint64_t pos = atomic_load_explicit(&tokens->mem->head, memory_order_relaxed);

	for (uint32_t steps = 2 * (tokens->mask + 1); steps; steps--) {
		uint64_t word;
		int32_t laps;

		if (crl_tokens_fill(tokens, pos, client, &word))
			return true;
		laps = (int32_t)((uint32_t)(word >> 32) - (uint32_t)(pos >> tokens->shift));
		if (laps < 0)
			return false;
		pos = crl_tokens_next(tokens, pos, word, (uint32_t)laps);
	}
	return false;
}

void crl_tokens_repair(struct crl_tokens *tokens)
{
	atomic_store_explicit(&tokens->mem->head, tokens->pos, memory_order_relaxed);
}
