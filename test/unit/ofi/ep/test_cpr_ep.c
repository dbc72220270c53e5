/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* An endpoint's life (fi_endpoint(3), fi_cm(3)). */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "ofi/base/cpr_offer.h"
#include "unit/ofi/ofi_fixture.h"

static struct ofi_pair p;

/* Domain, AV, one queue and one endpoint, nothing bound. */
static void open_unbound(void)
{
	struct ofi_options opts = { 0 };
	struct fi_av_attr av_attr = { 0 };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };

	ofi_domain_open(&p, &opts);
	cr_assert_eq(fi_av_open(p.domain, &av_attr, &p.av, NULL), 0);
	cr_assert_eq(fi_cq_open(p.domain, &cq_attr, &p.cq[0], NULL), 0);
	cr_assert_eq(fi_endpoint(p.domain, p.info, &p.ep[0], &p), 0);
}

static void bind_all(void)
{
	cr_assert_eq(fi_ep_bind(p.ep[0], &p.av->fid, 0), 0);
	cr_assert_eq(fi_ep_bind(p.ep[0], &p.cq[0]->fid, FI_TRANSMIT | FI_RECV), 0);
}

Test(cpr_ep, enabling_needs_an_av_and_queues)
{
	open_unbound();
	cr_expect_eq(p.ep[0]->fid.context, &p);
	cr_expect_eq(fi_enable(p.ep[0]), -FI_ENOAV);
	cr_expect_eq(fi_ep_bind(p.ep[0], &p.av->fid, 0), 0);
	cr_expect_eq(fi_enable(p.ep[0]), -FI_ENOCQ);
	cr_expect_eq(fi_ep_bind(p.ep[0], &p.cq[0]->fid, FI_TRANSMIT), 0);
	cr_expect_eq(fi_enable(p.ep[0]), -FI_ENOCQ);
	cr_expect_eq(fi_ep_bind(p.ep[0], &p.cq[0]->fid, FI_RECV), 0);
	cr_expect_eq(fi_enable(p.ep[0]), 0);
	cr_expect_eq(fi_enable(p.ep[0]), -FI_EOPBADSTATE);
	ofi_pair_close(&p);
}

Test(cpr_ep, wrong_bindings_are_refused)
{
	open_unbound();
	cr_expect_eq(fi_ep_bind(p.ep[0], &p.cq[0]->fid, 0), -FI_EINVAL);
	cr_expect_eq(fi_ep_bind(p.ep[0], &p.cq[0]->fid, FI_TRANSMIT | FI_PEEK), -FI_EBADFLAGS);
	cr_expect_eq(fi_ep_bind(p.ep[0], &p.fabric->fid, 0), -FI_ENOSYS);
	bind_all();
	cr_expect_eq(fi_ep_bind(p.ep[0], &p.cq[0]->fid, FI_RECV), -FI_EINVAL, "one per direction");
	cr_expect_eq(fi_ep_bind(p.ep[0], &p.av->fid, 0), -FI_EINVAL);
	cr_expect_eq(fi_enable(p.ep[0]), 0);
	cr_expect_eq(fi_ep_bind(p.ep[0], &p.av->fid, 0), -FI_EOPBADSTATE);
	ofi_pair_close(&p);
}

Test(cpr_ep, transfers_wait_for_fi_enable)
{
	char c = 0;

	open_unbound();
	bind_all();
	cr_expect_eq(fi_send(p.ep[0], &c, 1, NULL, 0, NULL), -FI_EOPBADSTATE);
	cr_expect_eq(fi_trecv(p.ep[0], &c, 1, NULL, 0, 0, 0, NULL), -FI_EOPBADSTATE);
	cr_expect_eq(fi_cancel(&p.ep[0]->fid, NULL), -FI_EOPBADSTATE);
	cr_assert_eq(fi_enable(p.ep[0]), 0);
	cr_expect_eq(fi_trecv(p.ep[0], &c, 1, NULL, FI_ADDR_UNSPEC, 0, 0, NULL), 0);
	ofi_pair_close(&p);
}

Test(cpr_ep, getname_is_concrete_after_fi_enable)
{
	struct sockaddr_in sin;
	size_t len = 4;

	open_unbound();
	bind_all();
	cr_assert_eq(fi_enable(p.ep[0]), 0);
	cr_expect_eq(fi_getname(&p.ep[0]->fid, &sin, &len), -FI_ETOOSMALL);
	cr_expect_eq(len, sizeof(sin));
	cr_expect_eq(fi_getname(&p.ep[0]->fid, &sin, &len), 0);
	cr_expect_eq(sin.sin_family, AF_INET);
	cr_expect_eq(sin.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	cr_expect_neq(sin.sin_port, 0);
	len = 0;
	cr_expect_eq(fi_getname(&p.ep[0]->fid, NULL, &len), -FI_ETOOSMALL);
	ofi_pair_close(&p);
}

Test(cpr_ep, setname_counts_until_fi_enable)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	struct sockaddr_in got;
	size_t len = sizeof(got);

	inet_pton(AF_INET, "127.0.0.5", &sin.sin_addr);
	open_unbound();
	bind_all();
	cr_expect_eq(fi_setname(&p.ep[0]->fid, &sin, 4), -FI_EINVAL);
	cr_expect_eq(fi_setname(&p.ep[0]->fid, &sin, sizeof(sin)), 0);
	cr_assert_eq(fi_enable(p.ep[0]), 0);
	cr_expect_eq(fi_getname(&p.ep[0]->fid, &got, &len), 0);
	cr_expect_eq(got.sin_addr.s_addr, sin.sin_addr.s_addr);
	cr_expect_eq(fi_setname(&p.ep[0]->fid, &sin, sizeof(sin)), -FI_EOPBADSTATE);
	ofi_pair_close(&p);
}

Test(cpr_ep, an_address_belongs_to_one_endpoint)
{
	struct ofi_options opts = { 0 };
	struct sockaddr_in sin;
	size_t len = sizeof(sin);
	struct fid_ep *second;

	ofi_pair_open(&p, &opts);
	cr_assert_eq(fi_getname(&p.ep[0]->fid, &sin, &len), 0);
	cr_assert_eq(fi_endpoint(p.domain, p.info, &second, NULL), 0);
	cr_assert_eq(fi_setname(&second->fid, &sin, len), 0);
	cr_assert_eq(fi_ep_bind(second, &p.av->fid, 0), 0);
	cr_assert_eq(fi_ep_bind(second, &p.cq[0]->fid, FI_TRANSMIT | FI_RECV), 0);
	cr_expect_eq(fi_enable(second), -FI_EADDRINUSE);
	cr_expect_eq(fi_close(&second->fid), 0);
	ofi_pair_close(&p);
}

Test(cpr_ep, default_flags_are_read_and_changed_by_direction)
{
	struct ofi_options opts = { .tx_op_flags = FI_COMPLETION };
	uint64_t flags = FI_TRANSMIT;

	ofi_pair_open(&p, &opts);
	cr_expect_eq(fi_control(&p.ep[0]->fid, FI_GETOPSFLAG, &flags), 0);
	cr_expect_eq(flags, FI_COMPLETION);
	flags = FI_TRANSMIT | FI_DELIVERY_COMPLETE;
	cr_expect_eq(fi_control(&p.ep[0]->fid, FI_SETOPSFLAG, &flags), 0);
	flags = FI_TRANSMIT;
	cr_expect_eq(fi_control(&p.ep[0]->fid, FI_GETOPSFLAG, &flags), 0);
	cr_expect_eq(flags, FI_DELIVERY_COMPLETE);
	flags = FI_RECV;
	cr_expect_eq(fi_control(&p.ep[0]->fid, FI_GETOPSFLAG, &flags), 0);
	cr_expect_eq(flags, 0);
	flags = FI_TRANSMIT | FI_RECV;
	cr_expect_eq(fi_control(&p.ep[0]->fid, FI_GETOPSFLAG, &flags), -FI_EINVAL);
	flags = FI_RECV | FI_INJECT;
	cr_expect_eq(fi_control(&p.ep[0]->fid, FI_SETOPSFLAG, &flags), -FI_EBADFLAGS);
	ofi_pair_close(&p);
}

Test(cpr_ep, an_alias_differs_in_its_default_flags_only)
{
	struct ofi_options opts = { .bind_flags = FI_SELECTIVE_COMPLETION };
	struct fi_cq_tagged_entry e;
	struct fid_ep *alias = NULL;
	char c = 0;

	ofi_pair_open(&p, &opts);
	cr_assert_eq(fi_ep_alias(p.ep[0], &alias, FI_TRANSMIT | FI_COMPLETION), 0);
	cr_expect_eq(OFI_RETRY(&p, fi_tsend(p.ep[0], &c, 1, NULL, p.addr[0], 1, &p)), 0);
	cr_expect_eq(fi_cq_read(p.cq[0], &e, 1), -FI_EAGAIN);
	cr_expect_eq(OFI_RETRY(&p, fi_tsend(alias, &c, 1, NULL, p.addr[0], 1, &c)), 0);
	cr_expect_eq(ofi_read(p.cq[0], &e), 1);
	cr_expect_eq(e.op_context, &c);
	cr_expect_eq(fi_close(&p.ep[0]->fid), -FI_EBUSY);
	cr_expect_eq(fi_close(&alias->fid), 0);
	ofi_pair_close(&p);
}

Test(cpr_ep, what_belongs_to_another_domain_is_refused)
{
	struct fi_cq_attr cq_attr = { 0 };
	struct fi_cntr_attr cntr_attr = { 0 };
	struct fi_av_attr av_attr = { 0 };
	struct fid_domain *domain;
	struct fid_cntr *cntr;
	struct fid_cq *cq;
	struct fid_av *av;

	open_unbound();
	cr_assert_eq(fi_domain(p.fabric, p.info, &domain, NULL), 0);
	cr_assert_eq(fi_cq_open(domain, &cq_attr, &cq, NULL), 0);
	cr_assert_eq(fi_cntr_open(domain, &cntr_attr, &cntr, NULL), 0);
	cr_assert_eq(fi_av_open(domain, &av_attr, &av, NULL), 0);
	cr_expect_eq(fi_ep_bind(p.ep[0], &cq->fid, FI_TRANSMIT | FI_RECV), -FI_EDOMAIN);
	cr_expect_eq(fi_ep_bind(p.ep[0], &cntr->fid, FI_SEND), -FI_EDOMAIN);
	cr_expect_eq(fi_ep_bind(p.ep[0], &av->fid, 0), -FI_EDOMAIN);
	cr_expect_eq(fi_close(&av->fid) | fi_close(&cntr->fid) | fi_close(&cq->fid), 0);
	cr_expect_eq(fi_close(&domain->fid), 0);
	ofi_pair_close(&p);
}

Test(cpr_ep, options_of_memory_that_there_is_not_are_not_supported)
{
	struct ofi_options opts = { 0 };
	int p2p = FI_HMEM_P2P_REQUIRED;
	size_t len = sizeof(p2p);

	ofi_pair_open(&p, &opts);
	cr_expect_eq(fi_setopt(&p.ep[0]->fid, FI_OPT_ENDPOINT, FI_OPT_FI_HMEM_P2P, &p2p, len),
		     -FI_EOPNOTSUPP);
	cr_expect_eq(fi_getopt(&p.ep[0]->fid, FI_OPT_ENDPOINT, FI_OPT_XPU_TRIGGER, &p2p, &len),
		     -FI_EOPNOTSUPP);
	cr_expect_eq(fi_setopt(&p.ep[0]->fid, 99, FI_OPT_FI_HMEM_P2P, &p2p, len), -FI_ENOPROTOOPT,
		     "another level");
	ofi_pair_close(&p);
}

Test(cpr_ep, options_are_those_of_multi_receive)
{
	struct ofi_options opts = { 0 };
	size_t val = 0, len = sizeof(val);

	ofi_pair_open(&p, &opts);
	cr_expect_eq(fi_getopt(&p.ep[0]->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &val, &len),
		     0);
	cr_expect_eq(val, CPR_MULTI_RECV_MIN);
	val = 1000;
	cr_expect_eq(
		fi_setopt(&p.ep[0]->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &val, sizeof(val)),
		0);
	val = 0;
	cr_expect_eq(fi_getopt(&p.ep[0]->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &val, &len),
		     0);
	cr_expect_eq(val, 1000);
	len = 1;
	cr_expect_eq(fi_getopt(&p.ep[0]->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &val, &len),
		     -FI_ETOOSMALL);
	cr_expect_eq(fi_getopt(&p.ep[0]->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &val, &len),
		     -FI_ENOPROTOOPT);
	cr_expect_eq(fi_setopt(&p.ep[0]->fid, 99, FI_OPT_MIN_MULTI_RECV, &val, sizeof(val)),
		     -FI_ENOPROTOOPT);
	ofi_pair_close(&p);
}

Test(cpr_ep, what_was_accepted_arrives_although_the_sender_closes)
{
	struct ofi_options opts = { 0 };
	struct fi_cq_tagged_entry e;
	char in[16] = "";

	ofi_pair_open(&p, &opts);
	cr_assert_eq(fi_trecv(p.ep[1], in, sizeof(in), NULL, FI_ADDR_UNSPEC, 1, 0, NULL), 0);
	cr_assert_eq(OFI_RETRY(&p, fi_tinject(p.ep[0], "goodbye", 8, p.addr[1], 1)), 0);
	cr_assert_eq(fi_close(&p.ep[0]->fid), 0);
	p.ep[0] = NULL;
	cr_expect_eq(ofi_read(p.cq[1], &e), 1);
	cr_expect_str_eq(in, "goodbye");
	ofi_pair_close(&p);
}

Test(cpr_ep, a_closed_endpoint_touches_no_memory)
{
	struct ofi_options opts = { 0 };
	char *in = malloc(64);

	ofi_pair_open(&p, &opts);
	cr_assert_eq(fi_trecv(p.ep[1], in, 64, NULL, FI_ADDR_UNSPEC, 1, 0, NULL), 0);
	cr_assert_eq(fi_close(&p.ep[1]->fid), 0);
	p.ep[1] = NULL;
	free(in); /* the sanitizer watches */
	fi_tinject(p.ep[0], "x", 1, p.addr[1], 1);
	ofi_pair_progress(&p);
	ofi_pair_close(&p);
}

Test(cpr_ep, each_kind_of_operation_has_one_counter)
{
	static const uint64_t kinds[] = { FI_SEND,  FI_RECV,        FI_READ,
					  FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE };
	struct fid_cntr *cntr[2];
	unsigned i;

	open_unbound();
	bind_all();
	cr_assert_eq(fi_cntr_open(p.domain, NULL, &cntr[0], NULL), 0);
	cr_assert_eq(fi_cntr_open(p.domain, NULL, &cntr[1], NULL), 0);
	cr_expect_eq(fi_ep_bind(p.ep[0], &cntr[0]->fid, 0), -FI_EINVAL);
	cr_expect_eq(fi_ep_bind(p.ep[0], &cntr[0]->fid, FI_SEND | FI_MULTI_RECV), -FI_EBADFLAGS);
	cr_expect_eq(fi_ep_bind(p.ep[0], &cntr[0]->fid, FI_SEND | FI_REMOTE_WRITE), 0);
	cr_expect_eq(fi_ep_bind(p.ep[0], &cntr[1]->fid, FI_READ | FI_SEND), -FI_EINVAL);
	cr_expect_eq(
		fi_ep_bind(p.ep[0], &cntr[1]->fid, FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ),
		0, "what was refused bound nothing");
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		cr_expect_eq(fi_ep_bind(p.ep[0], &cntr[0]->fid, kinds[i]), -FI_EINVAL);
	cr_expect_eq(fi_enable(p.ep[0]), 0);
	cr_expect_eq(fi_close(&cntr[0]->fid), -FI_EBUSY);
	cr_expect_eq(fi_close(&cntr[1]->fid), -FI_EBUSY);
	cr_expect_eq(fi_close(&p.ep[0]->fid), 0);
	p.ep[0] = NULL;
	cr_expect_eq(fi_close(&cntr[0]->fid), 0);
	cr_expect_eq(fi_close(&cntr[1]->fid), 0);
	ofi_pair_close(&p);
}
