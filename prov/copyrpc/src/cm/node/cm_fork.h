/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fork handlers for all nodes of the process.
 *
 * A forked child that does not exec keeps copies of all descriptors. It could send BYE for its
 * parent, and its copies would hide the parent's death from the peers. So fork waits until no node
 * handles an event, and the child closes the copies at once. Its nodes are inert: they can be
 * closed, and do nothing else.
 */
#ifndef CM_NODE_CM_FORK_H
#define CM_NODE_CM_FORK_H

struct cm_node;

/** Registers a running node, and removes it before it ends. */
void cm_fork_add(struct cm_node *node);
void cm_fork_remove(struct cm_node *node);

#endif
