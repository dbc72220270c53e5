/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is a connection? A pair of byte rings over one link. (docs/ring-protocol.md, section 2)
 *
 * The sending half (ring_tx.h) appends, closes batches and keeps the credit; the receiving half
 * (ring_rx.h) takes batches in and releases bytes. Owned by the engine, touched only under the domain's lock.
 */
#ifndef RING_CONN_H
#define RING_CONN_H

#include <stdbool.h>
#include <stdint.h>

#include "core/core_chan.h"
#include "dev/dev.h"
#include "engine/eng_conn.h"
#include "ring/ring_credit.h"
#include "ring/ring_retain.h"
#include "ring/ring_pos.h"
#include "util/idmap.h"
#include "util/list.h"

/** A closed batch or marker that the device had no room for. */
struct ring_post {
	uint64_t off;
	uint32_t len;
	uint32_t imm;
};

/*
 * While one waits, further batches stay open and grow; only a wrap closes a batch (batch and marker:
 * two posts), and what is not released fits less than two laps.
 */
#define RING_POSTS_MAX 8u

/** The sending half: a ring that the peer reads. */
struct ring_tx {
	struct ring_flow flow;
	uint8_t *base;
	uint64_t len;         /* C */
	uint64_t flush_start; /* first byte not yet posted; the metadata of the open batch */
	uint32_t msg_cnt;     /* in the open batch */
	bool open;            /* a batch is open: [flush_start, producer) */
	/*
	 * The open batch may grow to less than this with no further question: there is room for it, it
	 * does not wrap and does not have to leave. 0 unless a batch is held. Old is only too low.
	 */
	uint64_t append_end;
	/* The same for what would leave if the peer had released all before it: 0 when it has. */
	uint64_t append_idle_end;
	/*
	 * Bytes that batches may take from the producer on with no question but whether they leave at once:
	 * none is open or waits, nothing is to be granted, the link writes the link word. Else 0.
	 */
	uint64_t single_room;
	bool left;   /* the last batch left with its last message: it was not held */
	bool filled; /* so did several that gathered until they filled it; and no progress since */
	uint64_t credit; /* response bytes the peer granted us, unspent */
	uint64_t placed; /* everything before is known to have arrived at the peer */
	uint64_t
		last_acked; /* where short immediates say their news from: the last position told */
	uint32_t post_cnt;
	struct ring_post posts[RING_POSTS_MAX]; /* oldest first */
};

/** The receiving half: a ring that the peer writes. */
struct ring_rx {
	const uint8_t *base;
	uint64_t len;
	uint64_t producer;   /* advanced by each immediate */
	uint64_t parsed;     /* everything before has been parsed */
	uint64_t consumer;   /* everything before is released */
	uint64_t advertised; /* consumer as last put into a batch */
	uint64_t resp_pos;   /* where the answer begins that core is being told */
	struct ring_retained retained;
};

/** A link that does not answer at once is asked again later the longer it has nothing to say. */
enum ring_read {
	RING_READ_IDLE,
	RING_READ_OUT,   /* DEV_EV_READ will come */
	RING_READ_PAUSE, /* the last one brought no news */
};

#define RING_ACKS_MAX 16u /* a power of two; beyond it a batch waits for a fence */

/** What is known of the arrival of what was sent (ring_ack.h). */
struct ring_ack {
	struct util_list link; /* in transport->unsure: somebody waits, and nothing was asked for */
	uint64_t advertised;   /* what core knows to have arrived */
	uint64_t last_acked;   /* remote_consumer, when last compared */
	/* Acks that will come, oldest first: what each tells to be placed. */
	uint64_t ack_mark[RING_ACKS_MAX];
	uint32_t ack_head;
	uint32_t ack_tail;
	uint32_t acked_at; /* transport->polls at the last ack */
	uint64_t watched;  /* where the last batch that is unsure ends */
	uint32_t tick;     /* transport->unacked_tick when the first one became so */
	uint32_t answers;  /* asks: that came soon enough to have done as well */
	uint32_t need;     /* so many, and it asks no more; doubled when that was wrong */
	bool asks;         /* batches that somebody waits for are posted with an ack */
	bool grouped;      /* the last ones were a group: several messages, or their rest */
	bool awaited;      /* somebody may wait for a message of the open batch */
	bool fresh;        /* its last message is new: core has not said who waits for it */
};

#define RING_READ_PAUSE_NS  1000u /* after the first one in vain; doubled up to: */
#define RING_READ_PAUSE_MAX 10u   /* times, that is a millisecond */

struct ring_conn {
	struct eng_conn eng; /* first */
	struct dev_link *link;
	struct ring_tx tx;
	struct ring_rx rx;
	struct util_list dirty_link; /* in transport->dirty while something has to leave */
	struct util_list gets;       /* ring_get.link: transfers that have not ended */
	struct util_idmap calls;     /* our calls that wait for an answer -> context */
	struct ring_ack ack;
	enum ring_read read;   /* of the peer's consumer word */
	uint32_t read_vain;    /* READs in a row without news */
	uint64_t read_mark;    /* RING_READ_OUT: what was handed to the device before it */
	uint64_t read_known;   /* RING_READ_OUT: remote_consumer then */
	uint64_t read_next_ns; /* RING_READ_PAUSE: not before then */
	bool attached;         /* the device polls the link */
};

/** Nothing joins the batch that is held. */
static inline void ring_conn_unhold(struct ring_conn *conn)
{
	conn->tx.append_end = 0;
	conn->tx.append_idle_end = 0;
}

/** Nothing is written any more without asking. */
static inline void ring_conn_still(struct ring_conn *conn)
{
	ring_conn_unhold(conn);
	conn->tx.single_room = 0;
}

static inline struct ring_conn *ring_conn_of(struct core_chan *chan)
{
	return (struct ring_conn *)chan;
}

/** Puts a connection over a connected link into its first state. grant_max: for our R. */
void ring_conn_init(struct ring_conn *conn, struct dev_link *link, uint64_t tx_grant_max,
		    uint64_t rx_grant_max);
void ring_conn_fini(struct ring_conn *conn);

/**
 * Marks the connection as failed with `err` (-FI_E*); core hears of it in the next progress. `why` is logged;
 * NULL: the device has said it.
 */
void ring_conn_fail_cold(struct ring_conn *conn, int err, const char *why);

/** RING_READ_OUT or _PAUSE: may the consumer word be read now? */
bool ring_conn_may_read_cold(struct ring_conn *conn);

/** A READ of it came back with `pos`. */
void ring_conn_read_done_cold(struct ring_conn *conn, uint64_t pos);

/** Has the connection visited at the end of this progress call (or the next), unless it failed. */
void ring_conn_mark(struct ring_conn *conn);

#endif
