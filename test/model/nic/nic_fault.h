/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Injected faults. See nic_state.h. */
#ifndef NIC_FAULT_H
#define NIC_FAULT_H

#include "model/fabric/mdl_nic.h"

enum nic_fault {
	NIC_FAULT_NONE,
	NIC_FAULT_DROP,
	NIC_FAULT_DUP,
	NIC_FAULT_CORRUPT,
	NIC_FAULT_DELAY,
};
/* Returns the fault to inject into the next datagram of QP. */
enum nic_fault nic_fault_datagram(struct mdl_qp *qp);
/* Returns true if the responder must appear to have no receive WQE. */
bool nic_fault_rnr(struct mdl_qp *qp);
/* Returns true if the QP must break at this WQE. */
bool nic_fault_breaks(struct mdl_qp *qp, uint64_t wqe);
/* Returns a number from the seed of the fabric, for this process. */
uint64_t nic_random(void);

#endif
