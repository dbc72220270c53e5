/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two ring connections back to back over a pair of fake links, without an engine around them.
 *
 * Provides the parts of an engine that ring/ needs: the two lists, the device, the up-calls.
 * Channel ops and progress call are compiled over the fake devices like in ring_shm.c, with a
 * flush policy that the test sets.
 *
 * Owner: the test, one thread. Used by test/unit/ring.
 */
#ifndef SUPPORT_RING_PAIR_H
#define SUPPORT_RING_PAIR_H

#include "support/fake_link.h"
#include "engine/eng_engine.h"
#include "ring/ring_conn.h"
#include "ring/ring_flush.h"
#include "ring/ring_rail.h"
#include "ring/ring_transport.h"

/** Flush policy of both instantiations, and the instantiations. */
extern struct ring_flush_cfg ring_pair_flush;
extern const struct eng_transport_ops ring_pair_direct_transport;
extern const struct eng_transport_ops ring_pair_staged_transport;
extern const struct eng_transport_ops ring_pair_late_transport;
extern const struct eng_transport_ops ring_pair_nic_transport;

/** Transports for eng_open: the fake NIC alone, and behind the direct device. */
extern const struct eng_transports ring_pair_transports_nic;
extern const struct eng_transports ring_pair_transports_both;

struct ring_end {
	struct ring_conn conn; /* First member */
	struct core_engine engine;
	struct core_engine_ep eep; /* With a look queued, so that none is */
	struct fake_dev dev;
	struct fake_dev second; /* With rails */
	struct ring_rails rails;
	struct dev_link *link;
	void *user;
};

/** Returns the transport of the end's engine. */
static inline struct ring_transport *ring_end_transport(struct ring_end *end)
{
	return ring_transport_of(eng_transport_at(&end->engine, 0));
}

struct ring_pair_cfg {
	bool direct;
	bool ack;             /* Not direct: the links have write_imm_ack */
	bool rails;           /* Not direct: there are second devices, and rails in use */
	uint32_t ahead;       /* fake_dev.ahead of both ends */
	uint64_t rx_len[2];   /* Sizes of the rings that end 0 and end 1 read */
	uint64_t start[2];    /* First position of that ring; 0: the beginning */
	uint64_t announce[2]; /* grant_max that the writer end advertised; 0: C/8 */
	uint64_t seed;
};

struct ring_pair {
	struct ring_end end[2];
};

/** Returns R_max of the ring of `len` bytes, as both ends compute it. */
uint64_t ring_pair_grant(uint64_t announced, uint64_t len);

void ring_pair_init(struct ring_pair *pair, const struct ring_pair_cfg *cfg,
		    const struct core_upcalls *up);
void ring_pair_fini(struct ring_pair *pair);

static inline struct ring_end *ring_end_of(struct core_chan *chan)
{
	return (struct ring_end *)chan;
}

/** Runs one progress call of an end: its events, then its flush. */
void ring_end_progress(struct ring_end *end);

/** Likewise, with the events of the second device in front. */
void ring_end_progress_rails(struct ring_end *end);

/** Opens a whole engine over a direct fake device (engine->dev), with cm. */
int ring_pair_engine_open(const struct core_upcalls *up, struct core_engine **engine);
void ring_pair_engine_progress(struct core_engine *engine);

/** Up-calls that accept everything and reply to nothing: calls stay open, responses are dropped. */
extern const struct core_upcalls ring_pair_deaf;

/** Returns a frame of one buffer. */
static inline struct core_frame ring_frame(uint32_t op, const struct iovec *iov)
{
	return (struct core_frame){ .op = op, .iov = iov, .iov_cnt = 1, .len = iov->iov_len };
}

#endif
