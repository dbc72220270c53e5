/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Who owns the control thread? The first engine of the process starts it, the last one stops it. A forked child
 * has none of its parent's: its first engine starts another one.
 */
#ifndef ENG_NODE_H
#define ENG_NODE_H

struct cm_node;

int eng_node_get(struct cm_node **node);
/** One that was inherited stays as it is. */
void eng_node_put(struct cm_node *node);
/** Stops the thread for good, as cm_node_halt. */
void eng_node_halt(void);
/** From now on this and cm/ stand forks; what calls pthread_atfork behind it has the outer locks. */
void eng_node_guard_fork(void);

#endif
