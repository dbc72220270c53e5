/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Requests that a daemon has taken and not yet replied to, and the queues in which they wait for
 * room towards their destination. Owned by one daemon thread.
 *
 * A queue for each destination is what keeps a node that does not respond from delaying requests
 * to the others. Nothing bounds its length here: the clients' depth does.
 */
#ifndef KV_PENDING_H
#define KV_PENDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "kv_net.h"

/** Channel by which a request came, and by which its response leaves. */
enum kv_source {
	KV_FROM_RING,   /* a client, by the delegation ring */
	KV_FROM_IPC,    /* a client, by its own ring */
	KV_FROM_MEMBER, /* another daemon of this node */
	KV_FROM_NET,    /* another node */
};

struct kv_pending {
	enum kv_source source;
	uint64_t handle;           /* unless from the net */
	struct kv_net_request net; /* if from the net */
	const void *data;          /* the channel's until the reply */
	size_t len;
	struct kv_pending *next; /* in a queue or in the pool */
};

struct kv_pending_pool {
	struct kv_pending *unused;
};

struct kv_pending_queue {
	struct kv_pending *first, *last; /* NULL if empty */
};

/** Returns a copy of `from`, or NULL without memory. */
static inline struct kv_pending *kv_pending_alloc(struct kv_pending_pool *pool,
						  const struct kv_pending *from)
{
	struct kv_pending *pending = pool->unused;

	if (pending)
		pool->unused = pending->next;
	else
		pending = malloc(sizeof(*pending));
	if (pending) {
		*pending = *from;
		pending->next = NULL;
	}
	return pending;
}

static inline void kv_pending_release(struct kv_pending_pool *pool, struct kv_pending *pending)
{
	pending->next = pool->unused;
	pool->unused = pending;
}

/** Frees the memory of all that were released. */
static inline void kv_pending_pool_fini(struct kv_pending_pool *pool)
{
	while (pool->unused) {
		struct kv_pending *next = pool->unused->next;

		free(pool->unused);
		pool->unused = next;
	}
}

static inline void kv_pending_push(struct kv_pending_queue *queue, struct kv_pending *pending)
{
	pending->next = NULL;
	if (queue->first)
		queue->last->next = pending;
	else
		queue->first = pending;
	queue->last = pending;
}

static inline struct kv_pending *kv_pending_pop(struct kv_pending_queue *queue)
{
	struct kv_pending *pending = queue->first;

	if (pending)
		queue->first = pending->next;
	return pending;
}

#endif
