/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Refusals of the device model: it refuses what it does not have as a device does that lacks it,
 * with an error, and does not end the program. Memory windows, XRC, lists of more tags than it
 * offers, on-demand paging, flows, raw packets, multicast.
 */
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>

static int bad;

/* `what` failed, if obj is NULL, with an error that says so. */
static void refused(const char *what, const void *obj)
{
	int err = errno;
	int fine = !obj && (err == EOPNOTSUPP || err == ENOTSUP || err == EINVAL || err == ENOSYS);

	printf("%s: %s\n", what, obj ? "given" : strerror(err));
	bad += !fine;
	errno = 0;
}

static void refuse_queues(struct ibv_context *ctx, struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_srq_init_attr_ex tm = {
		.attr = { .max_wr = 16, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ |
			     IBV_SRQ_INIT_ATTR_TM,
		.srq_type = IBV_SRQT_TM,
		.pd = pd,
		.cq = cq,
		.tm_cap = { .max_num_tags = 1u << 20, .max_ops = 16 },
	};
	struct ibv_qp_init_attr raw = { .send_cq = cq,
					.recv_cq = cq,
					.cap = { .max_send_wr = 4, .max_send_sge = 1 },
					.qp_type = IBV_QPT_RAW_PACKET };
	struct ibv_qp_init_attr_ex dc = { .send_cq = cq,
					  .recv_cq = cq,
					  .qp_type = IBV_QPT_DRIVER,
					  .comp_mask = IBV_QP_INIT_ATTR_PD,
					  .pd = pd };
	struct mlx5dv_qp_init_attr dct = { .comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
					   .dc_init_attr = { .dc_type = MLX5DV_DCTYPE_DCT } };

	refused("an SRQ with a list of 2^20 tags", ibv_create_srq_ex(ctx, &tm));
	refused("a queue pair for raw packets", ibv_create_qp(pd, &raw));
	refused("a DC target without an SRQ", mlx5dv_create_qp(ctx, &dc, &dct));
}

static void refuse_memory(struct ibv_context *ctx, struct ibv_pd *pd)
{
	static char page[8192];
	struct ibv_xrcd_init_attr xrcd = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1
	};

	refused("a memory window", ibv_alloc_mw(pd, IBV_MW_TYPE_2));
	refused("an XRC domain", ibv_open_xrcd(ctx, &xrcd));
	refused("on-demand paging",
		ibv_reg_mr(pd, page, sizeof(page), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND));
	refused("device memory", ibv_alloc_dm(ctx, &(struct ibv_alloc_dm_attr){ .length = 64 }));
}

static void refuse_steering(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr ud = {
		.send_cq = cq, .recv_cq = cq, .cap = { 4, 4, 1, 1, 0 }, .qp_type = IBV_QPT_UD
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &ud);
	struct ibv_flow_attr flow = { .type = IBV_FLOW_ATTR_NORMAL,
				      .size = sizeof(flow),
				      .port = 1 };
	union ibv_gid gid = { .raw = { 0xff, 0x12 } };

	refused("a flow", qp ? (void *)ibv_create_flow(qp, &flow) : (void *)qp);
	errno = qp ? ibv_attach_mcast(qp, &gid, 0xc001) : EINVAL;
	refused("a multicast group", errno ? NULL : qp);
	if (qp)
		ibv_destroy_qp(qp);
}

int main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = list && *list ? ibv_open_device(*list) : NULL;
	struct ibv_device_attr_ex attr = { 0 };
	struct ibv_pd *pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	struct ibv_cq *cq = pd ? ibv_create_cq(ctx, 16, NULL, NULL, 0) : NULL;

	if (!cq || ibv_query_device_ex(ctx, NULL, &attr)) {
		fprintf(stderr, "there is no device\n");
		return 2;
	}
	bad += attr.odp_caps.general_caps != 0 || attr.tm_caps.max_num_tags >= 1u << 20 ||
	       attr.orig_attr.max_mw != 0 || attr.orig_attr.max_mcast_grp != 0;
	refuse_queues(ctx, pd, cq);
	refuse_memory(ctx, pd);
	refuse_steering(pd, cq);
	ibv_destroy_cq(cq);
	ibv_dealloc_pd(pd);
	ibv_close_device(ctx);
	ibv_free_device_list(list);
	return bad != 0;
}
