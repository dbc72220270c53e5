/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Client and server slots of one session over a network that loses, repeats, reorders and delays:
 * each request is executed once, request and response arrive unchanged, credits are conserved.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "erpc/slot/erpc_client.h"
#include "erpc/slot/erpc_server.h"
#include "support/rng.h"

#define PAYLOAD  7u
#define MSG_MAX  60u
#define CREDITS  8u
#define WIRE_MAX 64u

/** Packet on the wire: header and payload. */
struct pkt {
	struct wire_erpc_hdr h;
	bool to_server;
	uint32_t len;
	uint8_t bytes[PAYLOAD];
};

struct net {
	unsigned loss; /* of 1000 */
	unsigned twice;
	bool reorder;
};

static struct erpc_client clients[ERPC_SLOTS];
static struct erpc_server servers[ERPC_SLOTS];
static uint8_t request[ERPC_SLOTS][MSG_MAX], response[ERPC_SLOTS][MSG_MAX];
static uint32_t req_size[ERPC_SLOTS];
static struct pkt wire[WIRE_MAX];
static uint32_t wire_cnt, credits, executed, completed;
static uint32_t kept; /* early packets that were kept */
static struct net net;
static struct rng rng;

/* The bytes of a message follow from the number of its request. */
static uint32_t size_of(uint64_t req_num, bool resp)
{
	struct rng r = { req_num * 2 + resp };

	return (uint32_t)rng_below(&r, MSG_MAX + 1);
}

static uint8_t byte_of(uint64_t req_num, bool resp, uint32_t at)
{
	return (uint8_t)(req_num * 31 + at * 7 + resp * 101);
}

static void expect_bytes(const uint8_t *buf, uint64_t req_num, bool resp, uint32_t size)
{
	uint32_t i;

	cr_assert_eq(size, size_of(req_num, resp));
	for (i = 0; i < size; i++)
		cr_assert_eq(buf[i], byte_of(req_num, resp, i));
}

static void put(const struct pkt *p)
{
	if (rng_below(&rng, 1000) < net.loss)
		return;
	cr_assert_lt(wire_cnt, WIRE_MAX);
	wire[wire_cnt++] = *p;
	if (rng_below(&rng, 1000) < net.twice && wire_cnt < WIRE_MAX / 2)
		wire[wire_cnt++] = *p;
}

static void put_part(enum wire_erpc_kind kind, uint64_t req_num, uint32_t pkt_num, uint32_t part)
{
	bool resp = kind == WIRE_ERPC_RESP;
	bool full = resp || kind == WIRE_ERPC_REQ;
	uint32_t size = full ? size_of(req_num, resp) : 0, i;
	struct pkt p = {
		.h = { .kind = kind,
		       .req_num = req_num,
		       .pkt_num = (uint16_t)pkt_num,
		       .msg_size = size },
		.to_server = kind == WIRE_ERPC_REQ || kind == WIRE_ERPC_RFR,
		.len = full ? wire_erpc_pkt_len(size, PAYLOAD, part) : 0,
	};

	for (i = 0; i < p.len; i++)
		p.bytes[i] = byte_of(req_num, resp, part * PAYLOAD + i);
	put(&p);
}

static void client_send(struct erpc_client *c)
{
	enum wire_erpc_kind kind;
	uint16_t pkt_num;

	while (credits && erpc_client_sendable(c)) {
		kind = erpc_client_next(c, &pkt_num);
		credits--;
		put_part(kind, c->req_num, pkt_num, pkt_num);
	}
}

static void client_done(struct erpc_client *c, uint32_t slot)
{
	expect_bytes(response[slot], c->req_num, true, c->resp_size);
	credits += erpc_client_end(c);
	completed++;
}

/** Keeping early packets is optional. */
static bool keeps(void)
{
	return rng_chance(&rng, 3, 4);
}

static void client_recv(const struct pkt *p)
{
	uint32_t slot = p->h.req_num % ERPC_SLOTS, before;
	struct erpc_client *c = &clients[slot];
	enum erpc_verdict v;

	before = erpc_client_in_flight(c);
	v = erpc_client_take(c, &p->h, p->len);
	cr_assert_neq(v, ERPC_BAD);
	credits += before - erpc_client_in_flight(c);
	if (v != ERPC_TAKE && v != ERPC_LAST &&
	    !(v == ERPC_EARLY && keeps() && erpc_client_keep(c, &p->h, p->len)))
		return;
	kept += v == ERPC_EARLY;
	if (p->h.kind == WIRE_ERPC_RESP)
		memcpy(response[slot] + (p->h.pkt_num - (c->req_pkts - 1)) * PAYLOAD, p->bytes,
		       p->len);
	if (v == ERPC_LAST)
		client_done(c, slot);
}

static void server_repeat(const struct erpc_server *s)
{
	enum wire_erpc_kind kind;
	uint16_t pkt_num;

	if (erpc_server_repeat(s, &pkt_num, &kind))
		put_part(kind, s->req_num, pkt_num, 0);
}

static void server_recv(const struct pkt *p)
{
	uint32_t slot = p->h.req_num % ERPC_SLOTS;
	struct erpc_server *s = &servers[slot];
	enum erpc_verdict v;

	if (p->h.kind == WIRE_ERPC_RFR) {
		v = erpc_server_take_rfr(s, &p->h, p->len);
		cr_assert_neq(v, ERPC_BAD);
		if (v == ERPC_TAKE)
			put_part(WIRE_ERPC_RESP, s->req_num, p->h.pkt_num,
				 erpc_server_part(s, p->h.pkt_num));
		return;
	}
	v = erpc_server_take_req(s, &p->h, p->len);
	cr_assert_neq(v, ERPC_BAD);
	if (v == ERPC_EARLY && keeps() && erpc_server_keep(s, &p->h)) {
		memcpy(request[slot] + p->h.pkt_num * PAYLOAD, p->bytes, p->len);
		kept++;
	}
	if (v == ERPC_TAKE || v == ERPC_LAST)
		memcpy(request[slot] + p->h.pkt_num * PAYLOAD, p->bytes, p->len);
	if (v == ERPC_LAST) {
		expect_bytes(request[slot], s->req_num, false, s->size);
		executed++;
		cr_assert(erpc_server_respond(s, size_of(s->req_num, true)));
	}
	if (v == ERPC_TAKE || v == ERPC_LAST || v == ERPC_REPEAT)
		server_repeat(s);
}

static void deliver_one(void)
{
	uint32_t i = net.reorder ? (uint32_t)rng_below(&rng, wire_cnt) : 0;
	struct pkt p = wire[i];

	wire_cnt--;
	memmove(&wire[i], &wire[i + 1], (wire_cnt - i) * sizeof(wire[0]));
	if (p.to_server)
		server_recv(&p);
	else
		client_recv(&p);
}

static void expect_credits(void)
{
	uint32_t i, sum = credits;

	for (i = 0; i < ERPC_SLOTS; i++)
		sum += erpc_client_in_flight(&clients[i]);
	cr_assert_eq(sum, CREDITS);
}

/** Begins a request and sends; sometimes counts packets as lost, even too early. */
static void client_turn(uint32_t slot, uint32_t goal)
{
	struct erpc_client *c = &clients[slot];

	if (erpc_client_is_free(c) && c->req_num < goal) {
		req_size[slot] = size_of(c->req_num, false);
		cr_assert(erpc_client_begin(c, req_size[slot], MSG_MAX));
	}
	if (erpc_client_is_free(c))
		return;
	if (erpc_client_in_flight(c) && rng_chance(&rng, 1, wire_cnt ? 200 : 4))
		credits += erpc_client_go_back(c);
	client_send(c);
}

static void run(struct net how, uint32_t goal)
{
	uint64_t steps;
	uint32_t i;

	net = how;
	credits = CREDITS;
	wire_cnt = executed = completed = kept = 0;
	for (i = 0; i < ERPC_SLOTS; i++) {
		erpc_client_init(&clients[i], i, PAYLOAD);
		erpc_server_init(&servers[i], i, PAYLOAD);
	}
	for (steps = 0; completed < goal; steps++) {
		cr_assert_lt(steps, 4000ull * goal, "no progress: %u of %u", completed, goal);
		if (wire_cnt && (wire_cnt > WIRE_MAX / 2 || rng_chance(&rng, 2, 3)))
			deliver_one();
		else
			client_turn((uint32_t)rng_below(&rng, ERPC_SLOTS), goal);
		expect_credits();
	}
	cr_expect_eq(executed, goal, "each request was executed once");
}

Test(erpc_wire, on_a_good_network)
{
	rng.state = rng_env("COPYRPC_TEST_SEED", 1);
	run((struct net){ 0 }, 20000);
	cr_expect_eq(kept, 0);
}

Test(erpc_wire, with_reordering_and_duplicates)
{
	rng.state = rng_env("COPYRPC_TEST_SEED", 2);
	run((struct net){ .twice = 100, .reorder = true }, 10000);
	cr_expect_gt(kept, 1000);
}

Test(erpc_wire, with_losses)
{
	static const unsigned losses[] = { 1, 10, 100, 300 };
	unsigned i;

	for (i = 0; i < 4; i++) {
		rng.state = rng_env("COPYRPC_TEST_SEED", 3 + i);
		run((struct net){ .loss = losses[i] }, 4000);
		run((struct net){ .loss = losses[i], .twice = 50, .reorder = true }, 4000);
	}
}
