/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How do two ends connect, and notice each other's end, that have no stream between them?
 *
 * HELLO, WELCOME, READY and BYE as datagrams (docs/handshake.md, section 3.5). Whoever waits for an
 * answer repeats what he said, later each time: HELLO until WELCOME, WELCOME until READY; READY is
 * said again whenever WELCOME comes again. Nothing is lost by hearing a thing twice. What names a
 * connection that is not there is answered with BYE, so a lost BYE is made good by the next packet.
 *
 * While a connection is up a peer that is silent, here and in the engine, is asked (PING), and fails
 * when it stays silent for the peer timeout. ICMP's word that its port is closed is not believed at
 * once: three times in a row, with a PING in between, and nothing heard meanwhile.
 *
 * Shown by test/unit/cm/conn/test_cm_dgram.c.
 */
#ifndef CM_CM_DGRAM_H
#define CM_CM_DGRAM_H

#include "cm/conn/cm_conn.h"
#include "wire/wire_cm.h"

struct cm_ep;
struct cm_timer;

#define CM_DGRAM_REFUSED_CNT 3u    /* ICMP errors in a row that mean: it has ended */
#define CM_DGRAM_SUSPECT_MS  20u   /* between the PINGs that follow one */
#define CM_DGRAM_PING_MS     2000u /* silence before a PING; an eighth of the timeout if shorter */
#define CM_DGRAM_PINGS_S     1000u /* of an agent, if that leaves each peer four in the timeout */

/** Says HELLO for `path` where the ACK came from. The peer's request is in ATTEMPT. */
void cm_dgram_start(struct cm_peer *peer, const struct wire_cm_pkt *ack, uint32_t path);

/** Everything from `from` but REQ, ACK and a NAK to a REQ: true if it was ours. */
bool cm_dgram_on_pkt(struct cm_ep *cep, const union cm_addr *from, const struct wire_cm_pkt *pkt);

/** How long each of so many peers may be silent before it is asked. Pure. */
uint64_t cm_dgram_ping_ns(uint64_t timeout_ns, uint32_t peer_cnt);

/** cm_conn.timer of a conn without a stream. */
void cm_dgram_on_timer(struct cm_timer *timer);

/** Keeps what was sealed in buf, sends it, and again until the conn changes its state. */
int cm_dgram_send(struct cm_conn *conn, const uint8_t *buf, size_t len, uint64_t deadline_ns);
/** What was kept is no longer needed. */
void cm_dgram_hush(struct cm_conn *conn);
/** It is up: from now on it is watched. */
void cm_dgram_watch(struct cm_conn *conn);
/** Something speaks against its being alive: it is asked soon. Any thread. */
void cm_dgram_suspect(struct cm_conn *conn);
/** The network says that our packet did not get there. Any thread. */
void cm_dgram_on_unreachable(struct cm_conn *conn, int err);

#endif
