/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connection requests: see cpr_connreq.h. */
#include "ofi/conn/cpr_connreq.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "cm/msg/cm_msg.h"
#include "ofi/base/cpr_fabric.h"

struct cpr_connreq *cpr_connreq_new(struct cpr_fabric *fabric, struct cm_connreq *connreq)
{
	struct cpr_connreq *request = calloc(1, sizeof(*request));

	if (!request)
		return NULL;
	request->fid.fclass = FI_CLASS_CONNREQ;
	request->fabric = fabric;
	request->connreq = connreq;
	pthread_mutex_lock(&fabric->request_lock);
	util_list_push_back(&fabric->requests, &request->link);
	pthread_mutex_unlock(&fabric->request_lock);
	return request;
}

struct cpr_connreq *cpr_connreq_take(struct cpr_fabric *fabric, const struct fid *handle)
{
	struct cpr_connreq *request, *found = NULL;
	struct util_list *it;

	pthread_mutex_lock(&fabric->request_lock);
	for (it = fabric->requests.next; it != &fabric->requests && !found; it = it->next) {
		request = UTIL_CONTAINER_OF(it, struct cpr_connreq, link);
		if (&request->fid == handle && !request->is_taken)
			found = request;
	}
	if (found)
		found->is_taken = true;
	pthread_mutex_unlock(&fabric->request_lock);
	return found;
}

void cpr_connreq_free(struct cpr_connreq *request)
{
	pthread_mutex_lock(&request->fabric->request_lock);
	util_list_remove(&request->link);
	pthread_mutex_unlock(&request->fabric->request_lock);
	free(request);
}

void cpr_connreq_reject(struct cpr_connreq *request, const void *data, size_t len)
{
	cm_connreq_reject(request->connreq, -FI_ECONNREFUSED, data, len);
	cpr_connreq_free(request);
}

void cpr_connreq_reject_all(struct cpr_fabric *fabric)
{
	struct util_list *first;

	/*
	 * The fabric has no event queue, endpoint or passive endpoint left that could change the
	 * list.
	 */
	while ((first = util_list_first(&fabric->requests)))
		cpr_connreq_reject(UTIL_CONTAINER_OF(first, struct cpr_connreq, link), NULL, 0);
}
