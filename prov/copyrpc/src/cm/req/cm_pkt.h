/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How does a packet get its seal, and whose seal do we accept?
 *
 * The one door between cm and bytes: everything that leaves is encoded and sealed here, everything
 * that arrives is decoded, counted and checked here. What does not pass changes a counter and
 * nothing else. Also the conversion of halves.
 *
 * Shown by test/unit/cm/req/test_cm_pkt.c.
 */
#ifndef CM_CM_PKT_H
#define CM_CM_PKT_H

#include <stddef.h>
#include <stdint.h>

#include "cm/cm.h"
#include "cm/base/cm_addr.h"
#include "cm/cm_ep.h"
#include "cm/base/cm_fd.h"
#include "wire/wire_cm.h"

/** Encodes and seals `pkt` (src_inc is filled in) for `to`: its length in `buf` (WIRE_CM_MAX). */
size_t cm_pkt_seal(struct cm_ep *cep, const union cm_addr *to, struct wire_cm_pkt *pkt,
		   uint8_t *buf);

/**
 * Decodes and checks what came from `from` (NULL: a HELLO, which says it itself): 0, -FI_EINVAL,
 * -FI_EKEYREJECTED, or -FI_ENOPROTOOPT (another version, but sealed with our key).
 */
int cm_pkt_open(struct cm_ep *cep, const union cm_addr *from, const uint8_t *buf, size_t len,
		struct wire_cm_pkt *pkt);

/** A NAK of `err` (-FI_E*) in answer to (nonce, dst_inc). The text is cut and made printable. */
void cm_pkt_nak(struct wire_cm_pkt *pkt, uint64_t nonce, uint64_t dst_inc, int err,
		const char *text);

/**
 * Seals `pkt` and sends it on a stream, with the descriptors of `half` if there is one; fd -1: in a
 * datagram.
 */
int cm_pkt_send(struct cm_ep *cep, int fd, const union cm_addr *to, struct wire_cm_pkt *pkt,
		const struct cm_params *params);

/** 0, or -FI_EINVAL if the half is longer than the contract allows. */
int cm_params_to_wire(const struct cm_params *params, struct wire_cm_params *wire);
/** The descriptors stay msg's. */
void cm_params_from_wire(const struct wire_cm_params *wire, const struct cm_fd_msg *msg,
			 struct cm_params *params);
/** Closes the descriptors. */
void cm_params_close_fds(struct cm_params *params);

/** Did exactly the descriptors come that the packet announces? 0, -FI_EMFILE or -FI_EINVAL. */
int cm_params_check_fds(const struct wire_cm_params *wire, const struct cm_fd_msg *msg);

#endif
