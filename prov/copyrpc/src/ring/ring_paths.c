/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The list of paths and the devices behind them: see ring_paths.h. */
#include "ring/ring_paths.h"

#include <rdma/fi_errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "util/log.h"
#include "wire/wire_cm.h"

const struct ring_paths ring_paths_shm = { .cnt = 1, .lane = { &ring_lane_shm } };

/** What a user may name, and who could carry it, best first. */
struct ring_path {
	const char *name;
	const struct ring_lane_ops *const *lanes;
};

static const struct ring_lane_ops *const ring_path_shm[] = { &ring_lane_shm, NULL };
static const struct ring_lane_ops *const ring_path_nic[] = { &ring_lane_mlx5, &ring_lane_verbs,
							     NULL };

static const struct ring_lane_ops *const ring_path_nic_mlx5[] = { &ring_lane_mlx5, NULL };
static const struct ring_lane_ops *const ring_path_nic_verbs[] = { &ring_lane_verbs, NULL };

static const struct ring_path ring_path_table[] = {
	{ "shm", ring_path_shm },
	{ "nic", ring_path_nic },
	{ "mlx5", ring_path_nic_mlx5 },
	{ "verbs", ring_path_nic_verbs },
};

#define RING_PATH_CNT (sizeof(ring_path_table) / sizeof(ring_path_table[0]))

static const struct ring_path *ring_path_find(const char *name, size_t len)
{
	for (size_t i = 0; i < RING_PATH_CNT; i++)
		if (strlen(ring_path_table[i].name) == len &&
		    !memcmp(ring_path_table[i].name, name, len))
			return &ring_path_table[i];
	return NULL;
}

static bool ring_paths_has(const struct ring_paths *paths, const struct ring_lane_ops *lane)
{
	for (uint32_t i = 0; i < paths->cnt; i++)
		if (paths->lane[i] == lane)
			return true;
	return false;
}

/** Is there a device for the lane? */
static bool ring_paths_probe(struct ring_paths *paths, const struct ring_lane_ops *lane)
{
	struct dev_about about;

	if (!lane->dev_ops->probe)
		return true;
	if (lane->dev_ops->probe(&about))
		return false;
	if (!paths->nic) {
		paths->nic = lane;
		paths->about = about;
	}
	return true;
}

/** Adds what there is a device for. */
static void ring_paths_add(struct ring_paths *paths, const struct ring_path *path)
{
	for (size_t i = 0; path->lanes[i] && paths->cnt < RING_PATHS_MAX; i++)
		if (!ring_paths_has(paths, path->lanes[i]) &&
		    ring_paths_probe(paths, path->lanes[i]))
			paths->lane[paths->cnt++] = path->lanes[i];
}

static int ring_paths_no_such(const char *text, const char *at, size_t len, bool tell)
{
	if (tell)
		UTIL_WARN(FABRIC,
			  "FI_COPYRPC_PATHS=%s: there is no path \"%.*s\"; write shm, nic, or both "
			  "with a comma, the better one first\n",
			  text, (int)len, at);
	return -FI_EINVAL;
}

static int ring_paths_no_device(const char *text, bool tell)
{
	if (tell)
		UTIL_WARN(FABRIC,
			  "FI_COPYRPC_PATHS=%s: there is no RDMA device here that could carry it; "
			  "look at ibv_devinfo, or leave FI_COPYRPC_PATHS unset\n",
			  text);
	return -FI_ENODEV;
}

int ring_paths_read(const char *text, bool tell, struct ring_paths *paths)
{
	const char *at = text;

	paths->nic = NULL;
	for (paths->cnt = 0;; at++) {
		size_t len = strcspn(at, ",");
		const struct ring_path *path = ring_path_find(at, len);

		if (!path)
			return ring_paths_no_such(text, at, len, tell);
		ring_paths_add(paths, path);
		at += len;
		if (!*at)
			break;
	}
	return paths->cnt ? 0 : ring_paths_no_device(text, tell);
}
