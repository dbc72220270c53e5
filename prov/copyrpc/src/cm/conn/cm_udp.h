/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * UDP sockets of a CM endpoint, one at each of its addresses.
 *
 * A REQ is replied to from its contents and the cookie secret alone: nothing is allocated, looked
 * up or stored, and the reply is never longer than the REQ. ACK, NAK and ICMP errors go to the
 * request with their nonce, packets of a connection to cm_dgram.h.
 */
#ifndef CM_CONN_CM_UDP_H
#define CM_CONN_CM_UDP_H

#include <stddef.h>
#include <stdint.h>

#include "cm/base/cm_addr.h"

struct cm_ep;
struct cm_src;
struct wire_cm_pkt;

/** Binds a socket and stores the bound address in *addr. Returns fd or -FI_E*. */
int cm_udp_bind(union cm_addr *addr);

/**
 * Sends a REQ for the endpoint whose name begins with `name` (NULL: for any that is there). Returns
 * 0 if it left or was lost, or -FI_E* if there is no route. Any thread.
 */
int cm_udp_send_req(struct cm_ep *cep, const struct cm_route *via, const union cm_addr *name,
		    uint64_t nonce);

/** Send sealed bytes, or seal and send a packet. Return values like cm_udp_send_req. */
int cm_udp_send_bytes(struct cm_ep *cep, const uint8_t *buf, size_t len,
		      const struct cm_route *via);
int cm_udp_send(struct cm_ep *cep, struct wire_cm_pkt *pkt, const struct cm_route *via);

/** cm_src.ready of cm_ep_sock.src. */
void cm_udp_on_ready(struct cm_src *src, uint32_t events);

#endif
