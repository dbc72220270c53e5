/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Accepted attempts that have ended. Keeps a late copy of a HELLO from being accepted again while
 * its cookie is valid: otherwise the peer, which is up with the first connection of the attempt,
 * would bring up a second one with its PING.
 *
 * An attempt is recorded when its connection goes down, as a keyed hash of address, incarnation
 * and nonce, until every cookie of the attempt has expired. If CM_ENDED_MAX attempts end within
 * that time, the cookies of this CM endpoint are made invalid at once, so that nothing needs to be
 * recorded any more; a peer whose HELLO is on its way tries again with a new cookie.
 *
 * Protected by the node's mutex. Tested by test/unit/cm/ep/test_cm_ended.c.
 */
#ifndef CM_EP_CM_ENDED_H
#define CM_EP_CM_ENDED_H

#include <stdbool.h>
#include <stdint.h>

#include "cm/base/cm_addr.h"

struct cm_ep;

#define CM_ENDED_MAX 1024u

struct cm_ended_entry {
	uint64_t hash;
	uint64_t until_ns; /* end of the validity of its cookies */
};

struct cm_ended {
	struct cm_ended_entry *ring; /* CM_ENDED_MAX entries; NULL: none recorded yet */
	uint32_t next;               /* the oldest entry */
};

/** Records an attempt that was accepted at `accepted_ns` and has ended. */
void cm_ended_add(struct cm_ep *cep, const union cm_addr *addr, uint64_t inc, uint64_t nonce,
		  uint64_t accepted_ns, uint64_t now_ns);
/** Returns whether the attempt is recorded. */
bool cm_ended_has(const struct cm_ep *cep, const union cm_addr *addr, uint64_t inc, uint64_t nonce,
		  uint64_t now_ns);
void cm_ended_fini(struct cm_ended *ended);

#endif
