/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Device attributes: a ConnectX-6 without DevX, so that libmlx5 and UCX use the queues that the
 * uverbs commands create; static UARs, CQE version 1.
 */
#include "model/kernel/krn_chan.h"
#include "model/kernel/cmd/krn_cmd.h"
#include "model/kernel/krn_mode.h"
#include "model/fabric/mdl_nic.h"
#include "model/fabric/mdl_raw.h"
#include "model/fabric/mdl_segment.h"

#include <endian.h>
#include <errno.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

static const struct mlx5_ib_alloc_ucontext_resp context_resp = {
	.qp_tab_size = 1 << 18,
	.bf_reg_size = 512,
	.tot_bfregs = KRN_BFREGS,
	.cache_line_size = 64,
	.max_sq_desc_sz = 1024,
	.max_rq_desc_sz = 512,
	.max_send_wqebb = 32768,
	.max_recv_wr = 32768,
	.max_srq_recv_wr = 32767,
	.num_ports = 1,
	.response_length = sizeof(struct mlx5_ib_alloc_ucontext_resp),
	.cqe_version = 1,
	.cmds_supp_uhw = MLX5_USER_CMDS_SUPP_UHW_QUERY_DEVICE | MLX5_USER_CMDS_SUPP_UHW_CREATE_AH,
	.eth_min_inline = MLX5_USER_INLINE_MODE_NONE,
	.log_uar_size = 12,
	.num_uars_per_page = 1,
};

int krn_cmd_get_context(struct krn_cmd *cmd)
{
	struct ib_uverbs_get_context_resp resp = { .num_comp_vectors = 4 };
	struct mlx5_ib_alloc_ucontext_resp context = context_resp;
	struct mlx5_ib_alloc_ucontext_req_v2 req;
	uint32_t chan;
	int fd;

	krn_cmd_driver(cmd, &req, sizeof(req));
	if (cmd->ctx->async_chan)
		return -EINVAL;
	if (req.flags & MLX5_IB_ALLOC_UCTX_DEVX)
		return -EOPNOTSUPP;
	fd = krn_chan_open(KRN_CHAN_ASYNC, &chan);
	if (fd < 0)
		return fd;
	cmd->ctx->async_chan = chan;
	cmd->ctx->async_fd = fd;
	resp.async_fd = (uint32_t)fd;
	if (nic_fault_without_bf())
		context.bf_reg_size = 0;
	krn_mode_start();
	krn_cmd_reply(cmd, &resp, sizeof(resp), &context, sizeof(context));
	return 0;
}

static const struct mdl_port *own_port(const struct krn_cmd *cmd)
{
	return &mdl_self.seg->port[mdl_own_port(cmd->ctx->device)];
}

/*
 * Capability bits: bad P_Key and Q_Key counters, port active events, system image GUID, RNR NAKs.
 */
#define DEVICE_CAPS 0x1c06

static void fill_base(struct ib_uverbs_query_device_resp *base, uint64_t guid)
{
	*base = (struct ib_uverbs_query_device_resp){
		.fw_ver = 20ull << 32 | 31 << 16 | 1014,
		.node_guid = htobe64(guid),
		.sys_image_guid = htobe64(guid),
		.max_mr_size = ~0ull,
		.page_size_cap = 0xfffffffffffff000ull,
		.vendor_id = 0x02c9,
		.vendor_part_id = 4123,
		.max_qp = MDL_QP_MAX - 2,
		.max_qp_wr = 32768,
		.device_cap_flags = DEVICE_CAPS,
		.max_sge = 30,
		.max_sge_rd = 30,
		.max_cq = MDL_CQ_MAX - 1,
		.max_cqe = 4194303,
		.max_mr = MDL_MR_MAX - 16,
		.max_pd = MDL_PD_MAX - 1,
		.max_qp_rd_atom = 16,
		.max_res_rd_atom = 16 * (MDL_QP_MAX - 2),
		.max_qp_init_rd_atom = 16,
		.atomic_cap = 1,
		.max_ah = 0x7fffffff,
		.max_srq = MDL_SRQ_MAX - 1,
		.max_srq_wr = 32767,
		.max_srq_sge = 31,
		.max_pkeys = 1,
		.local_ca_ack_delay = 16,
		.phys_port_cnt = 1,
	};
}

#define TM_CAP_RC 1

/*
 * Tag matching is offered on InfiniBand only: on RoCE libmlx5 cannot connect the command queue pair
 * of a TM SRQ, as the kernel refuses its path without a GRH.
 */
static void fill_tm_caps(struct ib_uverbs_tm_caps *caps)
{
	if (mdl_self.seg->link != MDL_LINK_IB)
		return;
	*caps = (struct ib_uverbs_tm_caps){
		.max_rndv_hdr_size = MDL_TM_REQUEST_MAX,
		.max_num_tags = (1 << MDL_LOG_TAGS_MAX) - 1,
		.flags = TM_CAP_RC,
		.max_ops = 32768,
		.max_sge = 1,
	};
}

int krn_cmd_query_device(struct krn_cmd *cmd)
{
	struct ib_uverbs_ex_query_device_resp resp = { .response_length = sizeof(resp),
						       .hca_core_clock = 1000000 };
	struct mlx5_ib_query_device_resp drv = {
		.response_length = sizeof(drv),
		.cqe_comp_caps = { .max_num = 16,
				   .supported_format = MLX5_IB_CQE_RES_FORMAT_HASH |
						       MLX5_IB_CQE_RES_FORMAT_CSUM },
		.flags = MLX5_IB_QUERY_DEV_RESP_FLAGS_CQE_128B_COMP |
			 MLX5_IB_QUERY_DEV_RESP_FLAGS_CQE_128B_PAD |
			 MLX5_IB_QUERY_DEV_RESP_FLAGS_SCAT2CQE_DCT,
		.dci_streams_caps = { .max_log_num_concurent = MDL_LOG_STREAMS_MAX,
				      .max_log_num_errored = MDL_LOG_ERRORED_MAX },
	};

	fill_base(&resp.base, own_port(cmd)->guid);
	fill_tm_caps(&resp.tm_caps);
	if (cmd->extended)
		krn_cmd_reply(cmd, &resp, sizeof(resp), &drv, sizeof(drv));
	else
		krn_cmd_reply(cmd, &resp.base, sizeof(resp.base), NULL, 0);
	return 0;
}

int krn_cmd_query_port(struct krn_cmd *cmd)
{
	const struct ib_uverbs_query_port *req = cmd->core;
	bool roce = mdl_self.seg->link == MDL_LINK_ROCE;
	const struct mdl_port *port = own_port(cmd);
	bool down = port->link_down || nic_fault_link_down(cmd->ctx->device);
	struct ib_uverbs_query_port_resp resp = {
		.port_cap_flags = roce ? 0x04010000 : 0x2651e848,
		.max_msg_sz = 1u << 30,
		.gid_tbl_len = 8,
		.pkey_tbl_len = 1,
		.lid = port->lid,
		.sm_lid = roce ? 0 : 1,
		.state = down ? 1 : 4,
		.max_mtu = 5,
		.active_mtu = roce ? 3 : 5,
		.max_vl_num = 4,
		.subnet_timeout = 18,
		.active_width = 2,
		.active_speed = 32,
		.phys_state = down ? 3 : 5,
		.link_layer = roce ? 2 : 1,
	};

	if (req->port_num != 1)
		return -EINVAL;
	krn_cmd_reply(cmd, &resp, sizeof(resp), NULL, 0);
	return 0;
}
