/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Elastic completion queue: the cold half, see core_cq.h.
 *
 * A full array is replaced by one twice as large: a completion at position p moves from p & mask to
 * p & the new mask. Positions and their order do not change. Records of failed completions are on
 * the heap, owned by the queue until they are read.
 */
#include "core/core_cq.h"

#include <assert.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "util/probe.h"
#include "util/stats.h"

#define CORE_CQ_START_MIN 16u
#define CORE_CQ_START_MAX 64u /* 4 KiB */

static_assert(sizeof(struct core_cqe) == UTIL_CACHE_LINE, "a completion is a cache line");

static struct core_cqe *core_cq_ring_alloc(uint64_t cnt)
{
	size_t len;

	if (!cnt || __builtin_mul_overflow(cnt, sizeof(struct core_cqe), &len))
		return NULL;
	return aligned_alloc(UTIL_CACHE_LINE, len);
}

int core_cq_init(struct core_cq *cq, size_t size_hint)
{
	size_t cnt = CORE_CQ_START_MAX;

	if (size_hint && size_hint < cnt)
		cnt = util_pow2_ceil(size_hint);
	if (cnt < CORE_CQ_START_MIN)
		cnt = CORE_CQ_START_MIN;
	*cq = (struct core_cq){ .ring = core_cq_ring_alloc(cnt), .full = cnt, .mask = cnt - 1 };
	if (!cq->ring)
		return -FI_ENOMEM;
	cq->stats = util_stats_get(COPYRPC_STATS_QUEUES);
	if (cq->stats)
		util_stats_begin(cq->stats);
	return 0;
}

void core_cq_show(struct core_cq *cq)
{
	if (!cq->stats)
		return;
	cq->stats->unread = cq->tail - cq->head;
	cq->stats->room = cq->mask + 1;
	cq->stats->completions = cq->tail;
}

void core_cq_fini(struct core_cq *cq)
{
	core_cq_show(cq);
	util_stats_end(cq->stats);
	cq->stats = NULL;
	for (; cq->ring && cq->head != cq->tail; cq->head++)
		free(cq->ring[cq->head & cq->mask].err);
	free(cq->ring);
	cq->ring = NULL;
}

static bool core_cq_grow(struct core_cq *cq)
{
	uint64_t cnt = 2 * (cq->mask + 1);
	struct core_cqe *ring = core_cq_ring_alloc(cnt);

	if (!ring) {
		cq->overrun = true;
		return false;
	}
	for (uint64_t pos = cq->head; pos != cq->tail; pos++)
		ring[pos & (cnt - 1)] = cq->ring[pos & cq->mask];
	free(cq->ring);
	cq->ring = ring;
	cq->mask = cnt - 1;
	return true;
}

struct core_cqe *core_cq_next_cold(struct core_cq *cq)
{
	if (cq->tail - cq->head > cq->mask && !core_cq_grow(cq))
		return NULL;
	cq->full = cq->notify ? cq->tail + 1 : cq->head + cq->mask + 1;
	return &cq->ring[cq->tail++ & cq->mask];
}

uint64_t core_cq_good_cnt_cold(const struct core_cq *cq, uint64_t cnt)
{
	uint64_t good = 0;

	while (good < cnt && !cq->ring[(cq->head + good) & cq->mask].err)
		good++;
	return good;
}

void core_cq_write_cold(struct core_cq *cq, void *context, uint64_t flags, size_t len, void *buf,
			uint64_t data, uint64_t tag, fi_addr_t src)
{
	struct core_cqe *cqe = core_cq_next_cold(cq);

	if (!cqe)
		return;
	core_cqe_fill(cqe, context, flags, len, buf, data, tag, src);
	if (cq->notify)
		cq->notify(cq);
}

void core_cq_set_notify(struct core_cq *cq, void (*notify)(struct core_cq *cq))
{
	cq->notify = notify;
	if (notify)
		cq->full = cq->tail;
}

/* Returns a heap copy of *err without err_data. */
static struct fi_cq_err_entry *core_cq_err_dup(const struct fi_cq_err_entry *err)
{
	struct fi_cq_err_entry *dup = malloc(sizeof(*dup));

	if (!dup)
		return NULL;
	*dup = *err;
	dup->err_data = NULL;
	dup->err_data_size = 0;
	return dup;
}

void core_cq_write_err(struct core_cq *cq, const struct fi_cq_err_entry *err, fi_addr_t src)
{
	struct fi_cq_err_entry *dup = core_cq_err_dup(err);
	struct core_cqe *cqe;

	assert(err->err > 0);
	UTIL_PROBE_OP(completion, err->op_context, err->flags, err->len, err->err);
	if (!dup) {
		cq->overrun = true;
		return;
	}
	cqe = core_cq_next_cold(cq);
	if (!cqe) {
		free(dup);
		return;
	}
	cqe->e = (struct fi_cq_tagged_entry){
		.op_context = err->op_context,
		.flags = err->flags,
		.len = err->len,
		.buf = err->buf,
		.data = err->data,
		.tag = err->tag,
	};
	cqe->src = src;
	cqe->err = dup;
	cq->failed_cnt++;
	if (cq->stats && err->err != FI_ENOMSG) /* a probe that found nothing has not failed */
		cq->stats->failed++;
	if (cq->notify)
		cq->notify(cq);
}

int core_cq_read_err(struct core_cq *cq, struct fi_cq_err_entry *err)
{
	struct core_cqe *cqe = core_cq_front(cq);

	if (!cqe || !cqe->err)
		return -FI_EAGAIN;
	*err = *cqe->err;
	free(cqe->err);
	cqe->err = NULL;
	cq->failed_cnt--;
	cq->head++;
	return 1;
}
