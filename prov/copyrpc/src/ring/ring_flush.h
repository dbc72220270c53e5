/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Does the open batch leave now or with the next progress call? (docs/ring-protocol.md, section 4)
 *
 * One function, so that the policy is in one place. A batch that is held leaves with the next
 * progress call at the latest. The constants are justified in docs/flush-policy.md by the rows of
 * fabtests/benchmarks/fi_tagged_bench (rate and latency).
 *
 * Shown by test/unit/ring/test_ring_flush.c.
 */
#ifndef RING_FLUSH_H
#define RING_FLUSH_H

#include <stdbool.h>
#include <stdint.h>

/**
 * best_len of devices whose every write is a doorbell and a completion: docs/flush-policy.md. A multiple
 * of every path MTU: packet_len too.
 */
#define RING_NIC_BEST_LEN 4096u

/** What the link is like; constant per device. */
struct ring_flush_cfg {
	uint32_t best_len; /* a batch of this many bytes leaves whatever else holds */
	bool cheap;        /* signalling is a store, not a doorbell: hold only what FI_MORE holds */
	bool looks;    /* the peer's consumer word can be read at once: ask it what is in flight */
	uint32_t head; /* 32: behind a full batch heads are in a line's second half; 0: anywhere */
	uint32_t packet_len; /* 0: there are none */
};

/**
 * Does the open batch, which would send `sent_len` bytes, leave before a message of `span` is appended? Where
 * that spares the packet that the message would begin with its last bytes. Large ones begin one anyway.
 */
static inline bool ring_flush_before(const struct ring_flush_cfg *cfg, uint64_t sent_len,
				     uint64_t span)
{
	return sent_len + span > cfg->packet_len && span <= cfg->packet_len / 2;
}

/** Where is a batch full that begins at `start`? */
static inline uint64_t ring_flush_full(const struct ring_flush_cfg *cfg, uint64_t start)
{
	return (start + cfg->best_len) | cfg->head;
}

static inline bool ring_flush_is_full(const struct ring_flush_cfg *cfg, uint64_t start,
				      uint64_t end)
{
	return end - start >= ring_flush_full(cfg, start) - start;
}

/** Does the open batch [start, end) leave? */
static inline bool ring_flush_now(const struct ring_flush_cfg *cfg, uint64_t start, uint64_t end,
				  bool more, bool in_flight)
{
	if (ring_flush_is_full(cfg, start, end))
		return true;
	if (more)
		return false;
	return cfg->cheap || !in_flight;
}

#endif
