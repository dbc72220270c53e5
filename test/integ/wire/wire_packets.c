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

#include "wire/wire_atomic.h"
#include "wire/wire_cm.h"
#include "wire/wire_coll.h"
#include "wire/wire_erpc.h"
#include "wire/wire_erpc_msg.h"
#include "wire/wire_le.h"
#include "wire/wire_op.h"
#include "wire/wire_rma.h"
#include "wire_pcap.h"

#define NONCE  0x1112131415161718ull
#define INC_A  0x2122232425262728ull
#define INC_B  0x3132333435363738ull
#define MTU    600u
#define PART   (MTU - WIRE_ERPC_HDR_LEN)
#define BODY   4096u
#define SPREAD 0x0123456789ABCDEFull /* a number whose bytes differ */

static const struct wire_pcap_end cm_a = { 4, { 10, 0, 0, 1 }, 40001 };
static const struct wire_pcap_end cm_b = { 4, { 10, 0, 0, 2 }, 40002 };
static const struct wire_pcap_end cm_c = { 6, { 0xFD, [15] = 1 }, 40001 };
static const struct wire_pcap_end cm_d = { 6, { 0xFD, [15] = 2 }, 40002 };
static const struct wire_pcap_end data_a = { 4, { 10, 0, 0, 1 }, 40011 };
static const struct wire_pcap_end data_b = { 4, { 10, 0, 0, 2 }, 40012 };
static const struct wire_pcap_end stranger = { 4, { 10, 0, 0, 3 }, 40013 };

static FILE *file;
static uint32_t frame;

/** Content of a request or response. */
struct body {
	uint8_t bytes[BODY];
	uint32_t len;
};

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

/* Messages and calls */

static void begin_batch(struct body *body, uint32_t seq, uint32_t ack)
{
	const struct wire_erpc_batch head = { .seq = seq, .ack = ack };

	memcpy(body->bytes, &head, sizeof(head));
	body->len = sizeof(head);
}

static void add_frame(struct body *body, enum wire_erpc_frame_kind kind, uint32_t word,
		      uint32_t resp_max, const void *data, uint32_t len)
{
	uint8_t *at = wire_erpc_frame_put(body->bytes + body->len, kind, word, resp_max, len);

	memcpy(at, data, len);
	body->len += wire_erpc_frame_span(kind, len);
	wire_pcap_check(body->len < BODY, "a body that is too long");
}

/** Adds a one-way message: tag and data by the flags of `word`, then `len` bytes. */
static void add_msg(struct body *body, uint32_t word, const void *data, uint32_t len)
{
	uint8_t bytes[512];
	uint32_t ext = wire_ext_len(word);

	for (uint32_t i = 0; i < ext; i++)
		bytes[i] = (uint8_t)(0x10 + i);
	memcpy(bytes + ext, data, len);
	add_frame(body, WIRE_ERPC_FRAME_MSG, word, 0, bytes, ext + len);
}

static void add_call(struct body *body, uint32_t id, uint32_t word, const void *data, uint32_t len)
{
	uint8_t bytes[512];
	uint32_t ext = (word & WIRE_OP_MASK) == WIRE_OP_RPC ? 0 : wire_ext_len(word);

	wire_put32(bytes, word);
	for (uint32_t i = 0; i < ext; i++)
		bytes[4 + i] = (uint8_t)(0x20 + i);
	memcpy(bytes + 4 + ext, data, len);
	add_frame(body, WIRE_ERPC_FRAME_CALL, id, 0x1000 + id, bytes, 4 + ext + len);
}

static void add_reply(struct body *body, uint32_t id, const void *data, uint32_t len)
{
	add_frame(body, WIRE_ERPC_FRAME_REPLY, id, 0, data, len);
}

static void fill_messages(struct body *body)
{
	const struct wire_part part = { .total_len = SPREAD, .send_id = 0x81828384 };
	const struct wire_cont cont = { .offset = SPREAD,
					.id = 0x81828384,
					.kind = WIRE_CONT_PULLED };
	const struct wire_rma_return end = { .exposure_id = 0x71727374, .status = FI_EIO };
	const struct wire_done done = { 0xB1B2B3B4, WIRE_STATUS_PULL, 0xC1C2C3C4, 0 };

	begin_batch(body, 0x01020304, 0x11121314);
	add_msg(body, WIRE_OP_MSG, "plain", 5);
	add_msg(body, WIRE_OP_MSG | WIRE_F_TAG, "tagged", 6);
	add_msg(body, WIRE_OP_MSG | WIRE_F_TAG | WIRE_F_DATA32, "with data", 9);
	add_msg(body, WIRE_OP_MSG | WIRE_F_DATA64, "", 0);
	add_msg(body, WIRE_OP_PART | WIRE_F_TAG, &part, sizeof(part));
	add_msg(body, WIRE_OP_CONT, &cont, sizeof(cont));
	add_msg(body, WIRE_OP_EXPOSE, &end, sizeof(end));
	add_msg(body, WIRE_OP_DONE, &done, sizeof(done));
}

/** Call ids of fill_calls: the operation, and more where an operation has several responses. */
enum call {
	CALL_REFUSED = 20, /* EXPOSE without an exposure */
	CALL_REVOKE = 21,
};

static void fill_calls(struct body *body)
{
	const struct wire_cont cont = { .offset = SPREAD, .id = 0x81828384 };
	const struct wire_rndv rndv = { SPREAD, SPREAD + 1, SPREAD + 2, 0x91929394, 0 };
	const uint8_t sync[] = { 0xA4, 0xA3, 0xA2, 0xA1, 'm', 'a', 't', 'c', 'h' };
	const struct wire_rma rma = { SPREAD, SPREAD + 1, SPREAD + 2, SPREAD + 3, SPREAD + 4 };
	const struct wire_rma_source source = { SPREAD + 5, SPREAD + 6 };
	const struct wire_atomic atomic = { SPREAD, SPREAD + 1, 0x01020304, 0x11121314, 0x2122,
					    2,      8,          5,          { 0 } };
	const struct wire_coll coll = { SPREAD,     0x01020304, 0x11121314, SPREAD + 1,
					SPREAD + 2, 3,          FI_EIO };
	const struct wire_lease_call lease = { .key = SPREAD },
				     revoke = { SPREAD, WIRE_LEASE_REVOKE, 0 };
	uint8_t fetch[sizeof(rma) + sizeof(source)];

	memcpy(fetch, &rma, sizeof(rma));
	memcpy(fetch + sizeof(rma), &source, sizeof(source));
	begin_batch(body, 0x01020305, 0x11121315);
	add_call(body, WIRE_OP_CONT, WIRE_OP_CONT, &cont, sizeof(cont));
	add_call(body, WIRE_OP_RNDV, WIRE_OP_RNDV | WIRE_F_TAG, &rndv, sizeof(rndv));
	add_call(body, WIRE_OP_DLVR, WIRE_OP_DLVR | WIRE_F_TAG | WIRE_F_DATA64, "confirm", 7);
	add_call(body, WIRE_OP_SYNC, WIRE_OP_SYNC | WIRE_F_TAG, sync, sizeof(sync));
	add_call(body, WIRE_OP_WRITE, WIRE_OP_WRITE | WIRE_F_DATA32, &rma, sizeof(rma));
	add_call(body, WIRE_OP_READ, WIRE_OP_READ, &rma, sizeof(rma));
	add_call(body, WIRE_OP_FETCH, WIRE_OP_FETCH, fetch, sizeof(fetch));
	add_call(body, WIRE_OP_EXPOSE, WIRE_OP_EXPOSE, &rma, sizeof(rma));
	add_call(body, CALL_REFUSED, WIRE_OP_EXPOSE, &rma, sizeof(rma));
	add_call(body, WIRE_OP_ATOMIC, WIRE_OP_ATOMIC, &atomic, sizeof(atomic));
	add_call(body, WIRE_OP_COLL, WIRE_OP_COLL, &coll, sizeof(coll));
	add_call(body, WIRE_OP_RPC, wire_rpc_word(0x123456), "a request", 9);
	add_call(body, WIRE_OP_LEASE, WIRE_OP_LEASE, &lease, sizeof(lease));
	add_call(body, CALL_REVOKE, WIRE_OP_LEASE, &revoke, sizeof(revoke));
}

static void fill_replies(struct body *body)
{
	const struct wire_status status = { WIRE_STATUS_PULL, 0x01020304, SPREAD };
	const struct wire_rma_reply done = { .offset = SPREAD };
	const struct wire_rma_reply refused = { .status = WIRE_RMA_REFUSED, .offset = SPREAD };
	const struct wire_rma_exposure exposure = { SPREAD, SPREAD + 1, 0x71727374, 0 };
	const struct wire_atomic_reply atomic = { 0, 0x01020304 };
	const struct wire_coll_reply coll = { .off = SPREAD };
	const struct wire_lease lease = { 0, 3, SPREAD, SPREAD + 1, SPREAD + 2, SPREAD + 3 };
	struct wire_rma_reply exposed = { .status = WIRE_RMA_EXPOSED, .offset = SPREAD };
	uint8_t bytes[sizeof(exposed) + sizeof(exposure)];

	memcpy(bytes, &exposed, sizeof(exposed));
	memcpy(bytes + sizeof(exposed), &exposure, sizeof(exposure));
	begin_batch(body, 0, 0);
	add_reply(body, WIRE_OP_CONT, &status, sizeof(status));
	add_reply(body, WIRE_OP_RNDV, &status, sizeof(status));
	add_reply(body, WIRE_OP_DLVR, &status, sizeof(status));
	add_reply(body, WIRE_OP_SYNC, &status, sizeof(status));
	add_reply(body, WIRE_OP_WRITE, &done, sizeof(done));
	add_reply(body, WIRE_OP_READ, &done, sizeof(done));
	add_reply(body, WIRE_OP_FETCH, &refused, sizeof(refused));
	add_reply(body, WIRE_OP_EXPOSE, bytes, sizeof(bytes));
	add_reply(body, CALL_REFUSED, &refused, sizeof(refused));
	add_reply(body, WIRE_OP_ATOMIC, &atomic, sizeof(atomic));
	add_reply(body, WIRE_OP_COLL, &coll, sizeof(coll));
	add_reply(body, WIRE_OP_RPC, "a response", 10);
	add_reply(body, WIRE_OP_LEASE, &lease, sizeof(lease));
	add_reply(body, CALL_REVOKE, "", 0);
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
static void send_request(uint8_t type, uint64_t req_num, const struct body *body)
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

/** Sends a GET and its response of three parts. */
static void send_get(uint64_t req_num)
{
	const struct wire_erpc_get get = { SPREAD, SPREAD + 1, 2 * PART + 10, 0 };
	struct wire_erpc_hdr h = { .kind = WIRE_ERPC_RESP,
				   .req_num = req_num,
				   .msg_size = get.len };
	uint8_t memory[PART];
	struct body body = { .len = sizeof(get) };

	memset(memory, 0xEE, sizeof(memory));
	memcpy(body.bytes, &get, sizeof(get));
	send_request(WIRE_ERPC_GET, req_num, &body);
	send_bare_packet(WIRE_ERPC_RFR, WIRE_ERPC_GET, req_num, 1, 0, true);
	send_bare_packet(WIRE_ERPC_RFR, WIRE_ERPC_GET, req_num, 2, 0, true);
	for (; h.pkt_num < 3; h.pkt_num++)
		send_packet(&h, false, memory, wire_erpc_pkt_len(get.len, PART, h.pkt_num));
	send_bare_packet(WIRE_ERPC_RESP, WIRE_ERPC_REFUSED, req_num + 8, 0, 0, false);
}

/** Sends three requests as GSO does: one datagram, of which only the last packet is shorter. */
static void send_run(uint64_t req_num)
{
	uint8_t run[WIRE_PCAP_MAX];
	struct body long_one = { .len = 0 }, short_one = { .len = 0 };
	struct wire_erpc_hdr h = { .kind = WIRE_ERPC_REQ, .req_type = WIRE_ERPC_BATCH };
	uint32_t len = 0;

	begin_batch(&long_one, 0x31323334, 0);
	add_msg(&long_one, WIRE_OP_MSG | WIRE_F_TAG, "the first of a run", 18);
	begin_batch(&short_one, 0x31323335, 0);
	for (uint32_t i = 0; i < 3; i++) {
		const struct body *body = i < 2 ? &long_one : &short_one;

		h.req_num = req_num + i;
		h.msg_size = body->len;
		len += put_packet(run + len, h, true, body->bytes, body->len);
	}
	datagram(&data_a, &data_b, run, len);
}

static void send_session(void)
{
	const uint64_t first = 0xABCDEF01230ull; /* slot 0 */
	struct body body = { .len = 0 };

	fill_messages(&body);
	send_request(WIRE_ERPC_BATCH, first, &body);
	send_bare_packet(WIRE_ERPC_RESP, WIRE_ERPC_LATE, first, 0, 0, false);
	fill_calls(&body);
	send_request(WIRE_ERPC_BATCH, first + 1, &body);
	fill_replies(&body);
	send_packet(&(struct wire_erpc_hdr){ .kind = WIRE_ERPC_RESP,
					     .req_type = WIRE_ERPC_AWAY,
					     .req_num = first + 1,
					     .pkt_num = 1,
					     .msg_size = body.len },
		    false, body.bytes, body.len);
	begin_batch(&body, 0, 0);
	add_reply(&body, 0x7777, "of a call before the capture", 28);
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
	struct body body = { .len = 0 };
	uint8_t packet[WIRE_PCAP_MAX];
	uint32_t len;

	begin_batch(&body, 1, 1);
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
	struct body body = { .len = 0 };

	file = argc == 2 ? fopen(argv[1], "wb") : NULL;
	wire_pcap_check(file, "usage: wire_packets FILE");
	wire_pcap_begin(file);
	send_handshakes();
	send_session();
	begin_batch(&body, 0x41424344, 0);
	send_request(WIRE_ERPC_BATCH, 0xABCDEF01234ull, &body);
	send_request(WIRE_ERPC_BATCH, 0xABCDEF01234ull, &body);
	printf("repeated %u\n", frame);
	send_strangers();
	send_bare(WIRE_CM_BROKEN, NONCE, false);
	send_bare(WIRE_CM_BYE, NONCE, true);
	wire_pcap_check(!fclose(file), "the capture cannot be written");
	return 0;
}
