/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Who is at the door, and do we let him in? From the accepted stream to READY.
 *
 * A caller is a stream whose HELLO has not come yet. Callers of other users are turned away at
 * once; of our own user at most CM_ACCEPT_CALLERS wait, each for at most two seconds: one more
 * evicts the oldest, so a flood of silent callers costs an honest one (who speaks as soon as
 * he is connected) nothing. When no descriptor is left accepting pauses, longer each time.
 *
 * A HELLO that proves its address then meets what there is already with that peer:
 *   nothing, or a request that waits        it is let in
 *   a conn with another incarnation         that one is dead (-FI_ECONNABORTED); let in
 *   our own attempt, our incarnation lower  CROSSED: ours wins
 *   our own attempt, ours higher            ours is given up; let in
 *   a living conn with this incarnation     CROSSED: there is one already
 *
 * Shown by test/unit/cm/conn/test_cm_accept.c.
 */
#ifndef CM_CM_ACCEPT_H
#define CM_CM_ACCEPT_H

#include "cm/conn/cm_conn.h"
#include "wire/wire_cm.h"

struct cm_ep;
struct cm_src;
struct cm_timer;

#define CM_ACCEPT_CALLERS   64u
#define CM_ACCEPT_WAIT_MS   2000u
#define CM_ACCEPT_PAUSE_MS  50u
#define CM_ACCEPT_PAUSE_MAX 1000u

/** cm_src.ready of agent->listen, and the end of a pause. */
void cm_accept_on_ready(struct cm_src *src, uint32_t events);
void cm_accept_on_pause_over(struct cm_timer *timer);

/** A HELLO that came as a datagram, of no conn that there is. */
void cm_accept_on_hello(struct cm_ep *cep, const union cm_addr *from,
			const struct wire_cm_pkt *pkt);

/** A packet for a conn in state INVITED. */
void cm_accept_on_pkt(struct cm_conn *conn, const struct wire_cm_pkt *pkt);

/** The agent is closing: all callers are sent away. */
void cm_accept_drop_callers(struct cm_ep *cep);

#endif
