/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Execution of datagrams.
 *
 * A datagram is one packet; its send completes whether or not a QP receives it. The receive buffer
 * needs 40 bytes more than the message: the routing header, if there is one, goes to the first 40
 * bytes, the message behind them. Without a header those 40 bytes are unchanged.
 *
 * A datagram that a fault delays or reorders (nic_fault.c) waits in a buffer of this process.
 */
#include "model/nic/nic_ud.h"

#include <errno.h>
#include <string.h>

#include "model/nic/nic_av.h"
#include "model/nic/nic_be.h"
#include "model/nic/nic_cqe.h"
#include "model/nic/nic_fault.h"
#include "model/nic/nic_mem.h"
#include "model/nic/nic_peer.h"
#include "model/nic/nic_recv.h"
#include "model/nic/nic_sq.h"
#include "model/nic/nic_state.h"
#include "model/nic/nic_wire.h"
#include "model/nic/nic_wqe.h"

enum {
	NIC_GRH = 40,
	NIC_QPN_MULTICAST = 0xffffff,
	NIC_QKEY_OF_QP = 0x80000000u,
	NIC_ROCE_UDP = 8, /* value in the SL field of a RoCE datagram's CQE */
	NIC_ROCE_IPV6 = 1,
	NIC_ROCE_IPV4 = 2,
	NIC_VENDOR_UD_LENGTH = 0x68,
	NIC_VENDOR_UD_PROT = 0x52,
	NIC_UD_LATE_MAX = 8,
	NIC_UD_LATE_NS = 1000000,
};

static const uint8_t nic_mapped_ipv4[12] = { [10] = 0xff, [11] = 0xff };

static const uint8_t *nic_ud_sgid(const struct mdl_qp *from, const struct nic_av *av, bool *v2)
{
	const struct mdl_port *port = &mdl_self.seg->port[from->port_index];
	uint32_t index = av->sgid_index < 8 ? av->sgid_index : 0;

	*v2 = port->gid_type[index] != 0;
	return port->gid[index];
}

static void nic_ud_ipv4(uint8_t *header, const uint8_t *from, const uint8_t *to,
			const struct nic_av *av, uint32_t len)
{
	header[0] = 0x45;
	header[1] = av->tclass;
	nic_be16_put(header + 2, 20 + 8 + 12 + 8 + len + 4);
	header[6] = 0x40;
	header[8] = av->hop_limit;
	header[9] = 17;
	memcpy(header + 12, from + 12, 4);
	memcpy(header + 16, to + 12, 4);
}

void nic_ud_grh(uint8_t grh[40], const struct mdl_qp *from, const struct nic_av *av, uint32_t len)
{
	bool v2;
	const uint8_t *sgid = nic_ud_sgid(from, av, &v2);
	bool udp = v2 && mdl_self.seg->link == MDL_LINK_ROCE;

	memset(grh, 0, NIC_GRH);
	if (udp && memcmp(sgid, nic_mapped_ipv4, sizeof(nic_mapped_ipv4)) == 0) {
		nic_ud_ipv4(grh + 20, sgid, av->rgid, av, len);
		return;
	}
	nic_be32_put(grh, 6u << 28 | (uint32_t)av->tclass << 20 | av->flow_label);
	nic_be16_put(grh + 4, (udp ? 8 : 0) + 12 + 8 + len + 4);
	grh[6] = udp ? 17 : 0x1b;
	grh[7] = av->hop_limit;
	memcpy(grh + 8, sgid, 16);
	memcpy(grh + 24, av->rgid, 16);
}

void nic_ud_source(struct nic_cqe *cqe, const struct mdl_qp *from, const struct nic_av *av)
{
	bool v2;
	const uint8_t *sgid = nic_ud_sgid(from, av, &v2);

	cqe->src_qpn = from->number;
	if (mdl_self.seg->link == MDL_LINK_IB) {
		cqe->slid = mdl_self.seg->port[from->port_index].lid | av->src_path_bits;
		cqe->sl = av->sl;
		cqe->grh = av->grh;
		return;
	}
	cqe->grh = true;
	if (!v2)
		cqe->sl = 0;
	else if (memcmp(sgid, nic_mapped_ipv4, sizeof(nic_mapped_ipv4)) == 0)
		cqe->sl = NIC_ROCE_UDP | NIC_ROCE_IPV4;
	else
		cqe->sl = NIC_ROCE_UDP | NIC_ROCE_IPV6;
}

static struct mdl_qp *nic_ud_find(const struct mdl_qp *from, const struct nic_av *av)
{
	uint32_t qkey = av->qkey & NIC_QKEY_OF_QP ? from->qkey : av->qkey;
	bool ib = mdl_self.seg->link == MDL_LINK_IB;
	struct mdl_port *port = ib ? mdl_port_by_lid(av->rlid) : mdl_port_by_gid(av->rgid);
	struct mdl_qp *peer;

	if (!port || av->qpn == NIC_QPN_MULTICAST || nic_link_is_down(from))
		return NULL;
	peer = nic_peer_lock_number(av->qpn);
	if (!peer)
		return NULL;
	if (peer->type == MDL_QPT_UD && peer->port_index == mdl_port_index(port) &&
	    peer->qkey == qkey)
		return peer;
	nic_peer_unlock(peer);
	return NULL;
}

/* Breaks a receiver whose receive WQE is too small or not writable. The sender gets no error. */
static void nic_ud_bad_receive(struct mdl_qp *peer, const struct nic_taken *taken, uint8_t syndrome,
			       uint8_t vendor)
{
	struct nic_cqe cqe = { .op = NIC_CQE_RESP_ERR,
			       .syndrome = syndrome,
			       .vendor_syndrome = vendor };

	nic_recv_complete(peer, taken, &cqe);
	nic_peer_break(peer, 0);
}

static bool nic_ud_write_grh(struct mdl_qp *from, struct mdl_qp *peer, const struct nic_av *av,
			     const struct nic_taken *taken, uint32_t len)
{
	uint8_t grh[NIC_GRH];
	struct nic_spans to, header = { .cnt = 1, .span[0] = { .bytes = grh, .len = NIC_GRH } };
	uint32_t writes = 0;

	nic_ud_grh(grh, from, av, len);
	return nic_mem_scatter(peer, &taken->rwqe, 0, NIC_GRH, &to) &&
	       nic_mem_copy(&to, &header, NIC_GRH, &writes) == 0;
}

static void nic_ud_fill(struct mdl_qp *from, struct mdl_qp *peer, const struct nic_wqe *wqe,
			const struct nic_spans *pieces, const struct nic_taken *taken)
{
	bool imm = wqe->opcode == NIC_OP_SEND_IMM;
	struct nic_cqe cqe = { .op = imm ? NIC_CQE_RESP_SEND_IMM : NIC_CQE_RESP_SEND,
			       .solicited = wqe->solicited,
			       .imm = imm ? wqe->imm : 0,
			       .byte_cnt = NIC_GRH + wqe->len };
	struct nic_spans to;
	uint32_t writes = 0;

	nic_ud_source(&cqe, from, &wqe->av);
	if (taken->rwqe.len < NIC_GRH + wqe->len) {
		nic_ud_bad_receive(peer, taken, NIC_SYN_LOCAL_LENGTH, NIC_VENDOR_UD_LENGTH);
		return;
	}
	if ((cqe.grh && !nic_ud_write_grh(from, peer, &wqe->av, taken, wqe->len)) ||
	    !nic_mem_scatter(peer, &taken->rwqe, NIC_GRH, wqe->len, &to)) {
		nic_ud_bad_receive(peer, taken, NIC_SYN_LOCAL_PROT, NIC_VENDOR_UD_PROT);
		return;
	}
	if (nic_mem_copy(&to, pieces, wqe->len, &writes)) {
		nic_recv_repair(peer);
		return;
	}
	nic_count(peer, MDL_CNT_PAYLOAD_WRITES, writes);
	nic_count(peer, MDL_CNT_PAYLOAD_WRITE_BYTES, wqe->len);
	nic_recv_complete(peer, taken, &cqe);
}

/* Returns the index of the source GID. RoCE always has a GRH. */
static int nic_ud_sgid_index(const struct nic_av *av)
{
	return av->grh || mdl_self.seg->link == MDL_LINK_ROCE ? av->sgid_index : -1;
}

static void nic_ud_deliver(struct mdl_qp *from, const struct nic_wqe *wqe,
			   const struct nic_spans *pieces)
{
	struct mdl_qp *peer = nic_ud_find(from, &wqe->av);
	bool imm = wqe->opcode == NIC_OP_SEND_IMM;
	struct nic_taken taken;

	nic_wire_count(from, peer, NIC_WIRE_UD, wqe->len, imm, nic_ud_sgid_index(&wqe->av));
	if (!peer) {
		nic_count(from, MDL_CNT_DROPPED, 1);
		return;
	}
	if (nic_recv_take(peer, &taken) == NIC_NONE)
		nic_count(peer, MDL_CNT_DROPPED, 1);
	else
		nic_ud_fill(from, peer, wqe, pieces, &taken);
	nic_sq_touch(from, peer->recv_cq);
	nic_peer_unlock(peer);
}

/* Datagram delayed by a fault. Under the sq_lock of its QP. */
static struct nic_late {
	uint32_t qpn;
	uint32_t opcode;
	uint32_t imm;
	uint32_t len;
	bool solicited;
	struct nic_av av;
	uint8_t bytes[4096];
} nic_late[NIC_UD_LATE_MAX];

static void nic_ud_late_send(struct mdl_qp *from, struct nic_late *late)
{
	struct nic_spans pieces = { .cnt = 1,
				    .span[0] = { .bytes = late->bytes, .len = late->len } };
	struct nic_wqe wqe = { .opcode = late->opcode,
			       .imm = late->imm,
			       .len = late->len,
			       .solicited = late->solicited,
			       .av = late->av };

	nic_ud_deliver(from, &wqe, &pieces);
	__atomic_store_n(&late->qpn, 0, __ATOMIC_RELEASE);
}

/* Delivers the QP's delayed datagram behind the one that overtook it. */
void nic_ud_late_flush(struct mdl_qp *from)
{
	for (uint32_t i = 0; i < NIC_UD_LATE_MAX; i++)
		if (__atomic_load_n(&nic_late[i].qpn, __ATOMIC_ACQUIRE) == from->number)
			nic_ud_late_send(from, &nic_late[i]);
}

static bool nic_ud_late_keep(struct mdl_qp *from, const struct nic_wqe *wqe,
			     const struct nic_spans *pieces)
{
	for (uint32_t i = 0; i < NIC_UD_LATE_MAX; i++) {
		struct nic_late *late = &nic_late[i];
		struct nic_spans to = { .cnt = 1,
					.span[0] = { .bytes = late->bytes, .len = wqe->len } };
		uint32_t writes = 0, none = 0;

		if (!__atomic_compare_exchange_n(&late->qpn, &none, from->number, false,
						 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		late->opcode = wqe->opcode;
		late->imm = wqe->imm;
		late->solicited = wqe->solicited;
		late->av = wqe->av;
		late->len = wqe->len;
		if (wqe->len && nic_mem_copy(&to, pieces, wqe->len, &writes))
			late->len = 0;
		nic_qp_priv(from)->ud_due_ns = mdl_now_ns() + NIC_UD_LATE_NS;
		__atomic_fetch_or(&from->nic_stalled, NIC_WAIT_UD, __ATOMIC_RELEASE);
		return true;
	}
	return false;
}

static void nic_ud_corrupt(struct mdl_qp *from, const struct nic_wqe *wqe,
			   const struct nic_spans *pieces)
{
	uint64_t at = wqe->len ? nic_random() % wqe->len : 0;

	if (!wqe->len || !nic_ud_late_keep(from, wqe, pieces)) {
		nic_ud_deliver(from, wqe, pieces);
		return;
	}
	for (uint32_t i = 0; i < NIC_UD_LATE_MAX; i++)
		if (nic_late[i].qpn == from->number && nic_late[i].len > at)
			nic_late[i].bytes[at] ^= 1u << (nic_random() & 7);
	nic_ud_late_flush(from);
}

static void nic_ud_send(struct mdl_qp *from, const struct nic_wqe *wqe,
			const struct nic_spans *pieces)
{
	switch (nic_fault_datagram(from)) {
	case NIC_FAULT_DROP:
		nic_wire_count(from, NULL, NIC_WIRE_UD, wqe->len, wqe->opcode == NIC_OP_SEND_IMM,
			       nic_ud_sgid_index(&wqe->av));
		nic_count(from, MDL_CNT_DROPPED, 1);
		break;
	case NIC_FAULT_DELAY:
		if (!nic_ud_late_keep(from, wqe, pieces))
			nic_ud_deliver(from, wqe, pieces);
		krn_service_wake(from->proc);
		return;
	case NIC_FAULT_CORRUPT: nic_ud_corrupt(from, wqe, pieces); return;
	case NIC_FAULT_DUP: nic_ud_deliver(from, wqe, pieces); /* fall through */
	default: nic_ud_deliver(from, wqe, pieces);
	}
	nic_ud_late_flush(from);
}

enum nic_outcome nic_ud_execute(struct mdl_qp *qp, const struct nic_wqe *wqe,
				struct nic_result *result)
{
	struct nic_spans pieces;

	if (wqe->len > nic_wire_mtu(qp)) {
		result->syndrome = NIC_SYN_LOCAL_LENGTH;
		result->vendor = NIC_VENDOR_UD_LENGTH;
		return NIC_FAILED;
	}
	if (!nic_mem_pieces(qp, wqe, 0, &pieces)) {
		result->syndrome = NIC_SYN_LOCAL_PROT;
		result->vendor = NIC_VENDOR_UD_PROT;
		return NIC_FAILED;
	}
	for (uint32_t i = 0; i < pieces.cnt; i++) {
		nic_count(qp, MDL_CNT_PAYLOAD_READS, pieces.span[i].mr != NULL);
		if (pieces.span[i].mr)
			nic_count(qp, MDL_CNT_PAYLOAD_READ_BYTES, pieces.span[i].len);
	}
	nic_ud_send(qp, wqe, &pieces);
	return NIC_DONE;
}
