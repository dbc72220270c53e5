/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Structures that an mlx5 device reads and writes, all big endian. Filled and read by m5_wqe.h,
 * m5_cq.h, m5_srq.h.
 *
 * The layouts are those of the vendor's programmer's manual, as rdma-core, UCX and DPDK implement
 * them. Independent of rdma-core; test/unit/dev/mlx5/test_m5_layout.c compares every size and
 * offset with <infiniband/mlx5dv.h>.
 *
 *   WQE   ctrl | [av] | [raddr] | [inline...] | [data]     multiples of 16 bytes ("ds")
 *         ctrl | tag | [data]
 *   in the queue: blocks of 64 bytes ("bb"), counted by 16 bits
 */
#ifndef DEV_MLX5_M5_LAYOUT_H
#define DEV_MLX5_M5_LAYOUT_H

#include <assert.h>
#include <stdint.h>

#define M5_BB         64u    /* bytes of a send queue block */
#define M5_DS         16u    /* bytes of a segment unit */
#define M5_WQE_MAX_BB 4u     /* largest WQE of this driver: one BlueFlame register */
#define M5_SQ_MAX_BB  32768u /* half the 16-bit counter, so that distances are unambiguous */
#define M5_DBR_RECV   0u     /* index of the receive counter in a doorbell record */
#define M5_DBR_SEND   1u
#define M5_LKEY_NONE  0x100u
#define M5_INLINE     0x80000000u /* of a byte count: the bytes follow */
#define M5_QPN_MASK   0xffffffu

enum m5_opcode {
	M5_OP_NOP = 0x00,
	M5_OP_WRITE = 0x08,
	M5_OP_WRITE_IMM = 0x09,
	M5_OP_SEND = 0x0a,
	M5_OP_SEND_IMM = 0x0b,
	M5_OP_READ = 0x10,
	M5_OP_TAG = 0x28, /* operation on a list of tags */
};

/** fm_ce_se of a control segment. */
enum m5_ctrl_flag {
	M5_CTRL_SIGNAL = 0x08, /* request a CQE */
	M5_CTRL_FENCE = 0x80,
};

struct m5_ctrl {
	uint32_t opmod_idx_opcode; /* 8 | 16 | 8 */
	uint32_t qpn_ds;           /* 24 | 8 */
	uint8_t signature;
	uint8_t stream[2];
	uint8_t fm_ce_se;
	uint32_t imm;
};

struct m5_raddr {
	uint64_t addr;
	uint32_t rkey;
	uint32_t rsvd;
};

struct m5_data {
	uint32_t len; /* 31 bits */
	uint32_t lkey;
	uint64_t addr;
};

/** Address vector of a datagram. The last 32 bytes are used only if dqp_dct has M5_AV_EXT. */
struct m5_av {
	uint32_t qkey; /* bit 31: use the Q_Key of the queue pair */
	uint32_t rsvd;
	uint32_t dqp_dct;
	uint8_t stat_rate_sl;
	uint8_t fl_mlid;
	uint16_t rlid; /* RoCE: UDP source port */
	uint8_t rsvd16[4];
	uint8_t rmac[6];
	uint8_t tclass;
	uint8_t hop_limit;
	uint32_t grh_gid_fl;
	uint8_t rgid[16];
};

#define M5_AV_EXT   0x80000000u
#define M5_AV_GRH   0x40000000u /* in grh_gid_fl: there is a routing header */
#define M5_AV_SHORT 16u

enum m5_tag_op {
	M5_TAG_NOP = 0x00,
	M5_TAG_APPEND = 0x10,
	M5_TAG_REMOVE = 0x20,
};

enum m5_tag_flag {
	M5_TAG_SIGNAL = 0x80,  /* request a CQE */
	M5_TAG_HANDLED = 0x40, /* `handled` is valid */
};

/** Operation on a list of tags. Tags are compared as they lie in memory: (message & mask) == tag */
struct m5_tag {
	uint8_t op;
	uint8_t flags;
	uint16_t index; /* APPEND: entry of the next APPEND; REMOVE: entry to remove */
	uint8_t rsvd4[2];
	uint16_t handled; /* unexpected messages that software has handled, modulo 2^16 */
	uint8_t rsvd8[8];
	uint64_t tag;
	uint64_t mask;
};

enum m5_tmh_op {
	M5_TMH_NO_TAG = 0,
	M5_TMH_REQUEST = 1, /* of a rendezvous */
	M5_TMH_FIN = 2,     /* end of a rendezvous */
	M5_TMH_EAGER = 3,
};

/** First bytes of a message to a queue pair with tag matching. */
struct m5_tmh {
	uint8_t op; /* enum m5_tmh_op */
	uint8_t rsvd1[3];
	uint32_t ctx;
	uint64_t tag;
};

/** Second header of a request, which comes back in its FIN. */
struct m5_rvh {
	uint64_t addr;
	uint32_t rkey;
	uint32_t len;
};

/** Header of a shared receive queue's WQE. */
struct m5_srq_next {
	uint8_t rsvd0[2];
	uint16_t next;
	uint8_t signature;
	uint8_t rsvd5[11];
};

enum m5_cqe_opcode {
	M5_CQE_REQ = 0,
	M5_CQE_RESP_WRITE_IMM = 1,
	M5_CQE_RESP_SEND = 2,
	M5_CQE_RESP_SEND_IMM = 3,
	M5_CQE_NO_PACKET = 6, /* of a list of tags */
	M5_CQE_REQ_ERR = 13,
	M5_CQE_RESP_ERR = 14,
	M5_CQE_INVALID = 15,
};

/** Event that a CQE of a list of tags reports: m5_cqe.app_op. */
enum m5_app_op {
	M5_APP_CONSUMED = 0x1,   /* a match; its bytes are to come */
	M5_APP_EXPECTED = 0x2,   /* the bytes of a match are there */
	M5_APP_UNEXPECTED = 0x3, /* a tagged message that matches no entry */
	M5_APP_NO_TAG = 0x4,     /* a message without a tag, or FIN */
	M5_APP_APPEND = 0x5,     /* end of an operation, and so are the next two */
	M5_APP_REMOVE = 0x6,
	M5_APP_NOP = 0x7,
	M5_APP_CONSUMED_MSG = 0xa, /* a match, with its bytes */
	M5_APP_TOO_LONG = 0xb,     /* a match whose request is in the entry's buffer */
	M5_APP_CANCELED = 0xc,     /* the bytes of a match will not come */
};

#define M5_APP_TAG     1u          /* m5_cqe.app of such a CQE */
#define M5_APP_SUCCESS 0x80000000u /* of m5_tag_cqe.success */

/** Bits of m5_cqe.op_own; the upper four are the opcode. */
#define M5_CQE_OWNER     0x01u
#define M5_CQE_SCATTER32 0x04u /* the data is in this CQE's first half */
#define M5_CQE_SCATTER64 0x08u /* the data is in the 64 bytes in front of it */

/** A 64-byte CQE, or the second half of a 128-byte one. */
struct m5_cqe {
	uint8_t rsvd0[2];
	uint16_t wqe_id;
	uint8_t rsvd4[13];
	uint8_t ml_path;
	uint8_t rsvd18[4];
	uint16_t slid;
	uint32_t flags_rqpn; /* GRH 2 bits at 28, SL 4 at 24, source QP 24 */
	uint8_t rsvd28[4];
	uint32_t srqn_uidx;
	uint32_t imm;
	uint8_t app;
	uint8_t app_op;    /* enum m5_app_op, if app is M5_APP_TAG */
	uint16_t app_info; /* entry */
	uint32_t len;
	uint64_t timestamp;
	uint32_t sop_qpn; /* opcode of the WQE 8 | local QP number 24 */
	uint16_t wqe_counter;
	uint8_t signature;
	uint8_t op_own;
};

/** Error CQE: other fields in the same bytes. */
struct m5_err_cqe {
	uint8_t rsvd0[32];
	uint32_t srqn_uidx;
	uint8_t rsvd36[18];
	uint8_t vendor_syndrome;
	uint8_t syndrome;
	uint32_t sop_qpn;
	uint16_t wqe_counter;
	uint8_t signature;
	uint8_t op_own;
};

/** First bytes of a CQE that reports an operation on a list. That of a match begins with m5_tmh. */
struct m5_tag_cqe {
	uint32_t success;
	uint16_t unexpected; /* messages so far, modulo 2^16 */
	uint8_t rsvd6[10];
};

static_assert(sizeof(struct m5_ctrl) == 16, "manual");
static_assert(sizeof(struct m5_raddr) == 16, "manual");
static_assert(sizeof(struct m5_data) == 16, "manual");
static_assert(sizeof(struct m5_av) == 48, "manual");
static_assert(sizeof(struct m5_tag) == 32, "manual");
static_assert(sizeof(struct m5_tag_cqe) == 16, "manual");
static_assert(sizeof(struct m5_tmh) == 16, "manual");
static_assert(sizeof(struct m5_rvh) == 16, "manual");
static_assert(sizeof(struct m5_srq_next) == 16, "manual");
static_assert(sizeof(struct m5_cqe) == 64, "manual");
static_assert(sizeof(struct m5_err_cqe) == 64, "manual");

#endif
