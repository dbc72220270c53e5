/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Endpoint of core/ whose peers are a fuzzer: an engine that connects at once (side.c), channels
 * that deliver what the fuzzer states (side_chan.c), and a device that matches tags (side_tags.c).
 * Used by fuzz_core_rx.c.
 *
 * The contract of core_engine.h and core_chan.h is checked: one reply to each call, none longer
 * than its room; bytes that are released were retained; what was exposed is unexposed. Bytes of a
 * message have memory of their own, freed when the contract says so.
 */
#ifndef FUZZ_CORE_SIDE_H
#define FUZZ_CORE_SIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/core_dom.h"
#include "core/core_ep.h"
#include "core/core_tags.h"

#define SIDE_PEERS 2u
#define SIDE_SELF  SIDE_PEERS /* address of the endpoint itself; the peers have those before it */
#define SIDE_ECHO  64u        /* bytes of the last message to a peer, where its ids are */

/** Conditions of the channels, set by the script. */
struct side_cfg {
	bool full;      /* sends and calls find no room */
	bool holds_get; /* gets find no room */
	bool late_get;  /* gets end with a later progress */
	int get_err;    /* status of gets, or 0 */
	bool has_tags;  /* the device matches tags */
	bool tags_full; /* operations of it find no room */
};

extern struct side_cfg side_cfg;
extern uint8_t side_echo[SIDE_ECHO];

/** Opens the endpoint, whose bound queues the caller has set, and connects it to all peers. */
void side_open(struct core_dom *dom, struct core_ep *ep);
/** Closes both, and checks that nothing is left. */
void side_close(struct core_dom *dom, struct core_ep *ep);

/** Delivers a message, or a call, of a peer that is up. Returns false if there is no such. */
bool side_msg(unsigned peer, uint32_t op, const uint8_t *data, uint32_t len);
bool side_call(unsigned peer, uint32_t resp_max, const uint8_t *data, uint32_t len);
/** Delivers the response to one of the open calls to a peer, as much of it as has room. */
bool side_respond(unsigned peer, unsigned which, const uint8_t *data, uint32_t len);
/** Lets the peer have parsed all messages to it. */
void side_parse(unsigned peer);
/** Breaks the connection to a peer. */
void side_break(unsigned peer);

/* ---- tag matching: side_tags.c ---- */

int side_tags_open(uint32_t cnt, struct core_tags_list **list);
/** Returns the number of lists, peers of lists and receives in lists. */
unsigned side_tags_left(void);
/** Gives a request of a peer to the oldest receive that matches, or reports it as unexpected. */
bool side_tags_request(unsigned which, const struct core_tags_request *request);
/** Ends a matched receive with `len` bytes, or with an error. */
bool side_tags_end(unsigned which, uint32_t len, int status);
/** Reports that an open send has ended, or that it is kept. */
bool side_tags_sent(unsigned which, bool is_kept);
/** Reports the failure of a peer. */
bool side_tags_fail(unsigned which);
/** Returns the number that a peer was given for its tags, or 0. */
uint16_t side_tags_number(unsigned which);

#endif
