/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Counters of an endpoint, for tests and debugging: one for each reason to refuse a packet, in the
 * order of the checks (docs/datagram-protocol.md, section 7), and the cost of losses. A refused
 * packet changes nothing but its counter. Tested in test/unit/erpc/rx/test_erpc_check.c.
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
	uint64_t tx_again;      /* retransmitted */
	uint64_t losses;        /* rewinds of a slot, and repeated requests */
	uint64_t timeouts;      /* losses found by time-out */
	uint64_t gaps;          /* gaps reported to peers */
	uint64_t no_credit;     /* a slot had something to send and no credit */
	uint64_t no_slot;       /* messages refused without a slot */
	uint64_t paced;         /* waits for the rate */
	uint64_t batches;       /* batches sent */
	uint64_t piggybacks;    /* batches acknowledged by a piggybacked ack */
	uint64_t frames;        /* messages and calls in batches */
};

#endif
