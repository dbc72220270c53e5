/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Bytes and packets of a message on the wire.
 *
 * Packets have the path MTU, each with its headers, its payload padded to 4 bytes and the invariant
 * CRC. Link-level framing (the variant CRC of InfiniBand, preamble and FCS of Ethernet) and
 * acknowledge packets are not in the bytes; acknowledges have a counter.
 *
 * The packets of DC are not published. Those with data count as RC's. A disconnect counts as
 * headers without payload, a connect has the access key besides.
 */
#include "model/nic/nic_wire.h"

#include <string.h>

#include "model/nic/nic_state.h"

enum {
	NIC_WIRE_LRH = 8,
	NIC_WIRE_GRH = 40,
	NIC_WIRE_ETH = 14,
	NIC_WIRE_IPV4 = 20,
	NIC_WIRE_IPV6 = 40,
	NIC_WIRE_UDP = 8,
	NIC_WIRE_BTH = 12,
	NIC_WIRE_DETH = 8,
	NIC_WIRE_RETH = 16,
	NIC_WIRE_AETH = 4,
	NIC_WIRE_ATOMIC_ETH = 28,
	NIC_WIRE_ATOMIC_ACK = 8,
	NIC_WIRE_IMM = 4,
	NIC_WIRE_DC_KEY = 8,
	NIC_WIRE_ICRC = 4,
};

uint32_t nic_wire_mtu(const struct mdl_qp *qp)
{
	uint32_t code = qp->path_mtu;

	if (qp->type == MDL_QPT_UD || code < 1 || code > 5)
		code = 5;
	return 128u << code;
}

uint64_t nic_wire_packets(uint64_t len, uint32_t mtu)
{
	return len ? (len + mtu - 1) / mtu : 1;
}

/* Returns true for an IPv4 address, which has the form ::ffff:a.b.c.d. */
static bool nic_wire_is_ipv4(const uint8_t gid[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return memcmp(gid, mapped, sizeof(mapped)) == 0;
}

static uint64_t nic_wire_base(const struct mdl_qp *from, int sgid)
{
	const struct mdl_port *port = &mdl_self.seg->port[from->port_index];
	uint32_t index = sgid >= 0 && sgid < 8 ? (uint32_t)sgid : 0;

	if (mdl_self.seg->link == MDL_LINK_IB)
		return NIC_WIRE_LRH + (sgid >= 0 ? NIC_WIRE_GRH : 0) + NIC_WIRE_BTH + NIC_WIRE_ICRC;
	if (port->gid_type[index] == 0)
		return NIC_WIRE_ETH + NIC_WIRE_GRH + NIC_WIRE_BTH + NIC_WIRE_ICRC;
	return NIC_WIRE_ETH + (nic_wire_is_ipv4(port->gid[index]) ? NIC_WIRE_IPV4 : NIC_WIRE_IPV6) +
	       NIC_WIRE_UDP + NIC_WIRE_BTH + NIC_WIRE_ICRC;
}

static void nic_wire_flow(struct mdl_qp *from, struct mdl_qp *to, uint64_t packets, uint64_t bytes)
{
	nic_count(from, MDL_CNT_PACKETS_OUT, packets);
	nic_count(from, MDL_CNT_WIRE_BYTES_OUT, bytes);
	if (!to)
		return;
	nic_count(to, MDL_CNT_PACKETS_IN, packets);
	nic_count(to, MDL_CNT_WIRE_BYTES_IN, bytes);
}

static void nic_wire_read(struct mdl_qp *from, struct mdl_qp *to, uint64_t len, uint64_t base)
{
	uint64_t packets = nic_wire_packets(len, nic_wire_mtu(from));

	nic_wire_flow(from, to, 1, base + NIC_WIRE_RETH);
	if (to) /* the first and the last response carry an acknowledge header */
		nic_wire_flow(to, from, packets,
			      packets * base + ((len + 3) & ~3ull) +
				      (packets > 1 ? 2 : 1) * NIC_WIRE_AETH);
}

void nic_wire_count(struct mdl_qp *from, struct mdl_qp *to, enum nic_wire_kind kind, uint64_t len,
		    bool imm, int sgid)
{
	uint64_t base = nic_wire_base(from, sgid), once = imm ? NIC_WIRE_IMM : 0;
	uint64_t packets = nic_wire_packets(len, nic_wire_mtu(from));

	if (kind == NIC_WIRE_DC_CONNECT || kind == NIC_WIRE_DC_DISCONNECT) {
		nic_wire_flow(from, to, 1,
			      base + (kind == NIC_WIRE_DC_CONNECT ? NIC_WIRE_DC_KEY : 0));
		return;
	}
	if (kind == NIC_WIRE_READ) {
		nic_wire_read(from, to, len, base);
		return;
	}
	if (kind == NIC_WIRE_ATOMIC) {
		nic_wire_flow(from, to, 1, base + NIC_WIRE_ATOMIC_ETH);
		if (to)
			nic_wire_flow(to, from, 1, base + NIC_WIRE_AETH + NIC_WIRE_ATOMIC_ACK);
		return;
	}
	once += kind == NIC_WIRE_WRITE ? NIC_WIRE_RETH : kind == NIC_WIRE_UD ? NIC_WIRE_DETH : 0;
	nic_wire_flow(from, to, packets, packets * base + once + ((len + 3) & ~3ull));
	if (to && (from->type == MDL_QPT_RC || from->type == MDL_QPT_DCI))
		nic_count(to, MDL_CNT_ACKS_OUT, 1);
}
