/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Addresses of a node, computed equally in every process. */
#ifndef MDL_NODE_H
#define MDL_NODE_H

#include "model/fabric/mdl_objects.h"

/* Fills a zeroed node. */
void mdl_node_fill(struct mdl_node *node, uint32_t index, enum mdl_link link);

#endif /* MDL_NODE_H */
