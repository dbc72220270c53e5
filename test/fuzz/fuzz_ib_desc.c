/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fuzz target of the decoders of RDMA descriptions, of links and of datagram endpoints.
 *
 * A description that decodes obeys the limits that the device relies on, and encodes to the same
 * bytes again.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "dev/ib/ib_desc.h"
#include "dev/ib/ib_ud.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check(int is_true)
{
	if (!is_true)
		abort();
}

static void check_datagram(const struct dev_desc *desc)
{
	struct dev_desc again;
	struct ib_ud_desc d;

	if (ib_ud_desc_decode(desc, &d))
		return;
	check(d.qpn && d.qpn < IB_QPN_MAX && !(d.qkey >> 31));
	check(d.mtu >= IBV_MTU_256 && d.mtu <= IBV_MTU_4096);
	ib_ud_desc_encode(&d, &again);
	check(again.len == desc->len && !memcmp(again.bytes, desc->bytes, desc->len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct dev_desc desc = { .len = (uint32_t)len }, again;
	struct ib_desc d;

	if (len > sizeof(desc.bytes))
		return 0;
	memcpy(desc.bytes, data, len);
	check_datagram(&desc);
	/* Lets most inputs pass the check of the magic. */
	if (len == IB_DESC_LEN && (data[95] & 1)) {
		uint32_t magic = IB_DESC_MAGIC;

		memcpy(desc.bytes, &magic, sizeof(magic));
		desc.bytes[95] = 0;
	}
	if (ib_desc_decode(&desc, &d))
		return 0;
	check((d.qpn || (d.flags & IB_DESC_DC_WANTED)) && d.qpn <= IB_QPN_MAX);
	check(!(d.flags & IB_DESC_DC) || (d.dctn && d.dctn <= IB_QPN_MAX && d.dc_id));
	check((d.flags & IB_DESC_DC) || !(d.dctn | d.dc_id | d.flags));
	check(d.dc_id <= IB_DC_ID_MAX && d.psn <= IB_QPN_MAX && d.rd_atomic);
	check(d.ring_len >= IB_RING_MIN && d.ring_len <= IB_RING_MAX);
	check(!(d.ring_len & (d.ring_len - 1)) && d.ring_addr + d.ring_len > d.ring_addr);
	ib_desc_encode(&d, &again);
	check(again.len == desc.len && !memcmp(again.bytes, desc.bytes, desc.len));
	return 0;
}
