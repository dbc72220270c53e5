/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * libmlx5, loaded when a device is looked for. Gives the functions that direct verbs need.
 *
 * The library is not linked, so the provider also loads on machines without it.
 */
#ifndef DEV_MLX5_M5_DV_H
#define DEV_MLX5_M5_DV_H

#include <infiniband/mlx5dv.h>
#include <stdbool.h>

struct m5_dv {
	bool (*is_supported)(struct ibv_device *device);
	int (*init_obj)(struct mlx5dv_obj *obj, uint64_t type);
	/* NULL: the library is too old for DC. */
	struct ibv_qp *(*create_qp)(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
				    struct mlx5dv_qp_init_attr *dv);
};

/** Returns the functions, or NULL if libmlx5 is missing or too old. Loads only once. */
const struct m5_dv *m5_dv_get(void);

/** Returns true if direct verbs can drive this device. Passed to ib_dev_init. */
bool m5_dv_fits(struct ibv_device *device);

#endif
