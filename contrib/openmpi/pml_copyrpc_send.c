/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sends: standard, ready, synchronous and buffered; blocking, nonblocking and persistent.
 *
 * A message leaves by fi_tsend(), which lets the provider batch it with the next ones. One that can
 * be injected has no request: a nonblocking one goes to an alias of the endpoint that writes no
 * completion, and may be held by the provider until the next progress, which all calls that wait or
 * test make first (pml_copyrpc_wait.c). A blocking one leaves at once. A buffered send is copied
 * into the user's attached buffer and completes at once; a request that no user sees owns the copy.
 */
#include "pml_copyrpc_request.h"

/** Bytes of a derived type that are packed on the stack, if the provider injects that many. */
#define SEND_STACK_MAX 256

/*
 * Begins a prepared send by `ep`. Returns OMPI_SUCCESS, also when the message waits because the
 * provider takes no more, or an error; then the request is as before.
 */
static inline int send_begin(struct pml_request *req, struct fid_ep *ep)
{
	ssize_t rc;

	if (OPAL_UNLIKELY(req->mode == MCA_PML_BASE_SEND_SYNCHRONOUS))
		return pml_sync_begin(req);
	if (OPAL_UNLIKELY(req->peer->deferred_cnt != 0))
		return pml_deferred_send(req);
	rc = pml_send_post_to(ep, req);
	if (OPAL_LIKELY(rc == 0))
		return OMPI_SUCCESS;
	return rc == -FI_EAGAIN ? pml_deferred_send(req) : pml_request_errno(rc, "fi_tsend");
}

/** Begins a send that no user waits for, and returns the request if that fails. */
int pml_send_internal(struct pml_request *req)
{
	int rc;

	pml_request_activate(req);
	req->state = PML_FREED;
	req->special = true;
	__atomic_add_fetch(&pml.internal, 1, __ATOMIC_RELAXED);
	rc = send_begin(req, pml.ep);
	if (rc != OMPI_SUCCESS) {
		__atomic_sub_fetch(&pml.internal, 1, __ATOMIC_RELAXED);
		pml_request_return(req);
		return rc;
	}
	pml_held = true; /* the user's send is complete, and this one may be in a batch */
	return OMPI_SUCCESS;
}

static __opal_attribute_always_inline__ inline struct pml_request *send_new(
	int dst, int tag, mca_pml_base_send_mode_t mode, struct ompi_communicator_t *comm)
{
	struct pml_peer *peer = pml_peer_of(comm, dst);
	struct pml_request *req;

	if (OPAL_UNLIKELY(peer == NULL))
		return NULL;
	req = pml_request_get(&mca_pml_base_send_requests, comm);
	if (OPAL_UNLIKELY(req == NULL))
		return NULL;
	pml_request_begin(req);
	req->peer = peer;
	req->addr = peer->addr;
	req->tag = pml_comm_of(comm)->source | pml_tag_bits(tag);
	req->mode = mode;
	req->base.req_peer = dst;
	req->base.req_tag = tag;
	/* osc/pt2pt reads both in its callbacks. */
	req->base.req_ompi.req_status.MPI_SOURCE = comm->c_my_rank;
	req->base.req_ompi.req_status.MPI_TAG = tag;
	return req;
}

/* Sets the bytes to send, packed where they are not in one run. */
static inline int send_prepare(struct pml_request *req, const void *buf, size_t count,
			       struct ompi_datatype_t *type)
{
	req->len = count * type->super.size;
	req->base.req_ompi.req_status._ucount = req->len;
	if (OPAL_LIKELY(pml_dtype_contiguous(type, count))) {
		req->buf = (char *)buf + type->super.true_lb;
		return OMPI_SUCCESS;
	}
	return pml_dtype_pack(req, buf, count, type);
}

static int send_buffered_copy(struct pml_request *req, const void *buf, size_t count,
			      struct ompi_datatype_t *type)
{
	req->len = count * type->super.size;
	if (req->len == 0)
		return OMPI_SUCCESS;
	req->buf = mca_pml_base_bsend_request_alloc_buf(req->len);
	if (!req->buf)
		return MPI_ERR_BUFFER;
	req->packed = PML_PACKED_BSEND;
	req->special = true;
	return pml_dtype_pack_to(buf, count, type, req->buf, req->len);
}

/* Copies the data into the attached buffer and sends it from there. */
static int send_buffered(const void *buf, size_t count, struct ompi_datatype_t *type, int dst,
			 int tag, struct ompi_communicator_t *comm)
{
	struct pml_request *req = send_new(dst, tag, MCA_PML_BASE_SEND_STANDARD, comm);
	int rc;

	if (!req)
		return OMPI_ERR_OUT_OF_RESOURCE;
	pml_request_describe(req, buf, count, type);
	rc = send_buffered_copy(req, buf, count, type);
	if (rc == OMPI_SUCCESS)
		return pml_send_internal(req);
	pml_request_return(req);
	return rc;
}

/* Sends by `ep` with a request: what is not injected. */
static __opal_attribute_noinline__ int send_isend_request(struct fid_ep *ep, const void *buf,
							  size_t count,
							  struct ompi_datatype_t *type, int dst,
							  int tag, mca_pml_base_send_mode_t mode,
							  struct ompi_communicator_t *comm,
							  struct ompi_request_t **request)
{
	struct pml_request *req = send_new(dst, tag, mode, comm);
	int rc;

	if (OPAL_UNLIKELY(req == NULL))
		return OMPI_ERR_OUT_OF_RESOURCE;
	pml_request_describe(req, buf, count, type);
	if (OPAL_UNLIKELY(mode == MCA_PML_BASE_SEND_BUFFERED)) {
		req->base.req_ompi.req_status._ucount = count * type->super.size;
		rc = send_buffered(buf, count, type, dst, tag, comm);
		if (rc == OMPI_SUCCESS)
			pml_request_done(req);
	} else {
		rc = send_prepare(req, buf, count, type);
		if (OPAL_LIKELY(rc == OMPI_SUCCESS))
			rc = send_begin(req, ep);
	}
	if (OPAL_UNLIKELY(rc != OMPI_SUCCESS)) {
		pml_request_return(req);
		return rc;
	}
	*request = pml_request_ompi(req);
	return OMPI_SUCCESS;
}

/*
 * Sends a message that needs no request. Returns false if it has to have one: it is long, its data
 * is in pieces, others wait before it, or the provider refused it.
 */
static __opal_attribute_always_inline__ inline bool send_silently(const void *buf, size_t count,
								  struct ompi_datatype_t *type,
								  int dst, uint64_t tag_bits,
								  const struct pml_comm *comm)
{
	const struct pml_peer *peer = comm->peers[dst];
	size_t len = count * type->super.size;

	if (OPAL_UNLIKELY(len >= pml.silent_end || peer == NULL || peer->deferred_cnt != 0 ||
			  !pml_dtype_contiguous(type, count)))
		return false;
	if (OPAL_UNLIKELY(fi_tsend(pml.silent_ep, (const char *)buf + type->super.true_lb, len,
				   NULL, peer->addr, comm->source | tag_bits, NULL) != 0))
		return false;
	pml_held = true;
	return true;
}

/* Returns true for a mode in which a message that is injected is complete. */
static inline bool send_mode_is_silent(mca_pml_base_send_mode_t mode)
{
	return OPAL_LIKELY(mode == MCA_PML_BASE_SEND_STANDARD || mode == MCA_PML_BASE_SEND_READY);
}

/* Sends in another mode, or with a tag whose bits are not kept: of a nonblocking collective. */
static __opal_attribute_noinline__ int send_isend_rare(const void *buf, size_t count,
						       struct ompi_datatype_t *type, int dst,
						       int tag, mca_pml_base_send_mode_t mode,
						       struct ompi_communicator_t *comm,
						       struct ompi_request_t **request)
{
	if (!send_mode_is_silent(mode) ||
	    !send_silently(buf, count, type, dst, pml_tag_bits(tag), pml_comm_of(comm)))
		return send_isend_request(pml.ep, buf, count, type, dst, tag, mode, comm, request);
	*request = &ompi_request_empty;
	return OMPI_SUCCESS;
}

/*
 * Arguments of a send, in memory during the call of the provider: in registers that survive it each
 * would cost every message a save, a move and a restore. The last two of MPI_Isend() are in memory
 * from the start.
 */
struct send_args {
	const void *buf;
	size_t count;
	struct ompi_datatype_t *type;
	int dst, tag;
};

/* Sends what has to have a request, in a mode that is silent. */
static __opal_attribute_noinline__ int send_isend_kept(const struct send_args *kept,
						       struct ompi_communicator_t *comm,
						       struct ompi_request_t **request)
{
	return send_isend_request(pml.ep, kept->buf, kept->count, kept->type, kept->dst, kept->tag,
				  MCA_PML_BASE_SEND_STANDARD, comm, request);
}

int pml_send_isend(const void *buf, size_t count, struct ompi_datatype_t *type, int dst, int tag,
		   mca_pml_base_send_mode_t mode, struct ompi_communicator_t *comm,
		   struct ompi_request_t **request)
{
	const struct pml_comm *state = pml_comm_of(comm);
	struct send_args kept;

	if (OPAL_UNLIKELY(!pml_tag_is_kept(tag) || !send_mode_is_silent(mode)))
		return send_isend_rare(buf, count, type, dst, tag, mode, comm, request);
	kept = (struct send_args){ buf, count, type, dst, tag };
	PML_KEEP(kept);
	PML_KEEP(comm);
	PML_KEEP(request);
	if (!send_silently(buf, count, type, dst, pml_tag_bits_kept(tag), state))
		return send_isend_kept(&kept, comm, request);
	*request = &ompi_request_empty;
	return OMPI_SUCCESS;
}

/* Returns 0, or -FI_EAGAIN if the message has to take the long way. */
static ssize_t send_inject(const void *buf, size_t count, struct ompi_datatype_t *type, int dst,
			   int tag, struct ompi_communicator_t *comm)
{
	size_t len = count * type->super.size;
	struct pml_peer *peer = pml_peer_of(comm, dst);
	char packed[SEND_STACK_MAX];

	if (len > pml.inject_size || OPAL_UNLIKELY(!peer || peer->deferred_cnt != 0))
		return -FI_EAGAIN;
	if (OPAL_LIKELY(pml_dtype_contiguous(type, count))) {
		buf = (const char *)buf + type->super.true_lb;
	} else {
		if (len > sizeof(packed) ||
		    pml_dtype_pack_to(buf, count, type, packed, len) != OMPI_SUCCESS)
			return -FI_EAGAIN;
		buf = packed;
	}
	return fi_tinject(pml.ep, buf, len, peer->addr,
			  pml_comm_of(comm)->source | pml_tag_bits(tag));
}

int pml_send_send(const void *buf, size_t count, struct ompi_datatype_t *type, int dst, int tag,
		  mca_pml_base_send_mode_t mode, struct ompi_communicator_t *comm)
{
	struct ompi_request_t *request;
	int rc;

	if (OPAL_UNLIKELY(mode == MCA_PML_BASE_SEND_BUFFERED)) {
		rc = send_buffered(buf, count, type, dst, tag, comm);
		pml_let_go();
		return rc;
	}
	if (mode != MCA_PML_BASE_SEND_SYNCHRONOUS &&
	    send_inject(buf, count, type, dst, tag, comm) == 0)
		return OMPI_SUCCESS;
	rc = send_isend_request(pml.blocking_ep, buf, count, type, dst, tag, mode, comm, &request);
	if (rc != OMPI_SUCCESS)
		return rc;
	return pml_request_wait((struct pml_request *)request, MPI_STATUS_IGNORE);
}

/** Makes a persistent request; pml_start() sends it. */
int pml_send_isend_init(const void *buf, size_t count, struct ompi_datatype_t *type, int dst,
			int tag, mca_pml_base_send_mode_t mode, struct ompi_communicator_t *comm,
			struct ompi_request_t **request)
{
	struct pml_request *req = send_new(dst, tag, mode, comm);

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

/** Sends what a persistent request names. A buffered one is done at once. */
int pml_send_start(struct pml_request *req)
{
	mca_pml_base_request_t *b = &req->base;
	int rc;

	if (req->mode == MCA_PML_BASE_SEND_BUFFERED) {
		rc = send_buffered(b->req_addr, b->req_count, b->req_datatype, b->req_peer,
				   b->req_tag, b->req_comm);
		if (rc == OMPI_SUCCESS)
			pml_request_done(req);
		return rc;
	}
	rc = send_prepare(req, b->req_addr, b->req_count, b->req_datatype);
	return rc == OMPI_SUCCESS ? send_begin(req, pml.ep) : rc;
}
