/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Origin of every expectation: rdma-core's public header. */
#include "dev/mlx5/m5_layout.h"

#include <criterion/criterion.h>
#include <infiniband/mlx5dv.h>

TestSuite(m5_layout, .timeout = 200);

#define SAME(ours, field, theirs, their_field)                                                     \
	cr_expect_eq(offsetof(struct ours, field), offsetof(struct theirs, their_field),           \
		     #ours "." #field)

Test(m5_layout, segments_have_the_sizes_of_rdma_core)
{
	cr_expect_eq(sizeof(struct m5_ctrl), sizeof(struct mlx5_wqe_ctrl_seg));
	cr_expect_eq(sizeof(struct m5_raddr), sizeof(struct mlx5_wqe_raddr_seg));
	cr_expect_eq(sizeof(struct m5_data), sizeof(struct mlx5_wqe_data_seg));
	cr_expect_eq(sizeof(struct m5_av), sizeof(struct mlx5_wqe_av));
	cr_expect_eq(sizeof(struct m5_tag), sizeof(struct mlx5_wqe_tm_seg));
	cr_expect_eq(sizeof(struct m5_tmh), sizeof(struct ibv_tmh));
	cr_expect_eq(sizeof(struct m5_rvh), sizeof(struct ibv_rvh));
	cr_expect_eq(sizeof(struct m5_srq_next), sizeof(struct mlx5_wqe_srq_next_seg));
	cr_expect_eq(sizeof(struct m5_cqe), sizeof(struct mlx5_cqe64));
	cr_expect_eq(sizeof(struct m5_err_cqe), sizeof(struct mlx5_err_cqe));
}

Test(m5_layout, fields_lie_where_rdma_core_has_them)
{
	SAME(m5_ctrl, opmod_idx_opcode, mlx5_wqe_ctrl_seg, opmod_idx_opcode);
	SAME(m5_ctrl, qpn_ds, mlx5_wqe_ctrl_seg, qpn_ds);
	SAME(m5_ctrl, signature, mlx5_wqe_ctrl_seg, signature);
	SAME(m5_ctrl, stream, mlx5_wqe_ctrl_seg, dci_stream_channel_id);
	SAME(m5_ctrl, fm_ce_se, mlx5_wqe_ctrl_seg, fm_ce_se);
	SAME(m5_ctrl, imm, mlx5_wqe_ctrl_seg, imm);
	SAME(m5_raddr, addr, mlx5_wqe_raddr_seg, raddr);
	SAME(m5_raddr, rkey, mlx5_wqe_raddr_seg, rkey);
	SAME(m5_data, len, mlx5_wqe_data_seg, byte_count);
	SAME(m5_data, lkey, mlx5_wqe_data_seg, lkey);
	SAME(m5_data, addr, mlx5_wqe_data_seg, addr);
	SAME(m5_av, qkey, mlx5_wqe_av, key);
	SAME(m5_av, dqp_dct, mlx5_wqe_av, dqp_dct);
	SAME(m5_av, stat_rate_sl, mlx5_wqe_av, stat_rate_sl);
	SAME(m5_av, fl_mlid, mlx5_wqe_av, fl_mlid);
	SAME(m5_av, rlid, mlx5_wqe_av, rlid);
	SAME(m5_av, rmac, mlx5_wqe_av, rmac);
	SAME(m5_av, tclass, mlx5_wqe_av, tclass);
	SAME(m5_av, hop_limit, mlx5_wqe_av, hop_limit);
	SAME(m5_av, grh_gid_fl, mlx5_wqe_av, grh_gid_fl);
	SAME(m5_av, rgid, mlx5_wqe_av, rgid);
	SAME(m5_tag, op, mlx5_wqe_tm_seg, opcode);
	SAME(m5_tag, flags, mlx5_wqe_tm_seg, flags);
	SAME(m5_tag, index, mlx5_wqe_tm_seg, index);
	SAME(m5_tag, handled, mlx5_wqe_tm_seg, sw_cnt);
	SAME(m5_tag, tag, mlx5_wqe_tm_seg, append_tag);
	SAME(m5_tag, mask, mlx5_wqe_tm_seg, append_mask);
	SAME(m5_tmh, op, ibv_tmh, opcode);
	SAME(m5_tmh, ctx, ibv_tmh, app_ctx);
	SAME(m5_tmh, tag, ibv_tmh, tag);
	SAME(m5_rvh, addr, ibv_rvh, va);
	SAME(m5_rvh, rkey, ibv_rvh, rkey);
	SAME(m5_rvh, len, ibv_rvh, len);
	SAME(m5_srq_next, next, mlx5_wqe_srq_next_seg, next_wqe_index);
}

Test(m5_layout, completions_lie_where_rdma_core_has_them)
{
	SAME(m5_cqe, wqe_id, mlx5_cqe64, wqe_id);
	SAME(m5_cqe, slid, mlx5_cqe64, slid);
	SAME(m5_cqe, flags_rqpn, mlx5_cqe64, flags_rqpn);
	SAME(m5_cqe, srqn_uidx, mlx5_cqe64, srqn_uidx);
	SAME(m5_cqe, imm, mlx5_cqe64, imm_inval_pkey);
	SAME(m5_tag_cqe, success, mlx5_tm_cqe, success);
	SAME(m5_tag_cqe, unexpected, mlx5_tm_cqe, hw_phase_cnt);
	cr_expect_eq(offsetof(struct mlx5_cqe64, tm_cqe), 0);
	cr_expect_eq(offsetof(struct mlx5_cqe64, tmh), 0);
	cr_expect_eq(M5_APP_SUCCESS, MLX5_TMC_SUCCESS);
	SAME(m5_cqe, app, mlx5_cqe64, app);
	SAME(m5_cqe, app_op, mlx5_cqe64, app_op);
	SAME(m5_cqe, app_info, mlx5_cqe64, app_info);
	SAME(m5_cqe, len, mlx5_cqe64, byte_cnt);
	SAME(m5_cqe, timestamp, mlx5_cqe64, timestamp);
	SAME(m5_cqe, sop_qpn, mlx5_cqe64, sop_drop_qpn);
	SAME(m5_cqe, wqe_counter, mlx5_cqe64, wqe_counter);
	SAME(m5_cqe, op_own, mlx5_cqe64, op_own);
	SAME(m5_err_cqe, vendor_syndrome, mlx5_err_cqe, vendor_err_synd);
	SAME(m5_err_cqe, syndrome, mlx5_err_cqe, syndrome);
	SAME(m5_err_cqe, sop_qpn, mlx5_err_cqe, s_wqe_opcode_qpn);
	SAME(m5_err_cqe, wqe_counter, mlx5_err_cqe, wqe_counter);
	SAME(m5_err_cqe, op_own, mlx5_err_cqe, op_own);
}

Test(m5_layout, constants_are_those_of_rdma_core)
{
	cr_expect_eq(M5_BB, MLX5_SEND_WQE_BB);
	cr_expect_eq(M5_LKEY_NONE, MLX5_INVALID_LKEY);
	cr_expect_eq(M5_INLINE, (uint32_t)MLX5_INLINE_SEG);
	cr_expect_eq(M5_AV_EXT, (uint32_t)MLX5_EXTENDED_UD_AV);
	cr_expect_eq(M5_DBR_RECV, MLX5_RCV_DBR);
	cr_expect_eq(M5_DBR_SEND, MLX5_SND_DBR);
	cr_expect_eq(M5_OP_NOP, MLX5_OPCODE_NOP);
	cr_expect_eq(M5_OP_WRITE, MLX5_OPCODE_RDMA_WRITE);
	cr_expect_eq(M5_OP_WRITE_IMM, MLX5_OPCODE_RDMA_WRITE_IMM);
	cr_expect_eq(M5_OP_SEND, MLX5_OPCODE_SEND);
	cr_expect_eq(M5_OP_SEND_IMM, MLX5_OPCODE_SEND_IMM);
	cr_expect_eq(M5_OP_READ, MLX5_OPCODE_RDMA_READ);
	cr_expect_eq(M5_OP_TAG, MLX5_OPCODE_TAG_MATCHING);
	cr_expect_eq(M5_TMH_NO_TAG, IBV_TMH_NO_TAG);
	cr_expect_eq(M5_TMH_REQUEST, IBV_TMH_RNDV);
	cr_expect_eq(M5_TMH_FIN, IBV_TMH_FIN);
	cr_expect_eq(M5_TMH_EAGER, IBV_TMH_EAGER);
	cr_expect_eq(M5_CTRL_SIGNAL, MLX5_WQE_CTRL_CQ_UPDATE);
	cr_expect_eq(M5_CTRL_FENCE, MLX5_WQE_CTRL_FENCE);
	cr_expect_eq(M5_CQE_REQ, MLX5_CQE_REQ);
	cr_expect_eq(M5_CQE_RESP_WRITE_IMM, MLX5_CQE_RESP_WR_IMM);
	cr_expect_eq(M5_CQE_RESP_SEND, MLX5_CQE_RESP_SEND);
	cr_expect_eq(M5_CQE_RESP_SEND_IMM, MLX5_CQE_RESP_SEND_IMM);
	cr_expect_eq(M5_CQE_NO_PACKET, MLX5_CQE_NO_PACKET);
	cr_expect_eq(M5_CQE_REQ_ERR, MLX5_CQE_REQ_ERR);
	cr_expect_eq(M5_CQE_RESP_ERR, MLX5_CQE_RESP_ERR);
	cr_expect_eq(M5_CQE_INVALID, MLX5_CQE_INVALID);
	cr_expect_eq(M5_CQE_OWNER, MLX5_CQE_OWNER_MASK);
	cr_expect_eq(M5_CQE_SCATTER32, MLX5_INLINE_SCATTER_32);
	cr_expect_eq(M5_CQE_SCATTER64, MLX5_INLINE_SCATTER_64);
}
