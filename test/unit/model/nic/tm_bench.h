/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Bench for tag matching: a sender, a receiver with an XRQ, its command queue pair, and a driver
 * that keeps the names of entries.
 */
#ifndef UNIT_MODEL_TM_BENCH_H
#define UNIT_MODEL_TM_BENCH_H

#include "model/nic/nic_be.h"
#include "unit/model/nic/nic_bench.h"
#include "model/nic/nic_cqe.h"
#include "model/nic/nic_tm_recv.h"
#include "model/nic/nic_wqe.h"

#include <criterion/criterion.h>
#include <string.h>

enum {
	TM_TAGS = 32,
	TM_WQES = 64,
	TM_WQE_BYTES = 128,
	TM_POSTED = 40,
	TM_SRQ_AT = 8192, /* in bench.buf: buffers of the XRQ, from here on */
	TM_TAG_AT = 4096, /* buffers of entries */
	TM_TAG_BYTES = 128,
};

static const uint64_t tm_all = ~0ull;

static struct tm_bench {
	struct mdl_cq *cq_s, *cq_r; /* of the sender, of the XRQ */
	struct mdl_srq *xrq;
	struct mdl_qp *s, *r, *cmd;
	uint32_t next; /* entry that the next APPEND fills */
} tm;

static inline void tm_receives(uint32_t from, uint32_t cnt)
{
	for (uint32_t i = from; i < from + cnt; i++)
		bench_srq_recv(tm.xrq, i % TM_WQES, (i + 1) % TM_WQES,
			       bench.buf + TM_SRQ_AT + i % TM_WQES * TM_WQE_BYTES, TM_WQE_BYTES);
}

static inline void tm_setup_size(uint32_t cqe_size)
{
	bench_open();
	tm = (struct tm_bench){ .cq_s = bench_cq(64, 64), .cq_r = bench_cq(64, cqe_size) };
	tm.xrq = bench_xrq(tm.cq_r, TM_WQES, TM_TAGS);
	tm.s = bench_qp(MDL_QPT_RC, tm.cq_s, NULL, 16);
	tm.r = bench_qp(MDL_QPT_RC, tm.cq_r, tm.xrq, 16);
	tm.cmd = bench_qp(MDL_QPT_RC, tm.cq_r, tm.xrq, 16);
	bench_connect(tm.s, tm.r);
	tm_receives(0, TM_POSTED);
	for (int i = 0; i < TM_TAG_AT; i++)
		bench.buf[i] = (uint8_t)(i * 7);
}

static inline void tm_setup(void)
{
	tm_setup_size(64);
}

/* Posts a list operation with the count of unexpected messages that software has handled. */
static inline void tm_op(uint8_t op, uint8_t flags, uint16_t index, uint16_t cnt)
{
	bench_post(tm.cmd, &(struct bench_wr){ .opcode = NIC_OP_TAG_MATCHING,
					       .tm_op = op,
					       .tm_flags = flags | NIC_TM_HAS_COUNT,
					       .tm_index = index,
					       .tm_cnt = cnt });
}

/* Appends an entry and names `next` for the one after it. Returns the entry. */
static inline uint32_t tm_append_next(uint64_t tag, uint64_t mask, uint32_t len, uint16_t cnt,
				      uint32_t next)
{
	uint32_t entry = tm.next;

	bench_post(tm.cmd, &(struct bench_wr){ .opcode = NIC_OP_TAG_MATCHING,
					       .tm_op = NIC_TM_APPEND,
					       .tm_flags = NIC_TM_WANTS_CQE | NIC_TM_HAS_COUNT,
					       .tm_index = (uint16_t)next,
					       .tm_cnt = cnt,
					       .tag = tag,
					       .mask = mask,
					       .addr = bench.buf + TM_TAG_AT + entry * TM_TAG_BYTES,
					       .len = len });
	tm.next = next;
	return entry;
}

static inline const uint8_t *tm_poll(void)
{
	return bench_poll(tm.cq_r);
}

/* Appends an entry of TM_TAG_BYTES in turn and reads its completion. */
static inline uint32_t tm_append(uint64_t tag, uint64_t mask, uint16_t cnt)
{
	uint32_t entry = tm_append_next(tag, mask, TM_TAG_BYTES, cnt, (tm.next + 1) % TM_TAGS);

	cr_assert_eq(tm_poll()[41], NIC_APP_APPEND);
	return entry;
}

/* Sends LEN bytes that begin with a header. */
static inline void tm_send_op(uint8_t opcode, uint8_t op, uint64_t tag, uint32_t len)
{
	bench.buf[0] = op;
	memcpy(bench.buf + 8, &tag, 8);
	bench_post(tm.s, &(struct bench_wr){ .opcode = opcode,
					     .flags = 8,
					     .imm = 0x12345678,
					     .addr = len ? bench.buf : NULL,
					     .len = len });
}

static inline void tm_send(uint8_t op, uint64_t tag, uint32_t len)
{
	tm_send_op(NIC_OP_SEND, op, tag, len);
}

/* Sends a request for LEN bytes at the start of the buffer, 32 bytes of headers in all. */
static inline void tm_request(uint64_t tag, uint32_t len)
{
	nic_be64_put(bench.buf + 16, (uintptr_t)bench.buf);
	nic_be32_put(bench.buf + 24, bench.key);
	nic_be32_put(bench.buf + 28, len);
	tm_send(NIC_TMH_RNDV, tag, 32);
}

/* Checks that the next completion of the XRQ, or another one, is of that kind. */
static inline void tm_expect(const uint8_t *cqe, uint8_t op, uint8_t app_op)
{
	cr_assert_not_null(cqe);
	cr_expect_eq(bench_op(cqe), op, "opcode %u", bench_op(cqe));
	cr_expect_eq(cqe[40], 1);
	cr_expect_eq(cqe[41], app_op, "%u, not %u", cqe[41], app_op);
	cr_expect_eq(nic_be32_get(cqe + 32), tm.xrq->uidx);
}

#endif
