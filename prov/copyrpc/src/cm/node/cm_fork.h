/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What may a forked child do with our sockets? Nothing.
 *
 * A child that is not replaced by another program keeps copies of every descriptor. With them it
 * could say BYE in its parent's name, and its mere existence would hide its parent's death from the
 * peers. So fork waits until no node is in the middle of something, and the child closes the copies
 * before it runs on: its nodes are inerts that can be closed and do nothing else.
 *
 * Shown by test/unit/cm/node/test_cm_fork.c.
 */
#ifndef CM_CM_FORK_H
#define CM_CM_FORK_H

struct cm_node;

/** Enters a node that is ready, and takes it out before it ends. */
void cm_fork_add(struct cm_node *node);
void cm_fork_remove(struct cm_node *node);

#endif
