/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Reference counts: fi_close returns -FI_EBUSY until all dependents are closed. */
#include <criterion/criterion.h>

#include "ofi/base/cpr_offer.h"
#include "unit/ofi/ofi_fixture.h"

Test(cpr_fabric, fabrics_with_other_names_are_refused)
{
	struct fi_fabric_attr attr = { .name = (char *)"somebody-else" };
	struct fid_fabric *fabric;

	cr_expect_eq(ofi_provider()->fabric(&attr, &fabric, NULL), -FI_EINVAL);
	attr.name = (char *)CPR_RC_NAME;
	cr_assert_eq(ofi_provider()->fabric(&attr, &fabric, &attr), 0);
	cr_expect_eq(fabric->fid.fclass, FI_CLASS_FABRIC);
	cr_expect_eq(fabric->fid.context, &attr);
	cr_expect_eq(fi_close(&fabric->fid), 0);
}

Test(cpr_fabric, objects_are_busy_while_others_depend_on_them)
{
	struct ofi_options opts = { .counters = true };
	struct ofi_pair p;

	ofi_pair_open(&p, &opts);
	cr_expect_eq(fi_close(&p.fabric->fid), -FI_EBUSY);
	cr_expect_eq(fi_close(&p.domain->fid), -FI_EBUSY);
	cr_expect_eq(fi_close(&p.av->fid), -FI_EBUSY);
	cr_expect_eq(fi_close(&p.cq[0]->fid), -FI_EBUSY);
	cr_expect_eq(fi_close(&p.tx_cntr[0]->fid), -FI_EBUSY);
	cr_expect_eq(fi_close(&p.rx_cntr[1]->fid), -FI_EBUSY);
	/* Objects still work after a refused close. */
	cr_expect_eq(fi_cq_read(p.cq[0], NULL, 0), -FI_EAGAIN);
	cr_expect_eq(fi_cntr_read(p.tx_cntr[0]), 0);
	ofi_pair_close(&p);
}

Test(cpr_fabric, two_domains_of_one_info_live_side_by_side)
{
	struct ofi_options opts = { 0 };
	struct fid_domain *second;
	struct ofi_pair p;

	ofi_pair_open(&p, &opts);
	cr_assert_eq(fi_domain(p.fabric, p.info, &second, NULL), 0);
	cr_expect_neq(second, p.domain);
	cr_expect_eq(fi_close(&p.fabric->fid), -FI_EBUSY);
	cr_expect_eq(fi_close(&second->fid), 0);
	ofi_pair_close(&p);
}

Test(cpr_fabric, trywait_takes_queues_and_counters_with_a_wait_object)
{
	struct ofi_options with = { .wait_obj = FI_WAIT_FD, .counters = true };
	struct ofi_options without = { 0 };
	struct ofi_pair p;
	struct fid *fids[3];

	ofi_pair_open(&p, &with);
	fids[0] = &p.cq[0]->fid;
	fids[1] = &p.tx_cntr[0]->fid;
	fids[2] = &p.cq[1]->fid;
	cr_expect_eq(fi_trywait(p.fabric, fids, 3), 0);
	fids[2] = &p.av->fid;
	cr_expect_eq(fi_trywait(p.fabric, fids, 3), -FI_EINVAL);
	ofi_pair_close(&p);
	ofi_pair_open(&p, &without);
	fids[0] = &p.cq[0]->fid;
	cr_expect_eq(fi_trywait(p.fabric, fids, 1), -FI_EINVAL);
	ofi_pair_close(&p);
}
