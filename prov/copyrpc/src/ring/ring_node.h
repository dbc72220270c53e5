/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Who owns the control thread? The first engine of the process starts it, the last one stops it. */
#ifndef RING_NODE_H
#define RING_NODE_H

struct cm_node;

int ring_node_get(struct cm_node **node);
void ring_node_put(void);
/** Stops the thread for good, as cm_node_halt. */
void ring_node_halt(void);

#endif
