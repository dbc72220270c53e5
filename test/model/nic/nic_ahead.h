/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Payload gathered before the end of a READ that it should have waited for. See nic_state.h. */
#ifndef NIC_AHEAD_H
#define NIC_AHEAD_H

#include "model/fabric/mdl_nic.h"
#include "model/nic/nic_wqe.h"

/* Returns true if the WQE after this one is to be gathered ahead. */
bool nic_ahead_wanted(const struct nic_wqe *wqe);
void nic_ahead_take(struct mdl_qp *qp, const struct nic_wqe *next);
/* Uses the payload gathered ahead for this WQE, if it is the one, until nic_ahead_drop(). */
bool nic_ahead_use(struct mdl_qp *qp, struct nic_wqe *wqe);
void nic_ahead_drop(const struct mdl_qp *qp);

#endif
