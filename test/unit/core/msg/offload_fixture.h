/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Three nodes whose devices match tags (fake_tags.h). Message i has the bytes off_outs[i] and tag
 * i; receive i of node 1 has the buffer off_ins[i]. Contexts are the buffers' addresses.
 */
#ifndef UNIT_CORE_OFFLOAD_FIXTURE_H
#define UNIT_CORE_OFFLOAD_FIXTURE_H

#include <stddef.h>
#include <stdint.h>

#include "core/msg/core_offload.h"
#include "support/core_pair.h"
#include "support/fake_tags.h"

#define OFF_NODES 3u
#define OFF_LONG  20000u
#define OFF_SHORT 100u

extern struct node off_nodes[OFF_NODES];
extern uint8_t off_outs[4][OFF_LONG], off_ins[4][OFF_LONG];
/* The last completion of any node. */
extern struct core_cqe off_cqe;
extern struct fi_cq_err_entry off_err;

void off_setup(void);
/** Closes the nodes and checks that nothing is open, exposed or registered. */
void off_teardown(void);

/** Sends `len` bytes of message i. */
void off_send(unsigned from, unsigned to, unsigned i, size_t len, uint64_t flags);
/** Posts receive i of node 1. */
void off_post_len(fi_addr_t from, unsigned i, size_t len);
/** Posts receive i from any source, with all of its buffer. */
void off_post(unsigned i);
void off_settle(void);

/** Takes a completion of node `n`: that of message i, none, or an error. */
void off_check_sent(unsigned n, unsigned i);
void off_check_none(unsigned n);
void off_check_err(unsigned n, void *context, int want);
/** Takes one of node 1: receive i has `len` bytes of message `msg`, from node `from`. */
void off_check_received(unsigned i, unsigned msg, size_t len, unsigned from);

/** Connects a node with node 1 by a short message. */
void off_connect(unsigned n);
/** Returns what node `n` has of another one. */
struct core_offload_peer *off_peer(unsigned n, unsigned other);
/** Makes progress, and checks that `cnt` receives of node 1 are listed then. */
void off_list(unsigned cnt);
/** Sends a request of node 0, with tag 2 and data, that node 1 keeps. */
void off_keep(void);

#endif
