/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* States of a QP: its end, and what is flushed then. See nic_state.h. */
#ifndef NIC_QP_H
#define NIC_QP_H

#include "model/fabric/mdl_nic.h"
#include "model/nic/nic_wqe.h"

void nic_qp_lock_rq(struct mdl_qp *qp);
/* Puts the QP into ERR after its own failure and flushes both queues. sq_lock held, no rq_lock. */
void nic_qp_break(struct mdl_qp *qp, uint32_t event);
/* Flushes both queues as far as CQEs fit. sq_lock held. */
void nic_qp_flush(struct mdl_qp *qp);
enum nic_transport nic_qp_transport(const struct mdl_qp *qp);

#endif
