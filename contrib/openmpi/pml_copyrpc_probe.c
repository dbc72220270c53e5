/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Probes and matched receives, by FI_PEEK and FI_CLAIM. A matched probe keeps the request whose
 * context claimed the message, in ompi_message_t; the matched receive uses it again.
 *
 * A peek does not report the death of a rank: it looks at messages that have arrived. A directed
 * receive does, so a blocking probe of one rank that has waited for some time posts one, for a tag
 * that no message has, and cancels it at its end.
 */
#include "pml_copyrpc_request.h"

/* Peeks before a blocking probe posts that receive: about a millisecond. */
#define PROBE_PEEKS 1000

/*
 * Returns true if a receive that the provider has refused comes before a probe: the message that
 * the probe would find may be that of the receive.
 */
static bool peek_is_behind_recv(const struct pml_request *req)
{
	if (OPAL_LIKELY(pml.deferred_recv_cnt == 0))
		return false;
	pml_deferred_run();
	return pml_deferred_overlaps(req);
}

/* The completion of a peek comes with the next look at the queue, or another thread takes it. */
static int peek_post(struct pml_request *req)
{
	ssize_t rc = peek_is_behind_recv(req) ? -FI_EAGAIN : pml_recv_post_flags(req);

	if (rc == -FI_ENOMSG)
		return OMPI_SUCCESS;
	if (rc == -FI_EAGAIN) {
		pml_progress();
		return OMPI_SUCCESS;
	}
	if (rc)
		return pml_request_errno(rc, "fi_trecvmsg with FI_PEEK");
	while (__atomic_load_n(&req->state, __ATOMIC_ACQUIRE) == PML_ACTIVE)
		pml_progress();
	return OMPI_SUCCESS;
}

/*
 * Looks once. Sets found, and the status of the request if a message is there; sets rc to the error
 * of a peek that failed.
 */
static struct pml_request *peek(int src, int tag, struct ompi_communicator_t *comm, uint64_t flags,
				int *rc)
{
	struct pml_request *req = pml_request_get(&mca_pml_base_recv_requests, comm);

	*rc = OMPI_ERR_OUT_OF_RESOURCE;
	if (!req)
		return NULL;
	pml_request_activate(req);
	pml_request_describe(req, NULL, 0, &ompi_mpi_byte.dt);
	pml_recv_target(req, src, tag);
	req->op.kind = PML_OP_PEEK;
	req->flags = FI_PEEK | FI_COMPLETION | flags;
	req->found = false;
	req->buf = NULL;
	req->len = 0;
	*rc = peek_post(req);
	pml_let_go();
	if (*rc == OMPI_SUCCESS)
		*rc = req->base.req_ompi.req_status.MPI_ERROR;
	req->state = PML_ACTIVE;
	req->flags = 0;
	req->op.kind = PML_OP_RECV;
	return req;
}

/* Makes progress at the end of a call that found nothing. Collectives may send from it. */
static void probe_progress(void)
{
	opal_progress();
	pml_let_go();
}

static void probe_status(const struct pml_request *req, ompi_status_public_t *status)
{
	if (status != MPI_STATUS_IGNORE)
		OMPI_COPY_STATUS(status, req->base.req_ompi.req_status, false);
}

int pml_probe_iprobe(int src, int tag, struct ompi_communicator_t *comm, int *matched,
		     ompi_status_public_t *status)
{
	int rc;
	struct pml_request *req = peek(src, tag, comm, 0, &rc);

	*matched = 0;
	if (!req)
		return rc;
	*matched = req->found;
	if (req->found)
		probe_status(req, status);
	pml_request_return(req);
	if (!*matched)
		probe_progress();
	return rc;
}

static struct ompi_message_t *probe_message(struct pml_request *req)
{
	const ompi_status_public_t *status = &req->base.req_ompi.req_status;
	struct ompi_message_t *message = ompi_message_alloc();

	if (!message)
		return NULL;
	message->comm = req->base.req_comm;
	message->req_ptr = req;
	message->peer = status->MPI_SOURCE;
	message->count = status->_ucount;
	return message;
}

int pml_probe_improbe(int src, int tag, struct ompi_communicator_t *comm, int *matched,
		      struct ompi_message_t **message, ompi_status_public_t *status)
{
	int rc;
	struct pml_request *req = peek(src, tag, comm, FI_CLAIM, &rc);

	*matched = 0;
	if (!req)
		return rc;
	if (!req->found) {
		pml_request_return(req);
		probe_progress();
		return rc;
	}
	*message = probe_message(req);
	if (!*message)
		return OMPI_ERR_OUT_OF_RESOURCE;
	*matched = 1;
	probe_status(req, status);
	return OMPI_SUCCESS;
}

/* State of a blocking probe that waits. */
struct probe_watch {
	unsigned peeks;
	struct pml_request *req; /* fails when the rank dies; NULL: not posted */
};

/* Posts the receive. If the provider refuses it, the next call tries again. */
static void watch_post(struct probe_watch *watch, int src, struct ompi_communicator_t *comm)
{
	struct pml_request *req = pml_request_get(&mca_pml_base_recv_requests, comm);

	if (!req)
		return;
	pml_request_begin(req);
	pml_request_describe(req, NULL, 0, &ompi_mpi_byte.dt);
	pml_recv_target(req, src, 0);
	req->tag |= PML_TAG_NEVER;
	req->base.req_tag = PML_INTERNAL_TAG;
	if (pml_recv_post(req) == 0)
		watch->req = req;
	else
		pml_request_return(req);
}

/* Called before each peek. Returns the error of a receive from the rank, or OMPI_SUCCESS. */
static int watch_look(struct probe_watch *watch, int src, struct ompi_communicator_t *comm)
{
	struct pml_request *req = watch->req;

	if (req && REQUEST_COMPLETE(pml_request_ompi(req))) {
		watch->req = NULL;
		return pml_request_wait(req, MPI_STATUS_IGNORE);
	}
	if (!req && watch->peeks++ >= PROBE_PEEKS && src != MPI_ANY_SOURCE && pml.directed)
		watch_post(watch, src, comm);
	return OMPI_SUCCESS;
}

static void watch_end(struct probe_watch *watch)
{
	struct ompi_request_t *r = (struct ompi_request_t *)watch->req;

	if (!r)
		return;
	(void)r->req_cancel(r, true);
	(void)pml_request_wait(watch->req, MPI_STATUS_IGNORE);
}

/* Probes until a message is there or the rank dies. Claims the message if a handle is asked for. */
static int probe_wait(int src, int tag, struct ompi_communicator_t *comm,
		      struct ompi_message_t **message, ompi_status_public_t *status)
{
	struct probe_watch watch = { .peeks = 0 };
	int matched, rc, dead;

	do {
		dead = watch_look(&watch, src, comm);
		rc = message ? pml_probe_improbe(src, tag, comm, &matched, message, status)
			     : pml_probe_iprobe(src, tag, comm, &matched, status);
	} while (rc == OMPI_SUCCESS && !matched && dead == OMPI_SUCCESS);
	watch_end(&watch);
	return rc != OMPI_SUCCESS || matched ? rc : dead;
}

int pml_probe_probe(int src, int tag, struct ompi_communicator_t *comm,
		    ompi_status_public_t *status)
{
	return probe_wait(src, tag, comm, NULL, status);
}

int pml_probe_mprobe(int src, int tag, struct ompi_communicator_t *comm,
		     struct ompi_message_t **message, ompi_status_public_t *status)
{
	return probe_wait(src, tag, comm, message, status);
}

int pml_probe_imrecv(void *buf, size_t count, struct ompi_datatype_t *type,
		     struct ompi_message_t **message, struct ompi_request_t **request)
{
	struct pml_request *req = (*message)->req_ptr;
	int rc;

	pml_request_activate(req);
	req->special = true;
	req->flags = FI_CLAIM | FI_COMPLETION;
	rc = pml_recv_start(req, buf, count, type);
	if (rc != OMPI_SUCCESS) {
		req->state = PML_DONE;
		return rc;
	}
	ompi_message_return(*message);
	*message = MPI_MESSAGE_NULL;
	*request = pml_request_ompi(req);
	return OMPI_SUCCESS;
}

int pml_probe_mrecv(void *buf, size_t count, struct ompi_datatype_t *type,
		    struct ompi_message_t **message, ompi_status_public_t *status)
{
	struct ompi_request_t *request;
	int rc = pml_probe_imrecv(buf, count, type, message, &request);

	if (rc != OMPI_SUCCESS)
		return rc;
	return pml_request_wait((struct pml_request *)request, status);
}
