/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * State and steps of the two ends of flow.h. Shared between the files of flow.h.
 *
 * A step is drawn at random. Each sent message is recorded, and compared when the peer receives it.
 */
#ifndef UNIT_RING_FLOW_END_H
#define UNIT_RING_FLOW_END_H

#include "support/rng.h"
#include "unit/ring/flow.h"

#define FLOW_QUEUE    8192u /* Messages in flight per direction */
#define FLOW_OPEN_MAX 1024u /* Unanswered calls */
#define FLOW_HOLD_MAX 24u

enum flow_kind { FLOW_MSG, FLOW_CALL, FLOW_REPLY };

/** Message as its reader must receive it. */
struct flow_msg {
	enum flow_kind kind;
	uint32_t op;
	uint32_t len;
	uint64_t serial; /* Determines the bytes; a response has its call's */
	uint32_t resp_max;
};

struct flow_hold {
	core_retain_t retain;
	const uint8_t *data;
	struct flow_msg msg;
};

struct flow_open {
	struct core_call_ref ref;
	uint64_t serial;
};

struct flow_call {
	uint64_t serial;
	bool open;
};

struct flow_run;

struct flow_end {
	struct flow_run *run;
	struct flow_end *peer;
	struct ring_end *ring;
	struct flow_msg out[FLOW_QUEUE]; /* Messages that the peer must receive, oldest first */
	uint64_t out_head;
	uint64_t out_tail;
	struct flow_open open[FLOW_OPEN_MAX]; /* Calls of the peer */
	unsigned open_cnt;
	struct flow_call calls[FLOW_OPEN_MAX]; /* Local calls */
	uint64_t reserved; /* Credit reserved by calls that the peer has not replied to */
	unsigned call_cnt;
	struct flow_hold retain[FLOW_HOLD_MAX];
	unsigned hold_cnt;
	uint64_t consumer; /* Value at the last check */
	uint64_t sent, called, replied, again;
	unsigned weight[6];
};

struct flow_run {
	const struct flow_case *c;
	uint64_t seed;
	uint64_t step;
	struct rng rng;
	struct ring_pair pair;
	struct flow_end end[2];
	uint64_t serial;
	unsigned hold_rate;    /* Out of 16 */
	unsigned reenter_rate; /* Out of 8 */
};

#define FLOW_CHECK(run, cond, ...)                                                                 \
	do {                                                                                       \
		if (!(cond))                                                                       \
			flow_fail((run), #cond, __VA_ARGS__);                                      \
	} while (0)

void flow_fail(struct flow_run *run, const char *cond, const char *what) __attribute__((noreturn));

extern const struct core_upcalls flow_upcalls;

#define FLOW_STEPS 6u

/** Steps: send, call, reply, release, flush; the last one is progress. */
extern void (*const flow_steps[FLOW_STEPS])(struct flow_end *end);

/** Send a message or make a call of that length. Return 0 or -FI_EAGAIN. */
int flow_send_len(struct flow_end *end, uint32_t len, unsigned flags);
int flow_call_with(struct flow_end *end, uint32_t len, uint32_t resp_max);
/** Returns the largest maximum response size for which credit is promised eventually. */
uint32_t flow_sure_resp_max(const struct flow_end *end);
/** Replies to a call of the peer, and releases a retained message if there is one. */
void flow_reply(struct flow_end *end);
void flow_release(struct flow_end *end);

void flow_progress(struct flow_end *end);
/** Ends the first link of the end, unless it has failed before. */
void flow_fail_link(struct flow_end *end);
/** Returns true once rails have taken over both ends. */
bool flow_has_failed(const struct flow_run *run);

/** Checks the direction that `w` writes. */
void flow_check(struct flow_end *w);

#endif
