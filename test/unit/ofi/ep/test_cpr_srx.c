/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Shared contexts (fi_endpoint(3)): cpr_srx and cpr_stx. */
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <string.h>

#include "unit/ofi/ofi_fixture.h"

static struct ofi_pair p;
static struct fid_ep *srx;
static struct fid_stx *stx;

/* Opens the pair's domain; both endpoints have shared contexts, nothing is bound. */
static void open_unbound(void)
{
	struct ofi_options opts = { 0 };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_info *hints = ofi_hints(), *info;
	int i;

	ofi_domain_open(&p, &opts);
	hints->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
	hints->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	cr_assert_eq(ofi_getinfo(hints, &info), 0);
	cr_assert_eq(info->ep_attr->tx_ctx_cnt, FI_SHARED_CONTEXT);
	cr_assert_eq(info->ep_attr->rx_ctx_cnt, FI_SHARED_CONTEXT);
	cr_assert_gt(info->domain_attr->max_ep_srx_ctx, 1);
	cr_assert_gt(info->domain_attr->max_ep_stx_ctx, 1);
	cr_assert_eq(fi_av_open(p.domain, &av_attr, &p.av, NULL), 0);
	for (i = 0; i < 2; i++) {
		cr_assert_eq(fi_cq_open(p.domain, &cq_attr, &p.cq[i], NULL), 0);
		cr_assert_eq(fi_endpoint(p.domain, info, &p.ep[i], NULL), 0);
		cr_assert_eq(fi_ep_bind(p.ep[i], &p.av->fid, 0), 0);
		cr_assert_eq(fi_ep_bind(p.ep[i], &p.cq[i]->fid, FI_TRANSMIT | FI_RECV), 0);
	}
	cr_assert_eq(fi_stx_context(p.domain, info->tx_attr, &stx, NULL), 0);
	cr_assert_eq(fi_srx_context(p.domain, info->rx_attr, &srx, &p), 0);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

static void share(void)
{
	struct sockaddr_in sin;
	size_t len;
	int i;

	for (i = 0; i < 2; i++) {
		cr_assert_eq(fi_ep_bind(p.ep[i], &stx->fid, 0), 0);
		cr_assert_eq(fi_ep_bind(p.ep[i], &srx->fid, 0), 0);
		cr_assert_eq(fi_enable(p.ep[i]), 0);
		len = sizeof(sin);
		cr_assert_eq(fi_getname(&p.ep[i]->fid, &sin, &len), 0);
		cr_assert_eq(fi_av_insert(p.av, &sin, 1, &p.addr[i], 0, NULL), 1);
	}
}

static void open_shared(void)
{
	open_unbound();
	share();
}

static void close_ep(int i)
{
	if (p.ep[i])
		cr_expect_eq(fi_close(&p.ep[i]->fid), 0);
	p.ep[i] = NULL;
}

static void close_shared(void)
{
	cr_expect_eq(fi_close(&srx->fid), -FI_EBUSY);
	cr_expect_eq(fi_close(&stx->fid), -FI_EBUSY);
	close_ep(0);
	close_ep(1);
	cr_expect_eq(fi_close(&srx->fid), 0);
	cr_expect_eq(fi_close(&stx->fid), 0);
	ofi_pair_close(&p);
}

Test(cpr_srx, receives_serve_whichever_endpoint_a_message_comes_to)
{
	struct fi_cq_tagged_entry e;
	char in[4][8] = { "" };
	int i;

	open_shared();
	cr_expect_eq(srx->fid.context, &p);
	for (i = 0; i < 2; i++) {
		cr_assert_eq(fi_trecv(srx, in[i], 8, NULL, FI_ADDR_UNSPEC, 7, 0, in[i]), 0);
		cr_assert_eq(fi_recv(srx, in[2 + i], 8, NULL, FI_ADDR_UNSPEC, in[2 + i]), 0);
	}
	/* From 0 to 1, and to itself. */
	for (i = 0; i < 2; i++) {
		cr_assert_eq(OFI_RETRY(&p, fi_tinject(p.ep[0], "abc", 4, p.addr[1 - i], 7)), 0);
		cr_assert_eq(ofi_read(p.cq[1 - i], &e), 1);
		cr_expect_eq(e.op_context, in[i], "the oldest, in the queue of its endpoint");
		cr_expect_str_eq(in[i], "abc");
		cr_assert_eq(OFI_RETRY(&p, fi_inject(p.ep[1], "def", 4, p.addr[1 - i])), 0);
		cr_assert_eq(ofi_read(p.cq[1 - i], &e), 1);
		cr_expect_eq(e.op_context, in[2 + i]);
		cr_expect_str_eq(in[2 + i], "def");
	}
	close_shared();
}

Test(cpr_srx, endpoints_that_share_receives_have_none_of_their_own)
{
	char in[8];

	open_shared();
	cr_expect_eq(fi_recv(p.ep[0], in, 8, NULL, FI_ADDR_UNSPEC, NULL), -FI_ENOSYS);
	cr_expect_eq(fi_trecv(p.ep[0], in, 8, NULL, FI_ADDR_UNSPEC, 0, 0, NULL), -FI_ENOSYS);
	cr_expect_eq(fi_send(srx, in, 8, NULL, p.addr[0], NULL), -FI_ENOSYS);
	cr_expect_eq(fi_tinject(srx, in, 8, p.addr[0], 0), -FI_ENOSYS);
	close_shared();
}

Test(cpr_srx, a_requested_context_must_be_bound)
{
	open_unbound();
	cr_expect_eq(fi_enable(p.ep[0]), -FI_EOPBADSTATE);
	cr_expect_eq(fi_ep_bind(p.ep[0], &srx->fid, 0), 0);
	cr_expect_eq(fi_ep_bind(p.ep[0], &srx->fid, 0), -FI_EINVAL, "one is enough");
	cr_expect_eq(fi_enable(p.ep[0]), -FI_EOPBADSTATE);
	cr_expect_eq(fi_ep_bind(p.ep[0], &stx->fid, FI_SEND), -FI_EBADFLAGS);
	cr_expect_eq(fi_ep_bind(p.ep[0], &stx->fid, 0), 0);
	cr_expect_eq(fi_enable(p.ep[0]), 0);
	cr_expect_eq(fi_ep_bind(p.ep[1], &stx->fid, 0), 0);
	cr_expect_eq(fi_ep_bind(p.ep[1], &srx->fid, 0), 0);
	close_shared();
}

/* Expects that an endpoint with an address vector of its own cannot use the context. */
static void expect_no_other_av(void)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE };
	struct fid_av *av;
	struct fid_ep *ep;

	cr_assert_eq(fi_av_open(p.domain, &attr, &av, NULL), 0);
	cr_assert_eq(fi_endpoint(p.domain, p.info, &ep, NULL), 0);
	cr_assert_eq(fi_ep_bind(ep, &av->fid, 0), 0);
	cr_assert_eq(fi_ep_bind(ep, &p.cq[0]->fid, FI_TRANSMIT | FI_RECV), 0);
	cr_assert_eq(fi_ep_bind(ep, &srx->fid, 0), 0);
	cr_expect_eq(fi_enable(ep), -FI_EINVAL);
	cr_expect_eq(fi_close(&ep->fid), 0);
	cr_expect_eq(fi_close(&av->fid), 0);
}

Test(cpr_srx, users_share_the_address_vector)
{
	open_shared();
	expect_no_other_av();
	close_shared();
}

/* A context with a queue of its own takes that of no endpoint. */
Test(cpr_srx, the_address_vector_is_shared_as_long_as_one_user_is_left)
{
	open_unbound();
	cr_assert_eq(fi_ep_bind(srx, &p.cq[1]->fid, FI_RECV), 0);
	share();
	close_ep(1);
	expect_no_other_av();
	close_shared();
}

Test(cpr_srx, receives_can_be_cancelled_and_have_options)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry e;
	size_t min = 100, len = sizeof(min);
	char in[8];

	open_shared();
	cr_expect_eq(fi_setopt(&srx->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, len), 0);
	min = 0;
	cr_expect_eq(fi_getopt(&srx->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, &len), 0);
	cr_expect_eq(min, 100);
	cr_expect_eq(fi_enable(srx), 0);
	cr_assert_eq(fi_recv(srx, in, 8, NULL, FI_ADDR_UNSPEC, in), 0);
	cr_expect_eq(fi_cancel(&srx->fid, in), 0);
	cr_expect_eq(ofi_read(p.cq[0], &e), -FI_EAVAIL, "the first that was enabled");
	cr_expect_eq(fi_cq_readerr(p.cq[0], &err, 0), 1);
	cr_expect_eq(err.err, FI_ECANCELED);
	cr_expect_eq(fi_cancel(&stx->fid, in), -FI_ENOENT);
	close_shared();
}

Test(cpr_srx, attributes_beyond_the_offer_are_refused)
{
	struct fi_rx_attr rx = { .caps = FI_MULTICAST };
	struct fi_tx_attr tx = { .inject_size = SIZE_MAX };
	struct ofi_options opts = { 0 };

	ofi_domain_open(&p, &opts);
	cr_expect_eq(fi_srx_context(p.domain, &rx, &srx, NULL), -FI_EINVAL);
	cr_expect_eq(fi_stx_context(p.domain, &tx, &stx, NULL), -FI_EINVAL);
	ofi_pair_close(&p);
}
