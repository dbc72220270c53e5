/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connections without a stream: handshake by datagrams, and detection of the peer's end.
 *
 * HELLO, WELCOME, READY and BYE travel as datagrams (docs/handshake.md, section 3.5). Each end
 * repeats its packet with back-off: HELLO until WELCOME, WELCOME until READY. READY is repeated for
 * each repeated WELCOME. Duplicates are harmless. A packet for an unknown connection is replied to
 * with BYE, so the next packet repairs a lost BYE.
 *
 * While a connection is up, a peer that is silent, both to cm and to the engine, is sent PING and
 * fails after the peer timeout. ICMP "port unreachable" ends the connection only after three in a
 * row, with a PING before each and no packet in between.
 */
#ifndef CM_CONN_CM_DGRAM_H
#define CM_CONN_CM_DGRAM_H

#include "cm/conn/cm_conn.h"
#include "wire/wire_cm.h"

struct cm_ep;
struct cm_timer;

#define CM_DGRAM_REFUSED_CNT 3u    /* ICMP errors in a row that end the connection */
#define CM_DGRAM_SUSPECT_MS  20u   /* delay of the PING after an ICMP error */
#define CM_DGRAM_PING_MS     2000u /* silence before a PING; at most 1/8 of the timeout */
#define CM_DGRAM_PINGS_S     1000u /* per CM endpoint, but at least 4 per peer and timeout */

/** Sends HELLO for `path` to the sender of the ACK. The peer's request is in ATTEMPT. */
void cm_dgram_start(struct cm_peer *peer, const struct wire_cm_pkt *ack, uint32_t path);

/**
 * Handles a packet other than REQ, ACK and a NAK to a REQ. Returns false if it is none of those.
 */
bool cm_dgram_on_pkt(struct cm_ep *cep, const struct cm_route *via, const struct wire_cm_pkt *pkt);

/** Returns the silence of each of `peer_cnt` peers after which a PING is sent. Pure. */
uint64_t cm_dgram_ping_ns(uint64_t timeout_ns, uint32_t peer_cnt);

/** Timer function of a conn without a stream. */
void cm_dgram_on_timer(struct cm_timer *timer);

/** Copies the sealed packet, sends it, and repeats it until the conn changes its state. */
int cm_dgram_send(struct cm_conn *conn, const uint8_t *buf, size_t len, uint64_t deadline_ns);
/** Frees the copy. */
void cm_dgram_stop_resend(struct cm_conn *conn);
/** Starts the supervision of an established conn. */
void cm_dgram_watch(struct cm_conn *conn);
/** Schedules a PING soon, after a sign that the peer may have ended. Any thread. */
void cm_dgram_suspect(struct cm_conn *conn);
/** Handles an ICMP error for a packet of this conn. Any thread. */
void cm_dgram_on_unreachable(struct cm_conn *conn, int err);

#endif
