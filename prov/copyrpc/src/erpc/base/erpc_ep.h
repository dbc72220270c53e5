/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * eRPC endpoint: the sessions, the transmit burst and the buffers of one datagram socket or queue
 * pair. One per libfabric endpoint. State and operations for all of erpc/; opened in erpc_setup.h,
 * polled in erpc_progress.h.
 *
 * Progress passes the time in. All events up to the next call of progress have that time; a packet
 * that is sent between two calls gets the time of the second. The holder of the domain's lock owns
 * the endpoint, except for session numbers, which the control thread allocates, too.
 *
 * Tested in test/unit/erpc/test_erpc_ep.c: two endpoints, all operations in both directions, with
 * loss.
 */
#ifndef ERPC_BASE_ERPC_EP_H
#define ERPC_BASE_ERPC_EP_H

#include <assert.h>
#include <copyrpc/stats.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "dev/dgram.h"
#include "erpc/base/erpc_set.h"
#include "erpc/buf/erpc_buf.h"
#include "erpc/buf/erpc_out.h"
#include "erpc/pace/erpc_timely.h"
#include "erpc/pace/erpc_wheel.h"
#include "util/idmap.h"
#include "util/list.h"
#include "util/pool.h"

struct core_upcalls;
struct erpc_session;

#define ERPC_SESSIONS_MAX 65536u
#define ERPC_SESSIONS_FEW 512u /* beyond, sessions are on huge pages */
#define ERPC_CREDITS_MAX  256u /* packets of a session that may be in flight */
#define ERPC_CREDITS_FEW  128u /* likewise where the device has few receive buffers */
#define ERPC_CREDITS_MIN  8u   /* however many sessions share the receive buffers */
#define ERPC_POLL_BURST   32u  /* packets of one poll of the device */
#define ERPC_POLL_ROUNDS  4u
#define ERPC_IDLE_MAX     3u    /* polls, and reads of the clock, that may be skipped in a row */
#define ERPC_IDLE_FRESH   1u    /* limit while a sent packet has no time yet */
#define ERPC_AWAIT_POLLS  1000u /* without a yield */
#define ERPC_AWAIT_NS     1000000000u /* then with one after each poll */

#define ERPC_REPLY_WAIT_NS 50000u   /* time that a batch's response waits for replies */
#define ERPC_AWAY_NS       25000u   /* half of Timely's threshold for an idle network */
#define ERPC_RTO_FIRST     5000000u /* until the first round trip is measured */
#define ERPC_RTO_MIN       200000u
#define ERPC_RTO_MIN_HIGH  4u /* paced sessions: times t_high, as queues grow before rates fall */
#define ERPC_RTO_MAX       1000000000u
#define ERPC_LATE_NS       10000000u /* longest RTT sample with a wait (erpc_kick_acked) */
#define ERPC_LINGER        4u  /* RTOs for which a closing session can repeat its last response */
#define ERPC_LINGER_LOSSY  96u /* after a loss: 1 + 2 + ... + 32, spread by half */
#define ERPC_LINGER_MIN    50000000u /* lower bound after a loss */

#define ERPC_NOW_TRUST 1024u /* erpc_now.h */

/** Whether the process calls progress soon after messages that must leave at once (erpc_now.h). */
struct erpc_now {
	bool posted;    /* such a message since the last poll */
	bool stays;     /* one of them is in an open batch */
	uint32_t soon;  /* times in a row that a poll followed soon */
	uint32_t trust; /* of these, so that further ones gather */
};

#define ERPC_STAGE_MAX 8u

/** Single messages that leave together (erpc_stage.h). */
struct erpc_stage {
	uint32_t cnt;     /* messages that wait, at most ERPC_STAGE_MAX - 1 */
	uint32_t singles; /* single messages since the last poll */
	uint32_t jumps;   /* single messages whose session is not next to that of the one before */
	uint32_t rounds;  /* polls in a row that followed several of these soon */
	uintptr_t last;   /* place of the session of the last single message */
	struct erpc_session *sessions[ERPC_STAGE_MAX];
	struct erpc_buf *bufs[ERPC_STAGE_MAX];
};

/** Session whose replies may wait for its next message (erpc_defer.h), or NULL. */
struct erpc_defer {
	struct erpc_session *session;
	uint8_t polls; /* progress calls that they have waited for */
};

struct erpc_ep {
	struct dev_dgram *dg;
	struct dev *dev;
	const struct dev_ops *dev_ops;
	const struct core_upcalls *up;
	void (*failed)(struct erpc_session *session);
	int err;         /* error that broke the device */
	bool running;    /* inside progress, which flushes the burst at its end */
	bool away;       /* not polled for ERPC_AWAY_NS: packets may have waited in the device */
	bool armed;      /* the device was armed for sleep, so the last gap is not `away` */
	uint32_t reaped; /* dg->tx_done when objects that wait for the device were last checked */
	struct erpc_now now;
	struct erpc_stage stage;
	struct erpc_defer defer;
	unsigned idle; /* polls skipped since now_ns (erpc_ep_is_idle) */
	uint64_t now_ns;
	uint64_t next_ns; /* no timer expires before; may be too early */
	/* By number; NULL: not connected. Atomic */
	struct erpc_session **sessions;
	struct erpc_out out;
	struct erpc_bufs bufs;
	struct util_pool bodies;        /* of struct erpc_body */
	struct util_pool exposure_pool; /* of struct erpc_exposure */
	/* erpc_exposure.link: unexposed, the device may still read them */
	struct util_list dereg_list;
	/* erpc_session.fail_link: closed, the device may still read the address */
	struct util_list zombies;
	struct util_list dirty, waiting, piggybacking, failing;
	struct erpc_set fresh;      /* sessions that have sent since the last progress */
	struct erpc_wheel timers;   /* erpc_session.timer: sessions with packets in flight */
	struct erpc_set new_timers; /* sessions whose timer is not in the wheel yet */
	struct copyrpc_stats_packets *stats; /* own_stats until a session is attached */
	struct copyrpc_stats_packets own_stats;
	struct erpc_timely_cfg timely_cfg;
	bool paces;
	size_t eager_min; /* core_chan.eager_min of sessions */
	struct erpc_wheel wheel;
	struct util_idmap exposures;
	uint32_t saved_cnt; /* packets received during erpc_ep_await or before attach */
	struct dev_dgram_in saved[ERPC_POLL_BURST];
	uint64_t exposure_random;
	struct erpc_session
		/* session with the get that is expected to go on (erpc_direct.h), or NULL */
		*direct_session;
	uint32_t direct_skip; /* polls to make without direct placement */
	bool direct_placed;   /* the payload of the current packet is at its destination */
	struct copyrpc_stats_peer unread; /* row of sessions that have no connection yet */

	pthread_mutex_t lock;           /* protects the fields below */
	struct util_pool sessions_few;  /* of struct erpc_session: the first ERPC_SESSIONS_FEW */
	struct util_pool sessions_huge; /* further ones */
	uint8_t *used;                  /* one bit per session number */
	uint32_t next_num;
	uint32_t session_cnt;
	uint32_t promised; /* packets that peers may send */
	uint64_t random;
	uint8_t mark; /* low byte of all tokens: the device may drop packets without it */
	bool seeded;  /* tokens follow from `random`, for tests */
};

/**
 * Sets the time, which never goes back. Sets `away` if the polls since the previous call were too
 * few for the time that passed.
 */
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
 * Queues an exposure for deregistration. The next flush checks whether the device still reads it.
 */
static inline void erpc_ep_defer_dereg(struct erpc_ep *ep, struct util_list *link)
{
	util_list_push_back(&ep->dereg_list, link);
	ep->reaped = ep->dg->tx_done - 1;
}

/** Lowers the time of the next timer to at_ns. */
static inline void erpc_ep_due_at(struct erpc_ep *ep, uint64_t at_ns)
{
	if (at_ns < ep->next_ns)
		ep->next_ns = at_ns;
}

/**
 * Waits until the device completes datagram `number`, which requests a report. Packets received
 * meanwhile are saved for the next poll. Gives up, with a warning, after ERPC_AWAIT_NS: a device
 * that sends nothing for so long, but reports no error.
 */
void erpc_ep_await(struct erpc_ep *ep, uint32_t number);

/** Posts the burst. An error of the device fails the endpoint. */
void erpc_ep_doorbell_some(struct erpc_ep *ep);

/** Posts the burst now, unless progress runs and posts it at its end. */
static inline void erpc_ep_doorbell(struct erpc_ep *ep)
{
	if (!ep->running && ep->out.cnt)
		erpc_ep_doorbell_some(ep);
}

/** Fails all sessions; the endpoint goes on. */
void erpc_ep_fail_sessions(struct erpc_ep *ep, int err);
/** Records an error of the device and fails all sessions. */
void erpc_ep_fail(struct erpc_ep *ep, int err);

/** Allocates and frees session numbers, credits and tokens (erpc_ep_num.c). Any thread. */
int erpc_ep_alloc_num(struct erpc_ep *ep, uint16_t *num, uint32_t *credits, uint64_t *token);
void erpc_ep_free_num(struct erpc_ep *ep, uint16_t num, uint32_t credits);

/** Allocates and frees the memory of a session, zeroed (erpc_ep_mem.c). Any thread. */
struct erpc_session *erpc_ep_alloc_session(struct erpc_ep *ep);
void erpc_ep_free_session(struct erpc_ep *ep, struct erpc_session *s);

/** Initializes and frees that memory for an endpoint. */
void erpc_ep_mem_init(struct erpc_ep *ep);
void erpc_ep_mem_fini(struct erpc_ep *ep);

#endif
