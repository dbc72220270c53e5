/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Transport over unreliable datagrams (UD) of a ConnectX, with the mlx5 driver in user space. */
#include "dev/mlx5/m5.h"
#include "dev/mlx5/m5_ud.h"
#include "erpc/transport/erpc_outage.h"
#include "erpc/transport/erpc_transport.h"
#include "wire/wire_cm.h"

#define ERPC_MLX5_RATE 3.125e9 /* bytes per second: a session at this rate is not paced */

static int erpc_mlx5_probe(struct dev_about *about)
{
	return m5_dev_ops.probe ? m5_dev_ops.probe(about) : 0;
}

static const struct erpc_transport_dev erpc_mlx5_dev = {
	.dgram = &m5_dgram_ops,
	.dev = &m5_dev_ops,
	.rx_cnt = 2048,
	.tx_cnt = 256,
	.link_rate = ERPC_MLX5_RATE,
};

static int erpc_mlx5_open(struct eng_transport *transport)
{
	return erpc_transport_open(transport, &erpc_mlx5_dev);
}

const struct eng_transport_ops erpc_transport_mlx5 =
	ERPC_TRANSPORT_OPS(WIRE_CM_PATH_UD, "mlx5", erpc_mlx5_open, .probe = erpc_mlx5_probe,
			   .health = erpc_outage_health, .reopen = erpc_outage_reopen);
