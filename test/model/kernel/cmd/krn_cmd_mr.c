/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Protection domains, memory regions, and the MAC address that a RoCE address handle needs. */
#include "model/kernel/cmd/krn_cmd.h"
#include "model/kernel/krn_object.h"
#include "model/fabric/mdl_raw.h"
#include "model/fabric/mdl_segment.h"
#include "model/fabric/mdl_table.h"

#include <errno.h>
#include <linux/capability.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <string.h>
#include <sys/resource.h>

int krn_cmd_alloc_pd(struct krn_cmd *cmd)
{
	uint32_t number;
	struct mdl_pd *pd = mdl_table_claim(MDL_TABLE_PD, cmd->ctx_index, &number);
	struct ib_uverbs_alloc_pd_resp resp;
	struct mlx5_ib_alloc_pd_resp drv;

	if (!pd)
		return -ENOMEM;
	mdl_table_publish(pd, number);
	resp.pd_handle = number;
	drv.pdn = number;
	krn_cmd_reply(cmd, &resp, sizeof(resp), &drv, sizeof(drv));
	return 0;
}

int krn_cmd_dealloc_pd(struct krn_cmd *cmd)
{
	const struct ib_uverbs_dealloc_pd *req = cmd->core;
	struct mdl_pd *pd = krn_object_own(MDL_TABLE_PD, cmd->ctx_index, req->pd_handle);

	if (!pd)
		return -EINVAL;
	if (pd->refs)
		return -EBUSY;
	mdl_table_hide(pd);
	mdl_table_release(pd);
	return 0;
}

/* Returns true if every page of the range is mapped. An unmapped page cannot be pinned. */
static bool range_is_mapped(uint64_t start, uint64_t length)
{
	uint64_t at = start & ~(uint64_t)(MDL_PAGE - 1), end = start + length;
	unsigned char resident[4096];

	while (at < end) {
		uint64_t bytes = end - at, most = sizeof(resident) * MDL_PAGE;

		if (bytes > most)
			bytes = most;
		if (MDL_RAW3(mincore, at, bytes, resident) < 0)
			return false;
		at += most;
	}
	return true;
}

#define ACCESS_ON_DEMAND      64
#define ACCESS_REMOTE_CHANGES (MDL_ACCESS_REMOTE_WRITE | MDL_ACCESS_REMOTE_ATOMIC)

static int check_reg(const struct krn_cmd *cmd, const struct ib_uverbs_reg_mr *req)
{
	if (req->access_flags & ACCESS_ON_DEMAND)
		return -EOPNOTSUPP;
	/* The kernel requires local write access with remote write or atomic access. */
	if ((req->access_flags & ACCESS_REMOTE_CHANGES) &&
	    !(req->access_flags & MDL_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	if (!krn_object_own(MDL_TABLE_PD, cmd->ctx_index, req->pd_handle) ||
	    req->start + req->length < req->start ||
	    (req->start & (MDL_PAGE - 1)) != (req->hca_va & (MDL_PAGE - 1)))
		return -EINVAL;
	return range_is_mapped(req->start, req->length) ? 0 : -EFAULT;
}

/*
 * Pages of this process's regions, as the kernel counts them: a page in two regions counts twice.
 */
static uint64_t pinned_pages;

static uint64_t pages_of(uint64_t start, uint64_t length)
{
	return (start % MDL_PAGE + length + MDL_PAGE - 1) / MDL_PAGE;
}

/* Returns true if the process has CAP_IPC_LOCK and so no limit. */
static bool may_lock_all(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { 0 } };

	return MDL_RAW2(capget, &head, data) >= 0 &&
	       data[CAP_TO_INDEX(CAP_IPC_LOCK)].effective & CAP_TO_MASK(CAP_IPC_LOCK);
}

static int pin(uint64_t start, uint64_t length)
{
	uint64_t pages = pages_of(start, length);
	struct rlimit limit;
	uint64_t now = __atomic_add_fetch(&pinned_pages, pages, __ATOMIC_RELAXED);

	if (may_lock_all() || MDL_RAW4(prlimit64, 0, RLIMIT_MEMLOCK, NULL, &limit) < 0 ||
	    limit.rlim_cur == RLIM_INFINITY || now <= limit.rlim_cur / MDL_PAGE)
		return 0;
	__atomic_sub_fetch(&pinned_pages, pages, __ATOMIC_RELAXED);
	return -ENOMEM;
}

void krn_object_unpin(uint64_t start, uint64_t length)
{
	__atomic_sub_fetch(&pinned_pages, pages_of(start, length), __ATOMIC_RELAXED);
}

int krn_cmd_reg_mr(struct krn_cmd *cmd)
{
	const struct ib_uverbs_reg_mr *req = cmd->core;
	struct ib_uverbs_reg_mr_resp resp;
	struct mdl_mr *mr;
	uint32_t key;
	int err = check_reg(cmd, req);

	if (!err)
		err = pin(req->start, req->length);
	if (err)
		return err;
	mr = mdl_table_claim(MDL_TABLE_MR, cmd->ctx_index, &key);
	if (!mr) {
		krn_object_unpin(req->start, req->length);
		return -ENOMEM;
	}
	mr->pd = req->pd_handle;
	mr->access = req->access_flags;
	mr->addr = req->hca_va;
	mr->length = req->length;
	mr->user_addr = req->start;
	krn_object_pd_ref(mr->pd, 1);
	mdl_table_publish(mr, key);
	resp = (struct ib_uverbs_reg_mr_resp){ .mr_handle = key, .lkey = key, .rkey = key };
	krn_cmd_reply(cmd, &resp, sizeof(resp), NULL, 0);
	return 0;
}

#define REREG_TRANSLATION 1
#define REREG_PD          2
#define REREG_ACCESS      4

/* Checks what the region would be afterwards, as a registration. */
static int check_rereg(const struct krn_cmd *cmd, const struct mdl_mr *mr,
		       const struct ib_uverbs_rereg_mr *req)
{
	bool moves = req->flags & REREG_TRANSLATION;
	struct ib_uverbs_reg_mr after = {
		.start = moves ? req->start : mr->user_addr,
		.length = moves ? req->length : mr->length,
		.hca_va = moves ? req->hca_va : mr->addr,
		.pd_handle = req->flags & REREG_PD ? req->pd_handle : mr->pd,
		.access_flags = req->flags & REREG_ACCESS ? req->access_flags : mr->access,
	};

	if (!req->flags || req->flags & ~(uint32_t)(REREG_TRANSLATION | REREG_PD | REREG_ACCESS))
		return -EINVAL;
	return check_reg(cmd, &after);
}

/* Moves a region. It covers nothing while its addresses change. */
static int move(struct mdl_mr *mr, const struct ib_uverbs_rereg_mr *req)
{
	int err = pin(req->start, req->length);

	if (err)
		return err;
	krn_object_unpin(mr->user_addr, mr->length);
	__atomic_store_n(&mr->length, 0, __ATOMIC_RELEASE);
	mr->addr = req->hca_va;
	mr->user_addr = req->start;
	__atomic_store_n(&mr->length, req->length, __ATOMIC_RELEASE);
	return 0;
}

/* The keys stay: programs do not post what uses a region while they change it. */
int krn_cmd_rereg_mr(struct krn_cmd *cmd)
{
	const struct ib_uverbs_rereg_mr *req = cmd->core;
	struct mdl_mr *mr = krn_object_own(MDL_TABLE_MR, cmd->ctx_index, req->mr_handle);
	struct ib_uverbs_rereg_mr_resp resp;
	int err;

	if (!mr)
		return -EINVAL;
	err = check_rereg(cmd, mr, req);
	if (!err && req->flags & REREG_TRANSLATION)
		err = move(mr, req);
	if (err)
		return err;
	if (req->flags & REREG_PD) {
		krn_object_pd_ref(mr->pd, -1);
		krn_object_pd_ref(req->pd_handle, 1);
		mr->pd = req->pd_handle;
	}
	if (req->flags & REREG_ACCESS)
		mr->access = req->access_flags;
	resp = (struct ib_uverbs_rereg_mr_resp){ .lkey = mr->key, .rkey = mr->key };
	krn_cmd_reply(cmd, &resp, sizeof(resp), NULL, 0);
	return 0;
}

int krn_cmd_dereg_mr(struct krn_cmd *cmd)
{
	const struct ib_uverbs_dereg_mr *req = cmd->core;
	struct mdl_mr *mr = krn_object_own(MDL_TABLE_MR, cmd->ctx_index, req->mr_handle);

	if (!mr)
		return -EINVAL;
	krn_object_destroy_mr(mr);
	return 0;
}

int krn_cmd_create_ah(struct krn_cmd *cmd)
{
	const struct ib_uverbs_create_ah *req = cmd->core;
	struct ib_uverbs_create_ah_resp resp = { .ah_handle = 1 };
	struct mlx5_ib_create_ah_resp drv = { .response_length = sizeof(drv) };
	const struct mdl_port *port;

	if (!krn_object_own(MDL_TABLE_PD, cmd->ctx_index, req->pd_handle))
		return -EINVAL;
	if (mdl_self.seg->link == MDL_LINK_ROCE) {
		port = mdl_port_by_gid(req->attr.grh.dgid);
		if (!port || !req->attr.is_global)
			return -ENETUNREACH;
		memcpy(drv.dmac, port->mac, sizeof(port->mac));
	}
	krn_cmd_reply(cmd, &resp, sizeof(resp), &drv, sizeof(drv));
	return 0;
}

/* Succeeds: the model keeps no address handle, each WQE contains its fields. */
int krn_cmd_destroy_ah(struct krn_cmd *cmd)
{
	return 0;
}
