/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connections: request, reply, confirmation, end.
 *
 * 	active                                passive
 * 	CONNECT                       ->      CONNECT_REQUEST, for the listener
 * 	CONNECT_RESPONSE              <-      ACCEPT, or REJECT: REJECTED
 * 	ACCEPT (of librdmacm)         ->      ESTABLISHED
 * 	DISCONNECTED                  <->     DISCONNECTED, from the first end that disconnects
 */
#include "model/kernel/cm/krn_cm.h"
#include "model/fabric/mdl_nic.h"
#include "model/fabric/mdl_segment.h"
#include "model/fabric/mdl_table.h"

#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <rdma/rdma_user_cm.h>
#include <string.h>

enum {
	EVENT_CONNECT_REQUEST = 4,
	EVENT_CONNECT_RESPONSE = 5,
	EVENT_UNREACHABLE = 7,
	EVENT_REJECTED = 8,
	EVENT_ESTABLISHED = 9,
	EVENT_DISCONNECTED = 10,
};

/* Reject reasons, as numbered by the InfiniBand specification. */
enum { REASON_INVALID_SERVICE = 8, REASON_CONSUMER = 28 };

int krn_cm_listen(struct krn_cm_cmd *cmd)
{
	const struct rdma_ucm_listen *req = cmd->in;
	struct mdl_cm_id *id = krn_cm_own(req->id);

	if (!id || id->state != MDL_CM_BOUND)
		return -EINVAL;
	id->state = MDL_CM_LISTENING;
	return 0;
}

static uint16_t port_of(const uint8_t *address)
{
	return ((const struct sockaddr_in *)(const void *)address)->sin_port;
}

static struct mdl_cm_id *find_listener(const struct mdl_cm_id *caller)
{
	for (uint32_t i = 1; i < MDL_CM_MAX; i++) {
		struct mdl_cm_id *id = &mdl_self.seg->cm_id[i];

		if (id->number && id->state == MDL_CM_LISTENING && id->ps == caller->ps &&
		    port_of(id->src) == port_of(caller->dst) && !mdl_proc_is_dead(id->proc))
			return id;
	}
	return NULL;
}

static void take_param(struct mdl_cm_id *id, const struct rdma_ucm_conn_param *param)
{
	id->qpn = param->qp_num;
	id->initiator_depth = param->initiator_depth;
	id->responder_resources = param->responder_resources;
	id->retry_count = param->retry_count;
	id->rnr_retry = param->rnr_retry_count;
}

/* Converts parameters to the other end's view: initiator and responder depth change places. */
static struct rdma_ucm_conn_param turned(const struct rdma_ucm_conn_param *param)
{
	struct rdma_ucm_conn_param turned = *param;

	turned.initiator_depth = param->responder_resources;
	turned.responder_resources = param->initiator_depth;
	return turned;
}

/* Creates the passive end in the process and the channel of the listener. */
static int make_passive(struct mdl_cm_id *caller, const struct mdl_cm_id *listener,
			const struct rdma_ucm_conn_param *param)
{
	struct rdma_ucm_conn_param advertised = turned(param);
	uint32_t number;
	struct mdl_cm_id *id = krn_cm_new(listener->proc, listener->ctx, &number);

	if (!id)
		return -ENOMEM;
	id->ps = caller->ps;
	id->qp_type = caller->qp_type;
	id->state = MDL_CM_REQUESTED;
	id->peer = caller->number;
	id->listener = listener->number;
	id->routed = 1;
	id->rnr_retry = param->rnr_retry_count;
	id->retry_count = param->retry_count;
	memcpy(id->src, caller->dst, sizeof(id->src));
	memcpy(id->dst, caller->src, sizeof(id->dst));
	caller->peer = number;
	mdl_table_publish(id, number);
	krn_cm_event(listener, number, listener, EVENT_CONNECT_REQUEST, 0, &advertised);
	return 0;
}

int krn_cm_connect(struct krn_cm_cmd *cmd)
{
	const struct rdma_ucm_connect *req = cmd->in;
	struct mdl_cm_id *id = krn_cm_own(req->id), *listener;

	if (!id || id->state != MDL_CM_BOUND || !id->routed)
		return -EINVAL;
	if (id->ps == RDMA_PS_UDP)
		return -EOPNOTSUPP;
	take_param(id, &req->conn_param);
	id->state = MDL_CM_CALLING;
	listener = find_listener(id);
	if (listener)
		return make_passive(id, listener, &req->conn_param);
	id->state = MDL_CM_BOUND;
	krn_cm_event(id, id->number, id, EVENT_REJECTED, REASON_INVALID_SERVICE, NULL);
	return 0;
}

/* Accepts the request at the passive end. */
static int accept_request(struct mdl_cm_id *id, const struct rdma_ucm_accept *req)
{
	struct rdma_ucm_conn_param advertised = turned(&req->conn_param);
	struct mdl_cm_id *peer = krn_cm_find(id->peer);

	id->uid = req->uid;
	if (!peer)
		return -ENOTCONN;
	if (req->conn_param.valid)
		take_param(id, &req->conn_param);
	id->state = MDL_CM_ACCEPTED;
	peer->state = MDL_CM_ACCEPTED;
	krn_cm_event(peer, peer->number, peer, EVENT_CONNECT_RESPONSE, 0, &advertised);
	return 0;
}

/* Confirms the connection when the active end's queue pair is ready. */
static int confirm(struct mdl_cm_id *id)
{
	struct mdl_cm_id *peer = krn_cm_find(id->peer);

	if (!peer)
		return -ENOTCONN;
	id->state = peer->state = MDL_CM_CONNECTED;
	krn_cm_event(peer, peer->number, peer, EVENT_ESTABLISHED, 0, NULL);
	return 0;
}

int krn_cm_accept(struct krn_cm_cmd *cmd)
{
	const struct rdma_ucm_accept *req = cmd->in;
	struct mdl_cm_id *id = krn_cm_own(req->id);

	if (id && id->state == MDL_CM_REQUESTED)
		return accept_request(id, req);
	if (id && id->state == MDL_CM_ACCEPTED && !id->listener)
		return confirm(id);
	return -EINVAL;
}

int krn_cm_reject(struct krn_cm_cmd *cmd)
{
	const struct rdma_ucm_reject *req = cmd->in;
	struct mdl_cm_id *id = krn_cm_own(req->id), *peer;
	struct rdma_ucm_conn_param advertised = { .private_data_len = req->private_data_len };

	if (!id || (id->state != MDL_CM_REQUESTED && id->state != MDL_CM_ACCEPTED))
		return -EINVAL;
	memcpy(advertised.private_data, req->private_data, sizeof(advertised.private_data));
	peer = krn_cm_find(id->peer);
	if (peer) {
		peer->state = MDL_CM_CLOSED;
		peer->peer = 0;
		krn_cm_event(peer, peer->number, peer, EVENT_REJECTED, REASON_CONSUMER,
			     &advertised);
	}
	id->peer = 0;
	id->state = MDL_CM_CLOSED;
	return 0;
}

/*
 * Delays the disconnect event until the program has read its completions or a second has passed. A
 * real disconnect request passes both kernels and the wire and arrives long after the last message.
 * Programs depend on this: libfabric's rxm discards unread messages when its peer disconnects.
 */
static void tell_later(struct mdl_cm_id *id)
{
	id->hung_up_ns = mdl_now_ns();
	krn_service_wake(id->proc);
}

/* Returns true if the program has read all completions of the queue pair's receive queue. */
static bool has_read_all(const struct mdl_cm_id *id)
{
	const struct mdl_qp *qp = mdl_qp_find(id->qpn);
	const struct mdl_cq *cq = qp ? mdl_cq_find(qp->recv_cq) : NULL;
	const uint32_t *dbrec = cq ? mdl_at(cq->dbrec) : NULL;

	return !cq || !((be32toh(*dbrec) ^ cq->nic_pi) & 0xffffff);
}

uint64_t krn_cm_tell(struct mdl_cm_id *id, uint64_t now_ns)
{
	uint64_t since = now_ns - id->hung_up_ns;

	if (!id->hung_up_ns)
		return UINT64_MAX;
	if (since < KRN_CM_WIRE_NS || (since < KRN_CM_PATIENCE_NS && !has_read_all(id)))
		return now_ns + KRN_CM_WIRE_NS;
	id->hung_up_ns = 0;
	krn_cm_event(id, id->number, id, EVENT_DISCONNECTED, 0, NULL);
	return UINT64_MAX;
}

void krn_cm_hang_up(struct mdl_cm_id *id)
{
	struct mdl_cm_id *peer = krn_cm_find(id->peer);

	id->peer = 0;
	if (id->state == MDL_CM_LISTENING || id->state == MDL_CM_BOUND) {
		id->state = MDL_CM_CLOSED;
		return;
	}
	id->state = MDL_CM_CLOSED;
	if (!peer)
		return;
	peer->peer = 0;
	if (peer->state == MDL_CM_CALLING)
		krn_cm_event(peer, peer->number, peer, EVENT_REJECTED, REASON_CONSUMER, NULL);
	else if (peer->state == MDL_CM_ACCEPTED || peer->state == MDL_CM_CONNECTED)
		tell_later(peer);
	peer->state = MDL_CM_CLOSED;
}

int krn_cm_disconnect(struct krn_cm_cmd *cmd)
{
	const struct rdma_ucm_disconnect *req = cmd->in;
	struct mdl_cm_id *id = krn_cm_own(req->id);
	bool connected;

	if (!id)
		return -EINVAL;
	connected = id->state == MDL_CM_CONNECTED || id->state == MDL_CM_ACCEPTED || id->hung_up_ns;
	id->hung_up_ns = 0;
	krn_cm_hang_up(id);
	if (connected)
		krn_cm_event(id, id->number, id, EVENT_DISCONNECTED, 0, NULL);
	return 0;
}
