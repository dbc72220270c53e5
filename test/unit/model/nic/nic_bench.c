/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Bench of the NIC: objects, the border's calls, a driver's side. */
#include "unit/model/nic/nic_bench.h"

#include "model/fabric/mdl_table.h"
#include "model/nic/nic_be.h"
#include "model/nic/nic_rwqe.h"
#include "model/nic/nic_stream.h"
#include "model/nic/nic_wqe.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BENCH_ARENA = 1 << 20, BENCH_PD = 7 };

struct bench bench;

/* A driver's state of its queues, by index in the tables. */
static struct {
	uint32_t post, last, rq_post;
} bench_sw[MDL_QP_MAX];
static uint32_t bench_ci[MDL_CQ_MAX];
static uint32_t bench_srq_post[MDL_SRQ_MAX];

static uint32_t bench_index(const struct mdl_qp *qp)
{
	return qp - mdl_self.seg->qp;
}

/* ---- the border ------------------------------------------------------------------------------ */
static void *bench_at(const struct mdl_mr *mr, uint64_t addr)
{
	return (void *)(uintptr_t)(mr->user_addr + (addr - mr->addr));
}

int krn_mem_read(const struct mdl_mr *mr, uint64_t addr, void *to, uint64_t len)
{
	memcpy(to, bench_at(mr, addr), len);
	return 0;
}

int krn_mem_write(const struct mdl_mr *mr, uint64_t addr, const void *from, uint64_t len)
{
	memcpy(bench_at(mr, addr), from, len);
	return 0;
}

int krn_mem_copy(const struct mdl_mr *to, uint64_t to_addr, const struct mdl_mr *from,
		 uint64_t from_addr, uint64_t len)
{
	return krn_mem_write(to, to_addr, bench_at(from, from_addr), len);
}

void *krn_mem_map(const struct mdl_mr *mr, uint64_t addr, uint64_t len)
{
	return bench_at(mr, addr);
}

static void bench_async(uint32_t type)
{
	bench.async_cnt++;
	bench.async_last = type;
}

void krn_cq_event(struct mdl_cq *cq)
{
	bench.cq_events++;
}

void krn_cq_async(struct mdl_cq *cq, uint32_t type)
{
	bench_async(type);
}

void krn_qp_async(struct mdl_qp *qp, uint32_t type)
{
	bench_async(type);
}

void krn_srq_async(struct mdl_srq *srq, uint32_t type)
{
	bench_async(type);
}

void krn_service_wake(uint32_t slot)
{
	bench.wakes++;
}

/* ---- objects --------------------------------------------------------------------------------- */
static uint64_t bench_alloc(uint64_t bytes)
{
	uint64_t at = bench.next;

	bench.next += (bytes + 4095) & ~4095ull;
	cr_assert(bench.next <= sizeof(struct mdl_segment) + BENCH_ARENA);
	return at;
}

void bench_open(void)
{
	size_t bytes = sizeof(struct mdl_segment) + BENCH_ARENA;
	struct mdl_segment *seg = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	cr_assert(seg != MAP_FAILED);
	mdl_self.seg = seg;
	mdl_self.slot = 0;
	mdl_self.proc = &seg->proc[0];
	mdl_self.proc->state = MDL_PROC_LIVE;
	mdl_self.proc->pid = getpid();
	mdl_self.config.mode = MDL_MODE_TRAP;
	mdl_lock_init(&seg->table_lock);
	seg->link = MDL_LINK_IB;
	seg->node_cnt = seg->port_cnt = 1;
	seg->port[0].lid = 1;
	seg->port[0].gid_cnt = 1;
	seg->port[0].gid[0][15] = 0x2a;
	bench.next = (sizeof(*seg) + 4095) & ~4095ull;
	bench.buf = mdl_at(bench_alloc(BENCH_BUF));
	bench.key = bench_mr(bench.buf, BENCH_BUF, 0xf);
}

uint32_t bench_mr(void *addr, uint64_t len, uint32_t access)
{
	uint32_t number;
	struct mdl_mr *mr = mdl_table_claim(MDL_TABLE_MR, 0, &number);

	mr->pd = BENCH_PD;
	mr->access = access;
	mr->addr = mr->user_addr = (uintptr_t)addr;
	mr->length = len;
	mdl_table_publish(mr, number);
	return number;
}

struct mdl_cq *bench_cq(uint32_t cnt, uint32_t size)
{
	uint32_t number;
	struct mdl_cq *cq = mdl_table_claim(MDL_TABLE_CQ, 0, &number);

	cq->cqe_cnt = cnt;
	cq->cqe_size = size;
	cq->buf = bench_alloc((uint64_t)cnt * size);
	cq->dbrec = bench_alloc(8);
	for (uint32_t i = 0; i < cnt; i++)
		((uint8_t *)mdl_at(cq->buf))[i * size + size - 1] = 0xf0;
	mdl_lock_init(&cq->lock);
	nic_cq_create(cq);
	mdl_table_publish(cq, number);
	bench_ci[cq - mdl_self.seg->cq] = 0;
	return cq;
}

static struct mdl_srq *bench_srq_fill(uint32_t cnt, uint32_t *number)
{
	struct mdl_srq *srq = mdl_table_claim(MDL_TABLE_SRQ, 0, number);

	srq->pd = BENCH_PD;
	srq->wqe_cnt = cnt;
	srq->stride = 32;
	srq->buf = bench_alloc(cnt * 32);
	srq->dbrec = bench_alloc(8);
	mdl_lock_init(&srq->lock);
	mdl_lock_init(&srq->tm_lock);
	bench_srq_post[srq - mdl_self.seg->srq] = 0;
	return srq;
}

struct mdl_srq *bench_srq(uint32_t cnt)
{
	uint32_t number;
	struct mdl_srq *srq = bench_srq_fill(cnt, &number);

	nic_srq_create(srq);
	mdl_table_publish(srq, number);
	return srq;
}

struct mdl_srq *bench_xrq(struct mdl_cq *cq, uint32_t cnt, uint32_t tags)
{
	uint32_t number;
	struct mdl_srq *srq = bench_srq_fill(cnt, &number);

	srq->cq = cq->number;
	srq->uidx = 0x700 + (srq - mdl_self.seg->srq);
	srq->tm_cnt = tags;
	srq->tm_list = bench_alloc(tags * MDL_TM_ENTRY_BYTES);
	nic_srq_create(srq);
	mdl_table_publish(srq, number);
	return srq;
}

static void bench_qp_attributes(struct mdl_qp *qp)
{
	qp->path.dlid = 1;
	qp->path_mtu = 3;
	qp->max_rd_atomic = qp->max_dest_rd_atomic = 4;
	qp->retry_cnt = 1;
	qp->timeout = 1;
	qp->rnr_retry = 7;
	qp->min_rnr_timer = 1;
	qp->access = 0xf;
	qp->qkey = 0x11111111;
	qp->uidx = 0x500 + bench_index(qp);
	qp->recv_uidx = qp->tagged ? mdl_srq_find(qp->srq)->uidx : qp->uidx;
	qp->state = MDL_QPS_RTS;
}

struct mdl_qp *bench_qp(uint32_t type, struct mdl_cq *cq, struct mdl_srq *srq, uint32_t depth)
{
	uint32_t number;
	struct mdl_qp *qp = mdl_table_claim(MDL_TABLE_QP, 0, &number);

	qp->type = type;
	qp->pd = BENCH_PD;
	qp->send_cq = qp->recv_cq = cq->number;
	qp->srq = srq ? srq->number : 0;
	if (srq && srq->tm_cnt) {
		qp->tagged = 1;
		qp->recv_cq = srq->cq;
	}
	qp->sq_cnt = depth;
	qp->sq = bench_alloc(depth * 64);
	qp->rq_cnt = srq ? 0 : depth;
	qp->rq_shift = 4;
	qp->rq = bench_alloc(depth * 16);
	qp->dbrec = bench_alloc(8);
	qp->uar_off = 0x800;
	mdl_lock_init(&qp->sq_lock);
	mdl_lock_init(&qp->rq_lock);
	cr_assert_eq(nic_qp_create(qp), 0);
	bench_qp_attributes(qp);
	mdl_table_publish(qp, number);
	memset(&bench_sw[bench_index(qp)], 0, sizeof(bench_sw[0]));
	return qp;
}

struct mdl_qp *bench_dci(struct mdl_cq *cq, uint32_t depth, uint8_t log_streams, int log_errored)
{
	struct mdl_qp *qp = bench_qp(MDL_QPT_DCI, cq, NULL, depth);

	qp->rq_cnt = 0;
	if (log_errored < 0)
		return qp;
	qp->has_streams = 1;
	qp->log_streams = log_streams;
	qp->log_errored = (uint8_t)log_errored;
	cr_assert_eq(nic_stream_create(qp), 0);
	nic_stream_forget(qp);
	return qp;
}

struct mdl_qp *bench_dct(struct mdl_cq *cq, struct mdl_srq *srq, uint64_t key)
{
	struct mdl_qp *qp = bench_qp(MDL_QPT_DCT, cq, srq, 0);

	qp->send_cq = 0;
	qp->dc_key = key;
	qp->state = MDL_QPS_RTR;
	return qp;
}

void bench_connect(struct mdl_qp *a, struct mdl_qp *b)
{
	a->dest_qpn = b->number;
	b->dest_qpn = a->number;
}

/* ---- the driver's side ----------------------------------------------------------------------- */
static uint32_t bench_av(uint8_t *out, const struct bench_wr *wr, uint32_t type)
{
	if (type == MDL_QPT_DCI)
		nic_be64_put(out, wr->dc_key);
	else
		nic_be32_put(out, wr->qkey);
	nic_be32_put(out + 8, 0x80000000u | wr->dqpn);
	nic_be16_put(out + 14, wr->rlid);
	nic_be32_put(out + 28, wr->grh ? 1u << 30 : 0);
	out[47] = 0x2a;
	return 48;
}

static uint32_t bench_list_op(uint8_t *out, const struct bench_wr *wr)
{
	out[0] = wr->tm_op << 4;
	out[1] = wr->tm_flags;
	nic_be16_put(out + 2, wr->tm_index);
	nic_be16_put(out + 6, wr->tm_cnt);
	memcpy(out + 16, &wr->tag, 8);
	memcpy(out + 24, &wr->mask, 8);
	if (wr->tm_op != NIC_TM_APPEND)
		return 32;
	nic_be32_put(out + 32, wr->len);
	nic_be32_put(out + 36, wr->lkey ? wr->lkey : wr->len ? bench.key : NIC_LKEY_END);
	nic_be64_put(out + 40, (uintptr_t)wr->addr);
	return 48;
}

static uint32_t bench_body(uint8_t *out, const struct bench_wr *wr, uint32_t type)
{
	bool remote = wr->opcode == NIC_OP_WRITE || wr->opcode == NIC_OP_WRITE_IMM ||
		      wr->opcode == NIC_OP_READ || wr->opcode == NIC_OP_CAS ||
		      wr->opcode == NIC_OP_FETCH_ADD;
	uint32_t at = 16;

	if (wr->opcode == NIC_OP_TAG_MATCHING)
		return at + bench_list_op(out + at, wr);
	if ((type == MDL_QPT_UD || type == MDL_QPT_DCI) && wr->opcode != NIC_OP_NOP)
		at += bench_av(out + at, wr, type);
	if (remote) {
		nic_be64_put(out + at, wr->raddr);
		nic_be32_put(out + at + 8, wr->rkey);
		at += 16;
	}
	if (wr->opcode == NIC_OP_CAS || wr->opcode == NIC_OP_FETCH_ADD) {
		nic_be64_put(out + at, wr->swap_add);
		nic_be64_put(out + at + 8, wr->compare);
		at += 16;
	}
	if (wr->addr && wr->inl) {
		nic_be32_put(out + at, 0x80000000u | wr->len);
		memcpy(out + at + 4, wr->addr, wr->len);
		at += (4 + wr->len + 15) & ~15u;
	} else if (wr->addr) {
		nic_be32_put(out + at, wr->len);
		nic_be32_put(out + at + 4, wr->lkey ? wr->lkey : bench.key);
		nic_be64_put(out + at + 8, (uintptr_t)wr->addr);
		at += 16;
	}
	return at;
}

uint32_t bench_put(struct mdl_qp *qp, const struct bench_wr *wr)
{
	uint8_t bytes[1024] = { 0 }, *ring = mdl_at(qp->sq);
	uint32_t index = bench_index(qp), post = bench_sw[index].post;
	uint32_t len = bench_body(bytes, wr, qp->type);
	uint32_t blocks = (len + 63) / 64;

	nic_be32_put(bytes, (post & 0xffff) << 8 | wr->opcode);
	nic_be32_put(bytes + 4, qp->number << 8 | len / 16);
	nic_be16_put(bytes + 9, wr->stream);
	bytes[11] = wr->flags;
	memcpy(bytes + 12, &wr->imm, 4);
	for (uint32_t i = 0; i < blocks; i++)
		memcpy(ring + ((post + i) & (qp->sq_cnt - 1)) * 64, bytes + i * 64, 64);
	bench_sw[index].last = post;
	bench_sw[index].post += blocks;
	return blocks;
}

void bench_record(struct mdl_qp *qp)
{
	nic_be32_put((uint8_t *)mdl_at(qp->dbrec) + 4, bench_sw[bench_index(qp)].post & 0xffff);
}

void bench_ring(struct mdl_qp *qp)
{
	const uint8_t *ring = mdl_at(qp->sq);
	uint32_t last = bench_sw[bench_index(qp)].last;

	nic_uar_write(0, 0, 0x800, ring + (last & (qp->sq_cnt - 1)) * 64, 8);
}

void bench_ring_blueflame(struct mdl_qp *qp, uint32_t blocks)
{
	const uint8_t *ring = mdl_at(qp->sq);
	uint32_t first = bench_sw[bench_index(qp)].post - blocks;
	uint8_t copy[1024];

	for (uint32_t i = 0; i < blocks; i++)
		memcpy(copy + i * 64, ring + ((first + i) & (qp->sq_cnt - 1)) * 64, 64);
	nic_uar_write(0, 0, 0x900, copy, blocks * 64);
}

void bench_post(struct mdl_qp *qp, const struct bench_wr *wr)
{
	bench_put(qp, wr);
	bench_record(qp);
	bench_ring(qp);
}

void bench_recv(struct mdl_qp *qp, const void *addr, uint32_t len, uint32_t lkey)
{
	uint32_t index = bench_index(qp), post = bench_sw[index].rq_post++;
	uint8_t *wqe = (uint8_t *)mdl_at(qp->rq) + (post & (qp->rq_cnt - 1)) * 16;

	nic_be32_put(wqe, len);
	nic_be32_put(wqe + 4, lkey);
	nic_be64_put(wqe + 8, (uintptr_t)addr);
	nic_be32_put(mdl_at(qp->dbrec), (post + 1) & 0xffff);
}

void bench_srq_recv(struct mdl_srq *srq, uint32_t index, uint32_t next, const void *addr,
		    uint32_t len)
{
	uint8_t *wqe = (uint8_t *)mdl_at(srq->buf) + index * 32;

	nic_be16_put(wqe + 2, next);
	nic_be32_put(wqe + 16, len);
	nic_be32_put(wqe + 20, bench.key);
	nic_be64_put(wqe + 24, (uintptr_t)addr);
	nic_be32_put(mdl_at(srq->dbrec), ++bench_srq_post[srq - mdl_self.seg->srq] & 0xffff);
}

void bench_arm(struct mdl_cq *cq, uint32_t ci, bool solicited)
{
	uint8_t bytes[8];

	nic_be32_put(bytes, (uint32_t)solicited << 24 | ci);
	nic_be32_put(bytes + 4, cq->number);
	memcpy((uint8_t *)mdl_at(cq->dbrec) + 4, bytes, 4);
	nic_uar_write(0, 0, 0x20, bytes, 8);
}

const uint8_t *bench_poll(struct mdl_cq *cq)
{
	uint32_t *ci = &bench_ci[cq - mdl_self.seg->cq];
	const uint8_t *slot = (uint8_t *)mdl_at(cq->buf) + (*ci & (cq->cqe_cnt - 1)) * cq->cqe_size;
	const uint8_t *cqe = slot + cq->cqe_size - 64;

	if (cqe[63] >> 4 == 15 || (cqe[63] & 1) != !!(*ci & cq->cqe_cnt))
		return NULL;
	++*ci;
	nic_be32_put(mdl_at(cq->dbrec), *ci & 0xffffff);
	return cqe;
}

uint64_t bench_get(const struct mdl_qp *qp, enum mdl_count_id id)
{
	return mdl_count_get(&qp->count, id);
}
