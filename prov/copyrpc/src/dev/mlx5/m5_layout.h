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
	M5_CQE_REQ_ERR = 13,
	M5_CQE_RESP_ERR = 14,
	M5_CQE_INVALID = 15,
};

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
	uint8_t rsvd40[4];
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

static_assert(sizeof(struct m5_ctrl) == 16, "manual");
static_assert(sizeof(struct m5_raddr) == 16, "manual");
static_assert(sizeof(struct m5_data) == 16, "manual");
static_assert(sizeof(struct m5_av) == 48, "manual");
static_assert(sizeof(struct m5_srq_next) == 16, "manual");
static_assert(sizeof(struct m5_cqe) == 64, "manual");
static_assert(sizeof(struct m5_err_cqe) == 64, "manual");

#endif
