/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Encoding and decoding of the handshake's packets: see wire_cm.h.
 *
 * The table wire_cm_forms gives the length and header rules of each packet type. Each body has one
 * encoder and one decoder.
 */
#include "wire/wire_cm.h"

#include <assert.h>
#include <copyrpc/stats.h>
#include <rdma/fi_errno.h>
#include <stdbool.h>
#include <string.h>

#include "util/job_name.h"
#include "wire/wire_le.h"

static_assert((int)COPYRPC_STATS_SHM == WIRE_CM_PATH_SHM &&
		      (int)COPYRPC_STATS_NIC == WIRE_CM_PATH_NIC &&
		      (int)COPYRPC_STATS_UDS == WIRE_CM_PATH_UD &&
		      (int)COPYRPC_STATS_UDP == WIRE_CM_PATH_UDP,
	      "copyrpc/stats.h");

static_assert(sizeof(((struct wire_cm_identity *)0)->host) == UTIL_JOB_HOST_LEN &&
		      UTIL_JOB_HOST_LEN == COPYRPC_STATS_HOST_LEN,
	      "one length of names");

#define WIRE_CM_ERR_MAX 1023u /* all FI_E* are at most this */

static_assert(WIRE_CM_HELLO_MIN == WIRE_CM_HEAD_LEN + 16 + 24 + 8 + WIRE_CM_MAC_LEN, "layout");
static_assert(WIRE_CM_HELLO_MAX == WIRE_CM_HELLO_MIN + WIRE_CM_ENGINE_MAX + WIRE_CM_DEV_MAX, "max");
static_assert(WIRE_CM_WELCOME_MIN == WIRE_CM_HEAD_LEN + 8 + WIRE_CM_MAC_LEN, "layout");
static_assert(WIRE_CM_WELCOME_MAX == WIRE_CM_WELCOME_MIN + WIRE_CM_ENGINE_MAX + WIRE_CM_DEV_MAX,
	      "max");
static_assert(WIRE_CM_ACK_LEN == WIRE_CM_HEAD_LEN + 16 + 32 + 8 + WIRE_CM_MAC_LEN, "layout");
static_assert(WIRE_CM_NAK_MAX == WIRE_CM_HEAD_LEN + 8 + WIRE_CM_TEXT_MAX + WIRE_CM_MAC_LEN, "max");
static_assert(WIRE_CM_BARE_LEN == WIRE_CM_HEAD_LEN + WIRE_CM_MAC_LEN, "layout");
static_assert(WIRE_CM_ACK_LEN <= WIRE_CM_REQ_LEN && WIRE_CM_NAK_MAX <= WIRE_CM_REQ_LEN,
	      "a reply is never longer than the REQ it replies to");

/** Properties common to all packets of a type. */
struct wire_cm_form {
	const char *name;
	uint32_t len_min;
	uint32_t len_max;
	bool has_dst;      /* dst_inc must be set (else: must be 0) */
	bool has_features; /* features may be set */
	size_t (*encode)(const struct wire_cm_pkt *pkt, uint8_t *body);
	int (*decode)(const uint8_t *body, size_t len, struct wire_cm_pkt *pkt);
};

void wire_cm_addr_encode(const struct wire_cm_addr *addr, uint8_t *buf)
{
	buf[0] = addr->family;
	buf[1] = 0;
	wire_put16(buf + 2, addr->port);
	wire_put32(buf + 4, addr->scope);
	memcpy(buf + 8, addr->ip, sizeof(addr->ip));
}

int wire_cm_addr_decode(const uint8_t *buf, struct wire_cm_addr *addr)
{
	addr->family = buf[0];
	addr->port = wire_get16(buf + 2);
	addr->scope = wire_get32(buf + 4);
	memcpy(addr->ip, buf + 8, sizeof(addr->ip));
	if ((addr->family != 4 && addr->family != 6) || buf[1] || !addr->port)
		return -FI_EINVAL;
	if (addr->family == 4 && (addr->scope || !wire_is_zero(addr->ip + 4, 12)))
		return -FI_EINVAL;
	return 0;
}

#define WIRE_CM_IDENTITY_MIN 8u /* rank and number, without a host's name */

/** Returns the bytes that the identity takes: 0 if it is left out. */
static size_t wire_cm_identity_len(const struct wire_cm_params *params)
{
	size_t room = WIRE_CM_PARAMS_MAX - params->engine_len - params->dev_len;
	size_t len = WIRE_CM_IDENTITY_MIN + strnlen(params->identity.host, WIRE_CM_HOST_MAX);

	if (!params->has_identity || room < WIRE_CM_IDENTITY_MIN)
		return 0;
	return len < room ? len : room;
}

static void wire_cm_identity_encode(const struct wire_cm_identity *identity, uint8_t *at,
				    size_t len)
{
	if (!len)
		return;
	wire_put32(at, (uint32_t)identity->rank);
	wire_put32(at + 4, identity->pid);
	memcpy(at + WIRE_CM_IDENTITY_MIN, identity->host, len - WIRE_CM_IDENTITY_MIN);
}

/* Decodes the identity of the sender: text for terminals, so only names of hosts are accepted. */
static int wire_cm_identity_decode(const uint8_t *at, size_t len, struct wire_cm_params *params)
{
	struct wire_cm_identity *identity = &params->identity;

	params->has_identity = len > 0;
	memset(identity, 0, sizeof(*identity));
	if (!len)
		return 0;
	if (len < WIRE_CM_IDENTITY_MIN || len > WIRE_CM_IDENTITY_MIN + WIRE_CM_HOST_MAX)
		return -FI_EINVAL;
	identity->rank = (int32_t)wire_get32(at);
	identity->pid = wire_get32(at + 4);
	memcpy(identity->host, at + WIRE_CM_IDENTITY_MIN, len - WIRE_CM_IDENTITY_MIN);
	for (size_t i = 0; i < len - WIRE_CM_IDENTITY_MIN; i++)
		if (!util_job_is_host_char(identity->host[i]))
			return -FI_EINVAL;
	return identity->rank >= -1 && identity->pid <= INT32_MAX ? 0 : -FI_EINVAL;
}

static size_t wire_cm_params_encode(const struct wire_cm_params *params, uint8_t *at)
{
	size_t len = 8 + params->engine_len + params->dev_len;
	size_t identity_len = wire_cm_identity_len(params);

	wire_put16(at, (uint16_t)params->engine_len);
	wire_put16(at + 2, (uint16_t)params->dev_len);
	at[4] = (uint8_t)params->fd_cnt;
	at[5] = (uint8_t)params->path;
	wire_put16(at + 6, (uint16_t)identity_len);
	memcpy(at + 8, params->engine, params->engine_len);
	memcpy(at + 8 + params->engine_len, params->dev, params->dev_len);
	wire_cm_identity_encode(&params->identity, at + len, identity_len);
	return len + identity_len;
}

static int wire_cm_params_decode(const uint8_t *at, size_t len, struct wire_cm_params *params)
{
	size_t identity_len = wire_get16(at + 6);

	params->engine_len = wire_get16(at);
	params->dev_len = wire_get16(at + 2);
	params->fd_cnt = at[4];
	params->path = at[5];
	if (!params->path || params->path & (params->path - 1))
		return -FI_EINVAL;
	if (params->engine_len > WIRE_CM_ENGINE_MAX || params->dev_len > WIRE_CM_DEV_MAX ||
	    params->fd_cnt > WIRE_CM_FDS_MAX)
		return -FI_EINVAL;
	if (len != 8 + params->engine_len + params->dev_len + identity_len)
		return -FI_EINVAL;
	memcpy(params->engine, at + 8, params->engine_len);
	memcpy(params->dev, at + 8 + params->engine_len, params->dev_len);
	return wire_cm_identity_decode(at + len - identity_len, identity_len, params);
}

static size_t wire_cm_req_encode(const struct wire_cm_pkt *pkt, uint8_t *body)
{
	size_t len = WIRE_CM_REQ_LEN - WIRE_CM_BARE_LEN;

	memset(body, 0, len);
	wire_put32(body, pkt->req.paths);
	if (pkt->req.has_name)
		wire_cm_addr_encode(&pkt->req.name, body + 4);
	return len;
}

static int wire_cm_req_decode(const uint8_t *body, size_t len, struct wire_cm_pkt *pkt)
{
	pkt->req.paths = wire_get32(body);
	pkt->req.has_name = !wire_is_zero(body + 4, WIRE_CM_ADDR_LEN);
	if (pkt->req.has_name && wire_cm_addr_decode(body + 4, &pkt->req.name))
		return -FI_EINVAL;
	return wire_is_zero(body + 4 + WIRE_CM_ADDR_LEN, len - 4 - WIRE_CM_ADDR_LEN) ? 0
										     : -FI_EINVAL;
}

static size_t wire_cm_ack_encode(const struct wire_cm_pkt *pkt, uint8_t *body)
{
	memcpy(body, pkt->ack.cookie, WIRE_CM_COOKIE_LEN);
	memcpy(body + 16, pkt->ack.name, WIRE_CM_NAME_LEN);
	wire_put32(body + 48, pkt->ack.paths);
	wire_put32(body + 52, 0);
	return 56;
}

static int wire_cm_ack_decode(const uint8_t *body, size_t len, struct wire_cm_pkt *pkt)
{
	memcpy(pkt->ack.cookie, body, WIRE_CM_COOKIE_LEN);
	memcpy(pkt->ack.name, body + 16, WIRE_CM_NAME_LEN);
	pkt->ack.paths = wire_get32(body + 48);
	for (size_t i = 0; i < WIRE_CM_NAME_LEN; i++) {
		char c = pkt->ack.name[i];

		if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
			return -FI_EINVAL;
	}
	return wire_get32(body + 52) ? -FI_EINVAL : 0;
}

static size_t wire_cm_nak_encode(const struct wire_cm_pkt *pkt, uint8_t *body)
{
	size_t text_len = strnlen(pkt->nak.text, WIRE_CM_TEXT_MAX);

	wire_put32(body, pkt->nak.err);
	wire_put16(body + 4, (uint16_t)text_len);
	wire_put16(body + 6, 0);
	memcpy(body + 8, pkt->nak.text, text_len);
	return 8 + text_len;
}

/* Decodes a refusal. Its text is printed on a terminal, so only printable ASCII is accepted. */
static int wire_cm_nak_decode(const uint8_t *body, size_t len, struct wire_cm_pkt *pkt)
{
	size_t text_len = wire_get16(body + 4);

	pkt->nak.err = wire_get32(body);
	if (!pkt->nak.err || pkt->nak.err > WIRE_CM_ERR_MAX || wire_get16(body + 6) ||
	    len != 8 + text_len)
		return -FI_EINVAL;
	memcpy(pkt->nak.text, body + 8, text_len);
	pkt->nak.text[text_len] = '\0';
	for (size_t i = 0; i < text_len; i++)
		if (pkt->nak.text[i] < ' ' || pkt->nak.text[i] > '~')
			return -FI_EINVAL;
	return 0;
}

static size_t wire_cm_hello_encode(const struct wire_cm_pkt *pkt, uint8_t *body)
{
	memcpy(body, pkt->hello.cookie, WIRE_CM_COOKIE_LEN);
	wire_cm_addr_encode(&pkt->hello.addr, body + 16);
	return 40 + wire_cm_params_encode(&pkt->hello.params, body + 40);
}

static int wire_cm_hello_decode(const uint8_t *body, size_t len, struct wire_cm_pkt *pkt)
{
	memcpy(pkt->hello.cookie, body, WIRE_CM_COOKIE_LEN);
	if (wire_cm_addr_decode(body + 16, &pkt->hello.addr))
		return -FI_EINVAL;
	if (wire_cm_params_decode(body + 40, len - 40, &pkt->hello.params))
		return -FI_EINVAL;
	return pkt->hello.params.has_identity && !(pkt->features & WIRE_CM_FEATURE_IDENTITY)
		       ? -FI_EINVAL
		       : 0;
}

static size_t wire_cm_welcome_encode(const struct wire_cm_pkt *pkt, uint8_t *body)
{
	return wire_cm_params_encode(&pkt->welcome.params, body);
}

static int wire_cm_welcome_decode(const uint8_t *body, size_t len, struct wire_cm_pkt *pkt)
{
	return wire_cm_params_decode(body, len, &pkt->welcome.params);
}

static size_t wire_cm_bare_encode(const struct wire_cm_pkt *pkt, uint8_t *body)
{
	return 0;
}

static int wire_cm_bare_decode(const uint8_t *body, size_t len, struct wire_cm_pkt *pkt)
{
	return 0;
}

#define WIRE_CM_BARE(text)                                                                         \
	{                                                                                          \
		.name = text, .len_min = WIRE_CM_BARE_LEN, .len_max = WIRE_CM_BARE_LEN,            \
		.has_dst = true, .encode = wire_cm_bare_encode, .decode = wire_cm_bare_decode,     \
	}

static const struct wire_cm_form wire_cm_forms[] = {
	[WIRE_CM_REQ] = { .name = "REQ",
			  .len_min = WIRE_CM_REQ_LEN,
			  .len_max = WIRE_CM_REQ_LEN,
			  .has_features = true,
			  .encode = wire_cm_req_encode,
			  .decode = wire_cm_req_decode },
	[WIRE_CM_ACK] = { .name = "ACK",
			  .len_min = WIRE_CM_ACK_LEN,
			  .len_max = WIRE_CM_ACK_LEN,
			  .has_dst = true,
			  .has_features = true,
			  .encode = wire_cm_ack_encode,
			  .decode = wire_cm_ack_decode },
	[WIRE_CM_NAK] = { .name = "NAK",
			  .len_min = WIRE_CM_BARE_LEN + 8,
			  .len_max = WIRE_CM_NAK_MAX,
			  .has_dst = true,
			  .encode = wire_cm_nak_encode,
			  .decode = wire_cm_nak_decode },
	[WIRE_CM_HELLO] = { .name = "HELLO",
			    .len_min = WIRE_CM_HELLO_MIN,
			    .len_max = WIRE_CM_HELLO_MAX,
			    .has_dst = true,
			    .has_features = true,
			    .encode = wire_cm_hello_encode,
			    .decode = wire_cm_hello_decode },
	[WIRE_CM_WELCOME] = { .name = "WELCOME",
			      .len_min = WIRE_CM_WELCOME_MIN,
			      .len_max = WIRE_CM_WELCOME_MAX,
			      .has_dst = true,
			      .encode = wire_cm_welcome_encode,
			      .decode = wire_cm_welcome_decode },
	[WIRE_CM_READY] = WIRE_CM_BARE("READY"),
	[WIRE_CM_CROSSED] = WIRE_CM_BARE("CROSSED"),
	[WIRE_CM_BYE] = WIRE_CM_BARE("BYE"),
	[WIRE_CM_PING] = WIRE_CM_BARE("PING"),
	[WIRE_CM_PONG] = WIRE_CM_BARE("PONG"),
	[WIRE_CM_BROKEN] = WIRE_CM_BARE("BROKEN"),
};

static const struct wire_cm_form *wire_cm_form(unsigned type)
{
	if (!type || type >= sizeof(wire_cm_forms) / sizeof(wire_cm_forms[0]))
		return NULL;
	return &wire_cm_forms[type];
}

const char *wire_cm_type_name(enum wire_cm_type type)
{
	const struct wire_cm_form *form = wire_cm_form(type);

	return form ? form->name : "?";
}

size_t wire_cm_encode(const struct wire_cm_pkt *pkt, uint8_t *buf)
{
	const struct wire_cm_form *form = wire_cm_form(pkt->type);
	size_t len;

	assert(form);
	len = WIRE_CM_HEAD_LEN + form->encode(pkt, buf + WIRE_CM_HEAD_LEN) + WIRE_CM_MAC_LEN;
	wire_put32(buf, WIRE_CM_MAGIC);
	buf[4] = WIRE_CM_VERSION;
	buf[5] = (uint8_t)pkt->type;
	wire_put16(buf + 6, (uint16_t)len);
	wire_put64(buf + 8, pkt->nonce);
	wire_put64(buf + 16, pkt->src_inc);
	wire_put64(buf + 24, pkt->dst_inc);
	wire_put64(buf + 32, pkt->features);
	memset(buf + len - WIRE_CM_MAC_LEN, 0, WIRE_CM_MAC_LEN);
	return len;
}

/* Decodes the part of the header that is the same in every version. */
static int wire_cm_prefix_decode(const uint8_t *buf, size_t len, struct wire_cm_pkt *pkt)
{
	if (len < WIRE_CM_BARE_LEN || len > WIRE_CM_MAX || wire_get32(buf) != WIRE_CM_MAGIC ||
	    wire_get16(buf + 6) != len)
		return -FI_EINVAL;
	pkt->type = buf[5];
	pkt->nonce = wire_get64(buf + 8);
	pkt->src_inc = wire_get64(buf + 16);
	pkt->dst_inc = wire_get64(buf + 24);
	return pkt->nonce && pkt->src_inc ? 0 : -FI_EINVAL;
}

int wire_cm_decode(const uint8_t *buf, size_t len, struct wire_cm_pkt *pkt)
{
	const struct wire_cm_form *form;

	if (wire_cm_prefix_decode(buf, len, pkt))
		return -FI_EINVAL;
	/*
	 * Refusals have the same layout in every version, so that a version mismatch can be
	 * reported.
	 */
	if (buf[4] != WIRE_CM_VERSION && pkt->type != WIRE_CM_NAK)
		return buf[4] ? -FI_ENOPROTOOPT : -FI_EINVAL;
	form = wire_cm_form(pkt->type);
	if (!form || len < form->len_min || len > form->len_max || !pkt->dst_inc == form->has_dst)
		return -FI_EINVAL;
	pkt->features = wire_get64(buf + WIRE_CM_PREFIX_LEN);
	if (pkt->features && !form->has_features)
		return -FI_EINVAL;
	return form->decode(buf + WIRE_CM_HEAD_LEN, len - WIRE_CM_BARE_LEN, pkt);
}

uint64_t wire_cm_peek_nonce(const uint8_t *buf, size_t len)
{
	if (len < WIRE_CM_PREFIX_LEN || wire_get32(buf) != WIRE_CM_MAGIC)
		return 0;
	return wire_get64(buf + 8);
}
