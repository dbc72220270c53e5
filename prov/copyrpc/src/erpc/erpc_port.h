/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Who speaks through a datagram endpoint? A port: its sessions, its burst, its buffers.
 *
 * It has no clock: progress is given the time, once, and everything that happens until the next
 * one happens at that time (what is sent in between is dated by the next one). It has no thread: who
 * holds the domain owns it, but for session numbers, which the control thread takes, too.
 *
 * The loop (erpc_port_progress), in this order: what came; what is due by the clock (losses, late
 * answers, the wheel); sessions that have something to send; the burst; failures.
 *
 * Shown by test/unit/erpc/test_erpc_port.c: two ports, everything both ways, with loss.
 */
#ifndef ERPC_PORT_H
#define ERPC_PORT_H

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

#define ERPC_ANSWER_NS    50000u   /* so long replies may have to ride in their call's response */
#define ERPC_AWAY_NS      25000u   /* half of what Timely takes for an idle network */
#define ERPC_RTO_FIRST    5000000u /* until a round trip was measured */
#define ERPC_RTO_MIN      200000u
#define ERPC_RTO_MIN_HIGH 4u /* paced, of t_high: queues grow before rates fall */
#define ERPC_RTO_MAX      1000000000u
#define ERPC_LATE_NS      10000000u /* no answer is expected to wait longer for its giver */
#define ERPC_LINGER       4u        /* time-outs that who answered last stays, */
#define ERPC_LINGER_LOSSY 96u /* and where packets got lost: 1 + 2 + ... + 32, spread by half, */
#define ERPC_LINGER_MIN   50000000u /* and at least so long */

struct erpc_port_attr {
	struct dev_dgram *dg; /* taken over: closed with the port, also if open fails */
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

struct erpc_port {
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
	unsigned idle;   /* polls since now_ns that were left out (erpc_port_is_idle) */
	uint64_t now_ns;
	uint64_t next_ns; /* before that nothing is due by the clock; it may be too early */
	struct erpc_session **sessions; /* by number; NULL: not connected. Atomic */
	struct erpc_out out;
	struct erpc_bufs bufs;
	struct util_pool bodies;   /* erpc_body */
	struct util_pool lent;     /* erpc_exposure */
	struct util_list returned; /* erpc_exposure.link: the device may still read them */
	struct util_list leaving;  /* erpc_session.fail_link: closed, the device is not done */
	struct util_list dirty, fresh, waiting, riding, failing;
	struct erpc_wheel timers; /* erpc_session.timer: packets in flight */
	struct erpc_stats stats;
	struct erpc_timely_cfg timely_cfg;
	bool paces;
	struct erpc_wheel wheel;
	struct util_idmap exposures;
	uint32_t saved_cnt; /* packets that came while somebody waited, or before attach */
	struct dev_dgram_in saved[ERPC_POLL_BURST];
	uint64_t exposure_random;
	struct erpc_session *placing; /* whose get is guessed to go on (erpc_direct.h), or NULL */
	uint32_t place_skip;          /* polls that do without */
	bool placed;                  /* the payload of what is taken in is in its place */

	pthread_mutex_t lock; /* what follows */
	uint8_t *used;        /* a bit per session number */
	uint32_t next_num;
	uint32_t session_cnt;
	uint32_t promised; /* packets that peers may send */
	uint64_t random;
	bool seeded; /* tokens follow from `random`: a test */
};

/** 0 or -FI_E*. */
int erpc_port_open(const struct erpc_port_attr *attr, struct erpc_port **port);
/** All sessions are closed. */
void erpc_port_close(struct erpc_port *port);

/** True if there may be more at once. Where now_ns goes back it stands still. */
bool erpc_port_progress(struct erpc_port *port, uint64_t now_ns);

/** Packets wait for a session to be attached, or for the next progress. */
static inline bool erpc_port_has_saved(const struct erpc_port *port)
{
	return port->saved_cnt;
}

/** It is that late, or as late as it was. It was away, if the polls since it was told last were too few for that long. */
static inline void erpc_port_tell_time(struct erpc_port *port, uint64_t now_ns)
{
	if (now_ns < port->now_ns)
		now_ns = port->now_ns;
	port->away = now_ns - port->now_ns > ERPC_AWAY_NS * (port->idle + 1ull) && !port->armed;
	port->armed = false;
	port->idle = 0;
	port->now_ns = now_ns;
}

/**
 * Nothing has come, and nothing waits for the time: true: erpc_port_poll may be left out, and with it the
 * look at the clock. What is due by the clock waits for ERPC_IDLE_MAX more progress calls at most, what has
 * left is dated ERPC_IDLE_FRESH calls later.
 */
static inline bool erpc_port_is_idle(struct erpc_port *port)
{
	unsigned max = util_list_is_empty(&port->fresh) ? ERPC_IDLE_MAX : ERPC_IDLE_FRESH;
	struct dev_dgram *dg = port->dg;

	if (port->idle >= max || port->saved_cnt || !dg->ops->is_idle || !dg->ops->is_idle(dg))
		return false;
	port->idle++;
	return true;
}

/** The two halves of it: takes in what came; lets go what waits, and sees to what is due. */
bool erpc_port_poll(struct erpc_port *port, uint64_t now_ns);
static inline void erpc_port_flush(struct erpc_port *port);

/** The second one, where there is something to do. */
void erpc_port_flush_some(struct erpc_port *port);

static inline void erpc_port_flush(struct erpc_port *port)
{
	if (port->now_ns >= port->next_ns || !util_list_is_empty(&port->dirty) || port->out.cnt ||
	    port->reaped != port->dg->tx_done || !util_list_is_empty(&port->failing))
		erpc_port_flush_some(port);
}

/** A loan that the device may be done with already: the next flush looks. */
static inline void erpc_port_return(struct erpc_port *port, struct util_list *link)
{
	util_list_push_back(&port->returned, link);
	port->reaped = port->dg->tx_done - 1;
}

/** Something is due at that time. */
static inline void erpc_port_due_at(struct erpc_port *port, uint64_t at_ns)
{
	if (at_ns < port->next_ns)
		port->next_ns = at_ns;
}

/** Takes in datagrams, and gives their buffers back. Part of poll. */
void erpc_port_take_all(struct erpc_port *port, const struct dev_dgram_in *in, int cnt);

/** Is there nothing that progress would have to do before the device or the time wakes it? */
bool erpc_port_is_quiet(const struct erpc_port *port);

/** How long until something is due though nothing comes; UINT64_MAX: never. */
uint64_t erpc_port_due_ns(const struct erpc_port *port);

/**
 * Waits until the device is done with datagram `number`, which reports; what comes meanwhile is taken in
 * by the next poll. It gives up on a device that does not move.
 */
void erpc_port_await(struct erpc_port *port, uint32_t number);

/** Packets that wait leave now; a broken device fails the port. */
void erpc_port_ring_some(struct erpc_port *port);

/** Packets leave now, unless progress is at work, which sees to it. */
static inline void erpc_port_ring(struct erpc_port *port)
{
	if (!port->running && port->out.cnt)
		erpc_port_ring_some(port);
}

/** The device is broken: all sessions fail. */
void erpc_port_fail(struct erpc_port *port, int err);

/** Session numbers, credits and tokens (erpc_port_num.c). Any thread. */
int erpc_port_take_num(struct erpc_port *port, uint16_t *num, uint32_t *credits, uint64_t *token);
void erpc_port_give_num(struct erpc_port *port, uint16_t num, uint32_t credits);

#endif
