/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Packets of a connection request, checked against docs/connections.md, section 2. */
#include "wire/wire_connreq.h"

#include <criterion/criterion.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "support/rng.h"

#define NONCE 0x1112131415161718ull
#define INC   0x2122232425262728ull

static struct wire_connreq_pkt make(enum wire_connreq_type type, uint32_t data_len)
{
	struct wire_connreq_pkt pkt;

	memset(&pkt, 0, sizeof(pkt));
	pkt.type = type;
	pkt.nonce = NONCE;
	if (type == WIRE_CONNREQ_REQUEST || type == WIRE_CONNREQ_ACCEPT) {
		pkt.inc = INC;
		pkt.addr = (struct wire_cm_addr){ .family = 4, .port = 0x1234 };
		memcpy(pkt.addr.ip, "\x7f\0\0\x01", 4);
	}
	if (type == WIRE_CONNREQ_REFUSE)
		pkt.err = FI_ECONNREFUSED;
	pkt.data_len = data_len;
	for (uint32_t i = 0; i < data_len; i++)
		pkt.data[i] = (uint8_t)('a' + i % 26);
	return pkt;
}

#define HEAD(type, len) "CRCD\x01" type len "\x18\x17\x16\x15\x14\x13\x12\x11\0\0\0\0\0\0\0\0"
#define SELF                                                                                       \
	"\x28\x27\x26\x25\x24\x23\x22\x21\x04\0\x34\x12\0\0\0\0\x7f\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0"

/* Bytes up to the MAC. */
static const struct golden {
	enum wire_connreq_type type;
	uint32_t data_len;
	size_t len;
	const char *bytes;
} goldens[] = {
	{ WIRE_CONNREQ_GREET, 0, 56, HEAD("\x01", "\x38\0") },
	{ WIRE_CONNREQ_REQUEST, 2, 94, HEAD("\x02", "\x5e\0") SELF "\x02\0\0\0ab" },
	{ WIRE_CONNREQ_ACCEPT, 0, 92, HEAD("\x03", "\x5c\0") SELF "\0\0\0\0" },
	{ WIRE_CONNREQ_REFUSE, 3, 67, HEAD("\x04", "\x43\0") "\x6f\0\0\0\x03\0\0\0abc" },
};

#define GOLDENS (sizeof(goldens) / sizeof(goldens[0]))

Test(wire_connreq, golden_bytes)
{
	uint8_t buf[WIRE_CONNREQ_MAX];

	for (size_t i = 0; i < GOLDENS; i++) {
		struct wire_connreq_pkt pkt = make(goldens[i].type, goldens[i].data_len);
		static const uint8_t zeros[WIRE_CM_MAC_LEN];
		size_t len = wire_connreq_encode(&pkt, buf);

		cr_assert_eq(len, goldens[i].len, "%s: %zu", wire_connreq_type_name(pkt.type), len);
		cr_assert_arr_eq(buf, goldens[i].bytes, len - WIRE_CM_MAC_LEN);
		cr_assert_arr_eq(buf + len - WIRE_CM_MAC_LEN, zeros, WIRE_CM_MAC_LEN);
	}
}

Test(wire_connreq, decode_returns_the_encoded_packet)
{
	static const uint32_t lens[] = { 0, 1, WIRE_CONNREQ_DATA_MAX - 1, WIRE_CONNREQ_DATA_MAX };
	uint8_t buf[WIRE_CONNREQ_MAX];

	for (int type = WIRE_CONNREQ_GREET; type <= WIRE_CONNREQ_REFUSE; type++) {
		for (size_t i = 0; i < (type == WIRE_CONNREQ_GREET ? 1 : 4); i++) {
			struct wire_connreq_pkt pkt = make(type, lens[i]), back;
			size_t len = wire_connreq_encode(&pkt, buf);

			cr_assert_leq(len, WIRE_CONNREQ_MAX);
			cr_assert_eq(wire_connreq_peek_len(buf), len);
			cr_assert_eq(wire_connreq_decode(buf, len, &back), 0);
			cr_assert_eq(back.type, pkt.type);
			cr_assert_eq(back.nonce, pkt.nonce);
			cr_assert_eq(back.inc, pkt.inc);
			cr_assert_eq(back.err, pkt.err);
			cr_assert_eq(back.addr.port, pkt.addr.port);
			cr_assert_eq(back.data_len, pkt.data_len);
			cr_assert_arr_eq(back.data, pkt.data, pkt.data_len);
		}
	}
}

Test(wire_connreq, the_longest_packet_is_the_limit)
{
	struct wire_connreq_pkt pkt = make(WIRE_CONNREQ_REQUEST, WIRE_CONNREQ_DATA_MAX);
	uint8_t buf[WIRE_CONNREQ_MAX];

	cr_assert_eq(wire_connreq_encode(&pkt, buf), WIRE_CONNREQ_MAX);
}

static int decode_with(enum wire_connreq_type type, size_t at, uint8_t value)
{
	struct wire_connreq_pkt pkt = make(type, 2);
	uint8_t buf[WIRE_CONNREQ_MAX];
	size_t len = wire_connreq_encode(&pkt, buf);

	buf[at] = value;
	return wire_connreq_decode(buf, len, &pkt);
}

Test(wire_connreq, inconsistent_packets_are_refused)
{
	cr_assert_eq(decode_with(WIRE_CONNREQ_REQUEST, 0, 'X'), -FI_EINVAL, "magic");
	cr_assert_eq(decode_with(WIRE_CONNREQ_REQUEST, 4, 0), -FI_EINVAL, "no version");
	cr_assert_eq(decode_with(WIRE_CONNREQ_REQUEST, 4, 2), -FI_ENOPROTOOPT, "another version");
	cr_assert_eq(decode_with(WIRE_CONNREQ_REQUEST, 5, 0), -FI_EINVAL, "no type");
	cr_assert_eq(decode_with(WIRE_CONNREQ_REQUEST, 5, 5), -FI_EINVAL, "unknown type");
	cr_assert_eq(decode_with(WIRE_CONNREQ_REQUEST, 6, 95), -FI_EINVAL, "length too large");
	cr_assert_eq(decode_with(WIRE_CONNREQ_ACCEPT, 16, 1), -FI_EINVAL,
		     "features where none are");
	cr_assert_eq(decode_with(WIRE_CONNREQ_REQUEST, 32, 5), -FI_EINVAL, "family");
	cr_assert_eq(decode_with(WIRE_CONNREQ_REQUEST, 33, 1), -FI_EINVAL, "reserved byte");
	cr_assert_eq(decode_with(WIRE_CONNREQ_REQUEST, 56, 1), -FI_EINVAL,
		     "less data than there is");
	cr_assert_eq(decode_with(WIRE_CONNREQ_REQUEST, 56, 3), -FI_EINVAL,
		     "more data than there is");
	cr_assert_eq(decode_with(WIRE_CONNREQ_REQUEST, 58, 1), -FI_EINVAL, "reserved word");
	cr_assert_eq(decode_with(WIRE_CONNREQ_REFUSE, 24, 0), -FI_EINVAL, "no error");
	cr_assert_eq(decode_with(WIRE_CONNREQ_REFUSE, 26, 1), -FI_EINVAL, "unknown error");
}

Test(wire_connreq, a_truncated_packet_is_refused)
{
	for (size_t i = 0; i < GOLDENS; i++) {
		struct wire_connreq_pkt pkt = make(goldens[i].type, goldens[i].data_len);
		uint8_t buf[WIRE_CONNREQ_MAX];
		size_t len = wire_connreq_encode(&pkt, buf);

		for (size_t cut = 0; cut < len; cut++) {
			struct wire_connreq_pkt back;

			cr_assert_eq(wire_connreq_decode(buf, cut, &back), -FI_EINVAL);
			buf[6] = (uint8_t)cut;
			buf[7] = 0;
			cr_assert_eq(wire_connreq_decode(buf, cut, &back), -FI_EINVAL);
			wire_connreq_encode(&pkt, buf);
		}
	}
}

Test(wire_connreq, random_bytes_are_refused_or_bounded)
{
	struct rng rng = { 7 };

	for (int round = 0; round < 20000; round++) {
		struct wire_connreq_pkt pkt = make(1 + (int)(rng_next(&rng) % 4), 9);
		uint8_t buf[WIRE_CONNREQ_MAX];
		size_t len;

		if (pkt.type == WIRE_CONNREQ_GREET)
			pkt.data_len = 0;
		len = wire_connreq_encode(&pkt, buf);
		for (int i = 0; i < 3; i++)
			buf[4 + rng_next(&rng) % (len - 4)] = (uint8_t)rng_next(&rng);
		cr_assert_leq(wire_connreq_peek_len(buf), WIRE_CONNREQ_MAX);
		if (!wire_connreq_decode(buf, len, &pkt))
			cr_assert_leq(pkt.data_len, WIRE_CONNREQ_DATA_MAX);
	}
}
