/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Atomic operations: fi_atomic over core. Called by the application through the op table of the
 * endpoint.
 *
 * The calls differ in their parameters only: each fills in a cpr_atomic_call. cpr_atomic_post
 * checks the call, counts elements into bytes and passes it to core under the domain's lock. Memory
 * descriptors are ignored: no local buffer needs registration.
 */
#include "ofi/xfer/cpr_atomic.h"

#include <assert.h>

#include "core/rma/core_atomic.h"
#include "ofi/base/cpr_domain.h"
#include "ofi/base/cpr_refuse.h"
#include "ofi/xfer/cpr_xfer.h"
#include "util/bits.h"

static_assert(CPR_IOV_LIMIT == CORE_ATOMIC_IOV_MAX, "equal limits in core");

#define CPR_FETCHMSG_FLAGS                                                                         \
	(FI_COMPLETION | FI_INJECT | FI_MORE | FI_FENCE | FI_INJECT_COMPLETE |                     \
	 FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE)
#define CPR_ATOMICMSG_FLAGS (CPR_FETCHMSG_FLAGS | FI_REMOTE_CQ_DATA)

/* Parameters of a call. */
struct cpr_atomic_call {
	enum core_atomic_kind kind;
	enum fi_datatype type;
	enum fi_op op;
	bool silent;
	const struct fi_ioc *operand;
	size_t operand_cnt;
	const struct fi_ioc *compare;
	size_t compare_cnt;
	const struct fi_ioc *result;
	size_t result_cnt;
	const struct fi_rma_ioc *rma; /* NULL: as many elements as the other lists, at `one` */
	size_t rma_cnt;
	struct fi_rma_ioc one;
	fi_addr_t addr;
	uint64_t data;
	void *context;
	uint64_t flags;
};

/* Lists of a call in bytes, as core takes them. */
struct cpr_atomic_lists {
	struct iovec operand[CPR_IOV_LIMIT];
	struct iovec compare[CPR_IOV_LIMIT];
	struct iovec result[CPR_IOV_LIMIT];
	struct fi_rma_iov rma[CPR_IOV_LIMIT];
};

/*
 * Returns true if the operation is defined for the datatype. FI_DIFF came with libfabric 2; its
 * number means no operation to programs for older versions.
 */
static bool cpr_atomic_is_valid(const struct cpr_domain *domain, enum core_atomic_kind kind,
				enum fi_datatype type, enum fi_op op)
{
	if ((unsigned)op == CORE_ATOMIC_DIFF &&
	    FI_VERSION_LT(domain->api_version, FI_VERSION(2, 0)))
		return false;
	return core_atomic_is_valid(kind, (unsigned)type, (unsigned)op);
}

static int cpr_atomic_check(const struct cpr_ep *ep, enum core_atomic_kind kind,
			    enum fi_datatype type, enum fi_op op)
{
	if (UTIL_UNLIKELY(!ep->may_atomic[kind != CORE_ATOMIC_BASE]))
		return cpr_refuse_err(ep);
	return cpr_atomic_is_valid(ep->domain, kind, type, op) ? 0 : -FI_EOPNOTSUPP;
}

static size_t cpr_atomic_max(enum fi_datatype type)
{
	return CORE_ATOMIC_LEN_MAX / core_atomic_size((unsigned)type);
}

/* Converts a list to bytes. Returns 0 and *len, -FI_EINVAL or -FI_EMSGSIZE. */
static int cpr_atomic_list(const struct fi_ioc *ioc, size_t cnt, enum fi_datatype type,
			   struct iovec *iov, size_t *len)
{
	size_t elements = 0;

	if (!cnt || cnt > CPR_IOV_LIMIT)
		return -FI_EINVAL;
	for (size_t i = 0; i < cnt; i++) {
		if (ioc[i].count > cpr_atomic_max(type))
			return -FI_EMSGSIZE;
		elements += ioc[i].count;
		iov[i].iov_base = ioc[i].addr;
		iov[i].iov_len = ioc[i].count * core_atomic_size((unsigned)type);
	}
	*len = elements * core_atomic_size((unsigned)type);
	if (!elements)
		return -FI_EINVAL;
	return elements > cpr_atomic_max(type) ? -FI_EMSGSIZE : 0;
}

/* Converts a list that must have the length of earlier ones, a->len; 0 if it is the first. */
static int cpr_atomic_add(const struct fi_ioc *ioc, size_t cnt, struct core_atomic *a,
			  struct iovec *iov)
{
	size_t len;
	int ret = cpr_atomic_list(ioc, cnt, (enum fi_datatype)a->type, iov, &len);

	if (ret)
		return ret;
	if (a->len && a->len != len)
		return -FI_EINVAL;
	a->len = len;
	return 0;
}

static int cpr_atomic_local(const struct cpr_atomic_call *c, struct core_atomic *a,
			    struct cpr_atomic_lists *lists)
{
	int ret = 0;

	if (core_atomic_has_operand(a->op)) {
		ret = cpr_atomic_add(c->operand, c->operand_cnt, a, lists->operand);
		a->operand = lists->operand;
		a->operand_cnt = c->operand_cnt;
	}
	if (!ret && a->kind == CORE_ATOMIC_COMPARE) {
		ret = cpr_atomic_add(c->compare, c->compare_cnt, a, lists->compare);
		a->compare = lists->compare;
		a->compare_cnt = c->compare_cnt;
	}
	if (!ret && a->kind != CORE_ATOMIC_BASE) {
		ret = cpr_atomic_add(c->result, c->result_cnt, a, lists->result);
		a->result = lists->result;
		a->result_cnt = c->result_cnt;
	}
	return ret;
}

static int cpr_atomic_remote(const struct cpr_atomic_call *c, struct core_atomic *a,
			     struct cpr_atomic_lists *lists)
{
	size_t size = core_atomic_size(a->type), len = 0;

	if (!c->rma) {
		lists->rma[0] = (struct fi_rma_iov){ c->one.addr, a->len, c->one.key };
		a->rma_cnt = 1;
		return 0;
	}
	if (!c->rma_cnt || c->rma_cnt > CPR_IOV_LIMIT)
		return -FI_EINVAL;
	for (size_t i = 0; i < c->rma_cnt; i++) {
		if (c->rma[i].count > a->len / size)
			return -FI_EINVAL;
		lists->rma[i] = (struct fi_rma_iov){ c->rma[i].addr, c->rma[i].count * size,
						     c->rma[i].key };
		len += c->rma[i].count * size;
	}
	a->rma_cnt = c->rma_cnt;
	return len == a->len ? 0 : -FI_EINVAL;
}

static ssize_t cpr_atomic_post(struct fid_ep *fid, const struct cpr_atomic_call *c)
{
	struct cpr_ep *ep = cpr_ep_of(fid);
	struct cpr_atomic_lists lists;
	struct core_atomic a = {
		.kind = c->kind,
		.type = (unsigned)c->type,
		.op = (unsigned)c->op,
		.silent = c->silent,
		.peer = c->addr,
		.rma = lists.rma,
		.data = c->data,
		.context = c->context,
		.flags = c->flags,
	};
	ssize_t ret;

	ret = cpr_atomic_check(ep, c->kind, c->type, c->op);
	if (!ret)
		ret = cpr_atomic_local(c, &a, &lists);
	if (!ret)
		ret = cpr_atomic_remote(c, &a, &lists);
	if (ret)
		return ret;
	if ((a.flags & FI_INJECT) && a.len > ep->inject_max)
		return -FI_EMSGSIZE;
	if (a.flags & FI_TRIGGER)
		return cpr_trigger_atomic(ep, &a);
	core_dom_lock(ep->dom);
	ret = core_atomic_post(ep->core, &a);
	if (!(a.flags & FI_MORE))
		core_dom_transferred(ep->dom);
	core_dom_unlock(ep->dom);
	return ret;
}

/* Posts an operation on one remote buffer, with the default flags. */
UTIL_INLINE ssize_t cpr_atomic_iov(struct fid_ep *fid, enum core_atomic_kind kind,
				   const struct fi_ioc *operand, size_t operand_cnt,
				   const struct fi_ioc *compare, size_t compare_cnt,
				   const struct fi_ioc *result, size_t result_cnt, fi_addr_t dest,
				   uint64_t addr, uint64_t key, enum fi_datatype datatype,
				   enum fi_op op, void *context)
{
	struct cpr_atomic_call call = { .kind = kind,
					.type = datatype,
					.op = op,
					.operand = operand,
					.operand_cnt = operand_cnt,
					.compare = compare,
					.compare_cnt = compare_cnt,
					.result = result,
					.result_cnt = result_cnt,
					.one = { .addr = addr, .key = key },
					.addr = dest,
					.context = context,
					.flags = cpr_ep_of(fid)->tx_flags };

	return cpr_atomic_post(fid, &call);
}

/* Base */
static ssize_t cpr_atomic_writev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc,
				 size_t count, fi_addr_t dest, uint64_t addr, uint64_t key,
				 enum fi_datatype datatype, enum fi_op op, void *context)
{
	return cpr_atomic_iov(fid, CORE_ATOMIC_BASE, iov, count, NULL, 0, NULL, 0, dest, addr, key,
			      datatype, op, context);
}

static ssize_t cpr_atomic_write(struct fid_ep *fid, const void *buf, size_t count, void *desc,
				fi_addr_t dest, uint64_t addr, uint64_t key,
				enum fi_datatype datatype, enum fi_op op, void *context)
{
	struct fi_ioc ioc = { .addr = (void *)(uintptr_t)buf, .count = count };

	return cpr_atomic_writev(fid, &ioc, NULL, 1, dest, addr, key, datatype, op, context);
}

static ssize_t cpr_atomic_inject(struct fid_ep *fid, const void *buf, size_t count, fi_addr_t dest,
				 uint64_t addr, uint64_t key, enum fi_datatype datatype,
				 enum fi_op op)
{
	struct fi_ioc ioc = { .addr = (void *)(uintptr_t)buf, .count = count };
	struct cpr_atomic_call call = { .kind = CORE_ATOMIC_BASE,
					.type = datatype,
					.op = op,
					.silent = true,
					.operand = &ioc,
					.operand_cnt = 1,
					.one = { .addr = addr, .key = key },
					.addr = dest,
					.flags = FI_INJECT };

	return cpr_atomic_post(fid, &call);
}

/* Returns the call for the variants with a struct fi_msg_atomic. */
static struct cpr_atomic_call cpr_atomic_from_msg(const struct fi_msg_atomic *msg, uint64_t flags,
						  enum core_atomic_kind kind)
{
	static const struct fi_rma_ioc none;

	return (struct cpr_atomic_call){ .kind = kind,
					 .type = msg->datatype,
					 .op = msg->op,
					 .operand = msg->msg_iov,
					 .operand_cnt = msg->iov_count,
					 .rma = msg->rma_iov ? msg->rma_iov : &none,
					 .rma_cnt = msg->rma_iov ? msg->rma_iov_count : 0,
					 .addr = msg->addr,
					 .data = msg->data,
					 .context = msg->context,
					 .flags = flags };
}

static ssize_t cpr_atomic_writemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg,
				   uint64_t flags)
{
	struct cpr_atomic_call call = cpr_atomic_from_msg(msg, flags, CORE_ATOMIC_BASE);

	if (!cpr_xfer_accepts(cpr_ep_of(fid), flags, CPR_ATOMICMSG_FLAGS))
		return -FI_EBADFLAGS;
	return cpr_atomic_post(fid, &call);
}

/* Fetch */
static ssize_t cpr_atomic_readwritev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc,
				     size_t count, struct fi_ioc *resultv, void **result_desc,
				     size_t result_count, fi_addr_t dest, uint64_t addr,
				     uint64_t key, enum fi_datatype datatype, enum fi_op op,
				     void *context)
{
	return cpr_atomic_iov(fid, CORE_ATOMIC_FETCH, iov, count, NULL, 0, resultv, result_count,
			      dest, addr, key, datatype, op, context);
}

static ssize_t cpr_atomic_readwrite(struct fid_ep *fid, const void *buf, size_t count, void *desc,
				    void *result, void *result_desc, fi_addr_t dest, uint64_t addr,
				    uint64_t key, enum fi_datatype datatype, enum fi_op op,
				    void *context)
{
	struct fi_ioc ioc = { .addr = (void *)(uintptr_t)buf, .count = count };
	struct fi_ioc result_ioc = { .addr = result, .count = count };

	return cpr_atomic_readwritev(fid, &ioc, NULL, 1, &result_ioc, NULL, 1, dest, addr, key,
				     datatype, op, context);
}

static ssize_t cpr_atomic_readwritemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg,
				       struct fi_ioc *resultv, void **result_desc,
				       size_t result_count, uint64_t flags)
{
	struct cpr_atomic_call call = cpr_atomic_from_msg(msg, flags, CORE_ATOMIC_FETCH);

	if (!cpr_xfer_accepts(cpr_ep_of(fid), flags, CPR_FETCHMSG_FLAGS))
		return -FI_EBADFLAGS;
	call.result = resultv;
	call.result_cnt = result_count;
	return cpr_atomic_post(fid, &call);
}

/* Compare */
static ssize_t cpr_atomic_compwritev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc,
				     size_t count, const struct fi_ioc *comparev,
				     void **compare_desc, size_t compare_count,
				     struct fi_ioc *resultv, void **result_desc,
				     size_t result_count, fi_addr_t dest, uint64_t addr,
				     uint64_t key, enum fi_datatype datatype, enum fi_op op,
				     void *context)
{
	return cpr_atomic_iov(fid, CORE_ATOMIC_COMPARE, iov, count, comparev, compare_count,
			      resultv, result_count, dest, addr, key, datatype, op, context);
}

static ssize_t cpr_atomic_compwrite(struct fid_ep *fid, const void *buf, size_t count, void *desc,
				    const void *compare, void *compare_desc, void *result,
				    void *result_desc, fi_addr_t dest, uint64_t addr, uint64_t key,
				    enum fi_datatype datatype, enum fi_op op, void *context)
{
	struct fi_ioc ioc = { .addr = (void *)(uintptr_t)buf, .count = count };
	struct fi_ioc compare_ioc = { .addr = (void *)(uintptr_t)compare, .count = count };
	struct fi_ioc result_ioc = { .addr = result, .count = count };

	return cpr_atomic_compwritev(fid, &ioc, NULL, 1, &compare_ioc, NULL, 1, &result_ioc, NULL,
				     1, dest, addr, key, datatype, op, context);
}

static ssize_t cpr_atomic_compwritemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg,
				       const struct fi_ioc *comparev, void **compare_desc,
				       size_t compare_count, struct fi_ioc *resultv,
				       void **result_desc, size_t result_count, uint64_t flags)
{
	struct cpr_atomic_call call = cpr_atomic_from_msg(msg, flags, CORE_ATOMIC_COMPARE);

	if (!cpr_xfer_accepts(cpr_ep_of(fid), flags, CPR_FETCHMSG_FLAGS))
		return -FI_EBADFLAGS;
	call.compare = comparev;
	call.compare_cnt = compare_count;
	call.result = resultv;
	call.result_cnt = result_count;
	return cpr_atomic_post(fid, &call);
}

/* Validity */
static int cpr_atomic_valid(struct fid_ep *fid, enum core_atomic_kind kind,
			    enum fi_datatype datatype, enum fi_op op, size_t *count)
{
	int ret = cpr_atomic_check(cpr_ep_of(fid), kind, datatype, op);

	if (!ret && count)
		*count = cpr_atomic_max(datatype);
	return ret;
}

static int cpr_atomic_writevalid(struct fid_ep *fid, enum fi_datatype datatype, enum fi_op op,
				 size_t *count)
{
	return cpr_atomic_valid(fid, CORE_ATOMIC_BASE, datatype, op, count);
}

static int cpr_atomic_readwritevalid(struct fid_ep *fid, enum fi_datatype datatype, enum fi_op op,
				     size_t *count)
{
	return cpr_atomic_valid(fid, CORE_ATOMIC_FETCH, datatype, op, count);
}

static int cpr_atomic_compwritevalid(struct fid_ep *fid, enum fi_datatype datatype, enum fi_op op,
				     size_t *count)
{
	return cpr_atomic_valid(fid, CORE_ATOMIC_COMPARE, datatype, op, count);
}

int cpr_atomic_query(struct fid_domain *fid, enum fi_datatype datatype, enum fi_op op,
		     struct fi_atomic_attr *attr, uint64_t flags)
{
	enum core_atomic_kind kind = CORE_ATOMIC_BASE;

	if (flags & FI_TAGGED) /* receive buffers are not targets */
		return -FI_EOPNOTSUPP;
	if ((flags & ~(FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC)) ||
	    flags == (FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC))
		return -FI_EBADFLAGS;
	if (flags)
		kind = flags == FI_FETCH_ATOMIC ? CORE_ATOMIC_FETCH : CORE_ATOMIC_COMPARE;
	if (!cpr_atomic_is_valid(cpr_domain_of(fid), kind, datatype, op))
		return -FI_EOPNOTSUPP;
	if (attr) {
		attr->count = cpr_atomic_max(datatype);
		attr->size = core_atomic_size((unsigned)datatype);
	}
	return 0;
}

struct fi_ops_atomic cpr_atomic_ops = {
	.size = sizeof(struct fi_ops_atomic),
	.write = cpr_atomic_write,
	.writev = cpr_atomic_writev,
	.writemsg = cpr_atomic_writemsg,
	.inject = cpr_atomic_inject,
	.readwrite = cpr_atomic_readwrite,
	.readwritev = cpr_atomic_readwritev,
	.readwritemsg = cpr_atomic_readwritemsg,
	.compwrite = cpr_atomic_compwrite,
	.compwritev = cpr_atomic_compwritev,
	.compwritemsg = cpr_atomic_compwritemsg,
	.writevalid = cpr_atomic_writevalid,
	.readwritevalid = cpr_atomic_readwritevalid,
	.compwritevalid = cpr_atomic_compwritevalid,
};

/* Base operations write, the others read (fi_endpoint(3), FI_READ and FI_WRITE). */
void cpr_atomic_pick(struct cpr_ep *ep)
{
	ep->may_atomic[0] = (ep->caps & FI_ATOMIC) && (ep->caps & FI_WRITE);
	ep->may_atomic[1] = (ep->caps & FI_ATOMIC) && (ep->caps & FI_READ);
}
