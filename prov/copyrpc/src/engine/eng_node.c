/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Reference-counted control thread of the process: see eng_node.h. */
#include "engine/eng_node.h"

#include <pthread.h>

#include "cm/base/cm.h"
#include "util/stats.h"

static pthread_mutex_t eng_node_lock = PTHREAD_MUTEX_INITIALIZER;
static struct cm_node *eng_node;
static unsigned eng_node_refs;

/*
 * Resets the state in a forked child. Another thread may have held the lock at the fork; the
 * inherited node is a zombie (cm_fork.h) and stays.
 */
static void eng_node_in_child(void)
{
	pthread_mutex_init(&eng_node_lock, NULL);
	eng_node = NULL;
	eng_node_refs = 0;
}

static void eng_node_guard_once(void)
{
	/* Handlers registered later lock first: the lock of the statistics is the innermost one. */
	util_stats_guard_fork();
	cm_guard_fork();
	pthread_atfork(NULL, NULL, eng_node_in_child);
}

void eng_node_guard_fork(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, eng_node_guard_once);
}

int eng_node_get(struct cm_node **node)
{
	int ret = 0;

	eng_node_guard_fork();
	pthread_mutex_lock(&eng_node_lock);
	if (!eng_node_refs)
		ret = cm_node_open(&eng_node);
	if (!ret) {
		eng_node_refs++;
		*node = eng_node;
	}
	pthread_mutex_unlock(&eng_node_lock);
	return ret;
}

void eng_node_halt(void)
{
	pthread_mutex_lock(&eng_node_lock);
	if (eng_node_refs)
		cm_node_halt(eng_node);
	pthread_mutex_unlock(&eng_node_lock);
}

void eng_node_put(struct cm_node *node)
{
	pthread_mutex_lock(&eng_node_lock);
	if (node == eng_node && !--eng_node_refs)
		cm_node_close(eng_node);
	pthread_mutex_unlock(&eng_node_lock);
}
