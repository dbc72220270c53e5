/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What listens?
 *
 * A passive endpoint: an address, an event queue, and from fi_listen on a listener of cm/ whose calls become
 * FI_CONNREQ events, made in the control thread. It holds no more than the fabric does: what it
 * reported lives on when it is closed.
 *
 * Shown by test/unit/ofi/conn/test_cpr_pep.c.
 */
#ifndef CPR_PEP_H
#define CPR_PEP_H

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct cm_listener;
struct cpr_eq;
struct cpr_fabric;

struct cpr_pep {
	struct fid_pep fid;
	struct cpr_fabric *fabric;
	struct cpr_eq *eq;    /* NULL: not bound */
	struct fi_info *info; /* what connection requests say about the endpoint to be */
	struct sockaddr_storage src;
	int backlog;
	bool is_spent; /* an active endpoint has its address */
	struct cm_listener *listener;
};

int cpr_pep_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep,
		 void *context);

/** An active endpoint takes over the address: 0, or -FI_E* (not ours, spent, listening). */
int cpr_pep_spend(struct cpr_fabric *fabric, fid_t fid, struct sockaddr_storage *src);

#endif
