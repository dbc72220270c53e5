/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion queues: fi_cq over core_cq. Opened by fi_cq_open.
 *
 * Entries are copied in the format chosen at open, by a loop compiled for each format. Every read
 * makes progress first, even if completions are queued: it may be the last call for a while, and
 * deferred batches are sent by progress. The queue grows: no size is too small.
 *
 * A thread that reads an empty queue in a loop yields the processor now and then, because the peer
 * may share it, and at each empty read once that has helped (cpr_yield.h). On a processor of its
 * own this costs nothing measurable; two threads that share one exchange a message in tens of
 * microseconds instead of time slices. Each CPR_PDOM_IDLE_READS empty reads the reader makes
 * progress for progress domains that are not read (cpr_pdom_progress_others).
 */
#ifndef OFI_QUEUE_CPR_CQ_H
#define OFI_QUEUE_CPR_CQ_H

#include <rdma/fi_domain.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/core_cq.h"
#include "ofi/base/cpr_pdom.h"
#include "ofi/base/cpr_ref.h"
#include "ofi/queue/cpr_wait.h"
#include "ofi/queue/cpr_yield.h"

struct cpr_domain;

struct cpr_cq {
	struct fid_cq fid;
	struct cpr_member member;
	struct core_cq core;
	struct cpr_yield idle; /* reads that found nothing */
	struct cpr_wait wait;
	struct cpr_ref refs; /* endpoints, poll sets */
	enum fi_cq_wait_cond wait_cond;
	bool blocks;   /* blocking calls are allowed */
	bool has_data; /* format with buf and data */
	struct cpr_domain *domain;
};

int cpr_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq,
		void *context);

/**
 * Returns true if there is something to read, an error included, here or, for core_cq.intake_cnt,
 * elsewhere. For fi_poll.
 */
static inline bool cpr_cq_has_event(const struct cpr_cq *cq)
{
	return !core_cq_is_empty(&cq->core) || cq->core.overrun || cq->core.intake_cnt;
}

/** Implements fi_trywait: returns 0, -FI_EAGAIN if there are completions, or as cpr_wait_try. */
int cpr_cq_trywait(struct cpr_cq *cq, bool shares);

#endif
