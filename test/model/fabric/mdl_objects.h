/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Objects of a modelled fabric, as laid out in the segment that all its processes share.
 *
 * The kernel border (krn_*.c) creates, modifies and destroys objects and owns every field that is
 * not marked as the NIC's. The NIC (nic_*.c) reads those and owns the fields named nic_*. An
 * object's number has its index in the table in the low bits and a generation above, so that lookup
 * of a stale number fails.
 *
 * Locks are robust: a process that takes one whose owner died puts the object into the error state
 * (mdl_lock() reports the death). Order, outermost first:
 *
 *	segment->table_lock > qp->sq_lock > qp->rq_lock > srq->tm_lock > srq->lock > cq->lock
 *		> chan->lock
 *
 * One thread holds at most one sq_lock, and takes none while it holds an rq_lock: a requester holds
 * its own sq_lock and then takes the rq_lock of the responder.
 *
 * "seg offset" counts bytes from the start of the segment; mdl_at() converts it to a pointer in any
 * process. "user address" is an address in the process that owns the object.
 */
#ifndef MDL_OBJECTS_H
#define MDL_OBJECTS_H

#include "model/fabric/mdl_count.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define MDL_QP_MAX    16384 /* powers of two: the index of an object is its number masked */
#define MDL_CQ_MAX    16384
#define MDL_SRQ_MAX   4096
#define MDL_PD_MAX    16384
#define MDL_MR_MAX    65536
#define MDL_PROC_MAX  1024
#define MDL_CHAN_MAX  4096
#define MDL_NODE_MAX  64
#define MDL_DEV_MAX   2 /* devices of a node, of one port each */
#define MDL_PORT_MAX  (MDL_NODE_MAX * MDL_DEV_MAX)
#define MDL_CTX_MAX   64   /* device contexts of one process */
#define MDL_CM_MAX    4096 /* connection manager identifiers, and their events */
#define MDL_UAR_PAGES 8    /* UAR pages of one context */

/* Limits of a DCI's streams, as powers of two. */
#define MDL_LOG_STREAMS_MAX 5
#define MDL_LOG_ERRORED_MAX 5

/* Limits of tag matching: entries of a list as a power of two, bytes of a rendezvous request. */
#define MDL_LOG_TAGS_MAX   7
#define MDL_TM_ENTRY_BYTES 64
#define MDL_TM_REQUEST_MAX 64

enum mdl_link { MDL_LINK_IB, MDL_LINK_ROCE };

enum mdl_mode {
	/* UAR pages are read-only; a store to them runs the NIC before the next instruction */
	MDL_MODE_TRAP,
	MDL_MODE_POLL, /* a thread watches the UAR pages */
};

/*
 * Lock of a table entry. Initialised once for each entry and kept from object to object: see
 * mdl_table_claim().
 */
struct mdl_lock {
	pthread_mutex_t mutex;
	uint32_t ready;
};

enum mdl_proc_state { MDL_PROC_FREE, MDL_PROC_LIVE, MDL_PROC_DEAD };

/* A process that opened the device. Slots are reused when their process is dead and swept. */
struct mdl_proc {
	uint32_t state; /* enum mdl_proc_state */
	int32_t pid;
	uint64_t
		/* start time of the pid in clock ticks, so that a reused pid is recognised */
		started;
	uint64_t checked_ns; /* time of the last check that the process lives */
	uint32_t node;       /* index of the process's node */
	uint32_t generation;
	uint32_t service; /* futex of the process's service thread; counts wake-ups */
	uint32_t port_down[MDL_DEV_MAX]; /* 1: an injected fault has taken the port down */
	/*
	 * Time of a device's last injected failure, 0: none. What a context has that was opened
	 * before does nothing any more.
	 */
	uint64_t fatal_ns[MDL_DEV_MAX];
	char name[16];
	struct mdl_count count;
};

/* Added to the LID of a port to which the subnet manager has given another one. */
#define MDL_LID_MOVED 0x400u

/* A port with its addresses. Entry n of the table has LID n + 1, or n + 1 + MDL_LID_MOVED. */
struct mdl_port {
	uint64_t guid; /* host order */
	uint8_t mac[6];
	uint16_t lid;
	uint8_t gid[8][16];  /* in wire format; entries from gid_cnt on are zero */
	uint8_t gid_type[8]; /* 0: IB or RoCE v1, 2: RoCE v2 */
	uint32_t gid_cnt;
	uint32_t link_down; /* 1: every packet from and to this port is lost */
	struct mdl_count count;
};

/*
 * Queue of completion or async events of a process, with the descriptor that read() returns them
 * from.
 */
#define MDL_CHAN_DEPTH 1024
struct mdl_chan {
	uint32_t used;
	uint32_t proc;   /* slot of the owner */
	uint32_t number; /* index and a generation that is never 0 */
	uint32_t
		/* 0: 8-byte completion events, 1: 16-byte async events, 2: connection events */
		async;
	struct mdl_lock lock;
	uint32_t head, tail; /* events pushed and popped, counted for ever */
	uint32_t tokens;     /* datagrams in the socket, which poll() reports */
	struct {
		uint64_t element; /* cookie that the application gave for the CQ, QP, SRQ */
		uint32_t type;    /* type of an async event */
		uint32_t
			/*
			 * number of the CQ, QP, SRQ; used to remove the events of a destroyed
			 * object
			 */
			object;
	} event[MDL_CHAN_DEPTH];
};

/*
 * Every object begins with these four words; mdl_table.h works on them.
 * 	number  0: free. Written last, when the object is complete.
 * 	claimed 1: claimed, perhaps not filled in yet
 * 	proc    slot of the owner
 * 	ctx     device context of that process
 * A process that finds another process's object by number takes its lock and checks the number
 * again.
 */
struct mdl_pd {
	uint32_t number, claimed, proc, ctx;
	uint32_t refs; /* objects that use this PD */
};

/* Access bits, as in ibv_access_flags. */
enum {
	MDL_ACCESS_LOCAL_WRITE = 1,
	MDL_ACCESS_REMOTE_WRITE = 2,
	MDL_ACCESS_REMOTE_READ = 4,
	MDL_ACCESS_REMOTE_ATOMIC = 8,
	MDL_ACCESS_ZERO_BASED = 32,
};

/* lkey == rkey == key: index << 8 | a byte that changes with each registration. */
struct mdl_mr {
	uint32_t key, claimed, proc, ctx; /* key 0: free */
	uint32_t pd;
	uint32_t access;
	uint64_t addr; /* first address as in WQEs (the IO virtual address) */
	uint64_t length;
	uint64_t user_addr; /* first address in the owner; == addr unless zero based */
};

/* Producer side of a completion queue; the fields named nic_ are the NIC's. */
struct mdl_cq {
	uint32_t number, claimed, proc, ctx;
	uint64_t cookie; /* value that completion and async events carry */
	uint32_t chan;   /* number of the completion channel, 0: none */
	uint32_t async_chan;
	uint64_t buf;        /* seg offset of CQE 0; contiguous */
	uint32_t cqe_cnt;    /* power of two */
	uint32_t cqe_size;   /* 64 or 128 */
	uint64_t dbrec;      /* seg offset: __be32 consumer index at 0, __be32 arm record at 4 */
	uint8_t comp_en;     /* created for compressed CQEs */
	uint8_t comp_format; /* 0: hash, 1: checksum (bit number of MLX5_IB_CQE_RES_FORMAT_*) */
	uint8_t pad128;
	uint8_t ignore_overrun; /* created with IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN */
	struct mdl_lock lock;
	uint32_t refs;          /* QPs and SRQs that use this CQ */
	uint32_t events_raised; /* completion events put into the channel */
	uint32_t async_raised;
	uint64_t user_buf, user_len; /* buffer in the owner, and its bytes */
	uint64_t user_dbrec;         /* doorbell record in the owner */

	uint32_t nic_pi;    /* CQEs written since creation: owner bit = (pi / cqe_cnt) & 1 */
	uint32_t nic_armed; /* NIC's enum: not armed, next, solicited */
	uint32_t nic_arm_ci;
	uint32_t nic_error; /* 1: overrun, no CQE is written any more */
	uint64_t nic_private[24];
};

struct mdl_srq {
	uint32_t number, claimed, proc, ctx; /* number: reported as srqn by CREATE_SRQ */
	uint64_t cookie;
	uint32_t async_chan;
	uint32_t pd;
	uint32_t type; /* IB_SRQT_BASIC 0, XRC 1, TM 2 */
	uint32_t cq;   /* CQ of an XRC or TM SRQ */
	uint32_t uidx;
	uint64_t tm_list; /* TM: seg offset of the list of tags, which is the NIC's */
	uint32_t tm_cnt;  /* entries of that list, power of two; 0: no TM SRQ */
	uint32_t pad_;
	uint64_t buf;     /* seg offset of WQE 0; contiguous */
	uint32_t wqe_cnt; /* power of two */
	uint32_t stride;  /* bytes of one WQE, power of two, >= 32 */
	uint32_t max_wr, max_sge;
	uint64_t dbrec; /* seg offset: __be32 count of WQEs posted since creation */
	uint32_t async_raised;
	uint64_t user_buf, user_len; /* buffer in the owner, and its bytes */
	uint64_t user_dbrec;         /* doorbell record in the owner */
	uint32_t limit; /* armed limit, 0: none; cleared by the NIC when it raises the event */
	uint32_t refs;
	struct mdl_lock lock;
	struct mdl_lock tm_lock; /* lock of matching: its holder decides and completes a message */

	uint32_t nic_head;     /* index of the WQE for the next message */
	uint32_t nic_consumed; /* WQEs taken since creation; 16 bits matter */
	uint32_t nic_error;
	uint32_t nic_pad;
	uint64_t nic_private[24];
};

enum mdl_qp_type { /* values of ibv_qp_type */
		   MDL_QPT_RC = 2,
		   MDL_QPT_UC = 3,
		   MDL_QPT_UD = 4,
		   MDL_QPT_DRIVER = 0xff,
		   /* the two kinds of a driver's queue pair, by flags of CREATE_QP */
		   MDL_QPT_DCI = 0x101,
		   MDL_QPT_DCT = 0x102,
};

enum mdl_qp_state { /* values of ibv_qp_state */
		    MDL_QPS_RESET,
		    MDL_QPS_INIT,
		    MDL_QPS_RTR,
		    MDL_QPS_RTS,
		    MDL_QPS_SQD,
		    MDL_QPS_SQE,
		    MDL_QPS_ERR,
};

/* Path attributes of MODIFY_QP. */
struct mdl_path {
	uint8_t dgid[16];
	uint16_t dlid;
	uint8_t sl;
	uint8_t is_global;
	uint8_t sgid_index;
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint8_t src_path_bits;
	uint8_t static_rate;
	uint8_t port;
	uint8_t pad_[2];
	uint32_t flow_label;
};

struct mdl_qp {
	uint32_t number, claimed, proc, ctx; /* number: 24 bits */
	uint32_t port_index;                 /* of its port, in the table */
	uint32_t type;                       /* enum mdl_qp_type */
	uint32_t
		state; /* enum mdl_qp_state; written under sq_lock and rq_lock, by the NIC to ERR or
			* SQE, to ERR under rq_lock alone where a requester broke its responder */
	uint32_t pd;
	uint32_t send_cq, recv_cq; /* CQ numbers; with a TM SRQ recv_cq is the CQ of that */
	uint32_t srq;              /* SRQ number, 0: own RQ */
	uint32_t uidx;             /* value that CQEs carry instead of the QPN (CQE version 1) */
	uint32_t recv_uidx;        /* likewise, for receives: with a TM SRQ that of the SRQ */
	uint64_t cookie;           /* value that async events carry */
	uint32_t async_chan;
	uint32_t flags; /* MLX5_QP_FLAG_* bits of CREATE_QP: scatter-to-CQE and others */
	uint32_t async_raised;
	uint64_t user_buf, user_len; /* buffer in the owner, and its bytes */
	uint64_t user_dbrec;         /* doorbell record in the owner */
	uint32_t create_flags;
	uint32_t max_inline, max_send_wr, max_recv_wr, max_send_sge, max_recv_sge;
	uint64_t opened_ns;  /* time at which its context was opened */
	uint64_t dc_key;     /* DCT: access key that its initiators present */
	uint8_t has_streams; /* DCI: created with streams */
	uint8_t log_streams; /* log2 of the channels that work side by side */
	uint8_t log_errored; /* log2 of the streams in error that put the DCI into error */
	uint8_t tagged;      /* receives from a TM SRQ */

	uint64_t rq;       /* seg offset of receive WQE 0 */
	uint32_t rq_cnt;   /* WQEs, power of two, 0: none */
	uint32_t rq_shift; /* log2 of the bytes of one receive WQE */
	uint64_t sq;       /* seg offset of send block 0 */
	uint32_t sq_cnt;   /* 64-byte blocks, power of two, 0: none */
	uint64_t dbrec;    /* seg offset: __be32 receive counter at 0, __be32 send counter at 4 */
	uint32_t uar_page; /* 0 .. MDL_UAR_PAGES-1 */
	uint32_t uar_off;  /* byte offset of the QP's register in the page: 0x800 or 0xa00 */

	/* attributes, in MODIFY_QP's units */
	struct mdl_path path, alt_path;
	uint32_t dest_qpn;
	uint32_t sq_psn, rq_psn;
	uint32_t qkey;
	uint32_t access; /* MDL_ACCESS_* bits granted to remote operations */
	uint16_t pkey_index, alt_pkey_index;
	uint8_t path_mtu; /* enum ibv_mtu: 1 is 256 .. 5 is 4096 */
	uint8_t path_mig_state, port, timeout;
	uint8_t retry_cnt, rnr_retry, min_rnr_timer, max_rd_atomic;
	uint8_t max_dest_rd_atomic, alt_timeout, alt_port, en_sqd_async;

	struct mdl_lock sq_lock; /* lock of the execution of send WQEs */
	struct mdl_lock rq_lock; /* lock of the responder's side */
	struct mdl_count count;

	uint32_t nic_sq_ci;   /* blocks executed since creation; 16 bits matter */
	uint32_t nic_sq_pi;   /* blocks shown by doorbell records */
	uint32_t nic_rq_ci;   /* receive WQEs taken */
	uint32_t nic_streams; /* index + 1 of a DCI's streams in its process, 0: none */
	uint32_t nic_rndvs;   /* rendezvous requests of this QP that its peer's device executes */
	uint32_t
		/* not 0: waits for its peer (RNR) or for a retry; nic_service() resumes it */
		nic_stalled;
	uint64_t nic_private[64];
};

/*
 * States of a connection manager identifier, in the order in which a connection passes through
 * them.
 */
enum mdl_cm_state {
	MDL_CM_IDLE,
	MDL_CM_BOUND,
	MDL_CM_LISTENING,
	MDL_CM_REQUESTED, /* passive: request not accepted or rejected yet */
	MDL_CM_CALLING,   /* active: request sent, no reply yet */
	MDL_CM_ACCEPTED,  /* connection accepted; the active side has not confirmed yet */
	MDL_CM_CONNECTED,
	MDL_CM_CLOSED,
};

/*
 * One end of a connection, or a listener: librdmacm's rdma_cm_id. Guarded by segment->cm_lock. ctx
 * is the number of the event channel.
 */
struct mdl_cm_id {
	uint32_t number, claimed, proc, ctx;
	uint64_t uid;   /* value that its events carry */
	uint32_t state; /* enum mdl_cm_state */
	uint32_t ps;    /* port space */
	uint32_t qp_type;
	uint32_t node;
	uint32_t peer; /* number of the other end, 0: none */
	uint32_t
		/* number of the listener that received a request; counts the request's events */
		listener;
	uint32_t reported; /* events that the program has read */
	uint32_t qpn, psn, qkey;
	uint32_t routed; /* 1: path resolved */
	uint64_t
		/*
		 * time at which the other end disconnected; the event follows a little later; 0:
		 * none pending
		 */
		hung_up_ns;
	uint8_t initiator_depth, responder_resources, retry_count, rnr_retry;
	uint8_t src[28], dst[28]; /* struct sockaddr_in or sockaddr_in6 */
	uint32_t pad_;
};

/* Event that waits in a channel, in the layout that the program reads. */
struct mdl_cm_event {
	uint32_t used;
	uint32_t id; /* identifier that counts this event */
	uint8_t resp[384];
};

#define MDL_SEGMENT_MAGIC   0x6d646c3563617368ull
#define MDL_SEGMENT_VERSION 9

/* Head of the segment; the tables follow, then the arena of pages. */
struct mdl_segment {
	uint64_t magic;
	uint32_t version;
	uint32_t ready; /* 1: initialised */
	uint64_t size;  /* bytes of the file */
	uint32_t link;  /* enum mdl_link */
	uint32_t node_cnt;
	uint32_t port_cnt; /* device d of node n has port d * node_cnt + n */
	uint32_t pad_ports;
	uint64_t seed;              /* seed of faults and of poll mode's delays */
	struct mdl_lock table_lock; /* lock of allocation in all tables and of pages */
	uint32_t next
		/*
		 * for each table: where the search for a free entry begins, so that numbers are
		 * reused late
		 */
		[8];
	uint32_t chan_end;   /* first channel that was never used */
	uint32_t generation; /* incremented with every object; part of its number */
	/* arena: seg offset, pages, where the search begins */
	uint64_t page_first, page_cnt, page_next;
	uint64_t
		page_map; /* seg offset of a uint16_t per page: 0 free, else the owner's slot + 1 */
	struct mdl_count retired; /* counters of dead processes */
	struct mdl_port port[MDL_PORT_MAX];
	struct mdl_proc proc[MDL_PROC_MAX];
	struct mdl_pd pd[MDL_PD_MAX];
	struct mdl_mr mr[MDL_MR_MAX];
	struct mdl_cq cq[MDL_CQ_MAX];
	struct mdl_srq srq[MDL_SRQ_MAX];
	struct mdl_qp qp[MDL_QP_MAX];
	struct mdl_chan chan[MDL_CHAN_MAX];
	uint32_t cm_used, pad_; /* cm_used: 1 once a process has used the connection manager */
	struct mdl_lock
		cm_lock; /* while held, only locks of channels and the table lock are taken */
	struct mdl_cm_id cm_id[MDL_CM_MAX];
	struct mdl_cm_event cm_event[MDL_CM_MAX];
	uint64_t nic_private[512];
};

#endif /* MDL_OBJECTS_H */
