/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connection events: created, queued, and dropped when their endpoint is closed. See cpr_eq.h. */
#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "ofi/queue/cpr_eq.h"

static struct cpr_eq_event *cpr_eq_cm_new(uint32_t event, fid_t fid, struct fi_info *info,
					  const void *data, size_t len)
{
	struct fi_eq_cm_entry entry = { .fid = fid, .info = info };
	struct cpr_eq_event *ev = cpr_eq_event_new(event, sizeof(entry) + len);

	if (!ev)
		return NULL;
	ev->fid = fid;
	ev->len_min = sizeof(entry);
	memcpy(ev->data, &entry, sizeof(entry));
	if (len)
		memcpy(ev->data + sizeof(entry), data, len);
	return ev;
}

int cpr_eq_post_cm(struct cpr_eq *eq, uint32_t event, fid_t fid, const void *data, size_t len)
{
	struct cpr_eq_event *ev = cpr_eq_cm_new(event, fid, NULL, data, len);

	if (!ev)
		return -FI_ENOMEM;
	cpr_eq_push(eq, ev);
	return 0;
}

int cpr_eq_post_connreq(struct cpr_eq *eq, fid_t pep, struct fi_info *info, const void *data,
			size_t len, void (*drop)(struct cpr_eq_event *ev))
{
	struct cpr_eq_event *ev = cpr_eq_cm_new(FI_CONNREQ, pep, info, data, len);

	if (!ev)
		return -FI_ENOMEM;
	ev->drop = drop;
	cpr_eq_push(eq, ev);
	return 0;
}

int cpr_eq_post_cm_err(struct cpr_eq *eq, fid_t fid, int err, const void *data, size_t len)
{
	struct fi_eq_err_entry entry = {
		.fid = fid,
		.err = -err,
		.prov_errno = -err,
		.err_data_size = len,
	};
	struct cpr_eq_event *ev = cpr_eq_event_new(0, sizeof(entry) + len);

	if (!ev)
		return -FI_ENOMEM;
	ev->fid = fid;
	ev->is_err = true;
	memcpy(ev->data, &entry, sizeof(entry));
	if (len)
		memcpy(ev->data + sizeof(entry), data, len);
	cpr_eq_push(eq, ev);
	return 0;
}

void cpr_eq_forget(struct cpr_eq *eq, fid_t fid)
{
	struct util_list *it, *tmp, gone;

	util_list_init(&gone);
	pthread_mutex_lock(&eq->lock);
	UTIL_LIST_FOREACH_SAFE (it, tmp, &eq->events) {
		if (UTIL_CONTAINER_OF(it, struct cpr_eq_event, link)->fid != fid)
			continue;
		util_list_remove(it);
		util_list_push_back(&gone, it);
	}
	pthread_mutex_unlock(&eq->lock);
	while ((it = util_list_pop(&gone)))
		cpr_eq_event_drop(UTIL_CONTAINER_OF(it, struct cpr_eq_event, link));
}
