/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Interposed registrations: see reg_seen.h. */
#include "reg_seen.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct reg_seen seen[REG_SEEN_MAX];
static size_t cnt;

static void *next(const char *name)
{
	void *found = dlsym(RTLD_NEXT, name);

	if (!found) {
		fprintf(stderr, "reg_seen: libibverbs has no %s\n", name);
		abort();
	}
	return found;
}

/** Makes space by removing deregistered entries. */
static void forget(void)
{
	size_t i, left = 0;

	for (i = 0; i < cnt; i++)
		if (seen[i].mr)
			seen[left++] = seen[i];
	cnt = left;
	if (cnt < REG_SEEN_MAX)
		return;
	fprintf(stderr, "reg_seen: more than %u registrations at a time\n", REG_SEEN_MAX);
	abort();
}

static void note(struct ibv_mr *mr, struct ibv_pd *pd, void *addr, size_t len, unsigned access)
{
	pthread_mutex_lock(&lock);
	if (cnt == REG_SEEN_MAX)
		forget();
	seen[cnt++] = (struct reg_seen){ mr, pd, addr, len, access };
	pthread_mutex_unlock(&lock);
}

/* Called by the macro ibv_reg_mr for flags that a kernel may ignore. */
struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova,
				unsigned access)
{
	struct ibv_mr *(*real)(struct ibv_pd *, void *, size_t, uint64_t, unsigned) =
		(__typeof__(real))next("ibv_reg_mr_iova2");
	struct ibv_mr *mr = real(pd, addr, len, iova, access);

	if (mr)
		note(mr, pd, addr, len, access);
	return mr;
}

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t len, int access)
{
	struct ibv_mr *(*real)(struct ibv_pd *, void *, size_t, int) =
		(__typeof__(real))next("ibv_reg_mr");
	struct ibv_mr *mr = real(pd, addr, len, access);

	if (mr)
		note(mr, pd, addr, len, (unsigned)access);
	return mr;
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	int (*real)(struct ibv_mr *) = (__typeof__(real))next("ibv_dereg_mr");
	size_t i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < cnt; i++)
		if (seen[i].mr == mr)
			seen[i].mr = NULL;
	pthread_mutex_unlock(&lock);
	return real(mr);
}

size_t reg_seen_cnt(void)
{
	size_t found;

	pthread_mutex_lock(&lock);
	found = cnt;
	pthread_mutex_unlock(&lock);
	return found;
}

struct reg_seen reg_seen_at(size_t idx)
{
	struct reg_seen found;

	pthread_mutex_lock(&lock);
	found = seen[idx];
	pthread_mutex_unlock(&lock);
	return found;
}

unsigned reg_seen_access(const void *addr)
{
	const char *at = addr;
	unsigned access = 0;
	size_t i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < cnt; i++)
		if (seen[i].mr && at >= seen[i].addr && at < seen[i].addr + seen[i].len)
			access = seen[i].access;
	pthread_mutex_unlock(&lock);
	return access;
}
