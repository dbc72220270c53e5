/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A server and clients in one thread (local_pair.h). Connecting blocks, so a thread does it. */
#include "local_pair.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "util/clock.h"

#define LIMIT_NS (60 * UTIL_NS_PER_S)

struct opening {
	const char *name;
	struct crl_client *client;
	int ret;
	atomic_bool done;
};

const char *local_pair_name(const char *what)
{
	static char name[64];

	snprintf(name, sizeof(name), "test-%d-%s", getpid(), what);
	return name;
}

struct crl_server *local_pair_server(enum crl_kind kind, const char *name,
				     const struct crl_options *options)
{
	struct crl_server *server = NULL;

	cr_assert_eq(crl_server_open(&server, kind, name, options), 0);
	return server;
}

static void *open_client(void *arg)
{
	struct opening *opening = arg;

	opening->ret = crl_client_open(&opening->client, opening->name, 60000);
	atomic_store(&opening->done, true);
	return NULL;
}

struct crl_client *local_pair_client(struct crl_server *server, const char *name)
{
	struct opening opening = { .name = name };
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, open_client, &opening), 0);
	while (!atomic_load(&opening.done)) {
		crl_server_take(server, NULL, 0);
		crl_server_wait(server, 1);
	}
	pthread_join(thread, NULL);
	cr_assert_eq(opening.ret, 0);
	return opening.client;
}

void local_pair_take(struct crl_server *server, struct crl_request *requests, int cnt)
{
	uint64_t end = util_clock_ns() + LIMIT_NS;
	int got = 0;

	while (got < cnt && util_clock_ns() < end)
		got += crl_server_take(server, requests + got, cnt - got);
	cr_assert_eq(got, cnt);
}

void local_pair_poll(struct crl_client *client, struct crl_response *responses, int cnt)
{
	uint64_t end = util_clock_ns() + LIMIT_NS;
	int ret, got = 0;

	while (got < cnt && util_clock_ns() < end) {
		ret = crl_client_poll(client, responses + got, cnt - got);
		cr_assert_geq(ret, 0);
		got += ret;
	}
	cr_assert_eq(got, cnt);
}
