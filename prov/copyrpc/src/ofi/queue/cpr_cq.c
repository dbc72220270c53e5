/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Completion queues: see cpr_cq.h. cpr_cq_take is the receive side's hot loop. */
#include "ofi/queue/cpr_cq.h"

#include <rdma/fi_errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "ofi/base/cpr_domain.h"
#include "ofi/base/cpr_fabric.h"
#include "ofi/base/cpr_fid.h"
#include "ofi/queue/cpr_idle.h"
#include "ofi/queue/cpr_strerror.h"
#include "ofi/queue/cpr_waitset.h"
#include "util/bits.h"
#include "util/log.h"

#define CPR_CQ_SIZE_MAX 65536u /* limit of the first allocation: the queue grows anyway */

/*
 * Lengths of struct fi_cq_err_entry that an application has, by the API version that it names: up
 * to 1.4, up to 1.19, and from 1.20 on. This file may be built with the header of any.
 */
#define CPR_CQ_ERR_LEN     offsetof(struct fi_cq_err_entry, err_data_size)
#define CPR_CQ_ERR_LEN_1_5 (CPR_CQ_ERR_LEN + sizeof(size_t))
#define CPR_CQ_ERR_SRC     CPR_CQ_ERR_LEN_1_5 /* where src_addr is in the longest */

static inline struct cpr_cq *cpr_cq_of(struct fid_cq *fid)
{
	return UTIL_CONTAINER_OF(fid, struct cpr_cq, fid);
}

typedef uint64_t __attribute__((may_alias)) cpr_cq_word;

/* Copies one word. The atomic load keeps the compiler from merging several into one wide load. */
UTIL_INLINE void cpr_cq_copy_word(uint8_t *dst, const cpr_cq_word *src, size_t i)
{
	uint64_t word = __atomic_load_n(&src[i], __ATOMIC_RELAXED);

	memcpy(dst + i * sizeof(word), &word, sizeof(word));
}

/*
 * Copies an entry word by word, as core_cq_write stores it: a wider load of words just written
 * would wait until the stores have left the store buffer. `len`, a constant where it matters, is
 * that of a format: 1, 3, 5 or 6 words.
 */
UTIL_INLINE void cpr_cq_copy(uint8_t *dst, const struct fi_cq_tagged_entry *entry, size_t len)
{
	const cpr_cq_word *src = (const cpr_cq_word *)entry;

	cpr_cq_copy_word(dst, src, 0);
	if (len >= sizeof(struct fi_cq_msg_entry)) {
		cpr_cq_copy_word(dst, src, 1);
		cpr_cq_copy_word(dst, src, 2);
	}
	if (len >= sizeof(struct fi_cq_data_entry)) {
		cpr_cq_copy_word(dst, src, 3);
		cpr_cq_copy_word(dst, src, 4);
	}
	if (len >= sizeof(struct fi_cq_tagged_entry))
		cpr_cq_copy_word(dst, src, 5);
}

/* Moves up to `count` good completions into buf; each format is a prefix of the tagged entry. */
UTIL_INLINE ssize_t cpr_cq_take(struct core_cq *q, uint8_t *buf, size_t count, fi_addr_t *src,
				size_t entry_len)
{
	uint64_t cnt = core_cq_good_cnt(q, count), left = cnt;

	/* One stretch, or two where the ring wraps. */
	while (left) {
		const struct core_cqe *cqe = &q->ring[q->head & q->mask];
		uint64_t room = q->mask + 1 - (q->head & q->mask);
		const struct core_cqe *end = cqe + (left < room ? left : room);

		q->head += (uint64_t)(end - cqe);
		left -= (uint64_t)(end - cqe);
		for (; cqe != end; cqe++) {
			cpr_cq_copy(buf, &cqe->e, entry_len);
			buf += entry_len;
			if (src)
				*src++ = cqe->src;
		}
	}
	return (ssize_t)cnt;
}

/* Returns the result of a read that found nothing; 0 if no entries were requested. */
static ssize_t cpr_cq_empty(const struct core_cq *q)
{
	if (core_cq_is_empty(q))
		return q->overrun ? -FI_EAVAIL : -FI_EAGAIN;
	return q->ring[q->head & q->mask].err ? -FI_EAVAIL : 0;
}

/*
 * Ends a read that found nothing. After many in a row, makes progress for others, yields the
 * processor and looks once more.
 */
static __attribute__((noinline)) ssize_t cpr_cq_read_nothing(struct cpr_cq *cq,
							     struct cpr_pdom *pdom, void *buf,
							     size_t count, fi_addr_t *src,
							     size_t entry_len)
{
	struct cpr_rest rest;
	ssize_t ret = 0;

	if (UTIL_UNLIKELY(cpr_yield_is_due(&cq->idle))) {
		pdom = cpr_idle(&cq->member, cq->domain, pdom, cq->idle, &rest);
		cpr_pdom_progress(pdom);
		ret = cpr_cq_take(&cq->core, buf, count, src, entry_len);
		if (rest.end_ns)
			cpr_yield_took(&cq->idle, rest, ret);
	}
	if (ret)
		cpr_yield_found(&cq->idle);
	else
		ret = cpr_cq_empty(&cq->core);
	cpr_pdom_unlock(pdom);
	return ret;
}

UTIL_INLINE ssize_t cpr_cq_read(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *src,
				size_t entry_len)
{
	struct cpr_cq *cq = cpr_cq_of(fid);
	struct cpr_pdom *pdom = cpr_member_lock(&cq->member);
	ssize_t ret;

	cpr_pdom_progress(pdom);
	ret = cpr_cq_take(&cq->core, buf, count, src, entry_len);
	if (UTIL_UNLIKELY(!ret))
		return cpr_cq_read_nothing(cq, pdom, buf, count, src, entry_len);
	cpr_yield_found(&cq->idle);
	cpr_pdom_unlock(pdom);
	return ret;
}

/* Wakes sleepers at the first completion, and removes itself: later completions make no call. */
static void cpr_cq_notify(struct core_cq *q)
{
	struct cpr_cq *cq = UTIL_CONTAINER_OF(q, struct cpr_cq, core);

	core_cq_set_notify(q, NULL);
	cpr_wait_kick(&cq->wait);
}

/* Returns true if a sleeping reader with that threshold should return. */
static bool cpr_cq_is_ready(const struct core_cq *q, uint64_t threshold)
{
	return q->tail - q->head >= threshold || q->overrun || q->intake_cnt ||
	       (!core_cq_is_empty(q) && q->ring[q->head & q->mask].err);
}

/* Returns the threshold, at most `count`. With FI_CQ_COND_THRESHOLD `cond` is the number itself. */
static uint64_t cpr_cq_threshold(const struct cpr_cq *cq, const void *cond, size_t count)
{
	uint64_t threshold = cq->wait_cond == FI_CQ_COND_THRESHOLD ? (uintptr_t)cond : 1;

	if (threshold > count)
		threshold = count;
	return threshold ? threshold : 1;
}

/*
 * Waits until a read would find something. Returns 0, -FI_EAGAIN (timeout or signal) or another
 * error code. Locked; *pdom changes if the queue moved.
 */
static int cpr_cq_wait(struct cpr_cq *cq, struct cpr_pdom **pdom, uint64_t threshold, int timeout)
{
	struct cpr_wait_call call;
	int ret = 0;

	cpr_wait_begin(&cq->wait, &call, timeout);
	while (!ret) {
		cpr_pdom_progress(*pdom);
		if (cpr_cq_is_ready(&cq->core, threshold))
			return 0;
		if (cpr_wait_is_signaled(&cq->wait, &call))
			return -FI_EAGAIN;
		core_cq_set_notify(&cq->core, cpr_cq_notify);
		ret = cpr_wait_sleep(&cq->wait, &cq->member, pdom, &call);
	}
	return ret == -FI_EINTR ? -FI_EAGAIN : ret; /* a signal ends the call (fi_cq(3)) */
}

static ssize_t cpr_cq_sread(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *src,
			    const void *cond, int timeout, size_t entry_len)
{
	struct cpr_cq *cq = cpr_cq_of(fid);
	struct cpr_pdom *pdom;
	ssize_t ret;
	int err;

	if (UTIL_UNLIKELY(!cq->blocks))
		return -FI_ENOSYS;
	pdom = cpr_member_lock(&cq->member);
	err = cpr_cq_wait(cq, &pdom, cpr_cq_threshold(cq, cond, count), timeout);
	if (!cpr_wait_is_used(&cq->wait))
		core_cq_set_notify(&cq->core, NULL);
	ret = cpr_cq_take(&cq->core, buf, count, src, entry_len);
	if (!ret)
		ret = err && err != -FI_EAGAIN ? err : cpr_cq_empty(&cq->core);
	/* More is left: wakes the next of the threads that sleep on this queue. */
	if (cpr_wait_is_used(&cq->wait) && !core_cq_is_empty(&cq->core))
		cpr_wait_kick(&cq->wait);
	cpr_pdom_unlock(pdom);
	return ret;
}

int cpr_cq_trywait(struct cpr_cq *cq, bool shares)
{
	struct cpr_pdom *pdom;
	int ret = -FI_EAGAIN;

	if (!cpr_wait_has_fd(cq->wait.obj))
		return -FI_EINVAL;
	pdom = cpr_member_lock(&cq->member);
	cpr_pdom_progress(pdom);
	if (!cpr_cq_is_ready(&cq->core, 1)) {
		core_cq_set_notify(&cq->core, cpr_cq_notify);
		ret = cpr_wait_try(&cq->wait, pdom, shares);
	}
	cpr_pdom_unlock(pdom);
	return ret;
}

/*
 * Fills in the user's entry. err_data belongs to the user from API 1.5 on if err_data_size is not
 * 0, else to the provider. This provider has no err_data.
 */
static void cpr_cq_fill_err(const struct cpr_cq *cq, const struct fi_cq_err_entry *err,
			    fi_addr_t src, struct fi_cq_err_entry *buf)
{
	uint32_t api = cq->domain->api_version;
	void *user_data = buf->err_data;
	bool is_users = FI_VERSION_GE(api, FI_VERSION(1, 5)) && buf->err_data_size;

	memcpy(buf, err, CPR_CQ_ERR_LEN);
	buf->err_data = is_users ? user_data : NULL;
	if (FI_VERSION_GE(api, FI_VERSION(1, 5)))
		buf->err_data_size = 0;
	if (FI_VERSION_GE(api, FI_VERSION(1, 20)))
		memcpy((char *)buf + CPR_CQ_ERR_SRC, &src, sizeof(src));
}

static ssize_t cpr_cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *buf, uint64_t flags)
{
	struct cpr_cq *cq = cpr_cq_of(fid);
	struct fi_cq_err_entry err = { 0 };
	struct cpr_pdom *pdom = cpr_member_lock(&cq->member);
	struct core_cqe *cqe;
	fi_addr_t src = FI_ADDR_NOTAVAIL;
	int ret;

	cpr_pdom_progress(pdom);
	cqe = core_cq_front(&cq->core);
	if (cqe)
		src = cqe->src;
	ret = core_cq_read_err(&cq->core, &err);
	if (ret != 1 && cq->core.overrun && core_cq_is_empty(&cq->core)) {
		err.err = FI_EOVERRUN;
		err.prov_errno = FI_EOVERRUN;
		ret = 1;
	}
	cpr_pdom_unlock(pdom);
	if (ret == 1)
		cpr_cq_fill_err(cq, &err, src, buf);
	return ret;
}

static int cpr_cq_signal(struct fid_cq *fid)
{
	if (!cpr_cq_of(fid)->blocks)
		return -FI_ENOSYS;
	cpr_wait_signal(&cpr_cq_of(fid)->wait);
	return 0;
}

static const char *cpr_cq_strerror(struct fid_cq *fid, int prov_errno, const void *err_data,
				   char *buf, size_t len)
{
	return cpr_strerror(prov_errno, buf, len);
}

/* Defines the calls of a format and its op table. */
#define CPR_CQ_FORMAT(entry, read_fn, readfrom_fn, sread_fn, sreadfrom_fn, ops)                    \
	static ssize_t read_fn(struct fid_cq *fid, void *buf, size_t count)                        \
	{                                                                                          \
		return cpr_cq_read(fid, buf, count, NULL, sizeof(entry));                          \
	}                                                                                          \
	static ssize_t readfrom_fn(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *src)    \
	{                                                                                          \
		return cpr_cq_read(fid, buf, count, src, sizeof(entry));                           \
	}                                                                                          \
	static ssize_t sread_fn(struct fid_cq *fid, void *buf, size_t count, const void *cond,     \
				int timeout)                                                       \
	{                                                                                          \
		return cpr_cq_sread(fid, buf, count, NULL, cond, timeout, sizeof(entry));          \
	}                                                                                          \
	static ssize_t sreadfrom_fn(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *src,   \
				    const void *cond, int timeout)                                 \
	{                                                                                          \
		return cpr_cq_sread(fid, buf, count, src, cond, timeout, sizeof(entry));           \
	}                                                                                          \
	static struct fi_ops_cq ops = {                                                            \
		.size = sizeof(struct fi_ops_cq),                                                  \
		.read = read_fn,                                                                   \
		.readfrom = readfrom_fn,                                                           \
		.readerr = cpr_cq_readerr,                                                         \
		.sread = sread_fn,                                                                 \
		.sreadfrom = sreadfrom_fn,                                                         \
		.signal = cpr_cq_signal,                                                           \
		.strerror = cpr_cq_strerror,                                                       \
	}

CPR_CQ_FORMAT(struct fi_cq_entry, cpr_cq_read_context, cpr_cq_readfrom_context,
	      cpr_cq_sread_context, cpr_cq_sreadfrom_context, cpr_cq_ops_context);
CPR_CQ_FORMAT(struct fi_cq_msg_entry, cpr_cq_read_msg, cpr_cq_readfrom_msg, cpr_cq_sread_msg,
	      cpr_cq_sreadfrom_msg, cpr_cq_ops_msg);
CPR_CQ_FORMAT(struct fi_cq_data_entry, cpr_cq_read_data, cpr_cq_readfrom_data, cpr_cq_sread_data,
	      cpr_cq_sreadfrom_data, cpr_cq_ops_data);
CPR_CQ_FORMAT(struct fi_cq_tagged_entry, cpr_cq_read_tagged, cpr_cq_readfrom_tagged,
	      cpr_cq_sread_tagged, cpr_cq_sreadfrom_tagged, cpr_cq_ops_tagged);

/* Returns the op table of a format (unspecified: the shortest), or NULL if it is unknown. */
static struct fi_ops_cq *cpr_cq_pick_ops(enum fi_cq_format format)
{
	switch (format) {
	case FI_CQ_FORMAT_UNSPEC:
	case FI_CQ_FORMAT_CONTEXT: return &cpr_cq_ops_context;
	case FI_CQ_FORMAT_MSG: return &cpr_cq_ops_msg;
	case FI_CQ_FORMAT_DATA: return &cpr_cq_ops_data;
	case FI_CQ_FORMAT_TAGGED: return &cpr_cq_ops_tagged;
	default: return NULL;
	}
}

static int cpr_cq_close(struct fid *fid)
{
	struct cpr_cq *cq = UTIL_CONTAINER_OF(fid, struct cpr_cq, fid.fid);

	if (cpr_ref_is_busy(&cq->refs))
		return -FI_EBUSY;
	cpr_waitset_leave(&cq->wait);
	cpr_member_fini(&cq->member, cq->domain);
	cpr_waitset_close_member(&cq->wait);
	core_cq_fini(&cq->core);
	cpr_ref_put(&cq->domain->refs);
	free(cq);
	return 0;
}

static int cpr_cq_control(struct fid *fid, int command, void *arg)
{
	struct cpr_cq *cq = UTIL_CONTAINER_OF(fid, struct cpr_cq, fid.fid);

	return cpr_wait_control(&cq->wait, &cq->member, command, arg);
}

static struct fi_ops cpr_cq_fi_ops = CPR_FID_OPS(cpr_cq_close, cpr_no_bind, cpr_cq_control);

static int cpr_cq_check(const struct fi_cq_attr *attr)
{
	if (!attr || attr->wait_cond > FI_CQ_COND_THRESHOLD)
		return -FI_EINVAL;
	if (attr->flags & ~FI_AFFINITY) {
		UTIL_INFO(CQ, "completion queue flags 0x%lx: offered FI_AFFINITY\n",
			  (unsigned long)attr->flags);
		return -FI_ENOSYS;
	}
	return cpr_cq_pick_ops(attr->format) ? 0 : -FI_ENOSYS;
}

static int cpr_cq_init(struct cpr_cq *cq, const struct fi_cq_attr *attr)
{
	int ret;

	ret = core_cq_init(&cq->core, attr->size < CPR_CQ_SIZE_MAX ? attr->size : CPR_CQ_SIZE_MAX);
	if (ret)
		return ret;
	ret = cpr_waitset_open_member(&cq->wait, attr->wait_obj, attr->wait_set, &cq->fid.fid);
	if (ret)
		core_cq_fini(&cq->core);
	return ret;
}

int cpr_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **out,
		void *context)
{
	struct cpr_cq *cq;
	int ret = cpr_cq_check(attr);

	if (ret)
		return ret;
	cq = cpr_fid_new(sizeof(*cq), FI_CLASS_CQ, &cpr_cq_fi_ops, context);
	if (!cq)
		return -FI_ENOMEM;
	cq->fid.ops = cpr_cq_pick_ops(attr->format);
	cq->blocks = cpr_wait_blocks(attr->wait_obj);
	cq->wait_cond = attr->wait_cond;
	cq->has_data = attr->format == FI_CQ_FORMAT_DATA || attr->format == FI_CQ_FORMAT_TAGGED;
	cq->domain = cpr_domain_of(domain);
	cpr_yield_init(&cq->idle);
	cpr_member_init(&cq->member, cq->domain, &cq->wait.wakeup);
	ret = cpr_cq_init(cq, attr);
	if (ret) {
		free(cq);
		return ret;
	}
	cpr_ref_get(&cq->domain->refs);
	*out = &cq->fid;
	return 0;
}
