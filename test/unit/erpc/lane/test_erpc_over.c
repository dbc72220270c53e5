/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Each device that carries sessions: its lane says what it is, and opens where the device is. */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "erpc/lane/erpc_lane.h"
#include "wire/wire_cm.h"

static union eng_lane_room room;

/** Opens it and closes it again: what open said. */
static int try_open(const struct eng_lane_ops *ops)
{
	int ret;

	memset(&room, 0, sizeof(room));
	room.lane.ops = ops;
	ret = ops->open(&room.lane);
	if (!ret) {
		const struct erpc_lane *lane = (const struct erpc_lane *)&room.lane;

		cr_expect_geq(ops->wait_fd(&room.lane), 0);
		cr_expect_geq(lane->what->rx_cnt, 2 * ERPC_CREDITS_MAX);
		cr_expect_leq(lane->what->rx_cnt, DEV_DGRAM_CNT_MAX);
		cr_expect_eq(ops->arm(&room.lane), 0, "nobody is there to wait for");
		ops->disarm(&room.lane);
		ops->close(&room.lane);
	}
	return ret;
}

static void expect_rdma(const struct eng_lane_ops *ops, const char *name)
{
	struct dev_about about;
	int ret = ops->probe(&about);

	cr_expect_str_eq(ops->name, name);
	cr_expect_eq(ops->path, WIRE_CM_PATH_UD);
	if (ret)
		cr_expect_neq(try_open(ops), 0, "%s: there is none, and it opens", name);
}

Test(erpc_over_udp, is_always_there)
{
	cr_expect_str_eq(erpc_lane_udp.name, "udp");
	cr_expect_eq(erpc_lane_udp.path, WIRE_CM_PATH_UDP);
	cr_expect_eq(erpc_lane_udp.probe, NULL);
	cr_expect_eq(try_open(&erpc_lane_udp), 0);
}

Test(erpc_over_mlx5, opens_where_there_is_a_device)
{
	expect_rdma(&erpc_lane_mlx5, "mlx5");
}

Test(erpc_over_verbs, opens_where_there_is_a_device)
{
	expect_rdma(&erpc_lane_verbs, "verbs");
}
