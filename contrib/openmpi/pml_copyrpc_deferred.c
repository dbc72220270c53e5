/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Operations that the provider refused with -FI_EAGAIN. They wait here, in order, and progress
 * tries them again; callers never see the refusal, nor do completion callbacks, which must not
 * wait.
 *
 * Sends wait for each peer by itself: a peer that takes nothing delays no message to another. While
 * one waits, later sends to that peer queue behind it, so that messages do not overtake. Receives
 * wait in one queue, because one from any source may match before any other.
 *
 * With threads a lock covers the queues, and is kept while a waiting operation is posted: its
 * counter falls only after that, and until then others queue behind it.
 */
#include "pml_copyrpc_request.h"

static inline opal_list_item_t *item_of(struct pml_request *req)
{
	return &req->base.req_ompi.super.super;
}

static void deferred_append_send(struct pml_request *req)
{
	struct pml_peer *peer = req->peer;

	if (peer->deferred_cnt == 0) {
		opal_list_append(&pml.blocked, &peer->super);
		pml.blocked_cnt++;
	}
	opal_list_append(&peer->deferred, item_of(req));
	req->deferred = true;
	peer->deferred_cnt++;
	pml_pvar_add(&pml_pvars.refused_sends, 1);
}

/** Queues a send. Returns OMPI_SUCCESS. */
int pml_deferred_send(struct pml_request *req)
{
	PML_LOCK(&pml.deferred_lock);
	deferred_append_send(req);
	PML_UNLOCK(&pml.deferred_lock);
	return OMPI_SUCCESS;
}

static void deferred_count_recv(int by)
{
	pml.deferred_recv_cnt += by;
	pml.recv_detours += by;
}

/** Queues a receive. Returns OMPI_SUCCESS. */
int pml_deferred_recv(struct pml_request *req)
{
	PML_LOCK(&pml.deferred_lock);
	opal_list_append(&pml.deferred_recvs, item_of(req));
	req->deferred = true;
	deferred_count_recv(1);
	pml_pvar_add(&pml_pvars.refused_recvs, 1);
	PML_UNLOCK(&pml.deferred_lock);
	return OMPI_SUCCESS;
}

/** Cancels a receive that waits here. Returns false if it does not. */
bool pml_deferred_cancel(struct pml_request *req)
{
	bool mine;

	if (pml.deferred_recv_cnt == 0)
		return false;
	PML_LOCK(&pml.deferred_lock);
	mine = req->deferred;
	if (mine) {
		opal_list_remove_item(&pml.deferred_recvs, item_of(req));
		req->deferred = false;
		deferred_count_recv(-1);
	}
	PML_UNLOCK(&pml.deferred_lock);
	if (mine) {
		req->base.req_ompi.req_status._cancelled = 1;
		pml_request_fail(req, OMPI_SUCCESS);
	}
	return mine;
}

static bool deferred_overlap(const struct pml_request *a, const struct pml_request *b)
{
	return ((a->tag ^ b->tag) & ~(a->ignore | b->ignore)) == 0 &&
	       (a->addr == b->addr || a->addr == FI_ADDR_UNSPEC || b->addr == FI_ADDR_UNSPEC);
}

/**
 * Returns whether a receive waits here that may take a message which this probe finds. That of a
 * message that MPI_Mprobe() has found takes no other.
 */
bool pml_deferred_overlaps(const struct pml_request *probe)
{
	struct pml_request *req;
	bool found = false;

	PML_LOCK(&pml.deferred_lock);
	OPAL_LIST_FOREACH(req, &pml.deferred_recvs, struct pml_request)
	{
		found = req->flags == 0 && deferred_overlap(req, probe);
		if (found)
			break;
	}
	PML_UNLOCK(&pml.deferred_lock);
	return found;
}

/* Posts what waits for a peer. Returns false once the provider refuses again. */
static bool deferred_run_peer(struct pml_peer *peer, opal_list_t *failed)
{
	opal_list_item_t *item;

	while ((item = opal_list_remove_first(&peer->deferred)) != NULL) {
		struct pml_request *req = (struct pml_request *)item;
		ssize_t rc;

		req->deferred = false;
		rc = req->mode == MCA_PML_BASE_SEND_SYNCHRONOUS ? pml_sync_post_deferred(req)
								: pml_send_post(req);
		if (rc == -FI_EAGAIN) {
			req->deferred = true;
			opal_list_prepend(&peer->deferred, item);
			return false;
		}
		if (rc)
			opal_list_append(failed, item);
		peer->deferred_cnt--;
	}
	return true;
}

static void deferred_run_sends(opal_list_t *failed)
{
	struct pml_peer *peer, *next;

	OPAL_LIST_FOREACH_SAFE(peer, next, &pml.blocked, struct pml_peer)
	{
		if (deferred_run_peer(peer, failed)) {
			opal_list_remove_item(&pml.blocked, &peer->super);
			pml.blocked_cnt--;
		}
	}
}

static void deferred_run_recvs(opal_list_t *failed)
{
	opal_list_item_t *item;

	while ((item = opal_list_remove_first(&pml.deferred_recvs)) != NULL) {
		struct pml_request *req = (struct pml_request *)item;
		ssize_t rc;

		req->deferred = false;
		rc = pml_recv_post(req);
		if (rc == -FI_EAGAIN) {
			req->deferred = true;
			opal_list_prepend(&pml.deferred_recvs, item);
			return;
		}
		if (rc)
			opal_list_append(failed, item);
		deferred_count_recv(-1);
	}
}

static void deferred_fail(struct pml_request *req)
{
	if (req->base.req_type == MCA_PML_REQUEST_SEND)
		pml_send_failed(req);
	else
		pml_request_fail(req, MPI_ERR_OTHER);
}

/** Tries again what was refused. Called by progress. */
void pml_deferred_run(void)
{
	opal_list_t failed;
	opal_list_item_t *item;

	if (pml.threads && opal_mutex_trylock(&pml.deferred_lock))
		return;
	OBJ_CONSTRUCT(&failed, opal_list_t);
	deferred_run_sends(&failed);
	deferred_run_recvs(&failed);
	PML_UNLOCK(&pml.deferred_lock);
	while ((item = opal_list_remove_first(&failed)) != NULL)
		deferred_fail((struct pml_request *)item);
	OBJ_DESTRUCT(&failed);
}
