/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * After how much silence is a packet lost?
 *
 * The smoothed time to an answer and four times its deviation, at least half as much again (RFC 6298),
 * between two bounds; twice as long with each loss in a row of what is waited for. Only packets that were
 * sent once are measured: the answer to a repeated one may belong to either. So where all had to be
 * repeated because the peer was only slow nothing would ever be learnt: the doubling stays, for
 * what is sent next, until something is measured.
 *
 * Sooner, where something that was sent later has been answered already (RFC 8985): a round trip and a
 * quarter, and what the peer may let an answer wait that it could have given at once.
 *
 * And where packets are known to get lost (RFC 8985's probes): as soon as an answer is late by what is
 * measured, without the lower bound, and twice as long only with every second loss in a row. With
 * half of all round trips lost, doubling each time would wait for ever longer on average.
 *
 * Many sessions that lost packets in the same moment, because they all spoke at once and somebody
 * had no buffers left, would do so again a time-out later, and after each doubling: repetitions are
 * spread.
 *
 * Nanoseconds. Pure. Shown by test/unit/erpc/pace/test_erpc_rto.c.
 */
#ifndef ERPC_RTO_H
#define ERPC_RTO_H

#include <stdint.h>

#define ERPC_RTO_DOUBLINGS_MAX 4u
#define ERPC_RTO_SLACK_NS      25000u

struct erpc_rto {
	uint64_t srtt_ns; /* 0: nothing measured */
	uint64_t var_ns;
	uint64_t rto_ns;   /* what to wait now */
	uint64_t rack_ns;  /* and if what was sent later has been answered, */
	uint64_t probe_ns; /* or if packets are known to get lost */
	uint64_t min_ns;
	uint64_t max_ns;
	uint32_t kept; /* doublings of what was answered last */
};

/** Waits `first_ns` until something is measured. 0 < min <= first <= max. */
static inline void erpc_rto_init(struct erpc_rto *r, uint64_t first_ns, uint64_t min_ns,
				 uint64_t max_ns)
{
	*r = (struct erpc_rto){
		.rto_ns = first_ns,
		.rack_ns = first_ns,
		.probe_ns = first_ns,
		.min_ns = min_ns,
		.max_ns = max_ns,
	};
}

/** A packet that was sent once was answered after rtt_ns. */
static inline void erpc_rto_sample(struct erpc_rto *r, uint64_t rtt_ns)
{
	uint64_t diff = r->srtt_ns > rtt_ns ? r->srtt_ns - rtt_ns : rtt_ns - r->srtt_ns;
	uint64_t rto, late, quarter;

	if (!r->srtt_ns) {
		r->srtt_ns = rtt_ns ? rtt_ns : 1;
		r->var_ns = rtt_ns / 2;
	} else {
		r->var_ns = (3 * r->var_ns + diff) / 4;
		r->srtt_ns = (7 * r->srtt_ns + rtt_ns) / 8;
	}
	quarter = r->srtt_ns / 4;
	rto = r->srtt_ns + (4 * r->var_ns > 2 * quarter ? 4 * r->var_ns : 2 * quarter);
	if (rto < r->min_ns)
		rto = r->min_ns;
	r->rto_ns = rto < r->max_ns ? rto : r->max_ns;
	r->rack_ns = r->srtt_ns + (quarter > ERPC_RTO_SLACK_NS ? quarter : ERPC_RTO_SLACK_NS);
	late = r->srtt_ns + 4 * r->var_ns;
	r->probe_ns = late > r->rack_ns ? late : r->rack_ns;
	r->kept = 0;
}

/** What was repeated `losses` times in a row has been answered. */
static inline void erpc_rto_keep(struct erpc_rto *r, unsigned losses)
{
	if (losses > r->kept)
		r->kept = losses < ERPC_RTO_DOUBLINGS_MAX ? losses : ERPC_RTO_DOUBLINGS_MAX;
}

/** What to wait after `losses` in a row of the same packet. */
static inline uint64_t erpc_rto_after(const struct erpc_rto *r, unsigned losses)
{
	unsigned shift = losses + r->kept;
	uint64_t rto = shift < 24 ? r->rto_ns << shift : r->max_ns;

	return rto < r->max_ns ? rto : r->max_ns;
}

/** The same where packets are known to get lost. */
static inline uint64_t erpc_rto_probe(const struct erpc_rto *r, unsigned losses)
{
	uint64_t rto = erpc_rto_after(r, losses);
	uint64_t probe = losses < 48 ? r->probe_ns << losses / 2 : rto;

	return probe < rto ? probe : rto;
}

/** `wait_ns`, up to half as long again: whose `lot` is another waits another time. */
static inline uint64_t erpc_rto_spread(uint64_t wait_ns, uint64_t lot)
{
	return wait_ns + (wait_ns >> 9) * (lot * 0x9e3779b97f4a7c15ull >> 56);
}

#endif
