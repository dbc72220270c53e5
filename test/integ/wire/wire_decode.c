/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Prints what copyrpc's own decoders find in a capture, for comparison with the Wireshark
 * dissector (69-dissector of the suite). Handshakes are decoded here, sessions in
 * wire_decode_session.c, and the messages in them in wire_decode_msg.c.
 *
 * usage: wire_decode FILE       a line for each field: frame, name, value in hexadecimal
 *        wire_decode -v FILE    a line for each handshake packet: frame, "good", "version" or "bad"
 */
#include <rdma/fi_errno.h>

#include "wire/wire_cm.h"
#include "wire/wire_erpc_msg.h"
#include "wire/wire_le.h"
#include "wire_decode_session.h"
#include "wire_pcap.h"
#include "wire_show.h"

static void decode_identity(const struct wire_cm_params *params)
{
	const struct wire_cm_identity *identity = &params->identity;
	size_t host_len = strlen(identity->host);

	wire_show("parameters.identity_len", params->has_identity ? 8 + host_len : 0);
	if (!params->has_identity)
		return;
	wire_show("identity.rank", (uint32_t)identity->rank);
	wire_show("identity.pid", identity->pid);
	if (host_len)
		wire_show_bytes("identity.host", identity->host, host_len);
}

static void decode_ring_params(const struct wire_cm_params *params)
{
	if (params->engine_len != 16)
		return;
	wire_show("ring_parameters.version", wire_get32(params->engine));
	wire_show("ring_parameters.features", wire_get32(params->engine + 4));
	wire_show("ring_parameters.grant_max", wire_get64(params->engine + 8));
}

/** Prints the address of an endpoint over UDP, which makes the packets of its session known. */
static void decode_udp_endpoint(const struct wire_cm_pkt *pkt, const uint8_t *d,
				const struct wire_erpc_params *session)
{
	struct wire_decode_end end = { .known = true,
				       .at = { .family = d[1], .port = wire_get16(d + 2) },
				       .session = session->session,
				       .tag = (uint16_t)session->token,
				       .mtu = session->mtu };

	wire_show("udp_endpoint.version", d[0]);
	wire_show("udp_endpoint.family", d[1]);
	wire_show("udp_endpoint.port", wire_get16(d + 2));
	wire_show("udp_endpoint.mtu", wire_get32(d + 4));
	wire_show_bytes("udp_endpoint.ip", d + 8, 16);
	memcpy(end.at.ip, d + 8, d[1] == 4 ? 4 : 16);
	wire_decode_session_add(pkt->nonce, pkt->type == WIRE_CM_WELCOME, &end);
}

static void decode_session_params(const struct wire_cm_pkt *pkt,
				  const struct wire_cm_params *params)
{
	struct wire_erpc_params session;

	if (params->engine_len != sizeof(session))
		return;
	memcpy(&session, params->engine, sizeof(session));
	SHOW("session_parameters", &session, version);
	SHOW("session_parameters", &session, session);
	SHOW("session_parameters", &session, credits);
	SHOW("session_parameters", &session, token);
	SHOW("session_parameters", &session, mtu);
	SHOW("session_parameters", &session, zero);
	if (session.version == WIRE_ERPC_VERSION && session.credits &&
	    params->path == WIRE_CM_PATH_UDP && params->dev_len == 24)
		decode_udp_endpoint(pkt, params->dev, &session);
}

static void decode_params(const struct wire_cm_pkt *pkt, const struct wire_cm_params *params)
{
	wire_show("parameters.engine_len", params->engine_len);
	wire_show("parameters.device_len", params->dev_len);
	wire_show("parameters.descriptors", params->fd_cnt);
	wire_show("parameters.path", params->path);
	decode_identity(params);
	if (params->path == WIRE_CM_PATH_SHM || params->path == WIRE_CM_PATH_NIC)
		decode_ring_params(params);
	else
		decode_session_params(pkt, params);
}

static void decode_address(const struct wire_cm_addr *addr)
{
	SHOW("address", addr, family);
	wire_show("address.zero", 0);
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
		wire_show_bytes("req.name", name, sizeof(name));
		wire_show_bytes("req.zero", zero, sizeof(zero));
		if (pkt->req.has_name)
			decode_address(&pkt->req.name);
		break;
	case WIRE_CM_ACK:
		SHOW_BYTES("ack", &pkt->ack, cookie);
		SHOW_BYTES("ack", &pkt->ack, name);
		SHOW("ack", &pkt->ack, paths);
		wire_show("ack.zero", 0);
		break;
	case WIRE_CM_NAK:
		wire_show("nak.error", pkt->nak.err);
		wire_show("nak.text_len", strlen(pkt->nak.text));
		wire_show("nak.zero", 0);
		if (pkt->nak.text[0])
			wire_show_bytes("nak.text", pkt->nak.text, strlen(pkt->nak.text));
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
	wire_show("handshake.magic", WIRE_CM_MAGIC);
	wire_show("handshake.version", u->data[4]);
	SHOW("handshake", &pkt, type);
	wire_show("handshake.len", u->len);
	SHOW("handshake", &pkt, nonce);
	SHOW("handshake", &pkt, src_inc);
	SHOW("handshake", &pkt, dst_inc);
	SHOW("handshake", &pkt, features);
	wire_show_bytes("handshake.mac", u->data + u->len - WIRE_CM_MAC_LEN, WIRE_CM_MAC_LEN);
	decode_body(&pkt);
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
		wire_show_frame = u.frame;
		if (u.captured >= 8 && wire_get32(u.data) == WIRE_CM_MAGIC) {
			if (!verdicts)
				decode_handshake(&u);
			else if (u.captured == u.len)
				judge(&u);
		} else if (!verdicts) {
			wire_decode_session(&u);
		}
	}
	fclose(file);
	return 0;
}
