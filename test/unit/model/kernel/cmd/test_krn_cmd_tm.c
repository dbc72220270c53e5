/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests of the commands of tag matching: the capabilities, the creation of an XRQ as libmlx5 asks
 * for it, and queue pairs that receive from it.
 */
#include "unit/model/kernel/border_bench.h"

#include "model/kernel/cmd/krn_cmd.h"
#include "model/kernel/krn_object.h"
#include "model/fabric/mdl_table.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

static uint32_t ctx, pd, cq;

static void setup(void)
{
	border_setup();
	ctx = border_open();
	pd = border_pd(ctx);
	cq = border_cq(ctx, 15);
}

TestSuite(krn_cmd_tm, .init = setup, .fini = border_teardown);

enum { TM = 2, UIDX = 9 };

static struct ib_uverbs_create_xsrq request(uint32_t tags)
{
	return (struct ib_uverbs_create_xsrq){ .srq_type = TM,
					       .pd_handle = pd,
					       .max_wr = 63,
					       .max_sge = 1,
					       .max_num_tags = tags,
					       .cq_handle = cq };
}

/* Returns the number of the SRQ, or -errno. */
static int create(struct ib_uverbs_create_xsrq req)
{
	struct mlx5_ib_create_srq drv = { .buf_addr = (uintptr_t)border_pages(1),
					  .db_addr = (uintptr_t)border_pages(1),
					  .uidx = UIDX };
	struct {
		__u32 srq_handle, max_wr, max_sge, srqn; /* struct ib_uverbs_create_srq_resp */
		struct mlx5_ib_create_srq_resp drv;
	} resp = { 0 };
	ssize_t rc = border_command(ctx, IB_USER_VERBS_CMD_CREATE_XSRQ, &req, sizeof(req), &drv,
				    sizeof(drv), &resp, sizeof(resp));

	if (rc < 0)
		return (int)rc;
	cr_expect_eq(resp.srqn, resp.drv.srqn);
	return (int)resp.srq_handle;
}

static struct mdl_srq *create_xrq(uint32_t tags)
{
	int number = create(request(tags));

	cr_assert_gt(number, 0);
	return mdl_srq_find((uint32_t)number);
}

static uint32_t create_qp(uint32_t srq, uint32_t recv_cq)
{
	struct ib_uverbs_create_qp req = { .pd_handle = pd,
					   .send_cq_handle = recv_cq,
					   .recv_cq_handle = recv_cq,
					   .srq_handle = srq,
					   .is_srq = 1,
					   .max_send_wr = 8,
					   .qp_type = MDL_QPT_RC };
	struct mlx5_ib_create_qp drv = { .buf_addr = (uintptr_t)border_pages(1),
					 .db_addr = (uintptr_t)border_pages(1),
					 .sq_wqe_count = 8,
					 .uidx = 5 };
	uint32_t resp[24] = { 0 };

	cr_assert_gt(border_command(ctx, IB_USER_VERBS_CMD_CREATE_QP, &req, sizeof(req), &drv,
				    sizeof(drv), resp, sizeof(resp)),
		     0);
	return resp[0];
}

static int destroy(uint32_t command, uint32_t handle)
{
	uint64_t req[2] = { 0 }; /* response address, handle */
	uint32_t resp[4] = { 0 };
	ssize_t rc;

	memcpy(&req[1], &handle, sizeof(handle));
	rc = border_command(ctx, command, req, sizeof(req), NULL, 0, resp, 8);
	return rc < 0 ? (int)rc : 0;
}

static struct ib_uverbs_tm_caps caps(void)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_ex_cmd_hdr ex;
		struct ib_uverbs_ex_query_device core;
	} cmd = { .hdr = { .command =
				   IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_CMD_QUERY_DEVICE,
			   .in_words = sizeof(cmd.core) / 8 } };
	struct ib_uverbs_ex_query_device_resp resp = { 0 };

	cmd.hdr.out_words = sizeof(resp) / 8;
	cmd.ex.response = (uintptr_t)&resp;
	cr_assert_gt(krn_cmd_write(ctx, &cmd, sizeof(cmd)), 0);
	return resp.tm_caps;
}

Test(krn_cmd_tm, the_capabilities_are_those_of_an_infiniband_port)
{
	struct ib_uverbs_tm_caps got = caps();

	cr_expect_eq(got.max_rndv_hdr_size, 64);
	cr_expect_eq(got.max_num_tags, 127);
	cr_expect_eq(got.flags, 1);
	cr_expect_eq(got.max_sge, 1);
	mdl_self.seg->link = MDL_LINK_ROCE;
	got = caps();
	cr_expect_eq(got.max_num_tags, 0);
	cr_expect_eq(got.flags, 0);
	cr_expect_eq(create(request(16)), -EOPNOTSUPP);
}

Test(krn_cmd_tm, a_list_has_room_for_one_entry_more_than_tags_as_a_power_of_two)
{
	cr_expect_eq(create_xrq(1)->tm_cnt, 2);
	cr_expect_eq(create_xrq(10)->tm_cnt, 16);
	cr_expect_eq(create_xrq(15)->tm_cnt, 16);
	cr_expect_eq(create_xrq(16)->tm_cnt, 32);
	cr_expect_eq(create_xrq(127)->tm_cnt, 128);
	cr_expect_eq(create(request(0)), -EINVAL);
	cr_expect_eq(create(request(128)), -EINVAL);
}

Test(krn_cmd_tm, a_list_is_zeroed_and_its_pages_are_freed)
{
	static const uint8_t zero[MDL_TM_ENTRY_BYTES];

	for (int i = 0; i < 3; i++) {
		struct mdl_srq *xrq = create_xrq(127);
		uint8_t *list = mdl_at(xrq->tm_list);

		cr_expect_arr_eq(list, zero, sizeof(zero));
		cr_expect_arr_eq(list + 127 * sizeof(zero), zero, sizeof(zero));
		memset(list, 0xff, 128 * sizeof(zero));
		cr_expect_eq(destroy(IB_USER_VERBS_CMD_DESTROY_SRQ, xrq->number), 0);
	}
}

Test(krn_cmd_tm, it_needs_a_cq_of_its_own)
{
	struct ib_uverbs_create_xsrq req = request(16);
	uint32_t number = create_xrq(16)->number;

	req.cq_handle = 0;
	cr_expect_eq(create(req), -EINVAL);
	cr_expect_eq(destroy(IB_USER_VERBS_CMD_DESTROY_CQ, cq), -EBUSY);
	cr_expect_eq(destroy(IB_USER_VERBS_CMD_DESTROY_SRQ, number), 0);
	cr_expect_eq(destroy(IB_USER_VERBS_CMD_DESTROY_CQ, cq), 0);
}

Test(krn_cmd_tm, a_shared_queue_of_xrc_is_refused)
{
	struct ib_uverbs_create_xsrq req = request(16);

	req.srq_type = 1;
	cr_expect_eq(create(req), -EOPNOTSUPP);
}

Test(krn_cmd_tm, receives_of_its_queue_pairs_complete_in_the_cq_of_the_srq)
{
	uint32_t other = border_cq(ctx, 15), plain = border_srq(ctx, pd);
	struct mdl_srq *xrq = create_xrq(16);
	struct mdl_qp *tagged = mdl_qp_find(create_qp(xrq->number, other));
	struct mdl_qp *untagged = mdl_qp_find(create_qp(plain, other));

	cr_assert(tagged && untagged);
	cr_expect_eq(tagged->tagged, 1);
	cr_expect_eq(tagged->send_cq, other);
	cr_expect_eq(tagged->recv_cq, cq);
	cr_expect_eq(tagged->recv_uidx, UIDX);
	cr_expect_eq(tagged->uidx, 5);
	cr_expect_eq(untagged->tagged, 0);
	cr_expect_eq(untagged->recv_cq, other);
	cr_expect_eq(untagged->recv_uidx, 5);
	cr_expect_eq(destroy(IB_USER_VERBS_CMD_DESTROY_SRQ, xrq->number), -EBUSY);
}
