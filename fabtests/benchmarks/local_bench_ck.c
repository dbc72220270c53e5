/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Rings of Concurrency Kit for local_bench: SPSC rings both ways for each client, or one MPMC or
 * MPSC ring for the requests of all and an SPSC ring of responses for each.
 *
 * The rings carry pointers to slots of a request and a response; the bytes are copied into the slot
 * by the client and by the server, and read in place. Memory is shared at the same address.
 */
#include <ck_ring.h>
#include <string.h>
#include <sys/mman.h>

#include "local_bench.h"

#define RING 2048 /* entries: more than all calls in flight, for a ring holds one less */

struct slot {
	unsigned int client;
	_Alignas(64) unsigned char request[LB_BYTES];
	_Alignas(64) unsigned char response[LB_BYTES];
};

struct path {
	_Alignas(64) ck_ring_t requests;
	_Alignas(64) ck_ring_t responses;
	_Alignas(64) ck_ring_buffer_t request_buf[RING];
	_Alignas(64) ck_ring_buffer_t response_buf[RING];
	struct slot slots[LB_BATCH];
};

/* Private memory of a client. */
struct side {
	unsigned int free_cnt;
	struct slot *free[LB_BATCH];
};

static struct path *paths;
static struct side sides[LB_CLIENTS];
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
	sides[client].free_cnt = conf.depth;
	for (unsigned int i = 0; i < conf.depth; i++) {
		sides[client].free[i] = &paths[client].slots[i];
		sides[client].free[i]->client = client;
	}
}

static void reply(struct slot *slot)
{
	struct path *path = &paths[slot->client];

	memcpy(slot->response, slot->request, conf.bytes);
	ck_ring_enqueue_spsc(&path->responses, path->response_buf, slot);
}

static int serve_spsc(void)
{
	static unsigned int start;
	unsigned int at = start < conf.clients ? start : 0;
	struct slot *slot;
	int cnt = 0;

	for (unsigned int i = 0; i < conf.clients && cnt < LB_BATCH; i++) {
		struct path *path = &paths[at];

		while (cnt < LB_BATCH &&
		       ck_ring_dequeue_spsc(&path->requests, path->request_buf, &slot)) {
			reply(slot);
			cnt++;
		}
		at = at + 1 < conf.clients ? at + 1 : 0;
	}
	start = start + 1 < conf.clients ? start + 1 : 0;
	return cnt;
}

static int serve_mpmc(void)
{
	struct slot *slot;
	int cnt = 0;

	while (cnt < LB_BATCH &&
	       ck_ring_dequeue_mpmc(&paths[0].requests, paths[0].request_buf, &slot)) {
		reply(slot);
		cnt++;
	}
	return cnt;
}

static int serve_mpsc(void)
{
	struct slot *slot;
	int cnt = 0;

	while (cnt < LB_BATCH &&
	       ck_ring_dequeue_mpsc(&paths[0].requests, paths[0].request_buf, &slot)) {
		reply(slot);
		cnt++;
	}
	return cnt;
}

/* Returns a slot with the bytes of a call, or NULL. */
static struct slot *fill(unsigned int client, const void *data)
{
	struct side *side = &sides[client];
	struct slot *slot;

	if (!side->free_cnt)
		return NULL;
	slot = side->free[--side->free_cnt];
	memcpy(slot->request, data, conf.bytes);
	return slot;
}

static bool call_spsc(unsigned int client, const void *data, bool more)
{
	struct slot *slot = fill(client, data);

	(void)more;
	return slot &&
	       ck_ring_enqueue_spsc(&paths[client].requests, paths[client].request_buf, slot);
}

static bool call_mpmc(unsigned int client, const void *data, bool more)
{
	struct slot *slot = fill(client, data);

	(void)more;
	return slot && ck_ring_enqueue_mpmc(&paths[0].requests, paths[0].request_buf, slot);
}

static bool call_mpsc(unsigned int client, const void *data, bool more)
{
	struct slot *slot = fill(client, data);

	(void)more;
	return slot && ck_ring_enqueue_mpsc(&paths[0].requests, paths[0].request_buf, slot);
}

static int poll_client(unsigned int client)
{
	struct path *path = &paths[client];
	struct side *side = &sides[client];
	struct slot *slot;
	int cnt = 0;

	while (cnt < LB_BATCH &&
	       ck_ring_dequeue_spsc(&path->responses, path->response_buf, &slot)) {
		lb_check(client, slot->response, conf.bytes);
		side->free[side->free_cnt++] = slot;
		cnt++;
	}
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

const struct lb_channel lb_ck_spsc = {
	.name = "ck spsc",
	.prepare = prepare,
	.open_server = open_server,
	.open_client = open_client,
	.serve = serve_spsc,
	.call = call_spsc,
	.poll = poll_client,
	.close_client = close_client,
	.close_server = open_server,
	.release = release,
};

const struct lb_channel lb_ck_mpmc = {
	.name = "ck mpmc",
	.prepare = prepare,
	.open_server = open_server,
	.open_client = open_client,
	.serve = serve_mpmc,
	.call = call_mpmc,
	.poll = poll_client,
	.close_client = close_client,
	.close_server = open_server,
	.release = release,
};

const struct lb_channel lb_ck_mpsc = {
	.name = "ck mpsc",
	.prepare = prepare,
	.open_server = open_server,
	.open_client = open_client,
	.serve = serve_mpsc,
	.call = call_mpsc,
	.poll = poll_client,
	.close_client = close_client,
	.close_server = open_server,
	.release = release,
};
