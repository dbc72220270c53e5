/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Datagram endpoints on UD queue pairs: of ConnectX NICs driven directly (mlx5), and of any RDMA
 * NIC through libibverbs (verbs).
 *
 * Tested by test/unit/dgram/test_dgram_over_ud.c, and on the device model by crpc_dgram.
 */
#include "dev/mlx5/m5.h"
#include "dev/mlx5/m5_ud.h"
#include "dev/verbs/vb.h"
#include "dev/verbs/vb_ud.h"
#include "dgram/dgram_engine.h"
#include "dgram/dgram_ud_addr.h"

static int dgram_ud_probe(const struct dgram_over *over, const struct sockaddr *local,
			  struct dev_about *about, uint32_t *mtu)
{
	int ret = over->dev_ops->probe(about);

	*mtu = (uint32_t)about->mtu;
	return ret;
}

static int dgram_mlx5_open(const struct core_upcalls *up, struct core_progress **base)
{
	return dgram_engine_open(&dgram_over_mlx5, base);
}

static int dgram_verbs_open(const struct core_upcalls *up, struct core_progress **base)
{
	return dgram_engine_open(&dgram_over_verbs, base);
}

static const struct core_progress_ops dgram_mlx5_progress_ops = DGRAM_PROGRESS_OPS(dgram_mlx5_open);
static const struct core_progress_ops dgram_verbs_progress_ops =
	DGRAM_PROGRESS_OPS(dgram_verbs_open);

const struct dgram_over dgram_over_mlx5 = {
	.name = "mlx5",
	.dev_ops = &m5_dev_ops,
	.ops = &m5_dgram_ops,
	.progress_ops = &dgram_mlx5_progress_ops,
	.probe = dgram_ud_probe,
	.import = dgram_ud_addr_import,
	.export = dgram_ud_addr_export,
	.port_addr = dgram_ud_addr_of_port,
};

const struct dgram_over dgram_over_verbs = {
	.name = "verbs",
	.dev_ops = &vb_dev_ops,
	.ops = &vb_dgram_ops,
	.progress_ops = &dgram_verbs_progress_ops,
	.probe = dgram_ud_probe,
	.import = dgram_ud_addr_import,
	.export = dgram_ud_addr_export,
	.port_addr = dgram_ud_addr_of_port,
};
