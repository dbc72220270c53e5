/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Packets and bytes of a message. See nic_state.h. */
#ifndef NIC_WIRE_H
#define NIC_WIRE_H

#include "model/fabric/mdl_nic.h"

enum nic_wire_kind {
	NIC_WIRE_SEND,
	NIC_WIRE_WRITE,
	NIC_WIRE_READ,
	NIC_WIRE_ATOMIC,
	NIC_WIRE_UD,
	NIC_WIRE_DC_CONNECT,
	NIC_WIRE_DC_DISCONNECT,
};
uint32_t nic_wire_mtu(const struct mdl_qp *qp);
/*
 * Counts a message of LEN bytes and its reply at both ends. TO may be null: the message was lost.
 * SGID: the index of the source address; -1: no GRH, within an InfiniBand subnet.
 */
void nic_wire_count(struct mdl_qp *from, struct mdl_qp *to, enum nic_wire_kind kind, uint64_t len,
		    bool imm, int sgid);
/* Returns the number of packets of a message. */
uint64_t nic_wire_packets(uint64_t len, uint32_t mtu);

#endif
