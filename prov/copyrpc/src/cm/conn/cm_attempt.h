/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How does the end that was invited come in? From ACK to WELCOME, at the side that asked.
 *
 * Connecting to the abstract name is the proof of "same host": a refusal, twice in a row from the
 * same incarnation, means another host or network namespace (once may mean that it just ended).
 * Where both ends have another path they then go on with datagrams (cm_dgram.h), and at once. A path
 * that comes to nothing for good is avoided as long as there is another.
 * Shown by test/unit/cm/conn/test_cm_attempt.c.
 */
#ifndef CM_CM_ATTEMPT_H
#define CM_CM_ATTEMPT_H

#include "cm/conn/cm_conn.h"
#include "cm/base/cm_fd.h"
#include "wire/wire_cm.h"

struct cm_peer;

/** Goes where the ACK says. The peer has a request in PROBE; it may be answered on return. */
void cm_attempt_start(struct cm_peer *peer, const struct wire_cm_pkt *ack);

/** A packet for a conn in state ASKED. */
void cm_attempt_on_pkt(struct cm_conn *conn, const struct wire_cm_pkt *pkt,
		       const struct cm_fd_msg *msg);

/** Says HELLO on a conn that is prepared. */
void cm_attempt_send_hello(struct cm_conn *conn, const struct wire_cm_pkt *ack,
			   const struct cm_params *params);
/** Our own end is the problem: tries again, or another path than `path`, or fails. */
void cm_attempt_failed_here(struct cm_peer *peer, uint32_t path, int err, const char *what);

/** The peer's attempt wins: ours is given up. */
void cm_attempt_yield(struct cm_conn *conn);

#endif
