/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Passive side of the handshake: from a HELLO, on a stream (cm_incoming.h) or in a datagram, to
 * READY.
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
struct cm_fd_msg;

/** Handles the first message on a stream. Takes over fd and the descriptors of the message. */
void cm_accept_on_first(struct cm_ep *cep, int fd, struct cm_fd_msg *msg);

/** Handles a HELLO datagram that belongs to no existing conn. */
void cm_accept_on_hello(struct cm_ep *cep, const struct cm_route *via,
			const struct wire_cm_pkt *pkt);

/** Handles a packet for a conn in state WELCOME_SENT. */
void cm_accept_on_pkt(struct cm_conn *conn, const struct wire_cm_pkt *pkt);

#endif
