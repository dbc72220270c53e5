/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Encoding and decoding of the packets of a connection request: see wire_connreq.h. */
#include "wire/wire_connreq.h"

#include <assert.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "wire/wire_le.h"

#define WIRE_CONNREQ_ERR_MAX 1023u /* all FI_E* are at most this */

static const char *const wire_connreq_names[] = {
	[WIRE_CONNREQ_GREET] = "GREET",
	[WIRE_CONNREQ_REQUEST] = "REQUEST",
	[WIRE_CONNREQ_ACCEPT] = "ACCEPT",
	[WIRE_CONNREQ_REFUSE] = "REFUSE",
};

const char *wire_connreq_type_name(enum wire_connreq_type type)
{
	return type >= WIRE_CONNREQ_GREET && type <= WIRE_CONNREQ_REFUSE ? wire_connreq_names[type]
									 : "?";
}

static bool wire_connreq_has_self(enum wire_connreq_type type)
{
	return type == WIRE_CONNREQ_REQUEST || type == WIRE_CONNREQ_ACCEPT;
}

/* Writes length u16, two zeros, then the application's bytes. */
static size_t wire_connreq_put_data(const struct wire_connreq_pkt *pkt, uint8_t *at)
{
	assert(pkt->data_len <= WIRE_CONNREQ_DATA_MAX);
	wire_put16(at, (uint16_t)pkt->data_len);
	wire_put16(at + 2, 0);
	memcpy(at + 4, pkt->data, pkt->data_len);
	return 4 + pkt->data_len;
}

static int wire_connreq_get_data(const uint8_t *at, size_t len, struct wire_connreq_pkt *pkt)
{
	if (len < 4)
		return -FI_EINVAL;
	pkt->data_len = wire_get16(at);
	if (wire_get16(at + 2) || pkt->data_len > WIRE_CONNREQ_DATA_MAX || len != 4 + pkt->data_len)
		return -FI_EINVAL;
	memcpy(pkt->data, at + 4, pkt->data_len);
	return 0;
}

static size_t wire_connreq_put_body(const struct wire_connreq_pkt *pkt, uint8_t *at)
{
	if (pkt->type == WIRE_CONNREQ_GREET)
		return 0;
	if (pkt->type == WIRE_CONNREQ_REFUSE) {
		wire_put32(at, pkt->err);
		return 4 + wire_connreq_put_data(pkt, at + 4);
	}
	wire_put64(at, pkt->inc);
	wire_cm_addr_encode(&pkt->addr, at + 8);
	return 8 + WIRE_CM_ADDR_LEN + wire_connreq_put_data(pkt, at + 8 + WIRE_CM_ADDR_LEN);
}

static int wire_connreq_get_self(const uint8_t *at, size_t len, struct wire_connreq_pkt *pkt)
{
	if (len < WIRE_CONNREQ_SELF_LEN || wire_cm_addr_decode(at + 8, &pkt->addr))
		return -FI_EINVAL;
	pkt->inc = wire_get64(at);
	if (!pkt->inc)
		return -FI_EINVAL;
	return wire_connreq_get_data(at + 8 + WIRE_CM_ADDR_LEN, len - 8 - WIRE_CM_ADDR_LEN, pkt);
}

static int wire_connreq_get_refuse(const uint8_t *at, size_t len, struct wire_connreq_pkt *pkt)
{
	if (len < 4)
		return -FI_EINVAL;
	pkt->err = wire_get32(at);
	if (!pkt->err || pkt->err > WIRE_CONNREQ_ERR_MAX)
		return -FI_EINVAL;
	return wire_connreq_get_data(at + 4, len - 4, pkt);
}

static int wire_connreq_get_body(const uint8_t *at, size_t len, struct wire_connreq_pkt *pkt)
{
	if (wire_connreq_has_self(pkt->type))
		return wire_connreq_get_self(at, len, pkt);
	if (pkt->type == WIRE_CONNREQ_REFUSE)
		return wire_connreq_get_refuse(at, len, pkt);
	return pkt->type == WIRE_CONNREQ_GREET && !len ? 0 : -FI_EINVAL;
}

size_t wire_connreq_encode(const struct wire_connreq_pkt *pkt, uint8_t *buf)
{
	size_t len =
		WIRE_CONNREQ_BARE_LEN + wire_connreq_put_body(pkt, buf + WIRE_CONNREQ_HEAD_LEN);

	wire_put32(buf, WIRE_CONNREQ_MAGIC);
	buf[4] = WIRE_CONNREQ_VERSION;
	buf[5] = (uint8_t)pkt->type;
	wire_put16(buf + 6, (uint16_t)len);
	wire_put64(buf + 8, pkt->nonce);
	wire_put64(buf + 16, pkt->features);
	memset(buf + len - WIRE_CM_MAC_LEN, 0, WIRE_CM_MAC_LEN);
	return len;
}

size_t wire_connreq_peek_len(const uint8_t *buf)
{
	size_t len = wire_get16(buf + 6);

	if (wire_get32(buf) != WIRE_CONNREQ_MAGIC || len < WIRE_CONNREQ_BARE_LEN ||
	    len > WIRE_CONNREQ_MAX)
		return 0;
	return len;
}

int wire_connreq_decode(const uint8_t *buf, size_t len, struct wire_connreq_pkt *pkt)
{
	if (len < WIRE_CONNREQ_BARE_LEN || wire_connreq_peek_len(buf) != len || !buf[4])
		return -FI_EINVAL;
	if (buf[4] != WIRE_CONNREQ_VERSION)
		return -FI_ENOPROTOOPT;
	memset(pkt, 0, offsetof(struct wire_connreq_pkt, data));
	pkt->type = buf[5];
	pkt->nonce = wire_get64(buf + 8);
	pkt->features = wire_get64(buf + 16);
	if (!pkt->nonce || (pkt->features && pkt->type > WIRE_CONNREQ_REQUEST))
		return -FI_EINVAL;
	return wire_connreq_get_body(buf + WIRE_CONNREQ_HEAD_LEN, len - WIRE_CONNREQ_BARE_LEN, pkt);
}
