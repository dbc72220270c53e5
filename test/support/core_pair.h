/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connected endpoints of core/ over the fake engine, with short functions to send, receive and
 * poll. Used by the tests of core/.
 */
#ifndef CORE_PAIR_H
#define CORE_PAIR_H

#include <stdbool.h>
#include <stdint.h>

#include "core/core_dom.h"
#include "core/core_ep.h"
#include "core/core_peer.h"
#include "core/msg/core_rx.h"
#include "core/msg/core_tx.h"
#include "support/fake_engine.h"

struct node {
	struct core_dom dom;
	struct core_ep ep;
	struct core_cq cq;
	struct core_cntr tx_cntr;
	struct core_cntr rx_cntr;
};

extern struct core_limits node_limits; /* of nodes opened later */

/** Opens `cnt` nodes with each other's addresses: fi_addr i is node i on every node. */
void nodes_open(struct node *nodes, unsigned cnt);
/** Resets the engine and opens nodes with small limits: eager up to 1000, get from 10000 bytes. */
void nodes_open_plain(struct node *nodes, unsigned cnt);
void nodes_close(struct node *nodes, unsigned cnt);

/** Makes progress on all nodes, often enough for short tests. */
void nodes_settle(struct node *nodes, unsigned cnt);

int node_send(struct node *n, unsigned to, const void *buf, size_t len, bool tagged, uint64_t tag,
	      uint64_t flags, void *context);
int node_recv(struct node *n, fi_addr_t from, void *buf, size_t len, bool tagged, uint64_t tag,
	      uint64_t ignore, uint64_t flags, void *context);

/** Takes the oldest completion. Returns 1 (in *e), -FI_EAVAIL (in *err), or 0 if there is none. */
int node_poll(struct node *n, struct core_cqe *e, struct fi_cq_err_entry *err);

/** Takes the oldest RPC request, or returns NULL. */
struct core_rpc_handle *node_take(struct node *n);

/** Fill and check bytes with a pattern that depends on seed and position. */
void node_fill(uint8_t *buf, size_t len, uint32_t seed);
bool node_check(const uint8_t *buf, size_t len, uint32_t seed);

#endif
