/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fuzz target of the decoder of connection requests, which listeners and connecting endpoints use.
 *
 * A request that decodes obeys the limits that its users rely on, and encodes to the same bytes
 * again.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/wire_connreq.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check(int is_true)
{
	if (!is_true)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct wire_connreq_pkt pkt;
	uint8_t again[WIRE_CONNREQ_MAX];

	if (len >= WIRE_CONNREQ_LEN_OFF)
		check(wire_connreq_peek_len(data) <= WIRE_CONNREQ_MAX);
	if (wire_connreq_decode(data, len, &pkt))
		return 0;
	check(pkt.nonce && pkt.data_len <= WIRE_CONNREQ_DATA_MAX &&
	      *wire_connreq_type_name(pkt.type) != '?');
	check(!pkt.err == (pkt.type != WIRE_CONNREQ_REFUSE));
	check(wire_connreq_encode(&pkt, again) == len);
	check(!memcmp(data, again, len - WIRE_CM_MAC_LEN));
	return 0;
}
