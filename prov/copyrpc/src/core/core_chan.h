/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What does messaging ask of a transport? THE ENGINE CONTRACT.
 *
 * core/ knows peers and channels; an engine (ring/, erpc/) implements these ops and
 * makes the up-calls. A channel carries, towards one peer:
 *   one-way messages  op word + bytes, delivered in order, may be refused with -FI_EAGAIN;
 *   calls		a message with an allowance for its answer, -FI_EAGAIN when no credit;
 *   replies		at most the allowance: always accepted, never block.
 * A peer's channel is not for ever: it can go down, and a new one can come up in its place.
 *
 * Everything here runs under the domain's lock (or its single thread), up-calls included; an up-call may
 * call ops of any channel, but not close one. Buffers given to an op are free on return.
 *
 * Reviewed against the datagram engine: send and call are requests (a one-way message has an empty
 * response), reply is the response, hold/release is the ownership of its receive buffers, eager_max
 * is what one request carries, get is absent there (caps), flush rings the burst.
 *
 * Shown by test/unit/core, over test/support/fake_engine.h.
 */
#ifndef CORE_CHAN_H
#define CORE_CHAN_H

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
struct core_engine;
struct core_engine_ep;

#define CORE_FRAME_EXT_MAX 56

/** One message to go: op word, extension bytes, user bytes. */
struct core_frame {
	uint32_t op; /* wire/wire_op.h */
	uint32_t ext_len;
	uint64_t ext[CORE_FRAME_EXT_MAX / 8];
	const struct iovec *iov;
	size_t iov_cnt;
	size_t iov_off; /* bytes of iov to skip */
	size_t len;     /* user bytes to take, from iov_off on */
};

/** Names a call at the side that answers it. */
struct core_call_ref {
	uint32_t call_id;
	uint32_t resp_max; /* bytes that reply accepts */
};

/** Names bytes that an up-call decided to keep: valid until release. */
typedef uint64_t core_retain_t;

enum core_rx_verdict {
	CORE_RX_DONE = 0,   /* the bytes may go */
	CORE_RX_RETAIN = 1, /* the bytes stay until ops->release; costs the peer ring room */
	CORE_RX_BAD = -1,   /* not a legal message: the channel goes down */
};

enum core_chan_cap {
	CORE_CHAN_GET = 1 << 0,   /* ops->get works */
	CORE_CHAN_ASYNC = 1 << 1, /* what was sent arrives later: *taken, awaited, on_acked */
	CORE_CHAN_REVOKE =
		1 << 2, /* unexpose in the middle of the peer's get hurts that get alone */
	/*
	 * After -FI_EAGAIN an armed engine wakes who sleeps as soon as there may be room or credit, or
	 * refuses to be armed.
	 */
	CORE_CHAN_WAKES = 1 << 3,
};

enum core_send_flag {
	CORE_SEND_MORE = 1 << 0, /* FI_MORE: need not leave before the next one or a flush */
	/*
	 * Leaves before the return: its sender may never call progress. Where the engine must wait for
	 * answers of the peer, and several are outstanding, it may leave with the next progress.
	 */
	CORE_SEND_NOW = 1 << 1,
};

/*
 * What send_buf is told of a message in one word: the operation word, the bytes of the extension that it
 * announces, and enum core_send_flag above them. With a flag the extension is longer than any batch:
 * whoever asks whether that much fits need not ask for flags.
 */
#define CORE_PACKED_EXT_SHIFT  32
#define CORE_PACKED_FLAG_SHIFT 62

static inline uint64_t core_packed(uint32_t op, unsigned flags)
{
	return op | (uint64_t)wire_ext_len(op) << CORE_PACKED_EXT_SHIFT |
	       (uint64_t)flags << CORE_PACKED_FLAG_SHIFT;
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

/** A bulk fetch of the peer's memory. Owned by the caller until on_get_done. */
struct core_get {
	uint64_t remote_addr;
	uint64_t remote_key;
	const struct iovec *iov;
	size_t iov_cnt;
	size_t len;                         /* not 0, and no more than iov takes */
	int status;                         /* 0 or -FI_E* */
	void (*done)(struct core_get *get); /* core's own: who is told of the end */
	void *engine[16];                   /* the engine's until then: a device's transfer */
};

/** Memory of ours that a peer may fetch. Owned by who lends it, until unexpose. */
struct core_exposure {
	struct core_chan *chan; /* NULL: nothing is lent */
	uint64_t key;           /* for the peer's core_get.remote_key */
	void *engine;
};

struct core_chan {
	const struct core_chan_ops *ops;
	struct core_peer *peer; /* set by core when the channel is adopted */
	size_t eager_max;       /* ext_len + len that one send or call may carry */
	size_t resp_lim;        /* bytes of the largest allowance that a call may have */
	size_t resp_sure;       /* up to here credit comes without other traffic, sooner or later */
	size_t retained;        /* pieces of its memory that users refer to (core_rpc.h) */
	struct util_list stopped_link; /* core_rpc.stopped */
	size_t get_min; /* a get of fewer bytes is no gain here; 0: ask the domain's limits */
	uint32_t caps;
	/*
	 * CORE_CHAN_ASYNC. Positions of 64 bits that grow: everything sent before *taken was
	 * accepted, everything before that of the last on_acked is with the peer. core sets
	 * `awaited` to where the last message ends whose arrival somebody waits for: the engine
	 * finds out about it, at a cost if it must.
	 */
	const uint64_t *taken;
	uint64_t awaited;
};

struct core_chan_ops {
	/* A one-way message: 0, -FI_EAGAIN, or the error that took the channel down. */
	int (*send)(struct core_chan *chan, const struct core_frame *frame, unsigned flags);
	/*
	 * The hot case of send, in registers: core_packed(op, flags), the extension that `op` announces
	 * in two words (what is beyond it is 0), then one buffer. 1 instead of 0 where CORE_CHAN_ASYNC.
	 */
	int (*send_buf)(struct core_chan *chan, uint64_t packed, uint64_t ext0, uint64_t ext1,
			const void *buf, size_t len);
	/* A call; its answer (or its failure) comes by on_reply with `context`, which is not NULL. */
	int (*call)(struct core_chan *chan, const struct core_frame *frame, uint32_t resp_max,
		    void *context);
	/* The hot case of call: an operation word without extension, one buffer. */
	int (*call_buf)(struct core_chan *chan, uint32_t op, const void *buf, size_t len,
			uint32_t resp_max, void *context, unsigned flags);
	/* At least so many calls of `len` bytes (extension included) would be accepted now. */
	size_t (*call_room)(struct core_chan *chan, size_t len, uint32_t resp_max);
	/* The answer: 0 or -FI_EMSGSIZE (len > allowance, nothing sent). Once per call. */
	int (*reply)(struct core_chan *chan, struct core_call_ref ref, const void *buf, size_t len);
	/* The same with CORE_SEND_MORE, from several buffers that have `len` bytes. */
	int (*reply_iov)(struct core_chan *chan, struct core_call_ref ref, const struct iovec *iov,
			 size_t iov_cnt, size_t len, unsigned flags);
	/*
	 * The hot case, in registers: one buffer, which may be that of the call; then the call's own
	 * bytes are released. Nothing is done unless 0.
	 */
	int (*answer)(struct core_chan *chan, struct core_call_ref ref, core_retain_t retain,
		      const void *buf, size_t len, unsigned flags);
	/* During on_reply only: its bytes stay until release(*hold). 0 or -FI_ENOMEM. */
	int (*keep)(struct core_chan *chan, core_retain_t *retain);
	/*
	 * CORE_CHAN_ASYNC: `awaited` has moved to the end of a message that had CORE_SEND_NOW; of the
	 * others the engine assumes it.
	 */
	void (*await)(struct core_chan *chan);
	/* Everything accepted so far leaves now, as far as the device allows. */
	void (*flush)(struct core_chan *chan);
	/* 1: ended at once (status set, no up-call); 0: on_get_done will come; or -FI_E*. */
	int (*get)(struct core_chan *chan, struct core_get *get);
	/*
	 * From now on the peer may get [addr, addr + len): 0 and *loan, or -FI_E* (then it must be
	 * sent in parts). A transport in which both ends can copy looks for the chance to help.
	 */
	int (*expose)(struct core_chan *chan, const void *addr, size_t len,
		      struct core_exposure *exposure);
	/* No longer, whatever is on its way. Also on a channel that is down. */
	void (*unexpose)(struct core_chan *chan, struct core_exposure *exposure);
	void (*release)(struct core_chan *chan, core_retain_t retain);
	/* Takes in, by up-calls, all that has arrived from the peer. NULL: nothing waits unread. */
	void (*drain)(struct core_chan *chan);
	/* True while accepted messages have not left for good: fi_close waits for this. */
	bool (*is_busy)(struct core_chan *chan);
	/*
	 * As good as closed, but that memory which is held stays, and release works, until close:
	 * what was accepted leaves, no up-call comes afterwards, calls in progress are forgotten.
	 */
	void (*stop)(struct core_chan *chan);
	/* Gone for good; no up-call afterwards, calls in progress are forgotten. */
	void (*close)(struct core_chan *chan);
};

/** send_buf by send, for an engine that has no quicker way. */
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

/** answer by reply_iov and release, for an engine that has no quicker way. */
static inline int core_chan_reply_release(struct core_chan *chan, struct core_call_ref ref,
					  core_retain_t retain, const void *buf, size_t len,
					  unsigned flags)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf, .iov_len = len };
	int ret = chan->ops->reply_iov(chan, ref, &iov, 1, len, flags);

	if (!ret)
		chan->ops->release(chan, retain);
	return ret;
}

/** What an engine tells core. One constant table, given at engine open. */
struct core_upcalls {
	/* A one-way message. `data`: extension and user bytes, in memory the peer may still write. */
	enum core_rx_verdict (*on_msg)(struct core_chan *chan, uint32_t op, const uint8_t *data,
				       uint32_t len, core_retain_t retain);
	/* A call: must be answered by ops->reply exactly once, now or later. */
	enum core_rx_verdict (*on_call)(struct core_chan *chan, struct core_call_ref ref,
					const uint8_t *data, uint32_t len, core_retain_t retain);
	/* An answer, or status < 0 when there will be none. The bytes go after the return. */
	void (*on_reply)(struct core_chan *chan, void *context, int status, const uint8_t *data,
			 uint32_t len);
	void (*on_get_done)(struct core_chan *chan, struct core_get *get);
	/* CORE_CHAN_ASYNC: all that was sent before `pos` is with the peer. */
	void (*on_acked)(struct core_chan *chan, uint64_t pos);
	/*
	 * A channel to `addr` is up, whoever asked for it. `incarnation` differs from the last
	 * one's when the peer was restarted.
	 */
	void (*on_up)(struct core_ep *ep, struct core_chan *chan, const struct sockaddr *addr,
		      uint64_t incarnation);
	/* A connect to `addr` failed for good: -FI_E*; it was logged with the reason. */
	void (*on_connect_failed)(struct core_ep *ep, const struct sockaddr *addr, int err);
	/* For dial: the listener said yes, with `data`; the endpoint at `addr` is being connected. */
	void (*on_accepted)(struct core_ep *ep, const struct sockaddr *addr, const void *data,
			    size_t len);
	/* For dial and answer: it came to nothing, -FI_E*; `data` is what a listener that refused said. */
	void (*on_refused)(struct core_ep *ep, int err, const void *data, size_t len);
	/*
	 * For a connected endpoint (core_conn.h): progress would bring news. From the engine's own thread,
	 * without the domain's lock.
	 */
	void (*on_event)(struct core_ep *ep);
	/*
	 * The channel is dead; everything that had arrived was delivered before, and nobody moves
	 * bytes of a get any more. core closes it.
	 */
	void (*on_down)(struct core_chan *chan, int err);
};

/** An engine: one per domain. */
struct core_engine_ops {
	const char *name;
	int (*open)(const struct core_upcalls *up, struct core_engine **engine);
	void (*close)(struct core_engine *engine);
	/* Binds an endpoint at `addr` (port 0: any) and answers handshakes from now on. */
	int (*ep_open)(struct core_engine *engine, struct core_ep *ep, const struct sockaddr *addr,
		       struct core_engine_ep **eep);
	/* The address peers reach it at: always concrete, never a wildcard. */
	void (*ep_addr)(struct core_engine_ep *eep, struct sockaddr_storage *addr);
	/* All its channels are closed by core before. */
	void (*ep_close)(struct core_engine_ep *eep);
	/* Starts (or joins) a handshake: on_up or on_connect_failed follows. 0 or -FI_E*. */
	int (*connect)(struct core_engine_ep *eep, const struct sockaddr *addr);
	/* Nobody waits for that handshake any more. */
	void (*connect_cancel)(struct core_engine_ep *eep, const struct sockaddr *addr);
	/*
	 * Connected endpoints: calls the listener at `addr`, or says yes to one who has called. 0 or -FI_E*
	 * (-FI_ECONNABORTED: the caller has gone). on_up follows, or one of on_refused and
	 * on_connect_failed.
	 */
	int (*dial)(struct core_engine_ep *eep, const struct sockaddr *addr, const void *data,
		    size_t len);
	int (*answer)(struct core_engine_ep *eep, struct cm_connreq *call, const void *data,
		      size_t len);
	/* Takes in what arrived, sends what waits. */
	void (*progress)(struct core_engine *engine);
	/* As dev.h: a descriptor that turns readable once armed; -FI_EAGAIN: progress again. */
	int (*wait_fd)(struct core_engine *engine);
	int (*arm)(struct core_engine *engine);
	void (*disarm)(struct core_engine *engine);
};

#endif
