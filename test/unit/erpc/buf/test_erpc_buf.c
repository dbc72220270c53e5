/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Message buffers: sizes, and no reuse while the device reads them. */
#include "erpc/buf/erpc_buf.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#define INLINE_MAX 64u
#define MANY       40u

static struct dev_dgram dg = { .inline_max = INLINE_MAX, .mtu = 1024 };
static struct erpc_bufs bufs;

/* ---- device that registers memory ---- */

/** Registration: `mem` is first, so that it converts. */
struct reg {
	struct dev_mem mem;
	const uint8_t *addr;
	size_t len;
};

static unsigned reg_cnt;
static int reg_err;

static int reg_mem(struct dev *dev, const void *addr, size_t len, unsigned access,
		   struct dev_mem **mem)
{
	struct reg *r = calloc(1, sizeof(*r));

	cr_assert_eq(access, DEV_MEM_LOCAL);
	if (reg_err) {
		free(r);
		return reg_err;
	}
	*r = (struct reg){ .addr = addr, .len = len };
	*mem = &r->mem;
	reg_cnt++;
	return 0;
}

static void dereg_mem(struct dev *dev, struct dev_mem *mem)
{
	free(mem);
	reg_cnt--;
}

static const struct dev_ops reg_ops = { .mem_reg = reg_mem, .mem_dereg = dereg_mem };

static void setup(void)
{
	erpc_bufs_init(&bufs, &dg, NULL, NULL);
}

static void teardown(void)
{
	cr_expect_eq(bufs.used_cnt, 0);
	erpc_bufs_fini(&bufs);
}

/** Returns a buffer of `len` bytes that was sent as datagram `number`. */
static struct erpc_buf *sent_buf(uint32_t len, uint32_t number)
{
	struct erpc_buf *buf = erpc_buf_alloc(&bufs, len);

	buf->len = len;
	buf->sent = true;
	buf->last_tx = number;
	return buf;
}

/* ---- allocation ---- */

Test(erpc_buf, buffers_do_not_overlap, .init = setup, .fini = teardown)
{
	static const uint32_t lens[] = { 0,
					 1,
					 ERPC_BUF_TINY,
					 ERPC_BUF_TINY + 1,
					 ERPC_BUF_SMALL,
					 ERPC_BUF_SMALL + 1,
					 ERPC_BUF_LONG,
					 ERPC_BUF_LONG + 1,
					 ERPC_BUF_LARGE - 1,
					 ERPC_BUF_LARGE };
	enum { LENS = sizeof(lens) / sizeof(lens[0]) };
	static struct erpc_buf *all[LENS][MANY];
	unsigned i, k, at;

	for (i = 0; i < LENS * MANY; i++) {
		struct erpc_buf *buf = erpc_buf_alloc(&bufs, lens[i % LENS]);

		cr_assert_not_null(buf);
		cr_assert_geq(buf->cap, lens[i % LENS]);
		cr_assert_eq(buf->len, 0);
		cr_assert_not(buf->sent || buf->resent);
		cr_assert_eq((uintptr_t)buf->data % 64, 0);
		cr_assert_eq(buf->hdr + WIRE_ERPC_HDR_LEN, buf->data);
		memset(buf->hdr, (int)(i & 0xFF), WIRE_ERPC_HDR_LEN);
		memset(buf->data, (int)(i & 0xFF), buf->cap);
		all[i % LENS][i / LENS] = buf;
	}
	cr_expect_eq(bufs.used_cnt, LENS * MANY);
	for (k = 0; k < LENS; k++)
		for (i = 0; i < MANY; i++) {
			for (at = 0; at < WIRE_ERPC_HDR_LEN; at++)
				cr_assert_eq(all[k][i]->hdr[at], (LENS * i + k) & 0xFF);
			for (at = 0; at < all[k][i]->cap; at++)
				cr_assert_eq(all[k][i]->data[at], (LENS * i + k) & 0xFF);
			erpc_buf_free(&bufs, all[k][i]);
		}
}

Test(erpc_buf, more_than_the_largest_is_refused, .init = setup, .fini = teardown)
{
	struct erpc_buf *buf = erpc_buf_alloc(&bufs, ERPC_BUF_LARGE);

	cr_expect_null(erpc_buf_alloc(&bufs, ERPC_BUF_LARGE + 1));
	cr_expect_null(erpc_buf_alloc(&bufs, UINT32_MAX));
	cr_expect_null(erpc_buf_grow(&bufs, buf, ERPC_BUF_LARGE + 1));
	cr_expect_eq(bufs.used_cnt, 1, "the buffer remains");
	erpc_buf_free(&bufs, buf);
	erpc_buf_free(&bufs, NULL);
}

Test(erpc_buf, growing_keeps_the_bytes, .init = setup, .fini = teardown)
{
	static const uint32_t to[] = { ERPC_BUF_SMALL, ERPC_BUF_LONG, ERPC_BUF_LARGE };
	struct erpc_buf *buf = erpc_buf_alloc(&bufs, 1);
	unsigned i, at;
	uint32_t len;

	for (i = 0; i < 3; i++) {
		len = buf->len = buf->cap;
		for (at = 0; at < buf->len; at++)
			buf->data[at] = (uint8_t)(at * 7 + i);
		buf = erpc_buf_grow(&bufs, buf, to[i]);
		cr_assert_geq(buf->cap, to[i]);
		cr_assert_eq(buf->len, len);
		for (at = 0; at < buf->len; at++)
			cr_assert_eq(buf->data[at], (uint8_t)(at * 7 + i));
		cr_expect_eq(bufs.used_cnt, 1);
	}
	erpc_buf_free(&bufs, buf);
}

Test(erpc_buf, reuse_takes_no_more_memory, .init = setup, .fini = teardown)
{
	struct erpc_buf *two[2];
	unsigned i, k;
	size_t mem = 0;

	cr_expect_eq(bufs.mem, 0, "without messages there is no buffer");
	for (i = 0; i < 10000; i++) {
		for (k = 0; k < 2; k++)
			two[k] = erpc_buf_alloc(&bufs, ERPC_BUF_TINY);
		mem = mem ? mem : bufs.mem;
		for (k = 0; k < 2; k++)
			erpc_buf_free(&bufs, two[k]);
	}
	cr_expect_gt(mem, 0);
	cr_expect_eq(bufs.mem, mem);
}

/* ---- wait for the device ---- */

Test(erpc_buf, only_bytes_that_the_device_did_not_copy_wait, .init = setup, .fini = teardown)
{
	uint32_t copied = INLINE_MAX - WIRE_ERPC_HDR_LEN;

	dg.tx_posted = 1;
	erpc_buf_free(&bufs, sent_buf(copied, 0));
	cr_expect_eq(bufs.used_cnt, 0);
	erpc_buf_free(&bufs, sent_buf(copied + 1, 0));
	cr_expect_eq(bufs.used_cnt, 1);
	erpc_bufs_reap_cold(&bufs);
	cr_expect_eq(bufs.used_cnt, 1);
	dg.tx_done = 1;
	erpc_bufs_reap_cold(&bufs);
	cr_expect_eq(bufs.used_cnt, 0);
	erpc_buf_free(&bufs, sent_buf(copied + 1, 0));
	cr_expect_eq(bufs.used_cnt, 0, "the device has completed the datagram");
}

/** The device counts modulo 2^32. */
Test(erpc_buf, no_buffer_is_reused_while_the_device_reads_it, .init = setup, .fini = teardown)
{
	static const uint32_t firsts[] = { 0, 0x7FFFFFF8u, 0xFFFFFFF8u };
	struct erpc_buf *all[16], *got;
	unsigned i, k, m, mask;

	for (k = 0; k < 3; k++) {
		dg.tx_done = firsts[k];
		dg.tx_posted = firsts[k] + 16;
		for (i = 0; i < 16; i++)
			all[i] = sent_buf(ERPC_BUF_TINY, firsts[k] + i);
		for (i = 0; i < 16; i++)
			erpc_buf_free(&bufs, all[i]);
		for (i = 0; i <= 16; i++) {
			dg.tx_done = firsts[k] + i;
			erpc_bufs_reap_cold(&bufs);
			cr_assert_eq(bufs.used_cnt, 16 - i);
			got = erpc_buf_alloc(&bufs, ERPC_BUF_TINY);
			for (m = i, mask = 0; m < 16; m++)
				mask |= got == all[m];
			cr_assert_not(mask);
			erpc_buf_free(&bufs, got);
		}
	}
}

/* A response is kept until the next request, which other sessions may be long before. */
Test(erpc_buf, a_buffer_that_was_sent_long_ago_holds_up_nothing, .init = setup, .fini = teardown)
{
	static const uint32_t ages[] = { 1, INT32_MAX, 1u << 31, UINT32_MAX - 100 };

	for (unsigned i = 0; i < 4; i++) {
		dg.tx_done = ages[i] + 1;
		dg.tx_posted = dg.tx_done + 1;
		erpc_buf_free(&bufs, sent_buf(ERPC_BUF_TINY, 1));
		cr_expect_eq(bufs.used_cnt, 0, "after %u", ages[i]);
		erpc_buf_free(&bufs, sent_buf(ERPC_BUF_TINY, dg.tx_done));
		cr_expect_eq(bufs.used_cnt, 1);
		dg.tx_done++;
		erpc_bufs_reap_cold(&bufs);
		cr_assert_eq(bufs.used_cnt, 0, "after %u", ages[i]);
	}
}

/**
 * For example, a session ends between two bursts: no report will come, and other buffers wait
 * behind.
 */
Test(erpc_buf, a_buffer_never_sent_is_free_at_once, .init = setup, .fini = teardown)
{
	struct erpc_buf *buf;
	unsigned i;

	dg.tx_done = dg.tx_posted = 100;
	/* The memory was used before by a buffer that was sent late. */
	buf = sent_buf(ERPC_BUF_TINY, 99);
	erpc_buf_free(&bufs, buf);
	dg.tx_done = dg.tx_posted = 99u + (1u << 31);
	for (i = 0; i < 2; i++) {
		buf = erpc_buf_alloc(&bufs, ERPC_BUF_TINY);
		buf->len = ERPC_BUF_TINY;
		buf->sent = true;
		erpc_buf_free(&bufs, buf);
		cr_expect_eq(bufs.used_cnt, 0);
		dg.tx_done = dg.tx_posted = 50;
	}
	dg.tx_done = dg.tx_posted = 0;
	buf = erpc_buf_alloc(&bufs, ERPC_BUF_SMALL);
	buf->len = ERPC_BUF_SMALL;
	buf->sent = true;
	erpc_buf_free(&bufs, buf);
	erpc_bufs_reap_cold(&bufs);
	cr_expect_eq(bufs.used_cnt, 0);
}

Test(erpc_buf, memory_is_registered_and_deregistered)
{
	static const uint32_t lens[] = { ERPC_BUF_TINY, ERPC_BUF_SMALL, ERPC_BUF_LONG,
					 ERPC_BUF_LARGE };
	const struct reg *r;
	struct erpc_buf *buf;
	unsigned i;

	erpc_bufs_init(&bufs, &dg, NULL, &reg_ops);
	reg_err = -FI_ENOMEM;
	cr_expect_null(erpc_buf_alloc(&bufs, 1));
	cr_expect_eq(bufs.used_cnt, 0);
	reg_err = 0;
	for (i = 0; i < 4 * MANY; i++) {
		buf = erpc_buf_alloc(&bufs, lens[i % 4]);
		r = (const struct reg *)buf->mem;
		cr_assert_not_null(r);
		cr_assert_geq(buf->hdr, r->addr);
		cr_assert_leq(buf->data + buf->cap, r->addr + r->len);
	}
	erpc_bufs_fini(&bufs);
	cr_expect_eq(reg_cnt, 0);
}
