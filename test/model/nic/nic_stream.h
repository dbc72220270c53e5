/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Send queue of a DCI with streams. Every call does nothing for other QPs. See nic_state.h. */
#ifndef NIC_STREAM_H
#define NIC_STREAM_H

#include "model/nic/nic_state.h"

/* Frees the streams of all QPs, which a child of fork() inherits and does not own. */
void nic_stream_attach(void);
int nic_stream_create(struct mdl_qp *qp);
void nic_stream_destroy(struct mdl_qp *qp);
/* Empties all streams, as a reset of the QP does. */
void nic_stream_forget(struct mdl_qp *qp);
/* Executes the WQEs shown by the records. Returns false if the QP has no streams. sq_lock held. */
bool nic_stream_run(struct mdl_qp *qp);
/*
 * Completes the WQEs that were begun, with a flush if they have no result. Returns false if the CQ
 * has no room. sq_lock held.
 */
bool nic_stream_flush(struct mdl_qp *qp);
/* Returns the connection of the channel that serves a stream, or null if the QP has no streams. */
struct nic_dc_conn *nic_stream_conn(struct mdl_qp *qp, uint16_t stream);

#endif
