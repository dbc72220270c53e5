/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * State of one ring connection: a pair of byte rings over one link (docs/ring-protocol.md, section
 * 2).
 *
 * The send side (ring_tx.h) appends messages, closes batches and accounts credit. The receive side
 * (ring_rx.h) parses batches and releases bytes. Owned by the engine; accessed only under the
 * domain's lock.
 */
#ifndef RING_RING_CONN_H
#define RING_RING_CONN_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/core_chan.h"
#include "dev/dev.h"
#include "engine/eng_conn.h"
#include "ring/ring_flow.h"
#include "ring/ring_moves.h"
#include "ring/ring_retain.h"
#include "util/bits.h"
#include "util/idmap.h"
#include "util/list.h"

/** Closed batch or marker for which the device had no space. */
struct ring_post {
	uint64_t off;
	uint32_t len;
	uint32_t imm;
};

/*
 * Capacity of ring_tx.posts. While a post is queued, further batches stay open and grow; only a
 * wrap closes a batch, and adds two posts (batch and marker). Unreleased bytes span less than two
 * laps.
 */
#define RING_POSTS_MAX 8u

/**
 * Limits below which a message skips admission, reservation and flush policy (ring_send.h). Set by
 * ring_flush.h when a batch is deferred or leaves; cleared when a condition behind them ends.
 */
struct ring_fast {
	/*
	 * Limit for flow.producer up to which messages may be appended to the open batch without
	 * checking space, wrap and flush again. 0 unless the batch is deferred. A stale value is
	 * conservative.
	 */
	uint64_t append_end;
	/*
	 * append_end for messages that would leave if the peer had released everything before them.
	 * 0 once the peer has.
	 */
	uint64_t append_idle_end;
	/*
	 * Bytes behind the producer that single-message batches may take without any check but
	 * whether they leave at once. Not 0 only while no batch is open, no post is queued, no
	 * grant is due, and the link writes the link word.
	 */
	uint64_t single_room;
	/* The last batch left together with its last message: it was not deferred */
	bool flushed_at_once;
	/* The last batch left because several messages filled it, and no progress call followed */
	bool flushed_full;
};

/** Send side: a ring that the peer reads. */
struct ring_tx {
	struct ring_flow flow;
	uint8_t *base;
	uint64_t len;         /* Size of the ring: C */
	uint64_t flush_start; /* First byte not yet posted: the metadata of the open batch */
	uint32_t msg_cnt;     /* Messages in the open batch */
	bool open;            /* True while a batch is open: [flush_start, producer) */
	bool keeps_heads; /* Metadata is written into the local ring even if it does not travel */
	struct ring_fast fast;
	uint64_t credit; /* Unspent response bytes granted by the peer */
	/* Position up to which everything has arrived at the peer (ack or fence) */
	uint64_t placed;
	/* Position last advertised by the peer; short immediates count from here */
	uint64_t peer_advertised;
	uint32_t post_cnt;
	struct ring_post posts[RING_POSTS_MAX]; /* Oldest first */
	/* Batches [replay, replay_end) follow posts[0], again (ring_takeover.h); equal: none do */
	uint64_t replay;
	uint64_t replay_end;
};

/** Receive side: a ring that the peer writes. */
struct ring_rx {
	const uint8_t *base;
	uint64_t len;
	uint64_t producer;   /* Advanced by each immediate */
	uint64_t parsed;     /* Everything before is parsed */
	uint64_t consumer;   /* Everything before is released */
	uint64_t advertised; /* Value of `consumer` in the last batch sent */
	struct ring_retained retained;
	uint64_t resp_pos; /* Start of the response that core is receiving */
};

/** State of reading the peer's consumer word. After reads without an advance the pause grows. */
enum ring_read {
	RING_READ_IDLE,
	RING_READ_POSTED, /* A read is posted; DEV_EV_READ follows */
	RING_READ_PAUSE,  /* The last read brought no advance */
};

/* Power of two; with this many acks outstanding a batch waits for a fence */
#define RING_ACKS_MAX 16u

/** Arrival of sent messages (ring_ack.h). */
struct ring_ack {
	/* In transport->unacked: arrival is awaited and no ack was requested */
	struct util_list link;
	uint64_t reported;      /* Position last reported to core */
	uint64_t seen_consumer; /* Value of remote_consumer when last compared */
	uint64_t watched;       /* End of the last watched batch */
	uint32_t tick; /* Value of transport->unacked_tick when the first watched batch was added */
	uint32_t acked_at; /* Value of transport->polls at the last ack */
	uint32_t ack_head;
	uint32_t ack_tail;
	bool requests_acks; /* Awaited batches are posted with an ack */
	bool in_burst; /* The last batches belong to a burst: several messages, or their rest */
	bool awaited;  /* Arrival of a message in the open batch may be awaited */
	/* The last message of the open batch is new: core has not set `awaited` for it */
	bool last_is_new;
	uint32_t early_cnt; /* Early acknowledgements in a row, while acks are requested */
	/*
	 * Number of early acknowledgements after which no more acks are requested; doubled after a
	 * miss
	 */
	uint32_t early_need;
	/* Positions covered by the outstanding acks, oldest first. */
	uint64_t ack_mark[RING_ACKS_MAX];
};

struct ring_rail;

/** Use of both rings (ring_room.h). */
struct ring_room {
	uint64_t refused_pos; /* Producer at the last refusal that counted */
	uint32_t refused_cnt; /* Half laps of the peer's ring that ended without room */
	uint64_t seen;        /* Sum of positions at the last look that saw it change */
	uint64_t seen_ns;     /* Time of that look; 0: none */
};

#define RING_READ_PAUSE_NS  1000u /* Pause after the first read without an advance */
#define RING_READ_PAUSE_MAX 10u   /* Doublings of the pause, up to one millisecond */

struct ring_conn {
	struct eng_conn eng; /* First member */
	/* One line to receive */
	_Alignas(UTIL_CACHE_LINE) struct ring_rx rx;
	/* In transport->dirty while data, a post or control information must leave */
	struct util_list dirty_link;
	struct util_list gets; /* ring_get.link: transfers in progress */
	/* Two lines to send, of which the first is read to receive, too */
	struct dev_link *link;
	struct ring_tx tx;
	_Alignas(UTIL_CACHE_LINE) struct ring_ack ack;
	uint32_t accessed;       /* Simple accesses that have ended, modulo 2^32 (ring_access.h) */
	struct util_idmap calls; /* Calls that wait for a response -> context */
	enum ring_read read;     /* State of reading the peer's consumer word */
	uint32_t read_unchanged; /* Reads in a row without an advance */
	uint64_t read_mark;    /* RING_READ_POSTED: position handed to the device before the read */
	uint64_t read_base;    /* RING_READ_POSTED: value of remote_consumer at that time */
	uint64_t read_next_ns; /* RING_READ_PAUSE: time of the next read */
	bool attached;         /* The device polls the link */
	bool knows_rails;      /* Both ends know of rails, and this one looks for a second device */
	bool lacks_rail;       /* This end's second device was out when the connection was made */
	struct dev *dev;       /* Device of the link; that of the rail while it takes over */
	struct ring_rail *rail; /* Link of the second device (ring_rail.h); NULL: there is none */
	struct util_list balance_link; /* In transport->movable, while the link may move */
	struct ring_moves_conn moves;
	struct ring_room room;
};

static_assert(offsetof(struct ring_conn, rx.retained.slots) % UTIL_CACHE_LINE == 0, "to receive");
static_assert(offsetof(struct ring_conn, link) % UTIL_CACHE_LINE == 0, "after lists");
static_assert(offsetof(struct ring_conn, tx.len) % UTIL_CACHE_LINE == 0, "flow control");
static_assert(offsetof(struct ring_conn, tx.placed) % UTIL_CACHE_LINE == 0, "the open batch");

/** Disables appending to the deferred batch. */
static inline void ring_conn_disable_append(struct ring_conn *conn)
{
	conn->tx.fast.append_end = 0;
	conn->tx.fast.append_idle_end = 0;
}

/** Disables every unchecked write: appending and single-message batches. */
static inline void ring_conn_disable_fast_paths(struct ring_conn *conn)
{
	ring_conn_disable_append(conn);
	conn->tx.fast.single_room = 0;
}

static inline struct ring_conn *ring_conn_of(struct core_chan *chan)
{
	return (struct ring_conn *)chan;
}

/**
 * Initializes a connection over a connected link. tx_grant_max: most response bytes that this end
 * grants; rx_grant_max: most that the peer grants.
 */
void ring_conn_init(struct ring_conn *conn, struct dev_link *link, uint64_t tx_grant_max,
		    uint64_t rx_grant_max);
void ring_conn_fini(struct ring_conn *conn);

/**
 * Marks the connection as failed with `err` (-FI_E*); the next progress call notifies core. Logs
 * `why`; NULL: the device has logged the reason.
 */
void ring_conn_fail_cold(struct ring_conn *conn, int err, const char *why);

/** Returns true if the consumer word may be read now; ends the pause when it is over. */
bool ring_conn_may_read_cold(struct ring_conn *conn);

/** Handles the completion of a read of the consumer word with value `pos`. */
void ring_conn_read_done_cold(struct ring_conn *conn, uint64_t pos);

/**
 * Queues the connection for the flush at the end of this progress call, or the next, unless it
 * failed.
 */
void ring_conn_mark_dirty(struct ring_conn *conn);

#endif
