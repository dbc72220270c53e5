/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lookup of the responder.
 *
 * A packet reaches the QP whose number it names, on the port that its address names, if that QP is
 * ready to receive. A connected QP must also expect this sender: its number and its first PSN.
 * Otherwise there is no reply, as on a real wire: the requester detects it by its timeout.
 */
#include "model/nic/nic_peer.h"

#include "model/nic/nic_qp.h"
#include "model/nic/nic_recv.h"
#include "model/nic/nic_state.h"

static struct mdl_port *nic_peer_port(const struct mdl_path *path)
{
	if (mdl_self.seg->link == MDL_LINK_IB && (path->dlid || !path->is_global))
		return mdl_port_by_lid(path->dlid);
	return mdl_port_by_gid(path->dgid);
}

static bool nic_peer_receives(const struct mdl_qp *peer)
{
	uint32_t state = nic_qp_state(peer);

	return state == MDL_QPS_RTR || state == MDL_QPS_RTS || state == MDL_QPS_SQD ||
	       state == MDL_QPS_SQE;
}

/* Returns true if an injected fault keeps packets from the peer. */
static bool nic_peer_is_cut_off(const struct mdl_qp *peer)
{
	const struct mdl_proc *proc = &mdl_self.seg->proc[peer->proc];
	uint32_t device = mdl_port_device(peer->port_index);

	return __atomic_load_n(&proc->port_down[device], __ATOMIC_ACQUIRE) ||
	       nic_qp_has_failed(peer);
}

struct mdl_qp *nic_peer_lock_number(uint32_t qpn)
{
	struct mdl_qp *peer = mdl_qp_find(qpn);

	if (!peer || mdl_proc_is_dead(peer->proc) || mdl_self.seg->port[peer->port_index].link_down)
		return NULL;
	nic_qp_lock_rq(peer);
	if (__atomic_load_n(&peer->number, __ATOMIC_ACQUIRE) == qpn && nic_peer_receives(peer) &&
	    !nic_peer_is_cut_off(peer))
		return peer;
	mdl_unlock(&peer->rq_lock);
	return NULL;
}

static bool nic_peer_expects(const struct mdl_qp *peer, const struct mdl_qp *qp)
{
	return peer->type == qp->type && peer->dest_qpn == qp->number &&
	       ((peer->rq_psn ^ qp->sq_psn) & 0xffffff) == 0;
}

struct mdl_qp *nic_peer_lock(struct mdl_qp *qp)
{
	struct mdl_port *port = nic_peer_port(&qp->path);
	struct mdl_qp *peer;

	if (!port || nic_link_is_down(qp))
		return NULL;
	peer = nic_peer_lock_number(qp->dest_qpn);
	if (!peer)
		return NULL;
	if (peer->port_index == mdl_port_index(port) && nic_peer_expects(peer, qp))
		return peer;
	mdl_unlock(&peer->rq_lock);
	return NULL;
}

void nic_peer_unlock(struct mdl_qp *peer)
{
	mdl_unlock(&peer->rq_lock);
}

/* The peer's own process flushes its send queue, as this thread may not take a second sq_lock. */
void nic_peer_break(struct mdl_qp *peer, uint32_t event)
{
	__atomic_store_n(&peer->state, MDL_QPS_ERR, __ATOMIC_RELEASE);
	nic_qp_priv(peer)->broken = 1;
	nic_recv_flush(peer);
	if (event)
		krn_qp_async(peer, event);
	__atomic_fetch_or(&peer->nic_stalled, NIC_WAIT_FLUSH, __ATOMIC_RELEASE);
	krn_service_wake(peer->proc);
}
