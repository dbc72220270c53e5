/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Ring of the clients that have requests (crl_tokens.h has the algorithm). */
#include "local/crl_tokens.h"

#define CRL_TOKEN_FULL (1ull << 31)

/* Returns the empty word of the lap of `pos`. */
static inline uint64_t crl_tokens_empty(const struct crl_tokens *tokens, uint64_t pos)
{
	return (pos >> tokens->shift) << 32;
}

static inline _Atomic uint64_t *crl_tokens_at(const struct crl_tokens *tokens, uint64_t pos)
{
	return &tokens->mem->words[pos & tokens->mask];
}

void crl_tokens_init(struct crl_tokens *tokens, void *mem, uint32_t words)
{
	*tokens = (struct crl_tokens){
		.mem = mem,
		.mask = words - 1,
		.shift = (uint32_t)__builtin_ctz(words),
	};
}

/* Advances the hint beyond `pos`, unless another client did. Returns the next position to try. */
static uint64_t crl_tokens_pass(struct crl_tokens *tokens, uint64_t pos)
{
	uint64_t head = pos;

	if (atomic_compare_exchange_strong_explicit(&tokens->mem->head, &head, pos + 1,
						    memory_order_relaxed, memory_order_relaxed))
		return pos + 1;
	/* A client that was not scheduled for a while skips all that was put meanwhile. */
	return (int64_t)(head - pos) > 0 ? head : pos + 1;
}

bool crl_tokens_put(struct crl_tokens *tokens, uint32_t client)
{
	uint64_t pos = atomic_load_explicit(&tokens->mem->head, memory_order_relaxed);

	for (uint32_t steps = 2 * (tokens->mask + 1); steps; steps--) {
		uint64_t empty = crl_tokens_empty(tokens, pos);
		uint64_t word = empty;

		if (atomic_compare_exchange_strong_explicit(
			    crl_tokens_at(tokens, pos), &word, empty | CRL_TOKEN_FULL | client,
			    memory_order_release, memory_order_relaxed)) {
			crl_tokens_pass(tokens, pos);
			return true;
		}
		if ((int32_t)((uint32_t)(word >> 32) - (uint32_t)(empty >> 32)) < 0)
			return false;
		pos = crl_tokens_pass(tokens, pos);
	}
	return false;
}

bool crl_tokens_ready(const struct crl_tokens *tokens)
{
	return atomic_load_explicit(crl_tokens_at(tokens, tokens->pos), memory_order_relaxed) !=
	       crl_tokens_empty(tokens, tokens->pos);
}

enum crl_token crl_tokens_take(struct crl_tokens *tokens, uint32_t *client)
{
	uint64_t empty = crl_tokens_empty(tokens, tokens->pos);
	_Atomic uint64_t *at = crl_tokens_at(tokens, tokens->pos);
	uint64_t word = atomic_load_explicit(at, memory_order_acquire);

	if (word == empty)
		return CRL_TOKEN_NONE;
	tokens->pos++;
	atomic_store_explicit(at, empty + (1ull << 32), memory_order_release);
	*client = (uint32_t)word & ~(uint32_t)CRL_TOKEN_FULL;
	return word >> 31 == (empty >> 31 | 1) ? CRL_TOKEN_CLIENT : CRL_TOKEN_INVALID;
}

void crl_tokens_repair(struct crl_tokens *tokens)
{
	atomic_store_explicit(&tokens->mem->head, tokens->pos, memory_order_relaxed);
}
