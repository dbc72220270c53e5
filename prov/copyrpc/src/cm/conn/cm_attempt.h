/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Active side of the handshake: from ACK to WELCOME.
 *
 * A connect to the abstract name proves "same host". A refusal means another host or network
 * namespace, if the address is not of this host; otherwise it must come twice in a row from the
 * same incarnation, because the process may just have ended. If both ends have another path, they
 * then continue with datagrams (cm_dgram.h). A path that fails finally is avoided as long as there
 * is another.
 */
#ifndef CM_CONN_CM_ATTEMPT_H
#define CM_CONN_CM_ATTEMPT_H

#include "cm/base/cm_fd.h"
#include "cm/conn/cm_conn.h"
#include "wire/wire_cm.h"

struct cm_peer;

/** Starts an attempt with an ACK. The peer's request is in PROBE, and may have ended on return. */
void cm_attempt_start(struct cm_peer *peer, const struct wire_cm_pkt *ack);

/** Handles a packet for a conn in state HELLO_SENT. */
void cm_attempt_on_pkt(struct cm_conn *conn, const struct wire_cm_pkt *pkt,
		       const struct cm_fd_msg *msg);

/** Sends HELLO on a prepared conn. */
void cm_attempt_send_hello(struct cm_conn *conn, const struct wire_cm_pkt *ack,
			   const struct cm_params *params);
/** Handles an error at this end: retries, avoids `path`, or fails the request. */
void cm_attempt_failed_locally(struct cm_peer *peer, uint32_t path, int err, const char *what);

/** Ends the own attempt because the peer's wins. */
void cm_attempt_yield(struct cm_conn *conn);

#endif
