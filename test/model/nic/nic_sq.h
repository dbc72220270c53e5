/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Send queues: WQEs are executed in order until the queue is empty, waits or breaks. See
 * nic_state.h.
 */
#ifndef NIC_SQ_H
#define NIC_SQ_H

#include "model/nic/nic_state.h"
#include "model/nic/nic_wqe.h"

/* Executes the WQEs shown by the records. sq_lock held. */
void nic_sq_run(struct mdl_qp *qp);
/* Decodes and checks the WQE at block AT, counted since creation, into BYTES and WQE. */
enum { NIC_SQ_BYTES = NIC_WQE_MAX_BYTES + 48 };
void nic_sq_decode(struct mdl_qp *qp, uint32_t at, uint8_t *bytes, struct nic_wqe *wqe);
/* Executes a WQE, or an injected fault. */
enum nic_outcome nic_sq_execute(struct mdl_qp *qp, const struct nic_wqe *wqe,
				struct nic_result *result);
void nic_sq_account(struct mdl_qp *qp, const struct nic_wqe *wqe);
void nic_sq_begin(const struct mdl_qp *qp, struct nic_attempts *attempts);
/*
 * Decides what follows NIC_RNR or NIC_LOST. Returns true if the WQE is tried again at *DUE_NS, or
 * false with the syndromes of its failure if no retry remains.
 */
bool nic_sq_retry(const struct mdl_qp *qp, struct nic_attempts *attempts, enum nic_outcome outcome,
		  struct nic_result *result, uint64_t *due_ns);
/* Writes the completion of a send WQE. */
void nic_sq_complete(struct mdl_qp *qp, const struct nic_wqe *wqe, const struct nic_result *result);
/*
 * Records that the QP wrote to a peer's CQ, which is released when the run ends or writes another
 * CQ.
 */
void nic_sq_touch(struct mdl_qp *qp, uint32_t cqn);

#endif
