/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Cases of crpc_rpc about how many calls are accepted. They make calls until one is refused, and
 * compare that with what the functions about room, limits and shortage say. Then they finish the
 * calls, none of which may be lost.
 */
#ifndef FT_RPC_ROOM_H
#define FT_RPC_ROOM_H

#include "common/ft.h"

/* Calls until no more are accepted, while the callee makes no progress. */
void rpc_run_flood(struct ft *ft);
/* Fills the limit that the case's argument names (FI_COPYRPC_SHORT_*). */
void rpc_run_shortage(struct ft *ft);
/* Fills the queue of messages that wait to be sent, which calls do not overtake. */
void rpc_run_shortage_queue(struct ft *ft);
/* Requests, responses and calls at their limits, and beyond them. */
void rpc_run_limits(struct ft *ft);

#endif
