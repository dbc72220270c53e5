/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Limit on pending connections, which keeps one host from blocking the others.
 *
 * A pending connection has no stream, was sent WELCOME and has not sent READY. Without a job key
 * any process that can receive at the address it claims can make one and leave it pending. At most
 * CM_PENDING_MAX are pending; then a new one replaces the oldest of the host that has the most,
 *
 *   if its own host has fewer, once the oldest has been pending for CM_PENDING_MS;
 *   for any host, after CM_PENDING_OLD_MS.
 *
 * Otherwise the new peer is refused and retries. So an attacker on one host does not block peers on
 * others. A host is an IPv4 address or an IPv6 /64 network. A correct peer that was replaced
 * gets BYE for its next HELLO and begins anew.
 *
 * A failed conn belongs to the engine until cm_conn_put. A failed pending connection that was not
 * put yet is a zombie. With CM_ZOMBIES_MAX zombies no connection is accepted: the engine makes no
 * progress.
 *
 * Protected by the node's mutex.
 */
#ifndef CM_CONN_CM_PENDING_H
#define CM_CONN_CM_PENDING_H

#include <stdbool.h>
#include <stdint.h>

#include "cm/base/cm_addr.h"

struct cm_ep;
struct cm_conn;

#define CM_PENDING_MAX    256u
#define CM_ZOMBIES_MAX    256u
#define CM_PENDING_MS     1000u
#define CM_PENDING_OLD_MS 4000u

/** Adds a conn that was sent WELCOME. */
void cm_pending_add(struct cm_conn *conn, uint64_t now_ns);
/** Removes a conn that is no longer pending. */
void cm_pending_remove(struct cm_conn *conn);
/** Counts a conn that failed before it was established as a zombie. */
void cm_pending_expire(struct cm_conn *conn);
/** Uncounts a conn that the engine has put. */
void cm_pending_put(struct cm_conn *conn);

/** Returns whether a conn from `addr` may become pending; ends another one if necessary. */
bool cm_pending_make_room(struct cm_ep *cep, const union cm_addr *addr, uint64_t now_ns);

#endif
