/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How does the user read completions?
 *
 * fi_cq over core_cq: entries are copied in the format chosen at open, by a loop compiled per
 * format; the op table is chosen then too. Every read makes progress first, whatever is queued and
 * however much is asked for: it may be the last call for long, and what the sender holds back to
 * fill a batch leaves with it. Elastic: no size is too small.
 *
 * Who reads an empty queue in a circle gives the processor away now and then: the peer that he
 * waits for may want it. With a processor of one's own this costs nothing that can be measured;
 * two that share one exchange a message in tens of microseconds instead of time slices. More often
 * he looks after groups of endpoints that nobody reads (cpr_pdom_progress_others).
 *
 * Shown by test/unit/ofi/queue/test_cpr_cq.c.
 */
#ifndef CPR_CQ_H
#define CPR_CQ_H

#include <rdma/fi_domain.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/core_cq.h"
#include "ofi/domain/cpr_pdom.h"
#include "ofi/base/cpr_ref.h"
#include "ofi/queue/cpr_wait.h"

struct cpr_domain;

struct cpr_cq {
	struct fid_cq fid;
	struct cpr_member place;
	struct core_cq core;
	uint32_t idle_reads; /* in a row that found nothing */
	struct cpr_wait wait;
	struct cpr_ref refs; /* endpoints, poll sets */
	enum fi_cq_wait_cond wait_cond;
	bool has_data; /* its entries have buf and data */
	struct cpr_domain *domain;
};

int cpr_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq,
		void *context);

/** Is there something to read, here or (core_cq.intake_cnt) elsewhere? For fi_poll. */
static inline bool cpr_cq_has_event(const struct cpr_cq *cq)
{
	return !core_cq_is_empty(&cq->core) || cq->core.intake_cnt;
}

/** For fi_trywait: 0, -FI_EAGAIN (completions), or as cpr_wait_try. */
int cpr_cq_trywait(struct cpr_cq *cq, bool shares);

#endif
