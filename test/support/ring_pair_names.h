/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Names of the functions of ring_template.h in the tests: RING_PAIR_KIND and the part behind
 * ring_this. Included by ring_pair.c, which compiles the template for several fake devices.
 */
#ifndef SUPPORT_RING_PAIR_NAMES_H
#define SUPPORT_RING_PAIR_NAMES_H

#define RING_PAIR_PASTE(kind, name) kind##_##name
#define RING_PAIR_JOIN(kind, name)  RING_PAIR_PASTE(kind, name)
#define RING_PAIR_NAME(name)        RING_PAIR_JOIN(RING_PAIR_KIND, name)

#define ring_this_send          RING_PAIR_NAME(send)
#define ring_this_send_general  RING_PAIR_NAME(send_general)
#define ring_this_send_single   RING_PAIR_NAME(send_single)
#define ring_this_send_buf      RING_PAIR_NAME(send_buf)
#define ring_this_send_more     RING_PAIR_NAME(send_more)
#define ring_this_call          RING_PAIR_NAME(call)
#define ring_this_call_general  RING_PAIR_NAME(call_general)
#define ring_this_call_single   RING_PAIR_NAME(call_single)
#define ring_this_call_buf      RING_PAIR_NAME(call_buf)
#define ring_this_reply         RING_PAIR_NAME(reply)
#define ring_this_reply_general RING_PAIR_NAME(reply_general)
#define ring_this_reply_single  RING_PAIR_NAME(reply_single)
#define ring_this_reply_release RING_PAIR_NAME(reply_release)
#define ring_this_flush_chan    RING_PAIR_NAME(flush_chan)
#define ring_this_is_busy       RING_PAIR_NAME(is_busy)
#define ring_this_access        RING_PAIR_NAME(access)
#define ring_this_chan_ops      RING_PAIR_NAME(chan_ops)
#define ring_this_probe         RING_PAIR_NAME(probe)
#define ring_this_open          RING_PAIR_NAME(open)
#define ring_this_poll          RING_PAIR_NAME(poll)
#define ring_this_flush_dirty   RING_PAIR_NAME(flush_dirty)
#define ring_this_flush         RING_PAIR_NAME(flush)
#define ring_this_transport     RING_PAIR_NAME(transport)

#endif
