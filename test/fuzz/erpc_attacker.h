/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Packets that fit a session as it stands, but for what the script changes about them.
 *
 * Blind bytes stop at the first check. So the liar knows what a peer knows, and more: which request of
 * each slot comes next, what is under way, names of calls and loans. From there the script bends each
 * field a little, or a lot.
 */
#ifndef FUZZ_ERPC_LIAR_H
#define FUZZ_ERPC_LIAR_H

#include "erpc/erpc_session.h"
#include "script.h"

#define ATTACKER_PKT_MAX 2048u
#define ATTACKER_NAMES   8u

/** What may be asked for, or answered. */
struct attacker {
	struct script *script;
	uint32_t calls[ATTACKER_NAMES]; /* names of calls that were heard from the session's end */
	unsigned call_cnt;
	uint64_t exposure_addr; /* memory that was lent to us, or 0, 0, 0 */
	uint64_t exposure_key;
	uint32_t exposure_len;
};

/** A packet for session `s`, in `buf` of LIAR_PKT_MAX bytes: how long. */
uint32_t attacker_packet(struct attacker *attacker, const struct erpc_session *s, uint8_t *buf);

/** A packet left for the liar: it remembers what is asked in it. */
void attacker_observe(struct attacker *attacker, const uint8_t *pkt, uint32_t len);

#endif
