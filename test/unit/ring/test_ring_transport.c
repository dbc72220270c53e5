/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Conditions under which a thread may sleep. (ring_transport.c) */
#include <criterion/criterion.h>
#include <pthread.h>
#include <rdma/fi_errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "engine/eng_event.h"
#include "support/ring_pair.h"

static struct ring_pair pair;
static struct ring_end *a;

static void start(bool direct)
{
	const struct ring_pair_cfg cfg = { .direct = direct, .rx_len = { 4096, 4096 }, .seed = 1 };

	ring_pair_init(&pair, &cfg, &ring_pair_deaf);
	a = &pair.end[0];
	a->dev.eager = pair.end[1].dev.eager = true;
	a->conn.eng.up_reported = true;
	pthread_mutex_init(&a->engine.lock, NULL);
}

Test(ring_transport, arming_fails_while_work_is_left)
{
	struct iovec iov = { .iov_base = "some", .iov_len = 4 };
	struct core_frame frame = ring_frame(1, &iov);
	struct eng_event ev = { .kind = ENG_EVENT_FAILED };

	start(true);
	a->engine.event_fd = eventfd(0, EFD_NONBLOCK);
	cr_expect_eq(eng_arm(&a->engine.base), 0);
	cr_assert_eq(a->conn.eng.chan.ops->send(&a->conn.eng.chan, &frame, CORE_SEND_MORE), 0);
	cr_expect_eq(eng_arm(&a->engine.base), -FI_EAGAIN, "a batch is deferred");
	ring_end_progress(a);
	cr_expect_eq(eng_arm(&a->engine.base), 0);
	eng_event_push(&a->engine, &ev);
	cr_expect_eq(eng_arm(&a->engine.base), -FI_EAGAIN, "the control thread queued an event");
	cr_expect_eq(eng_arm(&a->engine.base), -FI_EAGAIN, "and still has");
	cr_assert(eng_event_pop(&a->engine, &ev));
	cr_expect_eq(eng_arm(&a->engine.base), 0);
	ring_conn_fail_cold(&a->conn, -FI_EIO, "test");
	cr_expect_eq(eng_arm(&a->engine.base), -FI_EAGAIN, "the failure is not reported yet");
	ring_end_progress(a);
	cr_expect_eq(eng_arm(&a->engine.base), 0);
	close(a->engine.event_fd);
	ring_pair_fini(&pair);
}
