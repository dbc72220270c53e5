/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Packets of a connection request on a TCP stream.
 *
 * No function blocks, and no input is trusted. A packet is collected in a buffer of the largest
 * legal length. Its MAC covers both addresses of the stream and the nonce that the listener drew
 * for it, so a packet is invalid on any other stream. Packets are small and few: a packet that the
 * kernel does not take whole is an error.
 *
 * Protected by the node's mutex.
 */
#ifndef CM_MSG_CM_STREAM_H
#define CM_MSG_CM_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "cm/base/cm_addr.h"
#include "cm/node/cm_node.h"
#include "wire/wire_connreq.h"

struct cm_stream {
	struct cm_src src;
	uint64_t nonce; /* 0: GREET, which carries it, has not arrived */
	size_t have;
	uint8_t buf[WIRE_CONNREQ_MAX];
};

/** Opens a listening socket at *addr and stores the bound address there. Returns fd or -FI_E*. */
int cm_stream_listen(union cm_addr *addr, int backlog);
/** Starts connecting to `to`. Returns fd or -FI_E*. fd turns readable when the result is known. */
int cm_stream_connect(const union cm_addr *to);
/** Gets the addresses of both ends. Returns 0 or -FI_E*. */
int cm_stream_names(const struct cm_stream *stream, union cm_addr *local, union cm_addr *remote);

/** Sets the nonce of `pkt`, seals and sends it. Returns 0 or -FI_E*. */
int cm_stream_send(struct cm_node *node, struct cm_stream *stream, struct wire_connreq_pkt *pkt);
/**
 * Receives a packet. Returns 0, -FI_EAGAIN if it is incomplete, -FI_ECONNRESET at the end of the
 * stream, -FI_EINVAL if it is no packet, -FI_EKEYREJECTED for another job key, -FI_ENOPROTOOPT for
 * another version, or a network error such as -FI_ECONNREFUSED.
 */
int cm_stream_recv(struct cm_node *node, struct cm_stream *stream, struct wire_connreq_pkt *pkt);

#endif
