/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_cq_strerror and fi_eq_strerror (fi_cq(3), fi_eq(3)). */
#include "ofi/queue/cpr_strerror.h"

#include <criterion/criterion.h>
#include <string.h>

#include "unit/ofi/ofi_fixture.h"

Test(cpr_strerror, errors_of_completions_have_their_own_text)
{
	static const int errs[] = { FI_ECANCELED,   FI_ENOMSG,    FI_ETRUNC,       FI_ECONNRESET,
				    FI_ETIMEDOUT,   FI_ESHUTDOWN, FI_ECONNREFUSED, FI_ECONNABORTED,
				    FI_EOVERRUN,    FI_EIO,       FI_EKEYREJECTED, FI_EACCES,
				    FI_EHOSTUNREACH };
	unsigned i;

	for (i = 0; i < sizeof(errs) / sizeof(errs[0]); i++) {
		const char *text = cpr_strerror(errs[i], NULL, 0);

		cr_expect_str_neq(text, fi_strerror(errs[i]));
		cr_expect_gt(strlen(text), 15);
		cr_expect_str_eq(cpr_strerror(-errs[i], NULL, 0), text, "either sign");
	}
	cr_expect_str_eq(cpr_strerror(FI_EBUSY, NULL, 0), fi_strerror(FI_EBUSY));
}

Test(cpr_strerror, both_queues_copy_the_text_into_any_buffer)
{
	struct ofi_options opts = { 0 };
	struct fi_eq_attr attr = { 0 };
	char buf[8], byte = 'x';
	struct fid_eq *eq;
	struct ofi_pair p;

	ofi_pair_open(&p, &opts);
	cr_assert_eq(fi_eq_open(p.fabric, &attr, &eq, NULL), 0);
	cr_expect_str_eq(fi_cq_strerror(p.cq[0], FI_ETRUNC, NULL, buf, sizeof(buf)),
			 fi_eq_strerror(eq, FI_ETRUNC, NULL, NULL, 0));
	cr_expect_str_eq(buf, "The mes", "as much as there is room for");
	fi_cq_strerror(p.cq[0], FI_ETRUNC, NULL, &byte, 0);
	cr_expect_eq(byte, 'x');
	fi_close(&eq->fid);
	ofi_pair_close(&p);
}
