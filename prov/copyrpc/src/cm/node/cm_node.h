/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Node: the control thread, its epoll set and timers.
 *
 * One mutex guards everything below a node: CM endpoints, peers, conns, timers. The thread releases
 * it only while it waits in epoll_wait, without a timeout if no timer is armed, so an idle node
 * costs nothing.
 *
 * Another thread may close a cm_src while epoll_wait is returning an event for it. So memory that
 * contains a cm_src is freed later (cm_node_defer_free): by the thread, when it handles no event (a
 * pass). cm_node_wait_pass waits for the next pass.
 *
 * The thread blocks signals (util/sig.h), is named "copyrpc-cm", and is joined by cm_node_close.
 */
#ifndef CM_NODE_CM_NODE_H
#define CM_NODE_CM_NODE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "cm/base/cm.h"
#include "cm/base/cm_mac.h"
#include "cm/base/cm_timer.h"
#include "util/list.h"

#define CM_PAUSE_MS  50u
#define CM_PAUSE_MAX 1000u

/** Descriptor in the node's epoll set. */
struct cm_src {
	int fd;                /* -1: not open */
	struct util_list link; /* node->srcs, while open */
	void (*ready)(struct cm_src *src, uint32_t events);
};

/** Entry in the list of deferred frees. Embedded in the object at `mem`. */
struct cm_zombie {
	struct util_list link;
	void *mem;
};

struct cm_node {
	pthread_mutex_t lock;
	pthread_cond_t passed;
	pthread_t thread;
	int epoll_fd;
	struct cm_src wake; /* eventfd */
	bool is_stopping;
	bool is_inert;     /* in a forked child: no thread, no descriptors */
	bool is_halted;    /* the thread has ended before the node */
	bool is_woken;     /* the eventfd is signalled */
	uint64_t pass_cnt; /* passes so far */
	uint64_t sleep_ns; /* deadline of the current epoll_wait; 0: the thread runs */
	struct cm_timers timers;
	struct util_list srcs; /* cm_src.link of all open descriptors */
	struct util_list zombies;
	struct util_list fork_link; /* for cm_fork.c */
	unsigned cep_cnt;
	struct cm_mac_key key;
	uint64_t peer_timeout_ns;
	struct cm_cfg cfg; /* job_key is NULL */
};

/**
 * Called in a forked child, under the lock: closes all descriptors and initialises the lock anew.
 */
void cm_node_become_inert(struct cm_node *node);

void cm_node_lock(struct cm_node *node);
void cm_node_unlock(struct cm_node *node);

/** The functions below require the lock. */
void cm_src_init(struct cm_src *src, void (*ready)(struct cm_src *src, uint32_t events));
/**
 * Takes over `fd` and watches it for input. Returns 0, or -FI_E* with fd left to the calling
 * function.
 */
int cm_src_open(struct cm_node *node, struct cm_src *src, int fd);
/** Stop and resume watching. */
void cm_src_pause(struct cm_node *node, struct cm_src *src);
void cm_src_resume(struct cm_node *node, struct cm_src *src);
/**
 * Pauses a listening socket that cannot accept for lack of descriptors, and arms `timer` to end the
 * pause: CM_PAUSE_MS after the first failure, doubled after each further one. Warns of the first.
 */
void cm_src_back_off(struct cm_node *node, struct cm_src *src, struct cm_timer *timer,
		     uint32_t *pause_ms, int err);
/** Stops watching and returns the descriptor, or -1 if there is none. */
int cm_src_release(struct cm_node *node, struct cm_src *src);
/** Shuts down the connection, also for copies of the descriptor, and closes it. */
void cm_src_close(struct cm_node *node, struct cm_src *src);

/** Arms a timer, and wakes the thread if it would sleep too long. */
void cm_node_arm(struct cm_node *node, struct cm_timer *timer, uint64_t at_ns);
void cm_node_disarm(struct cm_node *node, struct cm_timer *timer);

void cm_node_defer_free(struct cm_node *node, struct cm_zombie *zombie, void *mem);
/** Releases the lock until the next pass. Not for the control thread. */
void cm_node_wait_pass(struct cm_node *node);

#endif
