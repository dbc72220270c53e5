/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two connected endpoints over the simulated engine, each of which knows a better path. Used by
 * test_core_failback.c and its neighbours.
 */
#ifndef TEST_FAILBACK_PAIR_H
#define TEST_FAILBACK_PAIR_H

#include <stdbool.h>

#include "core/core_peer.h"
#include "support/core_pair.h"

#define PAIR_BETTER 2u

extern struct node pair_nodes[2];

/** Opens and connects the endpoints. */
void pair_setup(void);
/** Replaces the endpoints by those whose sends complete when they are acknowledged. */
void pair_make_async(void);
void pair_teardown(void);

/** Returns the peer that end `at` has: the other end. */
struct core_peer *pair_peer_at(unsigned at);

/** Lets an end ask now, however short ago the last attempt was. */
void pair_look(unsigned at);

/** Lets the time pass that an end has to become idle. */
void pair_expire(unsigned at);

/** Marks the channels: the next one may have the address of the last. */
void pair_mark(void);
bool pair_is_marked(unsigned at);

/** Expects that the next completion of an end is that of `context`. */
void pair_expect_end(unsigned at, void *context);

/** Expects that both channels are other ones than those marked, and hold nothing back. */
void pair_expect_moved(void);

/** Expects that a long message arrives from each end, and nothing else before. */
void pair_expect_traffic(void);

#endif
