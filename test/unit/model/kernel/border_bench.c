/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Bench of the kernel border: the recording NIC, and a driver's side of the commands. */
#include "unit/model/kernel/border_bench.h"

#include "model/kernel/cmd/krn_cmd.h"
#include "model/kernel/krn_uar.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct border_notes notes;

/* ---- the NIC --------------------------------------------------------------------------------- */
void nic_attach(void)
{
}

void nic_uar_write(uint32_t ctx, uint32_t page, uint32_t off, const void *bytes, uint32_t len)
{
	notes.writes++;
	notes.page = page;
	notes.off = off;
	notes.len = len;
	memcpy(notes.bytes, bytes, len < sizeof(notes.bytes) ? len : sizeof(notes.bytes));
}

void nic_recheck(uint32_t ctx, uint32_t page, uint32_t off)
{
}

int nic_qp_create(struct mdl_qp *qp)
{
	notes.created++;
	return 0;
}

int nic_stream_reset(struct mdl_qp *qp, uint16_t stream)
{
	notes.reset_stream = stream;
	return notes.reset_rc;
}

void nic_qp_destroy(struct mdl_qp *qp)
{
	notes.destroyed++;
}

void nic_qp_modify(struct mdl_qp *qp, uint32_t from, uint32_t to)
{
	notes.modified++;
}

void nic_qp_modified(struct mdl_qp *qp)
{
}

void nic_cq_create(struct mdl_cq *cq)
{
}

void nic_cq_resize(struct mdl_cq *cq, uint64_t old_buf, uint32_t old_cnt, uint32_t old_size)
{
	notes.resized++;
}

void nic_srq_create(struct mdl_srq *srq)
{
}

void nic_srq_limit(struct mdl_srq *srq, uint32_t limit)
{
	srq->limit = limit;
}

void nic_proc_died(uint32_t slot)
{
}

bool nic_fault_link_down(uint32_t device)
{
	return false;
}

bool nic_fault_dead(uint32_t device)
{
	return false;
}

bool nic_fault_moved(uint32_t device)
{
	return false;
}

void nic_fault_fail(uint32_t device, uint64_t now_ns)
{
}

bool nic_fault_has_failed(uint32_t device, uint64_t opened_ns)
{
	return opened_ns < mdl_self.proc->fatal_ns[device];
}

bool nic_fault_denied(void)
{
	return false;
}

bool nic_fault_forbidden(void)
{
	return false;
}

bool nic_fault_without_bf(void)
{
	return false;
}

uint64_t nic_fault_due(uint64_t now_ns)
{
	return UINT64_MAX;
}

uint64_t nic_service(uint64_t now_ns)
{
	return UINT64_MAX;
}

/* ---- the fabric ------------------------------------------------------------------------------ */
void border_setup(void)
{
	char name[32];

	snprintf(name, sizeof(name), "unit-%d", getpid());
	setenv("COPYRPC_HCA_SEGMENT", name, 1);
	cr_assert_eq(krn_ctx_attach(), 0);
}

void border_teardown(void)
{
	char path[160];

	cr_assert_gt(mdl_segment_path(path, sizeof(path), ""), 0);
	unlink(path);
	cr_assert_gt(mdl_segment_path(path, sizeof(path), ".lock"), 0);
	unlink(path);
}

ssize_t border_command(uint32_t ctx, uint32_t number, void *core, size_t core_len, const void *drv,
		       size_t drv_len, void *resp, size_t resp_len)
{
	uint64_t words[128];
	struct ib_uverbs_cmd_hdr *hdr = (void *)words;
	uint64_t address = (uintptr_t)resp;
	size_t size = sizeof(*hdr) + core_len + drv_len;

	if (resp)
		memcpy(core, &address, sizeof(address));
	hdr->command = number;
	hdr->in_words = (uint16_t)(size / 4);
	hdr->out_words = (uint16_t)(resp_len / 4);
	memcpy(hdr + 1, core, core_len);
	if (drv_len)
		memcpy((char *)(hdr + 1) + core_len, drv, drv_len);
	return krn_cmd_write(ctx, words, size);
}

uint32_t border_open(void)
{
	struct ib_uverbs_get_context req = { 0 };
	struct mlx5_ib_alloc_ucontext_req_v2 drv = { .total_num_bfregs = 16,
						     .num_low_latency_bfregs = 4,
						     .max_cqe_version = 1 };
	struct mlx5_ib_alloc_ucontext_resp said;
	uint32_t resp[2 + sizeof(said) / 4] = {
		0
	}; /* async fd, completion vectors, the driver's */
	int fd = krn_ctx_open(0, O_CLOEXEC);
	uint32_t index = 0;

	cr_assert_geq(fd, 0);
	while (!krn_ctx_get(index) || krn_ctx_get(index)->fd != fd)
		index++;
	cr_assert_gt(border_command(index, IB_USER_VERBS_CMD_GET_CONTEXT, &req, sizeof(req), &drv,
				    sizeof(drv), resp, sizeof(resp)),
		     0);
	memcpy(&said, resp + 2, sizeof(said));
	cr_assert_eq(said.tot_bfregs, 16);
	cr_assert_eq(said.cqe_version, 1);
	return index;
}

char *border_map_uar(uint32_t ctx, uint32_t page)
{
	char *at = mmap(NULL, MDL_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, krn_ctx_get(ctx)->fd,
			page * MDL_PAGE);

	cr_assert_neq(at, MAP_FAILED);
	krn_uar_find(ctx);
	return at;
}

char *border_pages(size_t pages)
{
	char *at = mmap(NULL, pages * MDL_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);

	cr_assert_neq(at, MAP_FAILED);
	return at;
}

uint32_t border_pd(uint32_t ctx)
{
	struct ib_uverbs_alloc_pd req = { 0 };
	uint32_t resp[2] = { 0 }; /* handle, number */

	cr_assert_gt(border_command(ctx, IB_USER_VERBS_CMD_ALLOC_PD, &req, sizeof(req), NULL, 0,
				    resp, sizeof(resp)),
		     0);
	return resp[0];
}

uint32_t border_cq(uint32_t ctx, uint32_t cqe)
{
	struct ib_uverbs_create_cq req = { .user_handle = 77, .cqe = cqe, .comp_channel = -1 };
	struct mlx5_ib_create_cq drv = { .buf_addr = (uintptr_t)border_pages(4),
					 .db_addr = (uintptr_t)border_pages(1),
					 .cqe_size = 64 };
	uint32_t resp[4] = { 0 };

	cr_assert_gt(border_command(ctx, IB_USER_VERBS_CMD_CREATE_CQ, &req, sizeof(req), &drv,
				    sizeof(drv), resp, sizeof(resp)),
		     0);
	return resp[0];
}

uint32_t border_srq(uint32_t ctx, uint32_t pd)
{
	struct ib_uverbs_create_srq req = { .pd_handle = pd, .max_wr = 15, .max_sge = 1 };
	struct mlx5_ib_create_srq drv = { .buf_addr = (uintptr_t)border_pages(1),
					  .db_addr = (uintptr_t)border_pages(1) };
	uint32_t resp[8] = { 0 };

	cr_assert_gt(border_command(ctx, IB_USER_VERBS_CMD_CREATE_SRQ, &req, sizeof(req), &drv,
				    sizeof(drv), resp, sizeof(resp)),
		     0);
	return resp[0];
}

uint32_t border_qp(uint32_t ctx, uint32_t pd, uint32_t cq, uint32_t type)
{
	struct ib_uverbs_create_qp req = { .pd_handle = pd,
					   .send_cq_handle = cq,
					   .recv_cq_handle = cq,
					   .max_send_wr = 8,
					   .max_recv_wr = 4,
					   .qp_type = (uint8_t)type };
	struct mlx5_ib_create_qp drv = { .buf_addr = (uintptr_t)border_pages(1),
					 .db_addr = (uintptr_t)border_pages(1) + 64,
					 .sq_wqe_count = 8,
					 .rq_wqe_count = 4,
					 .rq_wqe_shift = 6,
					 .uidx = 5 };
	uint32_t resp[24] = { 0 };

	if (border_command(ctx, IB_USER_VERBS_CMD_CREATE_QP, &req, sizeof(req), &drv, sizeof(drv),
			   resp, sizeof(resp)) < 0)
		return 0;
	return resp[0];
}
