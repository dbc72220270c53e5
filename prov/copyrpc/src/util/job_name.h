/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Identity of a process of a job, for people: log lines, statistics, copyrpc_top. util_job_self in
 * util/job.h has that of this process. Without libfabric. Any thread.
 *
 * Tested by test/unit/util/test_job_name.c.
 */
#ifndef UTIL_JOB_NAME_H
#define UTIL_JOB_NAME_H

#include <stdbool.h>
#include <stdint.h>

#define UTIL_JOB_HOST_LEN 64u

/** Identity of a process, for people. A peer may state any: nothing is decided by it. */
struct util_job_name {
	int32_t rank;                 /* -1: unknown */
	int32_t pid;                  /* in its own PID namespace; 0: unknown */
	char host[UTIL_JOB_HOST_LEN]; /* letters, digits and "._-", ended by 0; may be empty */
};

/** Returns true if a host's name may contain this character. */
static inline bool util_job_is_host_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '.' || c == '_' || c == '-';
}

/**
 * Returns the identity that a peer stated (NULL: none). The kernel's word for the number of its
 * process goes before the peer's own, unless `pid` is 0.
 */
struct util_job_name util_job_peer(const struct util_job_name *stated, int32_t pid);

#define UTIL_JOB_TEXT_LEN 128u

/**
 * Writes what is known of an identity: "rank 17 (node7, pid 4711)", or without a rank "pid 4711 on
 * node7". Parts that are unknown are left out; if all are, the text is empty. Returns `text`.
 */
char *util_job_text(const struct util_job_name *name, char text[UTIL_JOB_TEXT_LEN]);

#endif
