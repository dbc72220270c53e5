/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A lane's device, and how it sleeps: see ring_lane.h. */
#include "ring/ring_lane.h"

#include <rdma/fi_errno.h>

#include "ring/ring_call.h"
#include "ring/ring_late.h"

int ring_lane_open(struct eng_lane *eng, const struct dev_ops *dev_ops,
		   const struct core_chan_ops *chan_ops)
{
	struct ring_lane *lane = ring_lane_of(eng);

	lane->dev_ops = dev_ops;
	lane->chan_ops = chan_ops;
	util_list_init(&lane->dirty);
	util_list_init(&lane->unsure);
	return dev_ops->open(&lane->dev);
}

void ring_lane_close(struct eng_lane *eng)
{
	struct ring_lane *lane = ring_lane_of(eng);

	lane->dev_ops->close(lane->dev);
}

int ring_lane_wait_fd(struct eng_lane *eng)
{
	struct ring_lane *lane = ring_lane_of(eng);

	return lane->dev_ops->wait_fd(lane->dev);
}

int ring_lane_arm(struct eng_lane *eng)
{
	struct ring_lane *lane = ring_lane_of(eng);

	if (!util_list_is_empty(&lane->dirty) || ring_late_ask_all(lane))
		return -FI_EAGAIN;
	return lane->dev_ops->arm(lane->dev);
}

void ring_lane_disarm(struct eng_lane *eng)
{
	struct ring_lane *lane = ring_lane_of(eng);

	lane->dev_ops->disarm(lane->dev);
}

size_t ring_lane_call_room(struct core_chan *chan, size_t len, uint32_t allowance)
{
	return ring_call_room(ring_conn_of(chan), len, allowance);
}
