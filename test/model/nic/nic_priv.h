/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Private interface of the files of the NIC: the nic_private words of QPs, CQs and SRQs, and the
 * calls between the files, from the doorbell down:
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
#ifndef NIC_PRIV_H
#define NIC_PRIV_H

#include "model/fabric/mdl_nic.h"

#include <assert.h>
#include "model/fabric/mdl_table.h"
#include "model/nic/nic_cqe.h"
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
	uint32_t node;
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

/* ---- nic_count: row of the QP and of its process ------------------------------------------- */
static inline void nic_count(struct mdl_qp *qp, enum mdl_count_id id, uint64_t n)
{
	if (!n)
		return;
	mdl_count_add(&qp->count, id, n);
	mdl_count_add(&mdl_self.seg->proc[qp->proc].count, id, n);
}

/* ---- nic_mem.c ---- */
/* Returns the region with KEY if it covers the range, belongs to PROC and PD and grants ACCESS. */
const struct mdl_mr *nic_mem_find(uint32_t key, uint32_t proc, uint32_t pd, uint64_t addr,
				  uint64_t len, uint32_t access);
/*
 * Resolve the source or target (ACCESS) of a WQE's message. Return false if a key or a range is
 * wrong.
 */
bool nic_mem_pieces(const struct mdl_qp *qp, const struct nic_wqe *wqe, uint32_t access,
		    struct nic_spans *spans);
/* Resolves the first LEN bytes of a receive WQE after SKIP. */
bool nic_mem_scatter(const struct mdl_qp *qp, const struct nic_rwqe *rwqe, uint64_t skip,
		     uint64_t len, struct nic_spans *spans);
/*
 * Copies from one list into another. Returns 0, -EFAULT or -ESRCH. *WRITES counts the pieces
 * written.
 */
int nic_mem_copy(const struct nic_spans *to, const struct nic_spans *from, uint64_t len,
		 uint32_t *writes);
/* Executes a 64-bit compare and swap or fetch and add. *OLD receives the previous value. */
int nic_mem_atomic(const struct mdl_mr *mr, const struct nic_wqe *wqe, uint64_t *old);

/* ---- nic_cq.c ---- */
/*
 * Writes a CQE for QP (requester's or responder's) to CQN. Returns false if the CQ is full and may
 * not overrun.
 */
bool nic_cq_write(struct mdl_qp *qp, uint32_t cqn, const struct nic_cqe *cqe);
/* Returns true if another CQE fits. Used before flushing, which waits instead of overrunning. */
bool nic_cq_has_room(uint32_t cqn);
/* Completes the write of a writer that died: `completing` of its responder is final afterwards. */
void nic_cq_settle(uint32_t cqn);
/* Publishes CQEs that wait for compression. */
void nic_cq_release(uint32_t cqn);
void nic_cq_arm(const uint8_t *bytes);
void nic_cq_recheck(struct mdl_cq *cq);

/* ---- nic_sq.c ---- */
/* Executes the WQEs shown by the records. sq_lock held. */
void nic_sq_run(struct mdl_qp *qp);
/* Decodes and checks the WQE at block AT, counted since creation, into BYTES and WQE. */
enum { NIC_SQ_BYTES = NIC_WQE_MAX_BYTES + 48 };
void nic_sq_decode(struct mdl_qp *qp, uint32_t at, uint8_t *bytes, struct nic_wqe *wqe);
/* Executes a WQE, or an injected fault. */
enum nic_outcome nic_sq_execute(struct mdl_qp *qp, const struct nic_wqe *wqe,
				struct nic_result *result);
void nic_sq_account(struct mdl_qp *qp, const struct nic_wqe *wqe);
void nic_sq_begin(const struct mdl_qp *qp, struct nic_attempts *attempts);
/*
 * Decides what follows NIC_RNR or NIC_LOST. Returns true if the WQE is tried again at *DUE_NS, or
 * false with the syndromes of its failure if no retry remains.
 */
bool nic_sq_retry(const struct mdl_qp *qp, struct nic_attempts *attempts, enum nic_outcome outcome,
		  struct nic_result *result, uint64_t *due_ns);
/* Writes the completion of a send WQE. */
void nic_sq_complete(struct mdl_qp *qp, const struct nic_wqe *wqe, const struct nic_result *result);
/*
 * Records that the QP wrote to a peer's CQ, which is released when the run ends or writes another
 * CQ.
 */
void nic_sq_touch(struct mdl_qp *qp, uint32_t cqn);

/* ---- nic_stream.c: the send queue of a DCI with streams; nothing for other QPs ---- */
/* Frees the streams of all QPs, which a child of fork() inherits and does not own. */
void nic_stream_attach(void);
int nic_stream_create(struct mdl_qp *qp);
void nic_stream_destroy(struct mdl_qp *qp);
/* Empties all streams, as a reset of the QP does. */
void nic_stream_forget(struct mdl_qp *qp);
/* Executes the WQEs shown by the records. Returns false if the QP has no streams. sq_lock held. */
bool nic_stream_run(struct mdl_qp *qp);
/*
 * Completes the WQEs that were begun, with a flush if they have no result. Returns false if the CQ
 * has no room. sq_lock held.
 */
bool nic_stream_flush(struct mdl_qp *qp);
/* Returns the connection of the channel that serves a stream, or null if the QP has no streams. */
struct nic_dc_conn *nic_stream_conn(struct mdl_qp *qp, uint16_t stream);

/* ---- nic_dc.c ---- */
/*
 * Returns the target of a DCI's WQE with its rq_lock held, connected to, or null if none replies.
 */
struct mdl_qp *nic_dc_lock(struct mdl_qp *qp, const struct nic_wqe *wqe);
/* Returns true if the WQE has the access key of the target; counts a violation if not. */
bool nic_dc_admits(struct mdl_qp *peer, const struct nic_wqe *wqe);
/* Forgets the connection that served a WQE, after it failed. */
void nic_dc_failed(struct mdl_qp *qp, const struct nic_wqe *wqe);

/* ---- nic_tm.c ---- */
/* Executes a list operation. sq_lock held. */
void nic_tm_execute(struct mdl_qp *qp, const struct nic_wqe *wqe);
/*
 * Returns the TM SRQ of a QP with its tm_lock held, or null if it is gone. The lock orders matches
 * and unexpected messages: a message is decided and completed under it.
 */
struct mdl_srq *nic_tm_lock(struct mdl_qp *qp);
static inline struct nic_tag *nic_tm_tag(const struct mdl_srq *srq, uint32_t index)
{
	return (struct nic_tag *)mdl_at(srq->tm_list) + index;
}
/* Returns the index of the oldest active entry that matches, or -1. tm_lock held. */
int nic_tm_find(const struct mdl_srq *srq, uint64_t tag);
/* Records what the CQE at INDEX of its CQ did to the list. The lock of the CQ held. */
void nic_tm_note(const struct mdl_qp *qp, const uint8_t *cqe64, uint32_t index);
/*
 * Completes with NIC_APP_CANCELED the entries whose data would come through the QP. Returns false
 * if the CQ has no room for that. rq_lock held.
 */
bool nic_tm_cancel(struct mdl_qp *qp);

/* ---- nic_tm_recv.c ---- */
/* Header of a tagged message, and the request of a rendezvous. */
struct nic_tm_msg {
	uint8_t head[MDL_TM_REQUEST_MAX]; /* first bytes of the message */
	uint32_t head_len;
	uint8_t op; /* enum nic_tmh_op */
	uint64_t tag;
	uint64_t va; /* of a rendezvous */
	uint32_t rkey, len;
};
enum nic_tmh_op { NIC_TMH_NO_TAG, NIC_TMH_RNDV, NIC_TMH_FIN, NIC_TMH_EAGER };
enum { NIC_TMH_BYTES = 16, NIC_RVH_BYTES = 16 };
/* Delivers a SEND to a QP with tag matching. rq_lock of PEER held. */
enum nic_outcome nic_tm_send(struct mdl_qp *qp, struct mdl_qp *peer, const struct nic_wqe *wqe,
			     const struct nic_spans *from, struct nic_result *result);
/* Writes a CQE about an entry to the CQ of the SRQ. tm_lock held. */
void nic_tm_complete(struct mdl_qp *peer, const struct mdl_srq *srq, uint32_t entry,
		     struct nic_cqe *cqe);

/* ---- nic_rndv.c: matched rendezvous, in the process of their sender. sq_lock held ---- */
void nic_rndv_attach(void);
/* Returns room for another rendezvous, or null. */
struct nic_rndv *nic_rndv_claim(const struct mdl_qp *qp);
/* Begins a rendezvous that entry ENTRY of PEER's list has matched. */
void nic_rndv_begin(struct nic_rndv *rndv, struct mdl_qp *qp, const struct mdl_qp *peer,
		    uint32_t entry, const struct nic_tm_msg *msg);
/* Executes what is due; drops all if the QP is not connected any more. No rq_lock held. */
void nic_rndv_run(struct mdl_qp *qp);
/* Drops all: their receivers' QPs end in error. No rq_lock held. */
void nic_rndv_drop(struct mdl_qp *qp);
/* Ends a QP in error that waits for the data of a sender which died. No rq_lock held. */
void nic_rndv_check_sender(struct mdl_qp *qp);

/* ---- nic_ahead.c: payload gathered before a READ that it should have waited for ---- */
/* Returns true if the WQE after this one is to be gathered ahead. */
bool nic_ahead_wanted(const struct nic_wqe *wqe);
void nic_ahead_take(struct mdl_qp *qp, const struct nic_wqe *next);
/* Uses the payload gathered ahead for this WQE, if it is the one, until nic_ahead_drop(). */
bool nic_ahead_use(struct mdl_qp *qp, struct nic_wqe *wqe);
void nic_ahead_drop(const struct mdl_qp *qp);

/* ---- nic_rc.c, nic_ud.c: one WQE, sq_lock held ---- */
enum nic_outcome nic_rc_execute(struct mdl_qp *qp, const struct nic_wqe *wqe,
				struct nic_result *result);
/* Parts of a SEND's delivery, which tag matching uses too. rq_lock of PEER held. */
enum nic_outcome nic_rc_send(struct mdl_qp *qp, struct mdl_qp *peer, const struct nic_wqe *wqe,
			     const struct nic_spans *from, struct nic_result *result);
enum nic_outcome nic_rc_deliver(struct mdl_qp *qp, struct mdl_qp *peer, const struct nic_wqe *wqe,
				const struct nic_spans *from, const struct nic_taken *taken,
				struct nic_result *result);
enum nic_outcome nic_rc_not_ready(struct mdl_qp *peer, struct nic_result *result);
/* Breaks the responder, unless it is a DCT, and refuses the operation with a syndrome. */
enum nic_outcome nic_rc_refuse(struct mdl_qp *peer, struct nic_result *result, uint8_t syndrome,
			       uint8_t vendor, uint32_t event);
enum nic_outcome nic_rc_copy_failed(struct mdl_qp *peer, struct nic_result *result, int rc);
/* Copies and counts the payload of a message. */
int nic_rc_fill(struct mdl_qp *qp, struct mdl_qp *peer, const struct nic_spans *to,
		const struct nic_spans *from, uint64_t len);
int nic_rc_fill_cqe(struct mdl_qp *qp, const struct nic_spans *from, uint64_t len,
		    struct nic_cqe *cqe);
/* Returns whether a message is scattered to the CQE: of 32 bytes, or 64 where a CQE has 128. */
bool nic_rc_fits_cqe(const struct mdl_qp *peer, uint64_t len);
/* Returns the index of the source GID, -1 without a GRH. */
int nic_rc_sgid(const struct mdl_qp *qp, const struct nic_wqe *wqe);
enum nic_outcome nic_ud_execute(struct mdl_qp *qp, const struct nic_wqe *wqe,
				struct nic_result *result);
/* Sends the delayed datagram of the QP. */
void nic_ud_late_flush(struct mdl_qp *qp);
/* Fills in the source of a message in its receiver's CQE. */
void nic_ud_source(struct nic_cqe *cqe, const struct mdl_qp *from, const struct nic_av *av);
/* Writes the 40 bytes that precede a datagram. */
void nic_ud_grh(uint8_t grh[40], const struct mdl_qp *from, const struct nic_av *av, uint32_t len);

/* ---- nic_peer.c ---- */
/* Returns the responder of an RC or UC QP with its rq_lock held, or null if none replies. */
struct mdl_qp *nic_peer_lock(struct mdl_qp *qp);
/* Returns a QP by its number with its rq_lock held, or null if it cannot receive. */
struct mdl_qp *nic_peer_lock_number(uint32_t qpn);
void nic_peer_unlock(struct mdl_qp *peer);
/* Puts the responder into error, with an async event (0: none). rq_lock held. */
void nic_peer_break(struct mdl_qp *peer, uint32_t event);

/* ---- nic_recv.c: rq_lock of QP held ---- */
enum nic_take { NIC_TAKEN, NIC_NONE };
enum nic_take nic_recv_take(struct mdl_qp *qp, struct nic_taken *taken);
/* Completes a receive WQE and fills in the CQE's fields of the QP and of the WQE. */
void nic_recv_complete(struct mdl_qp *qp, const struct nic_taken *taken, struct nic_cqe *cqe);
/* Completes the receive WQEs of an RQ in error with a flush. Returns true if none remains. */
bool nic_recv_flush(struct mdl_qp *qp);
/* Repairs the state of a taken receive WQE after the holder of rq_lock died. */
void nic_recv_repair(struct mdl_qp *qp);
/* Returns whether so many WQEs have been posted to a shared queue since its creation. */
bool nic_recv_has_had(struct mdl_srq *srq, uint32_t cnt);
/* Returns the number of receive WQEs posted and not taken. */
uint32_t nic_recv_posted(struct mdl_qp *qp);

/* ---- nic_qp.c ---- */
void nic_qp_lock_rq(struct mdl_qp *qp);
/* Puts the QP into ERR after its own failure and flushes both queues. sq_lock held, no rq_lock. */
void nic_qp_break(struct mdl_qp *qp, uint32_t event);
/* Flushes both queues as far as CQEs fit. sq_lock held. */
void nic_qp_flush(struct mdl_qp *qp);
enum nic_transport nic_qp_transport(const struct mdl_qp *qp);

/*
 * ---- nic_own.c: objects of this process --------------------------------------------------------
 */
struct nic_register {
	uint32_t ctx, page, off;
};
void nic_own_add_qp(struct mdl_qp *qp);
void nic_own_remove_qp(struct mdl_qp *qp);
void nic_own_add_cq(struct mdl_cq *cq);
void nic_own_qps(void (*each)(struct mdl_qp *qp, const struct nic_register *which),
		 const struct nic_register *which);
void nic_own_cqs(void (*each)(struct mdl_cq *cq));

/* ---- nic_service.c ---- */
/*
 * Ends the process PROC, which broke a rule, with the message: at once or through its service
 * thread.
 */
void nic_blame(uint32_t proc, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- nic_wire.c ---- */
enum nic_wire_kind {
	NIC_WIRE_SEND,
	NIC_WIRE_WRITE,
	NIC_WIRE_READ,
	NIC_WIRE_ATOMIC,
	NIC_WIRE_UD,
	NIC_WIRE_DC_CONNECT,
	NIC_WIRE_DC_DISCONNECT,
};
uint32_t nic_wire_mtu(const struct mdl_qp *qp);
/*
 * Counts a message of LEN bytes and its reply at both ends. TO may be null: the message was lost.
 * SGID: the index of the source address; -1: no GRH, within an InfiniBand subnet.
 */
void nic_wire_count(struct mdl_qp *from, struct mdl_qp *to, enum nic_wire_kind kind, uint64_t len,
		    bool imm, int sgid);
/* Returns the number of packets of a message. */
uint64_t nic_wire_packets(uint64_t len, uint32_t mtu);

/* ---- nic_fault.c ---- */
enum nic_fault {
	NIC_FAULT_NONE,
	NIC_FAULT_DROP,
	NIC_FAULT_DUP,
	NIC_FAULT_CORRUPT,
	NIC_FAULT_DELAY,
};
/* Returns the fault to inject into the next datagram of QP. */
enum nic_fault nic_fault_datagram(struct mdl_qp *qp);
/* Returns true if the responder must appear to have no receive WQE. */
bool nic_fault_rnr(struct mdl_qp *qp);
/* Returns true if the QP must break at this WQE. */
bool nic_fault_breaks(struct mdl_qp *qp, uint64_t wqe);
/* Returns a number from the seed of the fabric, for this process. */
uint64_t nic_random(void);

#endif
