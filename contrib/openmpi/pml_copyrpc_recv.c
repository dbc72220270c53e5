/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Receives: blocking, nonblocking and persistent, and their completion.
 *
 * Data that is one run of bytes arrives where the user wants it. Other data arrives in a buffer of
 * the request and is unpacked when it is complete.
 */
#include <stdlib.h>

#include "pml_copyrpc_request.h"

static inline fi_addr_t recv_source(struct ompi_communicator_t *comm, int src)
{
	struct pml_peer *peer = pml_peer_of(comm, src);

	return OPAL_LIKELY(peer != NULL) ? peer->addr : FI_ADDR_UNSPEC;
}

/* Sets tag, ignored bits and source of a receive or probe. */
static __opal_attribute_always_inline__ inline void recv_target(struct pml_request *req, int src,
								int tag)
{
	struct ompi_communicator_t *comm = req->base.req_comm;
	uint64_t bits = pml_comm_of(comm)->context, ignore = PML_TAG_SYNC;
	fi_addr_t addr = FI_ADDR_UNSPEC;

	if (OPAL_LIKELY(tag != MPI_ANY_TAG))
		bits |= pml_tag_bits(tag);
	else
		ignore |= PML_ANY_TAG_MASK;
	if (OPAL_LIKELY(src != MPI_ANY_SOURCE)) {
		bits |= (uint64_t)(uint32_t)src << PML_SOURCE_SHIFT;
		if (pml.directed)
			addr = recv_source(comm, src);
	} else {
		ignore |= PML_SOURCE_MASK;
	}
	req->base.req_peer = src;
	req->base.req_tag = tag;
	req->tag = bits;
	req->ignore = ignore;
	req->addr = addr;
}

static int recv_prepare_unpack(struct pml_request *req, void *buf, size_t count,
			       struct ompi_datatype_t *type)
{
	if (!req->holds_type) {
		OMPI_DATATYPE_RETAIN(type);
		req->holds_type = true;
		req->base.req_datatype = type;
	}
	req->holds = true;
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

/* Posts a receive that is prepared, or queues it behind those that the provider refused. */
static inline int recv_begin(struct pml_request *req)
{
	ssize_t rc;

	if (OPAL_UNLIKELY(pml.deferred_recv_cnt != 0))
		return pml_deferred_recv(req);
	rc = pml_recv_post(req);
	if (OPAL_LIKELY(rc == 0))
		return OMPI_SUCCESS;
	return rc == -FI_EAGAIN ? pml_deferred_recv(req) : pml_request_errno(rc, "fi_trecv");
}

static void recv_finish_packed(struct pml_request *req, size_t len)
{
	ompi_status_public_t *status = &req->base.req_ompi.req_status;

	if (pml_dtype_unpack(req, len) != OMPI_SUCCESS && status->MPI_ERROR == OMPI_SUCCESS)
		status->MPI_ERROR = MPI_ERR_TRUNCATE;
}

/** Ends a receive with the tag and length that the provider reports. */
void pml_recv_done(struct pml_request *req, uint64_t tag, size_t len, int mpi_error)
{
	ompi_status_public_t *status = &req->base.req_ompi.req_status;

	status->MPI_SOURCE = pml_tag_source(tag);
	status->MPI_TAG = pml_tag_user(tag);
	status->MPI_ERROR = mpi_error;
	status->_ucount = len;
	if (OPAL_UNLIKELY(req->convertor_used))
		recv_finish_packed(req, len);
	if (OPAL_UNLIKELY(tag & PML_TAG_SYNC))
		pml_sync_acknowledge(req, tag);
	pml_request_done(req);
}

static __opal_attribute_always_inline__ inline struct pml_request *recv_new(
	int src, int tag, struct ompi_communicator_t *comm)
{
	struct pml_request *req = pml_request_get(&mca_pml_base_recv_requests, comm);

	if (OPAL_UNLIKELY(req == NULL))
		return NULL;
	req->op.kind = PML_OP_RECV;
	req->flags = 0;
	recv_target(req, src, tag);
	return req;
}

int pml_recv_irecv(void *buf, size_t count, struct ompi_datatype_t *type, int src, int tag,
		   struct ompi_communicator_t *comm, struct ompi_request_t **request)
{
	struct pml_request *req = recv_new(src, tag, comm);
	int rc;

	if (OPAL_UNLIKELY(req == NULL))
		return OMPI_ERR_OUT_OF_RESOURCE;
	pml_request_activate(req);
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
	req->holds_type = req->holds = true;
	req->base.req_datatype = type;
	req->base.req_addr = buf;
	req->base.req_count = count;
	OMPI_REQUEST_INIT(pml_request_ompi(req), true);
	*request = pml_request_ompi(req);
	return OMPI_SUCCESS;
}

/** Aims a probe. */
void pml_recv_target(struct pml_request *req, int src, int tag)
{
	recv_target(req, src, tag);
}

/** Posts a persistent receive, or one that a matched probe has aimed. */
int pml_recv_start(struct pml_request *req, void *buf, size_t count, struct ompi_datatype_t *type)
{
	int rc = recv_prepare(req, buf, count, type);

	return rc == OMPI_SUCCESS ? recv_begin(req) : rc;
}
