/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the model counts, and under which name.
 *
 * Every QP has a row of these counters in the segment and every process has one, the sum over its
 * QPs and what belongs to no QP. A row is written by the process that executes the work (the
 * requester), with relaxed atomics, because the thread of another QP may run beside it; the figures
 * of a requester and of the responder that it acts for go to the QP they belong to.
 *
 * In trap and kick mode the figures are exact and repeat from run to run. In poll mode they are
 * not: doorbells that hit one register before the next scan are seen as one.
 *
 * What the figures mean on a real adapter: bytes and transactions on PCIe and packets on the wire.
 */
#ifndef MDL_COUNT_H
#define MDL_COUNT_H

#include <stdint.h>

/* X(enumerator, name that users see) */
#define MDL_COUNTERS(X)                                                                            \
	X(DOORBELLS, "doorbells")         /* 8 bytes or more written to a doorbell register */     \
	X(BF_WRITES, "bf_writes")         /* of these, those that carried a WQE along */           \
	X(BF_BYTES, "bf_bytes")           /* and their bytes */                                    \
	X(DBREC_SEND, "dbrec_send")       /* send doorbell record seen with a new value */         \
	X(WQES, "wqes")                   /* send WQEs executed, NOPs included */                  \
	X(WQE_BLOCKS, "wqe_blocks")       /* their 64-byte blocks */                               \
	X(WQE_FETCHES, "wqe_fetches")     /* reads of send WQEs from memory, in 64-byte units */   \
	X(NOPS, "nops")                   /* WQEs that were NOPs */                                \
	X(INLINE_BYTES, "inline_bytes")   /* payload carried inside WQEs */                        \
	X(PAYLOAD_READS, "payload_reads") /* gather entries read from memory */                    \
	X(PAYLOAD_READ_BYTES, "payload_read_bytes")                                                \
	X(PAYLOAD_WRITES, "payload_writes") /* scatter entries or RDMA targets written */          \
	X(PAYLOAD_WRITE_BYTES, "payload_write_bytes")                                              \
	X(CQES_REQ, "cqes_req")       /* completions of send queues */                             \
	X(CQES_RESP, "cqes_resp")     /* completions of receive queues */                          \
	X(CQES_ERR, "cqes_err")       /* of both, those with an error */                           \
	X(CQES_MINI, "cqes_mini")     /* of both, those inside compressed blocks */                \
	X(RECV_WQES, "recv_wqes")     /* receive WQEs fetched, from an RQ or an SRQ */             \
	X(CQ_ARMS, "cq_arms")         /* writes to the arm register */                             \
	X(CQ_EVENTS, "cq_events")     /* completion events raised */                               \
	X(PACKETS_OUT, "packets_out") /* packets sent, by the path MTU; no ACKs */                 \
	X(PACKETS_IN, "packets_in")                                                                \
	X(WIRE_BYTES_OUT, "wire_bytes_out") /* with headers and ICRC */                            \
	X(WIRE_BYTES_IN, "wire_bytes_in")                                                          \
	X(ACKS_OUT, "acks_out") /* acknowledge packets of responders */                            \
	X(RNR_NAKS, "rnr_naks") /* times a responder had no receive WQE */                         \
	X(DROPPED, "dropped")   /* UD or UC packets that nobody took */                            \
	X(FAULTS, "faults")     /* injected by a fault plan */                                     \
	X(TRAPS, "traps")       /* signals taken in trap mode */                                   \
	X(KICKS, "kicks")       /* stores that were calls, in kick mode */                         \
	X(SCANS, "scans")       /* rounds of the polling thread that found work */

enum mdl_count_id {
#define MDL_COUNT_ENUM(id, name) MDL_CNT_##id,
	MDL_COUNTERS(MDL_COUNT_ENUM)
#undef MDL_COUNT_ENUM
		MDL_CNT_MAX
};

struct mdl_count {
	uint64_t value[MDL_CNT_MAX];
};

static inline void mdl_count_add(struct mdl_count *row, enum mdl_count_id id, uint64_t n)
{
	__atomic_fetch_add(&row->value[id], n, __ATOMIC_RELAXED);
}

static inline uint64_t mdl_count_get(const struct mdl_count *row, enum mdl_count_id id)
{
	return __atomic_load_n(&row->value[id], __ATOMIC_RELAXED);
}

/* The name of a counter; never null for an id below MDL_CNT_MAX. */
const char *mdl_count_name(enum mdl_count_id id);

/* row += more, counter by counter. */
void mdl_count_sum(struct mdl_count *row, const struct mdl_count *more);

#endif /* MDL_COUNT_H */
