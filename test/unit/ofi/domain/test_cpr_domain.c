/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Domains: threading, binding to event queues (fi_domain(3)). */
#include "ofi/base/cpr_domain.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "unit/ofi/ofi_fixture.h"

static bool is_locked(enum fi_threading threading, enum fi_progress progress)
{
	struct ofi_options opts = { .threading = threading, .progress = progress };
	struct ofi_pair p;
	bool locked;

	ofi_domain_open(&p, &opts);
	locked = cpr_domain_of(p.domain)->main.core.locked;
	ofi_pair_close(&p);
	return locked;
}

Test(cpr_domain, only_thread_domain_with_manual_progress_needs_no_lock)
{
	cr_expect_not(is_locked(FI_THREAD_DOMAIN, FI_PROGRESS_MANUAL));
	cr_expect(is_locked(FI_THREAD_DOMAIN, FI_PROGRESS_AUTO));
	cr_expect(is_locked(FI_THREAD_SAFE, FI_PROGRESS_MANUAL));
	cr_expect(is_locked(FI_THREAD_FID, FI_PROGRESS_MANUAL));
	cr_expect(is_locked(FI_THREAD_ENDPOINT, FI_PROGRESS_MANUAL));
	cr_expect(is_locked(FI_THREAD_COMPLETION, FI_PROGRESS_MANUAL));
}

Test(cpr_domain, an_event_queue_turns_on_the_lock)
{
	struct fi_eq_attr attr = { 0 };
	struct ofi_options opts = { 0 };
	struct fid_eq *eq, *other;
	struct ofi_pair p;

	ofi_domain_open(&p, &opts);
	cr_assert_eq(fi_eq_open(p.fabric, &attr, &eq, NULL), 0);
	cr_assert_eq(fi_eq_open(p.fabric, &attr, &other, NULL), 0);
	cr_expect_eq(fi_domain_bind(p.domain, &eq->fid, 0), 0);
	cr_expect(cpr_domain_of(p.domain)->main.core.locked);
	cr_expect_eq(fi_domain_bind(p.domain, &other->fid, 0), -FI_EINVAL);
	cr_expect_eq(fi_close(&eq->fid), -FI_EBUSY);
	cr_expect_eq(fi_close(&p.domain->fid), 0);
	p.domain = NULL;
	cr_expect_eq(fi_close(&eq->fid), 0);
	cr_expect_eq(fi_close(&other->fid), 0);
	ofi_pair_close(&p);
}

Test(cpr_domain, domains_with_other_names_are_refused)
{
	struct ofi_options opts = { 0 };
	struct fid_domain *domain;
	struct ofi_pair p;

	ofi_domain_open(&p, &opts);
	p.info->domain_attr->name[0] ^= 1;
	cr_expect_eq(fi_domain(p.fabric, p.info, &domain, NULL), -FI_EINVAL);
	cr_expect_eq(fi_domain2(p.fabric, p.info, &domain, 1, NULL), -FI_ENOSYS);
	ofi_pair_close(&p);
}
