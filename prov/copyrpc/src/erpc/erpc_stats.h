/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What has a datagram endpoint seen?
 *
 * One counter for each reason to refuse a packet, in the order of the checks
 * (docs/datagram-protocol.md, section 7), and for what losses cost. A packet that is counted as
 * refused has changed nothing else: shown by test/unit/erpc/rx/test_erpc_check.c.
 */
#ifndef ERPC_STATS_H
#define ERPC_STATS_H

#include <stdint.h>

struct erpc_stats {
	uint64_t rx_pkts;
	uint64_t rx_malformed;  /* too short, or no header */
	uint64_t rx_no_session; /* a number that nobody has */
	uint64_t rx_bad_token;  /* who sent it does not know the session's token */
	uint64_t rx_bad_source; /* from another address than the peer's */
	uint64_t rx_bad_state;  /* the session is failing */
	uint64_t rx_stale;      /* of a request that is over */
	uint64_t rx_early;      /* something before it was lost */
	uint64_t rx_bad;        /* breaks the protocol: type, size, number, or content */
	uint64_t rx_repeats;    /* a request's packet that was here before */
	uint64_t rx_no_memory;  /* no room for it before its session is up, or for a long request */
	uint64_t tx_pkts;       /* accepted by the device */
	uint64_t tx_again;      /* sent because it seemed lost */
	uint64_t losses;        /* times that a slot went back, or asked */
	uint64_t timeouts;      /* of them, because nothing came for too long */
	uint64_t gaps;          /* times that a peer was told that something of its is missing */
	uint64_t no_credit;     /* a slot had something to send and no credit */
	uint64_t no_slot;       /* something was refused for want of a slot */
	uint64_t paced;         /* a session had to wait for its rate */
	uint64_t batches;       /* ordered requests begun */
	uint64_t piggybacks; /* of them, those whose answer a batch of the peer's brought along */
	uint64_t frames;     /* messages and calls in batches */
};

#endif
