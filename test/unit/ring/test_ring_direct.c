/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Local buffers of direct accesses: in the work request, registered by the caller, in a slot, or
 * registered for the access. (ring_direct.c, ring_bounce.c)
 *
 * The fake NIC ends the test if it moves unregistered memory, and counts registrations.
 */
#include <criterion/criterion.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "core/core_reg.h"
#include "ring/ring_bulk.h"
#include "ring/ring_direct.h"
#include "support/ring_pair.h"

#define LEN 40000u

static struct ring_pair pair;
static struct ring_end *a, *b;
static struct core_get *done;
static struct core_reg *theirs;
static uint8_t far[LEN], near[LEN];
static struct iovec iov[2];

static void on_done(struct core_chan *chan, struct core_get *get)
{
	done = get;
}

static void on_down(struct core_chan *chan, int err)
{
}

static const struct core_upcalls upcalls = { .on_get_done = on_done, .on_down = on_down };

static void start(void)
{
	const struct ring_pair_cfg cfg = { .rx_len = { 4096, 4096 }, .seed = 1 };

	ring_pair_init(&pair, &cfg, &upcalls);
	for (int i = 0; i < 2; i++) {
		ring_end_transport(&pair.end[i])->dev_ops = &fake_nic_ops;
		pair.end[i].dev.eager = true;
		pair.end[i].dev.registers = true;
		pair.end[i].dev.get_later = true;
		pair.end[i].conn.attached = true;
		pair.end[i].conn.eng.attached = true;
		pair.end[i].conn.eng.up_reported = true;
		pair.end[i].conn.eng.chan.reg_dev = &pair.end[i];
		pair.end[i].engine.event_fd = -1;
	}
	a = &pair.end[0];
	b = &pair.end[1];
	cr_assert_eq(ring_direct_reg(&b->conn.eng.chan, far, LEN, FI_REMOTE_READ | FI_REMOTE_WRITE,
				     &theirs),
		     0);
	for (uint32_t i = 0; i < LEN; i++) {
		far[i] = (uint8_t)(i * 3);
		near[i] = (uint8_t)(i * 5 + 1);
	}
}

static void stop(void)
{
	theirs->close(theirs);
	cr_expect_eq(b->dev.mem_cnt, 0);
	ring_bounce_fini(&ring_end_transport(a)->bounce, &fake_nic_ops, fake_dev_of(&a->dev));
	cr_expect_eq(a->dev.mem_cnt, 0);
	ring_pair_fini(&pair);
}

static struct core_get transfer(size_t len)
{
	iov[0] = (struct iovec){ near, len / 2 };
	iov[1] = (struct iovec){ near + 20000, len - len / 2 };
	return (struct core_get){ .remote_addr = (uintptr_t)far + 7,
				  .remote_key = theirs->key,
				  .iov = iov,
				  .iov_cnt = 2,
				  .len = len };
}

/** Makes an access; `regs`: registrations while it is in progress. */
static void run(struct core_get *get, unsigned flags, unsigned regs)
{
	done = NULL;
	cr_assert_eq(ring_direct(&a->conn.eng.chan, get, flags), 0);
	cr_expect_eq(a->dev.mem_cnt, regs, "%zu bytes: %u", get->len, a->dev.mem_cnt);
	for (int i = 0; i < 3 && !done; i++)
		ring_end_progress(a);
	cr_assert_eq(done, get);
	cr_expect_eq(get->status, 0);
}

static void expect_moved(size_t len)
{
	cr_expect_arr_eq(far + 7, near, len / 2);
	cr_expect_arr_eq(far + 7 + len / 2, near + 20000, len - len / 2);
}

Test(ring_direct, length_selects_how_the_bytes_get_to_the_device)
{
	static const struct {
		size_t len;
		bool write;
		unsigned during, after; /* registrations */
	} rows[] = {
		{ 1, true, 0, 0 },
		{ FAKE_INLINE_MAX, true, 0, 0 },
		{ FAKE_INLINE_MAX + 1, true, 1, 1 }, /* a chunk of slots, which stays */
		{ 2, false, 1, 1 },
		{ RING_BOUNCE_LEN, true, 1, 1 },
		{ RING_BOUNCE_LEN, false, 1, 1 },
		{ RING_BOUNCE_LEN + 1, true, 3, 1 },
		{ RING_BOUNCE_LEN + 1, false, 3, 1 },
	};

	start();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct core_get get = transfer(rows[i].len);

		memset(rows[i].write ? far : near, (int)i, LEN);
		run(&get, rows[i].write ? CORE_DIRECT_WRITE : 0, rows[i].during);
		expect_moved(rows[i].len);
		cr_expect_eq(a->dev.mem_cnt, rows[i].after);
	}
	stop();
}

Test(ring_direct, a_registration_of_the_caller_is_used)
{
	struct core_get get;
	struct core_reg *own;

	start();
	cr_assert_eq(ring_direct_reg(&a->conn.eng.chan, near, LEN, 0, &own), 0);
	get = transfer(20000);
	get.reg = own;
	run(&get, CORE_DIRECT_WRITE, 1);
	expect_moved(20000);
	memset(near, 0, LEN);
	run(&get, 0, 1);
	expect_moved(20000);
	own->close(own);
	stop();
}

Test(ring_direct, slots_come_back_and_their_number_is_limited)
{
	enum { MOST = RING_BOUNCE_SLOTS * RING_BOUNCE_CHUNKS_MAX };
	static struct ring_bounce_slot *slots[MOST];
	struct ring_bounce *bounce;
	int err;

	start();
	bounce = &ring_end_transport(a)->bounce;
	for (unsigned turn = 0; turn < 2; turn++) {
		for (unsigned i = 0; i < MOST; i++) {
			slots[i] =
				ring_bounce_get(bounce, &fake_nic_ops, fake_dev_of(&a->dev), &err);
			cr_assert_not_null(slots[i]);
			memset(slots[i]->bytes, 1, RING_BOUNCE_LEN);
		}
		cr_expect_null(ring_bounce_get(bounce, &fake_nic_ops, fake_dev_of(&a->dev), &err));
		cr_expect_eq(err, -FI_EAGAIN);
		for (unsigned i = 0; i < MOST; i++)
			ring_bounce_put(bounce, slots[i]);
		cr_expect_eq(a->dev.mem_cnt, RING_BOUNCE_CHUNKS_MAX);
	}
	stop();
}

Test(ring_direct, what_cannot_start_leaves_nothing)
{
	struct core_get first, second;

	start();
	a->dev.fail_reg = -FI_ENOMEM;
	first = transfer(100);
	cr_expect_eq(ring_direct(&a->conn.eng.chan, &first, 0), -FI_ENOMEM);
	first = transfer(20000);
	cr_expect_eq(ring_direct(&a->conn.eng.chan, &first, 0), -FI_ENOMEM);
	cr_expect_eq(a->dev.mem_cnt, 0);
	a->dev.fail_reg = 0;
	ring_end_transport(a)->bounce.err = 0;
	first = transfer(100);
	cr_assert_eq(ring_direct(&a->conn.eng.chan, &first, CORE_DIRECT_WRITE), 0);
	second = transfer(20000);
	cr_expect_eq(ring_direct(&a->conn.eng.chan, &second, CORE_DIRECT_WRITE), -FI_EAGAIN);
	cr_expect_eq(a->dev.mem_cnt, 1, "the slots");
	ring_end_progress(a);
	cr_expect_eq(done, &first);
	stop();
}

Test(ring_direct, with_more_the_device_sees_it_at_the_next_flush)
{
	struct core_get get;

	start();
	get = transfer(10);
	cr_assert_eq(ring_direct(&a->conn.eng.chan, &get, CORE_DIRECT_WRITE | CORE_DIRECT_MORE), 0);
	cr_expect_not(fake_link_of(a->conn.link)->shown);
	cr_expect_not(util_list_is_empty(&a->conn.dirty_link));
	for (int i = 0; i < 3 && !done; i++)
		ring_end_progress(a);
	cr_expect_eq(done, &get);
	cr_expect_eq(a->conn.eng.chan.stats->accesses, 1);
	cr_expect_eq(a->conn.eng.chan.stats->access_bytes, get.len);
	cr_expect_eq(a->conn.eng.chan.stats->gets, 0, "it is no get");
	stop();
}

Test(ring_direct, a_failed_connection_ends_it_and_returns_its_slot)
{
	struct ring_bounce *bounce;
	struct ring_bounce_slot *slot;
	struct core_get get;

	start();
	bounce = &ring_end_transport(a)->bounce;
	get = transfer(100);
	memset(near, 9, LEN);
	cr_assert_eq(ring_direct(&a->conn.eng.chan, &get, 0), 0);
	slot = bounce->free;
	ring_bulk_fail(&a->conn, -FI_ETIMEDOUT);
	cr_expect_eq(done, &get);
	cr_expect_eq(get.status, -FI_ETIMEDOUT);
	cr_expect_eq(a->conn.eng.chan.stats->access_errors, 1);
	cr_expect_eq(a->conn.eng.chan.stats->accesses, 0);
	cr_expect_eq(a->conn.eng.chan.stats->get_errors, 0, "it is no get");
	cr_expect_neq(bounce->free, slot);
	cr_expect_eq(near[0], 9, "no byte of a failed read");
	get = transfer(100);
	fake_link_of(a->conn.link)->get = NULL;
	cr_assert_eq(ring_direct(&a->conn.eng.chan, &get, 0), 0);
	ring_direct_drop(&a->conn.eng.chan, &get);
	cr_expect(util_list_is_empty(&a->conn.gets));
	fake_link_of(a->conn.link)->get = NULL;
	stop();
}

Test(ring_direct, registrations_of_regions_outlive_their_device)
{
	struct ring_transport *transport;
	struct core_reg *other;
	unsigned before;

	start();
	transport = ring_end_transport(b);
	before = b->dev.mem_cnt;
	cr_assert_eq(ring_direct_reg(&b->conn.eng.chan, near, LEN, FI_REMOTE_READ, &other), 0);
	ring_direct_regs_end(transport);
	cr_expect_eq(b->dev.mem_cnt, before - 1, "both are deregistered");
	cr_expect_null(theirs->mem);
	other->close(other); /* while there is no device */
	b->dev.fail_reg = -FI_ENOMEM;
	ring_direct_regs_renew(transport);
	cr_expect_null(theirs->mem);
	cr_expect_neq(theirs->dev, b->conn.eng.chan.reg_dev, "no access uses it");
	ring_direct_regs_end(transport);
	b->dev.fail_reg = 0;
	ring_direct_regs_renew(transport);
	cr_expect_eq(theirs->dev, b->conn.eng.chan.reg_dev);
	cr_expect_eq(b->dev.mem_cnt, before);
	cr_expect_eq(theirs->key, ((struct dev_mem *)theirs->mem)->remote_key);
	stop();
}
