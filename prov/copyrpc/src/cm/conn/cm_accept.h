/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Passive side of the handshake: from an accepted stream or a HELLO datagram to READY.
 *
 * A stream of another user's process is refused at once. Of the same user's, at most
 * CM_ACCEPT_INCOMING_MAX streams wait for their HELLO, each for at most two seconds. One more
 * closes the oldest, so silent streams do not delay peers that send HELLO right after connecting.
 * Without a free descriptor accepting pauses, longer each time.
 *
 * A HELLO with a valid cookie is handled according to the state with that peer:
 *   no conn, or a request that waits         accepted
 *   a conn with another incarnation          that conn ends (-FI_ECONNABORTED); accepted
 *   own attempt, own incarnation lower       CROSSED: the own attempt wins
 *   own attempt, own incarnation higher      the own attempt ends; accepted
 *   established conn, same incarnation       CROSSED: the connection exists
 */
#ifndef CM_CONN_CM_ACCEPT_H
#define CM_CONN_CM_ACCEPT_H

#include "cm/conn/cm_conn.h"
#include "wire/wire_cm.h"

struct cm_ep;
struct cm_src;
struct cm_timer;

#define CM_ACCEPT_INCOMING_MAX 64u
#define CM_ACCEPT_WAIT_MS      2000u

/** cm_src.ready of cm_ep.listen, and the end of a pause. */
void cm_accept_on_ready(struct cm_src *src, uint32_t events);
void cm_accept_on_pause_over(struct cm_timer *timer);

/** Handles a HELLO datagram that belongs to no existing conn. */
void cm_accept_on_hello(struct cm_ep *cep, const struct cm_route *via,
			const struct wire_cm_pkt *pkt);

/** Handles a packet for a conn in state WELCOME_SENT. */
void cm_accept_on_pkt(struct cm_conn *conn, const struct wire_cm_pkt *pkt);

/** Closes all accepted streams without a HELLO, when the CM endpoint closes. */
void cm_accept_drop_incoming(struct cm_ep *cep);

#endif
