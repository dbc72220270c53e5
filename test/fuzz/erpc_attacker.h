/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Packets that fit the state of a session except for changes that the script makes.
 *
 * Random bytes fail at the first check. So the attacker has the peer's state and more: the next
 * request of each slot, requests in flight, ids of calls and keys of exposures. The script changes
 * each field a little or a lot.
 */
#ifndef FUZZ_ERPC_LIAR_H
#define FUZZ_ERPC_LIAR_H

#include "erpc/erpc_setup.h"
#include "script.h"

#define ATTACKER_PKT_MAX 2048u
#define ATTACKER_NAMES   8u

/** State of the attacker. */
struct attacker {
	struct script *script;
	uint32_t calls[ATTACKER_NAMES]; /* ids of calls sent by the session's end */
	unsigned call_cnt;
	uint64_t exposure_addr; /* memory exposed to the attacker, or 0, 0, 0 */
	uint64_t exposure_key;
	uint32_t exposure_len;
};

/** Builds a packet for session `s` in `buf` of ATTACKER_PKT_MAX bytes. Returns its length. */
uint32_t attacker_packet(struct attacker *attacker, const struct erpc_session *s, uint8_t *buf);

/** Records the calls in a packet that was sent to the attacker. */
void attacker_observe(struct attacker *attacker, const uint8_t *pkt, uint32_t len);

#endif
