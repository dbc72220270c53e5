/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests of uverbs commands: valid ones are executed, and wrong ones refused as the kernel refuses
 * them.
 */
#include "unit/model/kernel/border_bench.h"

#include "model/kernel/cmd/krn_cmd.h"
#include "model/kernel/krn_share.h"
#include "model/fabric/mdl_table.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

TestSuite(krn_cmd, .init = border_setup, .fini = border_teardown);

static ssize_t reg_mr(uint32_t ctx, uint32_t pd, const void *at, uint64_t len, uint32_t access,
		      struct ib_uverbs_reg_mr_resp *resp)
{
	struct ib_uverbs_reg_mr req = { .start = (uintptr_t)at,
					.length = len,
					.hca_va = (uintptr_t)at,
					.pd_handle = pd,
					.access_flags = access };

	return border_command(ctx, IB_USER_VERBS_CMD_REG_MR, &req, sizeof(req), NULL, 0, resp, 12);
}

Test(krn_cmd, memory_that_is_not_there_is_not_registered)
{
	uint32_t ctx = border_open(), pd = border_pd(ctx);
	struct ib_uverbs_reg_mr_resp resp;
	char *at = border_pages(3);

	cr_expect_gt(reg_mr(ctx, pd, at, 3 * MDL_PAGE, MDL_ACCESS_LOCAL_WRITE, &resp), 0);
	cr_expect_eq(mdl_mr_find(resp.lkey)->length, 3 * MDL_PAGE);
	munmap(at + MDL_PAGE, MDL_PAGE);
	cr_expect_eq(reg_mr(ctx, pd, at, 3 * MDL_PAGE, 0, &resp), -EFAULT);
	cr_expect_eq(reg_mr(ctx, pd, at, 16, MDL_ACCESS_REMOTE_WRITE, &resp), -EINVAL,
		     "remote write needs local write");
	cr_expect_eq(reg_mr(ctx, pd + 1, at, 16, 0, &resp), -EINVAL, "another PD");
}

static ssize_t rereg_mr(uint32_t ctx, struct ib_uverbs_rereg_mr req,
			struct ib_uverbs_rereg_mr_resp *resp)
{
	return border_command(ctx, IB_USER_VERBS_CMD_REREG_MR, &req, sizeof(req), NULL, 0, resp,
			      sizeof(*resp));
}

Test(krn_cmd, a_region_changes_its_domain_rights_and_place_and_keeps_its_keys)
{
	uint32_t ctx = border_open(), pd = border_pd(ctx), other = border_pd(ctx);
	struct ib_uverbs_dealloc_pd dealloc = { .pd_handle = pd };
	struct ib_uverbs_reg_mr_resp resp;
	struct ib_uverbs_rereg_mr_resp again;
	char *at = border_pages(2);
	struct mdl_mr *mr;

	cr_assert_gt(reg_mr(ctx, pd, at, MDL_PAGE, MDL_ACCESS_LOCAL_WRITE, &resp), 0);
	mr = mdl_mr_find(resp.lkey);
	cr_expect_gt(rereg_mr(ctx,
			      (struct ib_uverbs_rereg_mr){
				      .mr_handle = resp.mr_handle, .flags = 2, .pd_handle = other },
			      &again),
		     0);
	cr_expect_eq(again.lkey, resp.lkey);
	cr_expect_eq(again.rkey, resp.rkey);
	cr_expect_eq(mr->pd, other);
	cr_expect_eq(mr->access, MDL_ACCESS_LOCAL_WRITE);
	cr_expect_gt(border_command(ctx, IB_USER_VERBS_CMD_DEALLOC_PD, &dealloc, sizeof(dealloc),
				    NULL, 0, NULL, 0),
		     0, "the old domain has no user any more");
	cr_expect_gt(rereg_mr(ctx,
			      (struct ib_uverbs_rereg_mr){ .mr_handle = resp.mr_handle,
							   .flags = 1 | 4,
							   .start = (uintptr_t)at + MDL_PAGE,
							   .hca_va = 0x7000,
							   .length = 100,
							   .access_flags = 0 },
			      &again),
		     0);
	cr_expect_eq(mr->user_addr, (uintptr_t)at + MDL_PAGE);
	cr_expect_eq(mr->addr, 0x7000);
	cr_expect_eq(mr->length, 100);
	cr_expect_eq(mr->access, 0);
}

Test(krn_cmd, a_region_is_not_changed_to_what_could_not_be_registered)
{
	uint32_t ctx = border_open(), pd = border_pd(ctx);
	struct ib_uverbs_reg_mr_resp resp;
	struct ib_uverbs_rereg_mr_resp again;
	char *at = border_pages(1);
	struct ib_uverbs_rereg_mr req;
	struct mdl_mr *mr;

	cr_assert_gt(reg_mr(ctx, pd, at, MDL_PAGE, 0, &resp), 0);
	mr = mdl_mr_find(resp.lkey);
	req = (struct ib_uverbs_rereg_mr){ .mr_handle = resp.mr_handle };
	cr_expect_eq(rereg_mr(ctx, req, &again), -EINVAL, "no change");
	req.flags = 8;
	cr_expect_eq(rereg_mr(ctx, req, &again), -EINVAL, "an unknown one");
	req.flags = 2;
	cr_expect_eq(rereg_mr(ctx, req, &again), -EINVAL, "no such domain");
	req.flags = 4;
	req.access_flags = MDL_ACCESS_REMOTE_WRITE;
	cr_expect_eq(rereg_mr(ctx, req, &again), -EINVAL, "remote write needs local write");
	munmap(at, MDL_PAGE);
	req.flags = 1;
	req.start = req.hca_va = (uintptr_t)at;
	req.length = 8;
	cr_expect_eq(rereg_mr(ctx, req, &again), -EFAULT, "memory that is not there");
	cr_expect_eq(mr->length, MDL_PAGE);
	cr_expect_eq(mr->pd, pd);
}

Test(krn_cmd, commands_of_wrong_length_or_number_are_refused)
{
	uint32_t ctx = border_open();
	uint64_t words[8] = { 0 };
	struct ib_uverbs_cmd_hdr *hdr = (void *)words;

	cr_expect_eq(krn_cmd_write(ctx, words, 4), -EINVAL);
	hdr->command = IB_USER_VERBS_CMD_ALLOC_PD;
	hdr->in_words = 2;
	cr_expect_eq(krn_cmd_write(ctx, words, 8), -EINVAL, "the core struct is missing");
	hdr->in_words = 4;
	cr_expect_eq(krn_cmd_write(ctx, words, 16), -EINVAL, "no room for the response");
	hdr->command = 99;
	cr_expect_eq(krn_cmd_write(ctx, words, 16), -EOPNOTSUPP);
	hdr->command = IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_CMD_ALLOC_PD;
	cr_expect_eq(krn_cmd_write(ctx, words, 32), -EINVAL, "there is no extended ALLOC_PD");
}

static ssize_t modify(uint32_t ctx, uint32_t qp, uint32_t to, uint32_t mask)
{
	struct ib_uverbs_modify_qp req = { .qp_handle = qp,
					   .attr_mask = mask | 1,
					   .qp_state = (uint8_t)to,
					   .port_num = 1,
					   .path_mtu = 3,
					   .dest.port_num = 1,
					   .dest.dlid = 1 };

	return border_command(ctx, IB_USER_VERBS_CMD_MODIFY_QP, &req, sizeof(req), NULL, 0, NULL,
			      0);
}

#define ALL_OF_THEM 0x13fff8

/* Tries every pair of states with all attributes. Those that the specification has succeed. */
Test(krn_cmd, qp_transitions_are_those_of_the_specification)
{
	static const char *const allowed[7] = {
		/* to: RESET INIT RTR RTS SQD SQE ERR */
		[MDL_QPS_RESET] = "yy....y", [MDL_QPS_INIT] = "yyy...y", [MDL_QPS_RTR] = "y..y..y",
		[MDL_QPS_RTS] = "y..yy.y",   [MDL_QPS_SQD] = "y..yy.y",  [MDL_QPS_SQE] = "y..y..y",
		[MDL_QPS_ERR] = "y.....y",
	};
	uint32_t ctx = border_open(), pd = border_pd(ctx), cq = border_cq(ctx, 15);
	struct mdl_qp *qp = mdl_qp_find(border_qp(ctx, pd, cq, MDL_QPT_RC));

	for (uint32_t from = 0; from < 7; from++)
		for (uint32_t to = 0; to < 7; to++) {
			qp->state = from;
			cr_expect_eq(modify(ctx, qp->number, to, ALL_OF_THEM) > 0,
				     allowed[from][to] == 'y', "from %u to %u", from, to);
			if (allowed[from][to] == 'y')
				cr_expect_eq(qp->state, to);
			else
				cr_expect_eq(qp->state, from);
		}
}

/* INIT to RTR fails if any attribute that RC needs is missing. */
Test(krn_cmd, rtr_needs_each_of_its_attributes)
{
	const uint32_t needed = 1 << 7 | 1 << 8 | 1 << 20 | 1 << 12 | 1 << 17 | 1 << 15;
	uint32_t ctx = border_open(), pd = border_pd(ctx), cq = border_cq(ctx, 15);
	struct mdl_qp *qp = mdl_qp_find(border_qp(ctx, pd, cq, MDL_QPT_RC));

	for (uint32_t bit = 0; bit < 21; bit++) {
		if (!(needed >> bit & 1))
			continue;
		qp->state = MDL_QPS_INIT;
		cr_expect_eq(modify(ctx, qp->number, MDL_QPS_RTR, needed & ~(1u << bit)), -EINVAL,
			     "without bit %u", bit);
	}
	cr_expect_gt(modify(ctx, qp->number, MDL_QPS_RTR, needed), 0);
	cr_expect_eq(qp->path_mtu, 3);
}

Test(krn_cmd, queues_lie_in_the_segment_as_libmlx5_lays_them_out)
{
	uint32_t ctx = border_open(), pd = border_pd(ctx), cq = border_cq(ctx, 15);
	struct mdl_qp *qp = mdl_qp_find(border_qp(ctx, pd, cq, MDL_QPT_UC));

	cr_expect_eq(qp->sq - qp->rq, 4 * 64, "the send queue behind the receive queue");
	cr_expect_eq(qp->dbrec % MDL_PAGE, 64);
	*(uint32_t *)(uintptr_t)(qp->user_buf + 4 * 64) = 0xabcd;
	cr_expect_eq(*(uint32_t *)mdl_at(qp->sq), 0xabcd);
	cr_expect_eq(qp->uar_off & ~0x200u, 0x800);
	cr_expect_geq(qp->uar_page, 6, "the first QPs have registers of their own");
}

Test(krn_cmd, what_is_in_use_is_not_destroyed)
{
	uint32_t ctx = border_open(), pd = border_pd(ctx), cq = border_cq(ctx, 15);
	uint32_t qp = border_qp(ctx, pd, cq, MDL_QPT_RC);
	struct ib_uverbs_destroy_cq destroy_cq = { .cq_handle = cq };
	struct ib_uverbs_destroy_qp destroy_qp = { .qp_handle = qp };
	struct ib_uverbs_dealloc_pd dealloc = { .pd_handle = pd };
	uint32_t resp[2];

	cr_expect_eq(border_command(ctx, IB_USER_VERBS_CMD_DESTROY_CQ, &destroy_cq, 16, NULL, 0,
				    resp, 8),
		     -EBUSY);
	cr_expect_eq(
		border_command(ctx, IB_USER_VERBS_CMD_DEALLOC_PD, &dealloc, 4, NULL, 0, NULL, 0),
		-EBUSY);
	cr_expect_gt(border_command(ctx, IB_USER_VERBS_CMD_DESTROY_QP, &destroy_qp, 16, NULL, 0,
				    resp, 4),
		     0);
	cr_expect_eq(notes.destroyed, 1);
	cr_expect_gt(border_command(ctx, IB_USER_VERBS_CMD_DESTROY_CQ, &destroy_cq, 16, NULL, 0,
				    resp, 8),
		     0);
	cr_expect_gt(
		border_command(ctx, IB_USER_VERBS_CMD_DEALLOC_PD, &dealloc, 4, NULL, 0, NULL, 0),
		0);
}

Test(krn_cmd, a_context_that_closes_takes_its_objects_along)
{
	uint32_t ctx = border_open(), pd = border_pd(ctx), cq = border_cq(ctx, 15);
	uint32_t qp = border_qp(ctx, pd, cq, MDL_QPT_RC), other = border_open();
	uint32_t other_pd = border_pd(other);
	uint64_t user = mdl_qp_find(qp)->user_buf;

	cr_expect_eq(border_qp(other, pd, cq, MDL_QPT_RC), 0, "objects of another context");
	krn_ctx_close(ctx);
	cr_expect_null(mdl_qp_find(qp));
	cr_expect_null(mdl_cq_find(cq));
	cr_expect_eq(krn_share_find(user), 0);
	cr_expect_null(krn_ctx_get(ctx));
	cr_expect_not_null(mdl_table_find(MDL_TABLE_PD, other_pd));
}

/* Twenty QPs: four registers serve one each, the others share eleven. */
Test(krn_cmd, registers_are_shared_evenly)
{
	uint32_t ctx = border_open(), pd = border_pd(ctx), cq = border_cq(ctx, 15);
	struct krn_ctx *context = krn_ctx_get(ctx);

	for (int i = 0; i < 26; i++)
		cr_assert_neq(border_qp(ctx, pd, cq, MDL_QPT_RC), 0);
	cr_expect_eq(context->bfreg_users[0], 0);
	for (int n = 1; n < 12; n++)
		cr_expect_eq(context->bfreg_users[n], 2, "register %d has %u", n,
			     context->bfreg_users[n]);
	for (int n = 12; n < 16; n++)
		cr_expect_eq(context->bfreg_users[n], 1);
}
