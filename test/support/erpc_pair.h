/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fixture of the erpc tests: two endpoints over a simulated network, a session between them, and a
 * user at each end that sends messages, calls and gets and checks what it receives.
 *
 * The bytes of each message, call, reply and get follow from its number, so nothing is stored to
 * check them. One-way messages and calls of an end share one sequence, as they share one order. A
 * violation fails the test by an assertion of Criterion.
 */
#ifndef ERPC_PAIR_H
#define ERPC_PAIR_H

#include <stdbool.h>
#include <stdint.h>

#include "erpc/erpc_progress.h"
#include "erpc/erpc_setup.h"
#include "stats/stats_view.h"
#include "support/fake_net.h"
#include "support/rng.h"

#define PAIR_RESP_MAX    3000u /* of each call */
#define PAIR_PENDING_MAX 4096u
#define PAIR_MTU         1024u /* default of fake_net_init */
#define PAIR_GET_MAX     4u
#define PAIR_GET_LEN     (600u << 10)

/** Call that was received and not replied to. */
struct pair_call_ref {
	struct core_call_ref ref;
	uint32_t number;
	bool retained; /* bytes are retained until the reply */
	core_retain_t retain;
};

/** Retained bytes. */
struct pair_retained {
	core_retain_t retain;
	const uint8_t *data;
	uint32_t len;
	uint32_t number;
	bool is_reply;
};

struct pair_get {
	struct core_get get;
	struct core_exposure exposure; /* of the other end's memory */
	uint8_t *buf;
	struct iovec iov[2];
	size_t off;
	bool open;
};

struct pair_end {
	struct erpc_ep *ep;
	struct erpc_session *s;
	struct pair_end *peer;
	struct rng *rng;
	uint32_t sent;       /* messages and calls sent: the next number */
	uint32_t received;   /* received from the peer: the next number expected */
	uint32_t calls_sent; /* calls sent */
	uint32_t replies;    /* replies received */
	uint64_t acked;      /* position of the last on_acked */
	uint32_t gets_done;
	uint32_t gets_refused;
	struct pair_call_ref pending[PAIR_PENDING_MAX];
	uint32_t pending_cnt;
	struct pair_retained retained[PAIR_PENDING_MAX];
	uint32_t retained_cnt;
	struct pair_get gets[PAIR_GET_MAX];
	uint8_t *memory; /* PAIR_GET_LEN bytes to expose */
	int down;        /* error of on_down */
	unsigned limits; /* calls of on_limits */
	/* Behaviour: chances in percent, and sizes. */
	unsigned retain_chance, defer_chance, retain_reply_chance;
	unsigned retain_call_chance; /* of deferred calls: retained until their reply */
	unsigned ends_chance;        /* chance that a call ends a deferred one, during progress */
	uint32_t len_max;
	uint32_t len_exact; /* not 0: of each message and call */
	size_t get_max;
	size_t get_exact;    /* not 0: of each get, from the start of the memory */
	unsigned get_pieces; /* iovec entries of a get: 1 or 2; 0: random */
};

struct erpc_pair {
	struct fake_net net;
	double pace_rate; /* erpc_ep_attr.link_rate of endpoints opened from now on */
	struct rng rng;
	struct pair_end end[2];
};

/**
 * Initializes the pair. Between init and open the network may be configured: mtu, inline_max,
 * faults.
 */
void erpc_pair_init(struct erpc_pair *p, uint64_t seed);
void erpc_pair_open(struct erpc_pair *p);
/** Closes sessions and endpoints. */
void erpc_pair_fini(struct erpc_pair *p);

/** Combines init and open, with datagrams of `mtu` bytes. */
void erpc_pair_start(struct erpc_pair *p, uint64_t seed, uint32_t mtu);
/** Sends messages of 100 bytes from end 0, so that the round trip is measured. */
void erpc_pair_warm(struct erpc_pair *p);
/** Combines settle, check and fini. */
void erpc_pair_end(struct erpc_pair *p);

/** Returns the header of a packet in flight, for hooks of the network. */
struct wire_erpc_hdr erpc_pair_hdr(const struct fake_pkt *pkt);

/** Connects two sessions of the endpoints. */
void erpc_pair_join(struct erpc_ep *a, struct erpc_ep *b, struct erpc_session **sa,
		    struct erpc_session **sb);

/** Sends a message of random length. Returns 0 or the session's error (-FI_EAGAIN). */
int pair_send(struct pair_end *e, unsigned flags);
/** Sends one by send_buf or send_more. */
int pair_send_buf(struct pair_end *e, unsigned flags);
/** Sends a call with a maximum response size of PAIR_RESP_MAX; flags as in call_buf. */
int pair_call(struct pair_end *e, unsigned flags);
/** Starts a get of the peer's memory. Returns false if PAIR_GET_MAX are in progress. */
bool pair_get(struct pair_end *e);
/** Replies to a deferred call, or releases retained bytes. Returns false if there is none. */
bool pair_reply_one(struct pair_end *e);
bool pair_end_one(struct pair_end *e); /* replies with CORE_SEND_ENDS */
bool pair_release(struct pair_end *e);

/** Advances time by up to ns, with progress at both ends. */
void erpc_pair_run(struct erpc_pair *p, uint64_t ns);
/** Replies, releases and advances time until nothing is pending. Asserts that this ends. */
void erpc_pair_settle(struct erpc_pair *p);
/** Asserts that everything sent was received, replied to and acknowledged. */
void erpc_pair_check(struct erpc_pair *p);

/** Closes a session as core does. */
static inline void erpc_pair_close(struct erpc_session *s)
{
	s->conn.chan.ops->close(&s->conn.chan);
}

/** Return the messages and the batches that all sessions of an endpoint sent. */
static inline uint64_t erpc_pair_frames(const struct erpc_ep *ep)
{
	return stats_tx_messages(&ep->unread);
}

static inline uint64_t erpc_pair_batches(const struct erpc_ep *ep)
{
	uint64_t cnt = 0;

	for (unsigned k = 0; k < COPYRPC_STATS_SIZES; k++)
		cnt += stats_tx_batches(&ep->unread, k);
	return cnt;
}

#endif
