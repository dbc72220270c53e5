/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests of packets and bytes on the wire against sums by hand from the headers of InfiniBand and
 * RoCE.
 */
#include "unit/model/nic/nic_bench.h"
#include "model/nic/nic_wire.h"

#include <criterion/criterion.h>
#include <string.h>

static struct mdl_qp *a, *b;

static void setup(void)
{
	bench_open();
	a = bench_qp(MDL_QPT_RC, bench_cq(4, 64), NULL, 4);
	b = bench_qp(MDL_QPT_RC, bench_cq(4, 64), NULL, 4);
}

TestSuite(nic_wire, .init = setup);

Test(nic_wire, a_message_has_at_least_one_packet)
{
	static const struct {
		uint64_t len, packets;
	} cases[] = { { 0, 1 },
		      { 1, 1 },
		      { 1023, 1 },
		      { 1024, 1 },
		      { 1025, 2 },
		      { 2048, 2 },
		      { 1ull << 31, 1 << 21 } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_expect_eq(nic_wire_packets(cases[i].len, 1024), cases[i].packets);
}

Test(nic_wire, the_mtu_has_five_values)
{
	for (uint8_t code = 1; code <= 5; code++) {
		a->path_mtu = code;
		cr_expect_eq(nic_wire_mtu(a), 128u << code);
	}
}

static uint64_t bytes(enum nic_wire_kind kind, uint64_t len, bool imm, bool grh)
{
	uint64_t before = bench_get(a, MDL_CNT_WIRE_BYTES_OUT);

	nic_wire_count(a, b, kind, len, imm, grh ? 0 : -1);
	return bench_get(a, MDL_CNT_WIRE_BYTES_OUT) - before;
}

Test(nic_wire, infiniband)
{
	/* LRH 8, BTH 12, ICRC 4 */
	cr_expect_eq(bytes(NIC_WIRE_SEND, 0, false, false), 24);
	cr_expect_eq(bytes(NIC_WIRE_SEND, 42, false, false), 24 + 44, "filled up to 4");
	cr_expect_eq(bytes(NIC_WIRE_SEND, 4, true, false), 24 + 4 + 4, "immediate");
	cr_expect_eq(bytes(NIC_WIRE_SEND, 4, false, true), 24 + 40 + 4, "routed");
	cr_expect_eq(bytes(NIC_WIRE_WRITE, 4, false, false), 24 + 16 + 4, "RETH");
	cr_expect_eq(bytes(NIC_WIRE_WRITE, 1025, true, false), 2 * 24 + 16 + 4 + 1028);
	cr_expect_eq(bytes(NIC_WIRE_UD, 4, false, false), 24 + 8 + 4, "DETH");
	cr_expect_eq(bytes(NIC_WIRE_READ, 4096, false, false), 24 + 16, "the request");
	cr_expect_eq(bench_get(b, MDL_CNT_WIRE_BYTES_OUT), 4 * 24 + 4096 + 8, "the response");
	cr_expect_eq(bytes(NIC_WIRE_ATOMIC, 8, false, false), 24 + 28);
}

Test(nic_wire, roce)
{
	static const uint8_t ipv4[16] = { [10] = 0xff, 0xff, 10, 0, 0, 1 };
	struct mdl_port *port = &mdl_self.seg->port[0];

	mdl_self.seg->link = MDL_LINK_ROCE;
	cr_expect_eq(bytes(NIC_WIRE_SEND, 4, false, true), 14 + 40 + 12 + 4 + 4, "version 1");
	port->gid_type[0] = 2;
	cr_expect_eq(bytes(NIC_WIRE_SEND, 4, false, true), 14 + 40 + 8 + 12 + 4 + 4, "over IPv6");
	memcpy(port->gid[0], ipv4, 16);
	cr_expect_eq(bytes(NIC_WIRE_SEND, 4, false, true), 14 + 20 + 8 + 12 + 4 + 4, "over IPv4");
}

/* The datagram's address gives its source; its queue pair has no path. */
Test(nic_wire, a_datagram_over_roce_goes_from_the_address_of_its_wqe)
{
	static const uint8_t ipv4[16] = { [10] = 0xff, 0xff, 10, 0, 0, 1 };
	struct mdl_port *port = &mdl_self.seg->port[0];

	mdl_self.seg->link = MDL_LINK_ROCE;
	port->gid_type[3] = 2;
	memcpy(port->gid[3], ipv4, 16);
	nic_wire_count(a, b, NIC_WIRE_UD, 4, false, 3);
	cr_expect_eq(bench_get(a, MDL_CNT_WIRE_BYTES_OUT), 14 + 20 + 8 + 12 + 8 + 4 + 4);
	nic_wire_count(a, b, NIC_WIRE_UD, 4, false, 0);
	cr_expect_eq(bench_get(a, MDL_CNT_WIRE_BYTES_OUT), 70 + 14 + 40 + 12 + 8 + 4 + 4);
}

Test(nic_wire, connections_of_dc_are_headers_and_a_key)
{
	cr_expect_eq(bytes(NIC_WIRE_DC_CONNECT, 0, false, false), 24 + 8);
	cr_expect_eq(bytes(NIC_WIRE_DC_DISCONNECT, 0, false, true), 24 + 40);
	cr_expect_eq(bench_get(b, MDL_CNT_PACKETS_IN), 2);
	cr_expect_eq(bench_get(b, MDL_CNT_ACKS_OUT), 0);
	a->type = MDL_QPT_DCI;
	cr_expect_eq(bytes(NIC_WIRE_SEND, 4, false, false), 24 + 4, "its data are RC's");
	cr_expect_eq(bench_get(b, MDL_CNT_ACKS_OUT), 1);
}

Test(nic_wire, only_rc_acknowledges_and_only_what_arrives)
{
	bytes(NIC_WIRE_SEND, 4, false, false);
	cr_expect_eq(bench_get(b, MDL_CNT_ACKS_OUT), 1);
	a->type = MDL_QPT_UC;
	bytes(NIC_WIRE_SEND, 4, false, false);
	cr_expect_eq(bench_get(b, MDL_CNT_ACKS_OUT), 1);
	nic_wire_count(a, NULL, NIC_WIRE_SEND, 4, false, -1);
	cr_expect_eq(bench_get(a, MDL_CNT_PACKETS_OUT), 3);
	cr_expect_eq(bench_get(b, MDL_CNT_PACKETS_IN), 2);
}
