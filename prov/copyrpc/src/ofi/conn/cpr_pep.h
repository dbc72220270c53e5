/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Passive endpoints: an address, an event queue, and after fi_listen a listener of cm/. Opened by
 * fi_passive_ep.
 *
 * The control thread turns connection requests into FI_CONNREQ events. A reported request outlives
 * the passive endpoint.
 */
#ifndef OFI_CONN_CPR_PEP_H
#define OFI_CONN_CPR_PEP_H

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <stdbool.h>
#include <sys/socket.h>

struct cm_listener;
struct cpr_eq;
struct cpr_fabric;

struct cpr_pep {
	struct fid_pep fid;
	struct cpr_fabric *fabric;
	struct cpr_eq *eq;    /* NULL: not bound */
	struct fi_info *info; /* template for the infos of connection requests */
	struct sockaddr_storage src;
	int backlog;
	bool is_used; /* an active endpoint has taken its address */
	struct cm_listener *listener;
};

int cpr_pep_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep,
		 void *context);

/**
 * Moves the address to an active endpoint. Returns 0, or a negative error code if the passive
 * endpoint belongs to another fabric, was used before or listens.
 */
int cpr_pep_take_addr(struct cpr_fabric *fabric, fid_t fid, struct sockaddr_storage *src);

#endif
