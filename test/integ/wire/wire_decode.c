/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Prints what copyrpc's own decoders find in a capture, for comparison with the Wireshark
 * dissector (69-dissector of the suite).
 *
 * usage: wire_decode FILE       a line for each field: frame, name, value in hexadecimal
 *        wire_decode -v FILE    a line for each handshake packet: frame, "good", "version" or "bad"
 *
 * Numbers are printed as "0x1f", bytes as ":0a1b". A field has the name that the dissector gives
 * it. Sessions are known from the handshakes of the same capture.
 */
#include <rdma/fi_errno.h>
#include <search.h>
#include <stddef.h>

#include "wire/wire_atomic.h"
#include "wire/wire_cm.h"
#include "wire/wire_coll.h"
#include "wire/wire_erpc.h"
#include "wire/wire_erpc_msg.h"
#include "wire/wire_le.h"
#include "wire/wire_op.h"
#include "wire/wire_rma.h"
#include "wire_pcap.h"

/** One end of a session, as its handshake describes it. */
struct end {
	bool known;
	struct wire_pcap_end at;
	uint16_t session;
	uint16_t tag;
	uint32_t mtu;
};

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

struct call {
	uint64_t id;
	uint32_t link;
	uint32_t caller;
	uint32_t op;
};

struct link {
	uint64_t nonce;
	struct end ends[2];
};

#define LINKS_MAX 4096u

static struct link links[LINKS_MAX];
static uint32_t link_cnt, frame;
static void *requests, *calls;

static void show(const char *name, uint64_t value)
{
	printf("%u copyrpc.%s 0x%llx\n", frame, name, (unsigned long long)value);
}

static void show_bytes(const char *name, const void *bytes, size_t len)
{
	const uint8_t *at = bytes;

	printf("%u copyrpc.%s :", frame, name);
	for (size_t i = 0; i < len; i++)
		printf("%02x", at[i]);
	printf("\n");
}

#define SHOW(group, object, field) show(group "." #field, (object)->field)
#define SHOW_BYTES(group, object, field)                                                           \
	show_bytes(group "." #field, (object)->field, sizeof((object)->field))

/* Handshake */

static void decode_identity(const struct wire_cm_params *params)
{
	const struct wire_cm_identity *identity = &params->identity;
	size_t host_len = strlen(identity->host);

	show("parameters.identity_len", params->has_identity ? 8 + host_len : 0);
	if (!params->has_identity)
		return;
	show("identity.rank", (uint32_t)identity->rank);
	show("identity.pid", identity->pid);
	if (host_len)
		show_bytes("identity.host", identity->host, host_len);
}

static void decode_params(const struct wire_cm_pkt *pkt, const struct wire_cm_params *params)
{
	struct wire_erpc_params session;
	bool is_session = params->path != WIRE_CM_PATH_SHM && params->path != WIRE_CM_PATH_NIC;
	const uint8_t *d = params->dev;
	struct link *link = NULL;
	uint32_t side = pkt->type == WIRE_CM_WELCOME;
	bool usable = false;

	show("parameters.engine_len", params->engine_len);
	show("parameters.device_len", params->dev_len);
	show("parameters.descriptors", params->fd_cnt);
	show("parameters.path", params->path);
	decode_identity(params);
	if (!is_session && params->engine_len == 16) {
		show("ring_parameters.version", wire_get32(params->engine));
		show("ring_parameters.features", wire_get32(params->engine + 4));
		show("ring_parameters.grant_max", wire_get64(params->engine + 8));
	} else if (is_session && params->engine_len == sizeof(session)) {
		memcpy(&session, params->engine, sizeof(session));
		SHOW("session_parameters", &session, version);
		SHOW("session_parameters", &session, session);
		SHOW("session_parameters", &session, credits);
		SHOW("session_parameters", &session, token);
		SHOW("session_parameters", &session, mtu);
		SHOW("session_parameters", &session, zero);
		usable = session.version == WIRE_ERPC_VERSION && session.credits;
	}
	if (!usable || params->path != WIRE_CM_PATH_UDP || params->dev_len != 24)
		return;
	show("udp_endpoint.version", d[0]);
	show("udp_endpoint.family", d[1]);
	show("udp_endpoint.port", wire_get16(d + 2));
	show("udp_endpoint.mtu", wire_get32(d + 4));
	show_bytes("udp_endpoint.ip", d + 8, 16);

	for (uint32_t i = 0; i < link_cnt && !link; i++)
		link = links[i].nonce == pkt->nonce ? &links[i] : NULL;
	if (!link) {
		wire_pcap_check(link_cnt < LINKS_MAX, "too many sessions");
		link = &links[link_cnt++];
		link->nonce = pkt->nonce;
	}
	if (link->ends[side].known)
		return;
	link->ends[side] = (struct end){ .known = true,
					 .at = { .family = d[1], .port = wire_get16(d + 2) },
					 .session = session.session,
					 .tag = (uint16_t)session.token,
					 .mtu = session.mtu };
	memcpy(link->ends[side].at.ip, d + 8, d[1] == 4 ? 4 : 16);
}

static void decode_address(const struct wire_cm_addr *addr)
{
	SHOW("address", addr, family);
	show("address.zero", 0);
	SHOW("address", addr, port);
	SHOW("address", addr, scope);
	SHOW_BYTES("address", addr, ip);
}

static void decode_body(const struct wire_cm_pkt *pkt)
{
	static const uint8_t zero[100];
	uint8_t name[WIRE_CM_ADDR_LEN] = { 0 };

	switch (pkt->type) {
	case WIRE_CM_REQ:
		SHOW("req", &pkt->req, paths);
		if (pkt->req.has_name)
			wire_cm_addr_encode(&pkt->req.name, name);
		show_bytes("req.name", name, sizeof(name));
		show_bytes("req.zero", zero, sizeof(zero));
		if (pkt->req.has_name)
			decode_address(&pkt->req.name);
		break;
	case WIRE_CM_ACK:
		SHOW_BYTES("ack", &pkt->ack, cookie);
		SHOW_BYTES("ack", &pkt->ack, name);
		SHOW("ack", &pkt->ack, paths);
		show("ack.zero", 0);
		break;
	case WIRE_CM_NAK:
		show("nak.error", pkt->nak.err);
		show("nak.text_len", strlen(pkt->nak.text));
		show("nak.zero", 0);
		if (pkt->nak.text[0])
			show_bytes("nak.text", pkt->nak.text, strlen(pkt->nak.text));
		break;
	case WIRE_CM_HELLO:
		SHOW_BYTES("hello", &pkt->hello, cookie);
		decode_address(&pkt->hello.addr);
		decode_params(pkt, &pkt->hello.params);
		break;
	case WIRE_CM_WELCOME: decode_params(pkt, &pkt->welcome.params); break;
	default: break;
	}
}

static void decode_handshake(const struct wire_pcap_udp *u)
{
	struct wire_cm_pkt pkt;

	if (wire_cm_decode(u->data, u->captured, &pkt))
		return;
	show("handshake.magic", WIRE_CM_MAGIC);
	show("handshake.version", u->data[4]);
	SHOW("handshake", &pkt, type);
	show("handshake.len", u->len);
	SHOW("handshake", &pkt, nonce);
	SHOW("handshake", &pkt, src_inc);
	SHOW("handshake", &pkt, dst_inc);
	SHOW("handshake", &pkt, features);
	show_bytes("handshake.mac", u->data + u->len - WIRE_CM_MAC_LEN, WIRE_CM_MAC_LEN);
	decode_body(&pkt);
}

/* Messages and calls */

static void decode_access(const uint8_t *at)
{
	struct wire_rma rma;

	memcpy(&rma, at, sizeof(rma));
	SHOW("access", &rma, addr);
	SHOW("access", &rma, key);
	SHOW("access", &rma, len);
	SHOW("access", &rma, offset);
	SHOW("access", &rma, total);
}

static void decode_atomic(const uint8_t *at)
{
	struct wire_atomic atomic;

	memcpy(&atomic, at, sizeof(atomic));
	SHOW("atomic", &atomic, addr);
	SHOW("atomic", &atomic, key);
	SHOW("atomic", &atomic, first);
	SHOW("atomic", &atomic, total);
	SHOW("atomic", &atomic, count);
	SHOW("atomic", &atomic, kind);
	SHOW("atomic", &atomic, type);
	SHOW("atomic", &atomic, op);
	SHOW_BYTES("atomic", &atomic, zero);
}

static void decode_coll(const uint8_t *at)
{
	struct wire_coll coll;

	memcpy(&coll, at, sizeof(coll));
	SHOW("coll", &coll, group);
	SHOW("coll", &coll, seq);
	SHOW("coll", &coll, from);
	SHOW("coll", &coll, len);
	SHOW("coll", &coll, off);
	SHOW("coll", &coll, what);
	SHOW("coll", &coll, status);
}

static void decode_msg_fields(uint32_t op, const uint8_t *at)
{
	struct wire_part part;
	struct wire_cont cont;
	struct wire_rndv rndv;
	struct wire_sync sync;
	struct wire_done done;

	if (op == WIRE_OP_PART) {
		memcpy(&part, at, sizeof(part));
		SHOW("part", &part, total_len);
		SHOW("part", &part, send_id);
		SHOW("part", &part, zero);
	} else if (op == WIRE_OP_CONT) {
		memcpy(&cont, at, sizeof(cont));
		SHOW("cont", &cont, offset);
		SHOW("cont", &cont, id);
		SHOW("cont", &cont, kind);
	} else if (op == WIRE_OP_RNDV) {
		memcpy(&rndv, at, sizeof(rndv));
		SHOW("rndv", &rndv, total_len);
		SHOW("rndv", &rndv, addr);
		SHOW("rndv", &rndv, key);
		SHOW("rndv", &rndv, send_id);
		SHOW("rndv", &rndv, zero);
	} else if (op == WIRE_OP_SYNC) {
		memcpy(&sync, at, sizeof(sync));
		SHOW("sync", &sync, send_id);
	} else if (op == WIRE_OP_DONE) {
		memcpy(&done, at, sizeof(done));
		SHOW("done", &done, send_id);
		SHOW("done", &done, status);
		SHOW("done", &done, recv_id);
		SHOW("done", &done, zero);
	}
}

/** Prints the operation's own fields, behind tag and data. */
static void decode_own_fields(uint32_t op, bool is_call, const uint8_t *at)
{
	struct wire_rma_source source;
	struct wire_rma_return end;
	struct wire_lease_call lease;

	switch (op) {
	case WIRE_OP_WRITE:
	case WIRE_OP_READ: decode_access(at); break;
	case WIRE_OP_FETCH:
		decode_access(at);
		memcpy(&source, at + sizeof(struct wire_rma), sizeof(source));
		SHOW("fetch", &source, addr);
		SHOW("fetch", &source, key);
		break;
	case WIRE_OP_EXPOSE:
		if (is_call) {
			decode_access(at);
			break;
		}
		memcpy(&end, at, sizeof(end));
		SHOW("expose", &end, exposure_id);
		SHOW("expose", &end, status);
		break;
	case WIRE_OP_ATOMIC: decode_atomic(at); break;
	case WIRE_OP_COLL: decode_coll(at); break;
	case WIRE_OP_LEASE:
		memcpy(&lease, at, sizeof(lease));
		SHOW("lease", &lease, key);
		SHOW("lease", &lease, kind);
		SHOW("lease", &lease, zero);
		break;
	default: decode_msg_fields(op, at); break;
	}
}

static void decode_operation(uint32_t word, bool is_call, const uint8_t *at)
{
	uint32_t op = word & WIRE_OP_MASK;

	if (op == WIRE_OP_RPC) {
		show("rpc.operation", op);
		show("rpc.flags", word >> 4 & 0xF);
		show("rpc.resp_max", wire_rpc_resp_max(word));
		show("rpc.zero", word >> 31);
		return;
	}
	show("operation.operation", op);
	show("operation.flags", word >> 4 & 7);
	show("operation.zero", word >> 7);
	show("flags.tag", !!(word & WIRE_F_TAG));
	show("flags.data32", !!(word & WIRE_F_DATA32));
	show("flags.data64", !!(word & WIRE_F_DATA64));
	if (word & WIRE_F_TAG) {
		show("operation.tag", wire_get64(at));
		at += 8;
	}
	if (word & WIRE_F_DATA32) {
		show("operation.data32", wire_get32(at));
		at += 4;
	} else if (word & WIRE_F_DATA64) {
		show("operation.data64", wire_get64(at));
		at += 8;
	}
	decode_own_fields(op, is_call, at);
}

static void decode_access_reply(uint32_t op, const uint8_t *at)
{
	struct wire_rma_reply reply;
	struct wire_rma_exposure exposure;

	memcpy(&reply, at, sizeof(reply));
	SHOW("access_response", &reply, status);
	SHOW("access_response", &reply, zero);
	SHOW("access_response", &reply, offset);
	if (op != WIRE_OP_EXPOSE || reply.status != WIRE_RMA_EXPOSED)
		return;
	memcpy(&exposure, at + sizeof(reply), sizeof(exposure));
	SHOW("exposure", &exposure, addr);
	SHOW("exposure", &exposure, key);
	SHOW("exposure", &exposure, exposure_id);
	SHOW("exposure", &exposure, zero);
}

static void decode_lease_reply(const uint8_t *at)
{
	struct wire_lease lease;

	memcpy(&lease, at, sizeof(lease));
	SHOW("lease_response", &lease, status);
	SHOW("lease_response", &lease, rights);
	SHOW("lease_response", &lease, base);
	SHOW("lease_response", &lease, len);
	SHOW("lease_response", &lease, addr);
	SHOW("lease_response", &lease, rkey);
}

static void decode_reply(uint32_t op, const uint8_t *at, uint32_t len)
{
	struct wire_status status;
	struct wire_atomic_reply atomic;
	struct wire_coll_reply coll;

	switch (op) {
	case WIRE_OP_RNDV:
	case WIRE_OP_DLVR:
	case WIRE_OP_SYNC:
	case WIRE_OP_CONT:
		memcpy(&status, at, sizeof(status));
		SHOW("status", &status, status);
		SHOW("status", &status, recv_id);
		SHOW("status", &status, len);
		break;
	case WIRE_OP_ATOMIC:
		memcpy(&atomic, at, sizeof(atomic));
		SHOW("atomic_response", &atomic, status);
		SHOW("atomic_response", &atomic, first);
		break;
	case WIRE_OP_COLL:
		memcpy(&coll, at, sizeof(coll));
		SHOW("coll_response", &coll, status);
		SHOW("coll_response", &coll, zero);
		SHOW("coll_response", &coll, off);
		break;
	case WIRE_OP_WRITE:
	case WIRE_OP_READ:
	case WIRE_OP_FETCH:
	case WIRE_OP_EXPOSE: decode_access_reply(op, at); break;
	case WIRE_OP_LEASE:
		if (len)
			decode_lease_reply(at);
		break;
	default: break;
	}
}

/* Sessions */

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
			decode_operation(f.word, false, f.data);
		} else if (f.kind == WIRE_ERPC_FRAME_CALL) {
			SHOW("call", &f, resp_max);
			call = find_call(link, sender, f.word);
			call->op = wire_get32(f.data) & WIRE_OP_MASK;
			decode_operation(wire_get32(f.data), true, f.data + 4);
		} else {
			decode_reply(find_call(link, !sender, f.word)->op, f.data, f.len);
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
	SHOW("get", &get, zero);
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
	show("header.magic", WIRE_ERPC_MAGIC);
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
	const struct end *from, *to;

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

static void decode_session(const struct wire_pcap_udp *u)
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

static void judge(const struct wire_pcap_udp *u)
{
	struct wire_cm_pkt pkt;
	int ret = wire_cm_decode(u->data, u->len, &pkt);

	printf("%u %s\n", u->frame, !ret ? "good" : ret == -FI_ENOPROTOOPT ? "version" : "bad");
}

int main(int argc, char **argv)
{
	bool verdicts = argc == 3 && !strcmp(argv[1], "-v");
	uint8_t *packet = calloc(1, WIRE_PCAP_MAX);
	struct wire_pcap_udp u;
	uint32_t cnt = 0;
	FILE *file;

	wire_pcap_check(packet && (argc == 2 || verdicts), "usage: wire_decode [-v] FILE");
	file = wire_pcap_open(argv[argc - 1]);
	while (wire_pcap_next(file, packet, &cnt, &u)) {
		frame = u.frame;
		if (u.captured >= 8 && wire_get32(u.data) == WIRE_CM_MAGIC) {
			if (!verdicts)
				decode_handshake(&u);
			else if (u.captured == u.len)
				judge(&u);
		} else if (!verdicts) {
			decode_session(&u);
		}
	}
	fclose(file);
	return 0;
}
