/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How does the user count completions? fi_cntr over core_cntr: a read makes progress first.
 *
 * Shown by test/unit/ofi/queue/test_cpr_cntr.c.
 */
#ifndef CPR_CNTR_H
#define CPR_CNTR_H

#include <rdma/fi_domain.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/core_cntr.h"
#include "core/core_dom.h"
#include "ofi/domain/cpr_pdom.h"
#include "ofi/base/cpr_ref.h"
#include "ofi/queue/cpr_wait.h"

struct cpr_domain;

struct cpr_cntr {
	struct fid_cntr fid;
	struct cpr_domain *domain;
	struct cpr_member place;
	struct core_cntr core;
	struct cpr_wait wait;
	uint32_t reads;      /* that changed nothing, since another was looked after */
	struct cpr_ref refs; /* endpoints, regions, poll sets, triggers */
	uint64_t seen_value; /* what fi_poll, fi_cntr_set and fi_cntr_add last knew */
	uint64_t seen_errors;
	uint64_t told_value; /* what the user was last told by a read or a wait, or asked to read */
	uint64_t told_errors;
	bool hurried;                  /* the last read made no progress */
	struct util_list triggers;     /* cpr_trigger.link: transfers that wait for it */
	struct core_work trigger_work; /* some of them are due */
};

int cpr_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **cntr,
		  void *context);

/** cpr_trigger_look is called at the next change. Locked. */
void cpr_cntr_watch(struct cpr_cntr *cntr);

/** For fi_trywait: 0, -FI_EAGAIN (it changed), or as cpr_wait_try. */
int cpr_cntr_trywait(struct cpr_cntr *cntr, bool shares);

/** True once after each change, for fi_poll. Locked. */
bool cpr_cntr_has_changed(struct cpr_cntr *cntr);

#endif
