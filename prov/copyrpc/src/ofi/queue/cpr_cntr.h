/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Counters: fi_cntr over core_cntr. Opened by fi_cntr_open; reads make progress first.
 */
#ifndef OFI_QUEUE_CPR_CNTR_H
#define OFI_QUEUE_CPR_CNTR_H

#include <rdma/fi_domain.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/core_cntr.h"
#include "core/core_dom.h"
#include "ofi/base/cpr_pdom.h"
#include "ofi/base/cpr_ref.h"
#include "ofi/queue/cpr_wait.h"
#include "ofi/queue/cpr_yield.h"

struct cpr_domain;

struct cpr_cntr {
	struct fid_cntr fid;
	struct cpr_domain *domain;
	struct cpr_member member;
	struct core_cntr core;
	struct cpr_wait wait;
	struct cpr_yield idle; /* reads without a change */
	struct cpr_ref refs;   /* endpoints, regions, poll sets, triggers */
	uint64_t seen_value;   /* value at the last fi_poll, fi_cntr_set or fi_cntr_add */
	uint64_t seen_errors;
	uint64_t read_value; /* value at the last read or wait that the user made */
	uint64_t read_errors;
	bool skipped_progress;         /* the last read made no progress */
	struct util_list triggers;     /* cpr_trigger.link: transfers that wait for the counter */
	struct core_work trigger_work; /* posts transfers that are due */
	void (*on_change)(struct cpr_cntr *cntr); /* set with the first of them */
};

int cpr_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **cntr,
		  void *context);

/** Requests a call of on_change, and a wakeup, at the next change. Locked. */
void cpr_cntr_watch(struct cpr_cntr *cntr);

/** Implements fi_trywait: returns 0, -FI_EAGAIN if the counter changed, or as cpr_wait_try. */
int cpr_cntr_trywait(struct cpr_cntr *cntr, bool shares);

/** Returns true once after each change, for fi_poll. Locked. */
bool cpr_cntr_has_changed(struct cpr_cntr *cntr);

#endif
