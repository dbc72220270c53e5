/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Receive WQEs: taken, completed, flushed. rq_lock of the QP held. See nic_state.h. */
#ifndef NIC_RECV_H
#define NIC_RECV_H

#include "model/nic/nic_cqe.h"
#include "model/nic/nic_state.h"

enum nic_take { NIC_TAKEN, NIC_NONE };
enum nic_take nic_recv_take(struct mdl_qp *qp, struct nic_taken *taken);
/* Completes a receive WQE and fills in the CQE's fields of the QP and of the WQE. */
void nic_recv_complete(struct mdl_qp *qp, const struct nic_taken *taken, struct nic_cqe *cqe);
/* Completes the receive WQEs of an RQ in error with a flush. Returns true if none remains. */
bool nic_recv_flush(struct mdl_qp *qp);
/* Repairs the state of a taken receive WQE after the holder of rq_lock died. */
void nic_recv_repair(struct mdl_qp *qp);
/* Returns whether so many WQEs have been posted to a shared queue since its creation. */
bool nic_recv_has_had(struct mdl_srq *srq, uint32_t cnt);
/* Returns the number of receive WQEs posted and not taken. */
uint32_t nic_recv_posted(struct mdl_qp *qp);

#endif
