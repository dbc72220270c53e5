/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Responders: found, locked, broken. See nic_state.h. */
#ifndef NIC_PEER_H
#define NIC_PEER_H

#include "model/fabric/mdl_nic.h"

/* Returns the responder of an RC or UC QP with its rq_lock held, or null if none replies. */
struct mdl_qp *nic_peer_lock(struct mdl_qp *qp);
/* Returns a QP by its number with its rq_lock held, or null if it cannot receive. */
struct mdl_qp *nic_peer_lock_number(uint32_t qpn);
void nic_peer_unlock(struct mdl_qp *peer);
/* Puts the responder into error, with an async event (0: none). rq_lock held. */
void nic_peer_break(struct mdl_qp *peer, uint32_t event);

#endif
