/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Leases at the target: see core_rma_lease.h. Called through core_handlers, and by core_rma.c when
 * a region is closed or a peer fails.
 *
 * A lessee is a peer that was sent terms of a region with rights. It is linked in its peer and in
 * its region until it has responded to the revocation, its connection has failed, or the owner of
 * the region has waited long enough.
 */
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/core_dom.h"
#include "core/core_peer.h"
#include "core/rma/core_rma_lease.h"
#include "wire/wire_op.h"
#include "wire/wire_rma.h"

/* Leases that a peer may have: more than it keeps, since it drops some without notice. */
#define CORE_RMA_LESSEES_MAX (4 * CORE_RMA_LEASES_MAX)

struct core_rma_lessee {
	struct core_op op; /* the revocation, while it is in progress */
	struct util_list peer_link;
	struct util_list mr_link; /* guarded by the table's use_lock */
	struct core_mr *mr;       /* NULL: forgotten */
	struct core_peer *peer;
	uint64_t key;
	bool revoking;
};

static struct core_rma_lessee *core_rma_lessee_of(struct util_list *mr_link)
{
	return UTIL_CONTAINER_OF(mr_link, struct core_rma_lessee, mr_link);
}

/** Unlinks a lessee from its region. */
static void core_rma_lessee_detach(struct core_rma_lessee *lessee)
{
	if (lessee->mr)
		core_mr_unuse(lessee->peer->ep->dom, lessee->mr, false, &lessee->mr_link);
	lessee->mr = NULL;
}

static void core_rma_lessee_free(struct core_rma_lessee *lessee)
{
	core_rma_lessee_detach(lessee);
	util_list_remove(&lessee->peer_link);
	free(lessee);
}

/** Returns the lessee, or NULL; counts the leases that the peer has. */
static struct core_rma_lessee *core_rma_lessee_find(const struct core_peer *peer,
						    const struct core_mr *mr, size_t *cnt)
{
	const struct util_list *it;
	struct core_rma_lessee *lessee;

	*cnt = 0;
	for (it = peer->lessees.next; it != &peer->lessees; it = it->next) {
		lessee = UTIL_CONTAINER_OF(it, struct core_rma_lessee, peer_link);
		if (lessee->mr == mr)
			return lessee;
		++*cnt;
	}
	return NULL;
}

static struct core_rma_lessee *core_rma_lessee_add(struct core_peer *peer, struct core_mr *mr)
{
	size_t cnt;
	struct core_rma_lessee *lessee = core_rma_lessee_find(peer, mr, &cnt);

	if (lessee || cnt >= CORE_RMA_LESSEES_MAX)
		return lessee;
	lessee = calloc(1, sizeof(*lessee));
	if (!lessee)
		return NULL;
	lessee->mr = mr;
	lessee->peer = peer;
	lessee->key = mr->key;
	util_list_push_back(&peer->lessees, &lessee->peer_link);
	core_mr_add_lessee(peer->ep->dom, mr, &lessee->mr_link);
	return lessee;
}

/** Returns the rights that a peer may use without notice of this end: no counter counts them. */
static unsigned core_rma_lessee_rights(const struct core_ep *ep, const struct core_mr *mr)
{
	uint64_t rights = mr->access & ep->remote_access & (FI_REMOTE_READ | FI_REMOTE_WRITE);

	if (ep->rma_cntr[CORE_CNTR_REMOTE_READ] || mr->remote_read)
		rights &= ~FI_REMOTE_READ;
	if (ep->rma_cntr[CORE_CNTR_REMOTE_WRITE] || mr->remote_write)
		rights &= ~FI_REMOTE_WRITE;
	return (unsigned)rights;
}

/** Fills the terms of a region for a channel: rights are 0 if its device cannot access it. */
static void core_rma_lessee_terms(struct core_chan *chan, struct core_mr *mr,
				  struct wire_lease *terms)
{
	unsigned rights = core_rma_lessee_rights(chan->peer->ep, mr);
	struct core_reg *reg = rights && chan->reg_dev ? core_mr_reg(mr, chan, rights) : NULL;

	if (!reg)
		return;
	terms->rights = (rights & FI_REMOTE_READ ? WIRE_LEASE_READ : 0) |
			(rights & FI_REMOTE_WRITE ? WIRE_LEASE_WRITE : 0);
	terms->base = mr->base;
	terms->len = mr->len;
	terms->addr = (uintptr_t)mr->iov[0].iov_base;
	terms->rkey = reg->key;
}

/** Returns 0, or the status (FI_E*) for a request that the peer's next access repeats. */
static uint32_t core_rma_lessee_refusal(const struct core_mr *mr)
{
	if (!mr)
		return FI_EKEYREJECTED;
	return mr->renewals ? FI_EAGAIN : 0;
}

static enum core_rx_verdict core_rma_lessee_request(struct core_chan *chan,
						    struct core_call_ref ref, uint64_t key)
{
	struct core_peer *peer = chan->peer;
	struct core_mr *mr = core_mr_find(peer->ep->dom->mrs, key);
	struct core_rma_lessee *lessee;
	struct wire_lease terms = { .status = core_rma_lessee_refusal(mr) };

	if (ref.resp_max < sizeof(terms))
		return CORE_RX_BAD;
	if (!terms.status)
		core_rma_lessee_terms(chan, mr, &terms);
	lessee = terms.rights ? core_rma_lessee_add(peer, mr) : NULL;
	if (terms.rights && (!lessee || lessee->revoking))
		terms = (struct wire_lease){ 0 };
	core_chan_reply(chan, ref, &terms, sizeof(terms));
	return CORE_RX_DONE;
}

enum core_rx_verdict core_rma_on_lease(struct core_chan *chan, struct core_call_ref ref,
				       struct core_head *head, core_retain_t retain)
{
	struct wire_lease_call call;

	if (head->tagged || head->has_data || head->body_len != sizeof(call))
		return CORE_RX_BAD;
	memcpy(&call, head->body, sizeof(call));
	switch (call.kind) {
	case WIRE_LEASE_REQUEST: return core_rma_lessee_request(chan, ref, call.key);
	case WIRE_LEASE_REVOKE: return core_rma_lease_revoked(chan, ref, call.key);
	default: return CORE_RX_BAD;
	}
}

static int core_rma_lessee_start(struct core_op *op)
{
	struct core_rma_lessee *lessee = UTIL_CONTAINER_OF(op, struct core_rma_lessee, op);
	struct core_chan *chan = op->peer->chan;
	struct wire_lease_call call = { .key = lessee->key, .kind = WIRE_LEASE_REVOKE };
	struct iovec iov = { .iov_base = &call, .iov_len = sizeof(call) };
	struct core_frame frame = {
		.op = WIRE_OP_LEASE, .iov = &iov, .iov_cnt = 1, .len = sizeof(call)
	};

	return chan->ops->call(chan, &frame, sizeof(struct wire_status), op, 0);
}

static void core_rma_lessee_ended(struct core_op *op, int err)
{
	core_op_end(op);
	core_rma_lessee_free(UTIL_CONTAINER_OF(op, struct core_rma_lessee, op));
}

static void core_rma_lessee_on_reply(struct core_op *op, int status, const uint8_t *data,
				     uint32_t len)
{
	core_rma_lessee_ended(op, status);
}

static const struct core_op_ops core_rma_lessee_ops = {
	.start = core_rma_lessee_start,
	.on_reply = core_rma_lessee_on_reply,
	.fail = core_rma_lessee_ended,
};

void core_rma_lessee_revoke(struct core_mr *mr)
{
	struct core_rma_lessee *lessee;
	struct util_list *it, *tmp;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &mr->lessees) {
		lessee = core_rma_lessee_of(it);
		if (lessee->revoking || lessee->peer->state != CORE_PEER_UP)
			continue;
		lessee->op.reads = true; /* ends nothing that direct reads see */
		lessee->revoking = true;
		if (core_op_submit(&lessee->op, &core_rma_lessee_ops, lessee->peer))
			lessee->revoking = false;
	}
}

void core_rma_lessee_renew(struct core_mr *mr)
{
	mr->renewals++;
	core_rma_lessee_revoke(mr);
}

void core_rma_lessee_renewed(struct core_mr *mr)
{
	mr->renewals--;
}

/* A revocation that is in progress stays with its peer: it still spares the connection. */
void core_rma_lessee_forget(struct core_mr *mr)
{
	struct core_rma_lessee *lessee;
	struct util_list *it, *tmp;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &mr->lessees) {
		lessee = core_rma_lessee_of(it);
		if (lessee->revoking)
			core_rma_lessee_detach(lessee);
		else
			core_rma_lessee_free(lessee);
	}
}

/*
 * Revocations in progress have failed with the peer's operations, unless the connection ends as
 * agreed: then they have not started, and its end is what they were for.
 */
void core_rma_lessee_drop_all(struct core_peer *peer)
{
	struct core_rma_lessee *lessee;
	struct util_list *first;

	while ((first = util_list_first(&peer->lessees))) {
		lessee = UTIL_CONTAINER_OF(first, struct core_rma_lessee, peer_link);
		if (lessee->revoking)
			core_op_end(&lessee->op);
		core_rma_lessee_free(lessee);
	}
}
