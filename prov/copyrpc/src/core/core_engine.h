/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Contract between core and an engine (ring/, erpc/, dgram/): the operations of an engine and of
 * its endpoints, which core calls, and the up-calls, which an engine makes. Messages go by channels
 * (core_chan.h), which an engine makes and reports by on_up.
 *
 * All functions and up-calls run under the domain's lock (or in its single thread), unless they
 * state otherwise. An up-call may call operations of any channel, but may not close one.
 *
 * Tested in test/unit/core with test/support/fake_engine.h.
 */
#ifndef CORE_CORE_ENGINE_H
#define CORE_CORE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "core/core_chan.h"

struct cm_connreq;
struct core_engine_ep;
struct core_ep;

/** Up-calls from an engine to core: one constant table, passed to open. */
struct core_upcalls {
	/*
	 * One-way message. `data`: extension and user bytes, in memory that the peer may still
	 * write.
	 */
	enum core_rx_verdict (*on_msg)(struct core_chan *chan, uint32_t op, const uint8_t *data,
				       uint32_t len, core_retain_t retain);
	/* Call. core replies to it by ops->reply exactly once, now or later. */
	enum core_rx_verdict (*on_call)(struct core_chan *chan, struct core_call_ref ref,
					const uint8_t *data, uint32_t len, core_retain_t retain);
	/* Response, or status < 0 if there will be none. The bytes are valid until the return. */
	void (*on_reply)(struct core_chan *chan, void *context, int status, const uint8_t *data,
			 uint32_t len);
	void (*on_get_done)(struct core_chan *chan, struct core_get *get);
	/* CORE_CHAN_ASYNC: all messages before `pos` are with the peer. */
	void (*on_acked)(struct core_chan *chan, uint64_t pos);
	/*
	 * Channel to the endpoint with the name `addr` is up, connected by either end. If it was
	 * reached at a further address, the name has that one and no other. `incarnation` differs
	 * from the previous one if the peer was restarted.
	 */
	void (*on_up)(struct core_ep *ep, struct core_chan *chan, const struct sockaddr *addr,
		      uint64_t incarnation);
	/* Connect to `addr` failed with -FI_E*. The reason was logged. */
	void (*on_connect_failed)(struct core_ep *ep, const struct sockaddr *addr, int err);
	/*
	 * Connect to `addr` found the endpoint of this incarnation, which has a channel that was
	 * reported by on_up and may have ended since: it has several addresses.
	 */
	void (*on_alias)(struct core_ep *ep, const struct sockaddr *addr, uint64_t incarnation);
	/*
	 * After ep_connect: the listener accepted, with `data`. The endpoint at `addr` is being
	 * connected.
	 */
	void (*on_accepted)(struct core_ep *ep, const struct sockaddr *addr, const void *data,
			    size_t len);
	/*
	 * After ep_connect and ep_accept: failed with -FI_E*. `data` is the data of a listener that
	 * rejected.
	 */
	void (*on_refused)(struct core_ep *ep, int err, const void *data, size_t len);
	/* Comes every few seconds while progress is made: see core/watch/core_watch.h. */
	void (*on_watch)(struct core_ep *ep);
	/*
	 * Paths that were out can be used again, a channel lacks room, or memory is short: channels
	 * may have better ones (core_failback.h). Comes about every second from then on, while
	 * progress is made and such channels exist.
	 */
	void (*on_regained)(struct core_ep *ep);
	/*
	 * For a connected endpoint (core_conn.h): progress would deliver an event. Called by the
	 * control thread, without the domain's lock.
	 */
	void (*on_event)(struct core_ep *ep);
	/* The first `cnt` simple accesses of a channel, modulo 2^32, have ended without error. */
	void (*on_accessed)(struct core_chan *chan, uint32_t cnt);
	/*
	 * eager_min of the channel is lower, or its reg_dev has become NULL: then no direct access
	 * is in progress.
	 */
	void (*on_limits)(struct core_chan *chan);
	/*
	 * Channel is down. All that had arrived was delivered, and no bytes of a get move any more.
	 * core closes the channel.
	 */
	void (*on_down)(struct core_chan *chan, int err);
};

/**
 * Part of an engine that a domain drives. Each engine embeds it and finds itself with
 * UTIL_CONTAINER_OF.
 */
struct core_progress {
	int wait_fd; /* readable once armed, see dev.h; -1: none */
	/* Set by core before a thread sleeps: it should be woken for on_watch. Atomic */
	bool waits;
};

/** Progress contract: what a domain needs to run an engine and to sleep on it. */
struct core_progress_ops {
	const char *name;
	int (*open)(const struct core_upcalls *up, struct core_progress **progress);
	void (*close)(struct core_progress *progress);
	/* Receives what arrived, sends what is queued. */
	void (*progress)(struct core_progress *progress);
	/* Arms wait_fd. Returns 0, or -FI_EAGAIN if progress must be called again. */
	int (*arm)(struct core_progress *progress);
	void (*disarm)(struct core_progress *progress);
};

/** Peer contract: endpoints that connect to peers. Engines of datagram endpoints have none. */
struct core_engine_ops {
	/* Binds an endpoint at `addr` (port 0: any) and starts to reply to handshakes. */
	int (*ep_open)(struct core_progress *progress, struct core_ep *ep,
		       const struct sockaddr *addr, struct core_engine_ep **eep);
	/* Returns the address for peers: always concrete, never a wildcard. */
	void (*ep_addr)(struct core_engine_ep *eep, struct sockaddr_storage *addr);
	/* Closes the endpoint. core closed all its channels before. */
	void (*ep_close)(struct core_engine_ep *eep);
	/*
	 * Starts or joins a handshake. `was_up`: there was a channel to this address before, so a
	 * refusal means the end of the process and is reported soon. Returns 0 if on_up,
	 * on_alias or on_connect_failed follows, or -FI_E*.
	 */
	int (*connect)(struct core_engine_ep *eep, const struct sockaddr *addr, bool was_up);
	/* Gives up the handshake. */
	void (*connect_cancel)(struct core_engine_ep *eep, const struct sockaddr *addr);
	/*
	 * Connected endpoints: connects to the listener at `addr`, or accepts a connection request.
	 * Returns 0 or -FI_E* (-FI_ECONNABORTED: the requester has gone). on_up follows, or
	 * on_refused or on_connect_failed.
	 */
	int (*ep_connect)(struct core_engine_ep *eep, const struct sockaddr *addr, const void *data,
			  size_t len);
	int (*ep_accept)(struct core_engine_ep *eep, struct cm_connreq *connreq, const void *data,
			 size_t len);
};

#endif
