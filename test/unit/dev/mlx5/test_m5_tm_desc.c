/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Descriptions of queue pairs for tag matching: encoded, decoded, validated. */
#include "dev/mlx5/m5_tm_desc.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "dev/mlx5/m5_dev.h"

static struct m5_dev dev;
static struct m5_tm tm = { .dev = &dev };
static struct ibv_qp tx_qp = { .qp_num = 0x123456 }, rx_qp = { .qp_num = 0x654321 };
static struct m5_tm_peer peer = {
	.tm = &tm, .tx = &tx_qp, .rx = &rx_qp, .tx_psn = 0xabcdef, .rx_psn = 0x010203
};
static uint8_t bytes[M5_TM_DESC_LEN];
static struct ib_desc tx, rx;

static void encode(void)
{
	dev.ib.port_attr.lid = 0x1234;
	dev.ib.port_attr.active_mtu = IBV_MTU_4096;
	dev.ib.rd_atomic = 16;
	for (unsigned i = 0; i < sizeof(dev.ib.gid.raw); i++)
		dev.ib.gid.raw[i] = (uint8_t)(i + 1);
	m5_tm_desc_encode(&peer, bytes);
}

TestSuite(m5_tm_desc, .init = encode);

Test(m5_tm_desc, what_is_encoded_is_decoded)
{
	cr_assert_eq(m5_tm_desc_decode(bytes, &tx, &rx), 0);
	cr_expect_eq(tx.qpn, tx_qp.qp_num);
	cr_expect_eq(rx.qpn, rx_qp.qp_num);
	cr_expect_eq(tx.psn, peer.tx_psn);
	cr_expect_eq(rx.psn, peer.rx_psn);
	cr_expect_eq(tx.lid, 0x1234);
	cr_expect_eq(rx.mtu, IBV_MTU_4096);
	cr_expect_eq(rx.rd_atomic, 16);
	cr_expect_not(memcmp(tx.gid.raw, dev.ib.gid.raw, sizeof(tx.gid.raw)));
	cr_expect_not(tx.is_eth || rx.is_eth);
}

Test(m5_tm_desc, bytes_are_little_endian_at_their_offsets)
{
	static const uint8_t numbers[] = { 0x56, 0x34, 0x12, 0,  0x21, 0x43, 0x65, 0,
					   0xef, 0xcd, 0xab, 0,  0x03, 0x02, 0x01, 0,
					   0x34, 0x12, 5,    16, 0,    0,    0,    0 };

	cr_expect_not(memcmp(bytes, numbers, sizeof(numbers)));
	cr_expect_not(memcmp(bytes + sizeof(numbers), dev.ib.gid.raw, 16));
}

static void check_refused(unsigned at, unsigned len, uint8_t value)
{
	encode();
	memset(bytes + at, value, len);
	cr_expect_eq(m5_tm_desc_decode(bytes, &tx, &rx), -FI_EINVAL, "byte %u: %u", at, value);
}

Test(m5_tm_desc, illegal_fields_are_refused)
{
	for (unsigned half = 0; half < 2; half++) {
		check_refused(4 * half, 4, 0);         /* queue pair 0 */
		check_refused(4 * half + 3, 1, 1);     /* queue pair of 25 bits */
		check_refused(8 + 4 * half + 3, 1, 1); /* packet number likewise */
	}
	check_refused(16, 2, 0);
	check_refused(18, 1, 0);
	check_refused(18, 1, IBV_MTU_4096 + 1);
	check_refused(19, 1, 0);
	for (unsigned at = 20; at < 24; at++)
		check_refused(at, 1, 1);
}

/** No bytes make more of a description than its fields. */
Test(m5_tm_desc, random_bytes_are_refused_or_legal)
{
	srand(1);
	for (unsigned n = 0; n < 20000; n++) {
		encode();
		for (unsigned i = 0; i < 3; i++)
			bytes[(unsigned)rand() % sizeof(bytes)] = (uint8_t)rand();
		if (m5_tm_desc_decode(bytes, &tx, &rx))
			continue;
		cr_assert(tx.qpn && tx.qpn <= IB_QPN_MAX && rx.qpn && rx.qpn <= IB_QPN_MAX);
		cr_assert(tx.psn <= IB_QPN_MAX && rx.psn <= IB_QPN_MAX && tx.lid);
		cr_assert(tx.mtu >= IBV_MTU_256 && tx.mtu <= IBV_MTU_4096 && tx.rd_atomic);
	}
}
