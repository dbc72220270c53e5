/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Session: requests and responses between two eRPC endpoints, both ways (docs/datagram-protocol.md,
 * sections 3 to 6). Called by core through core_chan_ops and by the endpoint's progress.
 *
 * Each direction has 8 slots with fixed purposes, so that no request waits for one that waits for
 * it:
 *
 *   0 .. 4   BATCH    messages and calls in order; the response may wait for replies or a release;
 *                     also replies, while the last slot is busy
 *   5, 6     GET      reads of the peer's memory
 *   7        REPLIES  replies that no response took along; never waits
 *
 * A response is the RESP of a request. A reply is the frame that carries the result of a call, in a
 * response or in REPLIES.
 *
 * Messages are appended to the open batch. A batch leaves at once if no batch is in flight and no
 * burst is expected, else from progress when a slot is free. Positions (CORE_CHAN_ASYNC) count
 * messages and advance as batches are acknowledged, in order.
 *
 *   opened --connect--> connected --attach--> up --erpc_session_fail--> failed --stop--> stopped
 *
 * Owner: the holder of the domain's lock; open and connect may run in another thread before attach.
 * Opened and closed in erpc_setup.h, flushed in erpc_progress.h. Tested in
 * test/unit/erpc/test_erpc_session.c, test_erpc_ep.c and test_erpc_many.c.
 */
#ifndef ERPC_BASE_ERPC_SESSION_H
#define ERPC_BASE_ERPC_SESSION_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/core_chan.h"
#include "dev/dgram.h"
#include "engine/eng_conn.h"
#include "erpc/base/erpc_body.h"
#include "erpc/buf/erpc_buf.h"
#include "erpc/buf/erpc_out.h"
#include "erpc/pace/erpc_rto.h"
#include "erpc/pace/erpc_timely.h"
#include "erpc/pace/erpc_wheel.h"
#include "erpc/slot/erpc_client.h"
#include "erpc/slot/erpc_order.h"
#include "erpc/slot/erpc_server.h"
#include "util/idmap.h"
#include "util/list.h"
#include "wire/wire_erpc_msg.h"

struct erpc_ep;
struct erpc_get_op;

#define ERPC_SESSION_MEM_MAX 3072u

#define ERPC_BATCH_SLOTS 5u
#define ERPC_BATCH_MASK  ((1u << ERPC_BATCH_SLOTS) - 1)
#define ERPC_GET_SLOT    5u
#define ERPC_GET_SLOTS   2u
#define ERPC_REPLY_SLOT  7u

/* packets received behind a missing one after which it counts as lost */
#define ERPC_EARLY_MAX 3u
#define ERPC_TRIES_MAX UINT8_MAX      /* the timeout has grown to its maximum long before */
#define ERPC_POS_STEP  32u            /* core uses the five low bits of a position */
#define ERPC_BATCH_MAX ERPC_BUF_SMALL /* bytes of a batch that several messages share */
/*
 * Limits while the batch finds no slot, in bytes and packets: two messages of 16 KiB fit, and five
 * such batches find credits.
 */
#define ERPC_BATCH_LONG (34u << 10)
#define ERPC_BATCH_PKTS 24u
#define ERPC_GRANT      (512u << 10) /* bytes of replies that may be outstanding */
#define ERPC_GRANT_CALL 64u          /* cost of a call besides its maximum response size */
/* retained bytes beyond which responses wait */
#define ERPC_RETAINED_MAX (768u << 10)
#define ERPC_GET_PKTS_MAX 256u /* equals ERPC_CREDITS_MAX */

/** State of the request of a slot, in one byte. */
struct erpc_tx_state {
	bool rtt_pending : 1;
	bool prompt : 1;    /* the peer responds at once */
	bool went_back : 1; /* rewound by a loss, no packet received since */
	bool overtaken : 1; /* BATCH: later ones arrived and wait for it */
	bool kept : 1;      /* BATCH: arrived and waits for earlier ones */
	uint8_t early : 2;  /* packets received behind the missing one, in a row */
};

/** Client side of a slot. Requests and responses of one packet need the first cache line only. */
struct erpc_tx {
	_Alignas(64) struct erpc_buf *buf; /* the request */
	uint64_t sent_ns;      /* time of the last progress of the request; 0: not dated yet */
	uint64_t rtt_start_ns; /* time at which rtt_pkt left; 0: not dated yet */
	uint32_t seq;          /* BATCH: sequence number */
	uint32_t pkt_seq;      /* number within the session of the slot's last packet */
	uint16_t rtt_pkt;      /* packet that measures the round trip */
	struct erpc_out_owner out;
	uint8_t tries; /* time-outs in a row, at most ERPC_TRIES_MAX */
	uint8_t type;  /* enum wire_erpc_type */
	struct erpc_tx_state is;
	struct erpc_client c;
	struct erpc_get_op *get_op; /* GET: the get that it is a part of */
	uint64_t get_off;           /* GET: its first byte in that get */
};

/** Server side of a slot. Requests and responses of one packet need the first cache line only. */
struct erpc_rx {
	_Alignas(64) struct erpc_out_owner out;
	uint32_t last_tx;       /* GET: the device's number of the last packet that left */
	struct erpc_buf *resp;  /* NULL: an empty response, or exposed memory */
	uint32_t seq;           /* BATCH: sequence number, once delivered */
	uint16_t early_num;     /* last packet received behind a missing one */
	uint8_t early;          /* packets received behind a missing one, in a row */
	uint8_t resp_type;      /* enum wire_erpc_sent */
	const uint8_t *get_src; /* GET: the response in exposed memory */
	struct erpc_server s;
	struct erpc_body *body; /* the request, as far as received */
	const struct dev_mem *exposure_mem;
	struct erpc_exposure *exposure;
};

/** The open batch, beside its end in erpc_flow. */
struct erpc_open_batch {
	struct erpc_buf *buf;  /* NULL: none; len is set when it leaves */
	uint8_t *end_more;     /* limit for messages with CORE_SEND_MORE, like erpc_flow.end */
	uint32_t expected_len; /* bytes of the last batch that waited for more messages */
};

/** Kinds of work that wait, as far as a message has to know. */
enum erpc_waits {
	ERPC_WAITS_BATCH = 1 << 0,   /* batch.buf is not NULL */
	ERPC_WAITS_GETS = 1 << 1,    /* gets.pending may have members */
	ERPC_WAITS_REPLIES = 1 << 2, /* `replies` may have members */
	ERPC_WAITS_NOW = 1 << 3,     /* conn.chan.stays may be true */
	ERPC_WAITS_STAGED = 1 << 4,  /* a message of the session is in ep->stage */
};

/** Batches sent. */
struct erpc_send_state {
	uint32_t seq;         /* sequence number of the next batch */
	uint32_t seq_done;    /* all batches before are acknowledged */
	uint8_t free_mask;    /* free slots */
	uint8_t pending_mask; /* slots that may have packets to send */
	uint8_t done_mask;    /* seq % 8: acknowledged */
	uint8_t waits;        /* enum erpc_waits: may wait for a slot, credit or room */
};

/** Place of the timer of a session. */
enum erpc_timer_place {
	ERPC_TIMER_NONE,
	ERPC_TIMER_NEW,   /* ep->new_timers */
	ERPC_TIMER_WHEEL, /* ep->timers, at watch_ns or before */
};

/**
 * Fields that each message of this end changes, beside its slot and the masks of
 * erpc_send_state: one line, up to the round trips of `rto`.
 */
struct erpc_flow {
	uint8_t *end;         /* limit for messages that are appended without further checks */
	uint8_t *fill;        /* end of the last frame of the open batch */
	uint64_t posted;      /* position behind all accepted messages (CORE_CHAN_ASYNC) */
	uint64_t watch_ns;    /* time of the next check for losses; 0: none */
	uint64_t acked_tx_ns; /* latest send time that was acknowledged */
	uint32_t pkts_sent;   /* packets sent in all slots */
	uint16_t credits;     /* packets that may leave now */
	/* messages sent in batches, modulo 2^16: those of `posted` beyond are in the open one */
	uint16_t sent;
	uint8_t bursts;    /* times in a row that a message followed a single one before progress */
	bool after_single; /* no message has followed the last single one */
	uint8_t timer;     /* enum erpc_timer_place */
	bool fresh;        /* in ep->fresh: sent since the last progress */
	struct erpc_rto rto;
};

/** Calls sent. */
struct erpc_calls {
	uint64_t grant_left;    /* bytes of replies that may still be requested */
	struct util_idmap open; /* id of a call -> context; note: resp_max */
};

/** Gets from the peer's memory. */
struct erpc_gets {
	/* ring of bits: GET packets to come, in order; which of the two slots each is of */
	uint64_t pkts[ERPC_GET_PKTS_MAX / 64];
	uint16_t pkts_at, pkts_cnt;
	uint32_t max;             /* bytes of one GET */
	struct util_list pending; /* erpc_get_op.link: gets not requested in full */
	struct util_list open;    /* erpc_get_op.open_link: gets in progress */
};

/** Responses to the peer's batches, and replies to its calls. */
struct erpc_resp_state {
	uint32_t retained_len;  /* bytes of bodies delivered and not freed */
	uint32_t calls_pending; /* calls delivered and not replied to */
	/* bytes that may be appended to the last of `replies` without further checks; 0: none */
	uint32_t room;
	uint8_t due_mask;     /* batches to respond to now */
	uint8_t wait_mask;    /* batches with a response that waits for replies */
	uint8_t release_mask; /* batches with a response that waits for a release */
	uint8_t cr_mask;      /* slots with request packets since the last CR */
};

/** Acknowledgement of the peer's batches (erpc_piggyback.h). */
struct erpc_ack {
	uint32_t seq;       /* all the peer's batches before need no response */
	uint8_t wait_mask;  /* batches with an ack that waits for a batch to piggyback on */
	uint8_t empty_mask; /* batches without one: an empty response is due */
	uint8_t acked_mask; /* seq % 8: batches behind `seq` that need none either */
};

/** Whether this end replies quickly, so that an ack may wait for a batch. */
struct erpc_trust {
	uint64_t last_rx_ns;   /* time at which the peer's last batch was delivered */
	int16_t quick_replies; /* quick replies in a row; negative: number to make up for */
	bool piggybacked;      /* a batch took acks along since last_rx_ns */
};

/** Losses and the rate. */
struct erpc_timing {
	uint64_t lost_ns;
	struct erpc_timely timely;
	struct erpc_wheel_item pace;
	uint64_t next_ns; /* paced: no packet leaves before */
};

/*
 * Fields that a message needs stand together, because a session that was idle is in no cache
 * (docs/datagram-protocol.md, section 3, has the number of lines).
 */
struct erpc_session {
	struct eng_conn conn; /* first; `err` in it is the engine's */

	/* First line: needed with each packet, at both ends. */
	_Alignas(64) struct erpc_ep *ep;
	struct dev_dgram_ah *ah;
	uint64_t rx_ns;         /* time of the last packet; atomic, the control thread reads it */
	uint64_t last_batch_ns; /* time at which the last batch left; 0: not dated yet */
	int16_t err;            /* not 0: packets are neither processed nor sent */
	uint16_t payload;       /* bytes of a packet behind its header */
	uint16_t peer_num;
	uint16_t peer_tag; /* tag of packets to the peer */
	uint16_t tag;      /* tag of packets from the peer */
	bool attached;     /* packets are processed */
	bool paced;        /* the rate is below the link's */
	struct erpc_send_state send;
	struct erpc_ack ack;

	/* Second line: needed with the peer's batches. */
	struct util_list dirty_link; /* ep->dirty: has something to send */
	uint64_t last_resp_ns;       /* time of the last response sent, for fi_close */
	struct erpc_trust trust;
	struct erpc_resp_state resp;
	struct erpc_order order; /* up to kept_cnt */

	/* Third line: needed with calls of this end, and messages that gather. */
	_Alignas(64) struct erpc_calls calls;
	struct erpc_body *reply_body; /* bytes of the reply during on_reply */
	struct erpc_open_batch batch;

	/* Fourth line: needed to send, and with responses. */
	_Alignas(64) struct erpc_flow flow;

	/* Fifth line, behind the end of `flow`: needed with several batches in flight. */
	uint16_t batch_ends[ERPC_SLOTS]; /* seq % 8: flow.sent when the next one left */
	struct erpc_wheel_item timer;
	uint32_t batch_max;      /* bytes of a batch, or of replies, that several share */
	uint32_t batch_long_max; /* bytes of a batch that finds no slot */

	/* Last line: needed with the peer's calls. */
	_Alignas(64) struct util_list replies; /* erpc_buf.link: replies that have not left */
	struct util_list wait_link;            /* ep->waiting: resp.wait_mask is not 0 */
	uint64_t deadline_ns;                  /* expiry of resp.wait_mask */
	uint64_t reply_reserved; /* bytes reserved for replies to calls, and in `replies` */
	uint32_t reply_max;      /* bytes of replies that several share: batch_max */
	uint32_t mtu;            /* longest datagram on the path to the peer, as advertised */
	uint64_t token;

	struct erpc_tx tx[ERPC_SLOTS];
	struct erpc_rx rx[ERPC_SLOTS];

	struct erpc_timing time;
	uint32_t credit_max;      /* packets that may be in flight */
	uint32_t credit_promised; /* packets that the peer may have in flight to this end */

	bool huge;         /* the memory is of erpc_ep.sessions_huge */
	bool lossy;        /* a packet was repeated: the peer may lack our last response */
	uint8_t losses;    /* certain ones in a row, the last at time.lost_ns (erpc_loss_note) */
	uint8_t next_slot; /* slot that is served first */
	uint16_t num;
	bool listed; /* in erpc_ep.sessions */
	bool stopped;
	struct erpc_gets gets;
	uint32_t get_window; /* packets of a GET that may be in flight */
	uint32_t last_tx;    /* closed: last datagram that the device has to complete */
	void *user;          /* the opener's */
	struct util_list bodies;
	uint64_t ack_until_ns; /* expiry of ack.wait_mask */

	struct util_list piggyback_link; /* ep->piggybacking: ack.wait_mask is not 0 */
	struct util_list fail_link;      /* ep->failing or ep->zombies */
};

static_assert(ERPC_GET_SLOTS == 2, "one bit for each packet of a get");
static_assert(sizeof(struct erpc_session) <= ERPC_SESSION_MEM_MAX, "memory of 20,000 sessions");
static_assert(sizeof(struct erpc_session) / 64 % 2,
	      "an odd number of lines: those of all sessions lie in all sets of a cache");
/* Lines of a session, by their last fields. */
static_assert(offsetof(struct erpc_session, dirty_link) == offsetof(struct erpc_session, ep) + 64,
	      "each packet");
static_assert(offsetof(struct erpc_session, order.early) ==
		      offsetof(struct erpc_session, dirty_link) + 64,
	      "the peer's batches");
static_assert(offsetof(struct erpc_session, flow) == offsetof(struct erpc_session, calls) + 64,
	      "calls");
static_assert(offsetof(struct erpc_session, flow.rto.first_ns) ==
		      offsetof(struct erpc_session, flow) + 64,
	      "messages sent");
static_assert(offsetof(struct erpc_session, replies) == offsetof(struct erpc_session, flow) + 128,
	      "several batches");
static_assert((ERPC_SLOTS + 1) * ERPC_BATCH_LONG / WIRE_ERPC_FRAME_LEN <= UINT16_MAX,
	      "messages that are not acknowledged");
static_assert(offsetof(struct erpc_session, tx) == offsetof(struct erpc_session, replies) + 64,
	      "the peer's calls");
static_assert(offsetof(struct erpc_session, rx) ==
		      offsetof(struct erpc_session, tx) + sizeof(struct erpc_tx) * ERPC_SLOTS,
	      "erpc_rx_prefetch");
static_assert(offsetof(struct erpc_tx, c.payload) == 64, "requests of one packet");
static_assert(sizeof(struct erpc_tx_state) == 1 && ERPC_EARLY_MAX < 4, "fields of erpc_tx");
static_assert(sizeof(struct erpc_tx) == 128 && sizeof(struct erpc_rx) == 128, "two lines each");

/** Returns the identity of the peer's endpoint, set before the number leads to the session. */
static inline struct dev_dgram_id *erpc_session_peer_id(struct erpc_session *s)
{
	static_assert(sizeof(struct dev_dgram_id) == sizeof(s->conn.chan.engine), "fits");
	return (struct dev_dgram_id *)s->conn.chan.engine;
}

/** Notes whether Timely's rate is below the link's. Called when it may have changed. */
static inline void erpc_session_note_rate(struct erpc_session *s, bool paces)
{
	s->paced = paces && !erpc_timely_is_open(&s->time.timely);
}

/** Returns the slot of GET packet `i`, modulo ERPC_GET_PKTS_MAX. */
static inline uint32_t erpc_gets_pkt(const struct erpc_gets *gets, uint32_t i)
{
	return ERPC_GET_SLOT + (gets->pkts[i / 64 % (ERPC_GET_PKTS_MAX / 64)] >> i % 64 & 1);
}

static inline void erpc_gets_set_pkt(struct erpc_gets *gets, uint32_t i, uint32_t slot)
{
	uint64_t *word = &gets->pkts[i / 64 % (ERPC_GET_PKTS_MAX / 64)];

	*word = (*word & ~(1ull << i % 64)) | (uint64_t)(slot - ERPC_GET_SLOT) << i % 64;
}

/** Returns the number of packets in a row, from the first on, that are of the first one's slot. */
static inline uint32_t erpc_gets_run(const struct erpc_gets *gets)
{
	uint32_t n = 0, at = gets->pkts_at, left;
	uint64_t first = erpc_gets_pkt(gets, at) == ERPC_GET_SLOT ? 0 : ~0ull, other;

	while (n < gets->pkts_cnt) {
		other = (gets->pkts[at / 64 % (ERPC_GET_PKTS_MAX / 64)] ^ first) >> at % 64;
		left = 64 - at % 64; /* bits of this word */
		if (other)
			left = (uint32_t)__builtin_ctzll(other);
		n += left;
		at += left;
		if (other)
			break;
	}
	return n < gets->pkts_cnt ? n : gets->pkts_cnt;
}

static inline struct erpc_session *erpc_session_of(struct core_chan *chan)
{
	return (struct erpc_session *)chan;
}

/**
 * Marks the session as failed. The endpoint calls `failed` at the end of progress. Logs `why`
 * unless it is NULL.
 */
void erpc_session_fail(struct erpc_session *s, int err, const char *why);

/** Queues the session for the flush of this progress call, or of the next one. */
void erpc_session_mark_cold(struct erpc_session *s);

static inline void erpc_session_mark(struct erpc_session *s)
{
	if (util_list_is_empty(&s->dirty_link))
		erpc_session_mark_cold(s);
}

/** Makes the next message take the full path (erpc_send_added). */
static inline void erpc_session_close_batch(struct erpc_session *s)
{
	s->flow.end = s->flow.fill;
	s->batch.end_more = s->flow.fill;
}

/** Does that for the next reply, too. */
static inline void erpc_session_close_all(struct erpc_session *s)
{
	erpc_session_close_batch(s);
	s->resp.room = 0;
}

/** Queues the session if something waits for a slot or a credit. */
static inline void erpc_session_freed(struct erpc_session *s)
{
	if (s->send.waits | s->send.pending_mask)
		erpc_session_mark(s);
}

/** Counts a packet with a verdict other than TAKE and LAST. */
void erpc_session_refuse(struct erpc_session *s, enum erpc_verdict verdict);

#endif
