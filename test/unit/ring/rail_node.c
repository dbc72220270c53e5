/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Process with two fake devices: see rail_node.h. */
#include "rail_node.h"

#include <criterion/criterion.h>
#include <string.h>

#include "ring/ring_takeover.h"
#include "util/clock.h"
#include "util/param.h"
#include "wire/wire_cm.h"

static const struct core_chan_ops no_chan_ops;

void rail_node_params(void)
{
	memset(&util_params, 0, sizeof(util_params));
	util_params.mem = 256u << 20;
	util_params.ring_size = 4096;
	util_params.rails = 2;
}

void rail_node_open(struct rail_node *node)
{
	memset(node, 0, sizeof(*node));
	node->features = WIRE_CM_FEATURE_RAILS;
	node->transport = ring_transport_of(eng_transport_at(&node->engine, 0));
	node->transport->eng.engine = &node->engine;
	node->transport->eng.ops = &ring_pair_staged_transport;
	node->engine.transport_cnt = 1;
	util_list_init(&node->engine.failed);
	node->ep.stats = &node->ep.unread;
	node->eep.engine = &node->engine;
	node->eep.ep = &node->ep;
	cr_assert_eq(ring_transport_open(&node->transport->eng, &fake_nic_ops, &no_chan_ops,
					 &ring_pair_nic_transport),
		     0);
}

int rail_node_prepare(struct rail_node *node, const struct core_upcalls *up,
		      struct cm_params *params, struct ring_conn **out)
{
	struct eng_conn *conn;
	int ret;

	*params = (struct cm_params){ .features = node->features };
	ret = ring_setup_prepare(&node->transport->eng, &node->eep, NULL, ENG_SIZE_DEFAULT, params,
				 &conn);
	if (ret)
		return ret;
	conn->up = up;
	conn->eep = &node->eep;
	conn->ep = &node->ep;
	util_list_init(&conn->fail_link);
	util_list_init(&conn->conn_link);
	*out = ring_conn_of(&conn->chan);
	return 0;
}

void rail_node_poll(struct rail_node *node)
{
	bool more = ring_pair_nic_transport.poll(&node->transport->eng);

	ring_takeover_work(node->transport->rails, !more);
	ring_rails_poll(node->transport);
}

struct fake_dev *rail_node_fake(struct dev *dev)
{
	cr_assert_not_null(dev);
	return (struct fake_dev *)dev;
}

int rail_node_health(struct rail_node *node)
{
	return ring_transport_health(&node->transport->eng);
}

int rail_node_health_later(struct rail_node *node)
{
	node->transport->rails->open_ns = util_clock_ns();
	return rail_node_health(node);
}

int rail_node_reopen(struct rail_node *node)
{
	return ring_transport_reopen(&node->transport->eng);
}

void rail_nodes_connect(struct rail_node nodes[2], const struct core_upcalls *up,
			struct ring_conn *conns[2])
{
	struct cm_params params[2];

	for (int i = 0; i < 2; i++)
		cr_assert_eq(rail_node_prepare(&nodes[i], up, &params[i], &conns[i]), 0);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(ring_setup_establish(&conns[i]->eng, &params[!i]), 0);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(ring_life_attach(&conns[i]->eng), 0);
}
