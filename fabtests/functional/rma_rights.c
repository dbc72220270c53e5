/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Accesses that are not permitted: see rma_rights.h. */
#include "functional/rma_rights.h"

#include "common/ft_data.h"
#include "functional/rma_post.h"

static void must_fail(struct ft_fab *fab, enum rma how, uint64_t addr, uint64_t key, size_t len)
{
	uint8_t *buf = ft_buf_new(len);
	struct rma_op o = { .how = how,
			    .buf = buf,
			    .len = len,
			    .rank = 1,
			    .addr = addr,
			    .key = key,
			    .op = ft_op_new(fab, FT_ONE) };

	FT_POST(fab, rma_post(fab, &o));
	ft_wait(fab, o.op);
	FT_CHECK(o.op->err, "%s of %zu bytes, which is forbidden, ended well", rma_names[how], len);
	ft_buf_check(buf, len, 0); /* a failed read has written nothing */
	ft_op_put(fab, o.op);
	ft_buf_free(buf);
}

void rma_run_forbidden(struct ft *ft)
{
	struct ft_region both, to_read, to_write;
	struct ft_fab fab;

	rma_begin(&fab, ft, (struct ft_want){ 0 });
	ft_region_open(&fab, &both, 10000, RMA_ALL, 77);
	ft_region_open(&fab, &to_read, 10000, FI_REMOTE_READ, 78);
	ft_region_open(&fab, &to_write, 10000, FI_REMOTE_WRITE, 79);
	ft_region_swap(&fab, &both, !ft->rank);
	ft_region_swap(&fab, &to_read, !ft->rank);
	ft_region_swap(&fab, &to_write, !ft->rank);
	for (int i = 0; ft->rank == 0 && i < 2; i++) {
		enum rma how = i ? READ : WRITE;

		must_fail(&fab, how, both.there.base + 9999, both.there.key, 2);
		must_fail(&fab, how, both.there.base + 10001, both.there.key, 1);
		must_fail(&fab, how, both.there.base, both.there.key, 10001);
		must_fail(&fab, how, both.there.base - 1, both.there.key, 1);
		must_fail(&fab, how, both.there.base + UINT64_MAX - 5, both.there.key, 100);
		must_fail(&fab, how, both.there.base, both.there.key ^ 0x5A5A5A, 8);
		must_fail(&fab, how, i ? to_write.there.base : to_read.there.base,
			  i ? to_write.there.key : to_read.there.key, 8);
	}
	ft_sync(ft);
	ft_buf_check(both.buf, 10000, 0);
	ft_buf_check(to_read.buf, 10000, 0);
	if (ft->rank == 0) { /* the connection still works */
		struct rma_op o = { .how = READ,
				    .buf = both.buf,
				    .len = 100,
				    .rank = 1,
				    .addr = both.there.base,
				    .key = both.there.key,
				    .op = ft_op_new(&fab, FT_ONE) };

		FT_POST(&fab, rma_post(&fab, &o));
		ft_wait_good(&fab, o.op);
	}
	ft_sync(ft);
	ft_region_close(&to_read);
	ft_region_close(&to_write);
	rma_end(&fab, &both);
}

void rma_run_closed(struct ft *ft)
{
	struct ft_region first, second;
	struct ft_fab fab;

	rma_begin(&fab, ft, (struct ft_want){ 0 });
	ft_region_open(&fab, &first, 10000, RMA_ALL, 77);
	ft_region_open(&fab, &second, 10000, RMA_ALL, 78);
	ft_region_swap(&fab, &first, !ft->rank);
	ft_region_swap(&fab, &second, !ft->rank);
	ft_region_close(&first);
	ft_sync(ft);
	if (ft->rank == 0) {
		must_fail(&fab, WRITE, first.there.base, first.there.key, 8);
		must_fail(&fab, READ, first.there.base, first.there.key, 8);
		must_fail(&fab, READ, first.there.base, first.there.key, 9000);
	}
	ft_sync(ft);
	rma_end(&fab, &second);
}
