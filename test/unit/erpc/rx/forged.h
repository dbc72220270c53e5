/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Packets that no honest peer sends, for one end of a pair, and what they changed.
 *
 * Everything is forged for end 0, in the name of end 1. What is refused changes nothing of the session between
 * the users of the pair, and that goes on; what fits and says what it should not is said to another one, the
 * victim, which it may end. Shared by the tests of erpc/rx/, and that of what is lent.
 */
#ifndef UNIT_ERPC_FORGED_H
#define UNIT_ERPC_FORGED_H

#include "erpc/erpc_stats.h"
#include "support/erpc_pair.h"

#define STRANGER   9u /* an endpoint that nobody has */
#define BATCH_HEAD sizeof(struct wire_erpc_batch)

extern struct erpc_pair forged_pair;

/** .init and .fini of tests. */
void forged_setup(void);
void forged_teardown(void);

/** Honest traffic goes on as if nothing had been. */
void forged_check_traffic(void);

struct packet {
	struct wire_erpc_hdr h;
	uint32_t from;
	uint32_t len; /* of the payload */
	uint8_t data[1024];
};

/** Next request of end 1 in that slot, which end 0 would take: a batch, a get or answers with nothing in it. */
struct packet forged_request(uint32_t slot);
/** An answer to end 0's request in that slot. */
struct packet forged_response(uint32_t slot, enum wire_erpc_kind kind);

/** It arrives at end 0 now. */
void forged_deliver_bytes(uint32_t from, const uint8_t *bytes, uint32_t len);
void forged_deliver(const struct packet *pkt);

/** A hook of the network: nothing arrives any more, and the first packets that left are noted. */
void forged_drop(struct fake_net *net, struct fake_pkt *pkt, void *arg);

#define FORGED_SENT_MAX 64u

struct forged_sent {
	unsigned cnt;
	struct wire_erpc_hdr h[FORGED_SENT_MAX];
	uint32_t len[FORGED_SENT_MAX];  /* behind the header */
	uint8_t first[FORGED_SENT_MAX]; /* byte there */
};

extern struct forged_sent forged_sent;

/** From now on; count anew. */
void forged_record(void);

/** Reasons to refuse a packet, in the order of the checks. */
enum reason { MALFORMED, NO_SESSION, BAD_TOKEN, BAD_SOURCE, BAD_STATE, STALE, EARLY, BAD };

/** Their counters, beside each other. */
const uint64_t *forged_counters(const struct erpc_stats *stats);

/** What was there before. */
struct before {
	struct erpc_stats stats;
	struct erpc_session s;
	uint64_t responses;
	size_t bufs;
};

void forged_snapshot(struct before *b);
/** The session is what it was, but for notes of what came early, and when. */
bool forged_is_unchanged(struct before *b);
/** Nothing is different but that counter. */
void forged_only_counted(struct before *b, enum reason reason, const char *what);
/** The packet is refused, for that reason. */
void forged_refused(const struct packet *pkt, enum reason reason, const char *what);
/** Answers of that kind, CR or RESP, where nobody waits for one: all of them are. */
void forged_without_request(enum wire_erpc_kind kind);

/* ---- the victim ---- */

extern struct erpc_session *forged_victim;

/** It opens, with these up-calls, and closes. */
void forged_victim_open(const struct core_upcalls *up);
void forged_victim_close(void);

/** A packet for it: its next request in that slot, or the response to its own there; a batch's head, all 0. */
struct packet forged_victim_packet(uint32_t slot, enum wire_erpc_kind kind);

/** Adds a frame that says it is of `len` bytes, of which `there` are in the packet. */
void forged_add(struct packet *pkt, unsigned kind, uint32_t word, uint32_t resp_max, uint32_t len,
		uint32_t there);

#endif
