/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Options of a run, the same on all nodes. Read-only once parsed. */
#ifndef KV_CONF_H
#define KV_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/** How a client reaches the keys of another node. */
enum kv_backend {
	KV_DELEGATION, /* by a shared ring to daemon 0, which owns all connections */
	KV_META,       /* by the daemon of the key, and flux to the daemon with the connection */
	KV_DIRECT,     /* by connections of its own */
	KV_MPI,        /* the ring of KV_DELEGATION, and MPI messages between nodes */
	KV_BACKENDS,
};

enum kv_output {
	KV_TABLE, /* for people */
	KV_JSON,  /* a line for each run */
};

/** Fate of the last node during the middle run. */
enum kv_fate {
	KV_LIVES,
	KV_STOPS, /* SIGSTOP, and SIGCONT at the end of the run */
	KV_DIES,  /* SIGKILL at its start */
};

struct kv_conf {
	enum kv_backend backend;
	uint32_t daemons;
	uint32_t clients; /* of each node */
	bool processes;   /* clients are processes, not threads */
	uint32_t depth;   /* requests of a client in flight */
	uint64_t keys;    /* of each node */
	size_t value_len;
	double read_ratio;
	double zipf;     /* exponent; 0: uniform */
	double duration; /* seconds of a run */
	uint32_t runs;
	uint64_t seed;
	bool remote_only;  /* clients ask other nodes only */
	bool pinned;       /* client c asks one node only: the (c + 1)th behind its own */
	enum kv_fate fate; /* of the last node */
	bool cores;        /* threads are bound to cores, one after the other */
	uint32_t spin_us;  /* time without work before a thread sleeps */
	bool progress;
	enum kv_output output;
};

/** Returns the name of a back end, as the option takes it. */
const char *kv_backend_name(enum kv_backend backend);

/** Returns the run, counted from 0, during which the last node stops or dies. */
static inline uint32_t kv_conf_fatal_run(const struct kv_conf *conf)
{
	return conf->runs / 2;
}

/**
 * Parses the command line. Returns 0, 1 if only help was asked for and printed, or -EINVAL with a
 * message on stderr.
 */
int kv_conf_parse(struct kv_conf *conf, int argc, char **argv);

/** Returns the longest request and response of this run, in bytes. */
size_t kv_conf_request_max(const struct kv_conf *conf);
size_t kv_conf_response_max(const struct kv_conf *conf);

#endif
