/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * User of a session in fuzz_erpc_rx.c.
 *
 * Honest users number their messages and check what they receive. Messages of an attacker may be
 * anything; the user reads them to the last byte.
 */
#ifndef FUZZ_ERPC_SIDE_H
#define FUZZ_ERPC_SIDE_H

#include "erpc/erpc_setup.h"
#include "erpc_attacker.h"
#include "support/check.h"

#define RETAINED_MAX 32u
#define OPEN         32u
#define LEN_MAX      1500u

/** Session with the state of its user. */
struct side {
	struct erpc_session *s; /* NULL: closed */
	uint64_t token;
	bool honest;
	struct side *peer;         /* of an honest session */
	struct attacker *attacker; /* with the script, which selects the actions */
	uint32_t sent, received, calls_sent, replies, gets_done;
	struct core_call_ref calls[OPEN]; /* to reply to */
	uint32_t call_cnt;
	core_retain_t retained[RETAINED_MAX];
	uint32_t retained_cnt;
	struct core_get get;
	struct iovec iov;
	uint8_t *into; /* destination of the get; NULL: none in progress */
	struct core_exposure exposure;
	uint8_t *exposed;
};

extern const struct core_upcalls side_upcalls;

/** Implements erpc_ep_attr.failed. An honest session never fails. */
void side_failed(struct erpc_session *s);

/** Performs action `what` % 9, if the session is open. */
void side_act(struct side *side, uint8_t what);

/** Replies to a call and releases retained bytes, if any. */
void side_reply(struct side *side);
void side_release(struct side *side);
/** Ends the exposure to an attacker, if any. */
void side_unexpose(struct side *side);

#endif
