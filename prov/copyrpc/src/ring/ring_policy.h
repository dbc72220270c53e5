/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Flush policy: decides whether the open batch leaves now or with the next progress call
 * (docs/ring-protocol.md, section 4). Called by the send side after each append.
 *
 * The whole policy is one function. A deferred batch leaves with the next progress call at the
 * latest. docs/flush-policy.md justifies the constants by measurements with
 * fabtests/benchmarks/fi_tagged_bench (rate and latency).
 *
 * Tested by test/unit/ring/test_ring_flush.c.
 */
#ifndef RING_RING_POLICY_H
#define RING_RING_POLICY_H

#include <stdbool.h>
#include <stdint.h>

/**
 * best_len where every write costs a doorbell and a completion (docs/flush-policy.md).
 * Multiple of every path MTU, hence also used for packet_len.
 */
#define RING_NIC_BEST_LEN 4096u

/** Properties of the link; constant per device. */
struct ring_flush_cfg {
	uint32_t best_len;   /* Batches of this many bytes leave unconditionally */
	bool cheap_signal;   /* Signalling is a store, not a doorbell: only FI_MORE defers */
	bool reads_consumer; /* The peer's consumer word can be read at once */
	/*
	 * 32: a full batch ends so that the next head starts in the second half of a cache line; 0:
	 * anywhere
	 */
	uint32_t head_bits;
	uint32_t packet_len; /* Bytes of a packet; 0: the device has no packets */
};

/**
 * Returns true if the open batch, which would send `sent_len` bytes, leaves before a message of
 * `span` bytes is appended. Saves the packet that the message's last bytes would start. A large
 * message starts a packet in any case.
 */
static inline bool ring_flush_before(const struct ring_flush_cfg *cfg, uint64_t sent_len,
				     uint64_t span)
{
	return sent_len + span > cfg->packet_len && span <= cfg->packet_len / 2;
}

/** Returns the position at which a batch that begins at `start` is full. */
static inline uint64_t ring_flush_full(const struct ring_flush_cfg *cfg, uint64_t start)
{
	return (start + cfg->best_len) | cfg->head_bits;
}

static inline bool ring_flush_is_full(const struct ring_flush_cfg *cfg, uint64_t start,
				      uint64_t end)
{
	return end - start >= ring_flush_full(cfg, start) - start;
}

/** Returns true if the open batch [start, end) leaves now. */
static inline bool ring_flush_now(const struct ring_flush_cfg *cfg, uint64_t start, uint64_t end,
				  bool more, bool in_flight)
{
	if (ring_flush_is_full(cfg, start, end))
		return true;
	if (more)
		return false;
	return cfg->cheap_signal || !in_flight;
}

#endif
