/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Life of an endpoint: it receives once open, only from senders with its key, and leaves nothing
 * behind.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "vb_ud_pair.h"

TestSuite(vb_ud_life, .fini = ud_pair_close, .timeout = 200);

/* A fresh endpoint receives as many datagrams as it has buffers, before the first poll. */
Test(vb_ud_life, all_buffers_are_posted_by_open)
{
	struct dev_dgram_out out;
	struct dev_dgram_in in[16];

	ud_pair_open(16, 16);
	out = ud_pair_text(0, "early");
	for (int i = 0; i < 16; i++)
		cr_assert_eq(vb_ud_send(ud_pair[0], &out, 1), 1);
	ud_pair_await(1, in, 16);
	for (int i = 0; i < 16; i++) {
		cr_expect_eq(in[i].len, 5);
		for (int k = 0; k < i; k++)
			cr_expect_neq(in[i].slot, in[k].slot);
		vb_ud_release(ud_pair[1], in[i].slot);
	}
}

static unsigned open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned cnt = 0;

	cr_assert(dir);
	while (readdir(dir))
		cnt++;
	closedir(dir);
	return cnt;
}

Test(vb_ud_life, open_and_close_leave_nothing)
{
	struct dev_dgram_attr attr = { .rx_cnt = 8, .tx_cnt = 8 };
	struct dev_dgram *dg;
	unsigned before;

	ud_pair_open(16, 16);
	before = open_files();
	for (int i = 0; i < 20; i++) {
		cr_assert_eq(vb_ud_open((struct dev *)ud_pair_devs[0], &attr, &dg), 0);
		cr_expect_eq(dg->rx_cnt, 8);
		cr_expect_gt(open_files(), before, "wait_fd is open");
		vb_ud_close(dg);
	}
	cr_expect_eq(open_files(), before);
	cr_expect_eq(ud_pair_devs[0]->uds.next->next, &ud_pair_devs[0]->uds,
		     "only those of the pair");
}

Test(vb_ud_life, malformed_addresses_are_refused)
{
	struct dev_dgram_ah *way = NULL;
	struct dev_desc desc;

	ud_pair_open(16, 16);
	cr_assert_eq(ib_ud_describe(ud_pair[1], &desc), 0);
	desc.len--;
	cr_expect_eq(vb_ud_resolve(ud_pair[0], &desc, &way), -FI_EINVAL);
	desc.len = 0;
	cr_expect_eq(vb_ud_resolve(ud_pair[0], &desc, &way), -FI_EINVAL);
	cr_expect_null(way);
}

Test(vb_ud_life, a_sender_without_the_q_key_is_not_received)
{
	struct dev_dgram_ah *wrong;
	struct dev_dgram_in in;
	struct dev_dgram_out out;
	struct dev_desc desc;

	ud_pair_open(16, 16);
	cr_assert_eq(ib_ud_describe(ud_pair[1], &desc), 0);
	desc.bytes[12] ^= 1;
	cr_assert_eq(vb_ud_resolve(ud_pair[0], &desc, &wrong), 0);
	out = ud_pair_text(0, "wrong key");
	out.to = wrong;
	out.flags = DEV_DGRAM_REPORT;
	cr_assert_eq(vb_ud_send(ud_pair[0], &out, 1), 1);
	out = ud_pair_text(0, "good key");
	cr_assert_eq(vb_ud_send(ud_pair[0], &out, 1), 1);
	ud_pair_await(1, &in, 1);
	cr_expect_arr_eq(in.data, "good key", 8);
	while (!dev_dgram_is_done(ud_pair[0], 0))
		cr_assert_eq(vb_ud_poll(ud_pair[0], &in, 1), 0);
	vb_ud_forget(ud_pair[0], wrong);
}
