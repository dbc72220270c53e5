/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Link of the mlx5 device: an RC queue pair, or DC (m5_dlink.h). Called by the engine through
 * dev_link_ops.
 *
 * write_imm is one RDMA WRITE WITH IMMEDIATE from the send ring to the same offset of the peer's
 * ring. Up to M5_INLINE_MAX bytes travel in the WQE, which BlueFlame carries whole. Above that, the
 * WQE has 48 bytes and the device fetches the data from the send ring, where it stays until the
 * peer has released it. The peer uses one zero-length receive WQE and gets one CQE.
 *
 * The sparse table (m5_table.h) has the user word of each signalled WQE: M5_USER_NONE for one
 * signalled for its room alone (m5_sq.h), M5_USER_WORD for the READ of the peer's consumer word,
 * M5_USER_ACK for a write that reports, a struct dev_get for the last WQE of a get or put, and
 * m5_user_access() for every WQE of a simple access, signalled or not (m5_access.h).
 *
 * Tests: test/unit/dev/mlx5/test_m5_link.c; on the device model test/integ/dev/dev_link.
 */
#ifndef DEV_MLX5_M5_LINK_H
#define DEV_MLX5_M5_LINK_H

#include <rdma/fi_errno.h>

#include "dev/dev.h"
#include "dev/ib/ib_link.h"
#include "dev/mlx5/m5_dev.h"
#include "dev/mlx5/m5_move.h"
#include "dev/mlx5/m5_sq.h"
#include "dev/mlx5/m5_table.h"
#include "util/bits.h"

#define M5_USER_NONE   0u
#define M5_USER_WORD   1u
#define M5_USER_ACK    2u
#define M5_USER_ACCESS 3u /* in the two lowest bits; the rest is the number of accesses */

static inline uint64_t m5_user_access(uint32_t cnt)
{
	return (uint64_t)cnt << 2 | M5_USER_ACCESS;
}

static inline bool m5_user_is_access(uint64_t user)
{
	return (user & M5_USER_ACCESS) == M5_USER_ACCESS;
}

static inline uint32_t m5_user_access_cnt(uint64_t user)
{
	return (uint32_t)(user >> 2);
}

struct m5_link {
	struct ib_link ib;

	/* Used by writes. */
	struct m5_sq sq;
	struct m5_sparse users;
	/* Run of simple accesses that is being built (m5_access.h). Neither: none */
	union {
		struct {
			uint16_t left; /* blocks that it may still take */
			bool due;      /* the last WQE must report */
		};
		uint32_t is_open;
	} run;
	bool access_quiet;    /* the last simple access does not report */
	uint16_t access_last; /* first block of the last simple access */

	/* Rarely used. */
	struct m5_dev *dev;
	struct m5_scq *scq;
	uint32_t sq_blocks;
	uint64_t max_piece;  /* bytes that one WQE of a get or put moves */
	uint32_t down_polls; /* polls for which its DEV_EV_DOWN has waited for earlier arrivals */
	bool was_attached;
	bool is_known; /* the peer may have the description */
	bool is_rc;    /* counted in m5_dev.rc_cnt */

	/* Over DC (m5_dlink.h). */
	struct {
		bool is_on;       /* writes go over DC */
		bool is_wanted;   /* goes over DC if the peer can */
		bool has_entered; /* counted in the pool */
		uint16_t inline_max;
		uint32_t id;       /* in the immediates that arrive; 0: not reachable by DC */
		uint32_t peer_imm; /* upper half of the immediates that leave */
		struct m5_dlink pool;
		struct m5_av av; /* complete */
	} dc;

	struct m5_move move;
};

static_assert(offsetof(struct m5_link, ib) == 0, "devices embed dev_link first");

/** Commits a WQE that ended with `flags` and stores its user word. */
static inline void m5_link_commit(struct m5_link *link, uint16_t bb, uint8_t flags, uint64_t user)
{
	if (flags & M5_CTRL_SIGNAL)
		m5_sparse_put(&link->users, link->sq.pi, user);
	m5_sq_commit(&link->sq, bb, flags);
}

/**
 * Ends a run of simple accesses before another WQE is built or the doorbell is rung. Its last WQE
 * reports if one of the run must.
 */
void m5_link_end_run(struct m5_link *link);

/** Rings for all that is built. */
static inline void m5_link_ring(struct m5_link *link)
{
	if (UTIL_UNLIKELY(link->run.is_open))
		m5_link_end_run(link);
	m5_sq_ring(&link->sq);
}

/** Posts a write if writes go over DC (m5_dlink.h). Returns 0 or -FI_EAGAIN. */
int m5_dlink_write(struct m5_link *link, uint64_t off, uint32_t len, uint32_t imm, bool ack);

/** Implements dev_link_ops.acks_are_free: where links share initiators, each WQE reports. */
bool m5_dlink_acks_are_free(const struct dev_link *base);

UTIL_INLINE int m5_link_write(struct dev_link *base, uint64_t off, uint32_t len, uint32_t imm,
			      bool ack)
{
	struct m5_link *link = (struct m5_link *)base;
	bool is_inline = len <= M5_INLINE_MAX;
	uint16_t bb = is_inline ? (uint16_t)M5_WQE_BLOCKS(36 + len) : 1;
	struct m5_wqe wqe;
	uint8_t flags;

	if (UTIL_UNLIKELY(link->ib.dead || !m5_sq_has_room(&link->sq, bb)))
		return m5_dlink_write(link, off, len, imm, ack);
	if (UTIL_UNLIKELY(link->run.is_open))
		m5_link_end_run(link);
	m5_wqe_begin(&wqe, m5_sq_reserve(&link->sq, bb));
	m5_wqe_raddr(&wqe, link->ib.peer_ring + off, link->ib.peer_rkey);
	if (is_inline)
		m5_wqe_inline(&wqe, base->tx_base + off, len);
	else
		m5_wqe_data(&wqe, (uintptr_t)base->tx_base + off, len, link->ib.tx_lkey);
	flags = ack ? M5_CTRL_SIGNAL : m5_sq_signal(&link->sq, bb);
	m5_wqe_end(&wqe, link->sq.pi, M5_OP_WRITE_IMM, link->sq.qpn, flags, imm);
	m5_link_commit(link, bb, flags, ack ? M5_USER_ACK : M5_USER_NONE);
	m5_sq_ring_built(&link->sq);
	return 0;
}

static inline int m5_link_write_imm(struct dev_link *base, uint64_t off, uint32_t len, uint32_t imm)
{
	return m5_link_write(base, off, len, imm, false);
}

static inline int m5_link_write_imm_ack(struct dev_link *base, uint64_t off, uint32_t len,
					uint32_t imm)
{
	return m5_link_write(base, off, len, imm, true);
}

/** Returns where a READ puts the peer's consumer word. */
static inline const uint64_t *m5_link_landing(const struct m5_link *link)
{
	return link->ib.tx.addr;
}

/**
 * Returns where the READ behind a put puts the consumer word (DEV_GET_PLACED). The value is not
 * used.
 */
static inline const uint64_t *m5_link_sink(const struct m5_link *link)
{
	return m5_link_landing(link) + 1;
}

/* Other operations of dev_link_ops. */
int m5_link_read_consumer(struct dev_link *base, uint64_t *value);
int m5_link_get(struct dev_link *base, struct dev_get *get);
int m5_link_put(struct dev_link *base, struct dev_get *get);
void m5_link_kick(struct dev_link *base);
int m5_link_settle(struct dev_link *base);
/** Returns true and *cnt if simple accesses are known to have ended before the block `counter`. */
bool m5_link_accessed(const struct m5_link *link, uint16_t counter, uint32_t *cnt);
int m5_link_describe(struct dev_link *base, struct dev_desc *desc);
int m5_link_connect(struct dev_link *base, const struct dev_desc *peer);
int m5_link_attach(struct dev_link *base);
void m5_link_detach(struct dev_link *base);
void m5_link_close(struct dev_link *base);

/* Implement dev_ops.link_create and link_beside. */
int m5_link_create(struct dev *dev, uint64_t rx_len, struct dev_link **link);
int m5_link_beside(struct dev *dev, struct dev_link *first, struct dev_link **link);

/** Ends an attached link that no completion will end: poll returns DEV_EV_DOWN with err. */
void m5_link_fail(struct m5_link *link, int err);

/** Enters the link's numbers in m5_dev.qpns. Returns 0 or -FI_ENOMEM. */
int m5_link_list(struct m5_link *link);
/** Removes them: no arrival is the link's any more. */
void m5_link_unlist(struct m5_link *link);

/** Makes a queue pair for the link, in INIT. Called under the lock. Returns 0 or an error. */
int m5_link_make_qp(struct m5_link *link);
/** Returns everything that m5_link_make_qp() has taken. Called under the lock. */
void m5_link_drop_qp(struct m5_link *link);

/** Moves the QP, if there is one, to RESET: the device does nothing for it any more. */
void m5_link_stop(struct m5_link *link);
/** Ends all that the device does for the link. */
void m5_link_halt(struct m5_link *link);
void m5_link_destroy(struct m5_link *link);

#endif
