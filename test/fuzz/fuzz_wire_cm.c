/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fuzz target of the decoder of handshake packets.
 *
 * A packet that decodes obeys the limits that cm relies on, and encodes to the same bytes again.
 */
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/wire_cm.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check(int is_true)
{
	if (!is_true)
		abort();
}

static void check_half(const struct wire_cm_params *params)
{
	check(params->engine_len <= WIRE_CM_ENGINE_MAX && params->dev_len <= WIRE_CM_DEV_MAX &&
	      params->fd_cnt <= WIRE_CM_FDS_MAX);
	check(!params->has_identity ||
	      (params->identity.rank >= -1 && params->identity.pid <= INT32_MAX &&
	       memchr(params->identity.host, '\0', sizeof(params->identity.host))));
	for (const char *c = params->identity.host; params->has_identity && *c; c++)
		check(isalnum((unsigned char)*c) || strchr("._-", *c));
}

static void check_pkt(const struct wire_cm_pkt *pkt)
{
	check(pkt->nonce && pkt->src_inc && !pkt->dst_inc == (pkt->type == WIRE_CM_REQ));
	if (pkt->type == WIRE_CM_HELLO)
		check_half(&pkt->hello.params);
	else if (pkt->type == WIRE_CM_WELCOME)
		check_half(&pkt->welcome.params);
	else if (pkt->type == WIRE_CM_NAK)
		check(pkt->nak.err && memchr(pkt->nak.text, '\0', sizeof(pkt->nak.text)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct wire_cm_pkt pkt;
	uint8_t again[WIRE_CM_MAX];

	wire_cm_peek_nonce(data, len);
	if (wire_cm_decode(data, len, &pkt))
		return 0;
	check_pkt(&pkt);
	check(wire_cm_encode(&pkt, again) == len);
	again[4] = data[4]; /* refusals of any version are decoded */
	check(!memcmp(data, again, len - WIRE_CM_MAC_LEN));
	return 0;
}
