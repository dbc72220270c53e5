/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Datagrams: one WQE, sq_lock held. See nic_state.h. */
#ifndef NIC_UD_H
#define NIC_UD_H

#include "model/nic/nic_av.h"
#include "model/nic/nic_cqe.h"
#include "model/nic/nic_state.h"
#include "model/nic/nic_wqe.h"

enum nic_outcome nic_ud_execute(struct mdl_qp *qp, const struct nic_wqe *wqe,
				struct nic_result *result);
/* Sends the delayed datagram of the QP. */
void nic_ud_late_flush(struct mdl_qp *qp);
/* Fills in the source of a message in its receiver's CQE. */
void nic_ud_source(struct nic_cqe *cqe, const struct mdl_qp *from, const struct nic_av *av);
/* Writes the 40 bytes that precede a datagram. */
void nic_ud_grh(uint8_t grh[40], const struct mdl_qp *from, const struct nic_av *av, uint32_t len);

#endif
