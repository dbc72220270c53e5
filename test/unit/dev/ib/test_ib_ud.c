/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dev/ib/ib_ud.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

static const struct ib_ud_desc sample = {
	.qpn = 0x123456,
	.qkey = 0x7a0b0c0d,
	.lid = 0x0102,
	.mtu = IBV_MTU_4096,
	.is_eth = true,
	.gid = { .raw = { [10] = 0xff, [11] = 0xff, 10, 0, 0, 1 } },
};

/* Written by hand from the table in ib_ud.h. */
static const uint8_t golden[IB_UD_DESC_LEN] = {
	0x69, 0x63, 0x72, 0x75, 1,    0,    5,    1,    /* magic, version, mtu, is_eth */
	0x56, 0x34, 0x12, 0,    0x0d, 0x0c, 0x0b, 0x7a, /* qpn, qkey */
	0x02, 0x01, 0,    0,    0,    0,    0,    0,    /* lid, flags */
	0,    0,    0,    0,    0,    0,    0,    0,    /* gid */
	0,    0,    0xff, 0xff, 10,   0,    0,    1,    /**/
};

static int decode(const struct dev_desc *desc)
{
	struct ib_ud_desc d;

	return ib_ud_desc_decode(desc, &d);
}

Test(ib_ud, the_bytes_are_those_of_the_format)
{
	struct dev_desc desc;
	struct ib_ud_desc d;

	ib_ud_desc_encode(&sample, &desc);
	cr_assert_eq(desc.len, sizeof(golden));
	cr_assert_eq(desc.fd_cnt, 0);
	cr_assert_arr_eq(desc.bytes, golden, sizeof(golden));
	cr_assert_eq(ib_ud_desc_decode(&desc, &d), 0);
	cr_expect_eq(d.qpn, sample.qpn);
	cr_expect_eq(d.qkey, sample.qkey);
	cr_expect_eq(d.lid, sample.lid);
	cr_expect_arr_eq(d.gid.raw, sample.gid.raw, 16);
}

Test(ib_ud, another_length_or_descriptors_are_refused)
{
	struct dev_desc desc;

	ib_ud_desc_encode(&sample, &desc);
	desc.len--;
	cr_expect_eq(decode(&desc), -FI_EINVAL);
	desc.len += 2;
	cr_expect_eq(decode(&desc), -FI_EINVAL);
	desc.len--;
	desc.fd_cnt = 1;
	cr_expect_eq(decode(&desc), -FI_EINVAL);
}

/* Reserved bits and fields with few legal values. */
Test(ib_ud, every_unknown_bit_is_refused)
{
	static const uint8_t strict[] = { 0,  1,  2,  3,  4,  5,  18, 19, 20, 21,
					  22, 23, 40, 41, 42, 43, 44, 45, 46, 47 };
	struct dev_desc desc;

	for (size_t i = 0; i < sizeof(strict); i++)
		for (unsigned bit = 0; bit < 8; bit++) {
			ib_ud_desc_encode(&sample, &desc);
			desc.bytes[strict[i]] ^= (uint8_t)(1 << bit);
			cr_expect_eq(decode(&desc), -FI_EINVAL, "bit %u of byte %u", bit,
				     strict[i]);
		}
}

Test(ib_ud, limits_are_kept)
{
	static const struct {
		struct ib_ud_desc d;
		int want;
	} rows[] = {
		{ { .qpn = 1, .mtu = IBV_MTU_256, .lid = 1 }, 0 },
		{ { .qpn = 1, .mtu = IBV_MTU_256, .lid = 0 }, -FI_EINVAL },
		{ { .qpn = 1, .mtu = IBV_MTU_256, .lid = 1, .is_eth = true }, -FI_EINVAL },
		{ { .qpn = 0, .mtu = IBV_MTU_256, .lid = 1 }, -FI_EINVAL },
		{ { .qpn = 0xfffffe, .mtu = IBV_MTU_4096, .lid = 1 }, 0 },
		{ { .qpn = 0xffffff, .mtu = IBV_MTU_4096, .lid = 1 }, -FI_EINVAL }, /* broadcast */
		{ { .qpn = 1, .mtu = 0, .lid = 1 }, -FI_EINVAL },
		{ { .qpn = 1, .mtu = IBV_MTU_4096 + 1, .lid = 1 }, -FI_EINVAL },
		{ { .qpn = 1, .mtu = 1, .lid = 1, .qkey = 0x7fffffff }, 0 },
		{ { .qpn = 1, .mtu = 1, .lid = 1, .qkey = 0x80000000 }, -FI_EINVAL },
	};
	struct dev_desc desc;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		ib_ud_desc_encode(&rows[i].d, &desc);
		cr_expect_eq(decode(&desc), rows[i].want, "row %zu", i);
	}
}

/* An address handle and a received datagram compute the id in two ways, which must agree. */
Test(ib_ud, a_senders_id_comes_from_its_datagram)
{
	static const uint8_t ip[4] = { 10, 0, 0, 7 };
	static const uint8_t gid4[16] = { [10] = 0xff, 0xff, 10, 0, 0, 7 };
	static const uint8_t gid6[16] = { 0xfe, 0x80, [15] = 9 };
	uint8_t slot[IB_UD_DATA_OFF] = { 0 };
	struct ib_ud ud = { .naming = IB_UD_BY_IPV4 };
	struct dev_dgram_in in;
	struct dev_dgram_ah ah;

	memcpy(slot + IB_UD_GRH_OFF + 20 + 12, ip, 4);
	ib_ud_from(&ud, slot, 5, 0, true, &in.from);
	ib_ud_id_gid(&ah.id, 5, gid4);
	cr_expect(dev_dgram_is_from(&ah, &in));
	ib_ud_id_gid(&ah.id, 6, gid4);
	cr_expect(!dev_dgram_is_from(&ah, &in), "another queue pair");

	ud.naming = IB_UD_BY_GID;
	memcpy(slot + IB_UD_GRH_OFF + 8, gid6, 16);
	ib_ud_from(&ud, slot, 5, 0, true, &in.from);
	ib_ud_id_gid(&ah.id, 5, gid6);
	cr_expect(dev_dgram_is_from(&ah, &in));

	ud.naming = IB_UD_BY_LID;
	ib_ud_from(&ud, slot, 5, 3, false, &in.from);
	ib_ud_id_lid(&ah.id, 5, 3);
	cr_expect(dev_dgram_is_from(&ah, &in));
	ib_ud_id_lid(&ah.id, 5, 4);
	cr_expect(!dev_dgram_is_from(&ah, &in), "another port");
	ib_ud_from(&ud, slot, 5, 3, true, &in.from);
	ib_ud_id_gid(&ah.id, 5, gid6);
	cr_expect(dev_dgram_is_from(&ah, &in), "through a router");
}

Test(ib_ud, illegal_depths_are_refused_before_anything_is_made)
{
	static const struct dev_dgram_attr bad[] = {
		{ .rx_cnt = 0, .tx_cnt = 8 },
		{ .rx_cnt = DEV_DGRAM_CNT_MAX + 1, .tx_cnt = 8 },
		{ .rx_cnt = 1, .tx_cnt = 7 },
	};
	struct ib_ud ud = { 0 };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_eq(ib_ud_init(&ud, NULL, &bad[i]), -FI_EINVAL);
}

Test(ib_ud, done_is_counted_across_the_end_of_32_bits)
{
	struct dev_dgram dg = { .tx_done = 0, .tx_posted = 2 };

	cr_expect(dev_dgram_is_done(&dg, 0xffffffff));
	cr_expect(!dev_dgram_is_done(&dg, 0));
	dg.tx_done = 1;
	cr_expect(dev_dgram_is_done(&dg, 0));
	cr_expect(!dev_dgram_is_done(&dg, 1));
	cr_expect(dev_dgram_is_done(&dg, 0x7fffffff), "sent long ago");
	cr_expect(dev_dgram_is_done(&dg, 0x80000002), "sent long ago");
}
