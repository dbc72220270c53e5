/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A user of a session in fuzz_erpc_rx.c: what does it do, and what does it hear?
 *
 * The honest ones number what they say, and check what they hear; what a liar says may be anything, and is
 * read to its last byte.
 */
#ifndef FUZZ_ERPC_SIDE_H
#define FUZZ_ERPC_SIDE_H

#include "erpc/erpc_session.h"
#include "erpc_attacker.h"
#include "support/check.h"

#define RETAINED_MAX 32u
#define OPEN         32u
#define LEN_MAX      1500u

/** A session of ours, and what its user has to do with it. */
struct side {
	struct erpc_session *s; /* NULL: closed */
	uint64_t token;
	bool honest;
	struct side *peer;         /* of an honest one */
	struct attacker *attacker; /* and his script, which says what is done */
	uint32_t sent, received, calls_sent, replies, gets_done;
	struct core_call_ref calls[OPEN]; /* to be answered */
	uint32_t call_cnt;
	core_retain_t retained[RETAINED_MAX];
	uint32_t retained_cnt;
	struct core_get get;
	struct iovec iov;
	uint8_t *into; /* where it goes; NULL: none is under way */
	struct core_exposure exposure;
	uint8_t *exposed;
};

extern const struct core_upcalls side_upcalls;

/** erpc_ep_attr.failed: never of an honest one. */
void side_failed(struct erpc_session *s);

/** One of the things that a user does, if the session is open: what % 9. */
void side_act(struct side *side, uint8_t what);

/** Answers a call, releases something that is held, if there is one. */
void side_reply(struct side *side);
void side_release(struct side *side);
/** A liar's loan is taken back, if there is one. */
void side_unexpose(struct side *side);

#endif
