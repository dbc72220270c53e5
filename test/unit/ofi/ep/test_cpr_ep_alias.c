/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Default flags and aliases: fi_endpoint(3), fi_control. */
#include <criterion/criterion.h>

#include "unit/ofi/ofi_fixture.h"

static struct ofi_pair p;

Test(cpr_ep_alias, default_flags_are_read_and_changed_by_direction)
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

Test(cpr_ep_alias, an_alias_differs_in_its_default_flags_only)
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
