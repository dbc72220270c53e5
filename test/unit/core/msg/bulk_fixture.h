/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two nodes over the fake engine, and messages of node 0 to node 1 that are longer than eager ones
 * or have a reply.
 */
#ifndef UNIT_CORE_BULK_FIXTURE_H
#define UNIT_CORE_BULK_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/msg/core_tx_bulk.h"
#include "support/core_pair.h"

#define BULK_EAGER    1000u
#define BULK_RNDV_MIN 10000u
#define BULK_LEN      (CORE_TX_PIPELINED_MAX + 5000u)

extern struct node bulk_nodes[2];
extern uint8_t bulk_out[BULK_LEN], bulk_in[BULK_LEN];
/* The last completion of either node. */
extern struct core_cqe bulk_cqe;
extern struct fi_cq_err_entry bulk_err;

/** Opens the nodes: eager up to BULK_EAGER, get from BULK_RNDV_MIN bytes. */
void bulk_setup(void);
/** Closes the nodes and checks that nothing is open, exposed or retained. */
void bulk_teardown(void);

/** Sends `len` bytes of bulk_out with tag 0, and makes progress. */
void bulk_send(size_t len, uint64_t flags);
/** Takes a completion of node 0, which is not an error. Returns false if there is none. */
bool bulk_has_left(void);
/** Posts a receive of node 1 for a message with this tag. */
void bulk_post(uint64_t tag);
/** Receives the message with tag 0 and checks its bytes. */
void bulk_receive(size_t len);

#endif
