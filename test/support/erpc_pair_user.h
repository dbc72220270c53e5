/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Users at both ends of an erpc_pair. They send messages, calls and gets of bytes that follow from
 * their numbers, and check what they receive by its number. erpc_pair.h declares what tests call of
 * it, and erpc_pair.c connects it to the sessions.
 */
#ifndef ERPC_PAIR_USER_H
#define ERPC_PAIR_USER_H

#include "support/erpc_pair.h"

/** Up-calls of an endpoint whose sessions belong to pair_ends. */
extern const struct core_upcalls pair_upcalls;

/** Returns whether an end has nothing open: no get, call, reply or retained bytes. */
bool pair_is_done(const struct pair_end *e);

#endif
