/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How fast may a session send? Timely (SIGCOMM 2015), with the amendment of "ECN or Delay" (2016):
 * from round-trip times alone.
 *
 *	below t_low	the path is idle: more, additively (faster after five falls in a row)
 *	above t_high	queues are long: less, by how far above
 *	between		a mixture of both, weighted by the trend: falling times, more (never faster);
 *			rising times, less, by how far above t_low
 *
 * Without the amendment the trend alone decides in the middle. Then any division of a link is as
 * stable as any other: of two flows one may starve for ever. With it there is one rate at which a flow
 * stands still, the same for all that see the same times, however often they look.
 *
 * The trend is a moving average of differences, relative to min_rtt. A change counts for at most one
 * min_rtt of time, so that many samples at once do not count many times. Rates are bytes per second,
 * times nanoseconds. Pure: the clock is the caller's.
 *
 * A queue that is full before the times are long says so by losing packets, and what is sent again
 * is not measured: then nothing would ever be learnt. So a loss counts, too, where the last time was no
 * short one; where it was, the network loses packets, and sending less would not help.
 *
 * Shown by test/unit/erpc/pace/test_erpc_timely.c: its regions, and flows that share a bottleneck.
 */
#ifndef ERPC_TIMELY_H
#define ERPC_TIMELY_H

#include <stdbool.h>
#include <stdint.h>

struct erpc_timely_cfg {
	uint64_t t_low_ns;
	uint64_t t_high_ns;
	uint64_t min_rtt_ns;
	uint64_t catch_ns; /* who was kept from sending for so long makes up for it */
	double alpha;      /* weight of a new difference in the average */
	double beta;       /* how strongly the rate falls above t_low, where the trend is even */
	double beta_high;  /* and above t_high */
	double add_rate;   /* bytes per second, one step up */
	double min_rate;
	double lost_rate; /* losses take no more */
	double max_rate;  /* of the link */
};

struct erpc_timely {
	const struct erpc_timely_cfg *cfg;
	double rate; /* bytes per second */
	double avg_diff_ns;
	uint64_t prev_rtt_ns; /* 0: none yet */
	uint64_t updated_ns;
	uint64_t lost_ns; /* a loss took something */
	uint32_t falls;   /* samples in a row that were not longer than the one before */
};

/**
 * The published constants, for a link of `max_rate` bytes per second. They were chosen for 10
 * Gbit/s and more: a slower link has smaller steps, and longer times where few packets already take
 * as long. `host_ns`: what round trips take longer than the network does, because processes
 * have to be woken first.
 */
void erpc_timely_cfg_init(struct erpc_timely_cfg *cfg, double max_rate, uint64_t host_ns);

/** Begins at the link's rate: who meets no congestion never waits. `cfg` is shared and outlives it. */
void erpc_timely_init(struct erpc_timely *t, const struct erpc_timely_cfg *cfg, uint64_t now_ns);

/** A packet took rtt_ns. */
void erpc_timely_update(struct erpc_timely *t, uint64_t now_ns, uint64_t rtt_ns);

/** Packets were lost. It counts once in a round trip. */
void erpc_timely_lost(struct erpc_timely *t, uint64_t now_ns);

/** No limit applies: packets leave without a detour. */
static inline bool erpc_timely_is_open(const struct erpc_timely *t)
{
	return t->rate >= t->cfg->max_rate;
}

/** A short round trip on an open path changes nothing: most samples need no arithmetic. */
static inline bool erpc_timely_may_skip(const struct erpc_timely *t, uint64_t rtt_ns)
{
	return erpc_timely_is_open(t) && rtt_ns <= t->cfg->t_low_ns;
}

/** Nanoseconds that `bytes` take at the present rate. */
static inline uint64_t erpc_timely_gap_ns(const struct erpc_timely *t, uint32_t bytes)
{
	return (uint64_t)(bytes * 1e9 / t->rate);
}

/** When the next packet may leave, if this one of `bytes`, which was due at due_ns, leaves now. */
static inline uint64_t erpc_timely_next_ns(const struct erpc_timely *t, uint64_t due_ns,
					   uint64_t now_ns, uint32_t bytes)
{
	uint64_t from = due_ns + t->cfg->catch_ns > now_ns ? due_ns : now_ns - t->cfg->catch_ns;

	return from + erpc_timely_gap_ns(t, bytes);
}

#endif
