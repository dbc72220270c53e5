/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * After how much silence is a packet lost?
 *
 * The smoothed round-trip time and four times its deviation (RFC 6298), between two bounds; twice as
 * long with each loss in a row of what is waited for. Only packets that were sent
 * once are measured: the answer to a repeated one may belong to either. Nanoseconds. Pure.
 *
 * Shown by test/unit/erpc/test_erpc_rto.c.
 */
#ifndef ERPC_RTO_H
#define ERPC_RTO_H

#include <stdint.h>

struct erpc_rto {
	uint64_t srtt_ns; /* 0: nothing measured */
	uint64_t var_ns;
	uint64_t rto_ns; /* what to wait now */
	uint64_t min_ns;
	uint64_t max_ns;
};

/** Waits `first_ns` until something is measured. 0 < min <= first <= max. */
static inline void erpc_rto_init(struct erpc_rto *r, uint64_t first_ns, uint64_t min_ns,
				 uint64_t max_ns)
{
	*r = (struct erpc_rto){ .rto_ns = first_ns, .min_ns = min_ns, .max_ns = max_ns };
}

/** A packet that was sent once was answered after rtt_ns. */
static inline void erpc_rto_sample(struct erpc_rto *r, uint64_t rtt_ns)
{
	uint64_t diff = r->srtt_ns > rtt_ns ? r->srtt_ns - rtt_ns : rtt_ns - r->srtt_ns;
	uint64_t rto;

	if (!r->srtt_ns) {
		r->srtt_ns = rtt_ns ? rtt_ns : 1;
		r->var_ns = rtt_ns / 2;
	} else {
		r->var_ns = (3 * r->var_ns + diff) / 4;
		r->srtt_ns = (7 * r->srtt_ns + rtt_ns) / 8;
	}
	rto = r->srtt_ns + 4 * r->var_ns;
	if (rto < r->min_ns)
		rto = r->min_ns;
	r->rto_ns = rto < r->max_ns ? rto : r->max_ns;
}

/** What to wait after `losses` in a row of the same packet. */
static inline uint64_t erpc_rto_after(const struct erpc_rto *r, unsigned losses)
{
	uint64_t rto = losses < 32 ? r->rto_ns << losses : r->max_ns;

	return rto < r->max_ns ? rto : r->max_ns;
}

#endif
