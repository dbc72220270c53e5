/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Pair of connections with rails: see rail_pair.h. */
#include "rail_pair.h"

#include <criterion/criterion.h>

static void rail_pair_start_dev(struct fake_dev *dev)
{
	dev->eager = true;
	dev->registers = true;
	dev->get_later = true;
}

void rail_pair_start(struct ring_pair *pair, bool ack, const struct core_upcalls *up)
{
	const struct ring_pair_cfg cfg = {
		.ack = ack, .rails = true, .rx_len = { 4096, 4096 }, .seed = 1
	};

	ring_pair_init(pair, &cfg, up);
	for (int i = 0; i < 2; i++) {
		struct ring_end *end = &pair->end[i];

		ring_end_transport(end)->dev_ops = &fake_nic_ops;
		rail_pair_start_dev(&end->dev);
		rail_pair_start_dev(&end->second);
		end->conn.eng.attached = true;
		end->conn.eng.up_reported = true;
		end->engine.event_fd = -1;
	}
}

void rail_pair_finish(struct ring_pair *pair)
{
	for (int i = 0; i < 2; i++) {
		struct ring_end *end = &pair->end[i];

		cr_expect_eq(end->dev.mem_cnt, 0);
		if (end->conn.rail)
			ring_rail_free(&end->conn);
		cr_expect_eq(end->second.mem_cnt, 0);
		cr_expect(util_list_is_empty(&end->rails.waiting));
		cr_expect(util_list_is_empty(&end->rails.taking));
	}
	ring_pair_fini(pair);
}
