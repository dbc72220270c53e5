/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Protocol selector of a peer: pipelined or rendezvous, for messages that the kernel can copy for
 * the peer. Called by core_tx_bulk.c, which also reads the clock.
 *
 * Pipelined bytes are copied twice, through the ring. A rendezvous get copies them once, in the
 * kernel, after a fixed cost. Between cores that share a cache pipelining is nearly twice as fast;
 * between sockets, where each ring line travels twice, rendezvous is. The distance of a peer is not
 * known and may change, so the sender now and then times the write of a pipelined message.
 * Rendezvous is used until enough samples are taken and while writes are slow.
 */
#ifndef CORE_CORE_TX_SELECTOR_H
#define CORE_CORE_TX_SELECTOR_H

#include <stdbool.h>
#include <stdint.h>

/** Nanoseconds per KiB below which pipelining is faster: 21 GB/s, the rate of two peers' gets. */
#define CORE_TX_SELECTOR_NEAR_NS 48u
/** Messages between samples: before the choice is known, with rendezvous, with pipelining. */
#define CORE_TX_SELECTOR_FIRST   4u
#define CORE_TX_SELECTOR_FAR     32u
#define CORE_TX_SELECTOR_NEAR    8u
#define CORE_TX_SELECTOR_SAMPLES 4u /* samples before the first choice */

/** Selector of one peer. Zeroed: no samples. */
struct core_tx_selector {
	uint32_t kib_ns16;   /* time per KiB in sixteenths of a nanosecond, smoothed */
	uint16_t since;      /* messages since the last sample */
	uint16_t sample_cnt; /* up to CORE_TX_SELECTOR_SAMPLES */
};

static inline bool core_tx_selector_is_near(const struct core_tx_selector *sel)
{
	return sel->sample_cnt == CORE_TX_SELECTOR_SAMPLES &&
	       sel->kib_ns16 < 16 * CORE_TX_SELECTOR_NEAR_NS;
}

static inline uint32_t core_tx_selector_period(const struct core_tx_selector *sel)
{
	if (sel->sample_cnt < CORE_TX_SELECTOR_SAMPLES)
		return CORE_TX_SELECTOR_FIRST;
	return core_tx_selector_is_near(sel) ? CORE_TX_SELECTOR_NEAR : CORE_TX_SELECTOR_FAR;
}

/** Returns true if the pipelined message that has started is to be timed. */
static inline bool core_tx_selector_samples(const struct core_tx_selector *sel)
{
	return sel->since >= core_tx_selector_period(sel);
}

/** Returns true if the next message is to be pipelined. Called again when a send is retried. */
static inline bool core_tx_selector_is_pipelined(const struct core_tx_selector *sel)
{
	return core_tx_selector_is_near(sel) || sel->since + 1u >= core_tx_selector_period(sel);
}

/** Counts a message after the channel has accepted its first frame. */
static inline void core_tx_selector_started(struct core_tx_selector *sel)
{
	sel->since += sel->since < UINT16_MAX;
}

/** Adds a sample: `len` bytes took `ns`. The cap limits the effect of a preempted process. */
static inline void core_tx_selector_add_sample(struct core_tx_selector *sel, uint64_t ns,
					       uint64_t len)
{
	uint64_t most = 24 * CORE_TX_SELECTOR_NEAR_NS, kib_ns16 = (ns << 14) / len;

	kib_ns16 = kib_ns16 < most ? kib_ns16 : most;
	sel->kib_ns16 = sel->sample_cnt ? (3 * sel->kib_ns16 + (uint32_t)kib_ns16 + 2) / 4
					: (uint32_t)kib_ns16;
	sel->sample_cnt += sel->sample_cnt < CORE_TX_SELECTOR_SAMPLES;
	sel->since = 0;
}

#endif
