/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Accounting of completions (ft_op.h). */
#include "ft_op.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define OPS_MAX  8192
#define SLEEP_MS 20

struct ft_ops {
	struct ft_op op[OPS_MAX];
	struct ft_op *first, *last; /* free operations, the least recently used first */
	unsigned orphans, remotes;
	int orphan_err;
	struct fi_cq_tagged_entry remote;
	uint64_t order;
};

/* One completion, in any format and from any call. */
struct arrival {
	struct fi_cq_tagged_entry entry; /* the other formats are prefixes of it */
	fi_addr_t src;
	size_t olen;
	int err;
};

struct ft_ops *ft_ops_open(void)
{
	struct ft_ops *ops = calloc(1, sizeof(*ops));

	FT_CHECK(ops, "out of memory");
	for (size_t i = 0; i + 1 < OPS_MAX; i++)
		ops->op[i].next = &ops->op[i + 1];
	ops->first = &ops->op[0];
	ops->last = &ops->op[OPS_MAX - 1];
	return ops;
}

void ft_ops_close(struct ft_ops *ops)
{
	free(ops);
}

struct ft_op *ft_op_new(struct ft_fab *fab, enum ft_expect expect)
{
	struct ft_op *op = fab->ops->first;

	FT_CHECK(op && op->next, "this case has too many operations");
	fab->ops->first = op->next;
	memset(op, 0, sizeof(*op));
	op->expect = expect;
	op->posted = true;
	op->src = FI_ADDR_NOTAVAIL;
	return op;
}

void ft_op_put(struct ft_fab *fab, struct ft_op *op)
{
	op->posted = false;
	op->next = NULL;
	fab->ops->last->next = op;
	fab->ops->last = op;
}

/* ---- booking ---- */

static struct ft_op *op_of(struct ft_fab *fab, void *context)
{
	size_t off = (size_t)((char *)context - (char *)fab->ops->op);

	if (!context || off >= sizeof(fab->ops->op) || off % sizeof(struct ft_op))
		return NULL;
	return &fab->ops->op[off / sizeof(struct ft_op)];
}

static void book_stranger(struct ft_fab *fab, const struct arrival *a)
{
	struct ft_ops *ops = fab->ops;

	if (a->err) {
		ops->orphans++;
		ops->orphan_err = a->err;
		return;
	}
	FT_CHECK(a->entry.flags & FI_REMOTE_WRITE,
		 "a completion for context %p, which nobody gave; flags %#llx", a->entry.op_context,
		 (unsigned long long)a->entry.flags);
	ops->remotes++;
	ops->remote = a->entry;
}

static void book(struct ft_fab *fab, const struct arrival *a)
{
	struct ft_op *op = op_of(fab, a->entry.op_context);

	if (!op) {
		book_stranger(fab, a);
		return;
	}
	if (!op->posted && a->err && op->expect == FT_NONE) {
		fab->ops->orphans++; /* A silent operation that was returned */
		fab->ops->orphan_err = a->err;
		return;
	}
	FT_CHECK(op->posted, "a completion for an operation that is over: error %d, flags %#llx",
		 a->err, (unsigned long long)a->entry.flags);
	FT_CHECK(op->expect != FT_NONE || a->err,
		 "a completion that was not asked for, flags %#llx",
		 (unsigned long long)a->entry.flags);
	FT_CHECK(op->expect == FT_MANY || !op->seen,
		 "two completions for one operation: errors %d and %d, flags %#llx and %#llx",
		 op->err, a->err, (unsigned long long)op->flags,
		 (unsigned long long)a->entry.flags);
	op->seen++;
	op->err = a->err;
	op->flags = a->entry.flags;
	op->len = a->entry.len;
	op->buf = a->entry.buf;
	op->data = a->entry.data;
	op->tag = a->entry.tag;
	op->olen = a->olen;
	op->src = a->src;
	op->order = ++fab->ops->order;
	if (op->on)
		op->on(op, op->arg);
}

/* ---- taking ---- */

static ssize_t read_spin(struct ft_fab *fab, struct fid_cq *cq, struct arrival *a)
{
	if (fab->info->caps & FI_SOURCE)
		return fi_cq_readfrom(cq, &a->entry, 1, &a->src);
	return fi_cq_read(cq, &a->entry, 1);
}

static ssize_t read_sleep(struct ft_fab *fab, struct fid_cq *cq, struct arrival *a)
{
	if (fab->info->caps & FI_SOURCE)
		return fi_cq_sreadfrom(cq, &a->entry, 1, &a->src, NULL, SLEEP_MS);
	return fi_cq_sread(cq, &a->entry, 1, NULL, SLEEP_MS);
}

static ssize_t read_fd(struct ft_fab *fab, struct fid_cq *cq, struct arrival *a)
{
	struct fid *fids[] = { &cq->fid };
	struct pollfd wait = { .events = POLLIN };
	ssize_t ret = read_spin(fab, cq, a);

	if (ret != -FI_EAGAIN)
		return ret;
	FT_OK(fi_control(&cq->fid, FI_GETWAIT, &wait.fd));
	ret = fi_trywait(fab->fabric, fids, 1);
	FT_CHECK(!ret || ret == -FI_EAGAIN, "fi_trywait: %zd", ret);
	if (!ret)
		poll(&wait, 1, SLEEP_MS);
	return read_spin(fab, cq, a);
}

static void read_error(struct fid_cq *cq, struct arrival *a)
{
	struct fi_cq_err_entry bad = { 0 };

	FT_RET(fi_cq_readerr(cq, &bad, 0), 1);
	FT_CHECK(bad.err > 0, "an error completion with error %d", bad.err);
	a->entry.op_context = bad.op_context;
	a->entry.flags = bad.flags;
	a->entry.len = bad.len;
	a->entry.buf = bad.buf;
	a->entry.data = bad.data;
	a->entry.tag = bad.tag;
	a->olen = bad.olen;
	a->err = bad.err;
}

static int take(struct ft_fab *fab, struct fid_cq *cq)
{
	static ssize_t (*const readers[])(struct ft_fab *, struct fid_cq *, struct arrival *) = {
		[FT_WAIT_SPIN] = read_spin,
		[FT_WAIT_SREAD] = read_sleep,
		[FT_WAIT_FD] = read_fd,
	};
	enum ft_wait how = fab->want.wait ? FT_WAIT_SPIN : fab->ft->opts->wait;
	struct arrival a = { .src = FI_ADDR_NOTAVAIL };
	ssize_t ret = readers[how](fab, cq, &a);

	if (ret == -FI_EAGAIN || ret == -FI_EINTR)
		return 0;
	if (ret == -FI_EAVAIL)
		read_error(cq, &a);
	else
		FT_RET(ret, 1);
	book(fab, &a);
	return 1;
}

int ft_poll(struct ft_fab *fab)
{
	int cnt = take(fab, fab->tx_cq);

	return fab->rx_cq == fab->tx_cq ? cnt : cnt + take(fab, fab->rx_cq);
}

/* ---- waiting ---- */

double ft_deadline(const struct ft_fab *fab)
{
	return fab->ft->started + fab->ft->opts->limit * 0.8;
}

void ft_wait(struct ft_fab *fab, struct ft_op *op)
{
	double deadline = ft_deadline(fab);

	while (!op->seen) {
		ft_turn(fab->ft, ft_poll(fab));
		FT_CHECK(ft_now() < deadline, "an operation never completes");
	}
}

void ft_wait_good(struct ft_fab *fab, struct ft_op *op)
{
	ft_wait(fab, op);
	FT_CHECK(!op->err, "an operation ended with %d (%s)", op->err, ft_err_name(op->err));
	ft_op_put(fab, op);
}

void ft_wait_bad(struct ft_fab *fab, struct ft_op *op, int err)
{
	ft_wait(fab, op);
	FT_CHECK(op->err == err, "an operation ended with %d (%s), expected %d (%s)", op->err,
		 ft_err_name(op->err), err, ft_err_name(err));
	ft_op_put(fab, op);
}

void ft_quiet(struct ft_fab *fab, double seconds)
{
	double end = ft_now() + seconds;

	do {
		FT_CHECK(!ft_poll(fab), "a completion came that nothing accounts for");
		ft_turn(fab->ft, false);
	} while (ft_now() < end);
}

void ft_again(struct ft_fab *fab, double deadline)
{
	ft_turn(fab->ft, ft_poll(fab));
	FT_CHECK(ft_now() < deadline, "a call returns -FI_EAGAIN for ever");
}

/* ---- queries ---- */

unsigned ft_orphans(const struct ft_fab *fab, int *err)
{
	if (err)
		*err = fab->ops->orphan_err;
	return fab->ops->orphans;
}

unsigned ft_remotes(const struct ft_fab *fab, struct fi_cq_tagged_entry *last)
{
	if (last)
		*last = fab->ops->remote;
	return fab->ops->remotes;
}

unsigned ft_open_ops(const struct ft_fab *fab)
{
	unsigned cnt = 0;

	for (size_t i = 0; i < OPS_MAX; i++)
		cnt += fab->ops->op[i].posted && fab->ops->op[i].expect == FT_ONE &&
		       !fab->ops->op[i].seen;
	return cnt;
}
