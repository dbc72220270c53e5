/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Calls that are not offered, or not yet, return an error. */
#include "ofi/base/cpr_refuse.h"

#include <criterion/criterion.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_trigger.h>

#include "unit/ofi/ofi_fixture.h"
#include "util/fi_old.h"

/* Checks an op table: its size, then only pointers. */
static void expect_full(const char *what, const void *ops)
{
	const size_t *words = ops;
	size_t i, cnt = words[0] / sizeof(void *);

	cr_expect_gt(cnt, 1, "%s", what);
	for (i = 1; i < cnt; i++)
		cr_expect_neq(words[i], 0, "%s: member %zu", what, i);
}

Test(cpr_refuse, no_member_of_these_tables_is_null)
{
	struct ofi_options opts = { .wait_obj = FI_WAIT_FD, .counters = true };
	struct ofi_pair p;

	expect_full("refused msg", &cpr_refuse_msg_ops);
	expect_full("refused tagged", &cpr_refuse_tagged_ops);
	ofi_pair_open(&p, &opts);
	expect_full("fabric", p.fabric->ops);
	expect_full("domain", p.domain->ops);
	expect_full("mr", p.domain->mr);
	expect_full("av", p.av->ops);
	expect_full("cq", p.cq[0]->ops);
	expect_full("cntr", p.tx_cntr[0]->ops);
	expect_full("ep", p.ep[0]->ops);
	expect_full("msg", p.ep[0]->msg);
	expect_full("tagged", p.ep[0]->tagged);
	expect_full("rma", p.ep[0]->rma);
	expect_full("atomic", p.ep[0]->atomic);
	expect_full("collective", p.ep[0]->collective);
	ofi_pair_close(&p);
}

/* Every function that refuses, called once. */
static void expect_refused(struct fid_ep *ep, int err)
{
	struct fi_msg_tagged tmsg = { 0 };
	struct fi_msg_atomic amsg = { .datatype = FI_UINT64, .op = FI_SUM };
	struct fi_msg_rma rmsg = { 0 };
	struct fi_msg msg = { 0 };
	struct iovec iov = { 0 };
	uint64_t word = 0;
	size_t cnt;

	cr_expect_eq(fi_recv(ep, &word, 8, NULL, 0, NULL), err);
	cr_expect_eq(fi_recvv(ep, &iov, NULL, 1, 0, NULL), err);
	cr_expect_eq(fi_recvmsg(ep, &msg, 0), err);
	cr_expect_eq(fi_send(ep, &word, 8, NULL, 0, NULL), err);
	cr_expect_eq(fi_sendv(ep, &iov, NULL, 1, 0, NULL), err);
	cr_expect_eq(fi_sendmsg(ep, &msg, 0), err);
	cr_expect_eq(fi_inject(ep, &word, 8, 0), err);
	cr_expect_eq(fi_senddata(ep, &word, 8, NULL, 0, 0, NULL), err);
	cr_expect_eq(fi_injectdata(ep, &word, 8, 0, 0), err);
	cr_expect_eq(fi_trecv(ep, &word, 8, NULL, 0, 0, 0, NULL), err);
	cr_expect_eq(fi_trecvv(ep, &iov, NULL, 1, 0, 0, 0, NULL), err);
	cr_expect_eq(fi_trecvmsg(ep, &tmsg, 0), err);
	cr_expect_eq(fi_tsend(ep, &word, 8, NULL, 0, 0, NULL), err);
	cr_expect_eq(fi_tsendv(ep, &iov, NULL, 1, 0, 0, NULL), err);
	cr_expect_eq(fi_tsendmsg(ep, &tmsg, 0), err);
	cr_expect_eq(fi_tinject(ep, &word, 8, 0, 0), err);
	cr_expect_eq(fi_tsenddata(ep, &word, 8, NULL, 0, 0, 0, NULL), err);
	cr_expect_eq(fi_tinjectdata(ep, &word, 8, 0, 0, 0), err);
	cr_expect_eq(fi_read(ep, &word, 8, NULL, 0, 0, 0, NULL), err);
	cr_expect_eq(fi_readmsg(ep, &rmsg, 0), err);
	cr_expect_eq(fi_write(ep, &word, 8, NULL, 0, 0, 0, NULL), err);
	cr_expect_eq(fi_inject_write(ep, NULL, 0, 0, 0, 0), err);
	cr_expect_eq(fi_atomic(ep, &word, 1, NULL, 0, 0, 0, FI_UINT64, FI_SUM, NULL), err);
	cr_expect_eq(fi_atomicmsg(ep, &amsg, 0), err);
	cr_expect_eq(fi_fetch_atomicmsg(ep, &amsg, NULL, NULL, 0, 0), err);
	cr_expect_eq(fi_compare_atomicvalid(ep, FI_UINT64, FI_CSWAP, &cnt), err);
}

Test(cpr_refuse, transfers_before_fi_enable_are_in_a_bad_state)
{
	struct ofi_pair p;

	ofi_open_unbound(&p);
	expect_refused(p.ep[0], -FI_EOPBADSTATE);
	cr_expect_eq(fi_barrier(p.ep[0], 0, NULL), -FI_EOPBADSTATE);
	ofi_pair_close(&p);
}

Test(cpr_refuse, transfers_without_capability_are_not_offered)
{
	struct ofi_options opts = { .caps = FI_COLLECTIVE };
	struct ofi_pair p;

	ofi_pair_open(&p, &opts);
	expect_refused(p.ep[0], -FI_ENOSYS);
	ofi_pair_close(&p);
}

Test(cpr_refuse, calls_that_are_not_offered_are_refused)
{
	struct ofi_options opts = { 0 };
	struct fid_ep *ep;
	struct ofi_pair p;
	void *ops;
	char buf[8];
	size_t len = sizeof(buf);

	ofi_pair_open(&p, &opts);
	cr_expect_eq(fi_scalable_ep(p.domain, p.info, &ep, NULL), -FI_ENOSYS);
	cr_expect_eq(fi_connect(p.ep[0], buf, NULL, 0), -FI_ENOSYS);
	cr_expect_eq(fi_accept(p.ep[0], NULL, 0), -FI_ENOSYS);
	cr_expect_eq(fi_shutdown(p.ep[0], 0), -FI_ENOSYS);
	cr_expect_eq(fi_getpeer(p.ep[0], buf, &len), -FI_ENOSYS);
	cr_expect_eq(fi_tx_context(p.ep[0], 0, NULL, &ep, NULL), -FI_ENOSYS);
	cr_expect_eq(fi_set_ops(&p.domain->fid, "nothing", 0, NULL, NULL), -FI_ENOSYS);
	cr_expect_eq(fi_open_ops(&p.domain->fid, "nothing", 0, &ops, NULL), -FI_ENOSYS);
	ofi_pair_close(&p);
}

Test(cpr_refuse, capabilities_limit_the_calls_of_an_endpoint)
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

Test(cpr_refuse, hints_that_cannot_be_met_return_no_data)
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

Test(cpr_refuse, deferred_work_multicast_and_unrequested_collectives_are_refused)
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
