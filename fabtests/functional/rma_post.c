/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Accesses to remote memory by each call of fi_rma(3): see rma_post.h. */
#include "functional/rma_post.h"

#include <rdma/fi_rma.h>

const char *const rma_names[RMAS] = { "write",     "writev", "writemsg",
				      "writedata", "inject", "inject_writedata",
				      "read",      "readv",  "readmsg" };

bool rma_reads(enum rma how)
{
	return how >= READ;
}

static ssize_t rma_by_msg(struct ft_fab *fab, const struct rma_op *o, const struct iovec *iov,
			  size_t cnt)
{
	struct fi_rma_iov there = { .addr = o->addr, .len = o->len, .key = o->key };
	struct fi_msg_rma msg = { .msg_iov = iov,
				  .iov_count = cnt,
				  .addr = fab->addr[o->rank],
				  .rma_iov = &there,
				  .rma_iov_count = 1,
				  .data = RMA_DATA,
				  .context = o->op ? &o->op->context : NULL };

	return rma_reads(o->how) ? fi_readmsg(fab->ep, &msg, o->flags)
				 : fi_writemsg(fab->ep, &msg, o->flags);
}

ssize_t rma_post(struct ft_fab *fab, const struct rma_op *o)
{
	struct iovec iov[2] = { { o->buf, o->len / 3 },
				{ o->buf + o->len / 3, o->len - o->len / 3 } };
	size_t cnt = fab->info->tx_attr->iov_limit > 1 ? 2 : 1;
	void *context = o->op ? &o->op->context : NULL;
	fi_addr_t to = fab->addr[o->rank];

	if (cnt == 1)
		iov[0].iov_len = o->len;
	switch (o->how) {
	case WRITE: return fi_write(fab->ep, o->buf, o->len, NULL, to, o->addr, o->key, context);
	case WRITEV: return fi_writev(fab->ep, iov, NULL, cnt, to, o->addr, o->key, context);
	case WRITEDATA:
		return fi_writedata(fab->ep, o->buf, o->len, NULL, RMA_DATA, to, o->addr, o->key,
				    context);
	case INJECT: return fi_inject_write(fab->ep, o->buf, o->len, to, o->addr, o->key);
	case INJECTDATA:
		return fi_inject_writedata(fab->ep, o->buf, o->len, RMA_DATA, to, o->addr, o->key);
	case READ: return fi_read(fab->ep, o->buf, o->len, NULL, to, o->addr, o->key, context);
	case READV: return fi_readv(fab->ep, iov, NULL, cnt, to, o->addr, o->key, context);
	default: return rma_by_msg(fab, o, iov, cnt);
	}
}

void rma_begin(struct ft_fab *fab, struct ft *ft, struct ft_want want)
{
	want.caps |= FI_RMA | FI_MSG;
	ft_fab_open(fab, ft, &want);
}

void rma_end(struct ft_fab *fab, struct ft_region *region)
{
	ft_quiet(fab, 0.02);
	FT_CHECK(!ft_open_ops(fab), "%u operations never completed", ft_open_ops(fab));
	ft_sync(fab->ft);
	if (region)
		ft_region_close(region);
	ft_fab_close(fab);
}
