/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Limit on replies to strangers: senders of datagrams whose address nothing has proved.
 *
 * A reply costs more than the datagram cost its sender, which may have forged the address. So a
 * host is sent at most CM_STRANGER_HOST_S replies a second, all together CM_STRANGER_ALL_S, beside
 * a burst of those of CM_STRANGER_BURST_NS. With a limit reached, datagrams of strangers are
 * dropped before their MAC is computed, which costs less than sending them. Honest ends repeat
 * theirs.
 *
 * The sender of a HELLO with a valid cookie is no stranger, nor that of a datagram other than REQ
 * from the address of a peer. With a job key a datagram counts only if its MAC is valid: without
 * the key no process can use up the limits.
 *
 * Protected by the node's mutex. Tested by test/unit/cm/ep/test_cm_stranger.c.
 */
#ifndef CM_EP_CM_STRANGER_H
#define CM_EP_CM_STRANGER_H

#include <stdbool.h>
#include <stdint.h>

#include "cm/base/cm_addr.h"

struct cm_ep;
struct wire_cm_pkt;

#define CM_STRANGER_ALL_S    20000u /* replies a second, some tenth of a processor */
#define CM_STRANGER_HOST_S   10000u
#define CM_STRANGER_BURST_NS 200000000ull
#define CM_STRANGER_HOSTS    1024u

/** Times until which the replies sent so far use up the rate: of all hosts, and of each. */
struct cm_stranger {
	uint64_t all_ns;
	uint64_t host_ns[CM_STRANGER_HOSTS];
};

/** Returns whether a datagram from `from` is one of a stranger beyond the limits. */
bool cm_stranger_exceeds(struct cm_ep *cep, const union cm_addr *from,
			 const struct wire_cm_pkt *pkt, uint64_t now_ns);

/** Counts a reply to an address. Returns false, and counts nothing, if it is beyond the limits. */
bool cm_stranger_take(struct cm_ep *cep, const union cm_addr *addr, uint64_t now_ns);

#endif
