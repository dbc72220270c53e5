/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connected endpoints: core/core_conn.c. The oracle is fi_cm(3). */
#include "core/core_conn.h"

#include <criterion/criterion.h>
#include <netinet/in.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "core/core_chan_plain.h"
#include "core/core_cq.h"
#include "core/core_dom.h"
#include "core/core_ep.h"
#include "core/core_peer.h"
#include "core/msg/core_rx.h"
#include "core/msg/core_tx.h"
#include "support/fake_engine.h"

/* Engine that accepts each connect, and a domain with one connected endpoint. */
static struct {
	unsigned connects, accepts;
	int ret;
} engine;

static struct core_engine_ops ops;
static struct core_dom dom;
static struct core_ep ep;
static struct core_conn conn;
static struct core_cq cq;
static unsigned connected, failed, ended;
static int failed_err;
static char user_data[CORE_CONN_DATA_MAX + 1];

static int fake_ep_connect(struct core_engine_ep *eep, const struct sockaddr *addr,
			   const void *data, size_t len)
{
	engine.connects += !engine.ret;
	return engine.ret;
}

static int fake_ep_accept(struct core_engine_ep *eep, struct cm_connreq *connreq, const void *data,
			  size_t len)
{
	engine.accepts += !engine.ret;
	return engine.ret;
}

static void save_data(const void *data, size_t len)
{
	if (len)
		memcpy(user_data, data, len);
	user_data[len] = '\0';
}

static void on_connected(void *ctx, const void *data, size_t len)
{
	cr_assert_eq(ctx, &ep);
	connected++;
	save_data(data, len);
}

static void on_failed(void *ctx, int err, const void *data, size_t len)
{
	cr_assert_eq(ctx, &ep);
	failed++;
	failed_err = err;
	save_data(data, len);
}

static void on_ended(void *ctx)
{
	cr_assert_eq(ctx, &ep);
	ended++;
}

static void on_event(void *ctx)
{
	cr_assert_eq(ctx, &ep);
}

static const struct core_conn_ops conn_ops = { on_connected, on_failed, on_ended, on_event };

static const struct sockaddr_in listener = { .sin_family = AF_INET, .sin_port = 7 };

/* Channel without room. */
static unsigned closes;
static bool busy;

static int full_send(struct core_chan *chan, const struct core_frame *frame, unsigned flags)
{
	return -FI_EAGAIN;
}

static bool full_is_busy(struct core_chan *chan)
{
	return busy;
}

static void full_stop(struct core_chan *chan)
{
}

static void full_close(struct core_chan *chan)
{
	closes++;
}

static const struct core_chan_ops full_ops = {
	.send = full_send,
	.send_buf = core_chan_send_framed,
	.send_more = core_chan_send_more,
	.is_busy = full_is_busy,
	.stop = full_stop,
	.close = full_close,
};
static struct core_chan chan;

static const struct sockaddr_in cep = { .sin_family = AF_INET, .sin_port = 9 };

static void come_up(void)
{
	chan = (struct core_chan){ .ops = &full_ops, .eager_max = 1000, .caps = CORE_CHAN_WAKES };
	core_conn_on_up(&conn, &chan, (const struct sockaddr *)&cep, 4711);
}

static uint16_t port_of(const struct sockaddr_storage *addr)
{
	return ((const struct sockaddr_in *)addr)->sin_port;
}

static void setup(void)
{
	struct core_limits limits = { .eager_max = 1024,
				      .single_copy_min = SIZE_MAX,
				      .unexpected_mem = 1 << 20 };
	struct sockaddr_in any = { .sin_family = AF_INET };

	fake_engine_reset();
	ops = fake_engine_ops;
	ops.ep_connect = fake_ep_connect;
	ops.ep_accept = fake_ep_accept;
	cr_assert_eq(core_dom_init(&dom, &fake_progress_ops, &ops, &limits, false), 0);
	cr_assert_eq(core_cq_init(&cq, 16), 0);
	conn.ops = &conn_ops;
	conn.ctx = &ep;
	ep.conn = &conn;
	ep.tx.cq = &cq;
	ep.rx.cq = &cq;
	cr_assert_eq(core_ep_open(&ep, &dom, (struct sockaddr *)&any), 0);
}

static void teardown(void)
{
	core_ep_close(&ep);
	core_dom_fini(&dom);
	core_cq_fini(&cq);
}

TestSuite(core_conn, .init = setup, .fini = teardown);

static ssize_t try_send(fi_addr_t dest)
{
	struct iovec iov = { .iov_base = "x", .iov_len = 1 };
	struct core_send send = { .dest = dest, .iov = &iov, .iov_cnt = 1, .len = 1 };

	return core_tx_send(&ep, &send);
}

static void post(void *context)
{
	static char buf[8];
	struct iovec iov = { .iov_base = buf, .iov_len = sizeof(buf) };
	struct core_recv recv = { .src = 99, .iov = &iov, .iov_cnt = 1, .context = context };

	cr_assert_eq(core_rx_post(&ep, &recv), 0);
}

static unsigned cancelled(void)
{
	struct fi_cq_err_entry err;
	unsigned cnt = 0;

	while (memset(&err, 0, sizeof(err)), core_cq_read_err(&cq, &err) == 1) {
		cr_expect_eq(err.err, FI_ECANCELED);
		cnt++;
	}
	return cnt;
}

static int connect_to_listener(void)
{
	return core_conn_connect(&conn, (const struct sockaddr *)&listener, "hi", 2);
}

Test(core_conn, changes_state_as_documented)
{
	static const char *const allowed[] = { ".c..", "..uo", "...o", "...." };

	for (int from = 0; from < CORE_CONN_STATE_CNT; from++)
		for (int to = 0; to < CORE_CONN_STATE_CNT; to++)
			cr_expect_eq(core_conn_may(from, to), allowed[from][to] != '.', "%d %d",
				     from, to);
}

Test(core_conn, sends_need_a_connection_and_receives_do_not)
{
	post(&ep);
	cr_expect_eq(try_send(0), -FI_ENOTCONN);
	cr_expect_eq(try_send(FI_ADDR_UNSPEC), -FI_ENOTCONN);
	cr_assert_eq(connect_to_listener(), 0);
	cr_expect_eq(try_send(0), -FI_ENOTCONN);
	cr_expect_eq(core_conn_shutdown(&conn), -FI_ENOTCONN);
	core_conn_on_refused(&ep, -FI_ECONNREFUSED, "no", 2);
	cr_expect_eq(cancelled(), 1);
	cr_expect_eq(try_send(0), -FI_ESHUTDOWN);
}

Test(core_conn, is_connected_once)
{
	cr_assert_eq(connect_to_listener(), 0);
	cr_expect_eq(connect_to_listener(), -FI_EISCONN);
	cr_expect_eq(core_conn_accept(&conn, NULL, NULL, 0), -FI_EISCONN);
	core_conn_on_refused(&ep, -FI_ETIMEDOUT, NULL, 0);
	cr_expect_eq(connect_to_listener(), -FI_EISCONN);
	cr_expect_eq(engine.connects, 1);
	cr_expect_eq(engine.accepts, 0);
}

Test(core_conn, a_connect_that_failed_to_start_may_be_retried)
{
	engine.ret = -FI_EINVAL;
	cr_expect_eq(connect_to_listener(), -FI_EINVAL);
	cr_expect_eq(core_conn_accept(&conn, NULL, NULL, 0), -FI_EINVAL);
	engine.ret = 0;
	cr_expect_eq(connect_to_listener(), 0);
}

Test(core_conn, a_refusal_is_reported_once_with_its_data)
{
	cr_assert_eq(connect_to_listener(), 0);
	core_conn_on_refused(&ep, -FI_ECONNREFUSED, "because", 7);
	core_conn_on_refused(&ep, -FI_ETIMEDOUT, NULL, 0);
	core_peer_on_connect_failed(&ep, (const struct sockaddr *)&listener, -FI_EIO);
	cr_expect_eq(failed, 1);
	cr_expect_eq(failed_err, -FI_ECONNREFUSED);
	cr_expect_str_eq(user_data, "because");
	cr_expect_eq(connected + ended, 0);
}

Test(core_conn, a_failed_handshake_is_a_failed_connection)
{
	cr_assert_eq(connect_to_listener(), 0);
	core_conn_on_accepted(&ep, (const struct sockaddr *)&listener, "yes", 3);
	core_peer_on_connect_failed(&ep, (const struct sockaddr *)&listener, -FI_EHOSTUNREACH);
	cr_expect_eq(failed, 1);
	cr_expect_eq(failed_err, -FI_EHOSTUNREACH);
	cr_expect_eq(connected, 0);
}

Test(core_conn, receives_posted_after_the_end_are_cancelled)
{
	cr_assert_eq(connect_to_listener(), 0);
	core_conn_on_refused(&ep, -FI_ETIMEDOUT, NULL, 0);
	post(&ep);
	core_conn_posted(&conn);
	cr_expect_eq(cancelled(), 1);
}

Test(core_conn, any_address_finds_the_one_peer)
{
	cr_expect_eq(core_peer_get(&ep, 0), conn.peer);
	cr_expect_eq(core_peer_get(&ep, 5), conn.peer);
	cr_expect_eq(core_peer_get(&ep, FI_ADDR_UNSPEC), conn.peer);
}

Test(core_conn, the_active_end_keeps_the_listeners_address)
{
	cr_assert_eq(connect_to_listener(), 0);
	cr_expect_eq(port_of(&conn.addr), 7);
	come_up();
	cr_expect_eq(connected, 1);
	cr_expect_eq(port_of(&conn.addr), 7);
	cr_expect_eq(port_of(&conn.peer->addr), 9, "the CM endpoint of the listener");
	cr_expect_eq(conn.peer->incarnation, 4711);
}

Test(core_conn, the_passive_end_obtains_the_requesters_address)
{
	cr_assert_eq(core_conn_accept(&conn, NULL, NULL, 0), 0);
	cr_expect_eq(conn.addr.ss_family, 0);
	come_up();
	cr_expect_eq(connected, 1);
	cr_expect_eq(port_of(&conn.addr), 9);
}

Test(core_conn, user_data_of_the_listener_is_truncated)
{
	char long_data[2 * CORE_CONN_DATA_MAX];

	memset(long_data, 'x', sizeof(long_data));
	cr_assert_eq(connect_to_listener(), 0);
	core_conn_on_accepted(&ep, (const struct sockaddr *)&listener, long_data,
			      sizeof(long_data));
	come_up();
	cr_expect_eq(strlen(user_data), CORE_CONN_DATA_MAX);
}

Test(core_conn, a_channel_that_comes_up_after_the_end_is_closed)
{
	cr_assert_eq(connect_to_listener(), 0);
	core_conn_on_refused(&ep, -FI_ETIMEDOUT, NULL, 0);
	come_up();
	cr_expect_eq(closes, 1);
	cr_expect_eq(connected, 0);
}

Test(core_conn, shutdown_cancels_open_operations_and_a_second_one_does_nothing)
{
	cr_assert_eq(connect_to_listener(), 0);
	come_up();
	post(&ep);
	cr_assert_eq(try_send(0), 0, "queued for room");
	cr_expect_eq(core_conn_shutdown(&conn), 0);
	cr_expect_eq(cancelled(), 2);
	cr_expect_eq(closes, 1);
	cr_expect_eq(core_conn_shutdown(&conn), 0);
	cr_expect_eq(ended, 1);
	cr_expect_eq(closes, 1);
}

Test(core_conn, the_death_of_the_peer_closes_the_connection)
{
	cr_assert_eq(connect_to_listener(), 0);
	come_up();
	post(&ep);
	core_peer_on_down(&chan, -FI_ECONNRESET);
	cr_expect_eq(cancelled(), 1);
	cr_expect_eq(ended, 1);
	cr_expect_eq(try_send(0), -FI_ESHUTDOWN);
}

Test(core_conn, is_busy_while_its_channel_is)
{
	cr_expect_not(core_conn_is_busy(&conn));
	cr_assert_eq(connect_to_listener(), 0);
	come_up();
	cr_expect_not(core_conn_is_busy(&conn));
	busy = true;
	cr_expect(core_conn_is_busy(&conn));
}
