/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What does a message cost the processor and the NIC, counted and not timed?
 *
 * Both ends live in one thread of one process, so nobody polls in vain while the other works: the
 * instructions of a run are those of its messages, and the clock goes by them too. A transport
 * (cost_fi.c, cost_ucp.c) gives two connected ends; cost.c moves the messages.
 * fabtests/scripts/cost runs the program on the device model with N and with 2 N rounds: the
 * difference is free of whatever start and end cost.
 *
 * A failure ends the process. One thread.
 */
#ifndef COST_H
#define COST_H

#include <stdbool.h>
#include <stddef.h>

enum { COST_CLIENT, COST_SERVER, COST_ENDS };

enum cost_shape {
	COST_ONEWAY, /* the client sends a window, the server takes it */
	COST_RPC,    /* and answers every message with one of the same size */
};

struct cost_conf {
	enum cost_shape shape;
	size_t size; /* bytes of a message */
	int window;  /* messages in flight */
	long rounds; /* windows */
};

/** What the transport counts up, for each end, as operations complete. */
struct cost_end {
	long sent, received;
};

/** Two connected ends. The transport embeds it first. */
struct cost_pair {
	struct cost_end end[COST_ENDS];
};

/* What a transport provides. `slot` is below the number that cost_pair_open was told: its operations' contexts. */
extern const char *const cost_transport; /* "fi_cost_bench" */
/** Connected ends; `name` chooses the provider, NULL: the transport's default. */
struct cost_pair *cost_pair_open(const char *name, int window);
void cost_pair_close(struct cost_pair *pair);
/** False: no room until the other end has answered what it has. */
bool cost_send(struct cost_pair *pair, int end, const void *buf, size_t len, int slot);
void cost_recv(struct cost_pair *pair, int end, void *buf, size_t len, int slot);
/** One progress call of one end. */
void cost_progress(struct cost_pair *pair, int end);

/* cost_clock.c: from stop to start the time depends on nothing but how often it is asked for. */
void cost_clock_stop(void);
void cost_clock_start(void);

/* cost.c */
_Noreturn void cost_die(const char *what, const char *why);

#endif
