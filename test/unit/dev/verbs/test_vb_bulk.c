/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dev/verbs/vb_bulk.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "vb_pair.h"

TestSuite(vb_bulk, .fini = pair_fini, .timeout = 200);

#define LEN 100000u

static struct vb_dev *devs[2];
static struct transport transports[2];
static uint8_t far[LEN], near[LEN];
static struct dev_mem *far_mem, *near_mem;

static void setup(const struct vb_tune *tune)
{
	pair_open(devs, tune);
	pair_link(devs, 4096, true, transports);
	for (uint32_t i = 0; i < LEN; i++)
		far[i] = (uint8_t)(i * 7 + (i >> 8));
	cr_assert_eq(vb_dev_mem_reg((struct dev *)devs[0], near, LEN, DEV_MEM_LOCAL, &near_mem), 0);
	cr_assert_eq(vb_dev_mem_reg((struct dev *)devs[1], far, LEN,
				    DEV_MEM_REMOTE_READ | DEV_MEM_REMOTE_WRITE, &far_mem),
		     0);
}

static void teardown(void)
{
	struct dev_link *link = transports[0].link;

	link->ops->detach(link);
	vb_dev_mem_dereg((struct dev *)devs[0], near_mem);
	vb_dev_mem_dereg((struct dev *)devs[1], far_mem);
}

static struct dev_get transfer(const struct iovec *iov, size_t iov_cnt, size_t len)
{
	return (struct dev_get){
		.remote_addr = (uintptr_t)far,
		.remote_key = far_mem->remote_key,
		.iov = iov,
		.iov_cnt = iov_cnt,
		.len = len,
		.status = 1,
		.mem = { near_mem, near_mem, near_mem, near_mem },
	};
}

static void finish(struct dev_get *get)
{
	struct dev_event ev = pair_wait(devs[0], DEV_EV_GET);

	cr_assert_eq(ev.get, get);
	cr_assert_eq(get->status, 0);
}

Test(vb_bulk, pieces_cover_the_buffers_once_and_span_none)
{
	struct iovec iov[4] = {
		{ near, 10 }, { near + 100, 0 }, { near + 200, 25 }, { near, 100 }
	};
	struct dev_get get = { .iov = iov, .iov_cnt = 4, .len = 40 };
	static const size_t expected[] = { 8, 2, 8, 8, 8, 1, 5 };
	struct vb_cursor at = { 0 };

	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		size_t len = vb_bulk_piece(&get, &at, 8);

		cr_assert_eq(len, expected[i], "piece %zu", i);
		vb_bulk_step(&get, &at, len);
	}
	cr_expect_eq(vb_bulk_piece(&get, &at, 8), 0);
	cr_expect_eq(at.pos, 40);
}

Test(vb_bulk, an_empty_transfer_ends_at_once)
{
	struct dev_get get;

	setup(NULL);
	get = transfer(NULL, 0, 0);
	cr_expect_eq(vb_link_get(transports[0].link, &get), 1);
	cr_expect_eq(get.status, 0);
	teardown();
}

Test(vb_bulk, a_get_brings_every_length_around_a_piece)
{
	static const size_t lens[] = { 1, 7, 4095, 4096, 4097, 8192, LEN };

	setup(&pair_small);
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		struct iovec iov = { near, LEN };
		struct dev_get get = transfer(&iov, 1, lens[i]);

		memset(near, 0xee, LEN);
		cr_assert_eq(vb_link_get(transports[0].link, &get), 0);
		finish(&get);
		cr_assert_arr_eq(near, far, lens[i]);
		cr_expect(lens[i] == LEN || near[lens[i]] == 0xee, "not a byte more");
	}
	teardown();
}

Test(vb_bulk, buffers_are_filled_in_order_empty_ones_passed_over)
{
	struct iovec iov[4] = {
		{ near + 90000, 0 }, { near, 5000 }, { near + 50000, 0 }, { near + 20000, 30000 }
	};
	struct dev_get get;

	setup(&pair_small);
	get = transfer(iov, 4, 12345);
	cr_assert_eq(vb_link_get(transports[0].link, &get), 0);
	finish(&get);
	cr_assert_arr_eq(near, far, 5000);
	cr_assert_arr_eq(near + 20000, far + 5000, 7345);
	teardown();
}

Test(vb_bulk, a_put_writes_every_length)
{
	struct iovec iov[2] = { { near + 100, 7000 }, { near + 50000, 33000 } };
	struct dev_get get;

	setup(&pair_small);
	for (uint32_t i = 0; i < LEN; i++)
		near[i] = (uint8_t)(i * 13);
	get = transfer(iov, 2, 40000);
	cr_assert_eq(vb_link_put(transports[0].link, &get), 0);
	finish(&get);
	cr_assert_arr_eq(far, near + 100, 7000);
	cr_assert_arr_eq(far + 7000, near + 50000, 33000);
	teardown();
}

Test(vb_bulk, a_placed_put_ends_after_the_read_behind_it)
{
	static const size_t lens[] = { 1, 4096, 4097, 20000 };

	setup(&pair_small);
	for (uint32_t i = 0; i < LEN; i++)
		near[i] = (uint8_t)(i * 29);
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		struct iovec iov = { near, LEN };
		struct dev_get get = transfer(&iov, 1, lens[i]);

		get.flags = DEV_GET_PLACED;
		cr_assert_eq(vb_link_put(transports[0].link, &get), 0);
		finish(&get);
		cr_assert_arr_eq(far, near, lens[i]);
		cr_expect_eq(((struct vb_link *)transports[0].link)->ib.reads_out, 0);
	}
	teardown();
}

Test(vb_bulk, an_inline_put_needs_no_registration)
{
	uint8_t bytes[] = { 9, 8, 7, 6, 5 };
	struct iovec iov[2] = { { bytes, 2 }, { bytes + 2, 3 } };
	struct dev_get get;

	setup(NULL);
	cr_assert_geq(transports[0].link->inline_max, sizeof(bytes));
	get = transfer(iov, 2, sizeof(bytes));
	memset(get.mem, 0, sizeof(get.mem));
	get.flags = DEV_GET_INLINE | DEV_GET_NOW;
	cr_assert_eq(vb_link_put(transports[0].link, &get), 0);
	memset(bytes, 0, sizeof(bytes));
	finish(&get);
	cr_expect_arr_eq(far, ((uint8_t[]){ 9, 8, 7, 6, 5 }), 5);
	teardown();
}

Test(vb_bulk, a_put_that_must_be_posted_now_is_posted_whole_or_refused)
{
	struct iovec iov = { near, LEN };
	struct dev_get gets[64], get;
	struct vb_link *link;
	unsigned cnt = 0, ended;

	setup(&pair_small);
	link = (struct vb_link *)transports[0].link;
	get = transfer(&iov, 1, LEN);
	get.len = iov.iov_len = ((size_t)pair_small.sq_depth / 2 + 1) * pair_small.chunk_len;
	cr_assert_leq(get.len, LEN);
	get.flags = DEV_GET_NOW;
	cr_expect_eq(vb_link_put(&link->ib.base, &get), -FI_EMSGSIZE, "more pieces than ever fit");
	iov.iov_len = 8;
	for (; cnt < 64; cnt++) {
		gets[cnt] = transfer(&iov, 1, 8);
		gets[cnt].flags = DEV_GET_NOW;
		if (vb_link_put(&link->ib.base, &gets[cnt]))
			break;
		cr_assert_null(link->op_next, "posted whole");
	}
	cr_expect_eq(cnt, pair_small.sq_depth / 2);
	for (ended = 0; ended < cnt; ended++)
		finish(&gets[ended]);
	cr_expect_eq(vb_link_put(&link->ib.base, &gets[0]), 0);
	finish(&gets[0]);
	teardown();
}

Test(vb_bulk, many_at_once_end_in_order_and_writes_pass_between)
{
	struct iovec iov[8];
	struct dev_get gets[8];
	unsigned ended = 0, sent = 0;

	setup(&pair_small);
	for (int i = 0; i < 8; i++) {
		iov[i] = (struct iovec){ near + 10000 * i, 10000 };
		gets[i] = transfer(&iov[i], 1, 10000);
		gets[i].remote_addr += 10000u * (unsigned)i;
		cr_assert_eq(vb_link_get(transports[0].link, &gets[i]), 0);
	}
	while (ended < 8) {
		struct dev_event ev;

		if (sent < pair_small.srq_depth && !pair_write(&transports[0], 32))
			sent++;
		if (!pair_poll(devs[0], &ev, 0))
			continue;
		cr_assert_eq(ev.kind, DEV_EV_GET);
		cr_assert_eq(ev.get, &gets[ended++]);
	}
	cr_assert_gt(sent, 0);
	for (unsigned i = 0; i < sent; i++)
		pair_take(&transports[1], pair_wait(devs[1], DEV_EV_IMM).imm);
	cr_assert_arr_eq(near, far, 80000);
	teardown();
}

Test(vb_bulk, access_to_deregistered_memory_ends_only_that_link)
{
	struct iovec iov = { near, LEN };
	struct transport other[2];
	struct dev_get get;
	struct dev_event ev;

	setup(NULL);
	pair_link(devs, 4096, true, other);
	get = transfer(&iov, 1, 4096);
	get.remote_key ^= 0x5a5a00;
	cr_assert_eq(vb_link_get(transports[0].link, &get), 0);
	ev = pair_wait(devs[0], DEV_EV_DOWN);
	cr_expect_eq(ev.link, transports[0].link);
	cr_expect_eq(ev.status, -FI_EREMOTEIO);
	cr_expect_eq(get.status, 1, "forgotten");
	cr_expect_eq(vb_link_get(transports[0].link, &get), -FI_EAGAIN);
	cr_assert_eq(pair_write(&other[0], 64), 0);
	do /* the target may report the end of its queue pair first */
		cr_assert(pair_poll(devs[1], &ev, PAIR_PATIENCE_S * 1000));
	while (ev.kind == DEV_EV_DOWN && ev.link == transports[1].link);
	cr_assert_eq(ev.kind, DEV_EV_IMM);
	pair_take(&other[1], ev.imm);
	teardown();
}

Test(vb_bulk, detach_drops_open_transfers_and_their_buffers_stay_untouched)
{
	struct iovec iov = { near, LEN };
	struct dev_get get;
	struct dev_event ev;

	setup(&pair_small);
	get = transfer(&iov, 1, LEN);
	cr_assert_eq(vb_link_get(transports[0].link, &get), 0);
	transports[0].link->ops->detach(transports[0].link);
	memset(near, 0x11, LEN);
	cr_expect_not(pair_poll(devs[0], &ev, 200));
	for (uint32_t i = 0; i < LEN; i++)
		cr_assert_eq(near[i], 0x11);
	teardown();
}
