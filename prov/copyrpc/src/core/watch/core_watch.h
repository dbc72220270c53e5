/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Watch: finds the peers that operations wait for, since when, and the cause. core_watch_ep is the
 * up-call on_watch of engines, which progress makes every few seconds (FI_COPYRPC_WATCH): nothing
 * here runs per message.
 *
 * Each look at a peer takes the operation, the pending completion or the simple access that is
 * oldest; without one, the oldest receive that only this peer can end. If it was the oldest at the
 * last look, too, it waits: the peer gets a row in the statistics page. After FI_COPYRPC_WATCH it
 * is an event, and is logged, at most once a minute for the process and not under a debugger; a
 * receive only if the peer is stopped. Times count from the first look, and time during which this
 * process did not look is taken off: a process that was stopped, or computed, has no peer to blame.
 *
 * A look also records when sending to a peer begins and ends to be refused, and packets to be sent
 * again, as its counters tell.
 *
 * Owner: the holder of the domain's lock. Tested by test/unit/core/watch/test_core_watch.c.
 */
#ifndef CORE_WATCH_CORE_WATCH_H
#define CORE_WATCH_CORE_WATCH_H

#include <stddef.h>
#include <stdint.h>

struct core_ep;
struct core_peer;

/** Peers of an endpoint that one look includes; the next ones follow with the next look. */
#define CORE_WATCH_PEERS 1024u

/** Looks at the peers of an endpoint now. Implements core_upcalls.on_watch. */
void core_watch_ep(struct core_ep *ep);

/** Likewise at `now_ns`, by util_clock_ns. */
void core_watch_ep_at(struct core_ep *ep, uint64_t now_ns);

/** Ends what is recorded of a peer that is freed. */
void core_watch_forget_peer(struct core_peer *peer);

/** Writes the line for the log about a peer that operations wait for. */
void core_watch_text(const struct core_peer *peer, uint64_t now_ns, char *text, size_t size);

#endif
