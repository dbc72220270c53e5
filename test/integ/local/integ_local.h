/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Helpers of the programs that test local channels with several processes. */
#ifndef INTEG_LOCAL_H
#define INTEG_LOCAL_H

#include <copyrpc/local.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define LOCAL_LIMIT_MS 60000 /* for what takes milliseconds on a quiet machine */
#define LOCAL_LIMIT_NS (LOCAL_LIMIT_MS * 1000000ull)

#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s:%d: not true: %s (errno %d)\n", __FILE__, __LINE__,    \
				#cond, errno);                                                     \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static inline uint64_t local_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline void local_nap_us(long us)
{
	struct timespec ts = { us / 1000000, us % 1000000 * 1000 };

	nanosleep(&ts, NULL);
}

/* Returns zeroed memory that this process and its children share. */
static inline void *local_board(size_t len)
{
	void *mem = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(mem != MAP_FAILED);
	return mem;
}

/* Forks a child that ends with its parent. */
static inline pid_t local_fork(void)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

/* Connects, perhaps before the server has opened its name or while all places are taken. */
static inline struct crl_client *local_open(const char *server)
{
	uint64_t limit = local_now_ns() + LOCAL_LIMIT_NS;
	struct crl_client *client;
	int ret;

	while ((ret = crl_client_open(&client, server, LOCAL_LIMIT_MS)) == -ECONNREFUSED ||
	       ret == -ENOENT || ret == -EUSERS) {
		CHECK(local_now_ns() < limit);
		local_nap_us(1000);
	}
	CHECK(!ret);
	return client;
}

#endif
