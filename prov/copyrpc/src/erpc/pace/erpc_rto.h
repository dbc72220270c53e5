/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Retransmission timeout (RTO) of a session. Called by tx/.
 *
 * The smoothed round trip plus four times its deviation, at least half as much again (RFC 6298),
 * between two bounds, doubled with each loss of the same packet in a row. The first losses double
 * it ERPC_RTO_EARLY times at most, and to ERPC_RTO_FLAT_NS at most: a network that loses half of
 * all round trips loses ten in a row now and then, and doublings would make seconds of them. After
 * ERPC_RTO_FLAT more the peer is absent, and doublings go on. A longer timeout is not doubled
 * before: it is that long if processes wait for a processor, and few samples shorten it again where
 * most packets are repeated.
 *
 * Only packets sent once are measured: a response to a repeated packet may belong to either. If all
 * packets are repeated, since the peer is slow, nothing is measured; so the doublings stay until
 * the next sample. If both responses come (RFC 3708), the timeout was shorter than the round trip.
 * Before the first sample it is doubled then, ERPC_RTO_FLAT_NS too; later, if that happens more
 * than ERPC_RTO_CHANCE times without a sample: the network has become slower. Fewer are common
 * where processes wait for a processor, and doublings would delay them further
 * (test_erpc_pauses.c).
 *
 * If a packet that was sent later is acknowledged (RFC 8985, RACK): one round trip and a quarter.
 *
 * If losses are certain (RFC 8985, probes): the measured delay without the lower bound, doubled
 * with every second loss in a row. With half of all round trips lost, doubling each time would
 * never catch up.
 *
 * Sessions that lost packets at the same moment, in a burst that overran the receive buffers, would
 * repeat them at the same moment. Repetitions are spread.
 *
 * Nanoseconds. Pure.
 */
#ifndef ERPC_PACE_ERPC_RTO_H
#define ERPC_PACE_ERPC_RTO_H

#include <stdbool.h>
#include <stdint.h>

#include "util/bits.h"

#define ERPC_RTO_DOUBLINGS_MAX 4u
#define ERPC_RTO_FAR_MAX       8u
#define ERPC_RTO_CHANCE        32u
#define ERPC_RTO_EARLY         6u
#define ERPC_RTO_FLAT          10u
#define ERPC_RTO_FLAT_NS       50000000u
#define ERPC_RTO_SLACK_NS      25000u

/** Timeouts are computed from it when they are needed: a sample writes the first three fields. */
struct erpc_rto {
	uint32_t srtt_ns; /* 0: nothing measured */
	uint32_t var_ns;
	uint8_t kept;      /* doublings that remain from the packet acknowledged last */
	uint8_t far;       /* timeouts after the last sample that were too short */
	bool doubtful;     /* a packet was repeated after the last of these */
	uint32_t first_ns; /* all timeouts before the first sample */
	uint32_t min_ns;   /* bounds of the retransmission timeout */
	uint32_t max_ns;
};

/** Sets the timeout before the first sample. 0 < min <= first <= max. */
static inline void erpc_rto_init(struct erpc_rto *r, uint32_t first_ns, uint32_t min_ns,
				 uint32_t max_ns)
{
	*r = (struct erpc_rto){ .first_ns = first_ns, .min_ns = min_ns, .max_ns = max_ns };
}

/**
 * Returns the timeout before the first sample. Not inline: a compiler would read it in advance, and
 * it may be in another cache line than the first three fields.
 */
uint64_t erpc_rto_first_cold(const struct erpc_rto *r);

/** Returns the retransmission timeout. */
static inline uint64_t erpc_rto_ns(const struct erpc_rto *r)
{
	uint64_t late = 4ull * r->var_ns, half = r->srtt_ns / 2;
	uint64_t rto = r->srtt_ns + (late > half ? late : half);

	if (!r->srtt_ns)
		return r->first_ns;
	if (rto < r->min_ns)
		return r->min_ns;
	return rto < r->max_ns ? rto : r->max_ns;
}

/** Returns the timeout once a later packet is acknowledged. */
static inline uint64_t erpc_rto_rack_ns(const struct erpc_rto *r)
{
	uint64_t quarter = r->srtt_ns / 4;

	if (UTIL_UNLIKELY(!r->srtt_ns))
		return erpc_rto_first_cold(r);
	return r->srtt_ns + (quarter > ERPC_RTO_SLACK_NS ? quarter : ERPC_RTO_SLACK_NS);
}

/** Returns the timeout while losses are certain. */
static inline uint64_t erpc_rto_probe_ns(const struct erpc_rto *r)
{
	uint64_t late = r->srtt_ns + 4ull * r->var_ns, rack = erpc_rto_rack_ns(r);

	return late > rack ? late : rack;
}

/** Adds the round trip of a packet that was sent once. Counts more than 4 s as 4 s. */
static inline void erpc_rto_sample(struct erpc_rto *r, uint64_t rtt_ns)
{
	uint64_t srtt_ns = r->srtt_ns, diff;

	if (UTIL_UNLIKELY(rtt_ns > UINT32_MAX))
		rtt_ns = UINT32_MAX;
	diff = srtt_ns > rtt_ns ? srtt_ns - rtt_ns : rtt_ns - srtt_ns;
	if (!srtt_ns) {
		r->srtt_ns = rtt_ns ? (uint32_t)rtt_ns : 1;
		r->var_ns = (uint32_t)(rtt_ns / 2);
	} else {
		r->var_ns = (uint32_t)((3ull * r->var_ns + diff) / 4);
		r->srtt_ns = (uint32_t)((7 * srtt_ns + rtt_ns) / 8);
	}
	r->kept = r->far = 0;
}

/** Notes that a packet was repeated. */
static inline void erpc_rto_repeated(struct erpc_rto *r)
{
	r->doubtful = true;
}

/** Handles a second response. Those to the packets of one timeout count once. */
static inline void erpc_rto_twice(struct erpc_rto *r)
{
	if (r->doubtful && r->far < ERPC_RTO_FAR_MAX + ERPC_RTO_CHANCE)
		r->far++;
	r->doubtful = false;
}

/** Returns the doublings for timeouts that were too short. */
static inline unsigned erpc_rto_far(const struct erpc_rto *r)
{
	unsigned chance = r->srtt_ns ? ERPC_RTO_CHANCE : 0;

	return r->far > chance ? r->far - chance : 0;
}

/** Keeps the doublings of a packet acknowledged after `losses` repetitions. */
static inline void erpc_rto_keep(struct erpc_rto *r, unsigned losses)
{
	if (losses > r->kept)
		r->kept = (uint8_t)(losses < ERPC_RTO_DOUBLINGS_MAX ? losses
								    : ERPC_RTO_DOUBLINGS_MAX);
}

/** Returns the doublings of the timeout after `losses` in a row. */
static inline unsigned erpc_rto_doublings(unsigned losses)
{
	if (losses <= ERPC_RTO_EARLY)
		return losses;
	return losses <= ERPC_RTO_EARLY + ERPC_RTO_FLAT ? ERPC_RTO_EARLY : losses - ERPC_RTO_FLAT;
}

/** Returns the longest timeout after `losses` in a row. */
static inline uint64_t erpc_rto_bound(const struct erpc_rto *r, unsigned losses)
{
	uint64_t rto = erpc_rto_ns(r), flat_ns = rto > ERPC_RTO_FLAT_NS ? rto : ERPC_RTO_FLAT_NS;

	flat_ns <<= erpc_rto_far(r);
	if (losses > ERPC_RTO_EARLY + ERPC_RTO_FLAT || flat_ns > r->max_ns)
		return r->max_ns;
	return flat_ns;
}

/** Returns the timeout after `losses` of the same packet in a row. */
static inline uint64_t erpc_rto_after(const struct erpc_rto *r, unsigned losses)
{
	unsigned shift = erpc_rto_doublings(losses + r->kept) + erpc_rto_far(r);
	uint64_t max_ns = erpc_rto_bound(r, losses + r->kept);
	uint64_t rto = shift < 24 ? erpc_rto_ns(r) << shift : max_ns;

	return rto < max_ns ? rto : max_ns;
}

/** Returns the timeout after `losses` in a row while losses are certain. */
static inline uint64_t erpc_rto_probe(const struct erpc_rto *r, unsigned losses)
{
	uint64_t rto = erpc_rto_after(r, losses);
	uint64_t probe = losses < 48 ? erpc_rto_probe_ns(r) << losses / 2 : rto;

	return probe < rto ? probe : rto;
}

/** Returns `wait_ns` plus up to half of it, pseudo-randomly by `lot`. */
static inline uint64_t erpc_rto_spread(uint64_t wait_ns, uint64_t lot)
{
	return wait_ns + (wait_ns >> 9) * (lot * 0x9e3779b97f4a7c15ull >> 56);
}

#endif
