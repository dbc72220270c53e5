/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Who waits for packets and deadlines? The control thread.
 *
 * One mutex guards everything below a node: ceps, peers, conns, timers. The thread holds it
 * except while it waits. It waits in epoll_wait, without limit when nothing is due: an idle node
 * costs nothing.
 *
 * What epoll points at (struct cm_src) may be closed by another thread while an event for it is on
 * its way out of epoll_wait. So memory that holds a cm_src is buried, not freed: the thread frees it when
 * it has no event in hand (a pass). cm_node_wait_pass waits for that moment.
 *
 * The thread blocks signals (util/sig.h), is called "copyrpc-cm", and is joined by cm_node_close.
 * Shown by test/unit/cm/node/test_cm_node.c.
 */
#ifndef CM_CM_NODE_H
#define CM_CM_NODE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "cm/cm.h"
#include "cm/base/cm_mac.h"
#include "cm/base/cm_timer.h"
#include "util/list.h"

/** A descriptor in the node's epoll set. */
struct cm_src {
	int fd;                /* -1: not open */
	struct util_list link; /* node->srcs, while open */
	void (*ready)(struct cm_src *src, uint32_t events);
};

/** Memory that waits for the next pass. Embedded in what `mem` points at. */
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
	bool is_woken;     /* wake holds a count */
	uint64_t pass_cnt; /* moments without an event in hand */
	uint64_t sleep_ns; /* the thread sleeps until then; 0: it is awake */
	struct cm_timers timers;
	struct util_list srcs; /* cm_src.link: all that is open */
	struct util_list zombies;
	struct util_list fork_link; /* cm_fork.c's */
	unsigned cep_cnt;
	struct cm_mac_key key;
	uint64_t peer_timeout_ns;
	struct cm_cfg cfg; /* job_key is not kept */
};

/** In a forked child, under the lock: closes the copies of all descriptors and makes the lock new. */
void cm_node_become_inert(struct cm_node *node);

void cm_node_lock(struct cm_node *node);
void cm_node_unlock(struct cm_node *node);

/** Everything below: with the lock held. */
void cm_src_init(struct cm_src *src, void (*ready)(struct cm_src *src, uint32_t events));
/** Takes `fd` over and watches it for input: 0, or -FI_E* (then fd stays the caller's). */
int cm_src_open(struct cm_node *node, struct cm_src *src, int fd);
/** Stops and restarts the watching. */
void cm_src_pause(struct cm_node *node, struct cm_src *src);
void cm_src_resume(struct cm_node *node, struct cm_src *src);
/** Gives the descriptor back, unwatched: -1 if there is none. */
int cm_src_release(struct cm_node *node, struct cm_src *src);
/** Ends the connection for all copies of the descriptor too, and closes ours. */
void cm_src_close(struct cm_node *node, struct cm_src *src);

/** As cm_timer_arm, and the thread is woken if it would sleep too long. */
void cm_node_arm(struct cm_node *node, struct cm_timer *timer, uint64_t at_ns);
void cm_node_disarm(struct cm_node *node, struct cm_timer *timer);

void cm_node_defer_free(struct cm_node *node, struct cm_zombie *zombie, void *mem);
/** Lets go of the lock until the thread has no event in hand. Not from the control thread. */
void cm_node_wait_pass(struct cm_node *node);

#endif
