/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Header of a datagram, checked against docs/datagram-protocol.md, section 2. */
#include <criterion/criterion.h>

#include "support/rng.h"
#include "unit/wire/golden.h"
#include "wire/wire_erpc.h"

/* Computed by hand from the drawing: kind and pkt_num are 0x2AAB << 2 | 3 = 0xAAAF. */
Test(wire_erpc, the_header_is_16_bytes_in_this_order)
{
	struct wire_erpc_hdr h = {
		.req_type = 0x11,
		.msg_size = 0x232425,
		.session = 0x3132,
		.kind = WIRE_ERPC_RESP,
		.pkt_num = 0x2AAB,
		.req_num = 0x51525354556,
		.tag = 0x6162,
	};
	uint8_t bytes[WIRE_ERPC_HDR_LEN];

	wire_erpc_put(bytes, &h);
	EXPECT_BYTES(bytes, /* type */ 0x11, /* msg_size */ 0x25, 0x24, 0x23, /* session */ 0x32,
		     0x31, /* kind, pkt_num */ 0xAF, 0xAA, /* req_num */ 0x56, 0x45, 0x35, 0x25,
		     0x15, /* req_num's last 4 bits, magic */ 0xB5, /* tag */ 0x62, 0x61);
}

Test(wire_erpc, what_was_put_is_got)
{
	struct wire_erpc_hdr a, b;
	struct rng rng = { 1 };
	uint8_t bytes[WIRE_ERPC_HDR_LEN];
	int i;

	for (i = 0; i < 10000; i++) {
		a = (struct wire_erpc_hdr){
			.req_type = (uint8_t)rng_next(&rng),
			.msg_size = (uint32_t)rng_below(&rng, WIRE_ERPC_MSG_MAX + 1u),
			.session = (uint16_t)rng_next(&rng),
			.kind = (enum wire_erpc_kind)rng_below(&rng, 4),
			.pkt_num = (uint16_t)rng_below(&rng, WIRE_ERPC_PKT_MAX),
			.req_num = rng_below(&rng, WIRE_ERPC_REQ_MAX),
			.tag = (uint16_t)rng_next(&rng),
		};
		wire_erpc_put(bytes, &a);
		cr_assert(wire_erpc_get(&b, bytes, sizeof(bytes)));
		cr_assert(a.req_type == b.req_type && a.msg_size == b.msg_size &&
			  a.session == b.session && a.kind == b.kind && a.pkt_num == b.pkt_num &&
			  a.req_num == b.req_num && a.tag == b.tag);
	}
}

Test(wire_erpc, what_is_short_or_has_no_magic_is_no_packet)
{
	struct wire_erpc_hdr h = { .tag = 1 };
	uint8_t bytes[WIRE_ERPC_HDR_LEN];
	uint32_t len;

	wire_erpc_put(bytes, &h);
	for (len = 0; len < sizeof(bytes); len++)
		cr_expect_not(wire_erpc_get(&h, bytes, len));
	bytes[13] ^= 0x10;
	cr_expect_not(wire_erpc_get(&h, bytes, sizeof(bytes)));
}

Test(wire_erpc, the_packets_of_a_message_hold_all_of_it)
{
	uint32_t size, payload, pkts, i, sum;

	for (payload = 1; payload < 9; payload++) {
		for (size = 0; size < 40; size++) {
			pkts = wire_erpc_pkts(size, payload);
			cr_assert_geq(pkts, 1);
			for (i = 0, sum = 0; i < pkts; i++) {
				cr_assert(size == 0 || wire_erpc_pkt_len(size, payload, i));
				sum += wire_erpc_pkt_len(size, payload, i);
			}
			cr_assert_eq(sum, size);
		}
	}
}
