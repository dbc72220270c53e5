/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Limits on the connections of a host, which keep it from occupying all session numbers.
 *
 * A session over datagrams takes one of 65,535 numbers of its endpoint. Without a job key any
 * process that can receive at its address gets one, and a silent one keeps it for the peer timeout.
 * A connection is unused from the moment it is up until the engine has received a message on it;
 * a correct peer connects because it has something to send. Of each host at most CM_UNUSED_MAX may
 * be unused: another one is refused for now and retries, and the connections that exist stay. So a
 * stranger that wants more must send messages, and the endpoint's process must receive them. Of
 * each host at most CM_HELD_MAX may exist, used or not: a quarter of the numbers, more than a host
 * has processes.
 *
 * Counts are per host, as in cm_pending.h; hosts that collide share one. Only connections that the
 * peer made, by a path with sessions, are counted. Protected by the node's mutex.
 */
#ifndef CM_CONN_CM_UNUSED_H
#define CM_CONN_CM_UNUSED_H

#include <stdbool.h>
#include <stdint.h>

#include "cm/base/cm_addr.h"

struct cm_ep;
struct cm_conn;

#define CM_UNUSED_MAX      2048u
#define CM_HELD_MAX        16384u
#define CM_UNUSED_SWEEP_MS 10u

/** Counts a conn that came up, if the peer made it. */
void cm_unused_add(struct cm_conn *conn);
/** Counts a conn as used. */
void cm_unused_remove(struct cm_conn *conn);
/** Uncounts a conn that has ended. */
void cm_unused_end(struct cm_conn *conn);

/** Returns whether one more conn from `addr` may be made by a path with sessions. */
bool cm_unused_has_room(struct cm_ep *cep, const union cm_addr *addr, uint64_t now_ns);

#endif
