/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Synchronous sends: the message has the sync bit in its tag, and the receiver acknowledges it with
 * an empty message once its receive has ended.
 *
 * The acknowledgement names communicator, receiver and tag, not the message. Messages with the same
 * three from one sender match in the order in which they were sent, and their sender posts the
 * receives for acknowledgements in that order. So the n-th acknowledgement proves that n messages
 * have matched, and thus the first n, whichever of them it was sent for. The lock keeps both orders
 * the same among threads.
 */
#include "pml_copyrpc_request.h"

static ssize_t sync_post_ack(struct pml_request *req)
{
	uint64_t tag = pml_tag_ack(req->tag, req->base.req_peer);

	return fi_trecv(pml.ep, NULL, 0, NULL, pml.directed ? req->addr : FI_ADDR_UNSPEC, tag, 0,
			&req->ack);
}

/* Posts both. Returns 0, an error before anything was posted, or 1: the send failed, and the
 * receive of its acknowledgement is posted. */
static ssize_t sync_post(struct pml_request *req)
{
	ssize_t rc = sync_post_ack(req);

	if (rc)
		return rc;
	if (req->peer->deferred_cnt)
		rc = -FI_EAGAIN;
	else
		rc = pml_send_post(req);
	if (rc == -FI_EAGAIN)
		return pml_deferred_send(req);
	return rc ? 1 : 0;
}

/** Begins a synchronous send: called by the send files. */
int pml_sync_begin(struct pml_request *req)
{
	ssize_t rc;

	req->parts = 2;
	req->tag |= PML_TAG_SYNC;
	pml_pvar_add(&pml_pvars.sync_sends, 1);
	do {
		PML_LOCK(&pml.sync_lock);
		rc = sync_post(req);
		PML_UNLOCK(&pml.sync_lock);
		if (rc == -FI_EAGAIN)
			pml_progress();
	} while (rc == -FI_EAGAIN);
	if (rc > 0)
		pml_send_failed(req);
	return rc < 0 ? pml_request_errno(rc, "fi_trecv") : OMPI_SUCCESS;
}

/* The provider takes no injected message now: the acknowledgement becomes a send like others. */
static void sync_acknowledge_later(struct pml_request *recv, struct pml_peer *peer, uint64_t tag)
{
	struct pml_request *req = pml_request_get(&mca_pml_base_send_requests, recv->base.req_comm);

	if (!req) {
		opal_output(0, "pml copyrpc: no memory to acknowledge a synchronous message");
		return;
	}
	req->peer = peer;
	req->addr = peer->addr;
	req->tag = tag;
	req->base.req_tag = PML_INTERNAL_TAG;
	req->buf = NULL;
	req->len = 0;
	req->mode = MCA_PML_BASE_SEND_STANDARD;
	(void)pml_send_internal(req);
}

/** Tells the sender of a synchronous message that its receive has ended. */
void pml_sync_acknowledge(struct pml_request *req, uint64_t tag)
{
	struct ompi_communicator_t *comm = req->base.req_comm;
	struct pml_peer *peer = pml_peer_of(comm, pml_tag_source(tag));
	uint64_t ack = pml_tag_ack(tag, comm->c_my_rank);

	if (!peer)
		return;
	if (peer->deferred_cnt || fi_tinject(pml.ep, NULL, 0, peer->addr, ack) == -FI_EAGAIN)
		sync_acknowledge_later(req, peer, ack);
}
