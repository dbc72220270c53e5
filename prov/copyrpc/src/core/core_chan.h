/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Interface between core and an engine (ring/, erpc/): channel operations, up-calls, engine
 * operations.
 *
 * A channel carries to one peer:
 *   one-way messages  operation word and bytes, in order; refused with -FI_EAGAIN without room;
 *   calls             a message with a maximum response size; -FI_EAGAIN without credit;
 *   replies           at most the maximum response size; always accepted, never block.
 * A peer's channel can go down. A new one can come up in its place.
 *
 * All functions and up-calls run under the domain's lock (or in its single thread). An up-call may
 * call operations of any channel, but may not close one. Buffers passed to an operation are free on
 * return.
 *
 * The datagram engine maps send and call to requests (a one-way message has an empty response) and
 * reply to the response. Retained bytes are its receive buffers, eager_max is the size of one
 * request, and flush rings the doorbell of the batch.
 *
 * Tested in test/unit/core with test/support/fake_engine.h.
 */
#ifndef CORE_CORE_CHAN_H
#define CORE_CORE_CHAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "util/list.h"
#include "wire/wire_op.h"

struct cm_connreq;
struct core_chan;
struct core_peer;
struct core_ep;
struct core_engine_ep;
struct core_reg;
struct copyrpc_stats_peer;
struct util_job_name;

#define CORE_FRAME_EXT_MAX 56

/** Part of a peer's calls that may stay open until a receive matches (core_chan.held_max). */
#define CORE_CHAN_HELD_PART 8u

/** Message to send: operation word, extension bytes, user bytes. */
struct core_frame {
	uint32_t op; /* wire/wire_op.h */
	uint32_t ext_len;
	uint64_t ext[CORE_FRAME_EXT_MAX / 8];
	const struct iovec *iov;
	size_t iov_cnt;
	size_t iov_off; /* bytes of iov to skip */
	size_t len;     /* user bytes, from iov_off on */
};

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

enum core_send_flag {
	CORE_SEND_MORE = 1 << 0, /* FI_MORE: may wait for the next message or a flush */
	/*
	 * Leaves before the return: the sender may never call progress. Where the engine must wait
	 * for responses of the peer and several are outstanding, the message may leave with the
	 * next progress.
	 */
	CORE_SEND_NOW = 1 << 1,
};

/*
 * Packed header, an argument of send_buf: the operation word, the bytes of its extension, and enum
 * core_send_flag in the topmost bits. A flag makes the extension longer than any batch, so a
 * comparison with the free space of a batch fails without a separate test of the flags.
 */
#define CORE_PACKED_EXT_SHIFT  32
#define CORE_PACKED_FLAG_SHIFT 62

static inline uint64_t core_packed(uint32_t op, unsigned flags)
{
	return op | (uint64_t)wire_ext_len(op) << CORE_PACKED_EXT_SHIFT |
	       (uint64_t)flags << CORE_PACKED_FLAG_SHIFT;
}

/** Returns a packed header without flags with CORE_SEND_MORE. */
static inline uint64_t core_packed_more(uint64_t packed)
{
	return packed | (uint64_t)CORE_SEND_MORE << CORE_PACKED_FLAG_SHIFT;
}

static inline uint32_t core_packed_op(uint64_t packed)
{
	return (uint32_t)packed;
}

static inline uint32_t core_packed_ext_len(uint64_t packed)
{
	return (uint8_t)(packed >> CORE_PACKED_EXT_SHIFT);
}

static inline unsigned core_packed_flags(uint64_t packed)
{
	return (unsigned)(packed >> CORE_PACKED_FLAG_SHIFT);
}

/** Bulk get of the peer's memory, or a direct access. Owned by the caller until on_get_done. */
struct core_get {
	uint64_t remote_addr;
	uint64_t remote_key;
	const struct iovec *iov; /* valid until the end */
	size_t iov_cnt;
	size_t len;                         /* not 0, at most the length of iov */
	struct core_reg *reg;               /* ops->direct: covers iov; NULL: not registered */
	int status;                         /* 0 or -FI_E* */
	void (*done)(struct core_get *get); /* called by core at the end of the get */
	void *engine[20];                   /* the engine's until done: the device's transfer */
};

/** Flags of core_chan_ops.direct. */
enum core_direct_flag {
	CORE_DIRECT_WRITE = 1 << 0,   /* to the peer's memory; else a read */
	CORE_DIRECT_PLACED = 1 << 1,  /* a write ends once its bytes are in the peer's memory */
	CORE_DIRECT_MORE = 1 << 2,    /* FI_MORE: may wait for the next one or a flush */
	CORE_DIRECT_ORDERED = 1 << 3, /* messages accepted before leave before */
	CORE_DIRECT_NOW = 1 << 4,     /* simple: leaves before the return */
	CORE_DIRECT_SILENT = 1 << 5,  /* simple: on_accessed may be late, until is_busy asks */
};

/** Arguments of core_chan_ops.access. */
struct core_access_args {
	const void *buf;
	size_t len; /* not 0, at most 1 GiB */
	uint64_t remote_addr;
	uint64_t remote_key;
	struct core_reg *reg; /* covers the buffer, or NULL */
	unsigned flags;       /* enum core_direct_flag, without PLACED */
};

/** Memory that is exposed to gets of the peer. Owned by the caller of expose until unexpose. */
struct core_exposure {
	struct core_chan *chan; /* NULL: not exposed */
	uint64_t key;           /* rkey, core_get.remote_key of the peer */
	void *engine;
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
	uint32_t caps;
	uint32_t access_inline; /* longest write whose bytes ops->access takes before its return */
	size_t eager_max;       /* maximum of ext_len + len of one send or call */
	/*
	 * Messages up to this length are eager, as far as eager_max permits, where the domain's
	 * limit is lower; 0: that limit. Where a round trip costs more than two copies.
	 */
	size_t eager_min;
	size_t resp_lim;   /* largest maximum response size of a call */
	size_t resp_sure;  /* up to here credit comes without other traffic */
	uint32_t held_max; /* calls of the peer that may stay open until a receive matches */
	uint32_t retained; /* retained buffers that users refer to (core_rpc.h) */
	struct util_list stopped_link; /* core_ep.stopped */
	size_t get_min;                /* smallest get that pays off; 0: the domain's limit */
	/*
	 * Device with which memory is registered for ops->direct, the same pointer in all channels
	 * that share registrations. NULL: ops->direct, undirect and reg do not work.
	 */
	const void *reg_dev;
	enum core_shortage shortage; /* cause of the last -FI_EAGAIN from call or call_buf */
	/* Process of the peer on this host, by the kernel's word; 0: unknown. Set by the engine */
	int32_t pid;
	const struct util_job_name *identity; /* stated by the peer, or NULL. Likewise */
};

/** Records the cause of `err`, an error of a call. Returns `err`. */
static inline int core_chan_refuse(struct core_chan *chan, enum core_shortage shortage, int err)
{
	chan->shortage = shortage != CORE_SHORT_NONE ? shortage : CORE_SHORT_MEMORY;
	return err;
}

struct core_chan_ops {
	/*
	 * Sends a one-way message. Returns 0, -FI_EAGAIN if there is no room, or the error that
	 * broke the channel.
	 */
	int (*send)(struct core_chan *chan, const struct core_frame *frame, unsigned flags);
	/*
	 * Hot path of send, in registers: core_packed(op, flags), two words of extension (zero
	 * beyond the extension of `op`), one buffer. Returns 1 instead of 0 with CORE_CHAN_ASYNC.
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
	 * Returns the paths that are better than the channel's and that this end can use
	 * (WIRE_CM_PATH_*).
	 * `regained`: only those that were out when the channel was made. NULL: there are none.
	 */
	uint32_t (*better)(struct core_chan *chan, bool regained);
	/* Writes levels, as round trips, to chan->stats. NULL: the channel has none. */
	void (*show)(struct core_chan *chan);
	/* Returns true while accepted messages may be lost by a close. fi_close polls this. */
	bool (*is_busy)(struct core_chan *chan);
	/*
	 * Closes the channel, except that retained memory stays and release works until close.
	 * Accepted messages leave, no up-call follows, calls in progress are forgotten.
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

/** Implements send_more by send_buf, for an engine without a faster path. */
static inline int core_chan_send_more(struct core_chan *chan, uint64_t packed, uint64_t ext0,
				      uint64_t ext1, const void *buf, size_t len)
{
	return chan->ops->send_buf(chan, core_packed_more(packed), ext0, ext1, buf, len);
}

/** Implements send_buf by send, for an engine without a faster path. */
static inline int core_chan_send_framed(struct core_chan *chan, uint64_t packed, uint64_t ext0,
					uint64_t ext1, const void *buf, size_t len)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf, .iov_len = len };
	struct core_frame frame = {
		.op = core_packed_op(packed),
		.ext_len = core_packed_ext_len(packed),
		.ext = { ext0, ext1 },
		.iov = &iov,
		.iov_cnt = 1,
		.len = len,
	};

	return chan->ops->send(chan, &frame, core_packed_flags(packed));
}

/** Implements call_buf by call, for an engine without a faster path. */
static inline int core_chan_call_framed(struct core_chan *chan, uint32_t op, const void *buf,
					size_t len, uint32_t resp_max, void *context,
					unsigned flags)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf, .iov_len = len };
	struct core_frame frame = { .op = op, .iov = &iov, .iov_cnt = 1, .len = len };

	return chan->ops->call(chan, &frame, resp_max, context, flags);
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
	 * Paths that were out can be used again: channels may have better ones (core_failback.h).
	 * Comes about every second from then on, while progress is made and such channels exist.
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
	 * refusal means the end of the process and is reported soon. Returns 0 if on_up or
	 * on_connect_failed follows, or -FI_E*.
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
