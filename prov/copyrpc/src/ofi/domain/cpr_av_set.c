/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Address sets: see cpr_av_set.h. */
#include "ofi/base/cpr_av_set.h"

#include <rdma/fi_errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/coll/core_coll.h"
#include "ofi/base/cpr_av.h"
#include "ofi/base/cpr_domain.h"
#include "ofi/base/cpr_fid.h"
#include "util/bits.h"
#include "util/log.h"

#define CPR_AV_SET_FLAGS                                                                           \
	(FI_UNIVERSE | FI_BARRIER_SET | FI_BROADCAST_SET | FI_ALLTOALL_SET | FI_ALLREDUCE_SET |    \
	 FI_ALLGATHER_SET | FI_REDUCE_SCATTER_SET | FI_REDUCE_SET | FI_SCATTER_SET |               \
	 FI_GATHER_SET)

static struct cpr_av_set *cpr_av_set_own(struct fid_av_set *fid)
{
	return UTIL_CONTAINER_OF(fid, struct cpr_av_set, fid);
}

/* Returns the index of the address, or set->cnt. */
static size_t cpr_av_set_find(const struct cpr_av_set *set, fi_addr_t addr)
{
	size_t i;

	for (i = 0; i < set->cnt && set->addrs[i] != addr; i++)
		;
	return i;
}

static int cpr_av_set_append(struct cpr_av_set *set, fi_addr_t addr)
{
	size_t room = set->room ? 2 * set->room : 16;
	fi_addr_t *addrs;

	if (set->cnt == CORE_COLL_MEMBERS_MAX)
		return -FI_ENOSPC;
	if (set->cnt == set->room) {
		addrs = realloc(set->addrs, room * sizeof(*addrs));
		if (!addrs)
			return -FI_ENOMEM;
		set->addrs = addrs;
		set->room = room;
	}
	set->addrs[set->cnt++] = addr;
	return 0;
}

void cpr_av_set_lock(const struct cpr_av_set *set)
{
	pthread_mutex_lock(&set->av->domain->changes);
}

void cpr_av_set_unlock(const struct cpr_av_set *set)
{
	pthread_mutex_unlock(&set->av->domain->changes);
}

static bool cpr_av_set_has_addr(const struct cpr_av_set *set, fi_addr_t addr)
{
	struct sockaddr_storage ss;
	bool found;

	cpr_domain_lock(set->av->domain);
	found = core_av_addr(set->av->core, addr, &ss) != 0;
	cpr_domain_unlock(set->av->domain);
	return found;
}

static int cpr_av_set_insert(struct fid_av_set *fid, fi_addr_t addr)
{
	struct cpr_av_set *set = cpr_av_set_own(fid);
	int ret = -FI_EINVAL;

	cpr_av_set_lock(set);
	if (cpr_av_set_has_addr(set, addr) && cpr_av_set_find(set, addr) == set->cnt)
		ret = cpr_av_set_append(set, addr);
	cpr_av_set_unlock(set);
	return ret;
}

static int cpr_av_set_remove(struct fid_av_set *fid, fi_addr_t addr)
{
	struct cpr_av_set *set = cpr_av_set_own(fid);
	bool found;
	size_t at;

	cpr_av_set_lock(set);
	at = cpr_av_set_find(set, addr);
	found = at < set->cnt;
	if (found) {
		set->cnt--;
		memmove(&set->addrs[at], &set->addrs[at + 1],
			(set->cnt - at) * sizeof(set->addrs[0]));
	}
	cpr_av_set_unlock(set);
	return found ? 0 : -FI_EINVAL;
}

static int cpr_av_set_union(struct fid_av_set *fid, const struct fid_av_set *other)
{
	struct cpr_av_set *set = cpr_av_set_own(fid);
	const struct cpr_av_set *src = cpr_av_set_of(other);
	size_t i, cnt;
	int ret = 0;

	if (set->av != src->av)
		return -FI_EINVAL;
	cpr_av_set_lock(set);
	cnt = set->cnt;
	for (i = 0; !ret && set != src && i < src->cnt; i++)
		if (cpr_av_set_find(set, src->addrs[i]) == set->cnt)
			ret = cpr_av_set_append(set, src->addrs[i]);
	if (ret)
		set->cnt = cnt;
	cpr_av_set_unlock(set);
	return ret;
}

/* Keeps the addresses that `src` has (common), or those that it has not. Locked. */
static void cpr_av_set_keep_locked(struct cpr_av_set *set, const struct cpr_av_set *src,
				   bool common)
{
	size_t i, kept = 0;

	if (set == src) {
		set->cnt = common ? set->cnt : 0;
		return;
	}
	for (i = 0; i < set->cnt; i++)
		if ((cpr_av_set_find(src, set->addrs[i]) < src->cnt) == common)
			set->addrs[kept++] = set->addrs[i];
	set->cnt = kept;
}

static int cpr_av_set_keep(struct fid_av_set *fid, const struct fid_av_set *other, bool common)
{
	struct cpr_av_set *set = cpr_av_set_own(fid);
	const struct cpr_av_set *src = cpr_av_set_of(other);

	if (set->av != src->av)
		return -FI_EINVAL;
	cpr_av_set_lock(set);
	cpr_av_set_keep_locked(set, src, common);
	cpr_av_set_unlock(set);
	return 0;
}

static int cpr_av_set_intersect(struct fid_av_set *fid, const struct fid_av_set *other)
{
	return cpr_av_set_keep(fid, other, true);
}

static int cpr_av_set_diff(struct fid_av_set *fid, const struct fid_av_set *other)
{
	return cpr_av_set_keep(fid, other, false);
}

fi_addr_t cpr_av_set_addr(const struct cpr_av_set *set)
{
	return (fi_addr_t)(uintptr_t)set;
}

static int cpr_av_set_get_addr(struct fid_av_set *fid, fi_addr_t *addr)
{
	*addr = cpr_av_set_addr(cpr_av_set_own(fid));
	return 0;
}

static int cpr_av_set_close(struct fid *fid)
{
	struct cpr_av_set *set = UTIL_CONTAINER_OF(fid, struct cpr_av_set, fid.fid);

	cpr_ref_put(&set->av->refs);
	free(set->addrs);
	free(set);
	return 0;
}

static struct fi_ops cpr_av_set_fi_ops = CPR_FID_OPS(cpr_av_set_close, cpr_no_bind, cpr_no_control);

static struct fi_ops_av_set cpr_av_set_ops = {
	.size = sizeof(struct fi_ops_av_set),
	.set_union = cpr_av_set_union,
	.intersect = cpr_av_set_intersect,
	.diff = cpr_av_set_diff,
	.insert = cpr_av_set_insert,
	.remove = cpr_av_set_remove,
	.addr = cpr_av_set_get_addr,
};

/* Adds the AV's addresses first, first + stride, ... last. */
static int cpr_av_set_fill(struct cpr_av_set *set, fi_addr_t first, fi_addr_t last, uint64_t stride)
{
	uint64_t addr, end = core_av_end(set->av->core);
	int ret = 0;

	for (addr = first; !ret && addr <= last && addr < end; addr += stride)
		if (cpr_av_set_has_addr(set, addr))
			ret = cpr_av_set_append(set, addr);
	return ret;
}

static int cpr_av_set_check(const struct cpr_av *av, const struct fi_av_set_attr *attr)
{
	bool empty = attr->start_addr == FI_ADDR_NOTAVAIL && attr->end_addr == FI_ADDR_NOTAVAIL;

	if (av->domain->dgram)
		return -FI_ENOSYS;
	if (attr->flags & ~CPR_AV_SET_FLAGS)
		return -FI_EBADFLAGS;
	if (attr->comm_key_size) {
		UTIL_INFO(AV, "AV set: requested a communication key, offered none\n");
		return -FI_ENOSYS;
	}
	if (!empty && !(attr->flags & FI_UNIVERSE) &&
	    (attr->start_addr > attr->end_addr || !attr->stride || attr->stride > UINT32_MAX ||
	     (attr->count && (attr->end_addr - attr->start_addr) / attr->stride >= attr->count)))
		return -FI_EINVAL;
	return 0;
}

static int cpr_av_set_begin(struct cpr_av_set *set, const struct fi_av_set_attr *attr)
{
	if (attr->flags & FI_UNIVERSE)
		return cpr_av_set_fill(set, 0, FI_ADDR_NOTAVAIL, 1);
	if (attr->start_addr == FI_ADDR_NOTAVAIL)
		return 0;
	return cpr_av_set_fill(set, attr->start_addr, attr->end_addr, attr->stride);
}

int cpr_av_set_open(struct fid_av *fid, struct fi_av_set_attr *attr, struct fid_av_set **out,
		    void *context)
{
	struct cpr_av *av = UTIL_CONTAINER_OF(fid, struct cpr_av, fid);
	struct cpr_av_set *set;
	int ret = attr ? cpr_av_set_check(av, attr) : -FI_EINVAL;

	if (ret)
		return ret;
	set = cpr_fid_new(sizeof(*set), FI_CLASS_AV_SET, &cpr_av_set_fi_ops, context);
	if (!set)
		return -FI_ENOMEM;
	set->av = av;
	set->fid.ops = &cpr_av_set_ops;
	ret = cpr_av_set_begin(set, attr);
	if (ret) {
		free(set->addrs);
		free(set);
		return ret;
	}
	cpr_ref_get(&av->refs);
	*out = &set->fid;
	return 0;
}
