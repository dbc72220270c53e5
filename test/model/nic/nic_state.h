/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * State of the NIC in the segment: the nic_private words of QPs, CQs and SRQs; and what all files
 * of the NIC use.
 *
 * The files, from the doorbell down. nic_uar.c implements mdl_nic.h, the others have a header each:
 *
 *	nic_uar.c	decode and check a write to a register
 *	nic_sq.c	run a send queue until it is empty, waits or breaks
 *	nic_ahead.c	gather payload that a fence would have delayed
 *	nic_stream.c	run the send queue of a DCI with streams
 *	nic_rc.c, nic_ud.c	execute one WQE
 *	nic_peer.c	find and lock the responder, break it
 *	nic_dc.c	find the target of a DCI's WQE, connect to it
 *	nic_tm.c	lists of tags: operations, matching, phases
 *	nic_tm_recv.c	receive a message of a QP with tag matching
 *	nic_rndv.c	finish a matched rendezvous: read its data, report the end
 *	nic_recv.c	take a receive WQE, fill it, complete it
 *	nic_mem.c	keys, bounds, copies
 *	nic_cq.c	write CQEs, raise events
 *	nic_qp.c	states, flushing, creation and destruction of a QP
 *	nic_own.c	objects of this process
 *	nic_service.c	work that waits for time
 *	nic_wire.c	packets and bytes
 *	nic_fault.c	injected faults
 *
 * All of it runs in the contexts that mdl_nic.h lists: no malloc, no stdio, little stack.
 */
#ifndef NIC_STATE_H
#define NIC_STATE_H

#include <assert.h>

#include "model/fabric/mdl_nic.h"
#include "model/fabric/mdl_table.h"
#include "model/nic/nic_rwqe.h"
#include "model/nic/nic_wqe.h"

/* Reasons for which a QP waits: bits of mdl_qp.nic_stalled. */
enum {
	NIC_WAIT_RNR = 1,     /* the responder had no receive WQE */
	NIC_WAIT_RETRY = 2,   /* no reply from the responder */
	NIC_WAIT_LATE = 4,    /* poll mode: a doorbell not processed yet */
	NIC_WAIT_FLUSH = 8,   /* in error: WQEs posted later still need flushing */
	NIC_WAIT_UD = 16,     /* a datagram is delayed */
	NIC_WAIT_STREAM = 32, /* streams of a DCI wait for their peers */
	NIC_WAIT_RNDV = 64,   /* a rendezvous is not finished */
	NIC_WAIT_SQ = NIC_WAIT_RNR | NIC_WAIT_RETRY | NIC_WAIT_LATE, /* reasons that stop the SQ */
};

/* Attempts of a WQE whose responder is not ready or silent. */
struct nic_attempts {
	uint64_t
		deadline_ns; /* time at which retries without a reply end; 0: not begun, or never */
	uint32_t rnr_left;   /* retries that remain; not counted if unlimited */
	uint32_t tried;      /* 1: begun, and its retries are counted down */
};

/* Connection of a DCI, or of one of its channels, to a target. */
struct nic_dc_conn {
	uint64_t key;
	uint32_t dctn;
	uint32_t port;
	uint32_t open;
};

/* mdl_qp.nic_private. Under sq_lock unless said otherwise. */
struct nic_qp_priv {
	uint64_t due_ns;        /* time of the next check of a stalled QP */
	uint64_t ud_due_ns;     /* time for NIC_WAIT_UD */
	uint64_t stream_due_ns; /* time for NIC_WAIT_STREAM */
	uint64_t rndv_due_ns;   /* time for NIC_WAIT_RNDV */
	uint16_t bf_first;      /* blocks that came with the last BlueFlame write */
	uint16_t bf_blocks;
	uint32_t touched_cq;  /* the peer's CQ written last */
	uint16_t retired;     /* end of the last WQE whose completion was written */
	uint16_t record_seen; /* for the check of records without doorbells */
	uint32_t record_seen_cnt;
	uint64_t record_seen_ns;
	uint64_t wqes;                /* WQEs executed since creation */
	struct nic_attempts attempts; /* of the WQE at nic_sq_ci */
	struct nic_dc_conn conn;      /* of a DCI without streams */
	/* Under rq_lock: the receive WQE that a requester has taken and not yet completed. */
	uint32_t taken; /* 1: a receive WQE is taken */
	uint32_t taken_srq;
	uint32_t taken_index;
	uint32_t completing; /* NIC_COMPLETING_*; set to WRITTEN under the lock of the CQ */
	uint32_t broken;     /* 1: the responder is in error, its send queue is not flushed yet */
	uint32_t last_wqe_raised;
};

/* mdl_cq.nic_private. Under cq->lock. */
struct nic_cq_priv {
	uint32_t solicited_end; /* pi after the last solicited CQE */
	uint32_t held;          /* CQEs at the end of the ring that wait for compression */
	uint32_t arm_word;      /* arm record processed last */
	uint8_t held_op_own;
};

/* mdl_srq.nic_private. Under srq->lock; the fields of tag matching under tm_lock. */
struct nic_srq_priv {
	uint64_t position; /* consumed << 32 | index of the next WQE: one store changes both */
	uint32_t returned; /* index + 1 of a WQE whose taker died; the next message gets it */
	uint32_t limit_raised;
	/*
	 * Unexpected messages in the low 16 bits; above 32 the CQ's index behind the last of them,
	 * so that its CQE is counted once. One store changes both. Under the lock of the CQ.
	 */
	uint64_t tm_phase;
	uint64_t tm_order;  /* APPENDs since creation */
	uint16_t tm_sw_cnt; /* unexpected messages that software has handled */
	uint16_t tm_next;   /* entry that the next APPEND fills */
};

/* States of an entry of a list of tags. */
enum nic_tag_state {
	NIC_TAG_FREE,
	NIC_TAG_STORED, /* appended; matched once software knows all unexpected messages */
	NIC_TAG_ACTIVE,
	NIC_TAG_MATCHED, /* data are under way, through the QP `qpn` */
};

struct nic_tag {
	uint32_t state; /* enum nic_tag_state */
	uint32_t qpn;
	uint64_t order; /* number of its APPEND */
	uint64_t tag, mask;
	uint64_t addr;
	uint32_t len, lkey;
	uint64_t pad_;
	uint64_t pad2_;
};
static_assert(sizeof(struct nic_tag) == MDL_TM_ENTRY_BYTES, "tag");

/* mdl_segment.nic_private. */
struct nic_seg_priv {
	uint32_t atomic_owner; /* slot + 1 of the process inside an atomic operation */
	/* slot + 1 of a process whose broken rule another process detected */
	uint32_t blamed;
	char blame[400];
};

static_assert(sizeof(struct nic_qp_priv) <= sizeof(((struct mdl_qp *)0)->nic_private), "QP");
static_assert(sizeof(struct nic_cq_priv) <= sizeof(((struct mdl_cq *)0)->nic_private), "CQ");
static_assert(sizeof(struct nic_srq_priv) <= sizeof(((struct mdl_srq *)0)->nic_private), "SRQ");
static_assert(sizeof(struct nic_seg_priv) <= sizeof(((struct mdl_segment *)0)->nic_private), "seg");

static inline struct nic_qp_priv *nic_qp_priv(struct mdl_qp *qp)
{
	return (struct nic_qp_priv *)qp->nic_private;
}

static inline struct nic_cq_priv *nic_cq_priv(struct mdl_cq *cq)
{
	return (struct nic_cq_priv *)cq->nic_private;
}

static inline struct nic_srq_priv *nic_srq_priv(struct mdl_srq *srq)
{
	return (struct nic_srq_priv *)srq->nic_private;
}

static inline struct nic_seg_priv *nic_seg_priv(void)
{
	return (struct nic_seg_priv *)mdl_self.seg->nic_private;
}

static inline uint32_t nic_qp_state(const struct mdl_qp *qp)
{
	return __atomic_load_n(&qp->state, __ATOMIC_ACQUIRE);
}

/* Returns true if its device has failed since the context of the QP was opened. Any process. */
static inline bool nic_qp_has_failed(const struct mdl_qp *qp)
{
	const struct mdl_proc *proc = &mdl_self.seg->proc[qp->proc];
	uint32_t device = mdl_port_device(qp->port_index);

	return __atomic_load_n(&proc->fatal_ns[device], __ATOMIC_ACQUIRE) > qp->opened_ns;
}

/* Returns true if the port of a QP of this process is down. */
static inline bool nic_link_is_down(const struct mdl_qp *qp)
{
	return mdl_self.seg->port[qp->port_index].link_down ||
	       nic_fault_link_down(mdl_port_device(qp->port_index));
}

static inline bool nic_is_ours(uint32_t slot)
{
	return slot == mdl_self.slot;
}

/* Progress of the completion of a taken receive WQE. */
enum {
	NIC_COMPLETING_NOT,
	NIC_COMPLETING_WRITES,
	NIC_COMPLETING_WRITTEN, /* the CQE is in the CQ */
};

/* Outcome of one WQE. */
enum nic_outcome {
	NIC_DONE,
	NIC_FAILED, /* failed, with the syndromes of the result */
	NIC_RNR,    /* the responder is not ready */
	NIC_LOST,   /* no reply */
};

struct nic_result {
	uint8_t syndrome;
	uint8_t vendor;
	uint8_t scatter_len; /* bytes of a READ or atomic result for the CQE */
	uint8_t rnr_timer;
	uint32_t byte_cnt;
	uint8_t scatter[64];
};

/* Piece of memory that is the source or target of a message. */
struct nic_span {
	const struct mdl_mr *mr; /* null: bytes */
	const uint8_t *bytes;
	uint64_t addr;
	uint64_t len;
};

struct nic_spans {
	uint32_t cnt;
	struct nic_span span[NIC_WQE_MAX_DS];
};

/* Receive WQE that a message has taken. */
struct nic_taken {
	struct nic_rwqe rwqe;
	uint16_t counter; /* WQE counter of the CQE */
	uint8_t app_op;   /* enum nic_app_op of the CQE */
};

/** Counts in the rows of the QP, of its process and of its port. */
static inline void nic_count(struct mdl_qp *qp, enum mdl_count_id id, uint64_t n)
{
	if (!n)
		return;
	mdl_count_add(&qp->count, id, n);
	mdl_count_add(&mdl_self.seg->proc[qp->proc].count, id, n);
	mdl_count_add(&mdl_self.seg->port[qp->port_index].count, id, n);
}

#endif
