/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Domains, endpoints and address vectors of datagrams, through libfabric's tables. */
#include "ofi/dgram/cpr_dgram.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <rdma/fi_ext_copyrpc.h>
#include <string.h>

#include "ofi/base/cpr_offer.h"
#include "unit/ofi/ofi_fixture.h"
#include "util/param.h"

static struct ofi_pair p;
static char buf[64];

static void setup(void)
{
	ofi_provider();
	util_params.paths = "shm,udp";
	ofi_pair_open(&p, &(struct ofi_options){ .ep_type = FI_EP_DGRAM, .counters = true });
}

static void teardown(void)
{
	ofi_pair_close(&p);
}

TestSuite(cpr_dgram, .init = setup, .fini = teardown);

Test(cpr_dgram, the_name_of_a_domain_selects_its_device)
{
	cr_expect_eq(cpr_dgram_over("copyrpc-dgram-udp"), &dgram_over_udp);
	cr_expect_eq(cpr_dgram_over("copyrpc-dgram-mlx5"), &dgram_over_mlx5);
	cr_expect_eq(cpr_dgram_over("copyrpc-dgram-verbs"), &dgram_over_verbs);
	cr_expect_null(cpr_dgram_over("copyrpc-dgram-"));
	cr_expect_null(cpr_dgram_over("copyrpc-dgram"));
	cr_expect_null(cpr_dgram_over(CPR_RC_NAME));
	cr_expect_null(cpr_dgram_over(NULL));
}

Test(cpr_dgram, only_datagram_endpoints_open_in_its_domain)
{
	struct fi_info *info = fi_dupinfo(p.info);
	struct fid_ep *ep;

	info->ep_attr->type = FI_EP_RDM;
	cr_expect_eq(fi_endpoint(p.domain, info, &ep, NULL), -FI_EINVAL);
	info->ep_attr->type = FI_EP_DGRAM;
	info->caps |= FI_TAGGED;
	cr_expect_eq(fi_endpoint(p.domain, info, &ep, NULL), -FI_EINVAL);
	info->caps &= ~FI_TAGGED;
	info->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
	cr_expect_eq(fi_endpoint(p.domain, info, &ep, NULL), -FI_EINVAL);
	fi_freeinfo(info);
}

Test(cpr_dgram, no_flag_makes_a_datagram_reliable)
{
	const uint64_t levels[] = { FI_DELIVERY_COMPLETE, FI_MATCH_COMPLETE, FI_TRANSMIT_COMPLETE };
	struct fid_ep *alias = NULL;
	uint64_t flags;

	for (int i = 0; i < 3; i++) {
		int ret = i < 2 ? -FI_EBADFLAGS : 0;

		flags = FI_TRANSMIT | levels[i];
		cr_expect_eq(fi_control(&p.ep[0]->fid, FI_SETOPSFLAG, &flags), ret, "level %d", i);
		cr_expect_eq(fi_ep_alias(p.ep[0], &alias, flags), ret, "level %d", i);
	}
	cr_expect_eq(fi_close(&alias->fid), 0);
}

Test(cpr_dgram, shared_contexts_are_refused)
{
	struct fid_ep *srx;
	struct fid_stx *stx;

	cr_expect_eq(p.info->domain_attr->max_ep_srx_ctx, 0);
	cr_expect_eq(fi_srx_context(p.domain, NULL, &srx, NULL), -FI_ENOSYS);
	cr_expect_eq(p.info->domain_attr->max_ep_stx_ctx, 0);
	cr_expect_eq(fi_stx_context(p.domain, NULL, &stx, NULL), -FI_ENOSYS);
}

Test(cpr_dgram, a_name_is_a_udp_address)
{
	struct sockaddr_in a = { 0 }, b = { 0 };
	size_t len = sizeof(a);

	cr_assert_eq(fi_getname(&p.ep[0]->fid, &a, &len), 0);
	cr_expect_eq(len, sizeof(a));
	cr_expect_eq(a.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	cr_expect_neq(a.sin_port, 0);
	len = 3;
	cr_expect_eq(fi_getname(&p.ep[1]->fid, &b, &len), -FI_ETOOSMALL);
	cr_expect_eq(len, sizeof(b));
}

Test(cpr_dgram, a_chosen_port_is_in_use_afterwards)
{
	struct fi_info *info = fi_dupinfo(p.info);
	struct sockaddr_in *src = info->src_addr, name;
	size_t len = sizeof(name);
	struct fid_ep *ep;

	cr_assert_eq(fi_getname(&p.ep[0]->fid, &name, &len), 0);
	src->sin_port = name.sin_port;
	cr_assert_eq(fi_endpoint(p.domain, info, &ep, NULL), 0);
	cr_assert_eq(fi_ep_bind(ep, &p.av->fid, 0), 0);
	cr_assert_eq(fi_ep_bind(ep, &p.cq[0]->fid, FI_TRANSMIT | FI_RECV), 0);
	cr_assert_eq(fi_enable(ep), -FI_EADDRINUSE);
	cr_assert_eq(fi_close(&p.ep[0]->fid), 0);
	p.ep[0] = NULL;
	cr_assert_eq(fi_enable(ep), 0);
	cr_assert_eq(fi_getname(&ep->fid, &name, &len), 0);
	cr_expect_eq(name.sin_port, src->sin_port);
	cr_assert_eq(fi_close(&ep->fid), 0);
	fi_freeinfo(info);
}

Test(cpr_dgram, an_address_comes_back_and_can_be_read)
{
	struct sockaddr_in name, back;
	size_t len = sizeof(name);
	char text[96];

	cr_assert_eq(fi_getname(&p.ep[1]->fid, &name, &len), 0);
	cr_assert_eq(fi_av_lookup(p.av, p.addr[1], &back, &len), 0);
	cr_expect_eq(back.sin_port, name.sin_port);
	cr_expect_eq(back.sin_addr.s_addr, name.sin_addr.s_addr);
	len = sizeof(text);
	fi_av_straddr(p.av, &back, text, &len);
	cr_expect_eq(strncmp(text, "fi_sockaddr_in://127.0.0.1:", 27), 0, "%s", text);
	back.sin_port = 0;
	cr_expect_eq(fi_av_insert(p.av, &back, 1, NULL, 0, NULL), 0, "port 0 is no peer");
}

Test(cpr_dgram, a_removed_address_is_unknown)
{
	cr_assert_eq(fi_av_remove(p.av, &p.addr[1], 1, 0), 0);
	cr_expect_eq(fi_send(p.ep[0], buf, 1, NULL, p.addr[1], NULL), -FI_EINVAL);
	cr_expect_eq(fi_av_remove(p.av, &p.addr[1], 1, 0), -FI_EINVAL);
}

Test(cpr_dgram, a_cancelled_receive_has_one_completion)
{
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err = { 0 };

	cr_assert_eq(fi_recv(p.ep[0], buf, 8, NULL, FI_ADDR_UNSPEC, buf), 0);
	cr_assert_eq(fi_cancel(&p.ep[0]->fid, buf), 0);
	cr_assert_eq(fi_cq_read(p.cq[0], &e, 1), -FI_EAVAIL);
	cr_assert_eq(fi_cq_readerr(p.cq[0], &err, 0), 1);
	cr_expect_eq(err.err, FI_ECANCELED);
	cr_expect_eq(err.op_context, buf);
	cr_expect_eq(fi_cancel(&p.ep[0]->fid, buf), -FI_ENOENT);
	cr_expect_eq(fi_cntr_readerr(p.rx_cntr[0]), 1);
}

Test(cpr_dgram, datagram_endpoints_have_no_rpc_calls)
{
	struct fi_copyrpc_ops *ops;

	cr_expect_eq(fi_copyrpc_open(&p.ep[0]->fid, &ops), -FI_ENOSYS);
}

Test(cpr_dgram, an_endpoint_closes_with_receives_and_datagrams_pending)
{
	cr_assert_eq(fi_recv(p.ep[0], buf, 8, NULL, FI_ADDR_UNSPEC, buf), 0);
	cr_assert_eq(fi_send(p.ep[0], buf, 8, NULL, p.addr[1], NULL), 0);
	cr_assert_eq(fi_send(p.ep[0], buf, 8, NULL, p.addr[1], NULL), 0);
}
