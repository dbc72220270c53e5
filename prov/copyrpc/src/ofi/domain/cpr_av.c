/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Address vectors: see cpr_av.h. */
#include "ofi/base/cpr_av.h"

#include <netdb.h>
#include <rdma/fi_errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ofi/base/cpr_addr.h"
#include "ofi/base/cpr_av_set.h"
#include "ofi/base/cpr_domain.h"
#include "ofi/base/cpr_ep.h"
#include "ofi/base/cpr_fid.h"
#include "ofi/dgram/cpr_dgram.h"
#include "ofi/queue/cpr_eq.h"
#include "util/bits.h"
#include "util/log.h"

#define CPR_AV_INSERT_FLAGS (FI_MORE | FI_SYNC_ERR)

static inline struct cpr_av *cpr_av_of(struct fid_av *fid)
{
	return UTIL_CONTAINER_OF(fid, struct cpr_av, fid);
}

static int cpr_av_core_open(struct cpr_av *av, size_t count_hint)
{
	av->core = core_av_open(count_hint);
	return av->core ? 0 : -FI_ENOMEM;
}

static void cpr_av_core_close(struct cpr_av *av)
{
	core_av_close(av->core);
}

static int cpr_av_core_insert(struct cpr_av *av, const struct sockaddr_storage *addr,
			      uint64_t *number)
{
	if (cpr_addr_format(addr->ss_family) != av->domain->addr_format)
		return -FI_EINVAL;
	return core_av_insert(av->core, (const struct sockaddr *)addr, number);
}

static int cpr_av_core_remove(struct cpr_av *av, uint64_t number, bool *gone)
{
	return core_av_remove(av->core, number, gone);
}

static size_t cpr_av_core_addr(struct cpr_av *av, uint64_t number, struct sockaddr_storage *addr)
{
	return core_av_addr(av->core, number, addr);
}

static const struct cpr_av_kind cpr_av_kind_msg = {
	.open = cpr_av_core_open,
	.close = cpr_av_core_close,
	.insert = cpr_av_core_insert,
	.remove = cpr_av_core_remove,
	.addr = cpr_av_core_addr,
};

/* One call of an insert function. */
struct cpr_av_insert {
	struct cpr_av *av;
	fi_addr_t *fi_addr; /* or NULL */
	int *sync_err;      /* or NULL */
	void *context;
	size_t index; /* of the next address */
	size_t done;  /* addresses inserted */
};

static int cpr_av_begin(struct cpr_av_insert *ins, struct fid_av *fid, fi_addr_t *fi_addr,
			uint64_t flags, void *context)
{
	struct cpr_av *av = cpr_av_of(fid);

	memset(ins, 0, sizeof(*ins));
	if (flags & ~CPR_AV_INSERT_FLAGS)
		return -FI_EBADFLAGS;
	if (av->async && !av->eq_user.eq)
		return -FI_ENOEQ;
	if (flags & FI_SYNC_ERR) {
		if (av->async || !context)
			return -FI_EINVAL;
		ins->sync_err = context;
	}
	ins->av = av;
	ins->fi_addr = fi_addr;
	ins->context = context;
	return 0;
}

static int cpr_av_notify_inserted(struct cpr_av *av, uint64_t idx)
{
	struct util_list *it, *tmp;
	int ret = 0;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &av->eps) {
		struct cpr_ep *ep = UTIL_CONTAINER_OF(it, struct cpr_ep, av_link);

		if (!ret && ep->is_enabled)
			ret = ep->kind->av_inserted(ep, idx);
	}
	return ret;
}

static void cpr_av_notify_removed(struct cpr_av *av, uint64_t idx)
{
	struct util_list *it, *tmp;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &av->eps) {
		struct cpr_ep *ep = UTIL_CONTAINER_OF(it, struct cpr_ep, av_link);

		if (ep->is_enabled)
			ep->kind->av_removed(ep, idx);
	}
}

static bool cpr_av_one_is_busy(const struct cpr_av *av, fi_addr_t fi_addr)
{
	struct util_list *it, *tmp;
	bool busy = false;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &av->eps) {
		struct cpr_ep *ep = UTIL_CONTAINER_OF(it, struct cpr_ep, av_link);

		if (ep->is_enabled && ep->kind->av_is_busy && ep->kind->av_is_busy(ep, fi_addr))
			busy = true;
	}
	return busy;
}

/*
 * Returns true if an endpoint still works for one of the peers. Asks about all peers each time: for
 * some endpoints the request starts the work that makes the peer idle.
 */
static bool cpr_av_is_busy(const struct cpr_av *av, const fi_addr_t *fi_addr, size_t count)
{
	bool busy = false;
	size_t i;

	for (i = 0; i < count; i++)
		if (cpr_av_one_is_busy(av, fi_addr[i]))
			busy = true;
	return busy;
}

/*
 * Makes progress until operations accepted for these peers have reached them, as before fi_close.
 */
static void cpr_av_drain(struct cpr_av *av, const fi_addr_t *fi_addr, size_t count)
{
	struct cpr_drain drain = { 0 };
	bool busy;

	do {
		cpr_pdom_lock_all(av->domain);
		busy = cpr_av_is_busy(av, fi_addr, count);
		if (busy)
			cpr_pdom_progress_locked(av->domain);
		cpr_pdom_unlock_all(av->domain);
	} while (busy && cpr_drain_again(&drain));
}

static int cpr_av_remove_one(struct cpr_av *av, fi_addr_t fi_addr)
{
	bool gone = false;
	int ret = av->kind->remove(av, fi_addr, &gone);

	if (!ret && gone)
		cpr_av_notify_removed(av, fi_addr);
	return ret;
}

static int cpr_av_add(struct cpr_av *av, const struct sockaddr_storage *addr, fi_addr_t *idx)
{
	int ret;

	cpr_pdom_lock_all(av->domain);
	ret = av->kind->insert(av, addr, idx);
	if (!ret) {
		ret = cpr_av_notify_inserted(av, *idx);
		if (ret)
			cpr_av_remove_one(av, *idx);
	}
	cpr_pdom_unlock_all(av->domain);
	return ret;
}

static void cpr_av_report_err(const struct cpr_av_insert *ins, int err)
{
	struct fi_eq_err_entry entry = { .fid = &ins->av->fid.fid,
					 .context = ins->context,
					 .data = ins->index,
					 .err = -err,
					 .prov_errno = -err };

	if (ins->av->async)
		cpr_eq_post_err(ins->av->eq_user.eq, &entry);
}

/* Inserts one address; NULL stands for an address that could not be resolved. */
static void cpr_av_insert_one(struct cpr_av_insert *ins, const struct sockaddr_storage *addr)
{
	fi_addr_t idx = FI_ADDR_NOTAVAIL;
	int ret = addr ? cpr_av_add(ins->av, addr, &idx) : -FI_EADDRNOTAVAIL;

	if (ret) {
		idx = FI_ADDR_NOTAVAIL;
		cpr_av_report_err(ins, ret);
	}
	if (ins->fi_addr)
		ins->fi_addr[ins->index] = idx;
	if (ins->sync_err)
		ins->sync_err[ins->index] = -ret;
	ins->index++;
	ins->done += !ret;
}

static int cpr_av_end(const struct cpr_av_insert *ins)
{
	struct fi_eq_entry entry = { .fid = &ins->av->fid.fid,
				     .context = ins->context,
				     .data = ins->done };

	if (!ins->av->async)
		return (int)ins->done;
	return cpr_eq_post(ins->av->eq_user.eq, FI_AV_COMPLETE, &entry, sizeof(entry));
}

static int cpr_av_insert(struct fid_av *fid, const void *addr, size_t count, fi_addr_t *fi_addr,
			 uint64_t flags, void *context)
{
	size_t stride = cpr_addr_len(cpr_av_of(fid)->domain->addr_format);
	struct cpr_av_insert ins;
	struct sockaddr_storage one;
	size_t i;
	int ret = cpr_av_begin(&ins, fid, fi_addr, flags, context);

	if (ret)
		return ret;
	for (i = 0; i < count; i++) {
		/* The user's array need not be aligned for a sockaddr. */
		memcpy(&one, (const uint8_t *)addr + i * stride, stride);
		cpr_av_insert_one(&ins, &one);
	}
	return cpr_av_end(&ins);
}

static int cpr_av_resolve(const struct cpr_av *av, const char *node, const char *service,
			  struct sockaddr_storage *addr)
{
	return cpr_addr_resolve(node, service, cpr_addr_family(av->domain->addr_format), 0, addr);
}

static int cpr_av_insertsvc(struct fid_av *fid, const char *node, const char *service,
			    fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	struct sockaddr_storage addr;
	struct cpr_av_insert ins;
	int ret = cpr_av_begin(&ins, fid, fi_addr, flags, context);

	if (ret)
		return ret;
	if (!node)
		return -FI_EINVAL;
	ret = cpr_av_resolve(ins.av, node, service, &addr);
	cpr_av_insert_one(&ins, ret ? NULL : &addr);
	return cpr_av_end(&ins);
}

/*
 * Returns the offset of the number at the end of a host name, and its value. Without a number it
 * returns the length of the name.
 */
static size_t cpr_av_split_name(const char *node, unsigned long *number)
{
	size_t start = strlen(node);

	while (start && node[start - 1] >= '0' && node[start - 1] <= '9')
		start--;
	*number = strtoul(node + start, NULL, 10);
	return start;
}

/* Resolves the n-th host: numeric addresses count up, names count up their suffix. */
static int cpr_av_sym_node(const struct cpr_av *av, const char *node, size_t n, const char *service,
			   struct sockaddr_storage *addr)
{
	int family = cpr_addr_family(av->domain->addr_format);
	char name[NI_MAXHOST];
	unsigned long number;
	size_t start;
	int width;

	if (!cpr_addr_resolve(node, service, family, AI_NUMERICHOST, addr))
		return cpr_addr_step(addr, n, 0) ? 0 : -FI_EINVAL;
	start = cpr_av_split_name(node, &number);
	if (n && !node[start])
		return -FI_EINVAL;
	if (!node[start])
		return cpr_av_resolve(av, node, service, addr);
	/* host08, host09, host10: the number keeps its width. */
	width = (int)strlen(node + start);
	if ((size_t)snprintf(name, sizeof(name), "%.*s%0*lu", (int)start, node, width,
			     number + n) >= sizeof(name))
		return -FI_EINVAL;
	return cpr_av_resolve(av, name, service, addr);
}

static int cpr_av_insertsym(struct fid_av *fid, const char *node, size_t nodecnt,
			    const char *service, size_t svccnt, fi_addr_t *fi_addr, uint64_t flags,
			    void *context)
{
	struct sockaddr_storage first, addr;
	struct cpr_av_insert ins;
	size_t n, s;
	int err, ret = cpr_av_begin(&ins, fid, fi_addr, flags, context);

	if (ret)
		return ret;
	if (!node || !service)
		return -FI_EINVAL;
	for (n = 0; n < nodecnt; n++) {
		err = cpr_av_sym_node(ins.av, node, n, service, &first);
		for (s = 0; s < svccnt; s++) {
			addr = first;
			if (err || !cpr_addr_step(&addr, 0, s))
				cpr_av_insert_one(&ins, NULL);
			else
				cpr_av_insert_one(&ins, &addr);
		}
	}
	return cpr_av_end(&ins);
}

static int cpr_av_remove(struct fid_av *fid, fi_addr_t *fi_addr, size_t count, uint64_t flags)
{
	struct cpr_av *av = cpr_av_of(fid);
	size_t i;
	int err, ret = 0;

	if (flags)
		return -FI_EINVAL;
	cpr_av_drain(av, fi_addr, count);
	cpr_pdom_lock_all(av->domain);
	for (i = 0; i < count; i++) {
		err = cpr_av_remove_one(av, fi_addr[i]);
		if (err && !ret)
			ret = err;
	}
	cpr_pdom_unlock_all(av->domain);
	return ret;
}

static int cpr_av_lookup(struct fid_av *fid, fi_addr_t fi_addr, void *addr, size_t *addrlen)
{
	struct cpr_av *av = cpr_av_of(fid);
	struct sockaddr_storage ss;
	size_t len;

	cpr_domain_lock(av->domain);
	len = av->kind->addr(av, fi_addr, &ss);
	cpr_domain_unlock(av->domain);
	if (!len)
		return -FI_EINVAL;
	memcpy(addr, &ss, *addrlen < len ? *addrlen : len);
	*addrlen = len;
	return 0;
}

static const char *cpr_av_straddr(struct fid_av *fid, const void *addr, char *buf, size_t *len)
{
	*len = cpr_addr_print_as(cpr_av_of(fid)->domain->addr_format, addr, buf, *len);
	return buf;
}

static int cpr_av_close(struct fid *fid)
{
	struct cpr_av *av = UTIL_CONTAINER_OF(fid, struct cpr_av, fid.fid);

	if (cpr_ref_is_busy(&av->refs))
		return -FI_EBUSY;
	cpr_eq_detach(&av->eq_user);
	av->kind->close(av);
	cpr_ref_put(&av->domain->refs);
	free(av);
	return 0;
}

static int cpr_av_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct cpr_av *av = UTIL_CONTAINER_OF(fid, struct cpr_av, fid.fid);

	if (bfid->fclass != FI_CLASS_EQ || flags)
		return -FI_EINVAL;
	return cpr_eq_attach(cpr_eq_of(bfid), av->domain, &av->eq_user);
}

static struct fi_ops cpr_av_fi_ops = CPR_FID_OPS(cpr_av_close, cpr_av_bind, cpr_no_control);

/* The table ends there also where libfabric's has more members, which are about keys. */
static struct fi_ops_av cpr_av_ops = {
	.size = offsetof(struct fi_ops_av, av_set) + sizeof(cpr_av_ops.av_set),
	.insert = cpr_av_insert,
	.insertsvc = cpr_av_insertsvc,
	.insertsym = cpr_av_insertsym,
	.remove = cpr_av_remove,
	.lookup = cpr_av_lookup,
	.straddr = cpr_av_straddr,
	.av_set = cpr_av_set_open,
};

static int cpr_av_check(const struct fi_av_attr *attr)
{
	if (!attr || attr->type > FI_AV_TABLE)
		return -FI_EINVAL;
	if (attr->name || attr->rx_ctx_bits || (attr->flags & ~(FI_EVENT | FI_SYMMETRIC))) {
		UTIL_INFO(AV,
			  "address vector: requested a shared one, receive contexts or flags "
			  "0x%lx; offered FI_EVENT and FI_SYMMETRIC\n",
			  (unsigned long)attr->flags);
		return -FI_ENOSYS;
	}
	return 0;
}

int cpr_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **out,
		void *context)
{
	struct cpr_av *av;
	int ret = cpr_av_check(attr);

	if (ret)
		return ret;
	av = cpr_fid_new(sizeof(*av), FI_CLASS_AV, &cpr_av_fi_ops, context);
	if (!av)
		return -FI_ENOMEM;
	av->domain = cpr_domain_of(domain);
	av->kind = av->domain->dgram ? &cpr_av_kind_dgram : &cpr_av_kind_msg;
	ret = av->kind->open(av, attr->count);
	if (ret) {
		free(av);
		return ret;
	}
	av->fid.ops = &cpr_av_ops;
	av->async = attr->flags & FI_EVENT;
	util_list_init(&av->eps);
	if (attr->type == FI_AV_UNSPEC)
		attr->type = av->domain->av_type;
	cpr_ref_get(&av->domain->refs);
	*out = &av->fid;
	return 0;
}
