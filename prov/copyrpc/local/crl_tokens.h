/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ring of the clients that have requests, shared by all clients of a delegation server. Called by
 * crl_client.c (crl_tokens_put) and crl_take.c (crl_tokens_take).
 *
 * A word of the ring is either empty or a token: the id of a client. Both carry the lap, the
 * position divided by the number of words. A client claims a position and fills it with one
 * compare-and-swap from "empty in this lap" to its token. There is no state between claim and
 * commit, so a client that dies or is stopped at any instruction leaves no hole and delays no other
 * client. `head` is a hint where the next empty word is: a client that finds the word filled
 * advances it for the one that filled it. The server empties a word for the next lap, which is the
 * release: there is no tail.
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

/** Describes the ring at `mem`. words: a power of two. */
void crl_tokens_init(struct crl_tokens *tokens, void *mem, uint32_t words);

/**
 * Puts a token of `client`. Returns false after a bounded number of steps: there is no room, or
 * other clients filled the ring at least once meanwhile. The caller tries again.
 */
bool crl_tokens_put(struct crl_tokens *tokens, uint32_t client);

/** Takes the oldest token and stores its client, not checked. */
enum crl_token crl_tokens_take(struct crl_tokens *tokens, uint32_t *client);

/** Returns true if the next word is not empty. */
bool crl_tokens_ready(const struct crl_tokens *tokens);

/** Points the hint to the server's position, where it may have been moved away from. */
void crl_tokens_repair(struct crl_tokens *tokens);

#endif
