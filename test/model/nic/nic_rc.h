/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* One WQE of a connected QP. sq_lock held. See nic_state.h. */
#ifndef NIC_RC_H
#define NIC_RC_H

#include "model/nic/nic_cqe.h"
#include "model/nic/nic_state.h"
#include "model/nic/nic_wqe.h"

enum nic_outcome nic_rc_execute(struct mdl_qp *qp, const struct nic_wqe *wqe,
				struct nic_result *result);
/* Parts of a SEND's delivery, which tag matching uses too. rq_lock of PEER held. */
enum nic_outcome nic_rc_send(struct mdl_qp *qp, struct mdl_qp *peer, const struct nic_wqe *wqe,
			     const struct nic_spans *from, struct nic_result *result);
enum nic_outcome nic_rc_deliver(struct mdl_qp *qp, struct mdl_qp *peer, const struct nic_wqe *wqe,
				const struct nic_spans *from, const struct nic_taken *taken,
				struct nic_result *result);
enum nic_outcome nic_rc_not_ready(struct mdl_qp *peer, struct nic_result *result);
/* Breaks the responder, unless it is a DCT, and refuses the operation with a syndrome. */
enum nic_outcome nic_rc_refuse(struct mdl_qp *peer, struct nic_result *result, uint8_t syndrome,
			       uint8_t vendor, uint32_t event);
enum nic_outcome nic_rc_copy_failed(struct mdl_qp *peer, struct nic_result *result, int rc);
/* Copies and counts the payload of a message. */
int nic_rc_fill(struct mdl_qp *qp, struct mdl_qp *peer, const struct nic_spans *to,
		const struct nic_spans *from, uint64_t len);
int nic_rc_fill_cqe(struct mdl_qp *qp, const struct nic_spans *from, uint64_t len,
		    struct nic_cqe *cqe);
/* Returns whether a message is scattered to the CQE: of 32 bytes, or 64 where a CQE has 128. */
bool nic_rc_fits_cqe(const struct mdl_qp *peer, uint64_t len);
/* Returns the index of the source GID, -1 without a GRH. */
int nic_rc_sgid(const struct mdl_qp *qp, const struct nic_wqe *wqe);

#endif
