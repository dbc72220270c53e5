/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Delivery of arrived messages and end of open operations when the peer is gone. (ring_life.c) */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "engine/eng_event.h"
#include "support/ring_pair.h"

static struct ring_pair pair;
static struct ring_end *a, *b;
static char story[64];
static unsigned delivered_cnt;

static void tell(char what)
{
	story[strlen(story)] = what;
}

static enum core_rx_verdict tell_msg(struct core_chan *chan, uint32_t op, const uint8_t *data,
				     uint32_t len, core_retain_t retain)
{
	tell('m');
	return CORE_RX_DONE;
}

static void tell_get(struct core_chan *chan, struct core_get *get)
{
	tell('g');
}

static void tell_down(struct core_chan *chan, int err)
{
	tell(err == -FI_ECONNRESET ? 'd' : err == -FI_EIO ? 'e' : '?');
}

static const struct core_upcalls upcalls = {
	.on_msg = tell_msg,
	.on_get_done = tell_get,
	.on_down = tell_down,
};

static void start(bool direct)
{
	const struct ring_pair_cfg cfg = { .direct = direct, .rx_len = { 4096, 4096 }, .seed = 1 };

	ring_pair_init(&pair, &cfg, &upcalls);
	a = &pair.end[0];
	b = &pair.end[1];
	a->dev.eager = b->dev.eager = true;
	a->conn.eng.up_reported = true;
	a->engine.event_fd = -1;
}

static void send_some(struct ring_end *end, unsigned cnt)
{
	struct iovec iov = { .iov_base = "some", .iov_len = 4 };
	struct core_frame frame = ring_frame(1, &iov);

	while (cnt--)
		cr_assert_eq(end->conn.eng.chan.ops->send(&end->conn.eng.chan, &frame, 0), 0);
}

static void peer_is_gone(void)
{
	struct eng_event ev = { .kind = ENG_EVENT_DOWN,
				.conn = &a->conn.eng,
				.err = -FI_ECONNRESET };

	eng_event_push(&a->engine, &ev);
	eng_events_cold(&a->engine);
}

Test(ring_life, everything_received_is_delivered_before_the_end)
{
	start(true);
	send_some(b, 3);
	peer_is_gone();
	cr_expect_str_eq(story, "mmmd");
	cr_expect_eq(a->conn.eng.err, -FI_ECONNRESET);
	ring_pair_fini(&pair);
}

Test(ring_life, completed_reads_and_gets_are_delivered_before_the_end)
{
	static char to[4];
	struct iovec iov = { .iov_base = to, .iov_len = 4 };
	struct core_get get = {
		.remote_addr = (uintptr_t) "from", .iov = &iov, .iov_cnt = 1, .len = 4
	};
	uint64_t value;

	start(false);
	a->dev.get_later = true;
	cr_assert_eq(a->conn.eng.chan.ops->get(&a->conn.eng.chan, &get), 0);
	cr_assert_eq(a->link->ops->read_consumer(a->link, &value), 0);
	send_some(b, 1);
	fake_link_deliver(b->link);
	peer_is_gone();
	cr_expect_str_eq(story, "mgd");
	cr_expect_eq(get.status, 0);
	ring_pair_fini(&pair);
}

Test(ring_life, an_invalid_last_batch_is_the_reported_reason)
{
	start(true);
	send_some(b, 2);
	memset(b->link->tx_base, 0xFF, 24);
	memset(fake_link_of(b->link)->image, 0xFF, 24);
	peer_is_gone();
	cr_expect_str_eq(story, "e");
	cr_expect(util_list_is_empty(&a->engine.failed), "the failure is reported once");
	ring_pair_fini(&pair);
}

Test(ring_life, a_connection_that_failed_and_went_down_is_reported_once)
{
	start(true);
	ring_conn_fail_cold(&a->conn, -FI_EIO, "test");
	peer_is_gone();
	cr_expect_str_eq(story, "e");
	ring_pair_fini(&pair);
}

static enum core_rx_verdict ask_for_more(struct core_chan *chan, uint32_t op, const uint8_t *data,
					 uint32_t len, core_retain_t retain)
{
	cr_assert_lt(++delivered_cnt, 1000, "drain does not end");
	send_some(b, 1);
	return CORE_RX_DONE;
}

Test(ring_life, a_peer_that_keeps_sending_does_not_block_drain)
{
	static const struct core_upcalls endless = { .on_msg = ask_for_more };

	start(true);
	a->conn.eng.up = &endless;
	send_some(b, 3);
	a->conn.eng.transport->ops->drain(&a->conn.eng);
	cr_expect_geq(delivered_cnt, 3, "everything received before");
	cr_expect_eq(a->conn.eng.err, 0);
	ring_pair_fini(&pair);
}
