/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Who wants to be connected?
 *
 * A connection request is what fi_info.handle of an FI_CONNREQ event points at. It lives from the
 * event to its one answer: fi_accept of the endpoint that was opened for it, fi_reject, or the
 * fi_close of either end of the matter (that endpoint, the fabric; the passive endpoint, if nobody
 * has read the event). All of a fabric stand in one list, so a handle of the user's is looked up,
 * not believed.
 *
 * Lock order: cm's -> the fabric's request_lock. Shown by test/unit/ofi/conn/test_cpr_request.c and
 * test_cpr_pep.c.
 */
#ifndef CPR_REQUEST_H
#define CPR_REQUEST_H

#include <rdma/fabric.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "util/list.h"

struct cm_connreq;
struct cpr_fabric;

struct cpr_request {
	struct fid fid;        /* FI_CLASS_CONNREQ */
	struct util_list link; /* cpr_fabric.requests */
	struct cpr_fabric *fabric;
	struct cm_connreq *call;
	struct sockaddr_storage local; /* where the caller found us */
	bool is_taken;                 /* an endpoint was opened for it */
};

/** NULL: no memory. */
struct cpr_request *cpr_request_new(struct cpr_fabric *fabric, struct cm_connreq *call);
/** The request behind a handle, now the caller's to answer: NULL: there is none (any more), or it is taken. */
struct cpr_request *cpr_request_take(struct cpr_fabric *fabric, const struct fid *handle);
/** It is answered, or was never reported: frees it, and nothing else. */
void cpr_request_free(struct cpr_request *request);
/** Says no, with the user's data, and frees it. */
void cpr_request_reject(struct cpr_request *request, const void *data, size_t len);
/** The fabric is closing: says no to all. */
void cpr_request_reject_all(struct cpr_fabric *fabric);

#endif
