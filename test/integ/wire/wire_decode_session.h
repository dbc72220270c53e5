/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Prints the packets of eRPC sessions, and the messages and calls in their requests. Sessions are
 * known from the handshakes of the same capture. Used by wire_decode.c.
 */
#ifndef WIRE_DECODE_SESSION_H
#define WIRE_DECODE_SESSION_H

#include "wire_pcap.h"

/** One end of a session, as its handshake describes it. */
struct wire_decode_end {
	bool known;
	struct wire_pcap_end at;
	uint16_t session;
	uint16_t tag;
	uint32_t mtu;
};

/** Notes the end `side` (0: the one that sent HELLO) of the session whose handshake has `nonce`. */
void wire_decode_session_add(uint64_t nonce, uint32_t side, const struct wire_decode_end *end);

/** Prints the packets of a datagram, if it belongs to a known session. */
void wire_decode_session(const struct wire_pcap_udp *u);

#endif
