/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Abilities of a ConnectX: see info_mlx5.h. */
#include "info/info_mlx5.h"

#include <dlfcn.h>

#include "dev/mlx5/m5_dv.h"

/** Objects that a queue pair needs. */
struct mlx5_base {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
};

static unsigned mlx5_bf_len(const struct mlx5_base *base)
{
	struct ibv_qp_init_attr attr = { .send_cq = base->cq,
					 .recv_cq = base->cq,
					 .cap = { .max_send_wr = 1, .max_send_sge = 1 },
					 .qp_type = IBV_QPT_RC };
	struct ibv_qp *qp = ibv_create_qp(base->pd, &attr);
	struct mlx5dv_qp dv = { 0 };
	struct mlx5dv_obj objs = { .qp = { .in = qp, .out = &dv } };
	unsigned len = 0;

	if (!qp)
		return 0;
	if (!m5_dv_get()->init_obj(&objs, MLX5DV_OBJ_QP))
		len = dv.bf.size;
	ibv_destroy_qp(qp);
	return len;
}

/** Returns whether a DC target, the receiving end of dynamic connections, can be created. */
static bool mlx5_has_dc(struct ibv_context *ctx, const struct mlx5_base *base)
{
	void *lib = dlopen("libmlx5.so.1", RTLD_NOW | RTLD_NOLOAD);
	struct ibv_qp_init_attr_ex attr = { .send_cq = base->cq,
					    .recv_cq = base->cq,
					    .srq = base->srq,
					    .qp_type = IBV_QPT_DRIVER,
					    .comp_mask = IBV_QP_INIT_ATTR_PD,
					    .pd = base->pd };
	struct mlx5dv_qp_init_attr dv = { .comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
					  .dc_init_attr = { .dc_type = MLX5DV_DCTYPE_DCT,
							    .dct_access_key = 1 } };
	struct ibv_qp *(*create)(struct ibv_context * ctx, struct ibv_qp_init_attr_ex * attr,
				 struct mlx5dv_qp_init_attr * dv) = NULL;
	struct ibv_qp *qp = NULL;

	if (lib)
		*(void **)&create = dlsym(lib, "mlx5dv_create_qp");
	if (create && base->srq)
		qp = create(ctx, &attr, &dv);
	if (qp)
		ibv_destroy_qp(qp);
	if (lib)
		dlclose(lib);
	return qp != NULL;
}

struct info_mlx5 info_mlx5_ask(struct ibv_context *ctx)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct info_mlx5 found = { .direct = m5_dv_fits(ctx->device) };
	struct mlx5_base base = { 0 };

	if (!found.direct)
		return found;
	base.pd = ibv_alloc_pd(ctx);
	base.cq = ibv_create_cq(ctx, 1, NULL, NULL, 0);
	if (base.pd)
		base.srq = ibv_create_srq(base.pd, &srq);
	if (base.pd && base.cq) {
		found.bf_len = mlx5_bf_len(&base);
		found.has_dc = mlx5_has_dc(ctx, &base);
	}
	if (base.srq)
		ibv_destroy_srq(base.srq);
	if (base.cq)
		ibv_destroy_cq(base.cq);
	if (base.pd)
		ibv_dealloc_pd(base.pd);
	return found;
}
