/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Who asked for a connection, and how long do we try?
 *
 * A request exists from cm_connect to its one answer (up with asked, or failed) or its withdrawal.
 *
 *   QUEUED --slot--> PROBE --ACK--> ATTEMPT --up--> (answered)
 *                      ^              |
 *                      |--time-- PAUSE <-- end, CROSSED, "try later"
 *   ANSWER: the conn was up already; the control thread says so at once
 *
 * Bounded: at most CM_REQ_SLOTS requests of an agent are probed at a time; one that gets no answer
 * for a while gives its slot to the next and goes on at the slowest pace. REQ is repeated after 20 ms,
 * 40 ms, ... 1 s, each +-50 % at random, so that thousands that start together do not stay together.
 * Timers and packets decide; only the control thread makes up-calls.
 *
 * Shown by test/unit/cm/req/test_cm_req.c.
 */
#ifndef CM_CM_REQ_H
#define CM_CM_REQ_H

#include <stdbool.h>
#include <stdint.h>

#include "cm/base/cm_timer.h"
#include "util/list.h"
#include "wire/wire_cm.h"

#define CM_REQ_SLOTS       64u
#define CM_REQ_RETRY_MS    20u
#define CM_REQ_RETRY_MAX   1000u
#define CM_REQ_PARK_TRIES  6u    /* without an answer: others go first */
#define CM_REQ_GRACE_MS    1000u /* a peer that starts now is there by then */
#define CM_REQ_GRACE_TRIES 3u
#define CM_REQ_CROSSED_MS  500u
#define CM_WHY_MAX         320u

struct cm_ep;
struct cm_peer;

enum cm_req_state {
	CM_REQ_QUEUED,  /* others go first */
	CM_REQ_PROBE,   /* REQ is out: an ACK is awaited */
	CM_REQ_ATTEMPT, /* a conn is being made, by us or by the peer */
	CM_REQ_PAUSE,   /* the last attempt came to nothing: the next begins soon */
	CM_REQ_ANSWER,  /* the conn is up: this has to be said */
	CM_REQ_STATE_CNT,
};

struct cm_req {
	struct cm_peer *peer;
	enum cm_req_state state;
	bool has_slot;
	struct cm_timer timer;
	struct util_list queue_link;
	uint64_t nonce; /* of the REQ that is out */
	uint64_t start_ns;
	uint64_t deadline_ns;
	uint32_t try_cnt;       /* REQs in a row without an answer */
	uint32_t pause_cnt;     /* attempts that came to nothing */
	uint32_t refused_cnt;   /* ICMP errors in a row */
	int refused_err;        /* the last of them */
	uint32_t common;        /* paths: what both have, by the last ACK */
	uint32_t avoided;       /* paths that came to nothing, while there are others */
	uint64_t elsewhere_inc; /* answered, but could not be reached in this host's memory */
	int err;                /* why the last attempt came to nothing */
	char why[CM_WHY_MAX];
};

bool cm_req_may(enum cm_req_state from, enum cm_req_state to);
const char *cm_req_state_name(enum cm_req_state state);

/** Opens the peer's request (there is none yet): 0 or -FI_ENOMEM. Any thread. */
int cm_req_open(struct cm_peer *peer);
/** Withdraws it, if there is one. Any thread. */
void cm_req_cancel(struct cm_peer *peer);
/** A conn is on its way: the request, if there is one, waits for it. */
void cm_req_hold(struct cm_peer *peer);
/** The conn came to nothing: once more, soon. Any thread; never an up-call. */
void cm_req_again(struct cm_peer *peer, int err, const char *why);
/** As again, but the peer's own attempt is on its way: later. */
void cm_req_yield(struct cm_peer *peer);
/** This path came to nothing, for a reason that will not pass: true if there is another to try. */
bool cm_req_avoid(struct cm_peer *peer, uint32_t path);
/** The best of the paths in `common` that are not avoided, or 0. */
uint32_t cm_req_path(const struct cm_peer *peer);
/** The request is answered: true if there was one. */
bool cm_req_take(struct cm_peer *peer);
/** Ends it for good, and says so. Settle the peer afterwards. Control thread only. */
void cm_req_fail(struct cm_peer *peer, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/** A NAK of the peer: fails, or tries again if the peer says so, or another path than `path`. */
void cm_req_refused(struct cm_peer *peer, uint32_t path, const struct wire_cm_pkt *nak);
/** 20 ms << cnt, at most a second, half to one and a half of it, at random. */
uint64_t cm_req_backoff_ns(uint32_t cnt);
/** Is it worth trying again? */
bool cm_req_is_passing(int err);

/** What came by UDP from the peer's address. */
void cm_req_on_ack(struct cm_peer *peer, const struct wire_cm_pkt *pkt);
void cm_req_on_nak(struct cm_peer *peer, const struct wire_cm_pkt *pkt);
/** The network says that our packet with `nonce` did not get there. Any thread. */
void cm_req_on_unreachable(struct cm_peer *peer, uint64_t nonce, int err);

#endif
