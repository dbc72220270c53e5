/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Bindings of an endpoint: fi_endpoint(3). */
#include <criterion/criterion.h>

#include "unit/ofi/ofi_fixture.h"

static struct ofi_pair p;

Test(cpr_ep_bind, enabling_needs_an_av_and_queues)
{
	ofi_open_unbound(&p);
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

Test(cpr_ep_bind, wrong_bindings_are_refused)
{
	ofi_open_unbound(&p);
	cr_expect_eq(fi_ep_bind(p.ep[0], &p.cq[0]->fid, 0), -FI_EINVAL);
	cr_expect_eq(fi_ep_bind(p.ep[0], &p.cq[0]->fid, FI_TRANSMIT | FI_PEEK), -FI_EBADFLAGS);
	cr_expect_eq(fi_ep_bind(p.ep[0], &p.fabric->fid, 0), -FI_ENOSYS);
	ofi_bind_all(&p);
	cr_expect_eq(fi_ep_bind(p.ep[0], &p.cq[0]->fid, FI_RECV), -FI_EINVAL, "one per direction");
	cr_expect_eq(fi_ep_bind(p.ep[0], &p.av->fid, 0), -FI_EINVAL);
	cr_expect_eq(fi_enable(p.ep[0]), 0);
	cr_expect_eq(fi_ep_bind(p.ep[0], &p.av->fid, 0), -FI_EOPBADSTATE);
	ofi_pair_close(&p);
}

Test(cpr_ep_bind, objects_of_another_domain_are_refused)
{
	struct fi_cq_attr cq_attr = { 0 };
	struct fi_cntr_attr cntr_attr = { 0 };
	struct fi_av_attr av_attr = { 0 };
	struct fid_domain *domain;
	struct fid_cntr *cntr;
	struct fid_cq *cq;
	struct fid_av *av;

	ofi_open_unbound(&p);
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

Test(cpr_ep_bind, each_kind_of_operation_has_one_counter)
{
	static const uint64_t kinds[] = { FI_SEND,  FI_RECV,        FI_READ,
					  FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE };
	struct fid_cntr *cntr[2];
	unsigned i;

	ofi_open_unbound(&p);
	ofi_bind_all(&p);
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
