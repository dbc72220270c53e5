/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Calls that are not offered return an error; no table entry is NULL. */
#include "ofi/base/cpr_nosys.h"

#include <criterion/criterion.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_trigger.h>

#include "unit/ofi/ofi_fixture.h"

/* Checks an op table: its size, then only pointers. */
static void expect_full(const char *what, const void *ops)
{
	const size_t *words = ops;
	size_t i, cnt = words[0] / sizeof(void *);

	cr_expect_gt(cnt, 1, "%s", what);
	for (i = 1; i < cnt; i++)
		cr_expect_neq(words[i], 0, "%s: member %zu", what, i);
}

Test(cpr_nosys, no_member_of_an_op_table_is_null)
{
	struct ofi_options opts = { .wait_obj = FI_WAIT_FD, .counters = true };
	struct ofi_pair p;

	expect_full("early msg", &cpr_early_msg_ops);
	expect_full("early tagged", &cpr_early_tagged_ops);
	ofi_pair_open(&p, &opts);
	expect_full("fabric fid", p.fabric->fid.ops);
	expect_full("fabric", p.fabric->ops);
	expect_full("domain fid", p.domain->fid.ops);
	expect_full("domain", p.domain->ops);
	expect_full("mr", p.domain->mr);
	expect_full("av fid", p.av->fid.ops);
	expect_full("av", p.av->ops);
	expect_full("cq fid", p.cq[0]->fid.ops);
	expect_full("cq", p.cq[0]->ops);
	expect_full("cntr fid", p.tx_cntr[0]->fid.ops);
	expect_full("cntr", p.tx_cntr[0]->ops);
	expect_full("ep fid", p.ep[0]->fid.ops);
	expect_full("ep", p.ep[0]->ops);
	expect_full("cm", p.ep[0]->cm);
	expect_full("msg", p.ep[0]->msg);
	expect_full("tagged", p.ep[0]->tagged);
	expect_full("rma", p.ep[0]->rma);
	expect_full("atomic", p.ep[0]->atomic);
	expect_full("collective", p.ep[0]->collective);
	ofi_pair_close(&p);
}

Test(cpr_nosys, calls_that_are_not_offered_are_refused)
{
	struct ofi_options opts = { 0 };
	struct fid_ep *ep;
	struct ofi_pair p;
	void *ops;
	char buf[8];

	ofi_pair_open(&p, &opts);
	cr_expect_eq(fi_scalable_ep(p.domain, p.info, &ep, NULL), -FI_ENOSYS);
	cr_expect_eq(fi_connect(p.ep[0], buf, NULL, 0), -FI_ENOSYS);
	cr_expect_eq(fi_open_ops(&p.domain->fid, "nothing", 0, &ops, NULL), -FI_ENOSYS);
	ofi_pair_close(&p);
}

Test(cpr_nosys, capabilities_limit_the_calls_of_an_endpoint)
{
	struct ofi_options opts = { .caps = FI_TAGGED | FI_SEND };
	struct ofi_pair p;
	char c = 0;

	ofi_pair_open(&p, &opts);
	cr_expect_eq(fi_send(p.ep[0], &c, 1, NULL, p.addr[1], NULL), -FI_ENOSYS);
	cr_expect_eq(fi_trecv(p.ep[0], &c, 1, NULL, FI_ADDR_UNSPEC, 0, 0, NULL), -FI_ENOSYS);
	cr_expect_eq(OFI_RETRY(&p, fi_tsend(p.ep[0], &c, 1, NULL, p.addr[1], 0, NULL)), 0);
	ofi_pair_close(&p);
}

Test(cpr_nosys, hints_that_cannot_be_met_return_no_data)
{
	static const uint64_t caps[] = { FI_MULTICAST, FI_RMA_PMEM,     FI_NAMED_RX_CTX,
					 FI_HMEM,      FI_VARIABLE_MSG, FI_SHARED_AV };
	struct fi_info *hints = ofi_hints(), *info;
	unsigned i;

	for (i = 0; i < sizeof(caps) / sizeof(caps[0]); i++) {
		hints->caps = FI_MSG | caps[i];
		cr_expect_eq(ofi_getinfo(hints, &info), -FI_ENODATA, "capability %u", i);
	}
	hints->caps = FI_MSG;
	hints->ep_attr->tx_ctx_cnt = 2; /* a scalable endpoint */
	cr_expect_eq(ofi_getinfo(hints, &info), -FI_ENODATA);
	hints->ep_attr->tx_ctx_cnt = 1;
	cr_assert_eq(ofi_getinfo(hints, &info), 0);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

Test(cpr_nosys, deferred_work_multicast_and_unrequested_collectives_are_refused)
{
	struct fi_deferred_work work = { .op_type = FI_OP_SEND };
	struct ofi_options opts = { .caps = FI_MSG };
	struct ofi_pair p;
	struct fid_mc *mc;

	ofi_pair_open(&p, &opts);
	cr_expect_eq(fi_control(&p.domain->fid, FI_QUEUE_WORK, &work), -FI_ENOSYS);
	cr_expect_eq(fi_control(&p.domain->fid, FI_CANCEL_WORK, &work), -FI_ENOSYS);
	cr_expect_eq(fi_control(&p.domain->fid, FI_FLUSH_WORK, NULL), -FI_ENOSYS);
	cr_expect_eq(fi_barrier(p.ep[0], p.addr[0], NULL), -FI_ENOSYS);
	cr_expect_eq(fi_join(p.ep[0], &p, 0, &mc, NULL), -FI_ENOSYS);
	cr_expect_eq(fi_join_collective(p.ep[0], p.addr[0], NULL, 0, &mc, NULL), -FI_ENOSYS);
	ofi_pair_close(&p);
}
