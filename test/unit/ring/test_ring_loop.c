/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Events handled by one progress call. (ring_rx.h) */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "ring/ring_rx.h"
#include "support/ring_pair.h"
#include "support/up_count.h"

static struct ring_pair pair;
static struct ring_end *a, *b;
static const struct core_upcalls upcalls = {
	.on_msg = up_count_msg,
	.on_get_done = up_count_get,
	.on_down = up_count_down,
};

static void start(bool direct, uint64_t len)
{
	const struct ring_pair_cfg cfg = { .direct = direct, .rx_len = { len, len }, .seed = 1 };

	ring_pair_flush = (struct ring_flush_cfg){ .best_len = 4096, .cheap_signal = true };
	ring_pair_init(&pair, &cfg, &upcalls);
	a = &pair.end[0];
	b = &pair.end[1];
	a->dev.eager = b->dev.eager = true;
	a->dev.sq_len = b->dev.sq_len = 1000;
}

static int send_byte(struct ring_end *end)
{
	struct iovec iov = { .iov_base = "b", .iov_len = 1 };
	struct core_frame frame = ring_frame(1, &iov);

	return end->conn.eng.chan.ops->send(&end->conn.eng.chan, &frame, 0);
}

Test(ring_loop, one_progress_call_handles_a_bounded_number_of_batches)
{
	unsigned i;

	start(true, 65536);
	for (i = 0; i < RING_RX_BUDGET + 10; i++)
		cr_assert_eq(send_byte(a), 0);
	ring_end_progress(b);
	cr_expect_eq(up_count.msg_cnt, RING_RX_BUDGET);
	ring_end_progress(b);
	cr_expect_eq(up_count.msg_cnt, RING_RX_BUDGET + 10);
	ring_pair_fini(&pair);
}

Test(ring_loop, an_idle_progress_call_changes_nothing)
{
	struct ring_conn before;

	start(true, 1024);
	before = a->conn;
	ring_end_progress(a);
	cr_expect_arr_eq(&a->conn, &before, sizeof(before));
	ring_pair_fini(&pair);
}

Test(ring_loop, a_completed_read_frees_space_and_permits_another)
{
	start(false, 1024);
	while (!send_byte(a))
		;
	cr_expect_eq(a->conn.read, RING_READ_POSTED);
	ring_end_progress(a);
	cr_expect_eq(a->conn.read, RING_READ_PAUSE, "the read brought no advance");
	ring_end_progress(b);
	a->conn.read_next_ns = 0;
	cr_expect_eq(send_byte(a), -FI_EAGAIN);
	ring_end_progress(a);
	cr_expect_eq(a->conn.tx.flow.remote_consumer, a->conn.tx.flow.producer);
	ring_pair_fini(&pair);
}

Test(ring_loop, a_stale_read_value_is_ignored)
{
	struct dev_event ev = { .kind = DEV_EV_READ, .value = 32 };

	start(false, 1024);
	send_byte(a);
	send_byte(a);
	a->conn.tx.flow.remote_consumer = 64;
	ring_rx_event_cold(&a->conn, &ev);
	cr_expect_eq(a->conn.eng.err, 0);
	cr_expect_eq(a->conn.tx.flow.remote_consumer, 64);
	ring_pair_fini(&pair);
}

Test(ring_loop, a_read_value_beyond_the_sent_bytes_fails_the_connection)
{
	struct dev_event ev = { .kind = DEV_EV_READ, .value = 96 };

	start(false, 1024);
	send_byte(a);
	ring_rx_event_cold(&a->conn, &ev);
	cr_expect_eq(a->conn.eng.err, -FI_EIO);
	cr_expect_eq(a->conn.tx.flow.remote_consumer, 0);
	ring_pair_fini(&pair);
}

Test(ring_loop, an_invalid_consumer_word_fails_the_connection)
{
	start(true, 1024);
	while (!send_byte(a))
		;
	*b->link->consumer_word = 1 << 20;
	cr_expect_neq(send_byte(a), 0);
	cr_expect_eq(a->conn.eng.err, -FI_EIO);
	ring_end_progress(a);
	cr_expect_eq(up_count.down_cnt, 1);
	ring_pair_fini(&pair);
}

static int get_bytes(char *to, const char *from, size_t len, struct core_get *get)
{
	static struct iovec iov;

	iov = (struct iovec){ .iov_base = to, .iov_len = len };
	*get = (struct core_get){
		.remote_addr = (uintptr_t)from, .iov = &iov, .iov_cnt = 1, .len = len, .status = 1
	};
	return a->conn.eng.chan.ops->get(&a->conn.eng.chan, get);
}

Test(ring_loop, a_get_may_end_at_once)
{
	struct core_get get;
	char to[6] = "";

	start(true, 1024);
	cr_expect_eq(get_bytes(to, "bytes", 6, &get), 1);
	cr_expect_eq(get.status, 0);
	cr_expect_str_eq(to, "bytes");
	ring_end_progress(a);
	cr_expect_eq(up_count.get_cnt, 0);
	ring_pair_fini(&pair);
}

/** Overwrites the stack below its caller's frame. */
static __attribute__((noinline)) void scribble(void)
{
	volatile char junk[4096];
	size_t i;

	for (i = 0; i < sizeof(junk); i++)
		junk[i] = (char)0xA5;
}

Test(ring_loop, a_get_may_end_later)
{
	struct core_get get;
	char to[6] = "";

	start(true, 1024);
	a->dev.get_later = true;
	cr_expect_eq(get_bytes(to, "bytes", 6, &get), 0);
	scribble();
	ring_end_progress(a);
	cr_expect_eq(up_count.get_cnt, 1);
	cr_expect_eq(up_count.get, &get);
	cr_expect_eq(get.status, 0);
	cr_expect_str_eq(to, "bytes");
	ring_pair_fini(&pair);
}

Test(ring_loop, a_dead_link_fails_its_connection_with_its_status)
{
	start(true, 1024);
	fake_link_of(a->link)->down = -FI_ECONNRESET;
	ring_end_progress(a);
	cr_expect_eq(up_count.down_cnt, 1);
	cr_expect_eq(up_count.down_err, -FI_ECONNRESET);
	ring_pair_fini(&pair);
}

Test(ring_loop, a_dirty_connection_that_fails_is_not_flushed)
{
	struct wire_meta bad = { .reserved = 1 };

	start(true, 1024);
	cr_assert_eq(a->conn.eng.chan.ops->send(&a->conn.eng.chan, &(struct core_frame){ .op = 1 },
						CORE_SEND_MORE),
		     0);
	send_byte(b);
	memcpy(b->link->tx_base, &bad, 24);
	memcpy(fake_link_of(b->link)->image, &bad, 24);
	ring_end_progress(a);
	cr_expect_eq(up_count.down_cnt, 1);
	cr_expect_eq(a->dev.write_cnt, 0);
	ring_pair_fini(&pair);
}
