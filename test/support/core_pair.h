/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Endpoints of core/ that can reach each other over the engine of tests, and short ways to say
 * "send", "receive" and "what has ended". Shared by the tests of core/.
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

extern struct core_limits node_limits; /* of nodes opened from now on */

/** Opens `cnt` nodes that know each other: fi_addr i is node i, themselves included. */
void nodes_open(struct node *nodes, unsigned cnt);
/** The same over a fresh engine, with small limits: in one piece up to 1000 bytes, fetched from 10000 on. */
void nodes_open_plain(struct node *nodes, unsigned cnt);
void nodes_close(struct node *nodes, unsigned cnt);

/** Progress of all until nothing moves any more (bounded). */
void nodes_settle(struct node *nodes, unsigned cnt);

int node_send(struct node *n, unsigned to, const void *buf, size_t len, bool tagged, uint64_t tag,
	      uint64_t flags, void *context);
int node_recv(struct node *n, fi_addr_t from, void *buf, size_t len, bool tagged, uint64_t tag,
	      uint64_t ignore, uint64_t flags, void *context);

/** Takes the oldest completion: 1 good (*e), -FI_EAVAIL bad (*err), 0 none. */
int node_poll(struct node *n, struct core_cqe *e, struct fi_cq_err_entry *err);

/** Takes the oldest request, or NULL. */
struct core_rpc_handle *node_take(struct node *n);

/** Bytes that depend on a seed and their place. */
void node_fill(uint8_t *buf, size_t len, uint32_t seed);
bool node_check(const uint8_t *buf, size_t len, uint32_t seed);

#endif
