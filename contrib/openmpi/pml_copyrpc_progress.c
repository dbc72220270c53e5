/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Progress: takes completions from the queue and ends what they belong to.
 *
 * Completions are read in batches into a cursor that the whole process shares, and each is removed
 * from it before its request ends. Therefore a callback may wait for a later completion of the same
 * batch: the progress that it calls finds it. With threads a lock covers the cursor, and no lock is
 * taken while a request ends.
 */
#include <stdlib.h>

#include "pml_copyrpc_request.h"

#define PML_REQUEST_OF(op_ptr, member)                                                             \
	((struct pml_request *)((char *)(op_ptr)-offsetof(struct pml_request, member)))

/* One of the completions of a send; a synchronous one may have two, in any order. */
static inline void progress_send_part(struct pml_request *req)
{
	if (OPAL_LIKELY(req->mode != MCA_PML_BASE_SEND_SYNCHRONOUS) || pml_sync_part(req))
		pml_request_done(req);
}

/** Ends a send whose message did not leave or arrive. No acknowledgement will come. */
void pml_send_failed(struct pml_request *req)
{
	req->special = true;
	req->base.req_ompi.req_status.MPI_ERROR = MPI_ERR_OTHER;
	if (req->mode == MCA_PML_BASE_SEND_SYNCHRONOUS && (req->tag & PML_TAG_SYNC)) {
		if (req->ack_waits)
			(void)pml_sync_part(req); /* the acknowledgement */
		else
			(void)fi_cancel(&pml.ep->fid, &req->ack);
	}
	progress_send_part(req);
}

static void progress_peek(struct pml_request *req, uint64_t tag, size_t len, bool found)
{
	ompi_status_public_t *status = &req->base.req_ompi.req_status;

	req->found = found;
	status->MPI_SOURCE = pml_tag_source(tag);
	status->MPI_TAG = pml_tag_user(tag);
	status->_ucount = len;
	__atomic_store_n(&req->state, PML_DONE, __ATOMIC_RELEASE);
}

static __opal_attribute_always_inline__ inline void progress_entry(
	const struct fi_cq_tagged_entry *entry)
{
	struct pml_op *op = entry->op_context;

	if (OPAL_LIKELY(op->kind == PML_OP_RECV))
		pml_recv_done(PML_REQUEST_OF(op, op), entry->tag, entry->len, OMPI_SUCCESS);
	else if (op->kind == PML_OP_SEND)
		progress_send_part(PML_REQUEST_OF(op, op));
	else if (op->kind == PML_OP_ACK)
		progress_send_part(PML_REQUEST_OF(op, ack));
	else if (op->kind == PML_OP_PEEK)
		progress_peek(PML_REQUEST_OF(op, op), entry->tag, entry->len, true);
	else
		pml_connect_ended();
}

static const char *progress_explain(struct fi_cq_err_entry *err, char *text, size_t len)
{
	return fi_cq_strerror(pml.cq, err->prov_errno, err->err_data, text, len);
}

/*
 * A send is over in the user's eyes, and its message is lost: an injected one. The error handler of
 * MPI_COMM_WORLD decides whether the job goes on.
 */
static void progress_lost(struct fi_cq_err_entry *err)
{
	char text[256];

	pml_pvar_add(&pml_pvars.failures, 1);
	opal_output(0, "pml copyrpc: a message was lost: %s (%s)", fi_strerror(err->err),
		    progress_explain(err, text, sizeof(text)));
	(void)OMPI_ERRHANDLER_INVOKE(&ompi_mpi_comm_world.comm, MPI_ERR_OTHER,
				     "a message was lost");
}

static void progress_failed_recv(struct pml_request *req, struct fi_cq_err_entry *err)
{
	req->special = true;
	if (err->err == FI_ETRUNC) {
		pml_recv_done(req, err->tag, err->len < req->len ? err->len : req->len,
			      MPI_ERR_TRUNCATE);
	} else if (err->err == FI_ECANCELED) {
		req->base.req_ompi.req_status._cancelled = 1;
		pml_request_fail(req, OMPI_SUCCESS);
	} else {
		pml_request_fail(req, MPI_ERR_OTHER);
	}
}

static void progress_report(const struct pml_request *req, struct fi_cq_err_entry *err)
{
	char text[256];

	if (err->err == FI_ETRUNC || err->err == FI_ECANCELED || err->err == FI_ENOMSG)
		return;
	pml_pvar_add(&pml_pvars.failures, 1);
	opal_output(0, "pml copyrpc: %s with rank %d failed: %s (%s)",
		    req->op.kind == PML_OP_PEEK                  ? "probe"
		    : req->base.req_type == MCA_PML_REQUEST_SEND ? "send"
								 : "receive",
		    req->base.req_peer, fi_strerror(err->err),
		    progress_explain(err, text, sizeof(text)));
}

/* Ends a probe that found no message, or that failed. */
static void progress_failed_peek(struct pml_request *req, struct fi_cq_err_entry *err)
{
	if (err->err != FI_ENOMSG) {
		req->special = true;
		req->base.req_ompi.req_status.MPI_ERROR = MPI_ERR_OTHER;
	}
	progress_peek(req, 0, 0, false);
}

static void progress_failed_ack(struct pml_request *req)
{
	req->special = true;
	req->base.req_ompi.req_status.MPI_ERROR = MPI_ERR_OTHER;
	progress_send_part(req);
}

static void progress_error(struct fi_cq_err_entry *err)
{
	struct pml_op *op = err->op_context;
	struct pml_request *req;

	err->err = abs(err->err); /* some providers have it negative */
	if (!op) {
		progress_lost(err);
		return;
	}
	if (op->kind == PML_OP_CONNECT) {
		pml_connect_ended();
		return;
	}
	req = op->kind == PML_OP_ACK ? PML_REQUEST_OF(op, ack) : PML_REQUEST_OF(op, op);
	progress_report(req, err);
	if (op->kind == PML_OP_RECV)
		progress_failed_recv(req, err);
	else if (op->kind == PML_OP_PEEK)
		progress_failed_peek(req, err);
	else if (op->kind == PML_OP_ACK)
		progress_failed_ack(req);
	else
		pml_send_failed(req);
}

/*
 * Reads completions behind the cursor, which is empty. Returns their number, 0, or -FI_EAVAIL with
 * err filled in.
 */
static inline ssize_t progress_read(struct fi_cq_err_entry *err)
{
	ssize_t n;

	pml_held = false;
	n = fi_cq_read(pml.cq, pml.entries, PML_CQ_BATCH);
	if (OPAL_LIKELY(n > 0)) {
		pml.next = pml.entries;
		pml.end = pml.entries + n;
		return n;
	}
	if (OPAL_LIKELY(n == -FI_EAGAIN) || n == 0)
		return 0;
	memset(err, 0, sizeof(*err));
	return fi_cq_readerr(pml.cq, err, 0) == 1 ? -FI_EAVAIL : 0;
}

/* Without threads: a callback may come here again, and goes on where this call is. */
static int progress_batch(void)
{
	struct fi_cq_err_entry err;
	int done = 0;

	if (pml.next == pml.end && progress_read(&err) < 0) {
		progress_error(&err);
		return 1;
	}
	for (; pml.next != pml.end; done++)
		progress_entry(pml.next++);
	return done;
}

/* Takes one completion. Returns 1, 0 if there is none, or -FI_EAVAIL with err filled in. */
static int progress_take(struct fi_cq_tagged_entry *entry, struct fi_cq_err_entry *err)
{
	ssize_t n = 1;

	if (opal_mutex_trylock(&pml.cursor_lock))
		return 0;
	if (pml.next == pml.end)
		n = progress_read(err);
	if (n > 0)
		*entry = *pml.next++;
	opal_mutex_unlock(&pml.cursor_lock);
	return n > 0 ? 1 : (int)n;
}

/* With threads: each takes completions for itself and ends them without the lock. */
static int progress_threads(void)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err;
	int done = 0, rc;

	do {
		rc = progress_take(&entry, &err);
		if (rc > 0)
			progress_entry(&entry);
		else if (rc < 0)
			progress_error(&err);
		done += rc != 0;
	} while (rc > 0 && pml.next != pml.end);
	return done;
}

/** Ends what is complete, as much as one batch has, and retries what the provider had refused. */
int pml_progress(void)
{
	if (OPAL_UNLIKELY(pml.blocked_cnt + pml.deferred_recv_cnt != 0))
		pml_deferred_run();
	return OPAL_UNLIKELY(pml.threads) ? progress_threads() : progress_batch();
}

/**
 * Lets held sends leave, in any state of the cursor: progress reads no further while the cursor has
 * completions, nor while another thread reads, and that one's read may have begun before the send.
 */
void pml_let_go_cold(void)
{
	if (!pml.threads && pml.next == pml.end) {
		(void)pml_progress();
		return;
	}
	pml_held = false;
	(void)fi_cq_read(pml.cq, NULL, 0);
}
