/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The process's control thread, counted: see ring_node.h. */
#include "ring/ring_node.h"

#include <pthread.h>

#include "cm/cm.h"

static pthread_mutex_t ring_node_lock = PTHREAD_MUTEX_INITIALIZER;
static struct cm_node *ring_node;
static unsigned ring_node_refs;

int ring_node_get(struct cm_node **node)
{
	int ret = 0;

	pthread_mutex_lock(&ring_node_lock);
	if (!ring_node_refs)
		ret = cm_node_open(&ring_node);
	if (!ret) {
		ring_node_refs++;
		*node = ring_node;
	}
	pthread_mutex_unlock(&ring_node_lock);
	return ret;
}

void ring_node_halt(void)
{
	pthread_mutex_lock(&ring_node_lock);
	if (ring_node_refs)
		cm_node_halt(ring_node);
	pthread_mutex_unlock(&ring_node_lock);
}

void ring_node_put(void)
{
	pthread_mutex_lock(&ring_node_lock);
	if (!--ring_node_refs)
		cm_node_close(ring_node);
	pthread_mutex_unlock(&ring_node_lock);
}
