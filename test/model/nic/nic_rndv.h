/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Rendezvous that a list of tags has matched, in the process of their sender. sq_lock held. See
 * nic_state.h.
 */
#ifndef NIC_RNDV_H
#define NIC_RNDV_H

#include "model/fabric/mdl_nic.h"
#include "model/nic/nic_tm_recv.h"

void nic_rndv_attach(void);
/* Returns room for another rendezvous, or null. */
struct nic_rndv *nic_rndv_claim(const struct mdl_qp *qp);
/* Begins a rendezvous that entry ENTRY of PEER's list has matched. */
void nic_rndv_begin(struct nic_rndv *rndv, struct mdl_qp *qp, const struct mdl_qp *peer,
		    uint32_t entry, const struct nic_tm_msg *msg);
/* Executes what is due; drops all if the QP is not connected any more. No rq_lock held. */
void nic_rndv_run(struct mdl_qp *qp);
/* Drops all: their receivers' QPs end in error. No rq_lock held. */
void nic_rndv_drop(struct mdl_qp *qp);
/* Ends a QP in error that waits for the data of a sender which died. No rq_lock held. */
void nic_rndv_check_sender(struct mdl_qp *qp);

#endif
