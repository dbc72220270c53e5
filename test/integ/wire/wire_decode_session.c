/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Packets of sessions: see wire_decode_session.h. */
#include "wire_decode_session.h"

#include <search.h>
#include <stddef.h>

#include "wire/wire_erpc.h"
#include "wire/wire_erpc_msg.h"
#include "wire/wire_le.h"
#include "wire/wire_op.h"
#include "wire_decode_msg.h"
#include "wire_show.h"

/** Request of a session, until the end of the capture. */
struct request {
	uint64_t req_num;
	uint32_t link;
	uint32_t client;
	uint8_t type;
	bool whole;
	uint8_t *body;
	uint64_t parts[4]; /* a bit for each that has arrived */
};

/** Call that a frame has made, until the end of the capture. */
struct call {
	uint64_t id;
	uint32_t link;
	uint32_t caller;
	uint32_t op;
};

/** Session, as far as its handshake has been seen. */
struct link {
	uint64_t nonce;
	struct wire_decode_end ends[2];
};

#define LINKS_MAX 4096u

static struct link links[LINKS_MAX];
static uint32_t link_cnt;
static void *requests, *calls;

void wire_decode_session_add(uint64_t nonce, uint32_t side, const struct wire_decode_end *end)
{
	struct link *link = NULL;

	for (uint32_t i = 0; i < link_cnt && !link; i++)
		link = links[i].nonce == nonce ? &links[i] : NULL;
	if (!link) {
		wire_pcap_check(link_cnt < LINKS_MAX, "too many sessions");
		link = &links[link_cnt++];
		link->nonce = nonce;
	}
	if (!link->ends[side].known)
		link->ends[side] = *end;
}

static int call_compare(const void *a, const void *b)
{
	return memcmp(a, b, offsetof(struct call, op));
}

static int request_compare(const void *a, const void *b)
{
	return memcmp(a, b, offsetof(struct request, type));
}

static struct call *find_call(uint32_t link, uint32_t caller, uint32_t id)
{
	struct call *call = calloc(1, sizeof(*call)), **found;

	*call = (struct call){ .id = id, .link = link, .caller = caller };
	found = tsearch(call, &calls, call_compare);
	if (*found != call)
		free(call);
	return *found;
}

static struct request *find_request(uint32_t link, uint32_t client, uint64_t req_num)
{
	struct request *request = calloc(1, sizeof(*request)), **found;

	*request = (struct request){ .req_num = req_num, .link = link, .client = client };
	found = tsearch(request, &requests, request_compare);
	if (*found != request)
		free(request);
	return *found;
}

static void decode_frames(uint32_t link, uint32_t sender, const uint8_t *data, uint32_t len)
{
	const uint8_t *at = data + sizeof(struct wire_erpc_batch), *end = data + len;
	struct wire_erpc_batch batch;
	struct wire_erpc_frame f;
	struct call *call;

	memcpy(&batch, data, sizeof(batch));
	SHOW("batch", &batch, seq);
	SHOW("batch", &batch, ack);
	while (wire_erpc_frame_next(&f, &at, end)) {
		SHOW("frame", &f, len);
		SHOW("frame", &f, kind);
		SHOW("frame", &f, word);
		if (f.kind == WIRE_ERPC_FRAME_MSG) {
			wire_decode_operation(f.word, false, f.data);
		} else if (f.kind == WIRE_ERPC_FRAME_CALL) {
			SHOW("call", &f, resp_max);
			call = find_call(link, sender, f.word);
			call->op = wire_get32(f.data) & WIRE_OP_MASK;
			wire_decode_operation(wire_get32(f.data), true, f.data + 4);
		} else {
			wire_decode_reply(find_call(link, !sender, f.word)->op, f.data, f.len);
		}
	}
	wire_pcap_check(at == end, "a batch with a malformed frame");
}

static void decode_request(uint32_t link, uint32_t sender, const struct request *request,
			   const uint8_t *data, uint32_t len)
{
	struct wire_erpc_get get;

	if (request->type != WIRE_ERPC_GET) {
		decode_frames(link, sender, data, len);
		return;
	}
	memcpy(&get, data, sizeof(get));
	SHOW("get", &get, addr);
	SHOW("get", &get, key);
	SHOW("get", &get, len);
	SHOW("get", &get, more);
}

/** Stores a part of a request, and decodes the request with its last part. */
static void decode_part(uint32_t link, uint32_t sender, struct request *request,
			const struct wire_erpc_hdr *h, const uint8_t *data, uint32_t len,
			uint32_t payload)
{
	uint32_t pkts = wire_erpc_pkts(h->msg_size, payload), cnt = 0;

	wire_pcap_check(h->pkt_num < pkts && pkts <= 256, "a part beyond its request");
	if (request->whole)
		return;
	if (!request->body)
		request->body = malloc(h->msg_size);
	memcpy(request->body + (size_t)h->pkt_num * payload, data, len);
	request->parts[h->pkt_num / 64] |= 1ull << h->pkt_num % 64;
	for (uint32_t i = 0; i < 4; i++)
		cnt += (uint32_t)__builtin_popcountll(request->parts[i]);
	if (cnt < pkts)
		return;
	request->whole = true;
	decode_request(link, sender, request, request->body, h->msg_size);
}

static void decode_packet(uint32_t at, uint32_t sender, const uint8_t *packet, uint32_t len,
			  uint32_t payload)
{
	const uint8_t *data = packet + WIRE_ERPC_HDR_LEN;
	const struct link *link = &links[at];
	struct request *request;
	struct wire_erpc_hdr h;
	bool from_client;

	wire_pcap_check(wire_erpc_get(&h, packet, len), "a packet of a session without header");
	wire_pcap_check(h.session == link->ends[!sender].session &&
				h.tag == link->ends[!sender].tag,
			"a packet of another session");
	SHOW("header", &h, req_type);
	SHOW("header", &h, msg_size);
	SHOW("header", &h, session);
	SHOW("header", &h, kind);
	SHOW("header", &h, pkt_num);
	SHOW("header", &h, req_num);
	wire_show("header.magic", WIRE_ERPC_MAGIC);
	SHOW("header", &h, tag);
	len -= WIRE_ERPC_HDR_LEN;
	from_client = h.kind == WIRE_ERPC_REQ || h.kind == WIRE_ERPC_RFR;
	request = find_request(at, from_client ? sender : !sender, h.req_num);
	if (h.kind == WIRE_ERPC_REQ) {
		request->type = h.req_type;
		if (len == h.msg_size)
			decode_request(at, sender, request, data, len);
		else
			decode_part(at, sender, request, &h, data, len, payload);
	} else if (h.kind == WIRE_ERPC_RESP && request->type == WIRE_ERPC_BATCH && len) {
		decode_frames(at, sender, data, len);
	}
}

/** Returns the length of the first of the packets that GSO sent together. */
static uint32_t packet_len(const uint8_t *packet, uint32_t len, uint32_t payload)
{
	struct wire_erpc_hdr h;
	uint32_t own = 0;

	if (!wire_erpc_get(&h, packet, len))
		return len;
	if (h.kind == WIRE_ERPC_REQ || h.kind == WIRE_ERPC_RESP)
		own = h.msg_size < payload ? h.msg_size : payload;
	return own + WIRE_ERPC_HDR_LEN < len ? own + WIRE_ERPC_HDR_LEN : len;
}

/** Returns the session between two sockets, or LINKS_MAX. */
static uint32_t find_link(const struct wire_pcap_udp *u, uint32_t *sender)
{
	uint16_t session = wire_get16(u->data + 4), tag = wire_get16(u->data + 14);
	const struct wire_decode_end *from, *to;

	for (uint32_t i = link_cnt; i-- > 0;) {
		for (*sender = 0; *sender < 2; ++*sender) {
			from = &links[i].ends[*sender];
			to = &links[i].ends[!*sender];
			if (from->known && to->known && to->session == session && to->tag == tag &&
			    wire_pcap_end_same(&from->at, &u->src) &&
			    wire_pcap_end_same(&to->at, &u->dst))
				return i;
		}
	}
	return LINKS_MAX;
}

void wire_decode_session(const struct wire_pcap_udp *u)
{
	uint32_t sender = 0, link, mtu, payload, len;

	if (u->captured < WIRE_ERPC_HDR_LEN || u->captured < u->len)
		return;
	link = find_link(u, &sender);
	if (link == LINKS_MAX)
		return;
	mtu = links[link].ends[0].mtu;
	if (mtu > links[link].ends[1].mtu)
		mtu = links[link].ends[1].mtu;
	payload = mtu - WIRE_ERPC_HDR_LEN;
	len = packet_len(u->data, u->len, payload);
	for (uint32_t at = 0; at < u->len; at += len)
		decode_packet(link, sender, u->data + at, u->len - at < len ? u->len - at : len,
			      payload);
}
