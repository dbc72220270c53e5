/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The engines by name: see cpr_engine.h. */
#include "ofi/cpr_engine.h"

#include <rdma/fi_errno.h>

#include "ofi/cpr_nic.h"
#include "ring/ring_engine.h"
#include "ring/ring_node.h"
#include "util/param.h"

const struct core_engine_ops *cpr_engine_rc(void)
{
	return ring_engine_rc();
}

int cpr_engine_get_cm(struct cm_node **cm)
{
	return ring_node_get(cm);
}

void cpr_engine_halt_cm(void)
{
	ring_node_halt();
}

void cpr_engine_put_cm(void)
{
	ring_node_put();
}

int cpr_engine_check(void)
{
	static bool told;
	struct ring_paths paths;

	if (!ring_paths_read(util_params.paths, !told, &paths))
		return 0;
	told = true;
	return -FI_ENODATA;
}

int cpr_engine_nic(struct fid_nic **nic)
{
	struct ring_paths paths;

	*nic = NULL;
	if (ring_paths_read(util_params.paths, false, &paths) || !paths.nic)
		return 0;
	return cpr_nic_make(&paths.about, paths.nic->dev_ops->name, nic);
}
