/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fixtures for connections without a stream: a CM endpoint and a raw peer (cm_fixture.h) that talks
 * to it in datagrams, or two CM endpoints of one node.
 */
#ifndef TEST_DGRAM_FIXTURE_H
#define TEST_DGRAM_FIXTURE_H

#include "unit/cm/cm_fixture.h"

/** Paths of an endpoint that only an RDMA device reaches. */
#define DGRAM_NIC_ONLY ((struct cm_paths){ WIRE_CM_PATH_NIC, { WIRE_CM_PATH_NIC } })

void dgram_pair_open(struct cm_node **node, struct cm_end *a, struct cm_end *b,
		     struct cm_paths paths);
void dgram_pair_close(struct cm_node *node, struct cm_end *a, struct cm_end *b);

struct dgram_peer {
	struct cm_node *node;
	struct cm_end a;
	struct cm_raw_peer s;
	union cm_addr to; /* address of `a` */
};

/** Opens both with `key`, if not NULL. timeout_ms: peer timeout of the endpoint; 0: the default. */
void dgram_peer_open(struct dgram_peer *g, struct cm_paths paths, const char *key, int timeout_ms);
void dgram_peer_close(struct dgram_peer *g);
/** Sends a packet of `type` to the endpoint's incarnation. */
void dgram_peer_send(struct dgram_peer *g, enum wire_cm_type type, uint64_t nonce);
/** Requests a cookie and sends HELLO, copied to *hello. Returns the reply. */
struct wire_cm_pkt dgram_peer_hello(struct dgram_peer *g, struct wire_cm_pkt *hello);
/** Connects the endpoint to the raw peer, which sends ACK. Returns the HELLO that follows. */
struct wire_cm_pkt dgram_peer_await_hello(struct dgram_peer *g);
/** Completes a handshake, until the endpoint is up. */
void dgram_peer_establish(struct dgram_peer *g);

#endif
