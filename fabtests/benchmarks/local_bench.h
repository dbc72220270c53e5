/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Channels that local_bench drives, one after the other in the same loop: those of
 * libcopyrpc-local, rings of Concurrency Kit, a Unix socket pair for each client.
 *
 * The parent prepares a channel; then the server and each client open their ends, as threads of the
 * parent or as processes forked from it. No function blocks, except those that open.
 */
#ifndef LOCAL_BENCH_H
#define LOCAL_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define LB_CLIENTS 16
#define LB_BYTES   256
#define LB_BATCH   64

/** Case that is measured. take: requests that a server of the library takes before it replies. */
struct lb_case {
	unsigned int clients, depth, bytes, take;
};

/** Functions of a channel. */
struct lb_channel {
	const char *name;
	bool threads_only;
	void (*prepare)(const struct lb_case *c);
	void (*open_server)(void);
	void (*open_client)(unsigned int client);
	/* Takes what there is and replies with the same bytes. Returns the number. */
	int (*serve)(void);
	/* Sends a call. more: another one follows at once. Returns false if there is no room. */
	bool (*call)(unsigned int client, const void *data, bool more);
	/* Hands each response to lb_check. Returns the number. */
	int (*poll)(unsigned int client);
	void (*close_client)(unsigned int client);
	void (*close_server)(void);
	void (*release)(void); /* in the parent, at the end */
};

extern const struct lb_channel lb_delegation, lb_ipc, lb_flux, lb_socket;
#ifdef LB_CK
extern const struct lb_channel lb_ck_spsc, lb_ck_mpmc, lb_ck_mpsc, lb_ck_value;
#endif

/** Result of a run. */
struct lb_result {
	double rate;   /* requests per second */
	double yields; /* per request, of all sides */
};

/** Calls until `depth` calls are in flight. Returns how many they are. */
unsigned int lb_fill(const struct lb_channel *channel, const struct lb_case *c, unsigned int client,
		     const unsigned char *bytes, unsigned int in_flight);

/** Measures with one thread as clients and server, in requests per second of processor time. */
struct lb_result lb_turns_measure(const struct lb_channel *channel, const struct lb_case *c,
				  double seconds);

/**
 * Raises SIGUSR2 before and after a part of each turn: "calls", "serve", "polls", otherwise
 * nothing. Returns the number of requests.
 */
unsigned int lb_turns_count(const struct lb_channel *channel, const struct lb_case *c,
			    const char *part);

/** Returns the time in seconds. */
double lb_now(clockid_t clock);

/** Checks a response of `client`. */
void lb_check(unsigned int client, const void *data, size_t len);

/** Ends the program if `ret` is negative. */
int lb_must(int ret, const char *what);

/** Returns zeroed memory that forked children share. */
void *lb_share(size_t len);

#endif
