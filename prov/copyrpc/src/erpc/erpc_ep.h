/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Who speaks through a datagram endpoint? An endpoint: its sessions, its burst, its buffers.
 *
 * It has no clock: progress is given the time, once, and everything that happens until the next
 * one happens at that time (what is sent in between is dated by the next one). It has no thread: who
 * holds the domain owns it, but for session numbers, which the control thread takes, too.
 *
 * The loop (erpc_ep_progress), in this order: what came; what is due by the clock (losses, late
 * answers, the wheel); sessions that have something to send; the burst; failures.
 *
 * Shown by test/unit/erpc/test_erpc_ep.c: two endpoints, everything both ways, with loss.
 */
#ifndef ERPC_EP_H
#define ERPC_EP_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "dev/dgram.h"
#include "erpc/buf/erpc_buf.h"
#include "erpc/buf/erpc_out.h"
#include "erpc/erpc_stats.h"
#include "erpc/pace/erpc_timely.h"
#include "erpc/pace/erpc_wheel.h"
#include "util/idmap.h"
#include "util/list.h"
#include "util/pool.h"

struct core_upcalls;
struct erpc_session;

#define ERPC_SESSIONS_MAX 65536u
#define ERPC_CREDITS_MAX  32u /* packets that a session may have in flight */
#define ERPC_CREDITS_MIN  8u  /* however many sessions share the receive buffers */
#define ERPC_POLL_BURST   32u /* packets of one look at the device */
#define ERPC_POLL_ROUNDS  4u
#define ERPC_IDLE_MAX     3u /* polls in a row that are left out, and with them the time; */
#define ERPC_IDLE_FRESH   1u /* while something that has left is to be dated */
#define ERPC_AWAIT_POLLS  10000u

#define ERPC_REPLY_WAIT_NS 50000u   /* so long replies may have to ride in their call's response */
#define ERPC_AWAY_NS       25000u   /* half of what Timely takes for an idle network */
#define ERPC_RTO_FIRST     5000000u /* until a round trip was measured */
#define ERPC_RTO_MIN       200000u
#define ERPC_RTO_MIN_HIGH  4u /* paced, of t_high: queues grow before rates fall */
#define ERPC_RTO_MAX       1000000000u
#define ERPC_LATE_NS       10000000u /* no answer is expected to wait longer for its giver */
#define ERPC_LINGER        4u        /* time-outs that who answered last stays, */
#define ERPC_LINGER_LOSSY  96u /* and where packets got lost: 1 + 2 + ... + 32, spread by half, */
#define ERPC_LINGER_MIN    50000000u /* and at least so long */

struct erpc_ep_attr {
	struct dev_dgram *dg; /* taken over: closed with the endpoint, also if open fails */
	struct dev *dev;      /* that it was opened on, and its operations; or NULL */
	const struct dev_ops *dev_ops;
	uint32_t tx_cnt; /* as the device was opened with */
	const struct core_upcalls *up;
	double link_rate; /* bytes per second that Timely begins with; 0: no pacing */
	uint64_t host_ns; /* of a round trip: what waking processes may take */
	uint64_t seed;    /* of tokens; 0: from the system */
	/* A session has failed (session->err): in the thread of progress, behind all up-calls. */
	void (*failed)(struct erpc_session *session);
};

struct erpc_ep {
	struct dev_dgram *dg;
	struct dev *dev;
	const struct dev_ops *dev_ops;
	const struct core_upcalls *up;
	void (*failed)(struct erpc_session *session);
	int err;         /* what ended the device */
	bool running;    /* in progress: what is to leave leaves at its end */
	bool away;       /* nobody had polled for ERPC_AWAY_NS: what came may have lain there */
	bool armed;      /* it slept, and was not away */
	uint32_t reaped; /* dg->tx_done, when those that wait for the device were looked at */
	unsigned idle;   /* polls since now_ns that were left out (erpc_ep_is_idle) */
	uint64_t now_ns;
	uint64_t next_ns; /* before that nothing is due by the clock; it may be too early */
	struct erpc_session **sessions; /* by number; NULL: not connected. Atomic */
	struct erpc_out out;
	struct erpc_bufs bufs;
	struct util_pool bodies;        /* erpc_body */
	struct util_pool exposure_pool; /* erpc_exposure */
	struct util_list dereg_list;    /* erpc_exposure.link: the device may still read them */
	struct util_list zombies;       /* erpc_session.fail_link: closed, the device is not done */
	struct util_list dirty, fresh, waiting, piggybacking, failing;
	struct erpc_wheel timers; /* erpc_session.timer: packets in flight */
	struct erpc_stats stats;
	struct erpc_timely_cfg timely_cfg;
	bool paces;
	struct erpc_wheel wheel;
	struct util_idmap exposures;
	uint32_t saved_cnt; /* packets that came while somebody waited, or before attach */
	struct dev_dgram_in saved[ERPC_POLL_BURST];
	uint64_t exposure_random;
	struct erpc_session
		*direct_session; /* whose get is guessed to go on (erpc_direct.h), or NULL */
	uint32_t direct_skip;    /* polls that do without */
	bool direct_placed;      /* the payload of what is taken in is in its place */

	pthread_mutex_t lock; /* what follows */
	uint8_t *used;        /* a bit per session number */
	uint32_t next_num;
	uint32_t session_cnt;
	uint32_t promised; /* packets that peers may send */
	uint64_t random;
	bool seeded; /* tokens follow from `random`: a test */
};

/** 0 or -FI_E*. */
int erpc_ep_open(const struct erpc_ep_attr *attr, struct erpc_ep **ep);
/** All sessions are closed. */
void erpc_ep_close(struct erpc_ep *ep);

/** True if there may be more at once. Where now_ns goes back it stands still. */
bool erpc_ep_progress(struct erpc_ep *ep, uint64_t now_ns);

/** Packets wait for a session to be attached, or for the next progress. */
static inline bool erpc_ep_has_saved(const struct erpc_ep *ep)
{
	return ep->saved_cnt;
}

/** It is that late, or as late as it was. It was away, if the polls since it was told last were too few for that long. */
static inline void erpc_ep_set_time(struct erpc_ep *ep, uint64_t now_ns)
{
	if (now_ns < ep->now_ns)
		now_ns = ep->now_ns;
	ep->away = now_ns - ep->now_ns > ERPC_AWAY_NS * (ep->idle + 1ull) && !ep->armed;
	ep->armed = false;
	ep->idle = 0;
	ep->now_ns = now_ns;
}

/**
 * Nothing has come, and nothing waits for the time: true: erpc_ep_poll may be left out, and with it the
 * look at the clock. What is due by the clock waits for ERPC_IDLE_MAX more progress calls at most, what has
 * left is dated ERPC_IDLE_FRESH calls later.
 */
static inline bool erpc_ep_is_idle(struct erpc_ep *ep)
{
	unsigned max = util_list_is_empty(&ep->fresh) ? ERPC_IDLE_MAX : ERPC_IDLE_FRESH;
	struct dev_dgram *dg = ep->dg;

	if (ep->idle >= max || ep->saved_cnt || !dg->ops->is_idle || !dg->ops->is_idle(dg))
		return false;
	ep->idle++;
	return true;
}

/** The two halves of it: takes in what came; lets go what waits, and sees to what is due. */
bool erpc_ep_poll(struct erpc_ep *ep, uint64_t now_ns);
static inline void erpc_ep_flush(struct erpc_ep *ep);

/** The second one, where there is something to do. */
void erpc_ep_flush_some(struct erpc_ep *ep);

static inline void erpc_ep_flush(struct erpc_ep *ep)
{
	if (ep->now_ns >= ep->next_ns || !util_list_is_empty(&ep->dirty) || ep->out.cnt ||
	    ep->reaped != ep->dg->tx_done || !util_list_is_empty(&ep->failing))
		erpc_ep_flush_some(ep);
}

/** A loan that the device may be done with already: the next flush looks. */
static inline void erpc_ep_defer_dereg(struct erpc_ep *ep, struct util_list *link)
{
	util_list_push_back(&ep->dereg_list, link);
	ep->reaped = ep->dg->tx_done - 1;
}

/** Something is due at that time. */
static inline void erpc_ep_due_at(struct erpc_ep *ep, uint64_t at_ns)
{
	if (at_ns < ep->next_ns)
		ep->next_ns = at_ns;
}

/** Takes in datagrams, and gives their buffers back. Part of poll. */
void erpc_ep_rx_burst(struct erpc_ep *ep, const struct dev_dgram_in *in, int cnt);

/** Is there nothing that progress would have to do before the device or the time wakes it? */
bool erpc_ep_is_quiet(const struct erpc_ep *ep);

/** How long until something is due though nothing comes; UINT64_MAX: never. */
uint64_t erpc_ep_due_ns(const struct erpc_ep *ep);

/**
 * Waits until the device is done with datagram `number`, which reports; what comes meanwhile is taken in
 * by the next poll. It gives up on a device that does not move.
 */
void erpc_ep_await(struct erpc_ep *ep, uint32_t number);

/** Packets that wait leave now; a broken device fails the ep. */
void erpc_ep_doorbell_some(struct erpc_ep *ep);

/** Packets leave now, unless progress is at work, which sees to it. */
static inline void erpc_ep_doorbell(struct erpc_ep *ep)
{
	if (!ep->running && ep->out.cnt)
		erpc_ep_doorbell_some(ep);
}

/** The device is broken: all sessions fail. */
void erpc_ep_fail(struct erpc_ep *ep, int err);

/** Session numbers, credits and tokens (erpc_ep_num.c). Any thread. */
int erpc_ep_alloc_num(struct erpc_ep *ep, uint16_t *num, uint32_t *credits, uint64_t *token);
void erpc_ep_free_num(struct erpc_ep *ep, uint16_t num, uint32_t credits);

#endif
