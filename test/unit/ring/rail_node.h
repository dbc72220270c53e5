/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Process with one transport of two fake devices, without an engine's loop.
 *
 * Owner: the test, one thread.
 */
#ifndef UNIT_RING_RAIL_NODE_H
#define UNIT_RING_RAIL_NODE_H

#include "cm/ep/cm_ep.h"
#include "core/core_ep.h"
#include "ring/ring_rail.h"
#include "support/ring_pair.h"

struct rail_node {
	struct core_engine engine;
	struct core_ep ep;
	struct core_engine_ep eep;
	struct ring_transport *transport;
	uint64_t features; /* Of the handshake: WIRE_CM_FEATURE_* */
};

/** Sets the parameters: two devices, small rings. */
void rail_node_params(void);
void rail_node_open(struct rail_node *node);
/** Prepares a connection as the control thread does. Returns 0 or -FI_E*. */
int rail_node_prepare(struct rail_node *node, const struct core_upcalls *up,
		      struct cm_params *params, struct ring_conn **conn);
/** Connects two nodes, to the end of the handshake, and attaches both connections. */
void rail_nodes_connect(struct rail_node nodes[2], const struct core_upcalls *up,
			struct ring_conn *conns[2]);
/** Polls both devices once. */
void rail_node_poll(struct rail_node *node);
/** Returns the fake behind a device, which there is. */
struct fake_dev *rail_node_fake(struct dev *dev);
/** Look at the devices, and open them again, as the engine does. */
int rail_node_health(struct rail_node *node);
int rail_node_reopen(struct rail_node *node);
/** Looks when the time of the next attempt to open a device has come. */
int rail_node_health_later(struct rail_node *node);

#endif
