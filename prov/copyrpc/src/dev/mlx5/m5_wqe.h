/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Builder of work requests: step one of three. Called by m5_link.h, m5_bulk.c and m5_ud.h.
 *
 *   struct m5_wqe w;
 *   m5_wqe_begin(&w, m5_sq_reserve(sq, bb));
 *   m5_wqe_raddr(&w, addr, rkey);
 *   m5_wqe_inline(&w, src, len);              and/or m5_wqe_data(&w, addr, len, lkey)
 *   bb = m5_wqe_end(&w, sq->pi, M5_OP_WRITE_IMM, qpn, flags, imm);
 *
 * Step two stores the user word and commits, step three rings (m5_sq.h). The room is contiguous: a
 * WQE never crosses the queue's end.
 *
 * A BlueFlame register of 256 bytes takes a WRITE_IMM of up to M5_INLINE_MAX bytes inline.
 * m5_wqe_data() adds no entry for 0 bytes: an empty gather entry beside inline data causes sporadic
 * local length errors.
 *
 * Tests: test/unit/dev/mlx5/test_m5_wqe.c (golden bytes).
 */
#ifndef DEV_MLX5_M5_WQE_H
#define DEV_MLX5_M5_WQE_H

#include <endian.h>
#include <string.h>

#include "dev/mlx5/m5_layout.h"
#include "util/copy.h"

#define M5_WQE_BLOCKS(bytes) (((bytes) + M5_BB - 1) / M5_BB)

#define M5_INLINE_MAX 220u /* ctrl + raddr + count + 220 = 256 */

struct m5_wqe {
	struct m5_ctrl *ctrl;
	uint8_t *end;
};

static inline void m5_wqe_begin(struct m5_wqe *wqe, void *at)
{
	wqe->ctrl = at;
	wqe->end = (uint8_t *)at + sizeof(struct m5_ctrl);
}

/** Adds the address in the peer's memory. */
static inline void m5_wqe_raddr(struct m5_wqe *wqe, uint64_t addr, uint32_t rkey)
{
	struct m5_raddr *seg = (void *)wqe->end;

	seg->addr = htobe64(addr);
	seg->rkey = htobe32(rkey);
	seg->rsvd = 0;
	wqe->end += sizeof(*seg);
}

/** Adds a range of local registered memory, unless len is 0. */
static inline void m5_wqe_data(struct m5_wqe *wqe, uint64_t addr, uint32_t len, uint32_t lkey)
{
	struct m5_data *seg = (void *)wqe->end;

	if (!len)
		return;
	seg->len = htobe32(len);
	seg->lkey = htobe32(lkey);
	seg->addr = htobe64(addr);
	wqe->end += sizeof(*seg);
}

/**
 * Adds the bytes of two pieces, one behind the other, padded with zeros to a whole segment unit.
 * Either may be empty; no bytes add no segment.
 */
static inline void m5_wqe_inline2(struct m5_wqe *wqe, const void *first, uint32_t first_len,
				  const void *second, uint32_t second_len)
{
	uint32_t len = first_len + second_len;
	uint32_t total = ((uint32_t)sizeof(uint32_t) + len + M5_DS - 1) & ~(M5_DS - 1);
	uint32_t count = htobe32(len | M5_INLINE);

	if (!len)
		return;
	memset(wqe->end + total - M5_DS, 0, M5_DS);
	memcpy(wqe->end, &count, sizeof(count));
	util_copy(wqe->end + sizeof(count), first, first_len);
	util_copy(wqe->end + sizeof(count) + first_len, second, second_len);
	wqe->end += total;
}

/** Adds the bytes of one piece. */
static inline void m5_wqe_inline(struct m5_wqe *wqe, const void *src, uint32_t len)
{
	m5_wqe_inline2(wqe, src, len, src, 0);
}

/** Adds a datagram's address: 48 bytes if it has M5_AV_EXT, otherwise its first 16. */
static inline void m5_wqe_av(struct m5_wqe *wqe, const struct m5_av *av)
{
	memcpy(wqe->end, av, M5_AV_SHORT);
	wqe->end += M5_AV_SHORT;
	if (!(av->dqp_dct & htobe32(M5_AV_EXT)))
		return;
	memcpy(wqe->end, (const uint8_t *)av + M5_AV_SHORT, sizeof(*av) - M5_AV_SHORT);
	wqe->end += sizeof(*av) - M5_AV_SHORT;
}

/**
 * Fills the control segment, last. pi: counter of the WQE's first block. imm: value that the peer
 * reads. Returns the number of blocks of the WQE.
 */
static inline uint16_t m5_wqe_end(const struct m5_wqe *wqe, uint16_t pi, enum m5_opcode opcode,
				  uint32_t qpn, uint8_t flags, uint32_t imm)
{
	uint32_t len = (uint32_t)(wqe->end - (uint8_t *)wqe->ctrl);
	struct m5_ctrl *ctrl = wqe->ctrl;

	ctrl->opmod_idx_opcode = htobe32((uint32_t)pi << 8 | opcode);
	ctrl->qpn_ds = htobe32(qpn << 8 | len / M5_DS);
	ctrl->signature = 0;
	ctrl->stream[0] = 0;
	ctrl->stream[1] = 0;
	ctrl->fm_ce_se = flags;
	ctrl->imm = htobe32(imm);
	return (uint16_t)M5_WQE_BLOCKS(len);
}

/** Returns the blocks of a queued WQE, read from its control segment. */
static inline uint16_t m5_wqe_blocks(const struct m5_ctrl *ctrl)
{
	return (uint16_t)M5_WQE_BLOCKS((be32toh(ctrl->qpn_ds) & 0x3f) * M5_DS);
}

/** Builds a NOP of `bb` blocks, at most M5_WQE_MAX_BB. */
static inline void m5_wqe_nop(void *at, uint16_t bb, uint16_t pi, uint32_t qpn)
{
	struct m5_wqe wqe;

	m5_wqe_begin(&wqe, at);
	wqe.end = (uint8_t *)at + (size_t)bb * M5_BB;
	m5_wqe_end(&wqe, pi, M5_OP_NOP, qpn, 0, 0);
}

#endif
