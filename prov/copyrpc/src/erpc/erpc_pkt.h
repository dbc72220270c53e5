/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is done with each kind of packet? One file a kind.
 *
 * Each has passed the checks that a session can make of any packet (erpc_check.c), and is held against
 * the rules of its slot. Handlers say whether they kept the device's buffer.
 *
 * Shown by test/unit/erpc/test_erpc_forged.c (what is refused) and test_erpc_port.c (what is not).
 */
#ifndef ERPC_PKT_H
#define ERPC_PKT_H

#include "erpc/erpc_port.h"
#include "erpc/erpc_session.h"

/** The checks of section 7 up to the slot's: the session, or NULL, and it was counted. */
struct erpc_session *erpc_check(struct erpc_port *port, const struct dev_dgram_in *in,
				struct wire_erpc_hdr *h);

bool erpc_req_on(struct erpc_session *s, const struct wire_erpc_hdr *h,
		 const struct dev_dgram_in *in);
bool erpc_rfr_on(struct erpc_session *s, const struct wire_erpc_hdr *h,
		 const struct dev_dgram_in *in);
bool erpc_cr_on(struct erpc_session *s, const struct wire_erpc_hdr *h,
		const struct dev_dgram_in *in);
bool erpc_resp_on(struct erpc_session *s, const struct wire_erpc_hdr *h,
		  const struct dev_dgram_in *in);

/** A packet of a request came, and one before it did not: its sender is told, the third time in a row. */
void erpc_req_early(struct erpc_session *s, uint32_t slot, const struct wire_erpc_hdr *h);

/** Counts what a verdict other than TAKE and LAST means. */
void erpc_pkt_refuse(struct erpc_session *s, enum erpc_verdict verdict);

#endif
