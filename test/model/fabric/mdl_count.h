/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Counters of the model and their names.
 *
 * Every QP has a row of these counters in the segment. Every process has one too: the sum over its
 * QPs and the figures that belong to no QP. The process that executes the work (the requester)
 * writes a row with relaxed atomics, because the thread of another QP may write it at the same
 * time. Figures of a requester and of the responder that it acts for go to the QP they belong to.
 *
 * In trap mode the figures are exact and repeat from run to run. In poll mode doorbells that hit
 * one register before the next scan count as one.
 *
 * On a real adapter the figures correspond to bytes and transactions on PCIe and packets on the
 * wire.
 */
#ifndef MDL_COUNT_H
#define MDL_COUNT_H

#include <stdint.h>

/* X(enumerator, name in the output) */
#define MDL_COUNTERS(X)                                                                            \
	X(DOORBELLS, "doorbells")         /* writes of 8 bytes or more to a doorbell register */   \
	X(BF_WRITES, "bf_writes")         /* doorbells that carried a WQE */                       \
	X(BF_BYTES, "bf_bytes")           /* bytes of WQEs that doorbells carried */               \
	X(DBREC_SEND, "dbrec_send")       /* send doorbell records found with a new value */       \
	X(WQES, "wqes")                   /* send WQEs executed, NOPs included */                  \
	X(WQE_BLOCKS, "wqe_blocks")       /* 64-byte blocks of executed send WQEs */               \
	X(WQE_FETCHES, "wqe_fetches")     /* reads of send WQEs from memory, in 64-byte units */   \
	X(NOPS, "nops")                   /* executed NOPs */                                      \
	X(INLINE_BYTES, "inline_bytes")   /* payload carried inside WQEs */                        \
	X(PAYLOAD_READS, "payload_reads") /* gather entries read from memory */                    \
	X(PAYLOAD_READ_BYTES, "payload_read_bytes")                                                \
	X(PAYLOAD_WRITES, "payload_writes") /* scatter entries or RDMA targets written */          \
	X(PAYLOAD_WRITE_BYTES, "payload_write_bytes")                                              \
	X(CQES_REQ, "cqes_req")       /* completions of send queues */                             \
	X(CQES_RESP, "cqes_resp")     /* completions of receive queues */                          \
	X(CQES_ERR, "cqes_err")       /* completions with an error, of either queue */             \
	X(CQES_MINI, "cqes_mini")     /* completions inside compressed blocks, of either queue */  \
	X(RECV_WQES, "recv_wqes")     /* receive WQEs fetched, from an RQ or an SRQ */             \
	X(CQ_ARMS, "cq_arms")         /* writes to the arm register */                             \
	X(CQ_EVENTS, "cq_events")     /* completion events raised */                               \
	X(PACKETS_OUT, "packets_out") /* packets sent, by the path MTU; without ACKs */            \
	X(PACKETS_IN, "packets_in")                                                                \
	X(WIRE_BYTES_OUT, "wire_bytes_out") /* bytes of packets with headers and ICRC */           \
	X(WIRE_BYTES_IN, "wire_bytes_in")                                                          \
	X(ACKS_OUT, "acks_out")       /* acknowledge packets of responders */                      \
	X(RNR_NAKS, "rnr_naks")       /* messages that found no receive WQE at the responder */    \
	X(DROPPED, "dropped")         /* UD or UC packets that no QP received */                   \
	X(DC_CONNECTS, "dc_connects") /* connect packets of DCIs, among packets_out */             \
	X(DC_DISCONNECTS, "dc_disconnects")       /* disconnect packets of DCIs, likewise */       \
	X(DC_KEY_VIOLATIONS, "dc_key_violations") /* messages with a wrong key at a DCT */         \
	X(TM_LIST_OPS, "tm_list_ops")             /* list operations of TM SRQs, sync included */  \
	X(TM_MATCHES, "tm_matches")               /* messages that the device matched */           \
	X(TM_UNEXPECTED, "tm_unexpected")         /* tagged messages that matched no active tag */ \
	X(TM_RENDEZVOUS, "tm_rendezvous")         /* rendezvous that the device finished */        \
	X(FAULTS, "faults")                       /* injected by a fault plan */                   \
	X(TRAPS, "traps")                         /* signals taken in trap mode */                 \
	X(SCANS, "scans")                         /* rounds of the polling thread that found work */

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

/* Returns the name of a counter; never null for an id below MDL_CNT_MAX. */
const char *mdl_count_name(enum mdl_count_id id);

/* Adds each counter of more to row. */
void mdl_count_sum(struct mdl_count *row, const struct mdl_count *more);

#endif /* MDL_COUNT_H */
