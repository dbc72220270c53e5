/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Access checks and copies of memory.
 *
 * A key grants access to a range of one process in one protection domain. No byte is copied before
 * every piece of both sides was checked, so that a refused message leaves memory unchanged.
 *
 * Atomic operations are atomic among all operations of the model (one owner of the lock at a time)
 * and, if the memory can be mapped here, towards the processors too.
 */
#include "model/nic/nic_mem.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "model/nic/nic_rwqe.h"
#include "model/nic/nic_state.h"
#include "model/nic/nic_wqe.h"

const struct mdl_mr *nic_mem_find(uint32_t key, uint32_t proc, uint32_t pd, uint64_t addr,
				  uint64_t len, uint32_t access)
{
	const struct mdl_mr *mr = mdl_mr_find(key);

	if (!mr || mr->proc != proc || mr->pd != pd || (mr->access & access) != access)
		return NULL;
	if (addr < mr->addr || len > mr->length || addr - mr->addr > mr->length - len)
		return NULL;
	return mr;
}

bool nic_mem_pieces(const struct mdl_qp *qp, const struct nic_wqe *wqe, uint32_t access,
		    struct nic_spans *spans)
{
	spans->cnt = 0;
	for (uint32_t i = 0; i < wqe->piece_cnt; i++) {
		const struct nic_piece *piece = &wqe->piece[i];
		struct nic_span *span = &spans->span[spans->cnt++];

		*span = (struct nic_span){ .bytes = piece->inl,
					   .addr = piece->addr,
					   .len = piece->len };
		if (piece->inl)
			continue;
		span->mr = nic_mem_find(piece->lkey, qp->proc, qp->pd, piece->addr, piece->len,
					access);
		if (!span->mr)
			return false;
	}
	return true;
}

bool nic_mem_scatter(const struct mdl_qp *qp, const struct nic_rwqe *rwqe, uint64_t skip,
		     uint64_t len, struct nic_spans *spans)
{
	spans->cnt = 0;
	for (uint32_t i = 0; i < rwqe->seg_cnt && len; i++) {
		const struct nic_scatter *seg = &rwqe->seg[i];
		uint64_t off = skip < seg->len ? skip : seg->len;
		uint64_t part = seg->len - off < len ? seg->len - off : len;
		struct nic_span *span = &spans->span[spans->cnt];

		skip -= off;
		if (!part)
			continue;
		*span = (struct nic_span){ .addr = seg->addr + off, .len = part };
		span->mr = nic_mem_find(seg->lkey, qp->proc, qp->pd, span->addr, part,
					MDL_ACCESS_LOCAL_WRITE);
		if (!span->mr)
			return false;
		spans->cnt++;
		len -= part;
	}
	return len == 0;
}

static int nic_mem_move(const struct nic_span *to, uint64_t to_off, const struct nic_span *from,
			uint64_t from_off, uint64_t len)
{
	if (from->mr && to->mr)
		return krn_mem_copy(to->mr, to->addr + to_off, from->mr, from->addr + from_off,
				    len);
	if (to->mr)
		return krn_mem_write(to->mr, to->addr + to_off, from->bytes + from_off, len);
	if (from->mr)
		return krn_mem_read(from->mr, from->addr + from_off, (uint8_t *)to->bytes + to_off,
				    len);
	memcpy((uint8_t *)to->bytes + to_off, from->bytes + from_off, len);
	return 0;
}

int nic_mem_copy(const struct nic_spans *to, const struct nic_spans *from, uint64_t len,
		 uint32_t *writes)
{
	uint32_t t = 0, f = 0;
	uint64_t to_off = 0, from_off = 0;

	while (len && t < to->cnt && f < from->cnt) {
		uint64_t part = to->span[t].len - to_off;
		int rc;

		part = part < from->span[f].len - from_off ? part : from->span[f].len - from_off;
		part = part < len ? part : len;
		rc = nic_mem_move(&to->span[t], to_off, &from->span[f], from_off, part);
		if (rc)
			return rc;
		*writes += to_off == 0;
		to_off += part;
		from_off += part;
		len -= part;
		if (to_off == to->span[t].len)
			t++, to_off = 0;
		if (from_off == from->span[f].len)
			f++, from_off = 0;
	}
	return len ? -EFAULT : 0;
}

static void nic_mem_atomic_lock(void)
{
	uint32_t *owner = &nic_seg_priv()->atomic_owner;

	for (;;) {
		uint32_t holder = 0;

		if (__atomic_compare_exchange_n(owner, &holder, mdl_self.slot + 1, false,
						__ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return;
		if (mdl_proc_is_dead(holder - 1))
			__atomic_compare_exchange_n(owner, &holder, 0, false, __ATOMIC_RELAXED,
						    __ATOMIC_RELAXED);
		sched_yield();
	}
}

static void nic_mem_atomic_unlock(void)
{
	__atomic_store_n(&nic_seg_priv()->atomic_owner, 0, __ATOMIC_RELEASE);
}

static void nic_mem_atomic_mapped(uint64_t *word, const struct nic_wqe *wqe, uint64_t *old)
{
	if (wqe->opcode == NIC_OP_FETCH_ADD) {
		*old = __atomic_fetch_add(word, wqe->swap_add, __ATOMIC_ACQ_REL);
		return;
	}
	*old = wqe->compare;
	__atomic_compare_exchange_n(word, old, wqe->swap_add, false, __ATOMIC_ACQ_REL,
				    __ATOMIC_ACQUIRE);
}

static int nic_mem_atomic_copied(const struct mdl_mr *mr, const struct nic_wqe *wqe, uint64_t *old)
{
	uint64_t value;
	int rc = krn_mem_read(mr, wqe->raddr, old, sizeof(*old));

	if (rc)
		return rc;
	if (wqe->opcode == NIC_OP_FETCH_ADD)
		value = *old + wqe->swap_add;
	else if (*old == wqe->compare)
		value = wqe->swap_add;
	else
		return 0;
	return krn_mem_write(mr, wqe->raddr, &value, sizeof(value));
}

int nic_mem_atomic(const struct mdl_mr *mr, const struct nic_wqe *wqe, uint64_t *old)
{
	uint64_t *word = krn_mem_map(mr, wqe->raddr, sizeof(*word));
	int rc = 0;

	nic_mem_atomic_lock();
	if (word && ((uintptr_t)word & 7) == 0)
		nic_mem_atomic_mapped(word, wqe, old);
	else
		rc = nic_mem_atomic_copied(mr, wqe, old);
	nic_mem_atomic_unlock();
	return rc;
}
