/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "bytes.h"
#include "fake_dev.h"

TestSuite(m5_bulk, .timeout = 200);

static struct fake_dev *f;
static struct fake_link *l;
static struct ibv_mr mrs[4];
static struct ib_user users[4];
static struct iovec iov[4];
static struct dev_get get;

/* Makes buffers of the given lengths at 0x10000, 0x20000 ... with keys 0xa1, 0xa2 ... */
static void setup(uint32_t blocks, size_t cnt, const size_t *lens)
{
	size_t i;

	f = fake_dev_make();
	l = fake_link_make(f, blocks, FAKE_QPN);
	memset(&get, 0, sizeof(get));
	get.iov = iov;
	get.iov_cnt = cnt;
	get.remote_addr = 0x5000;
	get.remote_key = 0xbeef;
	for (i = 0; i < cnt; i++) {
		mrs[i].lkey = 0xa1 + (uint32_t)i;
		users[i].mr = &mrs[i];
		get.mem[i] = &users[i].base;
		iov[i] = (struct iovec){ (void *)(0x10000 * (i + 1)), lens[i] };
		get.len += lens[i];
	}
}

static void teardown(void)
{
	fake_link_free(l);
	fake_dev_free(f);
}

static uint32_t word_at(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, 4);
	return be32toh(v);
}

Test(m5_bulk, get_is_one_read_that_scatters)
{
	const uint8_t *wqe;

	setup(16, 2, (size_t[]){ 100, 200 });
	cr_assert_eq(m5_link_get(&l->link.ib.base, &get), 0);
	wqe = fake_link_wqe(l, 0);
	EXPECT_AT(wqe, 0, 0, 0, 0x10, 0x12, 0x34, 0x56, 4, 0, 0, 0, 8, 0, 0, 0, 0,
		  /* remote */
		  0, 0, 0, 0, 0, 0, 0x50, 0, 0, 0, 0xbe, 0xef, 0, 0, 0, 0,
		  /* local */
		  0, 0, 0, 100, 0, 0, 0, 0xa1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 200, 0, 0, 0, 0xa2,
		  0, 0, 0, 0, 0, 2, 0, 0);
	cr_expect_eq(m5_sparse_take(&l->link.users, 0), (uintptr_t)&get);
	cr_expect_eq(sq_device_rings(&l->d), 1);
	cr_expect_eq(l->link.ib.reads_out, 1);
	teardown();
}

Test(m5_bulk, put_is_a_write_without_immediate)
{
	setup(16, 4, (size_t[]){ 1, 2, 3, 4 });
	cr_assert_eq(m5_link_put(&l->link.ib.base, &get), 0);
	EXPECT_AT(fake_link_wqe(l, 0), 0, 0, 0, 0x08, 0x12, 0x34, 0x56, 6);
	cr_expect_eq(l->link.sq.pi, 2);
	cr_expect_eq(l->link.ib.reads_out, 0);
	teardown();
}

Test(m5_bulk, empty_buffers_are_skipped_and_each_buffer_keeps_its_key)
{
	setup(16, 4, (size_t[]){ 0, 10, 0, 20 });
	cr_assert_eq(m5_link_get(&l->link.ib.base, &get), 0);
	cr_expect_eq(fake_link_wqe(l, 0)[7], 4);
	cr_expect_eq(word_at(fake_link_wqe(l, 0) + 36), 0xa2);
	cr_expect_eq(word_at(fake_link_wqe(l, 0) + 52), 0xa4);
	teardown();
}

Test(m5_bulk, a_long_transfer_is_several_wqes_and_the_last_reports)
{
	unsigned i;

	setup(32, 2, (size_t[]){ 100, 150 });
	l->link.max_piece = 64;
	cr_assert_eq(m5_link_get(&l->link.ib.base, &get), 0);
	cr_expect_eq(sq_device_rings(&l->d), 1);
	/* 0-63 | 64-99, 100-127 | 128-191 | 192-249 */
	for (i = 0; i < 4; i++) {
		cr_expect_eq(word_at(fake_link_wqe(l, (uint16_t)i) + 20), 0x5000 + 64 * i);
		cr_expect_eq(!!(fake_link_wqe(l, (uint16_t)i)[11] & 8), i == 3);
	}
	EXPECT_AT(fake_link_wqe(l, 1) + 32, 0, 0, 0, 36, 0, 0, 0, 0xa1, 0, 0, 0, 0, 0, 1, 0, 64, 0,
		  0, 0, 28, 0, 0, 0, 0xa2, 0, 0, 0, 0, 0, 2, 0, 0);
	EXPECT_AT(fake_link_wqe(l, 3) + 32, 0, 0, 0, 58, 0, 0, 0, 0xa2, 0, 0, 0, 0, 0, 2, 0, 92);
	cr_expect_eq(m5_sparse_take(&l->link.users, 3), (uintptr_t)&get);
	teardown();
}

Test(m5_bulk, room_for_all_pieces_or_for_none)
{
	unsigned started = 0;

	setup(16, 1, (size_t[]){ 256 });
	l->link.max_piece = 64;
	while (!m5_link_put(&l->link.ib.base, &get))
		started++;
	cr_expect_geq(started, 1);
	cr_expect_leq(m5_sq_in_flight(&l->link.sq), 16);
	cr_expect_eq(m5_link_put(&l->link.ib.base, &get), -FI_EAGAIN);
	teardown();
}

Test(m5_bulk, reads_in_flight_are_limited_to_what_the_peer_serves)
{
	setup(16, 1, (size_t[]){ 8 });
	cr_expect_eq(m5_link_get(&l->link.ib.base, &get), 0);
	cr_expect_eq(m5_link_get(&l->link.ib.base, &get), 0);
	cr_expect_eq(m5_link_get(&l->link.ib.base, &get), -FI_EAGAIN);
	cr_expect_eq(m5_link_put(&l->link.ib.base, &get), 0);
	teardown();
}

Test(m5_bulk, an_empty_transfer_ends_at_once)
{
	setup(16, 1, (size_t[]){ 0 });
	get.status = 77;
	cr_expect_eq(m5_link_get(&l->link.ib.base, &get), 1);
	cr_expect_eq(get.status, 0);
	cr_expect_eq(l->link.sq.pi, 0);
	teardown();
}

Test(m5_bulk, an_inline_put_has_its_bytes_in_the_wqe_and_needs_no_registration)
{
	uint8_t bytes[7] = { 1, 2, 3, 4, 5, 6, 7 };

	setup(16, 2, (size_t[]){ 3, 4 });
	iov[0].iov_base = bytes;
	iov[1].iov_base = bytes + 3;
	get.mem[0] = get.mem[1] = NULL;
	get.flags = DEV_GET_INLINE;
	cr_assert_eq(m5_link_put(&l->link.ib.base, &get), 0);
	EXPECT_AT(fake_link_wqe(l, 0), 0, 0, 0, 0x08, 0x12, 0x34, 0x56, 3, 0, 0, 0, 8, 0, 0, 0, 0,
		  /* remote */
		  0, 0, 0, 0, 0, 0, 0x50, 0, 0, 0, 0xbe, 0xef, 0, 0, 0, 0,
		  /* inline */
		  0x80, 0, 0, 7, 1, 2, 3, 4, 5, 6, 7, 0, 0, 0, 0, 0);
	cr_expect_eq(m5_sparse_take(&l->link.users, 0), (uintptr_t)&get);
	cr_expect_eq(sq_device_rings(&l->d), 1);
	teardown();
}

Test(m5_bulk, the_longest_inline_put_fits_the_smallest_queue_wherever_it_stands)
{
	uint8_t bytes[M5_INLINE_MAX] = { 0 };

	for (uint16_t at = 0; at < 8; at++) {
		setup(8, 1, (size_t[]){ M5_INLINE_MAX });
		l->link.sq.pi = l->link.sq.rung = l->link.sq.ci = l->link.sq.last = at;
		iov[0].iov_base = bytes;
		get.flags = DEV_GET_INLINE | DEV_GET_PLACED;
		cr_assert_eq(m5_link_put(&l->link.ib.base, &get), 0, "at %u", at);
		cr_expect_leq(m5_sq_in_flight(&l->link.sq), 8);
		teardown();
	}
}

Test(m5_bulk, a_placed_put_reports_by_a_read_behind_it)
{
	const uint8_t *wqe;
	uint64_t to;

	setup(16, 1, (size_t[]){ 8 });
	get.flags = DEV_GET_PLACED;
	cr_assert_eq(m5_link_put(&l->link.ib.base, &get), 0);
	EXPECT_AT(fake_link_wqe(l, 0), 0, 0, 0, 0x08, 0x12, 0x34, 0x56, 3, 0, 0, 0, 0);
	wqe = fake_link_wqe(l, 1);
	EXPECT_AT(wqe, 0, 0, 1, 0x10, 0x12, 0x34, 0x56, 3, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0x7e, 0, 0,
		  0, 0, 0, 0, 0x33, 0x33, 0x33, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0x11, 0x11, 0x11);
	memcpy(&to, wqe + 40, sizeof(to));
	cr_expect_eq(be64toh(to), (uintptr_t)l->page + 8, "not where the consumer word lands");
	cr_expect_eq(m5_sparse_take(&l->link.users, 1), (uintptr_t)&get);
	cr_expect_eq(sq_device_rings(&l->d), 1);
	cr_expect_eq(l->link.ib.reads_out, 1);
	cr_expect_eq(m5_link_put(&l->link.ib.base, &get), 0);
	cr_expect_eq(m5_link_put(&l->link.ib.base, &get), -FI_EAGAIN, "reads are limited");
	teardown();
}

Test(m5_bulk, puts_with_more_ring_once)
{
	setup(16, 1, (size_t[]){ 8 });
	get.flags = DEV_GET_MORE;
	for (int i = 0; i < 3; i++)
		cr_assert_eq(m5_link_put(&l->link.ib.base, &get), 0);
	cr_expect_eq(sq_device_rings(&l->d), 0);
	m5_link_kick(&l->link.ib.base);
	cr_expect_eq(sq_device_rings(&l->d), 1);
	cr_expect_eq(l->link.sq.rung, 3);
	m5_link_kick(&l->link.ib.base);
	cr_expect_eq(sq_device_rings(&l->d), 1, "nothing to show");
	teardown();
}

Test(m5_bulk, consumer_word_is_read_once_at_a_time)
{
	uint64_t value = 1, at;

	setup(16, 0, NULL);
	cr_expect_eq(m5_link_read_consumer(&l->link.ib.base, &value), 0);
	EXPECT_AT(fake_link_wqe(l, 0), 0, 0, 0, 0x10, 0x12, 0x34, 0x56, 3, 0, 0, 0, 8, 0, 0, 0, 0,
		  0, 0, 0x7e, 0, 0, 0, 0, 0, 0, 0x33, 0x33, 0x33, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0x11,
		  0x11, 0x11);
	memcpy(&at, fake_link_wqe(l, 0) + 40, 8);
	cr_expect_eq(be64toh(at), (uintptr_t)l->page);
	cr_expect_eq(m5_link_read_consumer(&l->link.ib.base, &value), -FI_EAGAIN);
	teardown();
}
