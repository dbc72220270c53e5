/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Rings of Concurrency Kit for local_bench that hold the messages themselves: SPSC rings both ways
 * for each client, of a type of the message's size. The client writes its request in place (reserve
 * and commit). Nothing but the bytes travels, so responses come in the order of the requests.
 */
#include <ck_ring.h>
#include <string.h>
#include <sys/mman.h>

#include "local_bench.h"

#define RING (2 * LB_BATCH) /* entries; a ring holds one less */

struct small {
	unsigned char bytes[32];
};

struct large {
	unsigned char bytes[LB_BYTES];
};

CK_RING_PROTOTYPE(small, small)
CK_RING_PROTOTYPE(large, large)

struct path {
	_Alignas(64) ck_ring_t requests;
	_Alignas(64) ck_ring_t responses;
	_Alignas(64) struct large request_buf[RING];
	_Alignas(64) struct large response_buf[RING];
};

static struct path *paths;
static unsigned int in_flight[LB_CLIENTS];
static struct lb_case conf;

static void prepare(const struct lb_case *c)
{
	conf = *c;
	paths = lb_share(sizeof(*paths) * LB_CLIENTS);
	for (unsigned int i = 0; i < LB_CLIENTS; i++) {
		ck_ring_init(&paths[i].requests, RING);
		ck_ring_init(&paths[i].responses, RING);
	}
}

static void open_server(void)
{
}

static void open_client(unsigned int client)
{
	in_flight[client] = 0;
}

/* The functions of one type of message. */
#define FUNCTIONS(type)                                                                            \
	static bool call_##type(unsigned int client, const void *data)                             \
	{                                                                                          \
		struct path *path = &paths[client];                                                \
		struct type *entry = ck_ring_enqueue_reserve_spsc_##type(                          \
			&path->requests, (struct type *)path->request_buf);                        \
                                                                                                   \
		if (!entry)                                                                        \
			return false;                                                              \
		memcpy(entry->bytes, data, conf.bytes);                                            \
		ck_ring_enqueue_commit_spsc(&path->requests);                                      \
		return true;                                                                       \
	}                                                                                          \
                                                                                                   \
	static int serve_##type(struct path *path, int max)                                        \
	{                                                                                          \
		struct type message;                                                               \
		int cnt = 0;                                                                       \
                                                                                                   \
		while (cnt < max &&                                                                \
		       ck_ring_dequeue_spsc_##type(&path->requests,                                \
						   (struct type *)path->request_buf, &message)) {  \
			ck_ring_enqueue_spsc_##type(&path->responses,                              \
						    (struct type *)path->response_buf, &message);  \
			cnt++;                                                                     \
		}                                                                                  \
		return cnt;                                                                        \
	}                                                                                          \
                                                                                                   \
	static int poll_##type(unsigned int client)                                                \
	{                                                                                          \
		struct path *path = &paths[client];                                                \
		struct type message;                                                               \
		int cnt = 0;                                                                       \
                                                                                                   \
		while (cnt < LB_BATCH &&                                                           \
		       ck_ring_dequeue_spsc_##type(&path->responses,                               \
						   (struct type *)path->response_buf, &message)) { \
			lb_check(client, message.bytes, conf.bytes);                               \
			cnt++;                                                                     \
		}                                                                                  \
		return cnt;                                                                        \
	}

FUNCTIONS(small)
FUNCTIONS(large)

static int serve(void)
{
	static unsigned int start;
	unsigned int at = start < conf.clients ? start : 0;
	int cnt = 0;

	for (unsigned int i = 0; i < conf.clients && cnt < LB_BATCH; i++) {
		struct path *path = &paths[at];

		cnt += conf.bytes <= sizeof(struct small) ? serve_small(path, LB_BATCH - cnt)
							  : serve_large(path, LB_BATCH - cnt);
		at = at + 1 < conf.clients ? at + 1 : 0;
	}
	start = start + 1 < conf.clients ? start + 1 : 0;
	return cnt;
}

static bool call(unsigned int client, const void *data, bool more)
{
	(void)more;
	if (in_flight[client] == conf.depth ||
	    !(conf.bytes <= sizeof(struct small) ? call_small(client, data)
						 : call_large(client, data)))
		return false;
	in_flight[client]++;
	return true;
}

static int poll_client(unsigned int client)
{
	int cnt = conf.bytes <= sizeof(struct small) ? poll_small(client) : poll_large(client);

	in_flight[client] -= (unsigned int)cnt;
	return cnt;
}

static void close_client(unsigned int client)
{
	(void)client;
}

static void release(void)
{
	munmap(paths, sizeof(*paths) * LB_CLIENTS);
}

const struct lb_channel lb_ck_value = {
	.name = "ck value",
	.prepare = prepare,
	.open_server = open_server,
	.open_client = open_client,
	.serve = serve,
	.call = call,
	.poll = poll_client,
	.close_client = close_client,
	.close_server = open_server,
	.release = release,
};
