/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Who is a stranger without a stream, and how is it let in?
 *
 * An agent that offers one path, and a hand-made peer (cm_fixture.h) that speaks to it in datagrams; or
 * two ceps that speak to each other.
 */
#ifndef TEST_DGRAM_FIXTURE_H
#define TEST_DGRAM_FIXTURE_H

#include "unit/cm/cm_fixture.h"

/** Agents that are reached by an RDMA device only. */
#define DGRAM_NIC_ONLY ((struct cm_paths){ WIRE_CM_PATH_NIC, { WIRE_CM_PATH_NIC } })

/** Two ceps of one node. */
void dgram_pair_open(struct cm_node **node, struct cm_end *a, struct cm_end *b,
		     struct cm_paths paths);
void dgram_pair_close(struct cm_node *node, struct cm_end *a, struct cm_end *b);

struct dgram_guest {
	struct cm_node *node;
	struct cm_end a;
	struct cm_stranger s;
	union cm_addr to; /* where a is */
};

/** The agent and the stranger, who both have `key`, if any. timeout_ms: of the agent's peers; 0: the default. */
void dgram_guest_open(struct dgram_guest *g, struct cm_paths paths, const char *key,
		      int timeout_ms);
void dgram_guest_close(struct dgram_guest *g);
/** The stranger says it to the agent's incarnation. */
void dgram_guest_say(struct dgram_guest *g, enum wire_cm_type type, uint64_t nonce);
/** It asks, and says HELLO, which is left in *hello: what comes back. */
struct wire_cm_pkt dgram_guest_hello(struct dgram_guest *g, struct wire_cm_pkt *hello);
/** The whole handshake: the agent is up. */
void dgram_guest_come_up(struct dgram_guest *g);

#endif
