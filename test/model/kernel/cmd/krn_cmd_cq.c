/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Completion channels and completion queues. */
#include "model/kernel/krn_chan.h"
#include "model/kernel/cmd/krn_cmd.h"
#include "model/kernel/krn_object.h"
#include "model/kernel/krn_share.h"
#include "model/fabric/mdl_nic.h"

#include <errno.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <string.h>

#define CQE_MAX 4194304

int krn_cmd_create_comp_channel(struct krn_cmd *cmd)
{
	struct ib_uverbs_create_comp_channel_resp resp;
	uint32_t index;
	int fd = krn_chan_open(KRN_CHAN_COMP, &index);

	if (fd < 0)
		return fd;
	resp.fd = (uint32_t)fd;
	krn_cmd_reply(cmd, &resp, sizeof(resp), NULL, 0);
	return 0;
}

/* Fields of the legacy and the extended command. */
struct create {
	uint64_t cookie;
	uint32_t cqe;
	int32_t channel;
	uint32_t flags; /* IB_UVERBS_CQ_FLAGS_* */
	struct mlx5_ib_create_cq drv;
};

static void take_create(const struct krn_cmd *cmd, struct create *create)
{
	const struct ib_uverbs_ex_create_cq *ex = cmd->core;
	const struct ib_uverbs_create_cq *old = cmd->core;

	create->cookie = cmd->extended ? ex->user_handle : old->user_handle;
	create->cqe = cmd->extended ? ex->cqe : old->cqe;
	create->flags = cmd->extended ? ex->flags : 0;
	create->channel = cmd->extended ? ex->comp_channel : old->comp_channel;
	krn_cmd_driver(cmd, &create->drv, sizeof(create->drv));
}

static uint32_t round_up(uint32_t count)
{
	uint32_t power = 1;

	while (power < count)
		power *= 2;
	return power;
}

static int check_create(const struct create *create)
{
	if (create->cqe < 1 || create->cqe >= CQE_MAX)
		return -EINVAL;
	if (create->drv.cqe_size != 64 && create->drv.cqe_size != 128)
		return -EINVAL;
	if (create->channel >= 0 && !krn_chan_by_fd(create->channel))
		return -EINVAL;
	return create->drv.db_addr % 8 ? -EINVAL : 0;
}

static uint8_t comp_format(const struct mlx5_ib_create_cq *drv)
{
	return drv->cqe_comp_res_format & MLX5_IB_CQE_RES_FORMAT_CSUM ? 1 : 0;
}

/* Moves buffer and doorbell record into the segment. */
static int share_cq(struct mdl_cq *cq, const struct mlx5_ib_create_cq *drv)
{
	int err;

	cq->user_buf = drv->buf_addr;
	cq->user_len = (uint64_t)cq->cqe_cnt * cq->cqe_size;
	cq->user_dbrec = drv->db_addr;
	err = krn_share(cq->user_buf, cq->user_len, &cq->buf);
	if (err)
		return err;
	err = krn_share(cq->user_dbrec, 8, &cq->dbrec);
	if (err)
		krn_unshare(cq->user_buf, cq->user_len);
	return err;
}

static int fill_cq(struct krn_cmd *cmd, struct mdl_cq *cq, const struct create *create)
{
	cq->cookie = create->cookie;
	cq->chan = create->channel >= 0 ? krn_chan_by_fd(create->channel) : 0;
	cq->async_chan = cmd->ctx->async_chan;
	cq->cqe_cnt = round_up(create->cqe + 1);
	cq->cqe_size = create->drv.cqe_size;
	cq->comp_en = create->drv.cqe_comp_en;
	cq->comp_format = comp_format(&create->drv);
	cq->pad128 = (create->drv.flags & MLX5_IB_CREATE_CQ_FLAGS_CQE_128B_PAD) != 0;
	cq->ignore_overrun = (create->flags & IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN) != 0;
	mdl_lock_init(&cq->lock);
	return share_cq(cq, &create->drv);
}

int krn_cmd_create_cq(struct krn_cmd *cmd)
{
	struct ib_uverbs_ex_create_cq_resp resp = { .response_length = sizeof(resp) };
	struct mlx5_ib_create_cq_resp drv = { 0 };
	struct create create;
	struct mdl_cq *cq;
	uint32_t number;
	int err;

	take_create(cmd, &create);
	err = check_create(&create);
	if (err)
		return err;
	cq = mdl_table_claim(MDL_TABLE_CQ, cmd->ctx_index, &number);
	if (!cq)
		return -ENOMEM;
	err = fill_cq(cmd, cq, &create);
	if (err) {
		mdl_table_release(cq);
		return err;
	}
	nic_cq_create(cq);
	mdl_table_publish(cq, number);
	resp.base.cq_handle = drv.cqn = number;
	resp.base.cqe = cq->cqe_cnt - 1;
	krn_cmd_reply(cmd, &resp, cmd->extended ? sizeof(resp) : sizeof(resp.base), &drv,
		      sizeof(drv));
	return 0;
}

/* Shares the new buffer, switches the NIC to it and releases the old one. */
static int resize(struct mdl_cq *cq, uint32_t count, const struct mlx5_ib_resize_cq *drv)
{
	uint64_t old_user = cq->user_buf, old_len = cq->user_len, old_buf = cq->buf, fresh;
	uint32_t old_cnt = cq->cqe_cnt, old_size = cq->cqe_size;
	int err = krn_share(drv->buf_addr, (uint64_t)count * drv->cqe_size, &fresh);

	if (err)
		return err;
	mdl_lock(&cq->lock);
	cq->user_buf = drv->buf_addr;
	cq->user_len = (uint64_t)count * drv->cqe_size;
	cq->buf = fresh;
	cq->cqe_cnt = count;
	cq->cqe_size = drv->cqe_size;
	nic_cq_resize(cq, old_buf, old_cnt, old_size);
	mdl_unlock(&cq->lock);
	krn_unshare(old_user, old_len);
	return 0;
}

int krn_cmd_resize_cq(struct krn_cmd *cmd)
{
	const struct ib_uverbs_resize_cq *req = cmd->core;
	struct mdl_cq *cq = krn_object_own(MDL_TABLE_CQ, cmd->ctx_index, req->cq_handle);
	struct ib_uverbs_resize_cq_resp resp = { 0 };
	struct mlx5_ib_resize_cq drv;
	int err;

	krn_cmd_driver(cmd, &drv, sizeof(drv));
	if (!cq || req->cqe < 1 || req->cqe >= CQE_MAX ||
	    (drv.cqe_size != 64 && drv.cqe_size != 128))
		return -EINVAL;
	err = resize(cq, round_up(req->cqe + 1), &drv);
	if (err)
		return err;
	resp.cqe = cq->cqe_cnt - 1;
	krn_cmd_reply(cmd, &resp, sizeof(resp), NULL, 0);
	return 0;
}

int krn_cmd_destroy_cq(struct krn_cmd *cmd)
{
	const struct ib_uverbs_destroy_cq *req = cmd->core;
	struct mdl_cq *cq = krn_object_own(MDL_TABLE_CQ, cmd->ctx_index, req->cq_handle);
	struct ib_uverbs_destroy_cq_resp resp;

	if (!cq)
		return -EINVAL;
	if (cq->refs)
		return -EBUSY;
	krn_object_destroy_cq(cq, &resp.comp_events_reported, &resp.async_events_reported);
	krn_cmd_reply(cmd, &resp, sizeof(resp), NULL, 0);
	return 0;
}

/* Accepts moderation, which only delays events, and delivers events at once. */
int krn_cmd_modify_cq(struct krn_cmd *cmd)
{
	const struct ib_uverbs_ex_modify_cq *req = cmd->core;

	return krn_object_own(MDL_TABLE_CQ, cmd->ctx_index, req->cq_handle) ? 0 : -EINVAL;
}
