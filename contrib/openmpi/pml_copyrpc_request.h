/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One send, receive or probe: its layout, life and completion.
 *
 * Requests come from Open MPI's own free lists of sends and receives, where its library for
 * debuggers looks for them. A request is ACTIVE from its start until its last completion, then
 * DONE. The user may free it before (FREED): then the completion returns it to its list. Requests
 * that no user sees (buffered sends, acknowledgements) begin as FREED. While a completion callback
 * of Open MPI runs, the request is IN_CALLBACK: the callback may free it or start it again.
 *
 * Without threads req_complete of Open MPI alone says that a plain request is complete, and its
 * state stays ACTIVE, also in the list. A request is special if its completion or its return needs
 * more than that: then it takes the slow path of both, which resets what is not its initial value.
 */
#ifndef PML_COPYRPC_REQUEST_H
#define PML_COPYRPC_REQUEST_H

#include "pml_copyrpc.h"

enum pml_op_kind {
	PML_OP_SEND,
	PML_OP_RECV,
	PML_OP_ACK,     /**< receive of the acknowledgement of a synchronous send */
	PML_OP_PEEK,    /**< probe */
	PML_OP_CONNECT, /**< of pml_copyrpc_connect.c; no request belongs to it */
};

enum pml_state {
	PML_DONE,
	PML_ACTIVE,
	PML_FREED,
	PML_IN_CALLBACK,
};

/** Context of one libfabric operation; FI_CONTEXT and FI_CONTEXT2 are granted. */
struct pml_op {
	struct fi_context2 context; /* first: its address is that of the struct */
	enum pml_op_kind kind;
};

/** Bytes that a request owns for data that is not contiguous, and where they came from. */
enum pml_packed {
	PML_PACKED_NONE,
	PML_PACKED_HEAP,
	PML_PACKED_BSEND, /**< the buffer of MPI_Buffer_attach() */
};

struct pml_request {
	mca_pml_base_request_t base; /* first: Open MPI casts */
	/*
	 * Memory that libfabric reads or writes, the user's or packed bytes: where debuggers find
	 * req_addr and req_bytes_packed of mca_pml_base_send_request_t.
	 */
	void *buf;
	size_t len;
	struct pml_op op;

	/* Arguments, with buf and len above. A receive that was not refused has len alone. */
	uint64_t tag, ignore;
	fi_addr_t addr;
	uint64_t flags; /**< of fi_trecvmsg(); 0: fi_trecv() */
	struct pml_peer *peer;
	opal_free_list_t *list;

	volatile int32_t state; /**< enum pml_state */
	int32_t parts;          /**< completions that a synchronous send misses: 2, or 1 (match) */
	uint8_t packed;         /**< enum pml_packed */
	bool holds_type;        /**< base.req_datatype is retained */
	bool convertor_used;
	bool special; /**< any of the three before, persistent, failed, cancelled, freed; threads */
	bool deferred;  /**< in a list of pml_copyrpc_deferred.c */
	bool found;     /**< result of a probe */
	bool ack_waits; /**< deferred, and the receive of its acknowledgement is not posted */
	mca_pml_base_send_mode_t mode;
	struct pml_op ack;
};

OBJ_CLASS_DECLARATION(pml_send_request_t);
OBJ_CLASS_DECLARATION(pml_recv_request_t);
typedef struct pml_request pml_send_request_t;
typedef struct pml_request pml_recv_request_t;

static inline struct ompi_request_t *pml_request_ompi(struct pml_request *req)
{
	return &req->base.req_ompi;
}

/* pml_copyrpc_request.c */
int pml_request_lists_init(void);
void pml_request_drop_transfer(struct pml_request *req);
void pml_request_return_cold(struct pml_request *req);
void pml_request_release_comm(struct ompi_communicator_t *comm);
void pml_request_done_cold(struct pml_request *req);
void pml_request_fail(struct pml_request *req, int mpi_error);
int pml_request_errno(ssize_t rc, const char *what);
int pml_request_wait(struct pml_request *req, ompi_status_public_t *status);

/* pml_copyrpc_wait.c */
void pml_wait_for(struct ompi_request_t *r);
void pml_wait_replace(void);
void pml_wait_restore(void);

/* pml_copyrpc_send.c */
int pml_send_internal(struct pml_request *req);
int pml_send_start(struct pml_request *req);

/* pml_copyrpc_progress.c */
void pml_send_failed(struct pml_request *req);

/* pml_copyrpc_recv.c */
void pml_recv_target(struct pml_request *req, int src, int tag);
void pml_recv_done_cold(struct pml_request *req, uint64_t tag, size_t len);
int pml_recv_start(struct pml_request *req, void *buf, size_t count, struct ompi_datatype_t *type);

/* pml_copyrpc_dtype.c */
int pml_dtype_pack_to(const void *buf, size_t count, struct ompi_datatype_t *type, void *to,
		      size_t len);
int pml_dtype_pack(struct pml_request *req, const void *buf, size_t count,
		   struct ompi_datatype_t *type);
int pml_dtype_unpack(struct pml_request *req, size_t len);

/* pml_copyrpc_sync.c */
int pml_sync_begin(struct pml_request *req);
ssize_t pml_sync_post_deferred(struct pml_request *req);
bool pml_sync_part(struct pml_request *req);
void pml_sync_acknowledge(struct pml_request *req, uint64_t tag);

/* pml_copyrpc_deferred.c */
int pml_deferred_send(struct pml_request *req);
int pml_deferred_recv(struct pml_request *req);
bool pml_deferred_cancel(struct pml_request *req);
bool pml_deferred_overlaps(const struct pml_request *probe);
void pml_deferred_run(void);

/** Hands the send to an alias of the endpoint. Returns 0, -FI_EAGAIN or another error. */
static inline ssize_t pml_send_post_to(struct fid_ep *ep, struct pml_request *req)
{
	return fi_tsend(ep, req->buf, req->len, NULL, req->addr, req->tag, &req->op);
}

/** Hands the send to the provider. Returns 0, -FI_EAGAIN or another error. */
static inline ssize_t pml_send_post(struct pml_request *req)
{
	return pml_send_post_to(pml.ep, req);
}

/** Returns true for a synchronous send that is not acknowledged: its provider reports the match. */
static inline bool pml_sync_matches(const struct pml_request *req)
{
	return req->mode == MCA_PML_BASE_SEND_SYNCHRONOUS && !(req->tag & PML_TAG_SYNC);
}

/** Hands such a send to the provider, as pml_send_post(). */
static inline ssize_t pml_sync_post_match(struct pml_request *req)
{
	return pml_send_post_to(pml.match_ep, req);
}

ssize_t pml_recv_post_flags(struct pml_request *req);

static inline ssize_t pml_recv_post(struct pml_request *req)
{
	if (OPAL_UNLIKELY(req->flags != 0))
		return pml_recv_post_flags(req);
	return fi_trecv(pml.ep, req->buf, req->len, NULL, req->addr, req->tag, req->ignore,
			&req->op);
}

/*
 * References to a communicator without atomic instructions, and without Open MPI's test for
 * threads: without MPI_THREAD_MULTIPLE one thread counts them.
 */
static inline int32_t *pml_comm_refs(struct ompi_communicator_t *comm)
{
	return (int32_t *)(uintptr_t) & ((opal_object_t *)comm)->obj_reference_count;
}

struct pml_request *pml_request_get_cold(opal_free_list_t *list, struct ompi_communicator_t *comm);

/** Sets *req to the request that pml_request_take() takes. Returns false: none. Without threads. */
static inline bool pml_request_first(opal_free_list_t *list, struct pml_request **req)
{
	*req = (struct pml_request *)list->super.opal_lifo_head.data.item;
	return !opal_lifo_is_empty(&list->super);
}

/** Takes the first request, which has its initial values, but for the communicator. */
static inline void pml_request_take(opal_free_list_t *list, struct pml_request *req,
				    struct ompi_communicator_t *comm)
{
	opal_list_item_t *item = &req->base.req_ompi.super.super;

	pml_compat_lifo_set(&list->super, (opal_list_item_t *)item->opal_list_next);
	++*pml_comm_refs(comm);
	req->base.req_comm = comm;
	req->base.req_ompi.req_mpi_object.comm = comm;
}

/** Returns a request as pml_request_take(), or NULL: no memory. */
static inline struct pml_request *pml_request_get(opal_free_list_t *list,
						  struct ompi_communicator_t *comm)
{
	struct pml_request *req;

	if (OPAL_UNLIKELY(pml.threads || !pml_request_first(list, &req)))
		return pml_request_get_cold(list, comm);
	pml_request_take(list, req, comm);
	return req;
}

/** Returns a request to its list, with all that it holds. */
static inline void pml_request_return(struct pml_request *req)
{
	struct ompi_communicator_t *comm = req->base.req_comm;
	struct ompi_request_t *r = pml_request_ompi(req);
	opal_lifo_t *lifo = &req->list->super;

	if (OPAL_UNLIKELY(req->special || r->req_f_to_c_index != MPI_UNDEFINED)) {
		pml_request_return_cold(req);
		return;
	}
	r->req_state = OMPI_REQUEST_INVALID;
	r->super.super.opal_list_next = (opal_list_item_t *)lifo->opal_lifo_head.data.item;
	pml_compat_lifo_set(lifo, &r->super.super);
	if (OPAL_UNLIKELY(--*pml_comm_refs(comm) == 0))
		pml_request_release_comm(comm);
}

/** Makes a request that was just taken from its list one that is on its way. */
static inline void pml_request_begin(struct pml_request *req)
{
	struct ompi_request_t *r = pml_request_ompi(req);

	r->req_complete = REQUEST_PENDING;
	r->req_state = OMPI_REQUEST_ACTIVE;
}

/** Makes a request that may have ended before one that is on its way. */
static inline void pml_request_activate(struct pml_request *req)
{
	struct ompi_request_t *r = pml_request_ompi(req);

	pml_request_begin(req);
	req->state = PML_ACTIVE;
	r->req_status.MPI_ERROR = OMPI_SUCCESS;
	r->req_status._cancelled = 0;
}

/** Tag of requests that debuggers hide: negative, and not MPI_ANY_TAG. */
#define PML_INTERNAL_TAG (-2)

/** Notes what was sent or received, for debuggers. */
static inline void pml_request_describe(struct pml_request *req, const void *buf, size_t count,
					struct ompi_datatype_t *type)
{
	req->base.req_addr = (void *)(uintptr_t)buf;
	req->base.req_count = count;
	req->base.req_datatype = type;
}

/** Ends a request; its status is set. The user may have it back the moment this is seen. */
static inline void pml_request_done(struct pml_request *req)
{
	struct ompi_request_t *r = pml_request_ompi(req);
	ompi_wait_sync_t *waiter;

	if (OPAL_UNLIKELY(req->special || r->req_complete_cb)) {
		pml_request_done_cold(req);
		return;
	}
	waiter = (ompi_wait_sync_t *)r->req_complete;
	r->req_complete = REQUEST_COMPLETED;
	if (OPAL_UNLIKELY(waiter != REQUEST_PENDING))
		wait_sync_update(waiter, 1, r->req_status.MPI_ERROR);
}

/** Ends a receive with the tag and length that the provider reports. */
static inline void pml_recv_done(struct pml_request *req, uint64_t tag, size_t len, int mpi_error)
{
	ompi_status_public_t *status = &req->base.req_ompi.req_status;

	status->MPI_SOURCE = pml_tag_source(tag);
	status->MPI_TAG = pml_tag_user(tag);
	if (mpi_error != OMPI_SUCCESS)
		status->MPI_ERROR = mpi_error; /* else it is what it was at the start */
	status->_ucount = len;
	if (OPAL_UNLIKELY(req->special || (tag & PML_TAG_SYNC)))
		pml_recv_done_cold(req, tag, len);
	else
		pml_request_done(req);
}

#endif
