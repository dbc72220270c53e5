/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Server of a delegation or ipc channel and its clients as it sees them. Included by the files of
 * the server only: crl_server.c (open, close), crl_accept.c (clients come and go), crl_take.c
 * (requests and replies), crl_wait.c (sleep).
 *
 * All of it is private memory of the thread that uses the server.
 */
#ifndef LOCAL_CRL_SERVER_H
#define LOCAL_CRL_SERVER_H

#include <copyrpc/local.h>
#include <stdbool.h>
#include <stdint.h>

#include "local/crl_callee.h"
#include "local/crl_hello.h"
#include "local/crl_mem.h"
#include "local/crl_sleep.h"
#include "local/crl_sock.h"
#include "local/crl_tokens.h"

/** Client. */
struct crl_peer {
	struct crl_callee callee;
	struct crl_control *control; /* NULL: the client is gone, requests are still open */
	struct crl_waker waker;
	struct crl_mem mem;
	int sock, pidfd;
	uint32_t id;
	uint32_t generation; /* of the id */
	uint32_t live_idx;   /* place in crl_server.live */
	uint32_t armed;      /* of the server at the last look at `sock`: crl_sleep_count */
};

struct crl_server {
	enum crl_kind kind;
	struct crl_options options;
	struct crl_shape shape;
	struct crl_tokens tokens;
	struct crl_sleep sleep;

	struct crl_peer **peers; /* by id */
	uint32_t *generations;   /* by id */
	uint32_t *handles;       /* by id: generation of the next client's handles */
	uint32_t *free_ids;      /* stack */
	uint32_t free_cnt;
	struct crl_peer **live; /* connected clients */
	uint32_t live_cnt;

	uint32_t start;           /* where in `live` the next look begins */
	struct crl_peer *current; /* delegation: client whose requests are being taken */
	uint32_t budget;          /* how many of them may still be taken in a row */
	bool sweep;               /* delegation: look at every client once */
	uint32_t late;            /* delegation: takes that begin with a look at one client */
	uint32_t suspect;         /* delegation: takes for which each one looks at every client */

	uint32_t takes; /* since the clock was read */
	uint64_t events_ns, sweep_ns;
	struct crl_counters counters;

	struct crl_mem page, shared;
	uint32_t process; /* crl_fork_id of the process that opened the server */
	int epoll, listener;
	int spare; /* descriptor to give up where there is no other for a client; -1: none */
	char *name;
	struct crl_sock_file file; /* the file of `name` */
};

/** Handles what happened on the descriptors: clients come and go, wakeups. */
void crl_accept_events(struct crl_server *server);

/** Adds a descriptor to those that wake the server. Returns 0 or a negative errno. */
int crl_accept_watch_listener(struct crl_server *server);

/** Disconnects a client. Frees it with its last open request. */
void crl_accept_drop(struct crl_server *server, struct crl_peer *peer);

/** Closes the descriptors of a client that a forked child has, and frees the child's copy of it. */
void crl_accept_forget(struct crl_peer *peer);

/** Frees a client that is gone and has no open request. */
void crl_accept_free(struct crl_server *server, struct crl_peer *peer);

/** Returns true if any client has requests, whether or not it has a token out. */
bool crl_take_any(const struct crl_server *server);

/** Returns true if crl_server_take would find something, by the cheapest look. */
bool crl_take_ready(const struct crl_server *server);

#endif
