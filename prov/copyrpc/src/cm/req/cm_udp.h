/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What do we say to strangers? The datagram socket.
 *
 * REQ is answered from what it says and our secret alone: nothing is allocated, looked up or remembered,
 * and the answer is never longer than the question. ACK, NAK and ICMP errors go to the
 * request that their nonce names, or nowhere; what belongs to a connection, to cm_dgram.h.
 *
 * Shown by test/unit/cm/req/test_cm_udp.c.
 */
#ifndef CM_CM_UDP_H
#define CM_CM_UDP_H

#include <stddef.h>
#include <stdint.h>

#include "cm/base/cm_addr.h"

struct cm_ep;
struct cm_src;
struct wire_cm_pkt;

/** A bound socket: fd or -FI_E*. *addr becomes what it is bound to. */
int cm_udp_bind(union cm_addr *addr);

/** Sends a REQ: 0 (it left, or was lost on the way), or -FI_E* (there is no way). Any thread. */
int cm_udp_send_req(struct cm_ep *cep, const union cm_addr *to, uint64_t nonce);

/** Sends a sealed packet, or seals and sends one: as send_req. */
int cm_udp_send_bytes(struct cm_ep *cep, const uint8_t *buf, size_t len, const union cm_addr *to);
int cm_udp_send(struct cm_ep *cep, struct wire_cm_pkt *pkt, const union cm_addr *to);

/** cm_src.ready of agent->udp. */
void cm_udp_on_ready(struct cm_src *src, uint32_t events);

#endif
