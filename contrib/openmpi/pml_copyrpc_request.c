/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Free lists of requests, and the calls of Open MPI on a request: free and cancel.
 *
 * Completion and MPI_Request_free() may meet in two threads: the state is swapped atomically, and
 * the second of the two returns the request.
 */
#include "pml_copyrpc_request.h"

/* Counts sends in flight that no user waits for: MPI_Finalize() does. */
static void request_count_internal(const struct pml_request *req, int32_t by)
{
	if (req->base.req_type == MCA_PML_REQUEST_SEND)
		__atomic_add_fetch(&pml.internal, by, __ATOMIC_RELAXED);
}

static int request_free(struct ompi_request_t **request)
{
	struct pml_request *req = (struct pml_request *)*request;
	int32_t old;

	*request = MPI_REQUEST_NULL;
	if (!pml.threads && REQUEST_COMPLETE(pml_request_ompi(req))) {
		pml_request_return(req);
		return OMPI_SUCCESS;
	}
	request_count_internal(req, 1);
	req->special = true;
	old = __atomic_exchange_n(&req->state, PML_FREED, __ATOMIC_ACQ_REL);
	if (old == PML_ACTIVE)
		return OMPI_SUCCESS;
	request_count_internal(req, -1);
	/* The completing thread has swapped the state and has yet to publish the completion. */
	while (old == PML_DONE && !REQUEST_COMPLETE(pml_request_ompi(req)))
		opal_atomic_rmb();
	pml_request_return(req);
	return OMPI_SUCCESS;
}

/*
 * A send completes, cancelled or not. A receive may have matched already: then nothing happens. One
 * with flags has: it claims a message that a probe has found, which it may do later if the provider
 * refused it. Progress takes the completion: a program may call nothing else, but free the request
 * and begin another.
 */
static int request_cancel(struct ompi_request_t *request, int flag)
{
	struct pml_request *req = (struct pml_request *)request;

	if (req->base.req_type != MCA_PML_REQUEST_RECV || req->state != PML_ACTIVE ||
	    req->flags != 0 || REQUEST_COMPLETE(request))
		return OMPI_SUCCESS;
	if (!pml_deferred_cancel(req)) {
		(void)fi_cancel(&pml.ep->fid, &req->op);
		(void)pml_progress();
		pml_let_go();
	}
	return OMPI_SUCCESS;
}

static void request_construct(struct pml_request *req)
{
	struct ompi_request_t *r = pml_request_ompi(req);

	r->req_type = OMPI_REQUEST_PML;
	r->req_free = request_free;
	r->req_cancel = request_cancel;
	r->req_start = pml_start;
	OMPI_REQUEST_INIT(r, false);
	r->req_state = OMPI_REQUEST_INVALID; /* debuggers pass over it */
	r->req_status.MPI_ERROR = OMPI_SUCCESS;
	r->req_status._cancelled = 0;
	OBJ_CONSTRUCT(&req->base.req_convertor, opal_convertor_t);
	req->base.req_comm = NULL;
	pml_request_describe(req, NULL, 0, &ompi_mpi_byte.dt);
	req->base.req_pml_complete = false;
	req->base.req_free_called = false;
	req->state = PML_ACTIVE;
	req->packed = PML_PACKED_NONE;
	req->holds_type = req->convertor_used = req->deferred = false;
	req->special = pml.threads;
	req->flags = 0;
	req->ack.kind = PML_OP_ACK;
}

static void send_request_construct(struct pml_request *req)
{
	request_construct(req);
	req->base.req_type = MCA_PML_REQUEST_SEND;
	req->list = &mca_pml_base_send_requests;
	req->op.kind = PML_OP_SEND;
}

static void recv_request_construct(struct pml_request *req)
{
	request_construct(req);
	req->base.req_type = MCA_PML_REQUEST_RECV;
	req->list = &mca_pml_base_recv_requests;
	req->op.kind = PML_OP_RECV;
}

OBJ_CLASS_INSTANCE(pml_send_request_t, mca_pml_base_request_t, send_request_construct, NULL);
OBJ_CLASS_INSTANCE(pml_recv_request_t, mca_pml_base_request_t, recv_request_construct, NULL);

static int list_init(opal_free_list_t *list, opal_class_t *class)
{
	return opal_free_list_init(list, sizeof(struct pml_request), opal_cache_line_size, class, 0,
				   opal_cache_line_size, 64, -1, 64, NULL, 0, NULL, NULL, NULL);
}

int pml_request_lists_init(void)
{
	int rc = list_init(&mca_pml_base_send_requests, OBJ_CLASS(pml_send_request_t));

	if (rc == OMPI_SUCCESS)
		rc = list_init(&mca_pml_base_recv_requests, OBJ_CLASS(pml_recv_request_t));
	return rc;
}

/** Returns a request: with threads, or from a list that has to grow. */
struct pml_request *pml_request_get_cold(opal_free_list_t *list, struct ompi_communicator_t *comm)
{
	opal_free_list_item_t *item =
		pml.threads ? opal_free_list_get_mt(list) : opal_free_list_get_st(list);
	struct pml_request *req = (struct pml_request *)item;

	if (req == NULL)
		return NULL;
	OBJ_RETAIN(comm);
	req->base.req_comm = comm;
	req->base.req_ompi.req_mpi_object.comm = comm;
	return req;
}

/** Ends a communicator whose last reference was given back. */
void pml_request_release_comm(struct ompi_communicator_t *comm)
{
	*pml_comm_refs(comm) = 1;
	OBJ_RELEASE(comm);
}

static void request_drop_packed(struct pml_request *req)
{
	if (req->packed == PML_PACKED_HEAP)
		free(req->buf);
	else if (req->packed == PML_PACKED_BSEND)
		mca_pml_base_bsend_request_free(req->buf);
	req->packed = PML_PACKED_NONE;
	req->buf = NULL;
}

/** Gives back what the last transfer of a request needed; a persistent one may start again. */
void pml_request_drop_transfer(struct pml_request *req)
{
	if (req->packed != PML_PACKED_NONE)
		request_drop_packed(req);
	if (req->convertor_used)
		opal_convertor_cleanup(&req->base.req_convertor);
	req->convertor_used = false;
}

/* Gives back what a request holds, and resets what is not its initial value. */
static void request_reset(struct pml_request *req)
{
	struct ompi_request_t *r = pml_request_ompi(req);

	pml_request_drop_transfer(req);
	if (req->holds_type) {
		req->holds_type = false;
		OMPI_DATATYPE_RELEASE(req->base.req_datatype);
		OMPI_REQUEST_INIT(r, false);
	}
	r->req_status.MPI_ERROR = OMPI_SUCCESS;
	r->req_status._cancelled = 0;
	req->flags = 0;
	req->special = pml.threads;
}

/** Returns a special request to its list, or any with threads. */
void pml_request_return_cold(struct pml_request *req)
{
	struct ompi_communicator_t *comm = req->base.req_comm;

	request_reset(req);
	OMPI_REQUEST_FINI(pml_request_ompi(req));
	req->state = PML_ACTIVE;
	if (pml.threads)
		opal_free_list_return_mt(req->list, &req->base.req_ompi.super);
	else
		opal_free_list_return_st(req->list, &req->base.req_ompi.super);
	OBJ_RELEASE(comm);
}

/** Completion with a callback, or of a special request. */
void pml_request_done_cold(struct pml_request *req)
{
	struct ompi_request_t *r = pml_request_ompi(req);
	int32_t old;

	pml_request_drop_transfer(req);
	if (r->req_complete_cb && req->state == PML_ACTIVE) {
		req->special = true;
		req->state = PML_IN_CALLBACK;
		ompi_request_complete(r, true);
		return;
	}
	old = __atomic_exchange_n(&req->state, PML_DONE, __ATOMIC_ACQ_REL);
	if (old == PML_FREED) {
		request_count_internal(req, -1);
		pml_request_return(req);
		return;
	}
	ompi_request_complete(r, true);
}

/** Ends a request with an MPI error class. */
void pml_request_fail(struct pml_request *req, int mpi_error)
{
	req->special = true;
	req->base.req_ompi.req_status.MPI_ERROR = mpi_error;
	req->base.req_ompi.req_status._ucount = 0;
	pml_request_done(req);
}

/** Returns the MPI error class of a libfabric error, after a line that says what failed. */
int pml_request_errno(ssize_t rc, const char *what)
{
	if (rc == -FI_ENOMEM)
		return OMPI_ERR_OUT_OF_RESOURCE;
	opal_output(0, "pml copyrpc: %s: %s", what, fi_strerror((int)-rc));
	return MPI_ERR_OTHER;
}

/** Waits for a request that only this call knows, frees it and returns its error. */
int pml_request_wait(struct pml_request *req, ompi_status_public_t *status)
{
	struct ompi_request_t *r = pml_request_ompi(req);
	int error;

	pml_wait_for(r);
	pml_let_go();
	if (status != MPI_STATUS_IGNORE)
		OMPI_COPY_STATUS(status, r->req_status, false);
	error = r->req_status.MPI_ERROR;
	(void)request_free(&r);
	return error;
}
