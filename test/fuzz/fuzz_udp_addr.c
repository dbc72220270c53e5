/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fuzz target of the decoder of UDP endpoint descriptions.
 *
 * A description that decodes is a valid destination of datagrams, and encodes to the same bytes
 * again.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "dev/udp/udp_addr.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct dev_desc desc = { .len = (uint32_t)len }, again;
	union udp_addr addr;
	uint32_t mtu;

	if (len > sizeof(desc.bytes))
		return 0;
	memcpy(desc.bytes, data, len);
	if (udp_desc_decode(&desc, &addr, &mtu))
		return 0;
	if (mtu < UDP_MTU_MIN || mtu > UINT16_MAX)
		abort();
	udp_desc_encode(&addr, mtu, &again);
	if (again.len != desc.len || memcmp(again.bytes, desc.bytes, desc.len))
		abort();
	return 0;
}
