/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Incoming streams: accepted ones, until their HELLO arrives. Called by cm_open.c and the control
 * thread; the first message of each goes to cm_accept.h.
 *
 * A stream of another user's process is ended at once, unread, and left to the closer
 * (cm/node/cm_closer.h). Of the same user's, at most CM_INCOMING_MAX streams wait for their HELLO,
 * each for at most two seconds. One more closes the oldest, so silent streams do not delay peers
 * that send HELLO right after connecting. A peer that prepared for longer finds its stream closed
 * and connects again (cm_attempt.c), so the limit does not depend on how long that takes. A HELLO
 * that arrived while the thread was busy is read before its stream is closed. Without a free
 * descriptor accepting pauses, longer each time.
 */
#ifndef CM_CONN_CM_INCOMING_H
#define CM_CONN_CM_INCOMING_H

#include <stdint.h>

struct cm_ep;
struct cm_src;
struct cm_timer;

#define CM_INCOMING_MAX     64u
#define CM_INCOMING_WAIT_MS 2000u

/** cm_src.ready of cm_ep.listen, and the end of a pause. */
void cm_incoming_on_listen(struct cm_src *src, uint32_t events);
void cm_incoming_on_pause_over(struct cm_timer *timer);

/** Closes all accepted streams without a HELLO, when the CM endpoint closes. */
void cm_incoming_drop_all(struct cm_ep *cep);

/** Closes the listening socket, and the streams that were not accepted. */
void cm_incoming_close_listener(struct cm_ep *cep);

#endif
