/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sealing and opening of packets: the only code that converts between packets and bytes.
 *
 * Every packet sent is encoded and sealed here; every packet received is decoded, checked and
 * counted here. A packet that fails a check has no other effect. Also converts connection
 * parameters.
 */
#ifndef CM_CONN_CM_PKT_H
#define CM_CONN_CM_PKT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cm/base/cm.h"
#include "cm/base/cm_addr.h"
#include "cm/base/cm_fd.h"
#include "cm/ep/cm_ep.h"
#include "wire/wire_cm.h"

/**
 * Sets src_inc of `pkt`, encodes and seals it for `via`. Returns its length in `buf` (WIRE_CM_MAX).
 */
size_t cm_pkt_seal(struct cm_ep *cep, const struct cm_route *via, struct wire_cm_pkt *pkt,
		   uint8_t *buf);

/**
 * Decodes and checks a packet that came by `via`.
 * Returns 0, -FI_EINVAL, -FI_EKEYREJECTED, or -FI_ENOPROTOOPT for another version with a valid MAC.
 */
int cm_pkt_open(struct cm_ep *cep, const struct cm_route *via, const uint8_t *buf, size_t len,
		struct wire_cm_pkt *pkt);
/**
 * Does the same with a datagram. Returns -FI_EAGAIN too, for one of a stranger that is beyond the
 * limits (cm_stranger.h).
 */
int cm_pkt_open_datagram(struct cm_ep *cep, const struct cm_route *via, const uint8_t *buf,
			 size_t len, struct wire_cm_pkt *pkt);
/**
 * Does the same with the first packet of a stream, a HELLO, which contains the address of its
 * sender. Writes the route by which the sender requested its cookie.
 */
int cm_pkt_open_first(struct cm_ep *cep, const uint8_t *buf, size_t len, struct wire_cm_pkt *pkt,
		      struct cm_route *via);

/**
 * Makes a NAK with `err` (-FI_E*) to (nonce, dst_inc). Truncates the text and makes it printable.
 */
void cm_pkt_nak(struct wire_cm_pkt *pkt, uint64_t nonce, uint64_t dst_inc, int err,
		const char *text);

/**
 * Seals `pkt` and sends it on stream `fd`, with the descriptors of `params`; fd -1: as a datagram.
 */
int cm_pkt_send(struct cm_ep *cep, int fd, const struct cm_route *via, struct wire_cm_pkt *pkt,
		const struct cm_params *params);

/** Returns 0, or -FI_EINVAL if the parameters are longer than a packet permits. */
int cm_params_to_wire(const struct cm_params *params, struct wire_cm_params *wire);
/** The descriptors stay with `msg`. */
void cm_params_from_wire(const struct wire_cm_params *wire, const struct cm_fd_msg *msg,
			 struct cm_params *params);
/** Adds the identity of this process to the parameters. */
void cm_identity_to_wire(const struct util_job_name *self, struct wire_cm_params *wire);
/** Returns true and *identity if the parameters have that of the peer. */
bool cm_identity_from_wire(const struct wire_cm_params *wire, struct util_job_name *identity);
void cm_params_close_fds(struct cm_params *params);

/** Checks that the announced descriptors arrived. Returns 0, -FI_EMFILE or -FI_EINVAL. */
int cm_params_check_fds(const struct wire_cm_params *wire, const struct cm_fd_msg *msg);

#endif
