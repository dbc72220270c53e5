/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Simple accesses leave by the policy of messages, and are reported once (ring_access.h). */
#include "ring/ring_access.h"

#include <criterion/criterion.h>

#include "ring/ring_bulk.h"
#include "support/ring_pair.h"

static struct ring_pair pair;
static struct ring_conn *conn;
static unsigned dev_flags, settled;
static const struct dev_mem *dev_mem;
static int dev_ret;
static uint32_t notified_cnt;
static uint8_t buf[64];

static int dev_access(struct dev_link *link, const void *bytes, uint32_t len, uint64_t remote_addr,
		      uint64_t remote_key, const struct dev_mem *mem, unsigned flags)
{
	dev_flags = flags;
	dev_mem = mem;
	link->access_cnt += !dev_ret;
	return dev_ret;
}

static int dev_settle(struct dev_link *link)
{
	settled++;
	return 0;
}

static const struct dev_link_ops dev = { .access = dev_access, .settle = dev_settle };

static void on_accessed(struct core_chan *chan, uint32_t cnt)
{
	notified_cnt++;
}

static const struct core_upcalls upcalls = { .on_accessed = on_accessed };

static void start(void)
{
	const struct ring_pair_cfg cfg = { .rx_len = { 4096, 4096 }, .seed = 1 };

	ring_pair_init(&pair, &cfg, &upcalls);
	conn = &pair.end[0].conn;
	conn->link->inline_max = 32;
	dev_ret = 0;
	settled = notified_cnt = 0;
}

static int access_of(size_t len, struct core_reg *reg, unsigned flags)
{
	struct core_access_args args = { .buf = buf, .len = len, .reg = reg, .flags = flags };

	return ring_access(&dev, conn, &args);
}

Test(ring_access, a_single_one_leaves_and_those_behind_it_wait_for_progress)
{
	start();
	cr_expect_eq(access_of(8, NULL, CORE_DIRECT_WRITE), 0);
	cr_expect_eq(dev_flags, DEV_ACCESS_WRITE);
	cr_expect(util_list_is_empty(&conn->dirty_link));
	cr_expect_eq(access_of(8, NULL, CORE_DIRECT_WRITE | CORE_DIRECT_NOW), 0);
	cr_expect_eq(dev_flags, DEV_ACCESS_WRITE, "now");
	cr_expect_eq(access_of(8, NULL, CORE_DIRECT_WRITE), 0);
	cr_expect_eq(dev_flags, DEV_ACCESS_WRITE | DEV_ACCESS_MORE);
	cr_expect_not(util_list_is_empty(&conn->dirty_link));
	util_list_remove(&conn->dirty_link);
	ring_access_ended(conn, 3);
	cr_expect_eq(access_of(8, NULL, CORE_DIRECT_WRITE | CORE_DIRECT_SILENT), 0);
	cr_expect_eq(dev_flags, DEV_ACCESS_WRITE | DEV_ACCESS_SILENT);
	ring_access_ended(conn, 4);
	cr_expect_eq(access_of(8, NULL, CORE_DIRECT_WRITE | CORE_DIRECT_MORE), 0);
	cr_expect_eq(dev_flags, DEV_ACCESS_WRITE | DEV_ACCESS_MORE);
	util_list_remove(&conn->dirty_link);
	ring_pair_fini(&pair);
}

Test(ring_access, only_short_writes_and_registered_buffers_are_taken)
{
	struct dev_mem mem;
	struct core_reg reg = { .mem = &mem };

	start();
	cr_expect_eq(access_of(32, &reg, CORE_DIRECT_WRITE), 0);
	cr_expect_null(dev_mem);
	cr_expect_eq(access_of(33, &reg, CORE_DIRECT_WRITE), 0);
	cr_expect_eq(dev_mem, &mem);
	cr_expect_eq(access_of(8, &reg, 0), 0);
	cr_expect_eq(dev_mem, &mem);
	cr_expect_eq(access_of(33, NULL, CORE_DIRECT_WRITE), -FI_ENOSYS);
	cr_expect_eq(access_of(8, NULL, 0), -FI_ENOSYS);
	cr_expect_eq(conn->link->access_cnt, 3);
	util_list_remove(&conn->dirty_link);
	ring_pair_fini(&pair);
}

Test(ring_access, what_is_refused_leaves_nothing)
{
	start();
	dev_ret = -FI_EAGAIN;
	cr_expect_eq(access_of(8, NULL, CORE_DIRECT_WRITE | CORE_DIRECT_MORE), -FI_EAGAIN);
	cr_expect(util_list_is_empty(&conn->dirty_link));
	dev_ret = 0;
	conn->tx.open = true;
	cr_expect_eq(access_of(8, NULL, CORE_DIRECT_WRITE | CORE_DIRECT_ORDERED), -FI_EAGAIN);
	cr_expect_eq(access_of(8, NULL, CORE_DIRECT_WRITE), 0);
	conn->tx.open = false;
	ring_pair_fini(&pair);
}

Test(ring_access, ends_are_reported_once_also_when_the_number_wraps)
{
	start();
	conn->accessed = conn->link->access_cnt = UINT32_MAX;
	cr_expect_not(ring_access_is_busy(&dev, conn));
	cr_expect_eq(access_of(8, NULL, CORE_DIRECT_WRITE), 0);
	cr_expect(ring_access_is_busy(&dev, conn));
	cr_expect_eq(settled, 1);
	ring_access_ended(conn, 0);
	cr_expect_eq(notified_cnt, 1);
	ring_access_ended(conn, UINT32_MAX - 3);
	ring_access_ended(conn, 0);
	cr_expect_eq(notified_cnt, 1, "no more than before");
	cr_expect_not(ring_access_is_busy(&dev, conn));
	ring_pair_fini(&pair);
}
