/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * WQEs of a send queue.
 *
 * A send queue is a ring of 64-byte blocks; a WQE is DS segments of 16 bytes, in as many blocks as
 * they need, and may span the ring's end. Its first segment is the control segment:
 *
 *	byte	0	opcode modifier << 24 | index of the first block << 8 | opcode
 *		4	QPN << 8 | DS (6 bits)
 *		8	signature
 *		9	stream of a DCI, 2 bytes
 *		11	fence (7..5), completion: 0 on error only, 2 always (3..2), solicited (1)
 *		12	immediate, as software wrote it
 *
 * then, by transport and opcode: address vector; remote address (8) and rkey (4), 4 unused; swap or
 * add (8) and compare (8); then data segments, each either length, lkey and address (4, 4, 8), or
 * 1 << 31 | length and that many bytes, filled up to 16.
 *
 * A WQE of tag matching has 32 bytes of its own instead: operation << 4 (1), flags (1), index (2),
 * at byte 6 the unexpected messages that software has handled (2), at 16 tag and mask (8 each); an
 * APPEND has a data segment behind them, of length 0 and with lkey 0x100 if its buffer is empty.
 *
 * nic_wqe_copy() takes the bytes out of the ring, nic_wqe_decode() reads them: pure functions of
 * bytes. An error is returned as a sentence for the author of the driver.
 */
#ifndef NIC_WQE_H
#define NIC_WQE_H

#include <stdbool.h>
#include <stdint.h>

#include "model/nic/nic_av.h"

enum nic_opcode {
	NIC_OP_NOP = 0x00,
	NIC_OP_SEND_INVAL = 0x01,
	NIC_OP_WRITE = 0x08,
	NIC_OP_WRITE_IMM = 0x09,
	NIC_OP_SEND = 0x0a,
	NIC_OP_SEND_IMM = 0x0b,
	NIC_OP_READ = 0x10,
	NIC_OP_CAS = 0x11,
	NIC_OP_FETCH_ADD = 0x12,
	NIC_OP_TAG_MATCHING = 0x28,
};

enum nic_tm_op {
	NIC_TM_NOP = 0,
	NIC_TM_APPEND = 1,
	NIC_TM_REMOVE = 2,
};

enum {
	NIC_TM_WANTS_CQE = 0x80,
	NIC_TM_HAS_COUNT = 0x40,
};

/* List operation. Tag and mask are compared as they lie in memory. */
struct nic_tm_seg {
	uint8_t op; /* enum nic_tm_op */
	uint8_t flags;
	uint16_t index;
	uint16_t sw_cnt;
	uint64_t tag, mask;
};

enum nic_transport {
	NIC_RC,
	NIC_UC,
	NIC_UD,
	NIC_DC,
};

enum nic_fence {
	NIC_FENCE_NONE = 0,
	NIC_FENCE_SMALL = 1, /* waits for work that changes regions here, not for READs */
	NIC_FENCE_READS = 2, /* waits for READs and atomic operations */
	NIC_FENCE_STRONG = 3,
	NIC_FENCE_FULL = 4, /* both of the first two, as verbs' fence flag requires */
};

enum {
	NIC_WQE_BLOCK = 64,
	NIC_WQE_SEG = 16,
	NIC_WQE_MAX_DS = 63,
	NIC_WQE_MAX_BYTES = NIC_WQE_MAX_DS * NIC_WQE_SEG,
};

/* Piece of the message. An inline piece points into the decoded bytes. */
struct nic_piece {
	const uint8_t *inl;
	uint64_t addr;
	uint32_t len;
	uint32_t lkey;
};

struct nic_wqe {
	uint16_t index;
	uint8_t opcode;
	uint8_t opmod;
	uint8_t ds;
	uint8_t blocks;
	uint8_t fence;
	bool signalled;
	bool solicited;
	uint16_t stream; /* means something to a DCI with streams only */
	uint32_t qpn;
	uint32_t imm; /* most significant byte first, as in the WQE */
	uint32_t rkey;
	uint64_t raddr;
	uint64_t swap_add;
	uint64_t compare;
	uint64_t len; /* bytes of all pieces */
	uint32_t inline_len;
	uint32_t piece_cnt;
	struct nic_av av;
	struct nic_tm_seg tm;
	struct nic_piece piece[NIC_WQE_MAX_DS];
};

/*
 * Copies the WQE that starts at block INDEX of RING (BLOCK_CNT blocks, a power of two) to OUT,
 * which has room for NIC_WQE_MAX_BYTES + 48. Returns its DS, which may be 0.
 */
uint8_t nic_wqe_copy(uint8_t *out, const uint8_t *ring, uint32_t block_cnt, uint16_t index);

/* Decodes the control segment only. */
void nic_wqe_ctrl(struct nic_wqe *wqe, const uint8_t *bytes);

/* Decodes the whole WQE. Returns NULL, or a sentence that describes the error. */
const char *nic_wqe_decode(struct nic_wqe *wqe, const uint8_t *bytes, enum nic_transport transport);

const char *nic_wqe_name(uint8_t opcode);

#endif
