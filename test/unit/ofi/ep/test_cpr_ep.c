/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Opening, enabling and closing endpoints: fi_endpoint(3), fi_cm(3). */
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "unit/ofi/ofi_fixture.h"

static struct ofi_pair p;

Test(cpr_ep, transfers_wait_for_fi_enable)
{
	char c = 0;

	ofi_open_unbound(&p);
	ofi_bind_all(&p);
	cr_expect_eq(fi_send(p.ep[0], &c, 1, NULL, 0, NULL), -FI_EOPBADSTATE);
	cr_expect_eq(fi_trecv(p.ep[0], &c, 1, NULL, 0, 0, 0, NULL), -FI_EOPBADSTATE);
	cr_expect_eq(fi_cancel(&p.ep[0]->fid, NULL), -FI_EOPBADSTATE);
	cr_assert_eq(fi_enable(p.ep[0]), 0);
	cr_expect_eq(fi_trecv(p.ep[0], &c, 1, NULL, FI_ADDR_UNSPEC, 0, 0, NULL), 0);
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

Test(cpr_ep, accepted_messages_arrive_after_the_sender_closes)
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

/*
 * A sender injects as much as is accepted and closes without reading its queue: messages in a ring,
 * and those that wait for room in a device's queue, are sent in order.
 */
Test(cpr_ep, injected_messages_arrive_without_reads)
{
	struct ofi_options opts = { 0 };
	struct fi_cq_tagged_entry e;
	uint32_t sent = 1, in, first = 0;

	ofi_pair_open(&p, &opts);
	cr_assert_eq(OFI_RETRY(&p, fi_tinject(p.ep[0], &first, sizeof(first), p.addr[1], 1)), 0);
	while (sent < 2000 && !fi_tinject(p.ep[0], &sent, sizeof(sent), p.addr[1], 1))
		sent++;
	cr_expect_gt(sent, 256, "only %u were taken", sent);
	cr_assert_eq(fi_close(&p.ep[0]->fid), 0);
	p.ep[0] = NULL;
	for (uint32_t i = 0; i < sent; i++) {
		in = UINT32_MAX;
		cr_assert_eq(fi_trecv(p.ep[1], &in, sizeof(in), NULL, FI_ADDR_UNSPEC, 1, 0, NULL),
			     0);
		cr_assert_eq(ofi_read(p.cq[1], &e), 1, "%u of %u arrived", i, sent);
		cr_assert_eq(in, i);
	}
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
	free(in); /* watched by the sanitizer */
	fi_tinject(p.ep[0], "x", 1, p.addr[1], 1);
	ofi_pair_progress(&p);
	ofi_pair_close(&p);
}
