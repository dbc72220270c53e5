/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Channels: what an engine (ring/, erpc/) carries to one peer, and the operations that core calls.
 *
 *   one-way messages  operation word and bytes, in order; refused with -FI_EAGAIN without room;
 *   calls             a message with a maximum response size; -FI_EAGAIN without credit;
 *   replies           at most the maximum response size; always accepted, never block;
 *   gets              bulk reads of the peer's memory, and direct accesses (core_get.h).
 * A peer's channel can go down. A new one can come up in its place. The engine reports both,
 * and what arrives, by up-calls (core_engine.h).
 *
 * All functions run under the domain's lock (or in its single thread). Buffers passed to an
 * operation are free on return.
 *
 * The datagram engine maps send and call to requests (a one-way message has an empty response) and
 * reply to the response. Retained bytes are its receive buffers, eager_max is the size of one
 * request, and flush rings the doorbell of the batch.
 *
 * Tested in test/unit/core with test/support/fake_engine.h.
 */
#ifndef CORE_CORE_CHAN_H
#define CORE_CORE_CHAN_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "core/core_frame.h"
#include "core/core_get.h"
#include "util/list.h"

struct core_chan;
struct core_peer;
struct core_reg;
struct core_tags_list;
struct copyrpc_stats_peer;
struct util_job_name;

/** Part of a peer's calls that may stay open until a receive matches (core_chan.held_max). */
#define CORE_CHAN_HELD_PART 8u

/** Identifies a call at the side that replies to it. */
struct core_call_ref {
	uint32_t call_id;
	uint32_t resp_max; /* bytes that reply accepts */
};

/** Identifies bytes that an up-call retained. Valid until release. */
typedef uint64_t core_retain_t;

enum core_rx_verdict {
	CORE_RX_DONE = 0,   /* bytes may be overwritten */
	CORE_RX_RETAIN = 1, /* bytes stay until ops->release; they occupy the peer's ring */
	CORE_RX_BAD = -1,   /* illegal message: the channel goes down */
};

enum core_chan_cap {
	CORE_CHAN_GET = 1 << 0,    /* ops->get works */
	CORE_CHAN_ASYNC = 1 << 1,  /* bytes sent arrive later: *posted, awaited, on_acked */
	CORE_CHAN_REVOKE = 1 << 2, /* unexpose during a get of the peer fails only that get */
	/*
	 * After -FI_EAGAIN an armed engine signals its wait object as soon as there may be room or
	 * credit, or refuses to be armed.
	 */
	CORE_CHAN_WAKES = 1 << 3,
	CORE_CHAN_AUTHENTIC =
		1 << 4, /* the peer has proved by a job key that its name is its own */
};

/** Causes of -FI_EAGAIN from a call. */
enum core_shortage {
	CORE_SHORT_NONE,
	CORE_SHORT_CONNECTION, /* the peer is not connected, and no more calls may wait for that */
	CORE_SHORT_CREDIT,     /* the peer grants no space for the response */
	CORE_SHORT_SPACE,      /* the peer has not released enough of the bytes sent to it */
	CORE_SHORT_QUEUE,      /* operations of this end wait to be sent */
	CORE_SHORT_MEMORY,     /* no memory, or no free id of a call */
	CORE_SHORT_CNT,
};

struct core_chan {
	/* The first cache line has what each message needs. */
	const struct core_chan_ops *ops;
	struct core_peer *peer;           /* set by core when the channel comes up */
	struct copyrpc_stats_peer *stats; /* the engine counts there; set by it */
	/*
	 * CORE_CHAN_ASYNC. Positions of 64 bits that grow: messages before *posted are posted,
	 * messages before the last position of on_acked are with the peer. core sets `awaited` to
	 * the end of the last message that has a pending completion. The engine obtains its
	 * acknowledgement, if need be with a message.
	 */
	const uint64_t *posted;
	uint64_t awaited;
	uint64_t engine[3]; /* the engine's: what it needs with each packet, too */

	uint32_t caps;
	uint32_t access_inline; /* longest write whose bytes ops->access takes before its return */
	/*
	 * Device with which memory is registered for ops->direct, the same pointer in all channels
	 * that share registrations. NULL: ops->direct, undirect and reg do not work.
	 */
	const void *reg_dev;
	size_t eager_max; /* maximum of ext_len + len of one send or call */
	/*
	 * Messages up to this length are eager, as far as eager_max permits, where the domain's
	 * limit is lower; 0: that limit. Where a round trip costs more than two copies.
	 */
	size_t eager_min;
	size_t resp_lim;   /* largest maximum response size of a call */
	size_t resp_sure;  /* up to here credit comes without other traffic */
	uint32_t held_max; /* calls of the peer that may stay open until a receive matches */
	uint32_t retained; /* retained buffers that users refer to (core_rpc.h) */
	struct util_list stopped_link;   /* core_ep.stopped */
	size_t get_min;                  /* smallest get that pays off; 0: the domain's limit */
	enum core_shortage shortage : 8; /* cause of the last -FI_EAGAIN from call or call_buf */
	/* CORE_SEND_STAYS was returned and progress made; false once all messages have left */
	bool stays;
	/* Process of the peer on this host, by the kernel's word; 0: unknown. Set by the engine */
	int32_t pid;
	const struct util_job_name *identity; /* stated by the peer, or NULL. Likewise */
};

static_assert(offsetof(struct core_chan, caps) == 64, "the first cache line");

/** Records the cause of `err`, an error of a call. Returns `err`. */
static inline int core_chan_refuse(struct core_chan *chan, enum core_shortage shortage, int err)
{
	chan->shortage = shortage != CORE_SHORT_NONE ? shortage : CORE_SHORT_MEMORY;
	return err;
}

/* Sizes in the result of core_chan_ops.better, as on the wire */
#define CORE_BETTER_ROOM  0x40000000u /* the peer's ring limits this end */
#define CORE_BETTER_QUIET 0x80000000u /* the rings are idle, and memory is short */
#define CORE_BETTER_SIZES (CORE_BETTER_ROOM | CORE_BETTER_QUIET)

struct core_chan_ops {
	/*
	 * Sends a one-way message. Returns 0, -FI_EAGAIN if there is no room, or the error that
	 * broke the channel.
	 */
	int (*send)(struct core_chan *chan, const struct core_frame *frame, unsigned flags);
	/*
	 * Hot path of send, in registers: core_packed(op, flags), two words of extension (zero
	 * beyond the extension of `op`), one buffer. Returns 1 instead of 0 with CORE_CHAN_ASYNC,
	 * plus CORE_SEND_STAYS and CORE_SEND_LONG.
	 */
	int (*send_buf)(struct core_chan *chan, uint64_t packed, uint64_t ext0, uint64_t ext1,
			const void *buf, size_t len);
	/* Equals send_buf with CORE_SEND_MORE, which `packed` does not contain. */
	int (*send_more)(struct core_chan *chan, uint64_t packed, uint64_t ext0, uint64_t ext1,
			 const void *buf, size_t len);
	/*
	 * Sends a call. Its response or failure comes by on_reply with `context`, which is not
	 * NULL. Sets chan->shortage before it returns -FI_EAGAIN.
	 */
	int (*call)(struct core_chan *chan, const struct core_frame *frame, uint32_t resp_max,
		    void *context, unsigned flags);
	/* Hot path of call: an operation word without extension, one buffer. */
	int (*call_buf)(struct core_chan *chan, uint32_t op, const void *buf, size_t len,
			uint32_t resp_max, void *context, unsigned flags);
	/*
	 * Returns a lower bound of the calls of `len` bytes (with extension) that are accepted now.
	 */
	size_t (*call_room)(struct core_chan *chan, size_t len, uint32_t resp_max);
	/* Returns the shortage because of which such a call would be refused now. */
	enum core_shortage (*call_shortage)(const struct core_chan *chan, size_t len,
					    uint32_t resp_max);
	/*
	 * Sends the response, `len` bytes in all, once per call. Returns 0, or -FI_EMSGSIZE if a
	 * user's response is longer than resp_max. Its room was reserved by the call.
	 */
	int (*reply)(struct core_chan *chan, struct core_call_ref ref, const struct iovec *iov,
		     size_t iov_cnt, size_t len, unsigned flags);
	/*
	 * Hot path of reply, in registers: sends one buffer, which may be that of the call, then
	 * releases the bytes of the call. Does neither on error.
	 */
	int (*reply_release)(struct core_chan *chan, struct core_call_ref ref, core_retain_t retain,
			     const void *buf, size_t len, unsigned flags);
	/*
	 * Called during on_reply only: retains the bytes until release(*retain). Returns 0 or
	 * -FI_ENOMEM.
	 */
	int (*retain)(struct core_chan *chan, core_retain_t *retain);
	/*
	 * CORE_CHAN_ASYNC: `awaited` has moved to the end of a message that had CORE_SEND_NOW. For
	 * other messages the engine needs no notice.
	 */
	void (*await)(struct core_chan *chan);
	/* Sends all accepted messages now, as far as the device allows. */
	void (*flush)(struct core_chan *chan);
	/*
	 * Returns 1 if the get ended at once (status set, no up-call), 0 if on_get_done follows, or
	 * -FI_E*.
	 */
	int (*get)(struct core_chan *chan, struct core_get *get);
	/*
	 * Exposes [addr, addr + len) to gets of the peer. Returns 0 and *exposure, or -FI_E*: then
	 * the bytes must be pipelined. A transport in which both ends can copy prepares to help.
	 */
	int (*expose)(struct core_chan *chan, const void *addr, size_t len,
		      struct core_exposure *exposure);
	/* Ends the exposure, whatever is in flight. Works on a channel that is down, too. */
	void (*unexpose)(struct core_chan *chan, struct core_exposure *exposure);
	/*
	 * Direct access: the device reads or writes registered memory of the peer, whose processor
	 * does nothing. Ends like a get. A write is in front of all messages that are accepted
	 * later, a read is not. Returns 0 if on_get_done follows, -FI_EAGAIN if there is no room
	 * now, or -FI_E*: then the device cannot do it, or the channel is broken. flags:
	 * enum core_direct_flag.
	 */
	int (*direct)(struct core_chan *chan, struct core_get *get, unsigned flags);
	/*
	 * Simple direct access: of one buffer, covered by `reg` or short enough for the device to
	 * take its bytes before the return. The channel numbers them from 1 on; on_accessed
	 * follows, for several at a time. Without
	 * MORE it leaves now or, behind others in progress, with the next progress. Returns 0, or
	 * -FI_E* with nothing done: `direct` may do it. NULL: works never.
	 */
	int (*access)(struct core_chan *chan, const struct core_access_args *args);
	/* Forgets a direct access in progress. The channel is closed before anything else. */
	void (*undirect)(struct core_chan *chan, struct core_get *get);
	/*
	 * Registers memory for direct accesses: of peers, for `access` (FI_REMOTE_READ,
	 * FI_REMOTE_WRITE), or for local buffers (0). Returns 0 and *reg, with `next` and `users`
	 * 0, or -FI_E*.
	 */
	int (*reg)(struct core_chan *chan, const void *addr, size_t len, unsigned access,
		   struct core_reg **reg);
	void (*release)(struct core_chan *chan, core_retain_t retain);
	/*
	 * Delivers, by up-calls, all that has arrived from the peer. NULL: nothing waits
	 * undelivered.
	 */
	void (*drain)(struct core_chan *chan);
	/*
	 * Returns true if close does not wait for the peer. Else marks the channel as failed:
	 * on_down follows, in bounded time. NULL: close never waits.
	 */
	bool (*withdraw)(struct core_chan *chan);
	/*
	 * Fails a channel that is up, as an error of its device would: on_down follows with `err`,
	 * in bounded time. NULL in channels without an engine (core_self.h).
	 */
	void (*fail)(struct core_chan *chan, int err);
	/*
	 * Returns what another channel to the peer would have: the paths that are better than the
	 * channel's and that this end can use (WIRE_CM_PATH_*), the channel's own if it may have
	 * more devices, and rings of another size (CORE_BETTER_*). `regained`: only paths
	 * that were out when the channel was made, or since then, and sizes that this end wants;
	 * otherwise sizes that it can offer. NULL: nothing.
	 */
	uint32_t (*better)(struct core_chan *chan, bool regained);
	/*
	 * Lets the next channel to the peer, soon, have a larger ring for it, or a smaller one.
	 * NULL: better never returns sizes.
	 */
	void (*resize)(struct core_chan *chan, bool is_larger);
	/*
	 * Opens a list of at most `cnt` receives for tag matching by the channel's device
	 * (core_tags.h). Returns 0, -FI_EOPNOTSUPP if the device has none, or another error,
	 * logged. NULL: none.
	 */
	int (*tags_open)(struct core_chan *chan, uint32_t cnt, struct core_tags_list **list);
	/*
	 * Sets *sent to the position behind the last accepted message, which grows with each, and
	 * *parsed to one before which the peer has parsed all. NULL without tags_open.
	 */
	void (*positions)(struct core_chan *chan, uint64_t *sent, uint64_t *parsed);
	/* Writes levels, as round trips, to chan->stats. NULL: the channel has none. */
	void (*show)(struct core_chan *chan);
	/* Returns true while accepted messages may be lost by a close. fi_close polls this. */
	bool (*is_busy)(struct core_chan *chan);
	/*
	 * Closes the channel, except that retained memory stays and release works until close.
	 * Accepted messages leave, no up-call follows, calls in progress are forgotten. Gets in
	 * progress end without an up-call, their buffers are not written any more; unexpose still
	 * works.
	 */
	void (*stop)(struct core_chan *chan);
	/* Frees the channel. No up-call follows, calls in progress are forgotten. */
	void (*close)(struct core_chan *chan);
};

static inline void core_chan_show(struct core_chan *chan)
{
	if (chan->ops->show)
		chan->ops->show(chan);
}

/** Sends a response of one buffer. */
static inline int core_chan_reply(struct core_chan *chan, struct core_call_ref ref, const void *buf,
				  size_t len)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf, .iov_len = len };

	return chan->ops->reply(chan, ref, &iov, 1, len, 0);
}

/** Implements reply_release by reply and release, for an engine without a faster path. */
static inline int core_chan_reply_release(struct core_chan *chan, struct core_call_ref ref,
					  core_retain_t retain, const void *buf, size_t len,
					  unsigned flags)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf, .iov_len = len };
	int ret = chan->ops->reply(chan, ref, &iov, 1, len, flags);

	if (!ret)
		chan->ops->release(chan, retain);
	return ret;
}

#endif
