/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Request for a connection: from cm_connect to its result (up with requested, alias, or failed) or
 * cancellation.
 *
 *   QUEUED --slot--> PROBE --ACK--> ATTEMPT --up, alias--> (completed)
 *                      ^              |
 *                      |--time-- PAUSE <-- end, CROSSED, temporary error
 *   DONE: the conn was up already; the control thread reports it at once
 *
 * At most CM_REQ_SLOTS requests of a CM endpoint are probed at a time. A request without a reply
 * for a while gives its slot to the next and continues at the slowest rate. REQ is repeated after
 * 20 ms, 40 ms, ... 1 s, each +-50 % at random, so that processes that start together spread out.
 * Timers and packets drive the states; only the control thread makes up-calls.
 *
 * A peer may have several addresses (cm_route.h). The REQs of a probe go to one after the other: to
 * each CM_REQ_ROUTE_TRIES times without a reply, about 300 ms, and then once in turns; at once to
 * the next if the network reports that this one does not lead there. A process that replies and is
 * another one, which has this address elsewhere, is not asked again. Later attempts begin with the
 * address that replied.
 *
 * A closed port (ICMP "port unreachable") ends a request after CM_REQ_GRACE_MS if a process is
 * known to have run there: it was connected before, or it replied to this request. Otherwise the
 * process may start late, on a machine that is busy, and the request ends with its deadline, the
 * peer timeout. Missing routes do not come with a process: they end a request after
 * CM_REQ_GRACE_MS.
 */
#ifndef CM_CONN_CM_REQ_H
#define CM_CONN_CM_REQ_H

#include <stdbool.h>
#include <stdint.h>

#include "cm/base/cm_state.h"
#include "cm/base/cm_timer.h"
#include "cm/conn/cm_route.h"
#include "util/list.h"
#include "wire/wire_cm.h"

#define CM_REQ_SLOTS       64u
#define CM_REQ_RETRY_MS    20u
#define CM_REQ_RETRY_MAX   1000u
#define CM_REQ_PARK_TRIES  6u /* REQs without a reply before the slot is given up */
#define CM_REQ_ROUTE_TRIES 4u
#define CM_REQ_GRACE_MS    1000u /* time in which a process may take the place of one that ended */
#define CM_REQ_GRACE_TRIES 3u
#define CM_REQ_CROSSED_MS  500u
#define CM_WHY_MAX         320u

struct cm_peer;

enum cm_req_state {
	CM_REQ_QUEUED,  /* waits for a slot */
	CM_REQ_PROBE,   /* REQ sent, waits for ACK */
	CM_REQ_ATTEMPT, /* a conn is being made, by either end */
	CM_REQ_PAUSE,   /* the last attempt failed: the next begins soon */
	CM_REQ_DONE,    /* the conn is up: the control thread reports it */
	CM_REQ_STATE_CNT,
};

struct cm_req {
	struct cm_peer *peer;
	enum cm_req_state state;
	union cm_addr name; /* first address of the name that was requested */
	bool has_slot;
	bool was_up;      /* a process is known to have run at the address */
	bool is_expected; /* the log has a line that a process is waited for */
	struct cm_timer timer;
	struct util_list queue_link;
	uint64_t nonce; /* nonce of the last REQ */
	uint64_t start_ns;
	uint64_t deadline_ns;
	struct cm_route routes[CM_ROUTES_MAX]; /* of the last probe */
	uint32_t route_cnt;
	uint32_t route_at;       /* the one that REQ was sent by */
	uint32_t route_tries;    /* REQs by it in a row */
	uint32_t routes_refused; /* bits: the network reports that they do not lead there */
	uint32_t routes_wrong;   /* bits: they lead to another process, or to one that is too old */
	bool has_tried_all;      /* in turns from now on */
	uint32_t try_cnt;        /* REQs in a row without a reply */
	uint32_t pause_cnt;      /* failed attempts */
	uint32_t refused_cnt;    /* ICMP errors in a row */
	int refused_err;         /* error of the last */
	uint32_t common;         /* paths of both ends, by the last ACK */
	uint32_t avoided;        /* paths that failed, while there are others */
	uint64_t unreachable_inc; /* incarnation that replied without a socket on this host */
	int err;                  /* error of the last attempt */
	char why[CM_WHY_MAX];
};

extern const struct cm_states cm_req_states;

/**
 * Opens the request of a peer that has none, by a name that begins with `name`. Returns 0 or
 * -FI_ENOMEM. Any thread.
 */
int cm_req_open(struct cm_peer *peer, const union cm_addr *name, bool was_up);
/** Cancels the request, if any. Any thread. */
void cm_req_cancel(struct cm_peer *peer);
/** Moves the request, if any, to ATTEMPT: a conn is being made. */
void cm_req_await_conn(struct cm_peer *peer);
/** Schedules the next attempt after a failed one. Any thread; makes no up-call. */
void cm_req_retry(struct cm_peer *peer, int err, const char *why);
/**
 * Ends the request, if any, with the up-call `alias`: its address is another one of the peer with
 * this incarnation. Settle the peer afterwards. Control thread only.
 */
void cm_req_alias(struct cm_peer *peer, uint64_t peer_inc);
/** Schedules the next attempt later: the peer's own attempt is on its way. */
void cm_req_yield(struct cm_peer *peer);
/** Avoids a path after a permanent error `err`. Returns false if there is no other path. */
bool cm_req_avoid(struct cm_peer *peer, uint32_t path, int err);
/** Returns the best of the paths in `common` that are not avoided, or 0. */
uint32_t cm_req_path(const struct cm_peer *peer);
/** Completes the request. Returns false if there was none. */
bool cm_req_complete(struct cm_peer *peer);
/** Fails the request and reports it. Settle the peer afterwards. Control thread only. */
void cm_req_fail(struct cm_peer *peer, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/** Handles a NAK: fails, retries after a temporary error, or avoids `path`. */
void cm_req_refused(struct cm_peer *peer, uint32_t path, const struct wire_cm_pkt *nak);
/** Returns 20 ms << cnt, at most a second, +-50 % at random. */
uint64_t cm_req_backoff_ns(uint32_t cnt);
/** Returns what the user can do about an error of preparing a conn on `path`, or "". */
const char *cm_req_hint(uint32_t path, int err);
/** Returns whether the error is temporary. */
bool cm_req_is_temporary(int err);

/** Handle an ACK or NAK received by UDP from one of the peer's addresses. */
void cm_req_on_ack(struct cm_peer *peer, const struct cm_route *via, const struct wire_cm_pkt *pkt);
void cm_req_on_nak(struct cm_peer *peer, const struct cm_route *via, const struct wire_cm_pkt *pkt);
/** Handles an ICMP error for the REQ with `nonce` to the address `to`. Any thread. */
void cm_req_on_unreachable(struct cm_peer *peer, const union cm_addr *to, uint64_t nonce, int err);

#endif
