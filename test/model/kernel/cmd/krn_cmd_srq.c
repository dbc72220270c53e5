/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Shared receive queues: plain ones, and those of tag matching with a list of tags and a CQ. */
#include "model/kernel/cmd/krn_cmd.h"
#include "model/kernel/krn_object.h"
#include "model/kernel/krn_share.h"
#include "model/fabric/mdl_nic.h"

#include <errno.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#define SRQ_WR_MAX  32767
#define SRQ_SGE_MAX 31
#define ATTR_MAX_WR 1
#define ATTR_LIMIT  2
#define SRQT_BASIC  0
#define SRQT_TM     2

/* Fields of the legacy and the extended command. */
struct create {
	uint64_t cookie;
	uint32_t type, pd, max_wr, max_sge, limit, cq, max_num_tags;
	struct mlx5_ib_create_srq drv;
};

static uint32_t round_up(uint32_t count)
{
	uint32_t power = 1;

	while (power < count)
		power *= 2;
	return power;
}

/* Returns the entries of the list that the kernel requests for so many tags. */
static uint32_t tag_entries(uint32_t max_num_tags)
{
	return round_up(max_num_tags + 1);
}

static int check_tags(const struct krn_cmd *cmd, const struct create *create)
{
	if (mdl_self.seg->link != MDL_LINK_IB)
		return -EOPNOTSUPP;
	if (!krn_object_own(MDL_TABLE_CQ, cmd->ctx_index, create->cq) || !create->max_num_tags ||
	    create->max_num_tags >= 1u << MDL_LOG_TAGS_MAX)
		return -EINVAL;
	return 0;
}

static int check_create(const struct krn_cmd *cmd, const struct create *create)
{
	if (!krn_object_own(MDL_TABLE_PD, cmd->ctx_index, create->pd))
		return -EINVAL;
	if (!create->max_wr || create->max_wr > SRQ_WR_MAX || create->max_sge > SRQ_SGE_MAX)
		return -EINVAL;
	if (create->type == SRQT_TM)
		return check_tags(cmd, create);
	return create->type == SRQT_BASIC ? 0 : -EOPNOTSUPP;
}

static int share_srq(struct mdl_srq *srq, const struct mlx5_ib_create_srq *drv)
{
	int err;

	srq->user_buf = drv->buf_addr;
	srq->user_len = (uint64_t)srq->wqe_cnt * srq->stride;
	srq->user_dbrec = drv->db_addr;
	err = krn_share(srq->user_buf, srq->user_len, &srq->buf);
	if (err)
		return err;
	err = krn_share(srq->user_dbrec, 4, &srq->dbrec);
	if (err)
		krn_unshare(srq->user_buf, srq->user_len);
	return err;
}

static int fill_tags(struct mdl_srq *srq, const struct create *create)
{
	uint32_t cnt = tag_entries(create->max_num_tags);

	srq->tm_list = mdl_pages_alloc(krn_object_tag_pages(cnt));
	if (!srq->tm_list)
		return -ENOMEM;
	srq->tm_cnt = cnt;
	srq->cq = create->cq;
	return 0;
}

static void free_tags(const struct mdl_srq *srq)
{
	if (srq->tm_cnt)
		mdl_pages_free(srq->tm_list, krn_object_tag_pages(srq->tm_cnt));
}

/* A WQE has a 16-byte head and 16 bytes for each scatter entry; the rings are powers of two. */
static int fill_srq(struct krn_cmd *cmd, struct mdl_srq *srq, const struct create *create)
{
	uint32_t bytes = 16 + 16 * create->max_sge;
	int err;

	srq->cookie = create->cookie;
	srq->async_chan = cmd->ctx->async_chan;
	srq->pd = create->pd;
	srq->type = create->type;
	srq->uidx = create->drv.uidx;
	srq->wqe_cnt = round_up(create->max_wr + 1);
	srq->stride = round_up(bytes < 32 ? 32 : bytes);
	srq->max_wr = create->max_wr;
	srq->max_sge = (srq->stride - 16) / 16;
	srq->limit = create->limit;
	mdl_lock_init(&srq->lock);
	mdl_lock_init(&srq->tm_lock);
	err = create->type == SRQT_TM ? fill_tags(srq, create) : 0;
	if (err)
		return err;
	err = share_srq(srq, &create->drv);
	if (err)
		free_tags(srq);
	return err;
}

static int create_srq(struct krn_cmd *cmd, struct create *create)
{
	struct ib_uverbs_create_srq_resp resp = { 0 };
	struct mlx5_ib_create_srq_resp drv = { 0 };
	struct mdl_srq *srq;
	uint32_t number;
	int err;

	krn_cmd_driver(cmd, &create->drv, sizeof(create->drv));
	err = check_create(cmd, create);
	if (err)
		return err;
	srq = mdl_table_claim(MDL_TABLE_SRQ, cmd->ctx_index, &number);
	if (!srq)
		return -ENOMEM;
	err = fill_srq(cmd, srq, create);
	if (err) {
		mdl_table_release(srq);
		return err;
	}
	krn_object_pd_ref(srq->pd, 1);
	krn_object_cq_ref(srq->cq, 1);
	nic_srq_create(srq);
	mdl_table_publish(srq, number);
	resp.srq_handle = resp.srqn = drv.srqn = number;
	resp.max_wr = srq->max_wr;
	resp.max_sge = srq->max_sge;
	krn_cmd_reply(cmd, &resp, sizeof(resp), &drv, sizeof(drv));
	return 0;
}

int krn_cmd_create_srq(struct krn_cmd *cmd)
{
	const struct ib_uverbs_create_srq *req = cmd->core;
	struct create create = { .cookie = req->user_handle,
				 .pd = req->pd_handle,
				 .max_wr = req->max_wr,
				 .max_sge = req->max_sge,
				 .limit = req->srq_limit };

	return create_srq(cmd, &create);
}

int krn_cmd_create_xsrq(struct krn_cmd *cmd)
{
	const struct ib_uverbs_create_xsrq *req = cmd->core;
	struct create create = { .cookie = req->user_handle,
				 .type = req->srq_type,
				 .pd = req->pd_handle,
				 .max_wr = req->max_wr,
				 .max_sge = req->max_sge,
				 .limit = req->srq_limit,
				 .cq = req->cq_handle,
				 .max_num_tags = req->max_num_tags };

	return create_srq(cmd, &create);
}

int krn_cmd_modify_srq(struct krn_cmd *cmd)
{
	const struct ib_uverbs_modify_srq *req = cmd->core;
	struct mdl_srq *srq = krn_object_own(MDL_TABLE_SRQ, cmd->ctx_index, req->srq_handle);

	if (!srq)
		return -EINVAL;
	if (req->attr_mask & ATTR_MAX_WR)
		return -EOPNOTSUPP; /* mlx5 does not resize SRQs */
	if (!(req->attr_mask & ATTR_LIMIT))
		return 0;
	if (req->srq_limit >= srq->wqe_cnt)
		return -EINVAL;
	nic_srq_limit(srq, req->srq_limit);
	return 0;
}

int krn_cmd_query_srq(struct krn_cmd *cmd)
{
	const struct ib_uverbs_query_srq *req = cmd->core;
	const struct mdl_srq *srq = krn_object_own(MDL_TABLE_SRQ, cmd->ctx_index, req->srq_handle);
	struct ib_uverbs_query_srq_resp resp = { 0 };

	if (!srq)
		return -EINVAL;
	resp.max_wr = srq->wqe_cnt - 1;
	resp.max_sge = srq->max_sge;
	resp.srq_limit = srq->limit;
	krn_cmd_reply(cmd, &resp, sizeof(resp), NULL, 0);
	return 0;
}

int krn_cmd_destroy_srq(struct krn_cmd *cmd)
{
	const struct ib_uverbs_destroy_srq *req = cmd->core;
	struct mdl_srq *srq = krn_object_own(MDL_TABLE_SRQ, cmd->ctx_index, req->srq_handle);
	struct ib_uverbs_destroy_srq_resp resp;

	if (!srq)
		return -EINVAL;
	if (srq->refs)
		return -EBUSY;
	resp.events_reported = krn_object_destroy_srq(srq);
	krn_cmd_reply(cmd, &resp, sizeof(resp), NULL, 0);
	return 0;
}
