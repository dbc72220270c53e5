/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Lists of tags: operations, matching, phases. See nic_state.h. */
#ifndef NIC_TM_H
#define NIC_TM_H

#include "model/nic/nic_state.h"
#include "model/nic/nic_wqe.h"

/* Executes a list operation. sq_lock held. */
void nic_tm_execute(struct mdl_qp *qp, const struct nic_wqe *wqe);
/*
 * Returns the TM SRQ of a QP with its tm_lock held, or null if it is gone. The lock orders matches
 * and unexpected messages: a message is decided and completed under it.
 */
struct mdl_srq *nic_tm_lock(struct mdl_qp *qp);
static inline struct nic_tag *nic_tm_tag(const struct mdl_srq *srq, uint32_t index)
{
	return (struct nic_tag *)mdl_at(srq->tm_list) + index;
}
/* Returns the index of the oldest active entry that matches, or -1. tm_lock held. */
int nic_tm_find(const struct mdl_srq *srq, uint64_t tag);
/* Records what the CQE at INDEX of its CQ did to the list. The lock of the CQ held. */
void nic_tm_note(const struct mdl_qp *qp, const uint8_t *cqe64, uint32_t index);
/*
 * Completes with NIC_APP_CANCELED the entries whose data would come through the QP. Returns false
 * if the CQ has no room for that. rq_lock held.
 */
bool nic_tm_cancel(struct mdl_qp *qp);

#endif
