/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fixture: forged packets for one end of a pair, and a check of their effect.
 *
 * All packets are forged for end 0 in the name of end 1. Refused packets change nothing in the
 * session of the pair, which continues. Valid packets with invalid content go to another session,
 * the victim, which they may end. Used by the tests of rx/ and of exposures.
 */
#ifndef UNIT_ERPC_FORGED_H
#define UNIT_ERPC_FORGED_H

#include <copyrpc/stats.h>
#include "support/erpc_pair.h"

#define STRANGER   9u /* an unknown address */
#define BATCH_HEAD sizeof(struct wire_erpc_batch)

extern struct erpc_pair forged_pair;

/** .init and .fini of tests. */
void forged_setup(void);
void forged_teardown(void);

/** Removes the hook of the network and asserts that honest traffic continues. */
void forged_check_traffic(void);

struct packet {
	struct wire_erpc_hdr h;
	uint32_t from;
	uint32_t len; /* of the payload */
	uint8_t data[1024];
};

/** Returns the next request of end 1 in the slot, valid for end 0, with an empty content. */
struct packet forged_request(uint32_t slot);
/** Returns a response to end 0's request in the slot. */
struct packet forged_response(uint32_t slot, enum wire_erpc_kind kind);

/** Deliver a packet to end 0 now. */
void forged_deliver_bytes(uint32_t from, const uint8_t *bytes, uint32_t len);
void forged_deliver(const struct packet *pkt);

/** Send packets to end 0, and let it process all that were sent. */
void forged_send(const struct packet *pkt);
void forged_progress(void);

/** Hook of the network: drops all packets and records the first ones. */
void forged_drop(struct fake_net *net, struct fake_pkt *pkt, void *arg);

#define FORGED_SENT_MAX 64u

struct forged_sent {
	unsigned cnt;
	struct wire_erpc_hdr h[FORGED_SENT_MAX];
	uint32_t len[FORGED_SENT_MAX];  /* behind the header */
	uint8_t first[FORGED_SENT_MAX]; /* first byte behind the header */
};

extern struct forged_sent forged_sent;

/** Starts to record sent packets, from 0. */
void forged_record(void);

/** Reasons to refuse a packet, in the order of the checks. */
enum reason { MALFORMED, NO_SESSION, BAD_TOKEN, BAD_SOURCE, BAD_STATE, STALE, EARLY, BAD };

/** Returns the counters, in the order of enum reason. */
const uint64_t *forged_counters(const struct copyrpc_stats_packets *stats);

/** Snapshot of end 0. */
struct before {
	struct copyrpc_stats_packets stats;
	struct erpc_session s;
	uint64_t responses;
	size_t bufs;
};

void forged_snapshot(struct before *b);
/** Returns true if the session is unchanged, except for notes of early packets and the time. */
bool forged_is_unchanged(struct before *b);
/** Asserts that only the counter of `reason` has changed. */
void forged_only_counted(struct before *b, enum reason reason, const char *what);
/** Asserts that the packet is refused for `reason`. */
void forged_refused(const struct packet *pkt, enum reason reason, const char *what);
/** Asserts that CR or RESP without a request are refused. */
void forged_without_request(enum wire_erpc_kind kind);

/* ---- victim ---- */

extern struct erpc_session *forged_victim;

/** Open the victim with these up-calls, and close it. */
void forged_victim_open(const struct core_upcalls *up);
void forged_victim_close(void);

/**
 * Returns a packet for the victim: its next request in the slot, or a response to its own; the
 * batch header is 0.
 */
struct packet forged_victim_packet(uint32_t slot, enum wire_erpc_kind kind);

/** Adds a frame with a length of `len` bytes, of which `there` are in the packet. */
void forged_add(struct packet *pkt, unsigned kind, uint32_t word, uint32_t resp_max, uint32_t len,
		uint32_t there);

#endif
