/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory is registered exactly as long as a device may move it. (ring_bulk.c)
 *
 * The fake NIC ends the test if it moves unregistered memory, and counts registrations.
 */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "ring/ring_bulk.h"
#include "ring/ring_transport.h"
#include "support/ring_pair.h"

static struct ring_pair pair;
static struct ring_end *a, *b;
static struct core_get *done;
static bool down;

static void on_done(struct core_chan *chan, struct core_get *get)
{
	cr_assert_eq(chan, &a->conn.eng.chan);
	cr_assert_not(down, "gets end before the channel");
	done = get;
}

static void on_down(struct core_chan *chan, int err)
{
	down = true;
}

static const struct core_upcalls upcalls = { .on_get_done = on_done, .on_down = on_down };

static void start(void)
{
	const struct ring_pair_cfg cfg = { .rx_len = { 4096, 4096 }, .seed = 1 };
	int i;

	ring_pair_init(&pair, &cfg, &upcalls);
	for (i = 0; i < 2; i++) {
		ring_end_transport(&pair.end[i])->dev_ops = &fake_nic_ops;
		pair.end[i].dev.eager = true;
		pair.end[i].dev.registers = true;
		pair.end[i].dev.get_later = true;
		pair.end[i].conn.attached = true;
		pair.end[i].conn.eng.attached = true;
		pair.end[i].conn.eng.up_reported = true;
		pair.end[i].engine.event_fd = -1;
	}
	a = &pair.end[0];
	b = &pair.end[1];
}

static uint8_t source[4096], sink[4096];
static struct core_exposure exposure;
static struct iovec iov[2] = { { sink, 1000 }, { sink + 1000, 3096 } };

static void expose(void)
{
	memset(source, 0x5A, sizeof(source));
	memset(sink, 0, sizeof(sink));
	exposure.chan = &b->conn.eng.chan;
	cr_assert_eq(ring_bulk_expose(&b->conn.eng.chan, source, sizeof(source), &exposure), 0);
	cr_expect_neq(exposure.key, 0);
}

static struct core_get request(size_t len)
{
	return (struct core_get){ .remote_addr = (uintptr_t)source,
				  .remote_key = exposure.key,
				  .iov = iov,
				  .iov_cnt = 2,
				  .len = len };
}

/** Starts a get of the whole exposure. */
static void start_get(struct core_get *get)
{
	start();
	expose();
	*get = request(4096);
	cr_assert_eq(ring_bulk_get(&a->conn.eng.chan, get), 0);
	cr_expect_eq(a->dev.mem_cnt, 2);
}

Test(ring_bulk, a_get_registers_its_buffers_until_it_ends)
{
	struct core_get get;

	start_get(&get);
	ring_end_progress(a);
	cr_assert_eq(done, &get);
	cr_expect_eq(get.status, 0);
	cr_expect_arr_eq(source, sink, 4096);
	cr_expect_eq(a->dev.mem_cnt, 0);
	cr_expect_eq(b->dev.mem_cnt, 1, "the exposure stays registered");
	ring_bulk_unexpose(&b->conn.eng.chan, &exposure);
	cr_expect_eq(b->dev.mem_cnt, 0);
	ring_pair_fini(&pair);
}

Test(ring_bulk, empty_buffers_are_not_registered)
{
	struct core_get get;

	start();
	expose();
	iov[0].iov_len = 0;
	get = request(3096);
	cr_assert_eq(ring_bulk_get(&a->conn.eng.chan, &get), 0);
	cr_expect_eq(a->dev.mem_cnt, 1);
	ring_end_progress(a);
	cr_expect_eq(done, &get);
	ring_bulk_unexpose(&b->conn.eng.chan, &exposure);
	ring_pair_fini(&pair);
}

Test(ring_bulk, a_failed_registration_is_an_error_and_leaves_nothing)
{
	struct core_get get;
	struct core_exposure other = { 0 };

	start();
	other.chan = &b->conn.eng.chan;
	expose();
	b->dev.fail_reg = -FI_ENOMEM;
	cr_expect_eq(ring_bulk_expose(&b->conn.eng.chan, source, 8, &other), -FI_ENOMEM);
	a->dev.fail_reg = -FI_ENOMEM;
	get = request(4096);
	cr_expect_eq(ring_bulk_get(&a->conn.eng.chan, &get), -FI_ENOMEM);
	cr_expect(util_list_is_empty(&a->conn.gets));
	a->dev.fail_reg = 0;
	ring_bulk_unexpose(&b->conn.eng.chan, &exposure);
	ring_pair_fini(&pair);
}

Test(ring_bulk, a_refused_get_leaves_nothing)
{
	struct core_get first, second;

	start();
	expose();
	first = request(4096);
	second = request(4096);
	cr_assert_eq(ring_bulk_get(&a->conn.eng.chan, &first), 0);
	cr_expect_eq(ring_bulk_get(&a->conn.eng.chan, &second), -FI_EAGAIN);
	cr_expect_eq(a->dev.mem_cnt, 2);
	ring_end_progress(a);
	cr_expect_eq(a->dev.mem_cnt, 0);
	ring_bulk_unexpose(&b->conn.eng.chan, &exposure);
	ring_pair_fini(&pair);
}

Test(ring_bulk, a_connection_that_stops_deregisters_the_buffers_of_its_gets)
{
	struct core_get get;

	start_get(&get);
	ring_life_stop(&a->conn.eng);
	memset(&get, 0xFF, sizeof(get)); /* core may free it now */
	cr_expect_eq(a->dev.mem_cnt, 0);
	cr_expect(util_list_is_empty(&a->conn.gets));
	cr_expect_null(done);
	ring_bulk_unexpose(&b->conn.eng.chan, &exposure);
	a->link->ops->attach(a->link);
	ring_pair_fini(&pair);
}

Test(ring_bulk, the_end_of_a_link_ends_its_gets_and_their_memory_access)
{
	struct core_get get;

	start_get(&get);
	ring_conn_fail_cold(&a->conn, -FI_EIO, "test");
	eng_events_cold(&a->engine);
	cr_assert_eq(done, &get);
	cr_expect(down);
	cr_expect_eq(get.status, -FI_EIO);
	cr_expect_eq(a->dev.mem_cnt, 0);
	cr_expect_eq(sink[0], 0);
	cr_expect_not(a->conn.attached);
	cr_expect_eq(ring_bulk_get(&a->conn.eng.chan, &get), -FI_EIO, "no new one");
	ring_bulk_unexpose(&b->conn.eng.chan, &exposure);
	a->link->ops->attach(a->link);
	ring_pair_fini(&pair);
}
