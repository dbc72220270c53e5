/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Exposures of a connection with a rail: bytes are registered with both devices. See ring_rail.h.
 */
#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "ring/ring_rail.h"

/** Exposure of a connection with a rail. Stored in core_exposure.engine. */
struct ring_exposed {
	struct util_list link;  /* ring_rail.exposed */
	struct dev *first_dev;  /* device of the connection's link at that time, */
	struct dev_mem *first;  /* and the registration with it; NULL: it has ended */
	struct dev *second_dev; /* likewise of the rail */
	struct dev_mem *second;
};

static void ring_rail_dereg(struct ring_conn *conn, struct dev *dev, struct dev_mem **mem)
{
	if (*mem)
		ring_conn_transport(conn)->dev_ops->mem_dereg(dev, *mem);
	*mem = NULL;
}

void ring_rail_release_first(struct ring_conn *conn)
{
	struct util_list *it, *tmp;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &conn->rail->exposed) {
		struct ring_exposed *exposed = UTIL_CONTAINER_OF(it, struct ring_exposed, link);

		ring_rail_dereg(conn, exposed->first_dev, &exposed->first);
	}
}

void ring_rail_release_second(struct ring_conn *conn)
{
	struct util_list *it, *tmp;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &conn->rail->exposed) {
		struct ring_exposed *exposed = UTIL_CONTAINER_OF(it, struct ring_exposed, link);

		ring_rail_dereg(conn, exposed->second_dev, &exposed->second);
	}
}

/**
 * Registers the bytes with the second device, too: one that takes over has to reach all of them.
 */
static int ring_rail_expose_second(struct ring_conn *conn, const void *addr, size_t len,
				   struct ring_exposed *exposed)
{
	struct ring_transport *transport = ring_conn_transport(conn);

	if (!conn->rail->link || conn->rail->phase != RING_RAIL_BESIDE)
		return 0;
	exposed->second_dev = transport->rails->dev;
	return transport->dev_ops->mem_reg(exposed->second_dev, addr, len, DEV_MEM_REMOTE_READ,
					   &exposed->second);
}

int ring_rail_expose(struct ring_conn *conn, const void *addr, size_t len,
		     struct core_exposure *exposure)
{
	struct ring_exposed *exposed = calloc(1, sizeof(*exposed));
	int ret = -FI_ENOMEM;

	if (exposed)
		ret = ring_rail_expose_second(conn, addr, len, exposed);
	if (ret) {
		free(exposed);
		return ret;
	}
	exposed->first_dev = conn->dev;
	exposed->first = exposure->engine;
	exposure->engine = exposed;
	if (exposed->second)
		exposure->key |= exposed->second->remote_key << 32;
	util_list_init(&exposed->link);
	util_list_push_back(&conn->rail->exposed, &exposed->link);
	return 0;
}

void ring_rail_unexpose(struct ring_conn *conn, struct core_exposure *exposure)
{
	struct ring_exposed *exposed = exposure->engine;

	if (!exposed)
		return;
	util_list_remove(&exposed->link);
	ring_rail_dereg(conn, exposed->first_dev, &exposed->first);
	ring_rail_dereg(conn, exposed->second_dev, &exposed->second);
	exposure->engine = NULL;
	free(exposed);
}
