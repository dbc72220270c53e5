/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How do a caller's and a listener's packets get through a TCP stream?
 *
 * Nothing here blocks, and nothing trusts the other end: a packet is collected in a buffer of the
 * greatest legal length, never longer than its own head says; its MAC covers the two addresses of the
 * stream and the nonce that the listener drew for it, so that nothing of one stream is worth
 * anything on another. Packets are small and few: one that the kernel does not take at once is a
 * failure.
 *
 * Under the node's mutex. Shown by test/unit/cm/msg/test_cm_stream.c.
 */
#ifndef CM_CM_STREAM_H
#define CM_CM_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "cm/base/cm_addr.h"
#include "cm/node/cm_node.h"
#include "wire/wire_connreq.h"

struct cm_stream {
	struct cm_src src;
	uint64_t nonce; /* 0: GREET, which brings it, has not come */
	size_t have;
	uint8_t buf[WIRE_CONNREQ_MAX];
};

/** A listening socket at *addr, which becomes what it is bound to: fd or -FI_E*. */
int cm_stream_listen(union cm_addr *addr, int backlog);
/** One who has connected: fd or -FI_E* (-FI_EAGAIN: nobody waits). */
int cm_stream_accept(int listen_fd);
/** A socket that is being connected to `to`: fd or -FI_E*. It turns readable when it is known how that went. */
int cm_stream_connect(const union cm_addr *to);
/** The addresses of its two ends: 0 or -FI_E*. */
int cm_stream_names(const struct cm_stream *stream, union cm_addr *local, union cm_addr *remote);

/** Seals `pkt` (nonce is filled in) and sends it: 0 or -FI_E*. */
int cm_stream_send(struct cm_node *node, struct cm_stream *stream, struct wire_connreq_pkt *pkt);
/**
 * The next packet: 0; -FI_EAGAIN: not all of it is there; -FI_ECONNRESET: the end; -FI_ECONNREFUSED
 * and others of the network; -FI_EINVAL: no packet; -FI_EKEYREJECTED: of another job;
 * -FI_ENOPROTOOPT: of another version.
 */
int cm_stream_recv(struct cm_node *node, struct cm_stream *stream, struct wire_connreq_pkt *pkt);

#endif
