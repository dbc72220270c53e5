/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Control thread of the process: started by the first engine, stopped by the last. A forked child
 * inherits none: its first engine starts another one.
 */
#ifndef ENGINE_ENG_NODE_H
#define ENGINE_ENG_NODE_H

struct cm_node;

int eng_node_get(struct cm_node **node);
/** Releases a reference. Leaves an inherited node as it is. */
void eng_node_put(struct cm_node *node);
/** Stops the thread for good, like cm_node_halt. */
void eng_node_halt(void);
/**
 * Registers the fork handlers of this file and cm/. Handlers registered later take their locks
 * first.
 */
void eng_node_guard_fork(void);

#endif
