/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Who owns the control thread? The first engine of the process starts it, the last one stops it. */
#ifndef ENG_NODE_H
#define ENG_NODE_H

struct cm_node;

int eng_node_get(struct cm_node **node);
void eng_node_put(void);
/** Stops the thread for good, as cm_node_halt. */
void eng_node_halt(void);

#endif
