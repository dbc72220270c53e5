/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Targets of a DC initiator, and its connections to them. Called by nic_rc.c for each WQE.
 *
 * Each WQE names its target by an address vector: address, DCT number, access key. An initiator, or
 * a channel of one that has streams, is connected to one target at a time. A WQE for another target
 * is preceded by a packet that ends the old connection and by one that opens the new one; its data
 * follow at once (half handshake). A connection stays open while no other target is served.
 *
 * A target that is not there does not reply. A wrong key is refused with a remote access error and
 * counted at the target; no error changes a DCT. Both are the model's choice, as adapters do not
 * publish theirs.
 */
#include "model/nic/nic_dc.h"

#include "model/nic/nic_av.h"
#include "model/nic/nic_peer.h"
#include "model/nic/nic_state.h"
#include "model/nic/nic_stream.h"
#include "model/nic/nic_wire.h"
#include "model/nic/nic_wqe.h"

static struct nic_dc_conn *nic_dc_conn(struct mdl_qp *qp, uint16_t stream)
{
	struct nic_dc_conn *conn = nic_stream_conn(qp, stream);

	return conn ? conn : &nic_qp_priv(qp)->conn;
}

static struct mdl_port *nic_dc_port(const struct nic_av *av)
{
	return mdl_self.seg->link == MDL_LINK_IB ? mdl_port_by_lid(av->rlid)
						 : mdl_port_by_gid(av->rgid);
}

static int nic_dc_sgid(const struct nic_av *av)
{
	return av->grh || mdl_self.seg->link == MDL_LINK_ROCE ? av->sgid_index : -1;
}

static bool nic_dc_is_same(const struct nic_dc_conn *a, const struct nic_dc_conn *b)
{
	return a->dctn == b->dctn && a->port == b->port && a->key == b->key;
}

/* Ends the connection to a target that may be gone. Takes and leaves that target's rq_lock. */
static void nic_dc_disconnect(struct mdl_qp *qp, struct nic_dc_conn *conn, const struct nic_av *av)
{
	struct mdl_qp *old = nic_peer_lock_number(conn->dctn);

	nic_wire_count(qp, old, NIC_WIRE_DC_DISCONNECT, 0, false, nic_dc_sgid(av));
	nic_count(qp, MDL_CNT_DC_DISCONNECTS, 1);
	if (old)
		nic_peer_unlock(old);
	conn->open = 0;
}

static void nic_dc_connect(struct mdl_qp *qp, struct mdl_qp *peer, struct nic_dc_conn *conn,
			   const struct nic_av *av)
{
	nic_wire_count(qp, peer, NIC_WIRE_DC_CONNECT, 0, false, nic_dc_sgid(av));
	nic_count(qp, MDL_CNT_DC_CONNECTS, 1);
	conn->open = 1;
}

struct mdl_qp *nic_dc_lock(struct mdl_qp *qp, const struct nic_wqe *wqe)
{
	struct nic_dc_conn *conn = nic_dc_conn(qp, wqe->stream);
	const struct mdl_port *port = nic_dc_port(&wqe->av);
	struct nic_dc_conn wanted = { .key = wqe->av.dc_key, .dctn = wqe->av.qpn };
	struct mdl_qp *peer;

	if (!port || nic_link_is_down(qp))
		return NULL;
	wanted.port = mdl_port_index(port);
	if (conn->open && !nic_dc_is_same(conn, &wanted))
		nic_dc_disconnect(qp, conn, &wqe->av);
	peer = nic_peer_lock_number(wanted.dctn);
	if (!peer)
		return NULL;
	if (peer->type != MDL_QPT_DCT || peer->port_index != wanted.port) {
		nic_peer_unlock(peer);
		return NULL;
	}
	if (!conn->open) {
		*conn = wanted;
		nic_dc_connect(qp, peer, conn, &wqe->av);
	}
	return peer;
}

bool nic_dc_admits(struct mdl_qp *peer, const struct nic_wqe *wqe)
{
	if (peer->type != MDL_QPT_DCT || peer->dc_key == wqe->av.dc_key)
		return true;
	nic_count(peer, MDL_CNT_DC_KEY_VIOLATIONS, 1);
	return false;
}

void nic_dc_failed(struct mdl_qp *qp, const struct nic_wqe *wqe)
{
	if (qp->type == MDL_QPT_DCI)
		nic_dc_conn(qp, wqe->stream)->open = 0;
}
