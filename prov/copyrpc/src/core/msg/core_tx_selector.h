/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Does a message that the peer could fetch go through the ring sooner?
 *
 * Through the ring its bytes are copied twice, fetched they are copied once, by the kernel, which takes its
 * time before the first one. Between cores that share a cache the former is nearly twice as quick; between
 * sockets, where each line of the ring travels twice, the latter. Nobody says how near a peer is, and it may
 * move: so now and then the sender looks how long it takes to write parts. Until it has looked, and while it
 * takes long, messages are fetched.
 *
 * Pure: the clock is the caller's. Shown by test/unit/core/msg/test_core_tx_selector.c.
 */
#ifndef CORE_TX_SELECTOR_H
#define CORE_TX_SELECTOR_H

#include <stdbool.h>
#include <stdint.h>

/** Nanoseconds that a KiB of parts takes, below which the ring is quicker: 21 GB/s, what two processes fetch together. */
#define CORE_TX_SELECTOR_NEAR_NS 48u
/** Messages from one look to the next: while nothing is known, while they are fetched, while they are not. */
#define CORE_TX_SELECTOR_FIRST   4u
#define CORE_TX_SELECTOR_FAR     32u
#define CORE_TX_SELECTOR_NEAR    8u
#define CORE_TX_SELECTOR_SAMPLES 4u /* before what was seen counts */

/** Of a peer. Zeroed: nothing is known. */
struct core_tx_selector {
	uint32_t kib_ns16; /* sixteenths of a nanosecond, smoothed */
	uint16_t since;    /* messages since the last look */
	uint16_t looks;    /* up to CORE_TX_SELECTOR_SAMPLES */
};

static inline bool core_tx_selector_is_near(const struct core_tx_selector *g)
{
	return g->looks == CORE_TX_SELECTOR_SAMPLES && g->kib_ns16 < 16 * CORE_TX_SELECTOR_NEAR_NS;
}

static inline uint32_t core_tx_selector_period(const struct core_tx_selector *g)
{
	if (g->looks < CORE_TX_SELECTOR_SAMPLES)
		return CORE_TX_SELECTOR_FIRST;
	return core_tx_selector_is_near(g) ? CORE_TX_SELECTOR_NEAR : CORE_TX_SELECTOR_FAR;
}

/** Is the message that has begun in parts one to look at? */
static inline bool core_tx_selector_samples(const struct core_tx_selector *g)
{
	return g->since >= core_tx_selector_period(g);
}

/** A message could go either way: true: in parts. Asked again for one that found no room. */
static inline bool core_tx_selector_is_pipelined(const struct core_tx_selector *g)
{
	return core_tx_selector_is_near(g) || g->since + 1u >= core_tx_selector_period(g);
}

/** It has begun to go. */
static inline void core_tx_selector_started(struct core_tx_selector *g)
{
	g->since += g->since < UINT16_MAX;
}

/** Looked: `len` bytes of parts took `ns`. A process that lost its processor meanwhile is no more than slow. */
static inline void core_tx_selector_add_sample(struct core_tx_selector *g, uint64_t ns,
					       uint64_t len)
{
	uint64_t most = 24 * CORE_TX_SELECTOR_NEAR_NS, kib_ns16 = (ns << 14) / len;

	kib_ns16 = kib_ns16 < most ? kib_ns16 : most;
	g->kib_ns16 =
		g->looks ? (3 * g->kib_ns16 + (uint32_t)kib_ns16 + 2) / 4 : (uint32_t)kib_ns16;
	g->looks += g->looks < CORE_TX_SELECTOR_SAMPLES;
	g->since = 0;
}

#endif
