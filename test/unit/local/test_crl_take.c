/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Requests reach the server in order, and each reply reaches its call. */
#include <copyrpc/local.h>
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <errno.h>
#include <string.h>

#include "local/crl_server.h"
#include "local_pair.h"

#define DEPTH 4

static const struct crl_options small = {
	.max_clients = 3, .depth = DEPTH, .request_max = 100, .response_max = 50, .spin_us = -1
};

ParameterizedTestParameters(crl_take, a_call_gets_its_reply)
{
	static enum crl_kind kinds[] = { CRL_DELEGATION, CRL_IPC };

	return cr_make_param_array(enum crl_kind, kinds, 2);
}

ParameterizedTest(enum crl_kind *kind, crl_take, a_call_gets_its_reply)
{
	const char *name = local_pair_name("take");
	struct crl_server *server = local_pair_server(*kind, name, &small);
	struct crl_client *client = local_pair_client(server, name);
	struct crl_request request;
	struct crl_response response;
	int context;

	for (int i = 0; i < 1000; i++) {
		cr_assert_eq(crl_client_call(client, &i, sizeof(i), &context, 0), 0);
		local_pair_take(server, &request, 1);
		cr_assert_eq(request.len, sizeof(i));
		cr_assert_eq(memcmp(request.data, &i, sizeof(i)), 0);
		cr_assert_eq(crl_server_reply(server, request.handle, "abc", 3), 0);
		local_pair_poll(client, &response, 1);
		cr_assert_eq(response.context, &context);
		cr_assert_eq(response.len, 3);
		cr_assert_eq(response.status, 0);
		cr_assert_eq(memcmp(response.data, "abc", 3), 0);
	}
	crl_client_close(client);
	crl_server_close(server);
}

ParameterizedTestParameters(crl_take, replies_may_be_in_any_order)
{
	static enum crl_kind kinds[] = { CRL_DELEGATION, CRL_IPC };

	return cr_make_param_array(enum crl_kind, kinds, 2);
}

ParameterizedTest(enum crl_kind *kind, crl_take, replies_may_be_in_any_order)
{
	const char *name = local_pair_name("order");
	struct crl_server *server = local_pair_server(*kind, name, &small);
	struct crl_client *client = local_pair_client(server, name);
	struct crl_request requests[DEPTH];
	struct crl_response responses[DEPTH];
	char contexts[DEPTH];

	for (int lap = 0; lap < 100; lap++) {
		for (int i = 0; i < DEPTH; i++)
			cr_assert_eq(crl_client_call(client, &i, sizeof(i), &contexts[i], 0), 0);
		cr_assert_eq(crl_client_call(client, "", 0, NULL, 0), -EAGAIN);
		local_pair_take(server, requests, DEPTH);
		for (int i = DEPTH; i--;)
			cr_assert_eq(crl_server_reply(server, requests[i].handle, &i, sizeof(i)),
				     0);
		local_pair_poll(client, responses, DEPTH);
		for (int i = 0; i < DEPTH; i++) {
			int which = DEPTH - 1 - i;

			cr_assert_eq(responses[i].context, &contexts[which]);
			cr_assert_eq(memcmp(responses[i].data, &which, sizeof(which)), 0);
		}
	}
	crl_client_close(client);
	crl_server_close(server);
}

ParameterizedTestParameters(crl_take, bytes_of_every_length_arrive)
{
	static enum crl_kind kinds[] = { CRL_DELEGATION, CRL_IPC };

	return cr_make_param_array(enum crl_kind, kinds, 2);
}

ParameterizedTest(enum crl_kind *kind, crl_take, bytes_of_every_length_arrive)
{
	const char *name = local_pair_name("lengths");
	struct crl_server *server = local_pair_server(*kind, name, &small);
	struct crl_client *client = local_pair_client(server, name);
	unsigned char bytes[101];
	struct crl_request request;
	struct crl_response response;

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(3 * i + 1);
	for (size_t len = 0; len <= 100; len++) {
		size_t back = len / 2;

		cr_assert_eq(crl_client_call(client, bytes, len, NULL, 0), 0);
		local_pair_take(server, &request, 1);
		cr_assert_eq(request.len, len);
		cr_assert_eq(memcmp(request.data, bytes, len), 0);
		cr_assert_eq((uintptr_t)request.data % 16, 0);
		cr_assert_eq(crl_server_reply(server, request.handle, bytes, 51), -EMSGSIZE);
		cr_assert_eq(crl_server_reply(server, request.handle, bytes + 1, back), 0);
		local_pair_poll(client, &response, 1);
		cr_assert_eq(response.len, back);
		cr_assert_eq(memcmp(response.data, bytes + 1, back), 0);
	}
	cr_assert_eq(crl_client_call(client, bytes, 101, NULL, 0), -EMSGSIZE);
	crl_client_close(client);
	crl_server_close(server);
}

ParameterizedTestParameters(crl_take, each_request_is_counted_once)
{
	static enum crl_kind kinds[] = { CRL_DELEGATION, CRL_IPC };

	return cr_make_param_array(enum crl_kind, kinds, 2);
}

/* Three of four requests are taken: one is replied to, one stays open, one outlives its client. */
ParameterizedTest(enum crl_kind *kind, crl_take, each_request_is_counted_once)
{
	const char *name = local_pair_name("counted");
	struct crl_server *server = local_pair_server(*kind, name, &small);
	struct crl_client *client = local_pair_client(server, name);
	struct crl_request requests[DEPTH];
	struct crl_counters counters;

	for (int i = 0; i < DEPTH; i++)
		cr_assert_eq(crl_client_call(client, &i, sizeof(i), NULL, 0), 0);
	local_pair_take(server, requests, 3);
	cr_assert_eq(crl_server_reply(server, UINT64_MAX, "", 0), -EINVAL);
	cr_assert_eq(crl_server_reply(server, requests[0].handle + 1, "", 0), 0, "the next slot");
	cr_assert_eq(crl_server_reply(server, requests[1].handle, "", 0), -EINVAL, "once");
	crl_server_counters(server, &counters);
	cr_assert_eq(counters.taken, 3);
	cr_assert_eq(counters.replied, 1);
	crl_client_close(client);
	do {
		crl_server_wait(server, 1);
		crl_server_take(server, NULL, 0);
		crl_server_counters(server, &counters);
	} while (counters.clients);
	cr_assert_eq(counters.replied, 1);
	cr_assert_eq(crl_server_reply(server, requests[0].handle, "", 0), -EPIPE);
	cr_assert_eq(crl_server_reply(server, requests[0].handle, "", 0), -EINVAL, "once");
	crl_server_counters(server, &counters);
	cr_assert_eq(counters.replied, 1);
	cr_assert_eq(counters.discarded, 1);
	crl_server_close(server);
}

/* Fills the ring of tokens with tokens of `client`, which a client that scribbles over it may. */
static void forge_tokens(struct crl_server *server, uint32_t client)
{
	for (uint32_t i = 0; i < crl_tokens_count(small.max_clients); i++) {
		_Atomic uint64_t *word = &server->tokens.mem->words[i];
		uint64_t lap = atomic_load(word) >> 32 << 32;

		atomic_store(word, lap | CRL_TOKEN_FULL | client);
	}
}

/* Tokens of one client that fill every take do not hide the request of another for ever. */
Test(crl_take, forged_tokens_delay_a_request_for_a_bounded_time, .timeout = 60)
{
	const char *name = local_pair_name("forged");
	struct crl_server *server = local_pair_server(CRL_DELEGATION, name, &small);
	struct crl_client *foe = local_pair_client(server, name);
	struct crl_client *client = local_pair_client(server, name);
	struct crl_request request = { .client = 0 };
	struct crl_response response;

	cr_assert_eq(crl_client_call(client, "", 0, NULL, 0), 0);
	while (request.client == 0) {
		while (!crl_client_call(foe, "", 0, NULL, 0))
			;
		forge_tokens(server, 0);
		if (crl_server_take(server, &request, 1) != 1)
			continue;
		cr_assert_eq(crl_server_reply(server, request.handle, "", 0), 0);
		(void)crl_client_poll(foe, &response, 1);
	}
	cr_expect_eq(request.client, 1);
	crl_client_close(foe);
	crl_client_close(client);
	crl_server_close(server);
}
