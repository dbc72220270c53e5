/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is a session? Two endpoints that speak in requests and responses, both ways.
 * (docs/datagram-protocol.md, sections 3 to 6)
 *
 * Each direction has 8 slots, and each slot one purpose, so that nothing can wait for something
 * that waits for it:
 *
 *   0 .. 4   BATCH    messages and calls in order; the answer may wait, for replies or held bytes.
 *		      And answers, where the last slot is taken and their sender may not come back soon
 *   5, 6     GET      memory of the peer's, fetched
 *   7        REPLIES  answers to calls that found no response to ride in; never waits
 *
 * Sending: what is accepted goes into the open batch. It leaves at once where nothing is under way
 * and bursts are not usual, and otherwise when a slot is free and progress comes round, so messages
 * gather while others are on their way. Positions (CORE_CHAN_ASYNC) count messages; they move as
 * batches are answered, in order.
 *
 *   opened --connect--> connected --attach--> up --erpc_session_fail--> failed --stop--> stopped
 *
 * Packets that come between connect and attach wait for attach, in the ep.
 *
 * Owner: the endpoint's thread; open and connect may run in another one before attach.
 * Memory: ERPC_SESSION_MEM_MAX bytes here; buffers only while something is under way.
 * Shown by test/unit/erpc/test_erpc_session.c, test_erpc_ep.c and test_erpc_many.c.
 */
#ifndef ERPC_SESSION_H
#define ERPC_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "core/core_chan.h"
#include "dev/dgram.h"
#include "engine/eng_conn.h"
#include "erpc/erpc_body.h"
#include "erpc/buf/erpc_buf.h"
#include "erpc/slot/erpc_client.h"
#include "erpc/slot/erpc_order.h"
#include "erpc/buf/erpc_out.h"
#include "erpc/pace/erpc_rto.h"
#include "erpc/slot/erpc_server.h"
#include "erpc/pace/erpc_timely.h"
#include "erpc/pace/erpc_wheel.h"
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

#define ERPC_EARLY_MAX    3u             /* packets behind one that is missing, and it is lost */
#define ERPC_POS_STEP     32u            /* core keeps five bits of a position for itself */
#define ERPC_BATCH_MAX    ERPC_BUF_SMALL /* bytes of a batch that several messages share, */
#define ERPC_BATCH_LONG   ERPC_BUF_LONG  /* and of one that finds no slot, */
#define ERPC_BATCH_PKTS   8u             /* which is of so many packets at most */
#define ERPC_GRANT        (512u << 10)   /* bytes of answers that may be outstanding */
#define ERPC_GRANT_CALL   64u            /* what each call costs besides its allowance */
#define ERPC_RETAINED_MAX (256u << 10)   /* bytes held of which the peer knows nothing */
#define ERPC_GET_PKTS_MAX 32u            /* ERPC_CREDITS_MAX */

/** The client's half of a slot. */
struct erpc_tx {
	struct erpc_client c;
	struct erpc_out_owner out;
	struct erpc_buf *buf;       /* the request */
	struct erpc_get_op *get_op; /* GET: what it is a part of, */
	uint64_t get_off;           /* from this byte on */
	uint64_t sent_ns;           /* last progress; 0: since the last progress call */
	uint64_t rtt_start_ns;      /* when packet `mark` left; 0: as above */
	uint32_t rtt_pkt;           /* a packet whose round trip is measured */
	uint32_t seq;               /* BATCH */
	uint32_t window;            /* packets that may be in flight */
	uint32_t pkt_seq;           /* of the session's packets: the last one of this slot */
	uint16_t tries;             /* time-outs in a row */
	uint8_t type;               /* enum wire_erpc_type */
	bool rtt_pending;
	bool prompt;    /* the answer is due at once */
	bool went_back; /* it went back, and nothing has come since */
	bool overtaken; /* BATCH: later ones came, and wait for it */
	bool kept;      /* BATCH: it came, and waits for earlier ones */
	uint8_t early;  /* answers behind one that is missing, since the last one that was not */
};

/** The server's half. */
struct erpc_rx {
	struct erpc_server s;
	struct erpc_out_owner out;
	struct erpc_body *body; /* the request as far as it is here */
	struct erpc_buf *resp;  /* NULL: an empty response, or memory that is lent */
	const uint8_t *get_src; /* GET: where the response is, */
	const struct dev_mem *exposure_mem;
	struct erpc_exposure *exposure;
	uint32_t seq;       /* BATCH: once it is delivered */
	uint16_t early_num; /* the last packet that came behind one that is missing, */
	uint8_t early;      /* and how many of them */
	uint8_t resp_type;  /* enum wire_erpc_sent */
};

struct erpc_session {
	struct eng_conn conn; /* first: what every connection has; its `err` is the engine's */
	struct erpc_ep *ep;
	void *user; /* whoever opened it */
	struct dev_dgram_ah *ah;
	int err; /* not 0: nothing more is taken in or sent */
	uint16_t num;
	uint16_t peer_num;
	uint16_t tag;      /* that packets for us have, */
	uint16_t peer_tag; /* and those for the peer */
	bool listed;       /* packets find it */
	bool attached;     /* and are taken in */
	bool stopped;
	bool lossy;     /* something was repeated: the peer may miss our last answer */
	bool loss_seen; /* and at lost_ns it was known that packets of ours, or for us, get lost */
	uint64_t token;
	uint32_t mtu; /* the longest datagram on our way to the peer, as we have told it */
	uint32_t payload;
	uint32_t batch_max;      /* bytes of a batch, or of answers, that several share, */
	uint32_t batch_long_max; /* and of a batch that finds no slot */
	uint32_t credits;        /* packets that may leave now */
	uint32_t credits_max;
	uint32_t promised; /* packets that the peer may have on their way to us */

	/* Sending. */
	struct erpc_buf *open; /* the batch that grows, or NULL; its len is set when it leaves */
	uint8_t *fill;         /* where its next frame belongs, */
	uint8_t *fill_end; /* frames that fit up to here are bytes and nothing else; mostly none, */
	uint8_t *fill_end_more; /* and the same for who says that more follows */
	uint32_t expected_len;  /* bytes of the last one that waited for others */
	uint8_t bursts; /* in a row: more followed a message that left by itself, before progress */
	bool after_single;               /* nothing has followed the last one that did */
	uint32_t seq;                    /* of the next batch */
	uint32_t seq_done;               /* all before are answered */
	uint32_t next_slot;              /* the slot that comes first */
	uint32_t pkts_sent;              /* packets of all slots */
	uint32_t free_mask;              /* slots that are free */
	uint32_t send_mask;              /* slots that may have packets to send */
	uint32_t done_mask;              /* seq % 8: answered */
	uint64_t sent_pos;               /* position of all that has left, */
	uint64_t posted_pos;             /* position of all that was accepted */
	uint64_t acked_pos;              /* and of what core knows to have arrived */
	uint64_t batch_ends[ERPC_SLOTS]; /* seq % 8: position behind that batch */
	uint64_t grant_left;             /* answers that may still be asked for */
	struct util_idmap calls;         /* our name for a call -> context; noted: allowance */
	uint8_t get_pkts
		[ERPC_GET_PKTS_MAX]; /* ring: slots of parts of gets that are to come, in order */
	uint8_t get_pkts_at, get_pkts_cnt;
	struct util_list gets_pending; /* erpc_get_op.link: gets of which some was not asked for */
	struct util_list gets_open;    /* erpc_get_op.open_link: gets that have not ended */
	uint32_t get_max;              /* bytes of one GET */
	uint32_t last_tx;      /* closed: the device is done with that datagram, then with us */
	uint64_t last_resp_ns; /* of the last answer that we sent, for fi_close */

	/* Receiving. */
	struct erpc_order order;
	struct util_list bodies;
	struct util_list replies; /* erpc_buf.link: answers that have not left; */
	uint32_t
		reply_room; /* bytes of the last one that are nothing but bytes to who fills them */
	uint32_t calls_pending; /* delivered and not answered */
	uint64_t resp_reserved; /* their allowances, and of the answers in `replies` */
	uint32_t due_mask;      /* batches to answer now */
	uint32_t wait_mask;     /* batches whose answer waits for replies */
	uint32_t release_mask;  /* batches whose answer waits for release */
	uint32_t
		piggyback_mask; /* batches whose empty answer waits for a batch of ours (erpc_piggyback.h), */
	uint32_t empty_mask; /* and those where none came */
	int32_t quick_replies; /* replies in a row that came quickly; below 0: so many to make up for */
	uint32_t ack;          /* all before need no answer any more, */
	uint32_t acked_mask;       /* and of those behind, these: seq % 8 */
	bool piggybacked;          /* since then a batch of ours took answers along */
	uint64_t last_batch_rx_ns; /* the last batch of the peer's was delivered, */
	uint64_t
		last_batch_tx_ns; /* and the last one of ours left; 0: since the last progress call */
	uint64_t piggyback_ns;    /* until then piggyback_mask waits */
	uint64_t retained_len;    /* bytes of bodies that were delivered */
	uint64_t deadline_ns;     /* of wait_mask */
	uint32_t get_window;      /* packets of a GET that may be in flight */
	struct erpc_body *reply_body; /* during on_reply: where the bytes are */

	struct util_list dirty_link;     /* ep->dirty: has something to do */
	struct util_list fresh_link;     /* ep->fresh: sent since the last progress */
	struct util_list wait_link;      /* ep->waiting: wait_mask is not 0 */
	struct util_list piggyback_link; /* ep->riding: piggyback_mask is not 0 */
	struct util_list fail_link;      /* ep->failed */

	struct erpc_wheel_item timer; /* ep->timers: for what is watched, or something before */
	uint64_t watch_ns;            /* if `watched`: losses are looked for then */
	bool watched;
	struct erpc_rto rto;
	uint64_t rx_ns; /* the last packet came; atomic, for the control thread reads it, too */
	uint64_t acked_tx_ns; /* what was sent then has been answered */
	uint64_t lost_ns;
	struct erpc_timely timely;
	struct erpc_wheel_item pace;
	uint64_t next_ns; /* paced: no packet before */

	struct erpc_tx tx[ERPC_SLOTS];
	struct erpc_rx rx[ERPC_SLOTS];
};

_Static_assert(sizeof(struct erpc_session) <= ERPC_SESSION_MEM_MAX, "20,000 of them");

static inline struct erpc_session *erpc_session_of(struct core_chan *chan)
{
	return (struct erpc_session *)chan;
}

/**
 * Makes a session and our half of it. 0; -FI_ENOMEM; -FI_EAGAIN: all numbers are taken. The caller sets
 * `user` and chan.ops and peer. Any thread.
 */
int erpc_session_open(struct erpc_ep *ep, struct wire_erpc_params *params,
		      struct erpc_session **session);

/**
 * The peer's half and address (which the session takes over, also on error). 0, or -FI_E*, logged:
 * -FI_EAGAIN: it may be well the next time. Any thread.
 */
int erpc_session_connect(struct erpc_session *s, const struct wire_erpc_params *peer,
			 struct dev_dgram_ah *ah);

/** From now on it takes in what comes. */
void erpc_session_attach(struct erpc_session *s);

/** Marks it as failed; the endpoint's `failed` is told at the end of progress. `why` is logged, or NULL. */
void erpc_session_fail(struct erpc_session *s, int err, const char *why);

/** err is set: gets end with it, and nothing of it is under way any more. */
void erpc_session_end(struct erpc_session *s);

/** Everything goes but memory that is held. */
void erpc_session_stop(struct erpc_session *s);

/** In any state; the memory goes, too. */
void erpc_session_close(struct erpc_session *s);

/** Closed sessions that the device is done with, or all. */
void erpc_session_reap(struct erpc_ep *ep, bool all);

/** Has something to do at the end of this progress call, or of the next one. */
void erpc_session_mark_cold(struct erpc_session *s);

static inline void erpc_session_mark(struct erpc_session *s)
{
	if (util_list_is_empty(&s->dirty_link))
		erpc_session_mark_cold(s);
}

/** Nothing joins the open batch by its bytes alone. */
static inline void erpc_session_close_batch(struct erpc_session *s)
{
	s->fill_end = s->fill;
	s->fill_end_more = s->fill;
}

/** And nothing answers that gather. */
static inline void erpc_session_close_all(struct erpc_session *s)
{
	erpc_session_close_batch(s);
	s->reply_room = 0;
}

/** A slot or a credit is free: is there something that waits for one? */
static inline void erpc_session_freed(struct erpc_session *s)
{
	if (s->open || s->send_mask || !util_list_is_empty(&s->gets_pending) ||
	    !util_list_is_empty(&s->replies))
		erpc_session_mark(s);
}

/** Lets go what can go. */
void erpc_session_flush(struct erpc_session *s);

/**
 * The last answer has no answer of its own: who gave it stays so long, to give it again. The peer asks after a
 * time-out, which is much like ours, and, where packets are known to get lost, after five more, each doubled.
 */
uint64_t erpc_session_linger_ns(const struct erpc_session *s);

/** Something that was accepted has not left for good. */
bool erpc_session_is_busy(const struct erpc_session *s);

/** Without an engine, and with one, whose connection ends in eng_conn.h. */
extern const struct core_chan_ops erpc_chan_ops;
extern const struct core_chan_ops erpc_chan_eng_ops;

#endif
