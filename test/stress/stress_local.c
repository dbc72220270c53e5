/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Stress test of local channels with threads, at the smallest sizes.
 *
 * 1. The ring of tokens: what a client wrote before it announced itself is seen by the server.
 * 2. A flux of depth 1 in which every member calls, serves and sleeps; replies are deferred.
 * 3. A server and clients of depth 1 that connect, call, sleep and disconnect with calls open.
 *
 * Parts 1 and 2 are at one address for all threads, so that TSan sees their accesses; in part 3
 * each side has its own mapping, and TSan sees what the objects of a process share. A lost wakeup
 * or token stops the test. The suite builds it with TSan and with ASan.
 */
#include <copyrpc/flux.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "local/crl_tokens.h"
#include "support/check.h"
#include "support/rng.h"

#define CLIENTS 3
#define PUTS    20000
#define RETRIES 100 /* in a row; each follows puts of all the others */
#define CALLS   4000
#define LIVES   60
#define OPEN_MS 60000

/* ---- 1: tokens ---- */

static struct crl_tokens_mem *token_mem;
static uint32_t token_words;
static _Atomic uint32_t token_out[CLIENTS];
static uint64_t written[CLIENTS]; /* plain: ordered by the words above and by the reply */
static _Atomic uint64_t replied[CLIENTS];

static void put_token(struct crl_tokens *tokens, uint32_t me)
{
	uint32_t retries = 0;

	while (!crl_tokens_put(tokens, me))
		CHECK(++retries < RETRIES);
}

static void *put_tokens(void *arg)
{
	uint32_t me = (uint32_t)(uintptr_t)arg;
	struct crl_tokens tokens;

	crl_tokens_init(&tokens, token_mem, token_words);
	for (uint64_t i = 1; i <= PUTS; i++) {
		written[me] = i;
		if (i % 2 ? crl_tokens_claim(&token_out[me])
			  : !atomic_exchange_explicit(&token_out[me], 1, memory_order_acq_rel))
			put_token(&tokens, me);
		while (atomic_load_explicit(&replied[me], memory_order_acquire) != i)
			sched_yield();
	}
	return NULL;
}

static void take_tokens(void)
{
	uint64_t left = (uint64_t)CLIENTS * PUTS, seen[CLIENTS] = { 0 };
	struct crl_tokens tokens;
	uint32_t id;

	crl_tokens_init(&tokens, token_mem, token_words);
	while (left) {
		enum crl_token token = crl_tokens_take(&tokens, &id);

		CHECK(token != CRL_TOKEN_INVALID);
		if (token == CRL_TOKEN_NONE) {
			sched_yield();
			continue;
		}
		CHECK(id < CLIENTS);
		atomic_exchange_explicit(&token_out[id], 0, memory_order_acq_rel);
		CHECK(written[id] == ++seen[id]);
		atomic_store_explicit(&replied[id], seen[id], memory_order_release);
		left--;
	}
}

static void stress_tokens(void)
{
	pthread_t threads[CLIENTS];
	size_t len;

	token_words = (uint32_t)util_pow2_ceil(CLIENTS);
	len = util_align_up(crl_tokens_bytes(token_words), UTIL_CACHE_LINE);
	token_mem = aligned_alloc(UTIL_CACHE_LINE, len);
	memset(token_mem, 0, len);
	for (uintptr_t i = 0; i < CLIENTS; i++)
		CHECK(!pthread_create(&threads[i], NULL, put_tokens, (void *)i));
	take_tokens();
	for (int i = 0; i < CLIENTS; i++)
		pthread_join(threads[i], NULL);
	free(token_mem);
}

/* ---- 2: flux ---- */

static struct crl_flux *flux;
static _Atomic uint32_t finished; /* members that have all their responses */

struct member {
	struct crl_member *member;
	struct crl_request held; /* reply deferred */
	struct rng rng;
	uint32_t index, made, ended;
};

static void reply_to(struct member *m, const struct crl_request *request)
{
	uint32_t word;

	memcpy(&word, request->data, sizeof(word));
	word ^= m->index;
	CHECK(!crl_member_reply(m->member, request->handle, &word, sizeof(word)));
}

static bool serve_members(struct member *m)
{
	struct crl_request requests[CLIENTS];
	int n = crl_member_take(m->member, requests, CLIENTS);

	for (int i = 0; i < n; i++) {
		if (m->held.data)
			reply_to(m, &m->held);
		m->held = requests[i];
	}
	if (!n && m->held.data) {
		reply_to(m, &m->held);
		m->held.data = NULL;
		return true;
	}
	return n > 0;
}

static bool call_members(struct member *m)
{
	uint32_t to = (uint32_t)rng_below(&m->rng, CLIENTS);
	uint32_t word = m->made;
	int ret;

	if (m->made == CALLS)
		return false;
	ret = crl_member_call(m->member, to, &word, sizeof(word), (void *)(uintptr_t)word,
			      rng_chance(&m->rng, 1, 2) ? CRL_MORE : 0);
	CHECK(!ret || ret == -EAGAIN);
	m->made += !ret;
	return !ret;
}

static bool poll_members(struct member *m)
{
	struct crl_response responses[CLIENTS];
	int n = crl_member_poll(m->member, responses, CLIENTS);

	for (int i = 0; i < n; i++) {
		uint32_t word;

		CHECK(responses[i].len == sizeof(word) && !responses[i].status);
		memcpy(&word, responses[i].data, sizeof(word));
		CHECK(word == ((uint32_t)(uintptr_t)responses[i].context ^ responses[i].peer));
	}
	m->ended += (uint32_t)n;
	if (n && m->ended == CALLS)
		atomic_fetch_add(&finished, 1);
	return n > 0;
}

static void *run_member(void *arg)
{
	struct member *m = arg;

	while (atomic_load(&finished) < CLIENTS) {
		bool busy = serve_members(m);

		busy |= call_members(m);
		busy |= poll_members(m);
		/* Bounded at the end: the last response of all may be another member's. */
		if (!busy)
			crl_member_wait(m->member, m->ended == CALLS ? 10 : -1);
	}
	return NULL;
}

static void stress_flux(void)
{
	struct crl_options options = {
		.depth = 1, .request_max = 8, .response_max = 8, .spin_us = -1
	};
	struct member members[CLIENTS] = { 0 };
	pthread_t threads[CLIENTS];

	CHECK(!crl_flux_open(&flux, CLIENTS, &options));
	for (uint32_t i = 0; i < CLIENTS; i++) {
		members[i].member = crl_flux_member(flux, i);
		members[i].index = i;
		members[i].rng.state = i + 1;
		CHECK(!pthread_create(&threads[i], NULL, run_member, &members[i]));
	}
	for (int i = 0; i < CLIENTS; i++)
		pthread_join(threads[i], NULL);
	crl_flux_close(flux);
}

/* ---- 3: server and clients ---- */

static char name[64];
static _Atomic uint32_t clients_left;

/* Connects, though other clients may have all places. */
static struct crl_client *open_client(void)
{
	struct crl_client *client;
	int ret;

	while ((ret = crl_client_open(&client, name, OPEN_MS)) == -EUSERS)
		sched_yield();
	CHECK(!ret);
	return client;
}

static void call_once(struct crl_client *client, uint32_t word)
{
	struct crl_response response;

	CHECK(!crl_client_call(client, &word, sizeof(word), client, 0));
	CHECK(crl_client_call(client, &word, sizeof(word), client, 0) == -EAGAIN);
	CHECK(!crl_client_wait(client, -1));
	CHECK(crl_client_poll(client, &response, 1) == 1);
	CHECK(response.context == client && response.len == sizeof(word) && !response.status);
	CHECK(!memcmp(response.data, &word, sizeof(word)));
}

static void *run_lives(void *arg)
{
	struct rng rng = { .state = (uintptr_t)arg + 1 };

	for (int life = 0; life < LIVES; life++) {
		struct crl_client *client = open_client();

		for (uint64_t i = rng_below(&rng, 20); i; i--)
			call_once(client, (uint32_t)rng_next(&rng));
		if (rng_chance(&rng, 1, 2))
			CHECK(!crl_client_call(client, "1234", 4, NULL, 0));
		crl_client_close(client);
	}
	atomic_fetch_sub(&clients_left, 1);
	return NULL;
}

static void serve_clients(struct crl_server *server)
{
	struct crl_request requests[2];

	while (atomic_load(&clients_left)) {
		int n = crl_server_take(server, requests, 2);

		for (int i = n - 1; i >= 0; i--) {
			int ret = crl_server_reply(server, requests[i].handle, requests[i].data,
						   requests[i].len);

			CHECK(!ret || ret == -EPIPE);
		}
		if (!n)
			crl_server_wait(server, 10);
	}
}

static void stress_server(enum crl_kind kind)
{
	struct crl_options options = {
		.max_clients = 2, .depth = 1, .request_max = 8, .response_max = 8, .spin_us = -1
	};
	struct crl_server *server;
	struct crl_counters counters;
	pthread_t threads[CLIENTS];

	snprintf(name, sizeof(name), "stress-local-%d-%d", (int)getpid(), (int)kind);
	CHECK(!crl_server_open(&server, kind, name, &options));
	atomic_store(&clients_left, CLIENTS);
	for (uintptr_t i = 0; i < CLIENTS; i++)
		CHECK(!pthread_create(&threads[i], NULL, run_lives, (void *)i));
	serve_clients(server);
	for (int i = 0; i < CLIENTS; i++)
		pthread_join(threads[i], NULL);
	crl_server_counters(server, &counters);
	CHECK(counters.accepted == (uint64_t)CLIENTS * LIVES);
	CHECK(!counters.expelled && !counters.repaired);
	crl_server_close(server);
}

int main(void)
{
	stress_tokens();
	stress_flux();
	stress_server(CRL_IPC);
	stress_server(CRL_DELEGATION);
	puts("ok");
	return 0;
}
