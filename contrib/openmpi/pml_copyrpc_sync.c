/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Synchronous sends. Where the provider has FI_MATCH_COMPLETE, a long one is a send to an alias of
 * the endpoint with that default flag, and looks like any other to its receiver. A provider may
 * reserve memory at the receiver for each until it has matched, so that many could stop messages
 * behind them: beyond SYNC_MATCHING_MAX to one peer, and without the flag, they are acknowledged.
 * So are short ones, for which an acknowledgement costs less than a reply of the provider.
 *
 * An acknowledged message has the sync bit in its tag, and its receiver sends an empty message once
 * its receive has ended.
 *
 * The acknowledgement names communicator, receiver and tag, not the message. Messages with the same
 * three from one sender match in the order in which they were sent, and their sender posts the
 * receives for acknowledgements in that order. So the n-th acknowledgement proves that n messages
 * have matched, and thus the first n, whichever of them it was sent for. The lock keeps both orders
 * the same among threads. If the provider refuses the receive, both wait in the queue of the peer,
 * and so do both of each later synchronous send to that peer.
 */
#include "pml_copyrpc_request.h"

/** Bytes from which on a provider awaits a reply for any send, so that a match costs no more. */
#define SYNC_MATCH_MIN (64u << 10)
/** Open sends to one peer whose match the provider reports. */
#define SYNC_MATCHING_MAX 32

static ssize_t sync_post_ack(struct pml_request *req)
{
	uint64_t tag = pml_tag_ack(req->tag, req->base.req_peer);

	return fi_trecv(pml.ep, NULL, 0, NULL, pml.directed ? req->addr : FI_ADDR_UNSPEC, tag, 0,
			&req->ack);
}

/*
 * Posts both, or queues what the provider refuses: the send, or both, behind others to that peer.
 * Returns 0, an error before anything was posted, or 1: the send failed, and the receive of its
 * acknowledgement is posted.
 */
static ssize_t sync_post(struct pml_request *req)
{
	const struct pml_peer *peer = req->peer;
	ssize_t rc = peer->deferred_cnt ? -FI_EAGAIN : sync_post_ack(req);

	req->ack_waits = rc == -FI_EAGAIN;
	if (req->ack_waits)
		return pml_deferred_send(req);
	if (rc)
		return rc;
	rc = peer->deferred_cnt ? -FI_EAGAIN : pml_send_post(req);
	if (rc == -FI_EAGAIN)
		return pml_deferred_send(req);
	return rc ? 1 : 0;
}

/** Posts what is left of a synchronous send that was queued. Returns as pml_send_post(). */
ssize_t pml_sync_post_deferred(struct pml_request *req)
{
	ssize_t rc;

	if (pml_sync_matches(req))
		return pml_sync_post_match(req);
	rc = req->ack_waits ? sync_post_ack(req) : 0;
	if (rc)
		return rc;
	req->ack_waits = false;
	return pml_send_post(req);
}

/** Takes away one completion of a synchronous send. Returns true if it was the last one. */
bool pml_sync_part(struct pml_request *req)
{
	if (pml_sync_matches(req))
		__atomic_sub_fetch(&req->peer->matching, 1, __ATOMIC_RELAXED);
	return __atomic_sub_fetch(&req->parts, 1, __ATOMIC_ACQ_REL) == 0;
}

/* Begins a send whose match the provider reports. */
static int sync_begin_match(struct pml_request *req)
{
	ssize_t rc = -FI_EAGAIN;

	req->parts = 1;
	req->tag &= ~PML_TAG_SYNC;
	__atomic_add_fetch(&req->peer->matching, 1, __ATOMIC_RELAXED);
	if (req->peer->deferred_cnt == 0)
		rc = pml_sync_post_match(req);
	if (rc == 0)
		return OMPI_SUCCESS;
	if (rc == -FI_EAGAIN)
		return pml_deferred_send(req);
	__atomic_sub_fetch(&req->peer->matching, 1, __ATOMIC_RELAXED);
	return pml_request_errno(rc, "fi_tsend");
}

/** Begins a synchronous send: called by the send files. */
int pml_sync_begin(struct pml_request *req)
{
	ssize_t rc;

	pml_pvar_add(&pml_pvars.sync_sends, 1);
	if (pml.match_ep && req->len > SYNC_MATCH_MIN && req->peer->matching < SYNC_MATCHING_MAX)
		return sync_begin_match(req);
	req->parts = 2;
	req->tag |= PML_TAG_SYNC;
	PML_LOCK(&pml.sync_lock);
	rc = sync_post(req);
	PML_UNLOCK(&pml.sync_lock);
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
