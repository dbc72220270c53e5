/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Completion queues: CQEs, events, and their compression. See nic_state.h. */
#ifndef NIC_CQ_H
#define NIC_CQ_H

#include "model/fabric/mdl_nic.h"
#include "model/nic/nic_cqe.h"

/*
 * Writes a CQE for QP (requester's or responder's) to CQN. Returns false if the CQ is full and may
 * not overrun.
 */
bool nic_cq_write(struct mdl_qp *qp, uint32_t cqn, const struct nic_cqe *cqe);
/* Returns true if another CQE fits. Used before flushing, which waits instead of overrunning. */
bool nic_cq_has_room(uint32_t cqn);
/* Completes the write of a writer that died: `completing` of its responder is final afterwards. */
void nic_cq_settle(uint32_t cqn);
/* Publishes CQEs that wait for compression. */
void nic_cq_release(uint32_t cqn);
void nic_cq_arm(const uint8_t *bytes);
void nic_cq_recheck(struct mdl_cq *cq);

#endif
