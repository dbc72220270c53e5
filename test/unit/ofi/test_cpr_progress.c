/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* FI_PROGRESS_AUTO: what arrives is taken in although nobody reads. */
#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

#include "ofi/cpr_domain.h"
#include "unit/ofi/ofi_fixture.h"

Test(cpr_progress, a_message_is_received_while_the_application_sleeps)
{
	struct ofi_options opts = { .progress = FI_PROGRESS_AUTO };
	struct fi_cq_tagged_entry e;
	volatile char in[8] = "";
	struct ofi_pair p;
	int ms;

	ofi_pair_open(&p, &opts);
	cr_assert_eq(fi_trecv(p.ep[1], (void *)in, 8, NULL, FI_ADDR_UNSPEC, 1, 0, NULL), 0);
	/* A queued send: not even the connection is there. */
	cr_assert_eq(fi_tsend(p.ep[0], "abc", 4, NULL, p.addr[1], 1, NULL), 0);
	for (ms = 0; ms < 5000 && !in[0]; ms++)
		usleep(1000);
	cr_expect_str_eq((char *)in, "abc");
	cr_expect_eq(ofi_read(p.cq[1], &e), 1);
	ofi_pair_close(&p);
}

Test(cpr_progress, an_open_domain_is_stopped_by_cleanup)
{
	struct ofi_options opts = { .progress = FI_PROGRESS_AUTO };
	struct ofi_pair p;

	ofi_domain_open(&p, &opts);
	cr_expect(cpr_domain_of(p.domain)->progress.running);
	ofi_provider()->cleanup();
	cr_expect_not(cpr_domain_of(p.domain)->progress.running);
	ofi_pair_close(&p);
}
