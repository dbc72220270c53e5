/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Packets of the handshake (wire/wire_cm.c), checked against docs/handshake.md, section 2. */
#include "wire/wire_cm.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "support/rng.h"

#define NONCE 0x1112131415161718ull
#define SRC   0x2122232425262728ull
#define DST   0x3132333435363738ull

static struct wire_cm_pkt make(enum wire_cm_type type)
{
	struct wire_cm_pkt pkt;

	memset(&pkt, 0, sizeof(pkt));
	pkt.type = type;
	pkt.nonce = NONCE;
	pkt.src_inc = SRC;
	pkt.dst_inc = type == WIRE_CM_REQ ? 0 : DST;
	switch (type) {
	case WIRE_CM_REQ: pkt.req.paths = 1; break;
	case WIRE_CM_ACK:
		memset(pkt.ack.cookie, 0xC0, sizeof(pkt.ack.cookie));
		memcpy(pkt.ack.name, "0123456789abcdef0123456789abcdef", 32);
		pkt.ack.paths = 1;
		break;
	case WIRE_CM_NAK:
		pkt.nak.err = FI_EACCES;
		snprintf(pkt.nak.text, sizeof(pkt.nak.text), "no");
		break;
	case WIRE_CM_HELLO:
		memset(pkt.hello.cookie, 0xC0, sizeof(pkt.hello.cookie));
		pkt.hello.addr = (struct wire_cm_addr){ .family = 4, .port = 0x1234 };
		memcpy(pkt.hello.addr.ip, "\x7f\0\0\x01", 4);
		pkt.hello.params = (struct wire_cm_params){
			.path = 1, .engine_len = 2, .dev_len = 3, .fd_cnt = 1
		};
		memcpy(pkt.hello.params.engine, "en", 2);
		memcpy(pkt.hello.params.dev, "dev", 3);
		break;
	case WIRE_CM_WELCOME:
		pkt.welcome.params =
			(struct wire_cm_params){ .path = 8, .engine_len = 1, .fd_cnt = 4 };
		pkt.welcome.params.engine[0] = 'e';
		break;
	default: break;
	}
	return pkt;
}

/* First bytes of every packet. */
#define HEAD(type, len, dst)                                                                       \
	"CRCM\x01" type len "\x18\x17\x16\x15\x14\x13\x12\x11"                                     \
	"\x28\x27\x26\x25\x24\x23\x22\x21" dst "\0\0\0\0\0\0\0\0"
#define TO_DST "\x38\x37\x36\x35\x34\x33\x32\x31"
#define COOKIE "\xC0\xC0\xC0\xC0\xC0\xC0\xC0\xC0\xC0\xC0\xC0\xC0\xC0\xC0\xC0\xC0"

/* Bytes up to the MAC, or up to the zeros before it. */
static const struct golden {
	enum wire_cm_type type;
	size_t len;
	size_t shown;
	const char *bytes;
} goldens[] = {
#define GOLDEN(type, len, bytes)                                                                   \
	{                                                                                          \
		type, len, sizeof(bytes) - 1, bytes                                                \
	}
	GOLDEN(WIRE_CM_REQ, 200, HEAD("\x01", "\xC8\0", "\0\0\0\0\0\0\0\0") "\x01\0\0\0"),
	GOLDEN(WIRE_CM_ACK, 128,
	       HEAD("\x02", "\x80\0", TO_DST) COOKIE "0123456789abcdef0123456789abcdef"
						     "\x01\0\0\0\0\0\0\0"),
	GOLDEN(WIRE_CM_NAK, 82, HEAD("\x03", "\x52\0", TO_DST) "\x0D\0\0\0\x02\0\0\0no"),
	GOLDEN(WIRE_CM_HELLO, 125,
	       HEAD("\x04", "\x7D\0", TO_DST) COOKIE
	       "\x04\0\x34\x12\0\0\0\0\x7F\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0"
	       "\x02\0\x03\0\x01\x01\0\0endev"),
	GOLDEN(WIRE_CM_WELCOME, 81, HEAD("\x05", "\x51\0", TO_DST) "\x01\0\0\0\x04\x08\0\0e"),
	GOLDEN(WIRE_CM_READY, 72, HEAD("\x06", "\x48\0", TO_DST)),
	GOLDEN(WIRE_CM_CROSSED, 72, HEAD("\x07", "\x48\0", TO_DST)),
	GOLDEN(WIRE_CM_BYE, 72, HEAD("\x08", "\x48\0", TO_DST)),
	GOLDEN(WIRE_CM_PING, 72, HEAD("\x09", "\x48\0", TO_DST)),
	GOLDEN(WIRE_CM_PONG, 72, HEAD("\x0a", "\x48\0", TO_DST)),
	GOLDEN(WIRE_CM_BROKEN, 72, HEAD("\x0b", "\x48\0", TO_DST)),
};

#define GOLDEN_CNT (sizeof(goldens) / sizeof(goldens[0]))

Test(wire_cm, encoded_bytes_are_those_of_the_document)
{
	for (size_t i = 0; i < GOLDEN_CNT; i++) {
		const struct golden *g = &goldens[i];
		struct wire_cm_pkt pkt = make(g->type);
		uint8_t buf[WIRE_CM_MAX];
		size_t len;

		memset(buf, 0xEE, sizeof(buf));
		len = wire_cm_encode(&pkt, buf);
		cr_assert_eq(len, g->len, "%s: %zu", wire_cm_type_name(g->type), len);
		cr_assert(!memcmp(buf, g->bytes, g->shown), "%s", wire_cm_type_name(g->type));
		for (size_t at = g->shown; at < len; at++)
			cr_assert_eq(buf[at], 0, "%s at %zu", wire_cm_type_name(g->type), at);
	}
}

Test(wire_cm, decode_returns_the_encoded_packet)
{
	for (enum wire_cm_type type = WIRE_CM_REQ; type <= WIRE_CM_BROKEN; type++) {
		struct wire_cm_pkt pkt = make(type), back;
		uint8_t buf[WIRE_CM_MAX], again[WIRE_CM_MAX];
		size_t len = wire_cm_encode(&pkt, buf);

		cr_assert_eq(wire_cm_decode(buf, len, &back), 0, "%s", wire_cm_type_name(type));
		cr_assert(back.type == type && back.nonce == NONCE && back.src_inc == SRC);
		cr_assert_eq(wire_cm_encode(&back, again), len);
		cr_assert(!memcmp(buf, again, len), "%s", wire_cm_type_name(type));
	}
}

Test(wire_cm, a_req_may_have_the_name_of_the_peer_behind_the_paths)
{
	struct wire_cm_pkt pkt = make(WIRE_CM_REQ), back;
	uint8_t buf[WIRE_CM_MAX];
	size_t len;

	pkt.req.has_name = true;
	pkt.req.name = (struct wire_cm_addr){ .family = 4, .port = 0x1234 };
	memcpy(pkt.req.name.ip, "\x0A\x01\x02\x03", 4);
	len = wire_cm_encode(&pkt, buf);
	cr_assert_eq(len, WIRE_CM_REQ_LEN);
	cr_expect_eq(memcmp(buf + 44, "\x04\0\x34\x12\0\0\0\0\x0A\x01\x02\x03", 12), 0);
	cr_assert_eq(wire_cm_decode(buf, len, &back), 0);
	cr_expect(back.req.has_name && back.req.name.port == 0x1234);
	for (size_t at = 44; at < WIRE_CM_REQ_LEN - WIRE_CM_MAC_LEN; at++) {
		uint8_t was = buf[at];

		/* Port and address may be any; what else may not is reserved. */
		if (at == 46 || at == 47 || (at >= 52 && at < 56))
			continue;
		buf[at] ^= 0x80;
		cr_expect_eq(wire_cm_decode(buf, len, &back), -FI_EINVAL, "byte %zu", at);
		buf[at] = was;
	}
	cr_assert_eq(wire_cm_decode(buf, len, &back), 0);
	buf[46] = buf[47] = 0;
	cr_expect_eq(wire_cm_decode(buf, len, &back), -FI_EINVAL, "port 0");
}

/** Returns a HELLO with the identity of its sender. */
static struct wire_cm_pkt make_identified(void)
{
	struct wire_cm_pkt pkt = make(WIRE_CM_HELLO);

	pkt.features = WIRE_CM_FEATURE_IDENTITY;
	pkt.hello.params.has_identity = true;
	pkt.hello.params.identity = (struct wire_cm_identity){ .rank = 17, .pid = 4711 };
	memcpy(pkt.hello.params.identity.host, "node-7.a", 9);
	return pkt;
}

#define IDENTITY_AT 93u /* head 40, cookie 16, address 24, lengths 8, engine 2, device 3 */

Test(wire_cm, an_identity_is_behind_the_device)
{
	static const char bytes[] = "\x11\0\0\0\x67\x12\0\0node-7.a";
	struct wire_cm_pkt pkt = make_identified(), back;
	uint8_t buf[WIRE_CM_MAX];
	size_t len = wire_cm_encode(&pkt, buf);

	cr_assert_eq(len, 125 + 16);
	cr_expect_eq(buf[86] | buf[87] << 8, 16, "its length");
	cr_expect_eq(memcmp(buf + IDENTITY_AT, bytes, 16), 0);
	cr_assert_eq(wire_cm_decode(buf, len, &back), 0);
	cr_expect(back.hello.params.has_identity);
	cr_expect_eq(back.hello.params.identity.rank, 17);
	cr_expect_eq(back.hello.params.identity.pid, 4711);
	cr_expect_str_eq(back.hello.params.identity.host, "node-7.a");
	buf[32] = 0;
	cr_expect_eq(wire_cm_decode(buf, len, &back), -FI_EINVAL, "without its feature");
}

Test(wire_cm, an_identity_that_a_terminal_could_execute_is_refused)
{
	struct wire_cm_pkt pkt = make_identified(), back;
	uint8_t buf[WIRE_CM_MAX];
	size_t len = wire_cm_encode(&pkt, buf);

	for (unsigned c = 0; c < 256; c++) {
		bool is_good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			       (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';

		buf[IDENTITY_AT + 8 + 3] = (uint8_t)c;
		cr_expect_eq(wire_cm_decode(buf, len, &back), is_good ? 0 : -FI_EINVAL, "%u", c);
	}
}

Test(wire_cm, ranks_and_processes_that_cannot_be_are_refused)
{
	static const struct {
		uint32_t rank, pid;
		bool is_good;
	} cases[] = { { 0, 0, true },
		      { UINT32_MAX, 1, true },
		      { INT32_MAX, INT32_MAX, true },
		      { UINT32_MAX - 1, 1, false },
		      { 1u << 31, 1, false },
		      { 0, 1u << 31, false },
		      { 0, UINT32_MAX, false } };
	struct wire_cm_pkt pkt = make_identified(), back;
	uint8_t buf[WIRE_CM_MAX];
	size_t len = wire_cm_encode(&pkt, buf);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		memcpy(buf + IDENTITY_AT, &cases[i].rank, 4);
		memcpy(buf + IDENTITY_AT + 4, &cases[i].pid, 4);
		cr_expect_eq(wire_cm_decode(buf, len, &back), cases[i].is_good ? 0 : -FI_EINVAL,
			     "case %zu", i);
	}
}

Test(wire_cm, the_identity_gives_way_to_long_parameters)
{
	static const uint32_t rooms[] = { 0, 7, 8, 9, 70, 71, 72 };
	struct wire_cm_pkt pkt = make_identified(), back;
	uint8_t buf[WIRE_CM_MAX];
	size_t len;

	memset(pkt.hello.params.identity.host, 'h', WIRE_CM_HOST_MAX);
	pkt.hello.params.engine_len = WIRE_CM_ENGINE_MAX;
	for (size_t i = 0; i < sizeof(rooms) / sizeof(rooms[0]); i++) {
		uint32_t shown = rooms[i] < 8 ? 0 : rooms[i] < 71 ? rooms[i] : 71;

		pkt.hello.params.dev_len = WIRE_CM_DEV_MAX - rooms[i];
		len = wire_cm_encode(&pkt, buf);
		cr_assert_eq(len, WIRE_CM_MAX - rooms[i] + shown);
		cr_assert_eq(wire_cm_decode(buf, len, &back), 0, "room %u", rooms[i]);
		cr_expect_eq(back.hello.params.has_identity, shown > 0);
		cr_expect_eq(strlen(back.hello.params.identity.host), shown ? shown - 8 : 0);
	}
}

Test(wire_cm, the_longest_connection_parameters_fit)
{
	struct wire_cm_pkt pkt = make(WIRE_CM_HELLO), back;
	uint8_t buf[WIRE_CM_MAX];
	size_t len;

	pkt.hello.params = (struct wire_cm_params){ .path = 128,
						    .engine_len = WIRE_CM_ENGINE_MAX,
						    .dev_len = WIRE_CM_DEV_MAX,
						    .fd_cnt = WIRE_CM_FDS_MAX };
	memset(pkt.hello.params.dev, 0xDD, WIRE_CM_DEV_MAX);
	len = wire_cm_encode(&pkt, buf);
	cr_assert_eq(len, WIRE_CM_MAX);
	cr_assert_eq(wire_cm_decode(buf, len, &back), 0);
	cr_assert(!memcmp(back.hello.params.dev, pkt.hello.params.dev, WIRE_CM_DEV_MAX));
	pkt = make(WIRE_CM_NAK);
	memset(pkt.nak.text, 'x', WIRE_CM_TEXT_MAX);
	pkt.nak.text[WIRE_CM_TEXT_MAX] = '\0';
	len = wire_cm_encode(&pkt, buf);
	cr_assert_eq(len, WIRE_CM_NAK_MAX);
	cr_assert_eq(wire_cm_decode(buf, len, &back), 0);
	cr_assert_str_eq(back.nak.text, pkt.nak.text);
}

/*
 * Decodes a copy in a block of its own, so that the sanitizer reports the first byte read too far.
 */
static int decode_exact(const uint8_t *buf, size_t len, struct wire_cm_pkt *pkt)
{
	uint8_t *copy = malloc(len ? len : 1);
	int ret;

	memcpy(copy, buf, len);
	ret = wire_cm_decode(copy, len, pkt);
	free(copy);
	return ret;
}

Test(wire_cm, every_other_length_is_refused)
{
	for (enum wire_cm_type type = WIRE_CM_REQ; type <= WIRE_CM_BROKEN; type++) {
		struct wire_cm_pkt pkt = make(type), back;
		uint8_t buf[WIRE_CM_MAX + 8] = { 0 };
		size_t len = wire_cm_encode(&pkt, buf);

		for (size_t cut = 0; cut <= sizeof(buf); cut++) {
			/* Covers a truncated packet, and one with a length field that agrees. */
			int ret = decode_exact(buf, cut, &back);

			cr_assert_eq(ret, cut == len ? 0 : -FI_EINVAL);
			if (cut < 8)
				continue;
			buf[6] = (uint8_t)cut;
			buf[7] = (uint8_t)(cut >> 8);
			ret = decode_exact(buf, cut, &back);
			cr_assert_eq(ret, cut == len ? 0 : -FI_EINVAL, "%s, %zu",
				     wire_cm_type_name(type), cut);
			buf[6] = (uint8_t)len;
			buf[7] = (uint8_t)(len >> 8);
		}
	}
}

/* One byte of a valid packet, changed to an illegal value. */
static const struct spoiler {
	enum wire_cm_type type;
	size_t at;
	uint8_t byte;
	const char *what;
} spoilers[] = {
	{ WIRE_CM_REQ, 0, 'c', "magic" },
	{ WIRE_CM_REQ, 3, 'm', "magic" },
	{ WIRE_CM_REQ, 4, 0, "version 0" },
	{ WIRE_CM_REQ, 5, 0, "no type" },
	{ WIRE_CM_REQ, 5, 9, "unknown type" },
	{ WIRE_CM_REQ, 5, 255, "unknown type" },
	{ WIRE_CM_REQ, 24, 1, "a receiver's incarnation in REQ" },
	{ WIRE_CM_REQ, 44, 1, "padding" },
	{ WIRE_CM_REQ, 167, 1, "padding" },
	{ WIRE_CM_ACK, 56, 'g', "name" },
	{ WIRE_CM_ACK, 87, 'A', "name" },
	{ WIRE_CM_ACK, 87, 0, "name" },
	{ WIRE_CM_ACK, 92, 1, "reserved" },
	{ WIRE_CM_NAK, 32, 1, "features in a packet without any" },
	{ WIRE_CM_NAK, 40, 0, "no error" },
	{ WIRE_CM_NAK, 42, 1, "an unknown error" },
	{ WIRE_CM_NAK, 44, 1, "text length" },
	{ WIRE_CM_NAK, 44, 3, "text length" },
	{ WIRE_CM_NAK, 46, 1, "reserved" },
	{ WIRE_CM_NAK, 48, '\n', "unprintable" },
	{ WIRE_CM_NAK, 48, 0x1B, "unprintable" },
	{ WIRE_CM_NAK, 49, 0x80, "unprintable" },
	{ WIRE_CM_NAK, 49, 0, "unprintable" },
	{ WIRE_CM_NAK, 48, 0x7f, "unprintable" },
	{ WIRE_CM_HELLO, 56, 5, "family" },
	{ WIRE_CM_HELLO, 56, 7, "family" },
	{ WIRE_CM_HELLO, 57, 1, "reserved" },
	{ WIRE_CM_HELLO, 60, 1, "scope of an IPv4 address" },
	{ WIRE_CM_HELLO, 68, 1, "a byte beyond an IPv4 address" },
	{ WIRE_CM_HELLO, 79, 1, "a byte beyond an IPv4 address" },
	{ WIRE_CM_HELLO, 80, 3, "engine length" },
	{ WIRE_CM_HELLO, 80, 1, "engine length" },
	{ WIRE_CM_HELLO, 81, 255, "engine length" },
	{ WIRE_CM_HELLO, 83, 255, "device length" },
	{ WIRE_CM_HELLO, 84, 5, "descriptors" },
	{ WIRE_CM_HELLO, 85, 0, "no path" },
	{ WIRE_CM_HELLO, 85, 3, "two paths" },
	{ WIRE_CM_HELLO, 86, 1, "reserved" },
	{ WIRE_CM_HELLO, 87, 1, "reserved" },
	{ WIRE_CM_WELCOME, 39, 1, "features in a packet without any" },
	{ WIRE_CM_WELCOME, 44, 5, "descriptors" },
	{ WIRE_CM_READY, 35, 1, "features in a packet without any" },
};

Test(wire_cm, illegal_bytes_are_refused)
{
	for (size_t i = 0; i < sizeof(spoilers) / sizeof(spoilers[0]); i++) {
		const struct spoiler *s = &spoilers[i];
		struct wire_cm_pkt pkt = make(s->type), back;
		uint8_t buf[WIRE_CM_MAX];
		size_t len = wire_cm_encode(&pkt, buf);

		cr_assert_neq(buf[s->at], s->byte, "%s at %zu", s->what, s->at);
		buf[s->at] = s->byte;
		cr_assert_eq(decode_exact(buf, len, &back), -FI_EINVAL, "%s, %s at %zu",
			     wire_cm_type_name(s->type), s->what, s->at);
	}
}

Test(wire_cm, zero_nonces_and_incarnations_are_refused)
{
	static const size_t fields[] = { 8, 16, 24 };

	for (size_t i = 0; i < 3; i++) {
		struct wire_cm_pkt pkt = make(WIRE_CM_BYE), back;
		uint8_t buf[WIRE_CM_MAX];
		size_t len = wire_cm_encode(&pkt, buf);

		memset(buf + fields[i], 0, 8);
		cr_assert_eq(wire_cm_decode(buf, len, &back), -FI_EINVAL);
	}
	{
		struct wire_cm_pkt pkt = make(WIRE_CM_HELLO), back;
		uint8_t buf[WIRE_CM_MAX];
		size_t len = wire_cm_encode(&pkt, buf);

		buf[58] = buf[59] = 0; /* port */
		cr_assert_eq(wire_cm_decode(buf, len, &back), -FI_EINVAL);
	}
}

Test(wire_cm, features_may_be_set_where_they_are_negotiated)
{
	static const enum wire_cm_type types[] = { WIRE_CM_REQ, WIRE_CM_ACK, WIRE_CM_HELLO };

	for (size_t i = 0; i < 3; i++) {
		struct wire_cm_pkt pkt = make(types[i]), back;
		uint8_t buf[WIRE_CM_MAX];

		pkt.features = 0x8000000000000001ull;
		cr_assert_eq(wire_cm_decode(buf, wire_cm_encode(&pkt, buf), &back), 0);
		cr_assert_eq(back.features, pkt.features);
	}
}

Test(wire_cm, other_versions_are_reported_and_their_refusals_decoded)
{
	struct wire_cm_pkt pkt = make(WIRE_CM_REQ), back;
	uint8_t buf[WIRE_CM_MAX];
	size_t len = wire_cm_encode(&pkt, buf);

	buf[4] = 2;
	buf[100] = 0x77; /* meaning unknown in this version */
	buf[5] = 200;
	memset(&back, 0, sizeof(back));
	cr_assert_eq(wire_cm_decode(buf, len, &back), -FI_ENOPROTOOPT);
	cr_assert(back.type == 200 && back.nonce == NONCE && back.src_inc == SRC);
	pkt = make(WIRE_CM_NAK);
	len = wire_cm_encode(&pkt, buf);
	buf[4] = 2;
	cr_assert_eq(wire_cm_decode(buf, len, &back), 0);
	cr_assert_str_eq(back.nak.text, "no");
}

Test(wire_cm, peek_nonce_returns_the_nonce_of_a_quoted_packet)
{
	struct wire_cm_pkt pkt = make(WIRE_CM_REQ);
	uint8_t buf[WIRE_CM_MAX];

	wire_cm_encode(&pkt, buf);
	cr_assert_eq(wire_cm_peek_nonce(buf, 32), NONCE);
	cr_assert_eq(wire_cm_peek_nonce(buf, 31), 0);
	cr_assert_eq(wire_cm_peek_nonce(buf, 0), 0);
	buf[0] = 0;
	cr_assert_eq(wire_cm_peek_nonce(buf, 200), 0);
}

Test(wire_cm, a_decoded_packet_encodes_to_the_same_bytes)
{
	struct rng rng = { rng_env("COPYRPC_TEST_SEED", 1) };
	unsigned taken = 0;

	for (unsigned i = 0; i < 300000; i++) {
		struct wire_cm_pkt pkt = make((enum wire_cm_type)(1 + rng_below(&rng, 8))), back;
		uint8_t buf[WIRE_CM_MAX], again[WIRE_CM_MAX];
		size_t len = wire_cm_encode(&pkt, buf);

		for (uint64_t k = rng_below(&rng, 4); k; k--)
			buf[rng_below(&rng, len - WIRE_CM_MAC_LEN)] = (uint8_t)rng_next(&rng);
		if (decode_exact(buf, len, &back) || buf[4] != WIRE_CM_VERSION)
			continue;
		taken++;
		cr_assert_eq(wire_cm_encode(&back, again), len);
		cr_assert(!memcmp(buf, again, len - WIRE_CM_MAC_LEN));
	}
	cr_assert(taken > 50000);
}
