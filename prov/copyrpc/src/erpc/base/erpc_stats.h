/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Counters of an endpoint, for tests and debugging: one for each reason to refuse a packet, in the
 * order of the checks (docs/datagram-protocol.md, section 7). A refused packet changes nothing but
 * its counter. Messages, losses and waits of a session are counted in its row of the statistics
 * page (util/stats.h). Tested in test/unit/erpc/rx/test_erpc_check.c.
 */
#ifndef ERPC_BASE_ERPC_STATS_H
#define ERPC_BASE_ERPC_STATS_H

#include <stdint.h>

struct erpc_stats {
	uint64_t rx_pkts;
	uint64_t rx_malformed;  /* too short, or no valid header */
	uint64_t rx_no_session; /* unknown session number */
	uint64_t rx_bad_token;  /* wrong token of the session */
	uint64_t rx_bad_source; /* address other than the peer's */
	uint64_t rx_bad_state;  /* the session is failing */
	uint64_t rx_stale;      /* of a completed request */
	uint64_t rx_early;      /* a packet before it is missing */
	uint64_t rx_bad;        /* violates the protocol: type, size, number, or content */
	uint64_t rx_repeats;    /* packet of a request received before */
	uint64_t rx_no_memory;  /* no space before attach, or for a long request */
	uint64_t tx_pkts;       /* accepted by the device */
	uint64_t gaps;          /* gaps reported to peers */
	uint64_t piggybacks;    /* batches acknowledged by a piggybacked ack */
};

#endif
