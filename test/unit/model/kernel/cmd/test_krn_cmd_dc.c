/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests of the commands of DC: initiators and targets are created, modified and queried as the
 * kernel permits it, and streams are reset by a command of the firmware (krn_cmd_devx.c).
 */
#include "unit/model/kernel/border_bench.h"

#include "model/kernel/cmd/krn_cmd.h"
#include "model/fabric/mdl_table.h"
#include "model/nic/nic_be.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <string.h>

static uint32_t ctx, pd, cq, srq;

static void setup(void)
{
	border_setup();
	ctx = border_open();
	pd = border_pd(ctx);
	cq = border_cq(ctx, 15);
	srq = border_srq(ctx, pd);
}

TestSuite(krn_cmd_dc, .init = setup, .fini = border_teardown);

struct made {
	uint32_t handle, qpn;
	int err;
};

static struct made create(struct ib_uverbs_create_qp *req, const struct mlx5_ib_create_qp *drv)
{
	struct ib_uverbs_create_qp_resp resp = { 0 };
	char both[sizeof(resp) + sizeof(struct mlx5_ib_create_qp_resp)];
	ssize_t rc = border_command(ctx, IB_USER_VERBS_CMD_CREATE_QP, req, sizeof(*req), drv,
				    sizeof(*drv), both, sizeof(both));

	memcpy(&resp, both, sizeof(resp));
	return (struct made){ .handle = rc > 0 ? resp.qp_handle : 0,
			      .qpn = rc > 0 ? resp.qpn : ~0u,
			      .err = rc > 0 ? 0 : (int)rc };
}

static struct ib_uverbs_create_qp dct_request(void)
{
	return (struct ib_uverbs_create_qp){ .pd_handle = pd,
					     .recv_cq_handle = cq,
					     .srq_handle = srq,
					     .is_srq = 1,
					     .qp_type = 0xff };
}

static struct made create_dct(void)
{
	struct ib_uverbs_create_qp req = dct_request();
	struct mlx5_ib_create_qp drv = { .flags = MLX5_QP_FLAG_TYPE_DCT,
					 .uidx = 9,
					 .access_key = 0x1122334455667788 };

	return create(&req, &drv);
}

static struct made create_dci(uint32_t flags, uint8_t log_streams, uint8_t log_errored)
{
	struct ib_uverbs_create_qp req = { .pd_handle = pd,
					   .send_cq_handle = cq,
					   .recv_cq_handle = cq,
					   .max_send_wr = 4,
					   .qp_type = 0xff };
	struct mlx5_ib_create_qp drv = { .buf_addr = (uintptr_t)border_pages(1),
					 .db_addr = (uintptr_t)border_pages(1),
					 .sq_wqe_count = 8,
					 .uidx = 8,
					 .flags = MLX5_QP_FLAG_TYPE_DCI | flags,
					 .dci_streams = { log_streams, log_errored } };

	return create(&req, &drv);
}

/* An extended MODIFY_QP, as libmlx5 writes it for a DCT; `room`: bytes of the driver's response. */
static int modify(uint32_t handle, uint32_t to, uint32_t mask, struct mlx5_ib_modify_qp_resp *said,
		  size_t room)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_ex_cmd_hdr ex;
		struct ib_uverbs_ex_modify_qp core;
	} cmd = { .hdr = { .command = IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_CMD_MODIFY_QP,
			   .in_words = sizeof(cmd.core) / 8,
			   .out_words = sizeof(struct ib_uverbs_ex_modify_qp_resp) / 8 },
		  .ex = { .provider_out_words = (uint16_t)(room / 8) },
		  .core.base = { .qp_handle = handle,
				 .attr_mask = mask | 1,
				 .qp_state = (uint8_t)to,
				 .port_num = 1,
				 .path_mtu = 3,
				 .qp_access_flags = 7,
				 .dest.port_num = 1 } };
	char resp[sizeof(struct ib_uverbs_ex_modify_qp_resp) + 64] = { 0 };
	ssize_t rc;

	cmd.ex.response = (uintptr_t)resp;
	rc = krn_cmd_write(ctx, &cmd, sizeof(cmd));
	if (said)
		memcpy(said, resp + sizeof(struct ib_uverbs_ex_modify_qp_resp), sizeof(*said));
	return rc > 0 ? 0 : (int)rc;
}

enum {
	ACCESS = 1 << 3,
	PKEY = 1 << 4,
	PORT = 1 << 5,
	AV = 1 << 7,
	MTU = 1 << 8,
	TIMEOUT = 1 << 9,
	RETRY = 1 << 10,
	RNR_RETRY = 1 << 11,
	RD_ATOMIC = 1 << 13,
	MIN_RNR = 1 << 15,
	SQ_PSN = 1 << 16,
	TO_RTS = TIMEOUT | RETRY | RNR_RETRY | RD_ATOMIC | SQ_PSN,
	ROOM = sizeof(struct mlx5_ib_modify_qp_resp),
};

Test(krn_cmd_dc, a_dct_gets_its_number_when_it_becomes_ready)
{
	struct mlx5_ib_modify_qp_resp said = { 0 };
	struct made dct = create_dct();
	struct mdl_qp *qp = mdl_qp_find(dct.handle);

	cr_assert_eq(dct.err, 0);
	cr_expect_eq(dct.qpn, 0);
	cr_expect_eq(qp->type, MDL_QPT_DCT);
	cr_expect_eq(qp->dc_key, 0x1122334455667788);
	cr_expect_eq(qp->uidx, 9);
	cr_expect_eq(qp->srq, srq);
	cr_assert_eq(modify(dct.handle, MDL_QPS_INIT, PKEY | PORT | ACCESS, &said, ROOM), 0);
	cr_expect_eq(said.dctn, 0);
	cr_expect_eq(modify(dct.handle, MDL_QPS_RTR, AV | MTU | MIN_RNR, NULL, 0), -EINVAL,
		     "there is no room for the number");
	cr_assert_eq(modify(dct.handle, MDL_QPS_RTR, AV | MTU | MIN_RNR, &said, ROOM), 0);
	cr_expect_eq(said.response_length, sizeof(said));
	cr_expect_eq(said.dctn, qp->number);
	cr_expect_eq(qp->state, MDL_QPS_RTR);
	cr_expect_eq(qp->access, 7);
}

Test(krn_cmd_dc, a_dct_knows_two_transitions_with_exactly_their_attributes)
{
	struct made dct = create_dct();
	struct mdl_qp *qp = mdl_qp_find(dct.handle);
	const uint32_t all = PKEY | PORT | ACCESS | AV | MTU | MIN_RNR;

	for (uint32_t from = 0; from < 7; from++)
		for (uint32_t to = 0; to < 7; to++) {
			uint32_t init = PKEY | PORT | ACCESS, rtr = AV | MTU | MIN_RNR;
			bool first = from == MDL_QPS_RESET && to == MDL_QPS_INIT;
			bool second = from == MDL_QPS_INIT && to == MDL_QPS_RTR;

			qp->state = from;
			cr_expect_eq(modify(dct.handle, to, all, NULL, ROOM), -EINVAL);
			cr_expect_eq(modify(dct.handle, to, init, NULL, ROOM) == 0, first);
			qp->state = from;
			cr_expect_eq(modify(dct.handle, to, rtr, NULL, ROOM) == 0, second);
		}
	qp->state = MDL_QPS_INIT;
	for (uint32_t bit = 0; bit < 21; bit++)
		if ((AV | MTU | MIN_RNR) >> bit & 1)
			cr_expect_eq(modify(dct.handle, MDL_QPS_RTR,
					    (AV | MTU | MIN_RNR) & ~(1u << bit), NULL, ROOM),
				     -EINVAL, "without bit %u", bit);
}

Test(krn_cmd_dc, a_dct_needs_an_srq_and_a_receive_cq_and_takes_no_other_flags)
{
	const struct mlx5_ib_create_qp drv = { .flags = MLX5_QP_FLAG_TYPE_DCT };
	struct mlx5_ib_create_qp flags = drv;
	struct ib_uverbs_create_qp req = dct_request();

	req.is_srq = 0;
	cr_expect_eq(create(&req, &drv).err, -EINVAL);
	req = dct_request();
	req.recv_cq_handle = 0;
	cr_expect_eq(create(&req, &drv).err, -EINVAL);
	req = dct_request();
	flags.flags |= MLX5_QP_FLAG_DCI_STREAM;
	cr_expect_eq(create(&req, &flags).err, -EINVAL);
	flags.flags = MLX5_QP_FLAG_TYPE_DCT | MLX5_QP_FLAG_TYPE_DCI;
	cr_expect_eq(create(&req, &flags).err, -EOPNOTSUPP, "both at once");
	flags.flags = 0;
	cr_expect_eq(create(&req, &flags).err, -EOPNOTSUPP, "neither");
	flags.flags = MLX5_QP_FLAG_TYPE_DCT | MLX5_QP_FLAG_SCATTER_CQE;
	cr_expect_eq(create(&req, &flags).err, 0);
}

Test(krn_cmd_dc, a_dct_is_queried_only_when_ready)
{
	struct made dct = create_dct();
	struct ib_uverbs_query_qp req = { .qp_handle = dct.handle, .attr_mask = 1 };
	struct ib_uverbs_query_qp_resp resp;
	struct mdl_qp *qp = mdl_qp_find(dct.handle);

	cr_expect_eq(border_command(ctx, IB_USER_VERBS_CMD_QUERY_QP, &req, sizeof(req), NULL, 0,
				    &resp, sizeof(resp)),
		     -EINVAL);
	qp->state = MDL_QPS_RTR;
	cr_expect_gt(border_command(ctx, IB_USER_VERBS_CMD_QUERY_QP, &req, sizeof(req), NULL, 0,
				    &resp, sizeof(resp)),
		     0);
	cr_expect_eq(resp.qp_state, MDL_QPS_RTR);
	req.attr_mask = 1 | SQ_PSN;
	cr_expect_eq(border_command(ctx, IB_USER_VERBS_CMD_QUERY_QP, &req, sizeof(req), NULL, 0,
				    &resp, sizeof(resp)),
		     -EINVAL, "it has no PSN");
}

/* Tries every pair of states of a DCI with the attributes of that step. */
Test(krn_cmd_dc, a_dci_passes_through_its_states)
{
	static const char *const allowed[7] = {
		/* to: RESET INIT RTR RTS SQD SQE ERR */
		[MDL_QPS_RESET] = "yy.....", [MDL_QPS_INIT] = "yyy...y", [MDL_QPS_RTR] = "y..y..y",
		[MDL_QPS_RTS] = "y..y..y",   [MDL_QPS_SQD] = "y.....y",  [MDL_QPS_SQE] = "y.....y",
		[MDL_QPS_ERR] = "y.....y",
	};
	struct made dci = create_dci(0, 0, 0);
	struct mdl_qp *qp = mdl_qp_find(dci.handle);

	cr_assert_eq(dci.err, 0);
	cr_expect_eq(dci.qpn, qp->number);
	for (uint32_t from = 0; from < 7; from++)
		for (uint32_t to = 0; to < 7; to++) {
			uint32_t mask = to == MDL_QPS_INIT                         ? PKEY | PORT
					: to == MDL_QPS_RTR                        ? MTU
					: to == MDL_QPS_RTS && from == MDL_QPS_RTR ? TO_RTS
										   : 0;

			qp->state = from;
			cr_expect_eq(modify(dci.handle, to, mask, NULL, 0) == 0,
				     allowed[from][to] == 'y', "from %u to %u", from, to);
		}
}

Test(krn_cmd_dc, a_dci_takes_no_attributes_of_a_responder)
{
	struct made dci = create_dci(0, 0, 0);
	struct mdl_qp *qp = mdl_qp_find(dci.handle);

	cr_expect_eq(modify(dci.handle, MDL_QPS_INIT, PKEY | PORT | ACCESS, NULL, 0), -EINVAL);
	cr_expect_eq(modify(dci.handle, MDL_QPS_INIT, PKEY | PORT, NULL, 0), 0);
	cr_expect_eq(modify(dci.handle, MDL_QPS_RTR, MTU | AV | MIN_RNR, NULL, 0), -EINVAL);
	cr_expect_eq(modify(dci.handle, MDL_QPS_RTR, MTU | AV, NULL, 0), 0);
	cr_expect_eq(modify(dci.handle, MDL_QPS_RTS, TO_RTS & ~(uint32_t)RETRY, NULL, 0), -EINVAL);
	cr_expect_eq(modify(dci.handle, MDL_QPS_RTS, TO_RTS | MIN_RNR, NULL, 0), 0);
	cr_expect_eq(qp->state, MDL_QPS_RTS);
}

Test(krn_cmd_dc, a_dci_has_a_send_queue_only)
{
	struct ib_uverbs_create_qp req = { .pd_handle = pd,
					   .send_cq_handle = cq,
					   .recv_cq_handle = cq,
					   .max_send_wr = 4,
					   .max_recv_wr = 1,
					   .qp_type = 0xff };
	struct mlx5_ib_create_qp drv = { .buf_addr = (uintptr_t)border_pages(1),
					 .db_addr = (uintptr_t)border_pages(1),
					 .sq_wqe_count = 8,
					 .flags = MLX5_QP_FLAG_TYPE_DCI };

	cr_expect_eq(create(&req, &drv).err, -EINVAL);
	req.max_recv_wr = 0;
	cr_expect_eq(create(&req, &drv).err, 0);
	req.qp_type = MDL_QPT_RC;
	cr_expect_eq(create(&req, &drv).err, -EOPNOTSUPP, "an RC queue pair with DC's flag");
}

Test(krn_cmd_dc, streams_have_their_limits)
{
	struct made dci = create_dci(MLX5_QP_FLAG_DCI_STREAM, 3, 2);
	struct mdl_qp *qp = mdl_qp_find(dci.handle);

	cr_assert_eq(dci.err, 0);
	cr_expect_eq(qp->has_streams, 1);
	cr_expect_eq(qp->log_streams, 3);
	cr_expect_eq(qp->log_errored, 2);
	cr_expect_eq(create_dci(MLX5_QP_FLAG_DCI_STREAM, 5, 5).err, 0);
	cr_expect_eq(create_dci(MLX5_QP_FLAG_DCI_STREAM, 6, 0).err, -EINVAL);
	cr_expect_eq(create_dci(MLX5_QP_FLAG_DCI_STREAM, 0, 6).err, -EINVAL);
	dci = create_dci(0, 6, 6);
	cr_assert_eq(dci.err, 0);
	cr_expect_eq(mdl_qp_find(dci.handle)->has_streams, 0);
}

Test(krn_cmd_dc, what_a_dct_uses_is_not_destroyed_before_it)
{
	struct made dct = create_dct();
	struct ib_uverbs_destroy_srq destroy = { .srq_handle = srq };
	struct ib_uverbs_destroy_qp destroy_qp = { .qp_handle = dct.handle };
	uint32_t resp[4];

	cr_expect_eq(border_command(ctx, IB_USER_VERBS_CMD_DESTROY_SRQ, &destroy, sizeof(destroy),
				    NULL, 0, resp, 4),
		     -EBUSY);
	cr_expect_gt(border_command(ctx, IB_USER_VERBS_CMD_DESTROY_QP, &destroy_qp,
				    sizeof(destroy_qp), NULL, 0, resp, 4),
		     0);
	cr_expect_null(mdl_qp_find(dct.handle));
	cr_expect_gt(border_command(ctx, IB_USER_VERBS_CMD_DESTROY_SRQ, &destroy, sizeof(destroy),
				    NULL, 0, resp, 4),
		     0);
}

/* ---- commands of the firmware ---------------------------------------------------------------- */
static uint64_t command_room[16];

/* Returns a command without attributes yet. */
static struct ib_uverbs_ioctl_hdr *command(uint16_t object, uint16_t method)
{
	struct ib_uverbs_ioctl_hdr *hdr = (void *)command_room;

	memset(command_room, 0, sizeof(command_room));
	hdr->length = sizeof(*hdr);
	hdr->object_id = object;
	hdr->method_id = method;
	return hdr;
}

static void add_attribute(struct ib_uverbs_ioctl_hdr *hdr, uint32_t id, const void *at, size_t len)
{
	hdr->attrs[hdr->num_attrs++] = (struct ib_uverbs_attr){ .attr_id = (uint16_t)id,
								.len = (uint16_t)len,
								.flags = UVERBS_ATTR_F_MANDATORY,
								.data = (uintptr_t)at };
	hdr->length += sizeof(hdr->attrs[0]);
}

static int query_caps(uint16_t what, uint8_t *out, size_t out_len)
{
	uint8_t in[16] = { 0x01, 0x00 };
	struct ib_uverbs_ioctl_hdr *cmd = command(MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_OTHER);

	add_attribute(cmd, MLX5_IB_ATTR_DEVX_OTHER_CMD_IN, in, sizeof(in));
	add_attribute(cmd, MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT, out, out_len);
	nic_be16_put(in + 6, what);
	return krn_cmd_ioctl(ctx, cmd);
}

Test(krn_cmd_dc, the_device_can_extend_contexts_and_nothing_else)
{
	uint8_t out[16 + 4096];
	uint32_t bits = 0;

	memset(out, 0xff, sizeof(out));
	cr_assert_eq(query_caps(1, out, sizeof(out)), 0);
	cr_expect_eq(out[0], 0);
	cr_expect_eq(out[16 + 0x122 / 8] >> (7 - 0x122 % 8) & 1, 1);
	for (size_t i = 0; i < sizeof(out); i++)
		bits += (uint32_t)__builtin_popcount(out[i]);
	cr_expect_eq(bits, 1);
	cr_expect_eq(query_caps(3 << 1 | 1, out, sizeof(out)), -EREMOTEIO, "atomic capabilities");
	cr_expect_eq(out[0], 3);
	cr_expect_eq(query_caps(1, out, 16), -EINVAL, "no room");
}

static uint8_t reset_in[464], reset_out[16];

static struct ib_uverbs_ioctl_hdr *reset_command(const struct mdl_qp *qp, uint16_t stream)
{
	struct ib_uverbs_ioctl_hdr *cmd =
		command(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_MODIFY);

	add_attribute(cmd, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE, NULL, 0);
	add_attribute(cmd, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN, reset_in, sizeof(reset_in));
	add_attribute(cmd, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT, reset_out, sizeof(reset_out));
	cmd->attrs[0].data = qp->number;
	memset(reset_in, 0, sizeof(reset_in));
	nic_be16_put(reset_in, 0x505);
	nic_be32_put(reset_in + 8, 0x80000000u | qp->number);
	nic_be64_put(reset_in + 0x840 / 8, 1);
	nic_be16_put(reset_in + 0x890 / 8, stream);
	return cmd;
}

Test(krn_cmd_dc, a_reset_of_a_stream_reaches_the_device)
{
	struct mdl_qp *qp = mdl_qp_find(create_dci(MLX5_QP_FLAG_DCI_STREAM, 3, 2).handle);
	struct ib_uverbs_ioctl_hdr *cmd = reset_command(qp, 0x1234);

	notes.reset_rc = 0;
	cr_assert_eq(krn_cmd_ioctl(ctx, cmd), 0);
	cr_expect_eq(notes.reset_stream, 0x1234);
	cr_expect_eq(reset_out[0], 0);
	notes.reset_rc = -EINVAL;
	cr_expect_eq(krn_cmd_ioctl(ctx, cmd), -EREMOTEIO, "it was not in error");
	cr_expect_eq(reset_out[0], 9);
}

Test(krn_cmd_dc, a_reset_of_anything_else_is_refused)
{
	struct mdl_qp *qp = mdl_qp_find(create_dci(MLX5_QP_FLAG_DCI_STREAM, 3, 2).handle);
	struct ib_uverbs_ioctl_hdr *cmd = reset_command(qp, 1);

	notes.reset_stream = 7;
	nic_be32_put(reset_in + 8, 0x80000000u | (qp->number + 1));
	cr_expect_eq(krn_cmd_ioctl(ctx, cmd), -EREMOTEIO, "another number than the handle's");
	cmd = reset_command(qp, 1);
	nic_be64_put(reset_in + 0x840 / 8, 2);
	cr_expect_eq(krn_cmd_ioctl(ctx, cmd), -EREMOTEIO, "another field");
	cmd = reset_command(qp, 1);
	nic_be32_put(reset_in + 8, qp->number);
	cr_expect_eq(krn_cmd_ioctl(ctx, cmd), -EREMOTEIO, "no extended context");
	cmd = reset_command(qp, 1);
	nic_be16_put(reset_in, 0x502);
	cr_expect_eq(krn_cmd_ioctl(ctx, cmd), -EINVAL, "another command");
	cmd = reset_command(qp, 1);
	cmd->attrs[0].data = qp->number + 1;
	cr_expect_eq(krn_cmd_ioctl(ctx, cmd), -EINVAL, "no such object");
	cmd = reset_command(qp, 1);
	cmd->attrs[1].len = 463;
	cr_expect_eq(krn_cmd_ioctl(ctx, cmd), -EINVAL, "too short");
	cmd = reset_command(qp, 1);
	cmd->num_attrs = 2;
	cr_expect_eq(krn_cmd_ioctl(ctx, cmd), -EINVAL, "the length is of three attributes");
	cr_expect_eq(notes.reset_stream, 7);
}

Test(krn_cmd_dc, other_ioctls_are_not_there)
{
	struct ib_uverbs_ioctl_hdr *cmd = command(UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE);

	cr_expect_eq(krn_cmd_ioctl(ctx, cmd), -ENOTTY, "libibverbs writes instead");
	cmd->object_id = MLX5_IB_OBJECT_DEVX;
	cmd->method_id = MLX5_IB_METHOD_DEVX_QUERY_EQN;
	cr_expect_eq(krn_cmd_ioctl(ctx, cmd), -ENOTTY);
}
