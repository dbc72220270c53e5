/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dev/ib/ib_desc.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

static const struct ib_desc sample = {
	.qpn = 0x123456,
	.psn = 0xabcdef,
	.lid = 0x0102,
	.mtu = IBV_MTU_4096,
	.rd_atomic = 16,
	.is_eth = true,
	.gid = { .raw = { [10] = 0xff, [11] = 0xff, 10, 0, 0, 1 } },
	.ring_addr = 0x1122334455667000,
	.ring_len = 1 << 20,
	.word_addr = 0x1122334455668008,
	.ring_rkey = 0x01020304,
	.word_rkey = 0x05060708,
};

/* Written by hand from the table in ib_desc.h. */
static const uint8_t golden[IB_DESC_LEN] = {
	0x63, 0x72, 0x69, 0x62, 2,    0,    5,    1,    /* magic, version, mtu, is_eth */
	0x56, 0x34, 0x12, 0,    0xef, 0xcd, 0xab, 0,    /* qpn, psn */
	0x02, 0x01, 16,   0,    0,    0,    0,    0,    /* lid, rd_atomic, flags */
	0,    0,    0,    0,    0,    0,    0,    0,    /* gid */
	0,    0,    0xff, 0xff, 10,   0,    0,    1,    /**/
	0x00, 0x70, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, /* ring_addr */
	0,    0,    0x10, 0,    0,    0,    0,    0,    /* ring_len */
	0x08, 0x80, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, /* word_addr */
	4,    3,    2,    1,    8,    7,    6,    5,    /* rkeys */
};

static int decode(const struct dev_desc *desc)
{
	struct ib_desc d;

	return ib_desc_decode(desc, &d);
}

Test(ib_desc, the_bytes_are_those_of_the_format)
{
	struct dev_desc desc;

	ib_desc_encode(&sample, &desc);
	cr_assert_eq(desc.len, sizeof(golden));
	cr_assert_eq(desc.fd_cnt, 0);
	cr_assert_arr_eq(desc.bytes, golden, sizeof(golden));
}

Test(ib_desc, an_encoded_description_is_decoded)
{
	struct dev_desc desc, again;
	struct ib_desc d;

	ib_desc_encode(&sample, &desc);
	cr_assert_eq(ib_desc_decode(&desc, &d), 0);
	cr_expect_eq(d.qpn, sample.qpn);
	cr_expect_eq(d.word_rkey, sample.word_rkey);
	cr_expect(d.is_eth);
	ib_desc_encode(&d, &again);
	cr_assert_arr_eq(again.bytes, desc.bytes, IB_DESC_LEN);
}

Test(ib_desc, another_length_or_descriptors_are_refused)
{
	struct dev_desc desc;

	ib_desc_encode(&sample, &desc);
	desc.len--;
	cr_expect_eq(decode(&desc), -FI_EINVAL);
	desc.len += 2;
	cr_expect_eq(decode(&desc), -FI_EINVAL);
	desc.len = IB_DESC_LEN;
	desc.fd_cnt = 1;
	cr_expect_eq(decode(&desc), -FI_EINVAL);
	desc.fd_cnt = 0;
	cr_expect_eq(decode(&desc), 0);
}

#define REFUSES(field, value)                                                                      \
	do {                                                                                       \
		struct ib_desc bad = sample;                                                       \
		struct dev_desc desc;                                                              \
		bad.field = value;                                                                 \
		ib_desc_encode(&bad, &desc);                                                       \
		cr_expect_eq(decode(&desc), -FI_EINVAL, #field " = " #value);                      \
	} while (0)

Test(ib_desc, illegal_fields_are_refused)
{
	REFUSES(qpn, 0);
	REFUSES(qpn, 1 << 24);
	REFUSES(psn, 1 << 24);
	REFUSES(mtu, 0);
	REFUSES(mtu, IBV_MTU_4096 + 1);
	REFUSES(rd_atomic, 0);
	REFUSES(flags, 4);
	REFUSES(flags, IB_DESC_DC); /* without a target */
	REFUSES(flags, IB_DESC_DC_WANTED);
	REFUSES(dctn, 1);
	REFUSES(dc_id, 1);
	REFUSES(dc_key, 1);
	REFUSES(ring_len, 0);
	REFUSES(ring_len, IB_RING_MIN / 2);
	REFUSES(ring_len, IB_RING_MAX * 2);
	REFUSES(ring_len, 4097);
	REFUSES(ring_len, UINT64_MAX);
	REFUSES(ring_addr, 0);
	REFUSES(ring_addr, UINT64_MAX - 4096);
	REFUSES(word_addr, 0);
	REFUSES(word_addr, sample.word_addr + 4);
	REFUSES(word_addr, UINT64_MAX - 7);
}

/* Bytes 20 to 23 and 72 to 87, by hand from the table in ib_desc.h. */
Test(ib_desc, a_target_of_dc_is_described)
{
	struct ib_desc d = sample, got;
	struct dev_desc desc;

	d.flags = IB_DESC_DC | IB_DESC_DC_WANTED;
	d.qpn = 0;
	d.dctn = 0x00a1b2c3;
	d.dc_id = 0xfffe;
	d.dc_key = 0x1122334455667788;
	ib_desc_encode(&d, &desc);
	cr_expect_arr_eq(desc.bytes + 20, ((uint8_t[]){ 3, 0, 0, 0 }), 4);
	cr_expect_arr_eq(desc.bytes + 72,
			 ((uint8_t[]){ 0xc3, 0xb2, 0xa1, 0, 0xfe, 0xff, 0, 0, 0x88, 0x77, 0x66,
				       0x55, 0x44, 0x33, 0x22, 0x11 }),
			 16);
	cr_assert_eq(ib_desc_decode(&desc, &got), 0, "it needs no queue pair");
	cr_expect_eq(got.dctn, d.dctn);
	cr_expect_eq(got.dc_id, d.dc_id);
	cr_expect_eq(got.dc_key, d.dc_key);
}

Test(ib_desc, an_illegal_target_of_dc_is_refused)
{
	struct ib_desc good = sample, bad;
	struct dev_desc desc;

	good.flags = IB_DESC_DC;
	good.dctn = 1;
	good.dc_id = 1;
	ib_desc_encode(&good, &desc);
	cr_expect_eq(decode(&desc), 0);
	for (int i = 0; i < 5; i++) {
		bad = good;
		if (i == 0)
			bad.dctn = 0;
		else if (i == 1)
			bad.dctn = 1 << 24;
		else if (i == 2)
			bad.dc_id = 0;
		else if (i == 3)
			bad.dc_id = IB_DC_ID_MAX + 1;
		else
			bad.qpn = 0; /* and it does not prefer DC */
		ib_desc_encode(&bad, &desc);
		cr_expect_eq(decode(&desc), -FI_EINVAL, "case %d", i);
	}
}

Test(ib_desc, an_end_without_address_is_refused)
{
	struct ib_desc d = sample;
	struct dev_desc desc;

	memset(&d.gid, 0, sizeof(d.gid));
	ib_desc_encode(&d, &desc);
	cr_expect_eq(decode(&desc), -FI_EINVAL);
	d.is_eth = false;
	ib_desc_encode(&d, &desc);
	cr_expect_eq(decode(&desc), 0, "InfiniBand: the LID is an address");
	d.lid = 0;
	ib_desc_encode(&d, &desc);
	cr_expect_eq(decode(&desc), -FI_EINVAL);
}

Test(ib_desc, a_bit_in_a_reserved_byte_is_refused)
{
	static const uint8_t reserved[] = { 19, 88, 95 };
	struct dev_desc desc;

	for (size_t i = 0; i < sizeof(reserved); i++) {
		ib_desc_encode(&sample, &desc);
		desc.bytes[reserved[i]] = 0x80;
		cr_expect_eq(decode(&desc), -FI_EINVAL, "byte %u", reserved[i]);
	}
	ib_desc_encode(&sample, &desc);
	desc.bytes[7] = 2;
	cr_expect_eq(decode(&desc), -FI_EINVAL);
	desc.bytes[7] = 1;
	desc.bytes[4] = 3;
	cr_expect_eq(decode(&desc), -FI_EINVAL, "version");
	desc.bytes[4] = 2;
	desc.bytes[0] ^= 1;
	cr_expect_eq(decode(&desc), -FI_EINVAL, "magic");
}

Test(ib_desc, only_an_end_with_a_dc_target_moves)
{
	struct ib_desc d = sample, back;
	struct dev_desc desc;

	d.flags = IB_DESC_MOVES;
	ib_desc_encode(&d, &desc);
	cr_expect_eq(decode(&desc), -FI_EINVAL);
	d.flags |= IB_DESC_DC;
	d.dctn = 7;
	d.dc_id = 8;
	ib_desc_encode(&d, &desc);
	cr_assert_eq(ib_desc_decode(&desc, &back), 0);
	cr_expect_eq(back.flags, IB_DESC_DC | IB_DESC_MOVES);
	desc.bytes[20] |= 8;
	cr_expect_eq(decode(&desc), -FI_EINVAL, "an unknown flag");
}
