/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ring of the clients that have requests, shared by all clients of a delegation server. Called by
 * crl_client.c (crl_tokens_put) and crl_take.c (crl_tokens_take).
 *
 * A word of the ring is either empty or a token: the id of a client. Both carry the lap, the
 * position divided by the number of words. A client claims a position and fills it with one
 * compare-and-swap from "empty in this lap" to its token. There is no state between claim and
 * commit, so a client that dies or is stopped at any instruction leaves no hole and delays no other
 * client. The server empties a word for the next lap, which is the release: there is no tail.
 *
 * `head` is a hint where the next empty word is. A client stores the position behind its token, and
 * may do so late, so that the hint goes back. A client that begins at an old position finds a word
 * of a later lap there and goes on from the oldest position that can still be empty, or finds a
 * filled word and looks at the next one.
 *
 * A token says only that the client should be looked at; the request itself is in the client's own
 * ring. A token that is lost, doubled or forged costs a look. Each client has at most one token
 * out (crl_control.token), so a ring of two words a client is never full of honest tokens.
 *
 * Every process of the channel can write this memory. A client that writes garbage costs the server
 * one look at each client and can neither read nor write their requests and responses.
 */
#ifndef LOCAL_CRL_TOKENS_H
#define LOCAL_CRL_TOKENS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/bits.h"

/** Shared part. Zeroed memory is an empty ring. */
struct crl_tokens_mem {
	_Alignas(UTIL_CACHE_LINE) _Atomic uint64_t head; /* hint: position of an empty word */
	_Alignas(UTIL_CACHE_LINE) _Atomic uint64_t words[];
};

/** One process's view; private memory. */
struct crl_tokens {
	struct crl_tokens_mem *mem;
	uint32_t mask;  /* words - 1 */
	uint32_t shift; /* log2 of words */
	uint64_t pos;   /* server: next word to look at */
};

/** Result of crl_tokens_take. */
enum crl_token {
	CRL_TOKEN_NONE,
	CRL_TOKEN_CLIENT,  /* a client's id was stored */
	CRL_TOKEN_INVALID, /* the word made no sense, and was emptied */
};

/** Returns the number of words for so many clients. */
static inline uint32_t crl_tokens_count(uint32_t clients)
{
	return 2 * (uint32_t)util_pow2_ceil(clients);
}

static inline size_t crl_tokens_bytes(uint32_t words)
{
	return sizeof(struct crl_tokens_mem) + words * sizeof(uint64_t);
}

#define CRL_TOKEN_FULL (1ull << 31)

/** Returns the empty word of the lap of `pos`. */
static inline uint64_t crl_tokens_empty(const struct crl_tokens *tokens, uint64_t pos)
{
	return (pos >> tokens->shift) << 32;
}

static inline _Atomic uint64_t *crl_tokens_at(const struct crl_tokens *tokens, uint64_t pos)
{
	return &tokens->mem->words[pos & tokens->mask];
}

/**
 * Returns true if no token of a client is out; the client puts one. token: its crl_control.token.
 * Only the client sets the word, so one that is 0 stays 0. Otherwise the server may be about to
 * clear it, and both sides exchange it.
 */
UTIL_INLINE bool crl_tokens_claim(_Atomic uint32_t *token)
{
	if (atomic_load_explicit(token, memory_order_relaxed))
		return !atomic_exchange_explicit(token, 1, memory_order_acq_rel);
	atomic_store_explicit(token, 1, memory_order_relaxed);
	return true;
}

/** Describes the ring at `mem`. words: a power of two. */
void crl_tokens_init(struct crl_tokens *tokens, void *mem, uint32_t words);

/**
 * Fills the word at `pos` if it is empty in that lap. Otherwise returns false and stores the word
 * that is there.
 */
UTIL_INLINE bool crl_tokens_fill(struct crl_tokens *tokens, uint64_t pos, uint32_t client,
				 uint64_t *word)
{
	uint64_t empty = crl_tokens_empty(tokens, pos);

	*word = empty;
	if (!atomic_compare_exchange_strong_explicit(crl_tokens_at(tokens, pos), word,
						     empty | CRL_TOKEN_FULL | client,
						     memory_order_release, memory_order_relaxed))
		return false;
	atomic_store_explicit(&tokens->mem->head, pos + 1, memory_order_relaxed);
	return true;
}

/** Puts a token of `client` where the hint says. Returns false if that word is not empty. */
UTIL_INLINE bool crl_tokens_put_first(struct crl_tokens *tokens, uint32_t client)
{
	uint64_t word;

	return crl_tokens_fill(tokens,
			       atomic_load_explicit(&tokens->mem->head, memory_order_relaxed),
			       client, &word);
}

/**
 * Puts a token of `client`. Returns false after a bounded number of steps: there is no room, or
 * other clients filled the ring at least once meanwhile. The caller tries again.
 */
bool crl_tokens_put(struct crl_tokens *tokens, uint32_t client);

/** Returns true if the next word is not empty. */
static inline bool crl_tokens_ready(const struct crl_tokens *tokens)
{
	return atomic_load_explicit(crl_tokens_at(tokens, tokens->pos), memory_order_relaxed) !=
	       crl_tokens_empty(tokens, tokens->pos);
}

/** Takes the oldest token and stores its client, not checked. */
static inline enum crl_token crl_tokens_take(struct crl_tokens *tokens, uint32_t *client)
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

/** Points the hint to the server's position, where it may have been moved away from. */
void crl_tokens_repair(struct crl_tokens *tokens);

#endif
