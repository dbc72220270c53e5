/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Cost of a message for the processor and the NIC, counted instead of timed.
 *
 * Both ends are in one thread of one process. Neither polls in vain while the other works: the
 * instructions of a run are those of its messages, and the clock advances with them. A transport
 * (cost_fi.c, cost_ucp.c) provides two connected ends, and cost.c moves the messages.
 * fabtests/scripts/cost runs the program on the device model with N and with 2 N rounds; the
 * difference excludes start and end. Instructions are counted of the last N of 2 N rounds.
 *
 * A failure ends the process. One thread.
 */
#ifndef COST_H
#define COST_H

#include <stdbool.h>
#include <stddef.h>

enum { COST_CLIENT, COST_SERVER, COST_ENDS };

enum cost_shape {
	COST_ONEWAY, /* the client sends a window, the server receives it */
	COST_RPC,    /* the server replies to every message with one of the same size */
	COST_PUT,    /* the client writes a window into the server's memory, which does nothing */
	COST_GET,    /* the client reads a window from there */
};

struct cost_conf {
	enum cost_shape shape;
	size_t size; /* bytes of a message */
	int window;  /* messages in flight */
	long rounds; /* windows */
};

/** Counters that the transport advances for each end, as operations complete. */
struct cost_end {
	long sent, received, accessed;
};

/** Two connected ends. First member of the transport's struct. */
struct cost_pair {
	struct cost_end end[COST_ENDS];
};

/*
 * Interface that a transport implements. `slot` is below the number of slots passed to
 * cost_pair_open, and selects the context of the operation.
 */
extern const char *const cost_transport; /* "fi_cost_bench" */
/**
 * Opens two connected ends. `name` selects the provider; NULL: the transport's default. `accesses`:
 * for remote memory access, too.
 */
struct cost_pair *cost_pair_open(const char *name, int window, bool accesses);
void cost_pair_close(struct cost_pair *pair);
/** Sends a message. Returns false if there is no room until the other end has replied. */
bool cost_send(struct cost_pair *pair, int end, const void *buf, size_t len, int slot);
void cost_recv(struct cost_pair *pair, int end, void *buf, size_t len, int slot);
/** Makes progress at one end once. */
void cost_progress(struct cost_pair *pair, int end);

/** Remote memory access by the client. Buffers lie in the registered memory of their ends. */
struct cost_access_ops {
	/** Registers `local` of the client and `remote` of the server, of `len` bytes each. */
	void (*open)(struct cost_pair *pair, void *local, void *remote, size_t len);
	void (*close)(struct cost_pair *pair);
	/**
	 * Starts an access of `len` bytes at `off` of both. `more`: another one follows at once.
	 * Returns false if there is no room until the client has made progress.
	 */
	bool (*start)(struct cost_pair *pair, bool put, size_t off, size_t len, int slot,
		      bool more);
	/** Called once after each window. NULL: nothing is to do. */
	void (*finish)(struct cost_pair *pair);
};
extern const struct cost_access_ops *const cost_accesses; /* NULL: the transport has none */

/** Moves a window by accesses (cost_access.c). */
void cost_access_window(struct cost_pair *pair, const struct cost_conf *conf);
/** Returns the number of times that the server had to make progress for accesses to end. */
long cost_access_helped(void);

/* cost_clock.c. Between stop and start, the time depends only on the number of clock reads. */
void cost_clock_stop(void);
void cost_clock_start(void);

/* cost.c */
_Noreturn void cost_die(const char *what, const char *why);

#endif
