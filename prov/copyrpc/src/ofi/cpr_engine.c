/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The engines, composed of lanes: see cpr_engine.h. */
#include "ofi/cpr_engine.h"

#include <rdma/fi_errno.h>

#include "engine/eng_engine.h"
#include "engine/eng_node.h"
#include "ofi/cpr_nic.h"
#include "ofi/cpr_paths.h"
#include "ring/ring_lanes.h"
#include "util/param.h"

static const struct eng_lane_ops *const cpr_rc_shm[] = { &ring_lane_shm, NULL };
static const struct eng_lane_ops *const cpr_rc_nic[] = { &ring_lane_mlx5, &ring_lane_verbs, NULL };
static const struct eng_lane_ops *const cpr_rc_mlx5[] = { &ring_lane_mlx5, NULL };
static const struct eng_lane_ops *const cpr_rc_verbs[] = { &ring_lane_verbs, NULL };

static const struct cpr_path cpr_rc_paths[] = {
	{ "shm", cpr_rc_shm },
	{ "nic", cpr_rc_nic },
	{ "mlx5", cpr_rc_mlx5 },
	{ "verbs", cpr_rc_verbs },
	{ 0 },
};

static int cpr_engine_open_rc(const struct core_upcalls *up, struct core_engine **engine)
{
	struct cpr_paths paths;
	int ret = cpr_paths_read(cpr_rc_paths, util_params.paths, true, &paths);

	return ret ? ret : eng_open(&paths.lanes, up, engine);
}

/** For cpr_engine_shm_first: its progress is that lane's, so without it there is no engine. */
static int cpr_engine_open_shm(const struct core_upcalls *up, struct core_engine **engine)
{
	int ret = cpr_engine_open_rc(up, engine);

	if (ret || eng_lane_at(*engine, 0)->ops == &ring_lane_shm)
		return ret;
	eng_close(*engine);
	return -FI_ENODEV;
}

#define CPR_ENGINE(...)                                                                            \
	{                                                                                          \
		.close = eng_close, .ep_open = eng_ep_open, .ep_addr = eng_ep_addr,                \
		.ep_close = eng_ep_close, .connect = eng_connect,                                  \
		.connect_cancel = eng_connect_cancel, .dial = eng_dial, .answer = eng_answer,      \
		.wait_fd = eng_wait_fd, .arm = eng_arm, .disarm = eng_disarm, __VA_ARGS__          \
	}

/** Any lanes in any order; and those where shared memory comes first, which is called directly. */
static const struct core_engine_ops cpr_engine_any =
	CPR_ENGINE(.name = "rc", .open = cpr_engine_open_rc, .progress = eng_progress);
static const struct core_engine_ops cpr_engine_shm_first =
	CPR_ENGINE(.name = "rc/shm", .open = cpr_engine_open_shm, .progress = ring_shm_progress);

const struct core_engine_ops *cpr_engine_rc(void)
{
	struct cpr_paths paths;

	if (!cpr_paths_read(cpr_rc_paths, util_params.paths, false, &paths) &&
	    paths.lanes.ops[0] == &ring_lane_shm)
		return &cpr_engine_shm_first;
	return &cpr_engine_any;
}

int cpr_engine_get_cm(struct cm_node **cm)
{
	return eng_node_get(cm);
}

void cpr_engine_halt_cm(void)
{
	eng_node_halt();
}

void cpr_engine_put_cm(void)
{
	eng_node_put();
}

int cpr_engine_check(void)
{
	static bool told;
	struct cpr_paths paths;

	if (!cpr_paths_read(cpr_rc_paths, util_params.paths, !told, &paths))
		return 0;
	told = true;
	return -FI_ENODATA;
}

int cpr_engine_nic(struct fid_nic **nic)
{
	struct cpr_paths paths;

	*nic = NULL;
	if (cpr_paths_read(cpr_rc_paths, util_params.paths, false, &paths) || !paths.nic)
		return 0;
	return cpr_nic_make(&paths.about, paths.nic->name, nic);
}
