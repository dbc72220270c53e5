/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Collective groups and the calls of fi_collective(3): see cpr_coll.h. */
#include "ofi/xfer/cpr_coll.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/coll/core_coll.h"
#include "core/core_atomic_math.h"
#include "ofi/base/cpr_av.h"
#include "ofi/base/cpr_av_set.h"
#include "ofi/base/cpr_domain.h"
#include "ofi/base/cpr_ep.h"
#include "ofi/base/cpr_fid.h"
#include "ofi/base/cpr_refuse.h"
#include "ofi/queue/cpr_eq.h"
#include "util/bits.h"
#include "util/log.h"

#define CPR_COLL_FLAGS                                                                             \
	(FI_COMPLETION | FI_MORE | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE)

/** Collective group that this endpoint has joined. */
struct cpr_mc {
	struct fid_mc fid;
	struct cpr_ep *ep;
	struct core_coll_group group;
	void *context; /* of the join */
	bool joined;
};

/* ---- groups ---- */

static void cpr_mc_post_event(struct cpr_mc *mc, int err)
{
	struct fi_eq_entry entry = { .fid = &mc->fid.fid, .context = mc->context };
	struct fi_eq_err_entry failed = {
		.fid = &mc->fid.fid, .context = mc->context, .err = -err, .prov_errno = -err
	};
	struct cpr_eq_event *ev =
		cpr_eq_event_new(FI_JOIN_COMPLETE, err ? sizeof(failed) : sizeof(entry));

	if (!ev) {
		UTIL_WARN(EQ, "out of memory: the end of a join is not reported\n");
		return;
	}
	ev->fid = &mc->fid.fid;
	ev->is_err = err;
	ev->len_min = 0; /* programs read it without a buffer */
	if (err)
		memcpy(ev->data, &failed, sizeof(failed));
	else
		memcpy(ev->data, &entry, sizeof(entry));
	cpr_eq_push(mc->ep->eq_user.eq, ev);
}

static void cpr_mc_joined(struct core_coll_group *group, int err)
{
	struct cpr_mc *mc = UTIL_CONTAINER_OF(group, struct cpr_mc, group);

	mc->joined = !err;
	cpr_mc_post_event(mc, err);
}

static int cpr_mc_close(struct fid *fid)
{
	struct cpr_mc *mc = UTIL_CONTAINER_OF(fid, struct cpr_mc, fid.fid);
	struct cpr_ep *ep = mc->ep;

	core_dom_lock(ep->dom);
	core_coll_leave(&mc->group);
	core_dom_unlock(ep->dom);
	cpr_eq_forget(ep->eq_user.eq, fid);
	cpr_ref_put(&ep->refs);
	free(mc);
	return 0;
}

static struct fi_ops cpr_mc_fi_ops = CPR_FID_OPS(cpr_mc_close, cpr_no_bind, cpr_no_control);

/* Returns the group of an address, or NULL. Locked. */
static struct cpr_mc *cpr_mc_find(struct cpr_ep *ep, fi_addr_t addr)
{
	struct util_list *it, *tmp;
	struct cpr_mc *mc;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &ep->core->coll->groups) {
		mc = UTIL_CONTAINER_OF(UTIL_CONTAINER_OF(it, struct core_coll_group, link),
				       struct cpr_mc, group);
		if (mc->fid.fi_addr == addr)
			return mc;
	}
	return NULL;
}

/*
 * Returns in *id the group in which a new one is made (0: none). Returns 0 or -FI_EINVAL. Locked.
 */
static int cpr_mc_parent(struct cpr_ep *ep, const struct fi_collective_addr *addr, uint64_t *id)
{
	const struct cpr_mc *mc;

	*id = 0;
	if (addr->coll_addr == FI_ADDR_NOTAVAIL ||
	    addr->coll_addr == cpr_av_set_addr(cpr_av_set_of(addr->set)))
		return 0;
	mc = cpr_mc_find(ep, addr->coll_addr);
	if (!mc || !mc->joined)
		return -FI_EINVAL;
	*id = mc->group.id;
	return 0;
}

static int cpr_mc_join(struct cpr_mc *mc, const struct fi_collective_addr *addr)
{
	const struct cpr_av_set *set = cpr_av_set_of(addr->set);
	struct cpr_ep *ep = mc->ep;
	uint64_t parent;
	int ret;

	cpr_av_set_lock(set);
	core_dom_lock(ep->dom);
	ret = set->cnt ? cpr_mc_parent(ep, addr, &parent) : -FI_EINVAL;
	if (!ret)
		ret = core_coll_join(ep->core, &mc->group, set->addrs, (uint32_t)set->cnt, parent,
				     addr->coll_addr == FI_ADDR_NOTAVAIL);
	core_dom_transferred(ep->dom);
	core_dom_unlock(ep->dom);
	cpr_av_set_unlock(set);
	return ret;
}

static int cpr_coll_check_join(const struct cpr_ep *ep, const struct fi_collective_addr *addr,
			       uint64_t flags)
{
	if (!(flags & FI_COLLECTIVE) || !(ep->caps & FI_COLLECTIVE))
		return -FI_ENOSYS;
	if (flags != FI_COLLECTIVE)
		return -FI_EBADFLAGS;
	if (!ep->is_enabled)
		return -FI_EOPBADSTATE;
	if (!ep->eq_user.eq) {
		UTIL_WARN(EP_CTRL,
			  "fi_join_collective: bind an event queue to the endpoint first\n");
		return -FI_ENOEQ;
	}
	if (!addr || !addr->set || cpr_av_set_of(addr->set)->av != ep->av)
		return -FI_EINVAL;
	return 0;
}

int cpr_coll_join(struct fid_ep *fid, const void *addr, uint64_t flags, struct fid_mc **out,
		  void *context)
{
	struct cpr_ep *ep = cpr_ep_of(fid)->owner;
	int ret = cpr_coll_check_join(ep, addr, flags);
	struct cpr_mc *mc;

	if (ret)
		return ret;
	mc = cpr_fid_new(sizeof(*mc), FI_CLASS_MC, &cpr_mc_fi_ops, context);
	if (!mc)
		return -FI_ENOMEM;
	mc->ep = ep;
	mc->context = context;
	mc->fid.fi_addr = (fi_addr_t)(uintptr_t)mc;
	mc->group.joined = cpr_mc_joined;
	/* Another thread may read the event, and close the group, before the join returns. */
	cpr_ref_get(&ep->refs);
	*out = &mc->fid;
	ret = cpr_mc_join(mc, addr);
	if (!ret)
		return 0;
	*out = NULL;
	cpr_ref_put(&ep->refs);
	cpr_eq_forget(ep->eq_user.eq, &mc->fid.fid);
	free(mc);
	return ret;
}

/* ---- operations ---- */

/** Parameters of a call. */
struct cpr_coll_call {
	enum fi_collective_op coll;
	const void *buf;
	void *result;
	size_t count;
	fi_addr_t group, root; /* root: FI_ADDR_NOTAVAIL for none */
	enum fi_datatype type;
	enum fi_op op;
	uint64_t flags;
	void *context;
};

static bool cpr_coll_reduces(enum fi_collective_op coll)
{
	return coll == FI_ALLREDUCE || coll == FI_REDUCE || coll == FI_REDUCE_SCATTER;
}

/* Returns the function that combines elements in *fn (NULL: none). Returns 0 or -FI_EOPNOTSUPP. */
static int cpr_coll_math(enum fi_collective_op coll, enum fi_datatype type, enum fi_op op,
			 core_atomic_fn **fn)
{
	*fn = NULL;
	if ((unsigned)coll > FI_GATHER || (coll != FI_BARRIER && !core_atomic_size((unsigned)type)))
		return -FI_EOPNOTSUPP;
	if (!cpr_coll_reduces(coll))
		return 0;
	if ((unsigned)op <= FI_BXOR)
		*fn = core_atomic_math((unsigned)type, (unsigned)op);
	return *fn ? 0 : -FI_EOPNOTSUPP;
}

/* Converts a call to core's parameters. Returns 0 or a negative error code. */
static int cpr_coll_args(const struct cpr_ep *ep, const struct cpr_coll_call *call,
			 struct core_coll_args *args)
{
	size_t size = call->coll == FI_BARRIER ? 0 : core_atomic_size((unsigned)call->type);
	int ret = cpr_coll_math(call->coll, call->type, call->op, &args->reduce);

	if (ret)
		return ret;
	if (call->flags & ~CPR_COLL_FLAGS)
		return -FI_EBADFLAGS;
	if (size && call->count > CORE_COLL_LEN_MAX / size)
		return -FI_EMSGSIZE;
	args->type = (unsigned)call->type;
	args->size = size;
	args->context = call->context;
	args->flags = (call->flags | ep->tx_flags) & FI_COMPLETION;
	args->call.coll = call->coll;
	args->call.buf = (uint8_t *)(uintptr_t)call->buf;
	args->call.result = call->result;
	args->call.len = call->count * size;
	return 0;
}

static ssize_t cpr_coll_post_in(struct cpr_ep *ep, const struct cpr_coll_call *call,
				struct core_coll_args *args)
{
	struct cpr_mc *mc = cpr_mc_find(ep, call->group);

	if (!mc)
		return -FI_EINVAL;
	if (!mc->joined)
		return mc->group.err ? mc->group.err : -FI_EOPBADSTATE;
	if (call->root != FI_ADDR_NOTAVAIL &&
	    core_coll_rank_of(&mc->group, call->root, &args->call.root))
		return -FI_EINVAL;
	if (call->coll == FI_REDUCE_SCATTER && args->call.len > CORE_COLL_LEN_MAX / mc->group.cnt)
		return -FI_EMSGSIZE;
	return core_coll_post(&mc->group, args);
}

static ssize_t cpr_coll_post(struct fid_ep *fid, const struct cpr_coll_call *call)
{
	struct cpr_ep *ep = cpr_ep_of(fid);
	struct core_coll_args args = { 0 };
	ssize_t ret;

	if (!(ep->caps & FI_COLLECTIVE) || !ep->owner->is_enabled)
		return cpr_refuse_err(ep);
	ret = cpr_coll_args(ep, call, &args);
	if (ret)
		return ret;
	core_dom_lock(ep->dom);
	ret = cpr_coll_post_in(ep, call, &args);
	if (!(call->flags & FI_MORE))
		core_dom_transferred(ep->dom);
	core_dom_unlock(ep->dom);
	return ret;
}

static ssize_t cpr_coll_barrier2(struct fid_ep *ep, fi_addr_t group, uint64_t flags, void *context)
{
	struct cpr_coll_call call = { .coll = FI_BARRIER,
				      .group = group,
				      .root = FI_ADDR_NOTAVAIL,
				      .flags = flags,
				      .context = context };

	return cpr_coll_post(ep, &call);
}

static ssize_t cpr_coll_barrier(struct fid_ep *ep, fi_addr_t group, void *context)
{
	return cpr_coll_barrier2(ep, group, 0, context);
}

static ssize_t cpr_coll_broadcast(struct fid_ep *ep, void *buf, size_t count, void *desc,
				  fi_addr_t group, fi_addr_t root, enum fi_datatype type,
				  uint64_t flags, void *context)
{
	struct cpr_coll_call call = { FI_BROADCAST, buf,  NULL,    count, group,
				      root,         type, FI_NOOP, flags, context };

	return root == FI_ADDR_NOTAVAIL ? -FI_EINVAL : cpr_coll_post(ep, &call);
}

/* Calls without a root, then those with one. */
static ssize_t cpr_coll_all(struct fid_ep *ep, enum fi_collective_op coll, const void *buf,
			    size_t count, void *result, fi_addr_t group, enum fi_datatype type,
			    enum fi_op op, uint64_t flags, void *context)
{
	struct cpr_coll_call call = { coll, buf, result, count,  group, FI_ADDR_NOTAVAIL,
				      type, op,  flags,  context };

	return cpr_coll_post(ep, &call);
}

static ssize_t cpr_coll_rooted(struct fid_ep *ep, enum fi_collective_op coll, const void *buf,
			       size_t count, void *result, fi_addr_t group, fi_addr_t root,
			       enum fi_datatype type, enum fi_op op, uint64_t flags, void *context)
{
	struct cpr_coll_call call = { coll, buf,  result, count, group,
				      root, type, op,     flags, context };

	return root == FI_ADDR_NOTAVAIL ? -FI_EINVAL : cpr_coll_post(ep, &call);
}

static ssize_t cpr_coll_alltoall(struct fid_ep *ep, const void *buf, size_t count, void *desc,
				 void *result, void *result_desc, fi_addr_t group,
				 enum fi_datatype type, uint64_t flags, void *context)
{
	return cpr_coll_all(ep, FI_ALLTOALL, buf, count, result, group, type, FI_NOOP, flags,
			    context);
}

static ssize_t cpr_coll_allreduce(struct fid_ep *ep, const void *buf, size_t count, void *desc,
				  void *result, void *result_desc, fi_addr_t group,
				  enum fi_datatype type, enum fi_op op, uint64_t flags,
				  void *context)
{
	return cpr_coll_all(ep, FI_ALLREDUCE, buf, count, result, group, type, op, flags, context);
}

static ssize_t cpr_coll_allgather(struct fid_ep *ep, const void *buf, size_t count, void *desc,
				  void *result, void *result_desc, fi_addr_t group,
				  enum fi_datatype type, uint64_t flags, void *context)
{
	return cpr_coll_all(ep, FI_ALLGATHER, buf, count, result, group, type, FI_NOOP, flags,
			    context);
}

static ssize_t cpr_coll_reduce_scatter(struct fid_ep *ep, const void *buf, size_t count, void *desc,
				       void *result, void *result_desc, fi_addr_t group,
				       enum fi_datatype type, enum fi_op op, uint64_t flags,
				       void *context)
{
	return cpr_coll_all(ep, FI_REDUCE_SCATTER, buf, count, result, group, type, op, flags,
			    context);
}

static ssize_t cpr_coll_reduce(struct fid_ep *ep, const void *buf, size_t count, void *desc,
			       void *result, void *result_desc, fi_addr_t group, fi_addr_t root,
			       enum fi_datatype type, enum fi_op op, uint64_t flags, void *context)
{
	return cpr_coll_rooted(ep, FI_REDUCE, buf, count, result, group, root, type, op, flags,
			       context);
}

static ssize_t cpr_coll_scatter(struct fid_ep *ep, const void *buf, size_t count, void *desc,
				void *result, void *result_desc, fi_addr_t group, fi_addr_t root,
				enum fi_datatype type, uint64_t flags, void *context)
{
	return cpr_coll_rooted(ep, FI_SCATTER, buf, count, result, group, root, type, FI_NOOP,
			       flags, context);
}

static ssize_t cpr_coll_gather(struct fid_ep *ep, const void *buf, size_t count, void *desc,
			       void *result, void *result_desc, fi_addr_t group, fi_addr_t root,
			       enum fi_datatype type, uint64_t flags, void *context)
{
	return cpr_coll_rooted(ep, FI_GATHER, buf, count, result, group, root, type, FI_NOOP, flags,
			       context);
}

/* Not reached by a public call. */
static ssize_t cpr_coll_msg(struct fid_ep *ep, const struct fi_msg_collective *msg,
			    struct fi_ioc *resultv, void **result_desc, size_t result_count,
			    uint64_t flags)
{
	return -FI_ENOSYS;
}

struct fi_ops_collective cpr_coll_ops = {
	.size = sizeof(struct fi_ops_collective),
	.barrier = cpr_coll_barrier,
	.broadcast = cpr_coll_broadcast,
	.alltoall = cpr_coll_alltoall,
	.allreduce = cpr_coll_allreduce,
	.allgather = cpr_coll_allgather,
	.reduce_scatter = cpr_coll_reduce_scatter,
	.reduce = cpr_coll_reduce,
	.scatter = cpr_coll_scatter,
	.gather = cpr_coll_gather,
	.msg = cpr_coll_msg,
	.barrier2 = cpr_coll_barrier2,
};

int cpr_coll_query(struct fid_domain *fid, enum fi_collective_op coll,
		   struct fi_collective_attr *attr, uint64_t flags)
{
	core_atomic_fn *fn;
	size_t size;
	int ret;

	if (cpr_domain_of(fid)->dgram)
		return -FI_EOPNOTSUPP;
	if (flags)
		return -FI_EBADFLAGS;
	if (!attr || attr->mode)
		return -FI_EINVAL;
	ret = cpr_coll_math(coll, attr->datatype, attr->op, &fn);
	if (ret)
		return ret;
	size = coll == FI_BARRIER ? 0 : core_atomic_size((unsigned)attr->datatype);
	attr->datatype_attr.size = size;
	attr->datatype_attr.count = size ? CORE_COLL_LEN_MAX / size : 0;
	attr->max_members = CORE_COLL_MEMBERS_MAX;
	return 0;
}
