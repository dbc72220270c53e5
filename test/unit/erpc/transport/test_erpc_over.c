/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Transports by device: their description, and open where the device exists. */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "erpc/transport/erpc_transport.h"
#include "wire/wire_cm.h"

static union eng_transport_space room;

/** Opens the transport and closes it again. Returns the result of open. */
static int try_open(const struct eng_transport_ops *ops)
{
	int ret;

	memset(&room, 0, sizeof(room));
	room.transport.ops = ops;
	ret = ops->open(&room.transport);
	if (!ret) {
		const struct erpc_transport *transport =
			(const struct erpc_transport *)&room.transport;

		cr_expect_geq(ops->wait_fd(&room.transport), 0);
		cr_expect_geq(transport->cfg->rx_cnt, 2 * ERPC_CREDITS_MAX);
		cr_expect_leq(transport->cfg->rx_cnt, DEV_DGRAM_CNT_MAX);
		cr_expect_eq(ops->arm(&room.transport), 0, "no endpoint prevents sleep");
		ops->disarm(&room.transport);
		ops->close(&room.transport);
	}
	return ret;
}

static void expect_rdma(const struct eng_transport_ops *ops, const char *name)
{
	struct dev_about about;
	int ret = ops->probe(&about);

	cr_expect_str_eq(ops->name, name);
	cr_expect_eq(ops->path, WIRE_CM_PATH_UD);
	if (ret)
		cr_expect_neq(try_open(ops), 0, "%s: open without a device", name);
}

Test(erpc_over_udp, is_always_available)
{
	cr_expect_str_eq(erpc_transport_udp.name, "udp");
	cr_expect_eq(erpc_transport_udp.path, WIRE_CM_PATH_UDP);
	cr_expect_eq(erpc_transport_udp.probe, NULL);
	cr_expect_eq(try_open(&erpc_transport_udp), 0);
}

Test(erpc_over_mlx5, opens_where_there_is_a_device)
{
	expect_rdma(&erpc_transport_mlx5, "mlx5");
}

Test(erpc_over_verbs, opens_where_there_is_a_device)
{
	expect_rdma(&erpc_transport_verbs, "verbs");
}
