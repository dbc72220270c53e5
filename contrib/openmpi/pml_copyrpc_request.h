/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One send, receive or probe: its layout, life and completion.
 *
 * Requests come from Open MPI's own free lists of sends and receives, where its debugger interface
 * looks for them. A request is ACTIVE from its start until its last completion, then DONE. The user
 * may free it before (FREED): then the completion returns it to its list. Requests that no user
 * sees (buffered sends, acknowledgements) begin as FREED. While a completion callback of Open MPI
 * runs, the request is IN_CALLBACK: the callback may free it or start it again.
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
	struct pml_op op;

	void *buf; /**< memory that libfabric reads or writes: the user's, or packed bytes */
	size_t len;
	uint64_t tag, ignore;
	fi_addr_t addr;
	uint64_t flags; /**< of fi_trecvmsg(); 0: fi_trecv() */
	struct pml_peer *peer;
	opal_free_list_t *list;

	volatile int32_t state; /**< enum pml_state */
	int32_t parts;          /**< completions that are missing: 2 for a synchronous send */
	uint8_t packed;         /**< enum pml_packed */
	bool holds_type;        /**< base.req_datatype is retained */
	bool convertor_used;
	bool holds;    /**< false: none of the three before */
	bool deferred; /**< in a list of pml_copyrpc_deferred.c */
	bool found;    /**< result of a probe */
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
void pml_request_return(struct pml_request *req);
void pml_request_done_cold(struct pml_request *req);
void pml_request_fail(struct pml_request *req, int mpi_error);
int pml_request_errno(ssize_t rc, const char *what);
int pml_request_wait(struct pml_request *req, ompi_status_public_t *status);

/* pml_copyrpc_wait.c */
bool pml_wait_poll(struct ompi_request_t *r);
void pml_wait_replace(void);
void pml_wait_restore(void);

/* pml_copyrpc_send.c */
int pml_send_internal(struct pml_request *req);
int pml_send_start(struct pml_request *req);

/* pml_copyrpc_progress.c */
void pml_send_failed(struct pml_request *req);

/* pml_copyrpc_recv.c */
void pml_recv_target(struct pml_request *req, int src, int tag);
void pml_recv_done(struct pml_request *req, uint64_t tag, size_t len, int mpi_error);
int pml_recv_start(struct pml_request *req, void *buf, size_t count, struct ompi_datatype_t *type);

/* pml_copyrpc_dtype.c */
int pml_dtype_pack_to(const void *buf, size_t count, struct ompi_datatype_t *type, void *to,
		      size_t len);
int pml_dtype_pack(struct pml_request *req, const void *buf, size_t count,
		   struct ompi_datatype_t *type);
int pml_dtype_unpack(struct pml_request *req, size_t len);

/* pml_copyrpc_sync.c */
int pml_sync_begin(struct pml_request *req);
void pml_sync_acknowledge(struct pml_request *req, uint64_t tag);

/* pml_copyrpc_deferred.c */
int pml_deferred_send(struct pml_request *req);
int pml_deferred_recv(struct pml_request *req);
bool pml_deferred_cancel(struct pml_request *req);
void pml_deferred_run(void);

/** Hands the send to the provider. Returns 0, -FI_EAGAIN or another error. */
static inline ssize_t pml_send_post(struct pml_request *req)
{
	return fi_tsend(pml.ep, req->buf, req->len, NULL, req->addr, req->tag, &req->op);
}

ssize_t pml_recv_post_flags(struct pml_request *req);

static inline ssize_t pml_recv_post(struct pml_request *req)
{
	if (OPAL_UNLIKELY(req->flags != 0))
		return pml_recv_post_flags(req);
	return fi_trecv(pml.ep, req->buf, req->len, NULL, req->addr, req->tag, req->ignore,
			&req->op);
}

static inline struct pml_request *pml_request_get(opal_free_list_t *list,
						  struct ompi_communicator_t *comm)
{
	opal_free_list_item_t *item = OPAL_UNLIKELY(pml.threads) ? opal_free_list_get_mt(list)
								 : opal_free_list_get_st(list);
	struct pml_request *req = (struct pml_request *)item;

	if (OPAL_UNLIKELY(req == NULL))
		return NULL;
	OBJ_RETAIN(comm);
	req->base.req_comm = comm;
	req->base.req_ompi.req_mpi_object.comm = comm;
	return req;
}

/** Makes a request, new or persistent, one that is on its way. */
static inline void pml_request_activate(struct pml_request *req)
{
	struct ompi_request_t *r = pml_request_ompi(req);

	req->state = PML_ACTIVE;
	req->parts = 1;
	r->req_complete = REQUEST_PENDING;
	r->req_state = OMPI_REQUEST_ACTIVE;
	r->req_status.MPI_ERROR = OMPI_SUCCESS;
	r->req_status._cancelled = 0;
}

/** Ends a request; its status is set. The user may have it back the moment this is seen. */
static inline void pml_request_done(struct pml_request *req)
{
	struct ompi_request_t *r = pml_request_ompi(req);
	ompi_wait_sync_t *waiter;

	if (OPAL_UNLIKELY(pml.threads || req->state != PML_ACTIVE || r->req_complete_cb)) {
		pml_request_done_cold(req);
		return;
	}
	req->state = PML_DONE;
	waiter = (ompi_wait_sync_t *)r->req_complete;
	r->req_complete = REQUEST_COMPLETED;
	if (waiter != REQUEST_PENDING)
		wait_sync_update(waiter, 1, r->req_status.MPI_ERROR);
}

#endif
