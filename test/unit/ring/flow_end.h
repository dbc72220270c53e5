/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What may the two ends of flow.h do, and what is known of each?
 *
 * A step is drawn at random; what is sent is remembered, and compared when the peer sees it. Between the files of
 * flow.h.
 */
#ifndef UNIT_RING_FLOW_END_H
#define UNIT_RING_FLOW_END_H

#include "support/rng.h"
#include "unit/ring/flow.h"

#define FLOW_QUEUE    8192u /* messages that may be under way in one direction */
#define FLOW_OPEN_MAX 1024u /* calls without an answer */
#define FLOW_HOLD_MAX 24u

enum flow_kind { FLOW_MSG, FLOW_CALL, FLOW_REPLY };

/** A message as its reader must see it. */
struct flow_msg {
	enum flow_kind kind;
	uint32_t op;
	uint32_t len;
	uint64_t serial; /* its bytes follow from it; an answer has its call's */
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
	struct flow_msg out[FLOW_QUEUE]; /* what the peer has to see, oldest first */
	uint64_t out_head;
	uint64_t out_tail;
	struct flow_open open[FLOW_OPEN_MAX]; /* calls of the peer */
	unsigned open_cnt;
	struct flow_call calls[FLOW_OPEN_MAX]; /* our calls */
	uint64_t reserved;                     /* by those that the peer has not answered */
	unsigned call_cnt;
	struct flow_hold retain[FLOW_HOLD_MAX];
	unsigned hold_cnt;
	uint64_t consumer; /* at the last check */
	uint64_t sent, called, answered, again;
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
	unsigned hold_rate;    /* out of 16 */
	unsigned reenter_rate; /* out of 8 */
};

#define FLOW_CHECK(run, cond, ...)                                                                 \
	do {                                                                                       \
		if (!(cond))                                                                       \
			flow_fail((run), #cond, __VA_ARGS__);                                      \
	} while (0)

void flow_fail(struct flow_run *run, const char *cond, const char *what) __attribute__((noreturn));

extern const struct core_upcalls flow_upcalls;

#define FLOW_STEPS 6u

/** Send, call, answer, release, flush; the last one is progress. */
extern void (*const flow_steps[FLOW_STEPS])(struct flow_end *end);

/** Sends a message of that length, calls with one: 0 or -FI_EAGAIN. */
int flow_send_len(struct flow_end *end, uint32_t len, unsigned flags);
int flow_call_with(struct flow_end *end, uint32_t len, uint32_t resp_max);
/** The largest allowance that a call is promised to get sooner or later. */
uint32_t flow_sure_allowance(const struct flow_end *end);
/** Answers a call of the peer's, releases a message that is held, if there is one. */
void flow_answer(struct flow_end *end);
void flow_release(struct flow_end *end);

/** What must hold of the direction that `w` writes. */
void flow_check(struct flow_end *w);

#endif
