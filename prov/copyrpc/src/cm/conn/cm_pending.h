/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Whom do we let in next, when many are being let in?
 *
 * A guest is a connection without a stream that was said WELCOME and has not said READY. Without a
 * job key anybody who can receive at the address that he claims can become one, and stay it. So
 * there are CM_PENDING_MAX at most, and when all places are taken somebody may have to go:
 *
 *	of the host that has most of them, the oldest, once it has had CM_PENDING_MS to say READY, for somebody
 *	from a host that has fewer; for anybody after CM_PENDING_OLD_MS.
 *
 * Else the newcomer is told to come again. So who attacks from one host keeps nobody out of
 * another. A host is an IPv4 address, or an IPv6 network of 64 bits. An honest guest that had to go
 * says HELLO again, as he does anyway until he hears WELCOME, and is let in anew.
 *
 * What is over belongs to the engine until it looks (cm_conn_put). A guest that came to nothing, and of which
 * that is not true yet, is a ghost. From CM_ZOMBIES_MAX on nobody is let in: whoever does not look could not
 * talk either.
 *
 * Under the node's mutex. Shown by test/unit/cm/conn/test_cm_pending.c.
 */
#ifndef CM_CM_GUEST_H
#define CM_CM_GUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "cm/base/cm_addr.h"

struct cm_ep;
struct cm_conn;

#define CM_PENDING_MAX    256u
#define CM_ZOMBIES_MAX    256u
#define CM_PENDING_MS     1000u
#define CM_PENDING_OLD_MS 4000u

/** It has been said WELCOME. */
void cm_pending_add(struct cm_conn *conn, uint64_t now_ns);
/** It is one no more. */
void cm_pending_remove(struct cm_conn *conn);
/** It came to nothing, before or after WELCOME. */
void cm_pending_expire(struct cm_conn *conn);
/** The engine has given it back. */
void cm_pending_put(struct cm_conn *conn);

/** May somebody from `addr` be let in? If another one had to go for that, it has gone. */
bool cm_pending_make_room(struct cm_ep *cep, const union cm_addr *addr, uint64_t now_ns);

#endif
