/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Timely (SIGCOMM 2015) with the patch of "ECN or Delay" (CoNEXT 2016): the rate of a session from
 * its round-trip times. Called by tx/.
 *
 *   below t_low   the path is idle: additive increase, faster after five falls in a row
 *   above t_high  queues are long: multiplicative decrease, by the distance
 *   between       a mixture weighted by the trend: falling times increase, rising times
 *                 decrease, by the distance from t_low
 *
 * Without the patch only the trend decides in the middle, any division of a link is stable, and a
 * flow may starve. The patch gives one fixed point for all flows with the same round trips.
 *
 * The trend is a moving average of differences, relative to min_rtt. One change counts for at most
 * one min_rtt of time, so that many samples at once do not add up. Rates are bytes per second,
 * times nanoseconds. Pure: the caller passes the clock.
 *
 * A queue that overflows before round trips are long shows by losses, and repeated packets are not
 * measured. So a loss halves the rate if the last round trip was long. After a short one the
 * network loses packets for other reasons, and a lower rate would not help.
 *
 * Tested in test/unit/erpc/pace/test_erpc_timely.c: the regions, and flows over one bottleneck.
 */
#ifndef ERPC_PACE_ERPC_TIMELY_H
#define ERPC_PACE_ERPC_TIMELY_H

#include <stdbool.h>
#include <stdint.h>

struct erpc_timely_cfg {
	uint64_t t_low_ns;
	uint64_t t_high_ns;
	uint64_t min_rtt_ns;
	uint64_t catch_ns; /* delay that a sender may make up for in a burst */
	double alpha;      /* weight of a new difference in the average */
	double beta;       /* decrease above t_low with an even trend */
	double beta_high;  /* decrease above t_high */
	double add_rate;   /* bytes per second, one increase */
	double min_rate;
	double lost_rate; /* lower bound of decreases by losses */
	double max_rate;  /* rate of the link */
};

struct erpc_timely {
	const struct erpc_timely_cfg *cfg;
	double rate; /* bytes per second */
	double avg_diff_ns;
	uint64_t prev_rtt_ns; /* 0: no sample yet */
	uint64_t updated_ns;
	uint64_t lost_ns; /* time of the last decrease by a loss */
	uint32_t falls;   /* samples in a row that were not longer than the previous one */
};

/**
 * Sets the published constants for a link of `max_rate` bytes per second. They suit 10 Gbit/s and
 * more; a slower link gets smaller steps and longer times. `host_ns`: share of a round trip that
 * wake-ups of processes take.
 */
void erpc_timely_cfg_init(struct erpc_timely_cfg *cfg, double max_rate, uint64_t host_ns);

/** Begins at the link's rate: a session without congestion never waits. `cfg` is shared. */
void erpc_timely_init(struct erpc_timely *t, const struct erpc_timely_cfg *cfg, uint64_t now_ns);

/** Adapts the rate to a round trip of rtt_ns. */
void erpc_timely_update(struct erpc_timely *t, uint64_t now_ns, uint64_t rtt_ns);

/** Adapts the rate to a loss, at most once per round trip. */
void erpc_timely_lost(struct erpc_timely *t, uint64_t now_ns);

/** Returns true if packets may leave without pacing. */
static inline bool erpc_timely_is_open(const struct erpc_timely *t)
{
	return t->rate >= t->cfg->max_rate;
}

/**
 * Returns true for a sample that cannot change the rate: short, on an open path. Needs nothing of
 * the session but whether it is paced.
 */
static inline bool erpc_timely_may_skip(const struct erpc_timely_cfg *cfg, bool paced,
					uint64_t rtt_ns)
{
	return !paced && rtt_ns <= cfg->t_low_ns;
}

/** Returns the nanoseconds that `bytes` take at the current rate. */
static inline uint64_t erpc_timely_gap_ns(const struct erpc_timely *t, uint32_t bytes)
{
	return (uint64_t)(bytes * 1e9 / t->rate);
}

/** Returns when the next packet may leave if one of `bytes`, due at due_ns, leaves now. */
static inline uint64_t erpc_timely_next_ns(const struct erpc_timely *t, uint64_t due_ns,
					   uint64_t now_ns, uint32_t bytes)
{
	uint64_t from = due_ns + t->cfg->catch_ns > now_ns ? due_ns : now_ns - t->cfg->catch_ns;

	return from + erpc_timely_gap_ns(t, bytes);
}

#endif
