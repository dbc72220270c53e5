/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Objects of this process. See nic_state.h. */
#ifndef NIC_OWN_H
#define NIC_OWN_H

#include "model/fabric/mdl_nic.h"

struct nic_register {
	uint32_t ctx, page, off;
};
void nic_own_add_qp(struct mdl_qp *qp);
void nic_own_remove_qp(struct mdl_qp *qp);
void nic_own_add_cq(struct mdl_cq *cq);
void nic_own_qps(void (*each)(struct mdl_qp *qp, const struct nic_register *which),
		 const struct nic_register *which);
void nic_own_cqs(void (*each)(struct mdl_cq *cq));

#endif
