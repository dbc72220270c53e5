/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fabrics: fi_fabric and the list of everything open in this process.
 *
 * A fabric holds domains and event queues. All fabrics, and their domains, are in one list under
 * one mutex, held only briefly. fi_getinfo takes opened objects from the list, and
 * fi_provider.cleanup takes the threads to stop.
 */
#ifndef OFI_BASE_CPR_FABRIC_H
#define OFI_BASE_CPR_FABRIC_H

#include <pthread.h>
#include <rdma/fi_domain.h>
#include <stdbool.h>
#include <stdint.h>

#include "ofi/base/cpr_ref.h"
#include "util/list.h"

struct cm_node;
struct cpr_domain;

struct cpr_fabric {
	struct fid_fabric fid;
	const char *name; /* CPR_RC_NAME, CPR_UD_NAME or CPR_DGRAM_NAME */
	uint32_t api_version;
	struct cpr_ref refs;          /* domains, event queues */
	struct util_list link;        /* in the list of all */
	struct util_list domains;     /* cpr_domain.fabric_link, under the mutex of the list */
	pthread_mutex_t request_lock; /* guards the fields below */
	struct util_list requests;    /* cpr_connreq.link: pending connection requests */
	struct cm_node *cm;           /* set by the first fi_listen; NULL: none */
};

static inline struct cpr_fabric *cpr_fabric_of(struct fid_fabric *fid)
{
	return UTIL_CONTAINER_OF(fid, struct cpr_fabric, fid);
}

int cpr_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);

/**
 * Starts the control thread if needed; it runs as long as the fabric. Returns 0 or a negative error
 * code.
 */
int cpr_fabric_cm(struct cpr_fabric *fabric, struct cm_node **cm);

bool cpr_fabric_is_ours(const struct fid_fabric *fid);

void cpr_fabric_add(struct cpr_fabric *fabric, struct cpr_domain *domain);
void cpr_fabric_remove(struct cpr_fabric *fabric, struct cpr_domain *domain);

/** Sets the opened fabric and domain in an info, if there are any (fi_fabric(3), fi_domain(3)). */
void cpr_fabric_fill_opened(struct fi_info *info, const struct fi_info *hints);

/**
 * Called around fork: while locked, no domain is opened, closed, or changes its endpoints. In the
 * child cpr_fabric_forget_all calls `forget` for each domain and removes it from the list.
 */
void cpr_fabric_lock_all(void);
void cpr_fabric_unlock_all(void);
void cpr_fabric_forget_all(void (*forget)(struct cpr_domain *domain));

/** Stops the progress threads of all domains: the process ends or libfabric is unloaded. */
void cpr_fabric_stop_all(void);

#endif
