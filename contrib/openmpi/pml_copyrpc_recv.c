/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Receives: blocking, nonblocking and persistent, and their completion.
 *
 * Data that is one run of bytes arrives where the user wants it. Other data arrives in a buffer of
 * the request and is unpacked when it is complete.
 */
#include <stdlib.h>

#include "pml_copyrpc_request.h"

/** Messages that a receive or probe takes: tag, bits of it that are ignored, and source. */
struct recv_target {
	uint64_t bits, ignore;
	fi_addr_t addr;
};

/*
 * Sets the target of a receive. Returns false if its source is not looked up yet. `general`: for
 * any tag, and for receives that are not directed; otherwise returns false for a tag that is
 * folded.
 */
static __opal_attribute_always_inline__ inline bool recv_target_set(struct recv_target *target,
								    const struct pml_comm *comm,
								    int src, int tag, bool general)
{
	target->bits = comm->context;
	target->ignore = PML_TAG_SYNC;
	target->addr = FI_ADDR_UNSPEC;
	if (OPAL_LIKELY(tag >= 0))
		target->bits |= (uint32_t)tag;
	else if (tag == MPI_ANY_TAG)
		target->ignore |= PML_ANY_TAG_MASK;
	else if (pml_tag_is_kept(tag))
		target->bits |= pml_tag_bits_kept(tag);
	else if (general)
		target->bits |= pml_tag_bits(tag);
	else
		return false;
	if (OPAL_UNLIKELY(src == MPI_ANY_SOURCE)) {
		target->ignore |= PML_SOURCE_MASK;
		return true;
	}
	target->bits |= (uint64_t)(uint32_t)src << PML_SOURCE_SHIFT;
	if (general && !pml.directed)
		return true;
	if (OPAL_UNLIKELY(comm->peers[src] == NULL))
		return false;
	target->addr = comm->peers[src]->addr;
	return true;
}

/* Sets what debuggers read of the target. */
static inline void recv_describe(struct pml_request *req, int src, int tag)
{
	req->base.req_peer = src;
	req->base.req_tag = tag;
	req->base.req_ompi.req_status.MPI_TAG = MPI_ANY_TAG; /* not matched */
}

/** Aims a receive or probe. */
void pml_recv_target(struct pml_request *req, int src, int tag)
{
	struct recv_target target;

	if (src != MPI_ANY_SOURCE && pml.directed)
		(void)pml_peer_of(req->base.req_comm, src); /* looks it up */
	(void)recv_target_set(&target, pml_comm_of(req->base.req_comm), src, tag, true);
	recv_describe(req, src, tag);
	req->tag = target.bits;
	req->ignore = target.ignore;
	req->addr = target.addr;
}

static int recv_prepare_unpack(struct pml_request *req, void *buf, size_t count,
			       struct ompi_datatype_t *type)
{
	if (!req->holds_type) {
		OMPI_DATATYPE_RETAIN(type);
		req->holds_type = true;
		req->base.req_datatype = type;
	}
	req->special = true;
	req->buf = malloc(req->len ? req->len : 1);
	if (!req->buf)
		return OMPI_ERR_OUT_OF_RESOURCE;
	req->packed = PML_PACKED_HEAP;
	req->convertor_used = true;
	return opal_convertor_copy_and_prepare_for_recv(ompi_mpi_local_convertor, &type->super,
							count, buf, 0, &req->base.req_convertor);
}

/* Sets where the bytes of a receive arrive. */
static inline int recv_prepare(struct pml_request *req, void *buf, size_t count,
			       struct ompi_datatype_t *type)
{
	req->len = count * type->super.size;
	if (OPAL_UNLIKELY(!pml_dtype_contiguous(type, count)))
		return recv_prepare_unpack(req, buf, count, type);
	req->buf = (char *)buf + type->super.true_lb;
	return OMPI_SUCCESS;
}

/** Posts a receive with flags: the claim of a message that MPI_Mprobe() has found. */
ssize_t pml_recv_post_flags(struct pml_request *req)
{
	struct iovec iov = { .iov_base = req->buf, .iov_len = req->len };
	struct fi_msg_tagged msg = {
		.msg_iov = &iov,
		.iov_count = 1,
		.addr = req->addr,
		.tag = req->tag,
		.ignore = req->ignore,
		.context = &req->op,
	};

	return fi_trecvmsg(pml.ep, &msg, req->flags);
}

static int recv_refused(struct pml_request *req, ssize_t error)
{
	return error == -FI_EAGAIN ? pml_deferred_recv(req) : pml_request_errno(error, "fi_trecv");
}

/* Posts a receive that is prepared, or queues it behind those that the provider refused. */
static inline int recv_begin(struct pml_request *req)
{
	ssize_t rc;

	if (OPAL_UNLIKELY(pml.deferred_recv_cnt != 0))
		return pml_deferred_recv(req);
	rc = pml_recv_post(req);
	return OPAL_LIKELY(rc == 0) ? OMPI_SUCCESS : recv_refused(req, rc);
}

static void recv_finish_packed(struct pml_request *req, size_t len)
{
	ompi_status_public_t *status = &req->base.req_ompi.req_status;

	if (pml_dtype_unpack(req, len) != OMPI_SUCCESS && status->MPI_ERROR == OMPI_SUCCESS)
		status->MPI_ERROR = MPI_ERR_TRUNCATE;
}

/** Ends a receive whose status is set: of a packed or a synchronous message. */
void pml_recv_done_cold(struct pml_request *req, uint64_t tag, size_t len)
{
	if (req->convertor_used)
		recv_finish_packed(req, len);
	if (tag & PML_TAG_SYNC)
		pml_sync_acknowledge(req, tag);
	pml_request_done(req);
}

static __opal_attribute_always_inline__ inline struct pml_request *recv_new(
	int src, int tag, struct ompi_communicator_t *comm)
{
	struct pml_request *req = pml_request_get(&mca_pml_base_recv_requests, comm);

	if (OPAL_UNLIKELY(req == NULL))
		return NULL;
	pml_recv_target(req, src, tag);
	return req;
}

/* Receives what pml_recv_irecv() does not. */
static __opal_attribute_noinline__ int recv_irecv_general(void *buf, size_t count,
							  struct ompi_datatype_t *type, int src,
							  int tag, struct ompi_communicator_t *comm,
							  struct ompi_request_t **request)
{
	struct pml_request *req = recv_new(src, tag, comm);
	int rc;

	if (OPAL_UNLIKELY(req == NULL))
		return OMPI_ERR_OUT_OF_RESOURCE;
	pml_request_begin(req);
	pml_request_describe(req, buf, count, type);
	rc = recv_prepare(req, buf, count, type);
	if (OPAL_LIKELY(rc == OMPI_SUCCESS))
		rc = recv_begin(req);
	if (OPAL_UNLIKELY(rc != OMPI_SUCCESS)) {
		pml_request_return(req);
		return rc;
	}
	*request = pml_request_ompi(req);
	return OMPI_SUCCESS;
}

/*
 * Ends a call with a request that pml_recv_irecv() has taken: the provider refused it with `error`,
 * or it was not posted yet (0). Sets what the request needs for another try.
 */
static __opal_attribute_noinline__ int recv_irecv_taken(struct ompi_request_t **request,
							ssize_t error)
{
	struct pml_request *req = (struct pml_request *)*request;
	mca_pml_base_request_t *b = &req->base;
	int rc;

	pml_recv_target(req, b->req_peer, b->req_tag);
	rc = recv_prepare(req, b->req_addr, b->req_count, b->req_datatype);
	if (rc == OMPI_SUCCESS)
		rc = error ? recv_refused(req, error) : recv_begin(req);
	if (rc != OMPI_SUCCESS) {
		pml_request_return(req);
		*request = MPI_REQUEST_NULL;
	}
	return rc;
}

/*
 * Posts a receive. The request is described before the target is computed, and is in the caller's
 * variable before the provider's call: what a rare case needs then is in memory, and occupies no
 * registers.
 */
int pml_recv_irecv(void *buf, size_t count, struct ompi_datatype_t *type, int src, int tag,
		   struct ompi_communicator_t *comm, struct ompi_request_t **request)
{
	const struct pml_comm *state = pml_comm_of(comm);
	struct recv_target target;
	struct pml_request *req;
	size_t len;
	ssize_t rc;

	if (OPAL_UNLIKELY(pml.recv_detours != 0 || !pml_dtype_contiguous(type, count) ||
			  !pml_request_first(&mca_pml_base_recv_requests, &req)))
		return recv_irecv_general(buf, count, type, src, tag, comm, request);
	pml_request_take(&mca_pml_base_recv_requests, req, comm);
	pml_request_begin(req);
	pml_request_describe(req, buf, count, type);
	recv_describe(req, src, tag);
	len = count * type->super.size;
	buf = (char *)buf + type->super.true_lb;
	req->len = len;
	*request = pml_request_ompi(req);
	PML_KEEP(request);
	if (OPAL_UNLIKELY(!recv_target_set(&target, state, src, tag, false)))
		return recv_irecv_taken(request, 0);
	rc = fi_trecv(pml.ep, buf, len, NULL, target.addr, target.bits, target.ignore, &req->op);
	return OPAL_LIKELY(rc == 0) ? OMPI_SUCCESS : recv_irecv_taken(request, rc);
}

int pml_recv_recv(void *buf, size_t count, struct ompi_datatype_t *type, int src, int tag,
		  struct ompi_communicator_t *comm, ompi_status_public_t *status)
{
	struct ompi_request_t *request;
	int rc = pml_recv_irecv(buf, count, type, src, tag, comm, &request);

	if (rc != OMPI_SUCCESS)
		return rc;
	return pml_request_wait((struct pml_request *)request, status);
}

/** Makes a persistent request; pml_start() posts it. */
int pml_recv_irecv_init(void *buf, size_t count, struct ompi_datatype_t *type, int src, int tag,
			struct ompi_communicator_t *comm, struct ompi_request_t **request)
{
	struct pml_request *req = recv_new(src, tag, comm);

	if (!req)
		return OMPI_ERR_OUT_OF_RESOURCE;
	OMPI_DATATYPE_RETAIN(type);
	req->holds_type = req->special = true;
	req->state = PML_DONE;
	pml_request_describe(req, buf, count, type);
	OMPI_REQUEST_INIT(pml_request_ompi(req), true);
	*request = pml_request_ompi(req);
	return OMPI_SUCCESS;
}

/** Posts a persistent receive, or one that a matched probe has aimed. */
int pml_recv_start(struct pml_request *req, void *buf, size_t count, struct ompi_datatype_t *type)
{
	int rc;

	if (!req->holds_type)
		pml_request_describe(req, buf, count, type);
	req->base.req_ompi.req_status.MPI_TAG = MPI_ANY_TAG;
	rc = recv_prepare(req, buf, count, type);
	return rc == OMPI_SUCCESS ? recv_begin(req) : rc;
}
