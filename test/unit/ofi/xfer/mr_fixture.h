/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fixture for tests of remote accesses: a pair and a region. One suite includes it. */
#ifndef MR_FIXTURE_H
#define MR_FIXTURE_H

#include <criterion/criterion.h>

#include "unit/ofi/ofi_fixture.h"

static struct ofi_pair p;
static struct fid_mr *mr;

static void close_pair(void)
{
	if (mr)
		cr_expect_eq(fi_close(&mr->fid), 0);
	mr = NULL;
	ofi_pair_close(&p);
}

static void expect(uint64_t flags, void *context)
{
	ofi_pair_expect(&p, 0, flags, context);
}

static void expect_error(uint64_t flags, int err, void *context)
{
	ofi_pair_expect_error(&p, 0, flags, err, context);
}

#endif
