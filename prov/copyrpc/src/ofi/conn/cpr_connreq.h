/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connection requests: fi_info.handle of an FI_CONNREQ event. Created by cpr_pep, used by cpr_conn.
 *
 * A request lives from the event to its one reply: fi_accept of the endpoint opened for it,
 * fi_reject, or fi_close. fi_close of that endpoint or of the fabric rejects it; fi_close of the
 * passive endpoint rejects it if the event was not read. All requests of a fabric are in one list,
 * so a handle from the user is looked up before it is used.
 *
 * Lock order: cm's -> the fabric's request_lock. Tested by test/unit/ofi/conn/test_cpr_connreq.c
 * and test_cpr_pep.c.
 */
#ifndef OFI_CONN_CPR_CONNREQ_H
#define OFI_CONN_CPR_CONNREQ_H

#include <rdma/fabric.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "util/list.h"

struct cm_connreq;
struct cpr_fabric;

struct cpr_connreq {
	struct fid fid;        /* FI_CLASS_CONNREQ */
	struct util_list link; /* cpr_fabric.requests */
	struct cpr_fabric *fabric;
	struct cm_connreq *connreq;
	struct sockaddr_storage local; /* address at which the request arrived */
	bool is_taken;                 /* an endpoint was opened for it */
};

/** Returns NULL if out of memory. */
struct cpr_connreq *cpr_connreq_new(struct cpr_fabric *fabric, struct cm_connreq *connreq);
/**
 * Returns the request of a handle for the caller to reply to. Returns NULL if there is none, or if
 * it is taken.
 */
struct cpr_connreq *cpr_connreq_take(struct cpr_fabric *fabric, const struct fid *handle);
/** Frees a request that was replied to or never reported. */
void cpr_connreq_free(struct cpr_connreq *request);
/** Rejects the request with the user's data and frees it. */
void cpr_connreq_reject(struct cpr_connreq *request, const void *data, size_t len);
/** Rejects all requests of a fabric that closes. */
void cpr_connreq_reject_all(struct cpr_fabric *fabric);

#endif
