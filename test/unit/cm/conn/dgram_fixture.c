/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Ends and raw peers without a stream: see dgram_fixture.h. */
#include "unit/cm/conn/dgram_fixture.h"

#include <criterion/criterion.h>
#include <string.h>

#include "cm/ep/cm_ep.h"

void dgram_pair_open(struct cm_node **node, struct cm_end *a, struct cm_end *b,
		     struct cm_paths paths)
{
	cm_test_paths = paths;
	cm_test_apart = true;
	*node = cm_test_node(NULL, 0);
	cm_end_open(a, *node, "127.0.0.1", 0);
	cm_end_open(b, *node, "127.0.0.1", 0);
}

void dgram_pair_close(struct cm_node *node, struct cm_end *a, struct cm_end *b)
{
	cm_end_close(a);
	cm_end_close(b);
	cm_node_close(node);
}

void dgram_peer_open(struct dgram_peer *g, struct cm_paths paths, const char *key, int timeout_ms)
{
	cm_test_paths = paths;
	cm_test_apart = true;
	g->node = cm_test_node(key, timeout_ms);
	cm_end_open(&g->a, g->node, "127.0.0.1", 0);
	cm_raw_peer_open(&g->s, "127.0.0.1", key);
	g->to = cm_test_addr_of(&g->a);
}

void dgram_peer_close(struct dgram_peer *g)
{
	cm_raw_peer_close(&g->s);
	cm_end_close(&g->a);
	cm_node_close(g->node);
}

void dgram_peer_send(struct dgram_peer *g, enum wire_cm_type type, uint64_t nonce)
{
	struct wire_cm_pkt pkt = { .type = type, .nonce = nonce, .dst_inc = g->a.cep->inc };

	if (type == WIRE_CM_WELCOME)
		pkt.welcome.params.path = WIRE_CM_PATH_NIC;
	cm_raw_peer_send(&g->s, &g->to, &pkt);
}

struct wire_cm_pkt dgram_peer_hello(struct dgram_peer *g, struct wire_cm_pkt *hello)
{
	struct wire_cm_pkt ack, reply;

	cr_assert(cm_raw_peer_get_ack(&g->s, &g->to, &ack));
	cr_assert_eq(ack.ack.paths, cm_test_paths.all);
	cm_raw_peer_make_hello(&g->s, &ack, hello);
	cm_raw_peer_send(&g->s, &g->to, hello);
	cr_assert(cm_raw_peer_recv_reply(&g->s, &reply));
	return reply;
}

void dgram_peer_establish(struct dgram_peer *g)
{
	struct wire_cm_pkt hello;

	cr_assert_eq(dgram_peer_hello(g, &hello).type, WIRE_CM_WELCOME);
	dgram_peer_send(g, WIRE_CM_READY, g->s.nonce);
	cr_assert(cm_end_wait(&g->a, &g->a.up, 1, CM_TEST_WAIT_MS));
}

struct wire_cm_pkt dgram_peer_await_hello(struct dgram_peer *g)
{
	struct wire_cm_pkt req, ack = { .type = WIRE_CM_ACK, .ack.paths = WIRE_CM_PATH_NIC };

	cr_assert(!cm_connect(g->a.cep, &g->s.addr.sa, false));
	req = cm_raw_peer_await(&g->s, WIRE_CM_REQ);
	cr_expect_eq(req.req.paths, WIRE_CM_PATH_NIC);
	ack.nonce = req.nonce;
	ack.dst_inc = req.src_inc;
	memset(ack.ack.name, 'a', WIRE_CM_NAME_LEN);
	cm_raw_peer_send(&g->s, &g->to, &ack);
	return cm_raw_peer_await(&g->s, WIRE_CM_HELLO);
}
