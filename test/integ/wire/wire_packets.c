/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Writes a capture with every packet that copyrpc sends over UDP, made by its own encoders, and
 * with packets of strangers (69-dissector of the suite).
 *
 * usage: wire_packets FILE      prints the numbers of the strangers' packets, and one of a repeated
 *
 * Two hosts: each has a socket for handshakes and one for sessions.
 */
#include <rdma/fi_errno.h>

#include "wire/wire_cm.h"
#include "wire/wire_erpc.h"
#include "wire/wire_erpc_msg.h"
#include "wire/wire_le.h"
#include "wire/wire_op.h"
#include "wire_body.h"
#include "wire_pcap.h"

#define NONCE 0x1112131415161718ull
#define INC_A 0x2122232425262728ull
#define INC_B 0x3132333435363738ull
#define MTU   600u
#define PART  (MTU - WIRE_ERPC_HDR_LEN)

static const struct wire_pcap_end cm_a = { 4, { 10, 0, 0, 1 }, 40001 };
static const struct wire_pcap_end cm_b = { 4, { 10, 0, 0, 2 }, 40002 };
static const struct wire_pcap_end cm_c = { 6, { 0xFD, [15] = 1 }, 40001 };
static const struct wire_pcap_end cm_d = { 6, { 0xFD, [15] = 2 }, 40002 };
static const struct wire_pcap_end data_a = { 4, { 10, 0, 0, 1 }, 40011 };
static const struct wire_pcap_end data_b = { 4, { 10, 0, 0, 2 }, 40012 };
static const struct wire_pcap_end stranger = { 4, { 10, 0, 0, 3 }, 40013 };

static FILE *file;
static uint32_t frame;

static void put_be16(uint8_t *at, uint32_t v)
{
	at[0] = (uint8_t)(v >> 8);
	at[1] = (uint8_t)v;
}

/** Writes the heads of Ethernet and IP. Returns their length. */
static uint32_t put_heads(uint8_t *at, const struct wire_pcap_end *src,
			  const struct wire_pcap_end *dst, uint32_t udp_len)
{
	uint8_t *ip = at + 14;

	put_be16(at + 12, src->family == 4 ? 0x0800 : 0x86DD);
	if (src->family == 4) {
		ip[0] = 0x45;
		put_be16(ip + 2, 20 + udp_len);
		ip[8] = 64;
		ip[9] = 17;
		memcpy(ip + 12, src->ip, 4);
		memcpy(ip + 16, dst->ip, 4);
		return 34;
	}
	ip[0] = 0x60;
	put_be16(ip + 4, udp_len);
	ip[6] = 17;
	ip[7] = 64;
	memcpy(ip + 8, src->ip, 16);
	memcpy(ip + 24, dst->ip, 16);
	return 54;
}

static void datagram(const struct wire_pcap_end *src, const struct wire_pcap_end *dst,
		     const void *data, uint32_t len)
{
	uint8_t packet[WIRE_PCAP_MAX] = { 0 };
	uint32_t at = put_heads(packet, src, dst, 8 + len);
	uint32_t head[4] = { frame / 1000, frame % 1000 * 1000, at + 8 + len, at + 8 + len };

	put_be16(packet + at, src->port);
	put_be16(packet + at + 2, dst->port);
	put_be16(packet + at + 4, 8 + len);
	memcpy(packet + at + 8, data, len);
	wire_pcap_check(fwrite(head, sizeof(head), 1, file) == 1 &&
				fwrite(packet, head[2], 1, file) == 1,
			"the capture cannot be written");
	frame++;
}

/* Handshake */

static void send_cm(struct wire_cm_pkt *pkt, enum wire_cm_type type, uint64_t nonce,
		    const struct wire_pcap_end *src, const struct wire_pcap_end *dst, bool from_a)
{
	uint8_t bytes[WIRE_CM_MAX];
	size_t len;

	pkt->type = type;
	pkt->nonce = nonce;
	pkt->src_inc = from_a ? INC_A : INC_B;
	pkt->dst_inc = type == WIRE_CM_REQ ? 0 : from_a ? INC_B : INC_A;
	len = wire_cm_encode(pkt, bytes);
	for (uint32_t i = 0; i < WIRE_CM_MAC_LEN; i++)
		bytes[len - WIRE_CM_MAC_LEN + i] = (uint8_t)(0xA0 + i);
	datagram(src, dst, bytes, (uint32_t)len);
}

static void send_bare(enum wire_cm_type type, uint64_t nonce, bool from_a)
{
	struct wire_cm_pkt pkt = { 0 };

	send_cm(&pkt, type, nonce, from_a ? &cm_a : &cm_b, from_a ? &cm_b : &cm_a, from_a);
}

/** Sets the description of a socket for sessions (udp_addr.h). */
static void describe(struct wire_cm_params *params, const struct wire_pcap_end *end)
{
	params->dev_len = 24;
	params->dev[0] = 1;
	params->dev[1] = end->family;
	wire_put16(params->dev + 2, end->port);
	wire_put32(params->dev + 4, MTU);
	memcpy(params->dev + 8, end->ip, 16);
}

static void set_session(struct wire_cm_params *params, uint16_t session, uint64_t token)
{
	const struct wire_erpc_params own = { .version = WIRE_ERPC_VERSION,
					      .session = session,
					      .credits = 0x70,
					      .token = token,
					      .mtu = MTU };

	params->engine_len = sizeof(own);
	memcpy(params->engine, &own, sizeof(own));
}

static void set_identity(struct wire_cm_params *params, int32_t rank, const char *host)
{
	params->has_identity = true;
	params->identity = (struct wire_cm_identity){ .rank = rank, .pid = 0x11223344 };
	memcpy(params->identity.host, host, strlen(host));
}

static void set_address(struct wire_cm_addr *addr, const struct wire_pcap_end *end)
{
	*addr = (struct wire_cm_addr){ .family = end->family, .port = end->port };
	memcpy(addr->ip, end->ip, sizeof(addr->ip));
	addr->scope = end->family == 6 ? 0x01020304 : 0;
}

static void hello(uint64_t nonce, const struct wire_cm_params *params,
		  const struct wire_pcap_end *src, const struct wire_pcap_end *dst)
{
	struct wire_cm_pkt pkt = { .features = 0x00000000F0E0D0C0ull };

	pkt.features |= params->has_identity ? WIRE_CM_FEATURE_IDENTITY : 0;
	for (uint8_t i = 0; i < WIRE_CM_COOKIE_LEN; i++)
		pkt.hello.cookie[i] = (uint8_t)(0x50 + i);
	set_address(&pkt.hello.addr, src);
	pkt.hello.params = *params;
	send_cm(&pkt, WIRE_CM_HELLO, nonce, src, dst, true);
}

static void welcome(uint64_t nonce, const struct wire_cm_params *params)
{
	struct wire_cm_pkt pkt = { 0 };

	pkt.welcome.params = *params;
	send_cm(&pkt, WIRE_CM_WELCOME, nonce, &cm_b, &cm_a, false);
}

static void request_and_ack(uint64_t nonce, const struct wire_pcap_end *src,
			    const struct wire_pcap_end *dst)
{
	struct wire_cm_pkt pkt = { .features = SPREAD & 0xFFFFFFFF };

	pkt.req.paths = 0xF;
	send_cm(&pkt, WIRE_CM_REQ, nonce, src, dst, true);
	/* Again, for a name with several addresses. */
	pkt.req.has_name = true;
	pkt.req.name = (struct wire_cm_addr){ .family = 4, .port = 4711, .ip = { 10, 1, 2, 3 } };
	send_cm(&pkt, WIRE_CM_REQ, nonce, src, dst, true);
	memset(&pkt.ack, 0xC1, sizeof(pkt.ack));
	memcpy(pkt.ack.name, "0123456789abcdef0123456789abcdef", sizeof(pkt.ack.name));
	pkt.ack.paths = WIRE_CM_PATH_UDP;
	send_cm(&pkt, WIRE_CM_ACK, nonce, dst, src, false);
}

static void send_handshakes(void)
{
	struct wire_cm_params params = { .path = WIRE_CM_PATH_UDP };
	struct wire_cm_pkt pkt = { 0 };

	request_and_ack(NONCE, &cm_a, &cm_b);
	set_session(&params, 0x1234, 0x8182838485868788ull);
	describe(&params, &data_a);
	set_identity(&params, 0x01020304, "node-7.example_a");
	hello(NONCE, &params, &cm_a, &cm_b);
	set_session(&params, 0x4321, 0x9192939495969798ull);
	describe(&params, &data_b);
	set_identity(&params, -1, "");
	welcome(NONCE, &params);
	send_bare(WIRE_CM_READY, NONCE, true);

	request_and_ack(NONCE + 1, &cm_c, &cm_d);
	params = (struct wire_cm_params){ .path = WIRE_CM_PATH_NIC,
					  .engine_len = 16,
					  .dev_len = 40 };
	wire_put32(params.engine, 4);
	wire_put32(params.engine + 4, 0);
	wire_put64(params.engine + 8, SPREAD);
	memset(params.dev, 0xDE, params.dev_len);
	hello(NONCE + 1, &params, &cm_c, &cm_d);
	welcome(NONCE + 1, &params);
	params = (struct wire_cm_params){ .path = WIRE_CM_PATH_UD, .dev_len = 40 };
	set_session(&params, 7, SPREAD);
	welcome(NONCE + 2, &params);

	pkt.nak.err = FI_EACCES;
	strcpy(pkt.nak.text, "another user");
	send_cm(&pkt, WIRE_CM_NAK, NONCE + 3, &cm_b, &cm_a, false);
	send_bare(WIRE_CM_CROSSED, NONCE + 3, false);
	send_bare(WIRE_CM_PING, NONCE, true);
	send_bare(WIRE_CM_PONG, NONCE, false);
}

/* Sessions */

/** Writes a packet. Returns its length. */
static uint32_t put_packet(uint8_t *at, struct wire_erpc_hdr h, bool from_a, const void *data,
			   uint32_t len)
{
	h.session = from_a ? 0x4321 : 0x1234;
	h.tag = from_a ? 0x9798 : 0x8788;
	wire_erpc_put(at, &h);
	memcpy(at + WIRE_ERPC_HDR_LEN, data, len);
	return WIRE_ERPC_HDR_LEN + len;
}

static void send_packet(const struct wire_erpc_hdr *h, bool from_a, const void *data, uint32_t len)
{
	uint8_t packet[WIRE_PCAP_MAX];

	len = put_packet(packet, *h, from_a, data, len);
	datagram(from_a ? &data_a : &data_b, from_a ? &data_b : &data_a, packet, len);
}

static void send_bare_packet(enum wire_erpc_kind kind, uint8_t type, uint64_t req_num,
			     uint16_t pkt_num, uint32_t size, bool from_a)
{
	const struct wire_erpc_hdr h = { .kind = kind,
					 .req_type = type,
					 .req_num = req_num,
					 .pkt_num = pkt_num,
					 .msg_size = size };

	send_packet(&h, from_a, "", 0);
}

/** Sends a request of A in as many packets as it takes, and a CR for each but the last. */
static void send_request(uint8_t type, uint64_t req_num, const struct wire_body *body)
{
	struct wire_erpc_hdr h = {
		.kind = WIRE_ERPC_REQ, .req_type = type, .req_num = req_num, .msg_size = body->len
	};
	uint32_t pkts = wire_erpc_pkts(body->len, PART);

	for (; h.pkt_num < pkts; h.pkt_num++) {
		send_packet(&h, true, body->bytes + h.pkt_num * PART,
			    wire_erpc_pkt_len(body->len, PART, h.pkt_num));
		if (h.pkt_num + 1u < pkts)
			send_bare_packet(WIRE_ERPC_CR, WIRE_ERPC_PROMPT, req_num, h.pkt_num, 0,
					 false);
	}
}

/** Sends a GET and its response of four parts, of which it requests two. */
static void send_get(uint64_t req_num)
{
	const struct wire_erpc_get get = { SPREAD, SPREAD + 1, 3 * PART + 10, 1 };
	struct wire_erpc_hdr h = { .kind = WIRE_ERPC_RESP,
				   .req_num = req_num,
				   .msg_size = get.len };
	uint8_t memory[PART];
	struct wire_body body = { .len = sizeof(get) };

	memset(memory, 0xEE, sizeof(memory));
	memcpy(body.bytes, &get, sizeof(get));
	send_request(WIRE_ERPC_GET, req_num, &body);
	send_bare_packet(WIRE_ERPC_RFR, WIRE_ERPC_GET, req_num, 2, 1, true);
	for (; h.pkt_num < 4; h.pkt_num++)
		send_packet(&h, false, memory, wire_erpc_pkt_len(get.len, PART, h.pkt_num));
	send_bare_packet(WIRE_ERPC_RESP, WIRE_ERPC_REFUSED, req_num + 8, 0, 0, false);
}

/** Sends three requests as GSO does: one datagram, of which only the last packet is shorter. */
static void send_run(uint64_t req_num)
{
	uint8_t run[WIRE_PCAP_MAX];
	struct wire_body long_one = { .len = 0 }, short_one = { .len = 0 };
	struct wire_erpc_hdr h = { .kind = WIRE_ERPC_REQ, .req_type = WIRE_ERPC_BATCH };
	uint32_t len = 0;

	wire_body_begin(&long_one, 0x31323334, 0);
	wire_body_add_msg(&long_one, WIRE_OP_MSG | WIRE_F_TAG, "the first of a run", 18);
	wire_body_begin(&short_one, 0x31323335, 0);
	for (uint32_t i = 0; i < 3; i++) {
		const struct wire_body *body = i < 2 ? &long_one : &short_one;

		h.req_num = req_num + i;
		h.msg_size = body->len;
		len += put_packet(run + len, h, true, body->bytes, body->len);
	}
	datagram(&data_a, &data_b, run, len);
}

static void send_session(void)
{
	const uint64_t first = 0xABCDEF01230ull; /* slot 0 */
	struct wire_body body = { .len = 0 };

	wire_body_fill_messages(&body);
	send_request(WIRE_ERPC_BATCH, first, &body);
	send_bare_packet(WIRE_ERPC_RESP, WIRE_ERPC_LATE, first, 0, 0, false);
	wire_body_fill_calls(&body);
	send_request(WIRE_ERPC_BATCH, first + 1, &body);
	wire_body_fill_replies(&body);
	send_packet(&(struct wire_erpc_hdr){ .kind = WIRE_ERPC_RESP,
					     .req_type = WIRE_ERPC_AWAY,
					     .req_num = first + 1,
					     .pkt_num = 1,
					     .msg_size = body.len },
		    false, body.bytes, body.len);
	wire_body_begin(&body, 0, 0);
	wire_body_add_reply(&body, 0x7777, "of a call before the capture", 28);
	send_request(WIRE_ERPC_REPLIES, first + 7, &body);
	send_bare_packet(WIRE_ERPC_RESP, WIRE_ERPC_PROMPT, first + 7, 0, 0, false);
	send_get(first + 5);
	send_bare_packet(WIRE_ERPC_CR, WIRE_ERPC_GAP, first + 1, 0x2AAA, 0, false);
	send_bare_packet(WIRE_ERPC_CR, WIRE_ERPC_KEPT, first + 1, 1, 0x020304, false);
	send_run(first + 8);
}

/* Strangers */

static void send_foreign(const struct wire_pcap_end *src, const struct wire_pcap_end *dst,
			 const void *data, uint32_t len)
{
	datagram(src, dst, data, len);
	printf("foreign %u\n", frame);
}

static void send_strangers(void)
{
	static const uint8_t dns[] = { 0x12, 0x34, 1, 0,   0, 1, 0, 0, 0, 0,
				       0,    0,    1, 'a', 0, 0, 1, 0, 1 };
	struct wire_body body = { .len = 0 };
	uint8_t packet[WIRE_PCAP_MAX];
	uint32_t len;

	wire_body_begin(&body, 1, 1);
	len = put_packet(
		packet, (struct wire_erpc_hdr){ .req_type = WIRE_ERPC_BATCH, .msg_size = body.len },
		true, body.bytes, body.len);
	send_foreign(&stranger, &data_b, packet, len);
	send_foreign(&data_a, &stranger, packet, len);
	send_foreign(&cm_a, &data_b, packet, len);
	send_foreign(&stranger, &cm_a, "CRCM is no packet yet, only its magic", 37);
	send_foreign(&stranger, &(struct wire_pcap_end){ 4, { 10, 0, 0, 2 }, 53 }, dns,
		     sizeof(dns));
	for (uint32_t i = 0; i < 500; i++) {
		for (uint32_t j = 0; j < 64; j++)
			packet[j] = (uint8_t)((i * 64 + j) * 2654435761u >> 13);
		packet[13] = 0xB0;
		send_foreign(&stranger, &data_b, packet, 17 + i % 48);
	}
}

int main(int argc, char **argv)
{
	struct wire_body body = { .len = 0 };

	file = argc == 2 ? fopen(argv[1], "wb") : NULL;
	wire_pcap_check(file, "usage: wire_packets FILE");
	wire_pcap_begin(file);
	send_handshakes();
	send_session();
	wire_body_begin(&body, 0x41424344, 0);
	send_request(WIRE_ERPC_BATCH, 0xABCDEF01234ull, &body);
	send_request(WIRE_ERPC_BATCH, 0xABCDEF01234ull, &body);
	printf("repeated %u\n", frame);
	send_strangers();
	send_bare(WIRE_CM_BROKEN, NONCE, false);
	send_bare(WIRE_CM_BYE, NONCE, true);
	wire_pcap_check(!fclose(file), "the capture cannot be written");
	return 0;
}
