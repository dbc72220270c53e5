/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Targets of DCIs: connections, access keys. See nic_state.h. */
#ifndef NIC_DC_H
#define NIC_DC_H

#include "model/fabric/mdl_nic.h"
#include "model/nic/nic_wqe.h"

/*
 * Returns the target of a DCI's WQE with its rq_lock held, connected to, or null if none replies.
 */
struct mdl_qp *nic_dc_lock(struct mdl_qp *qp, const struct nic_wqe *wqe);
/* Returns true if the WQE has the access key of the target; counts a violation if not. */
bool nic_dc_admits(struct mdl_qp *peer, const struct nic_wqe *wqe);
/* Forgets the connection that served a WQE, after it failed. */
void nic_dc_failed(struct mdl_qp *qp, const struct nic_wqe *wqe);

#endif
