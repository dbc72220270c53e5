/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Addresses of UD queue pairs, byte by byte. */
#include "dgram/dgram_ud_addr.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <stdint.h>
#include <string.h>

#include "dev/ib/ib_ud.h"

/*
 * libfabric's struct ofi_ib_ud_ep_name, on a little-endian host; padding as dgram_ud_addr.h defines
 * it.
 */
static const uint8_t golden[DGRAM_UD_ADDR_LEN] = {
	0xfe, 0x80, 0,    0,    0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, /* gid */
	0x56, 0x34, 0x12, 0,                                        /* qpn 0x123456 */
	0x02, 0x01,                                                 /* lid 0x0102 */
	0xff, 0xff,                                                 /* pkey */
	0,    0,                                                    /* service */
	0,                                                          /* sl */
	5,                                                          /* mtu 4096 */
	0x44, 0x33, 0x22, 0x11,                                     /* qkey 0x11223344 */
};

Test(dgram_ud_addr, has_libfabric_s_layout)
{
	struct sockaddr_storage back;
	struct dev_desc desc;
	struct ib_ud_desc d;

	cr_assert_eq(dgram_ud_addr_import(golden, &desc), 0);
	cr_assert_eq(ib_ud_desc_decode(&desc, &d), 0);
	cr_expect_eq(d.qpn, 0x123456);
	cr_expect_eq(d.qkey, 0x11223344);
	cr_expect_eq(d.lid, 0x0102);
	cr_expect_eq(d.mtu, 5);
	cr_expect_not(d.is_eth);
	cr_expect_arr_eq(d.gid.raw, golden, 16);
	cr_assert_eq(dgram_ud_addr_export(&desc, &back), sizeof(golden));
	cr_expect_arr_eq((uint8_t *)&back, golden, sizeof(golden));
}

Test(dgram_ud_addr, an_address_without_a_lid_is_on_ethernet)
{
	uint8_t addr[DGRAM_UD_ADDR_LEN];
	struct sockaddr_storage back;
	struct dev_desc desc;
	struct ib_ud_desc d;

	memcpy(addr, golden, sizeof(addr));
	addr[20] = addr[21] = 0;
	cr_assert_eq(dgram_ud_addr_import(addr, &desc), 0);
	cr_assert_eq(ib_ud_desc_decode(&desc, &d), 0);
	cr_expect(d.is_eth);
	cr_assert_eq(dgram_ud_addr_export(&desc, &back), sizeof(addr));
	cr_expect_arr_eq((uint8_t *)&back, addr, sizeof(addr));
}

Test(dgram_ud_addr, the_address_of_a_port_has_no_queue_pair)
{
	struct dev_about about = { .lid = 0x0102, .mtu = 4096 };
	uint8_t want[DGRAM_UD_ADDR_LEN];
	struct sockaddr_storage addr;

	memcpy(want, golden, sizeof(want));
	memset(want + 16, 0, 4);
	memset(want + 28, 0, 4);
	memcpy(about.gid, golden, sizeof(about.gid));
	cr_assert_eq(dgram_ud_addr_of_port(&about, &addr), sizeof(want));
	cr_expect_arr_eq((uint8_t *)&addr, want, sizeof(want));
	about.mtu = 256;
	about.lid = 0;
	want[27] = 1;
	want[20] = want[21] = 0;
	dgram_ud_addr_of_port(&about, &addr);
	cr_expect_arr_eq((uint8_t *)&addr, want, sizeof(want));
}

Test(dgram_ud_addr, an_invalid_address_is_refused)
{
	static const struct {
		unsigned at;
		uint8_t value;
	} bad[] = {
		{ 19, 1 }, { 22, 0 }, { 24, 1 }, { 26, 1 }, { 27, 0 }, { 27, 6 }, { 31, 0x80 }
	};
	struct dev_desc desc;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint8_t addr[DGRAM_UD_ADDR_LEN];

		memcpy(addr, golden, sizeof(addr));
		addr[bad[i].at] = bad[i].value;
		cr_expect_eq(dgram_ud_addr_import(addr, &desc), -FI_EINVAL, "byte %u", bad[i].at);
	}
}
