/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Bench for the device model's NIC: a fabric of one process in private memory, with the kernel
 * border replaced by functions that record their calls. Plain code of the bench writes work
 * requests and reads completions, at offsets of the programmer's manual.
 */
#ifndef UNIT_MODEL_NIC_BENCH_H
#define UNIT_MODEL_NIC_BENCH_H

#include "model/fabric/mdl_nic.h"

#define BENCH_BUF 16384

struct bench {
	uint8_t *buf; /* BENCH_BUF bytes, registered with all access rights */
	uint32_t key; /* key of that region */
	uint32_t cq_events, async_cnt, async_last, wakes;
	uint64_t next; /* address of the next queue */
};

extern struct bench bench;

/* Work request as a driver sees it. */
struct bench_wr {
	uint8_t opcode;
	uint8_t flags; /* byte 11 of the control segment */
	uint32_t imm;
	uint64_t raddr;
	uint32_t rkey;
	uint64_t swap_add, compare;
	const void *addr; /* null: no data */
	uint32_t len;
	uint32_t lkey;
	bool inl;
	/* UD, DC */
	uint32_t dqpn, qkey;
	uint16_t rlid;
	bool grh;
	uint64_t dc_key;
	uint16_t stream;
	/* list operation: NIC_TM_*, flags, index, count of unexpected messages, tag and mask */
	uint8_t tm_op, tm_flags;
	uint16_t tm_index, tm_cnt;
	uint64_t tag, mask;
};

void bench_open(void);
struct mdl_cq *bench_cq(uint32_t cnt, uint32_t size);
struct mdl_srq *bench_srq(uint32_t cnt);
/* Creates an SRQ of tag matching with a list of TAGS entries, a power of two. */
struct mdl_srq *bench_xrq(struct mdl_cq *cq, uint32_t cnt, uint32_t tags);
/*
 * Creates a QP in RTS with `depth` send blocks and as many receive WQEs of one segment (none if srq
 * is given).
 */
struct mdl_qp *bench_qp(uint32_t type, struct mdl_cq *cq, struct mdl_srq *srq, uint32_t depth);
/*
 * Create a DC initiator in RTS, with streams if log_errored is not negative, and a target in RTR
 * that has no queue of its own.
 */
struct mdl_qp *bench_dci(struct mdl_cq *cq, uint32_t depth, uint8_t log_streams, int log_errored);
struct mdl_qp *bench_dct(struct mdl_cq *cq, struct mdl_srq *srq, uint64_t key);
void bench_connect(struct mdl_qp *a, struct mdl_qp *b);
uint32_t bench_mr(void *addr, uint64_t len, uint32_t access);

/* Write a WQE behind the last one and return its blocks; write the record; ring the doorbell. */
uint32_t bench_put(struct mdl_qp *qp, const struct bench_wr *wr);
void bench_record(struct mdl_qp *qp);
void bench_ring(struct mdl_qp *qp);
void bench_ring_blueflame(struct mdl_qp *qp, uint32_t blocks);
void bench_post(struct mdl_qp *qp, const struct bench_wr *wr);
void bench_recv(struct mdl_qp *qp, const void *addr, uint32_t len, uint32_t lkey);
void bench_srq_recv(struct mdl_srq *srq, uint32_t index, uint32_t next, const void *addr,
		    uint32_t len);
void bench_arm(struct mdl_cq *cq, uint32_t ci, bool solicited);

/* Returns the next CQE's 64 bytes (in its slot), or null. Advances the consumer record. */
const uint8_t *bench_poll(struct mdl_cq *cq);
static inline uint8_t bench_op(const uint8_t *cqe)
{
	return cqe ? cqe[63] >> 4 : 0xff;
}
uint64_t bench_get(const struct mdl_qp *qp, enum mdl_count_id id);

#endif
