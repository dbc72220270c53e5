/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Messages to a QP with tag matching. See nic_state.h. */
#ifndef NIC_TM_RECV_H
#define NIC_TM_RECV_H

#include "model/nic/nic_cqe.h"
#include "model/nic/nic_state.h"
#include "model/nic/nic_wqe.h"

/* Header of a tagged message, and the request of a rendezvous. */
struct nic_tm_msg {
	uint8_t head[MDL_TM_REQUEST_MAX]; /* first bytes of the message */
	uint32_t head_len;
	uint8_t op; /* enum nic_tmh_op */
	uint64_t tag;
	uint64_t va; /* of a rendezvous */
	uint32_t rkey, len;
};
enum nic_tmh_op { NIC_TMH_NO_TAG, NIC_TMH_RNDV, NIC_TMH_FIN, NIC_TMH_EAGER };
enum { NIC_TMH_BYTES = 16, NIC_RVH_BYTES = 16 };
/* Delivers a SEND to a QP with tag matching. rq_lock of PEER held. */
enum nic_outcome nic_tm_send(struct mdl_qp *qp, struct mdl_qp *peer, const struct nic_wqe *wqe,
			     const struct nic_spans *from, struct nic_result *result);
/* Writes a CQE about an entry to the CQ of the SRQ. tm_lock held. */
void nic_tm_complete(struct mdl_qp *peer, const struct mdl_srq *srq, uint32_t entry,
		     struct nic_cqe *cqe);

#endif
