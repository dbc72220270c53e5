/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What do we need of libmlx5? Three functions, found when a device is looked for.
 *
 * The library is loaded then and not linked: a machine without it has no such NIC, and the provider
 * loads all the same.
 *
 * Shown by test/unit/dev/mlx5/test_m5_dv.c.
 */
#ifndef M5_M5_DV_H
#define M5_M5_DV_H

#include <infiniband/mlx5dv.h>
#include <stdbool.h>
#include <stddef.h>

struct m5_dv {
	bool (*is_supported)(struct ibv_device *device);
	int (*init_obj)(struct mlx5dv_obj *obj, uint64_t type);
	struct ibv_cq_ex *(*create_cq)(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr,
				       struct mlx5dv_cq_init_attr *dv_attr);
};

/** The functions, or NULL: there is no libmlx5, or one that lacks them. Quick after the first call. */
const struct m5_dv *m5_dv_get(void);

/** For ib_dev_init: a device that direct verbs can drive. */
bool m5_dv_fits(struct ibv_device *device);

#endif
