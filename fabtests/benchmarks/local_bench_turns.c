/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Mode "turns" of local_bench: one thread makes the calls of all clients, serves them and polls the
 * responses. Measures its processor time, or lets insn_count count the instructions of a part.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include "local_bench.h"

#define LB_WARM     100 /* turns before those that count */
#define LB_REQUESTS 64  /* counted, in at least one turn and at most LB_TURNS */
#define LB_TURNS    16

static const struct lb_channel *channel;
static struct lb_case conf;
static atomic_bool ready;

static void *open_clients(void *arg)
{
	(void)arg;
	for (unsigned int i = 0; i < conf.clients; i++)
		channel->open_client(i);
	ready = true;
	return NULL;
}

/* Opens both sides. Connecting blocks, so a thread does it. */
static void open_sides(const struct lb_channel *which, const struct lb_case *c)
{
	pthread_t opener;

	channel = which;
	conf = *c;
	ready = false;
	channel->open_server();
	lb_must(-pthread_create(&opener, NULL, open_clients, NULL), "pthread_create");
	while (!ready)
		channel->serve();
	pthread_join(opener, NULL);
}

static void close_sides(void)
{
	for (unsigned int i = 0; i < conf.clients; i++)
		channel->close_client(i);
	channel->close_server();
}

static void call_all(void)
{
	unsigned char bytes[LB_BYTES];

	for (unsigned int i = 0; i < conf.clients; i++) {
		memset(bytes, (int)i + 1, conf.bytes);
		lb_fill(channel, &conf, i, bytes, 0);
	}
}

static void serve_all(void)
{
	for (unsigned int served = 0; served < conf.clients * conf.depth;)
		served += (unsigned int)channel->serve();
}

static void poll_all(void)
{
	for (unsigned int i = 0; i < conf.clients; i++)
		for (unsigned int got = 0; got < conf.depth;)
			got += (unsigned int)channel->poll(i);
}

static void turn(void)
{
	call_all();
	serve_all();
	poll_all();
}

struct lb_result lb_turns_measure(const struct lb_channel *which, const struct lb_case *c,
				  double seconds)
{
	double begin, used;
	uint64_t cnt = 0;

	open_sides(which, c);
	for (int i = 0; i < LB_WARM; i++)
		turn();
	begin = lb_now(CLOCK_THREAD_CPUTIME_ID);
	do {
		for (int i = 0; i < 50; i++)
			turn();
		cnt += 50u * conf.clients * conf.depth;
		used = lb_now(CLOCK_THREAD_CPUTIME_ID) - begin;
	} while (used < seconds);
	close_sides();
	return (struct lb_result){ .rate = (double)cnt / used };
}

/* Runs a part between two signals if it is the one that is counted. */
static void part(void (*run)(void), bool counted)
{
	if (counted)
		raise(SIGUSR2);
	run();
	if (counted)
		raise(SIGUSR2);
}

static void nothing(void)
{
}

unsigned int lb_turns_count(const struct lb_channel *which, const struct lb_case *c,
			    const char *section)
{
	bool calls = !strcmp(section, "calls"), serve = !strcmp(section, "serve");
	bool polls = !strcmp(section, "polls");
	unsigned int turns = LB_REQUESTS / (c->clients * c->depth);

	turns = turns < 1 ? 1 : turns > LB_TURNS ? LB_TURNS : turns;
	open_sides(which, c);
	for (int i = 0; i < LB_WARM; i++)
		turn();
	for (unsigned int i = 0; i < turns; i++) {
		part(call_all, calls);
		part(serve_all, serve);
		part(poll_all, polls);
		part(nothing, !calls && !serve && !polls);
	}
	close_sides();
	return turns * conf.clients * conf.depth;
}
