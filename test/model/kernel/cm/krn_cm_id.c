/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Identifiers of the connection manager, and their events. */
#include "model/kernel/krn_chan.h"
#include "model/kernel/cm/krn_cm.h"
#include "model/fabric/mdl_nic.h"
#include "model/fabric/mdl_table.h"

#include <assert.h>
#include <errno.h>
#include <rdma/rdma_user_cm.h>
#include <string.h>

static_assert(sizeof(struct rdma_ucm_event_resp) <= sizeof(((struct mdl_cm_event *)0)->resp),
	      "an event has room");

struct mdl_cm_id *krn_cm_find(uint32_t number)
{
	return mdl_table_find(MDL_TABLE_CM, number);
}

struct mdl_cm_id *krn_cm_own(uint32_t number)
{
	struct mdl_cm_id *id = krn_cm_find(number);

	return id && id->proc == mdl_self.slot ? id : NULL;
}

struct mdl_cm_id *krn_cm_new(uint32_t proc, uint32_t chan, uint32_t *number)
{
	struct mdl_cm_id *id = mdl_table_claim(MDL_TABLE_CM, chan, number);

	if (!id)
		return NULL;
	id->proc = proc;
	id->node = mdl_self.seg->proc[proc].node;
	id->psn = (uint32_t)(mdl_now_ns() * 2654435761u >> 8) & 0xffffff;
	__atomic_store_n(&mdl_self.seg->cm_used, 1, __ATOMIC_RELAXED);
	krn_service_wake(proc);
	return id;
}

int krn_cm_create_id(struct krn_cm_cmd *cmd)
{
	const struct rdma_ucm_create_id *req = cmd->in;
	struct rdma_ucm_create_id_resp resp;
	struct mdl_cm_id *id;
	uint32_t number;

	if (req->ps != RDMA_PS_TCP && req->ps != RDMA_PS_IB && req->ps != RDMA_PS_UDP)
		return -EINVAL;
	id = krn_cm_new(mdl_self.slot, cmd->chan, &number);
	if (!id)
		return -ENOMEM;
	id->uid = req->uid;
	id->ps = req->ps;
	id->qp_type = req->qp_type;
	mdl_table_publish(id, number);
	resp.id = number;
	krn_cm_reply(cmd, req->response, &resp, sizeof(resp));
	return 0;
}

static struct mdl_cm_event *take_event(void)
{
	for (uint32_t i = 0; i < MDL_CM_MAX; i++) {
		struct mdl_cm_event *event = &mdl_self.seg->cm_event[i];

		if (!event->used) {
			event->used = 1;
			return event;
		}
	}
	return NULL;
}

void krn_cm_event(const struct mdl_cm_id *to, uint32_t number, const struct mdl_cm_id *about,
		  uint32_t type, int32_t status, const struct rdma_ucm_conn_param *param)
{
	struct mdl_cm_event *event = take_event();
	struct rdma_ucm_event_resp resp = {
		.uid = to->uid, .id = number, .event = type, .status = (uint32_t)status
	};

	if (!event)
		return;
	if (param)
		resp.param.conn = *param;
	memcpy(event->resp, &resp, sizeof(resp));
	event->id = about->number;
	if (!krn_chan_push(about->ctx, (uint64_t)(event - mdl_self.seg->cm_event), 0,
			   about->number | KRN_ABOUT_CM))
		event->used = 0;
}

/* Removes the unread events and rejects the requests among them. */
static void drop_events(struct mdl_cm_id *id)
{
	uint64_t index[64];
	uint32_t count;

	while ((count = krn_chan_take(id->ctx, id->number | KRN_ABOUT_CM, index, 64)))
		for (uint32_t i = 0; i < count; i++) {
			struct mdl_cm_event *event = &mdl_self.seg->cm_event[index[i]];
			struct rdma_ucm_event_resp resp;
			struct mdl_cm_id *unseen;

			memcpy(&resp, event->resp, sizeof(resp));
			event->used = 0;
			unseen = resp.id == id->number ? NULL : krn_cm_find(resp.id);
			if (unseen) {
				krn_cm_hang_up(unseen);
				mdl_table_hide(unseen);
				mdl_table_release(unseen);
			}
		}
}

int krn_cm_destroy_id(struct krn_cm_cmd *cmd)
{
	const struct rdma_ucm_destroy_id *req = cmd->in;
	struct mdl_cm_id *id = krn_cm_own(req->id);
	struct rdma_ucm_destroy_id_resp resp;

	if (!id)
		return -EINVAL;
	drop_events(id);
	krn_cm_hang_up(id);
	resp.events_reported = id->reported;
	mdl_table_hide(id);
	mdl_table_release(id);
	krn_cm_reply(cmd, req->response, &resp, sizeof(resp));
	return 0;
}

/* Moves the identifier, with its unread events, to the channel of the command. */
int krn_cm_migrate_id(struct krn_cm_cmd *cmd)
{
	const struct rdma_ucm_migrate_id *req = cmd->in;
	struct mdl_cm_id *id = krn_cm_own(req->id);
	struct rdma_ucm_migrate_resp resp;
	uint64_t index[64];
	uint32_t count;

	if (!id)
		return -EINVAL;
	count = krn_chan_take(id->ctx, id->number | KRN_ABOUT_CM, index, 64);
	id->ctx = cmd->chan;
	for (uint32_t i = 0; i < count; i++)
		krn_chan_push(id->ctx, index[i], 0, id->number | KRN_ABOUT_CM);
	resp.events_reported = id->reported;
	krn_cm_reply(cmd, req->response, &resp, sizeof(resp));
	return 0;
}

int krn_cm_get_event(struct krn_cm_cmd *cmd)
{
	const struct rdma_ucm_get_event *req = cmd->in;
	struct mdl_cm_event *event;
	struct mdl_cm_id *id;
	uint64_t index[2];
	ssize_t got = krn_chan_read(cmd->fd, cmd->chan, index, sizeof(index));

	if (got < 0)
		return (int)got;
	mdl_lock(&mdl_self.seg->cm_lock);
	event = &mdl_self.seg->cm_event[index[0]];
	krn_cm_reply(cmd, req->response, event->resp, sizeof(struct rdma_ucm_event_resp));
	id = krn_cm_find(event->id);
	if (id)
		id->reported++;
	event->used = 0;
	mdl_unlock(&mdl_self.seg->cm_lock);
	return 0;
}
