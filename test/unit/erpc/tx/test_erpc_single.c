/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Single messages, calls and replies: equal to those of the general path, and only without company.
 */
#include "erpc/tx/erpc_batch.h"
#include "erpc/tx/erpc_reply.h"

#include <criterion/criterion.h>
#include <string.h>

#include "support/erpc_pair.h"

#define LEN 32u
#define OP  0x800u /* of the first call of a pair */

static struct erpc_pair pairs[2];
static struct erpc_session *single, *any; /* one end of each pair */

/* The first buffer comes from the heap, and not by the fast path. */
static void have_buffers(struct erpc_ep *ep)
{
	erpc_buf_free(&ep->bufs, erpc_buf_alloc(&ep->bufs, 1));
}

static void open_pairs(unsigned end)
{
	unsigned i;

	for (i = 0; i < 2; i++) {
		erpc_pair_start(&pairs[i], 7, PAIR_MTU);
		pairs[i].end[0].len_exact = LEN;
		pairs[i].end[1].defer_chance = 100;
		pairs[i].end[1].retain_call_chance = 100;
		have_buffers(pairs[i].end[0].ep);
		have_buffers(pairs[i].end[1].ep);
	}
	single = pairs[0].end[end].s;
	any = pairs[1].end[end].s;
}

static void setup(void)
{
	open_pairs(0);
}

static void setup_server(void)
{
	open_pairs(1);
}

static void teardown(void)
{
	unsigned i;

	for (i = 0; i < 2; i++) {
		erpc_pair_settle(&pairs[i]);
		erpc_pair_check(&pairs[i]);
		erpc_pair_fini(&pairs[i]);
	}
}

static void compare_bytes(const struct erpc_buf *a, const struct erpc_buf *b)
{
	cr_assert(a && b);
	cr_assert_eq(a->len, b->len);
	cr_expect(!memcmp(a->hdr, b->hdr, WIRE_ERPC_HDR_LEN + a->len), "the packet is the same");
	cr_expect_eq(a->has_calls, b->has_calls);
	cr_expect_eq(a->sent, b->sent);
}

static void compare_sending(void)
{
	const struct erpc_tx *a = &single->tx[0], *b = &any->tx[0];

	compare_bytes(a->buf, b->buf);
	cr_expect(!memcmp(&a->c, &b->c, sizeof(a->c)));
	cr_expect_eq(a->seq, b->seq);
	cr_expect_eq(a->is.prompt, b->is.prompt);
	cr_expect_eq(single->batch.buf, any->batch.buf);
	cr_expect_eq(single->flow.end - single->flow.fill, any->flow.end - any->flow.fill);
	cr_expect_eq(single->send.seq, any->send.seq);
	cr_expect_eq(single->flow.sent, any->flow.sent);
	cr_expect_eq(single->flow.posted, any->flow.posted);
	cr_expect_eq(single->flow.after_single, any->flow.after_single);
	cr_expect_eq(single->flow.bursts, any->flow.bursts);
	cr_expect_eq(single->calls.grant_left, any->calls.grant_left);
	cr_expect_eq(single->flow.credits, any->flow.credits);
	cr_expect_eq(erpc_pair_frames(single->ep), erpc_pair_frames(any->ep));
	cr_expect_eq(erpc_pair_batches(single->ep), erpc_pair_batches(any->ep));
	cr_expect_eq(single->ep->out.cnt, any->ep->out.cnt);
}

/* Returns the bytes of the first message or call of a pair (erpc_pair.c). */
static const void *first_bytes(void)
{
	static uint8_t bytes[LEN];
	unsigned i;

	for (i = 0; i < LEN; i++)
		bytes[i] = (uint8_t)(i * 7);
	return bytes;
}

static void both_sent(bool calls)
{
	unsigned i;

	for (i = 0; i < 2; i++) {
		pairs[i].end[0].sent++;
		pairs[i].end[0].calls_sent += calls;
	}
	cr_assert(single->tx[0].buf, "the request has left");
	compare_sending();
}

Test(erpc_single, a_single_call_equals_a_batch, .init = setup, .fini = teardown)
{
	struct core_chan *a = &single->conn.chan, *b = &any->conn.chan;
	struct iovec iov = { .iov_base = (void *)(uintptr_t)first_bytes(), .iov_len = LEN };
	struct core_frame frame = { .op = OP, .iov = &iov, .iov_cnt = 1, .len = LEN };
	void *first = (void *)1; /* id of the call, see pair_call */

	cr_assert_eq(a->ops->call_buf(a, OP, first_bytes(), LEN, PAIR_RESP_MAX, first, 0), 0);
	cr_assert_eq(b->ops->call(b, &frame, PAIR_RESP_MAX, first, 0), 0);
	both_sent(true);
}

Test(erpc_single, a_single_message_equals_a_batch, .init = setup, .fini = teardown)
{
	struct core_chan *a = &single->conn.chan, *b = &any->conn.chan;
	struct iovec iov = { .iov_base = (void *)(uintptr_t)first_bytes(), .iov_len = LEN };
	struct core_frame frame = {
		.op = WIRE_OP_MSG | WIRE_F_TAG, .ext_len = 8, .iov = &iov, .iov_cnt = 1, .len = LEN
	};

	cr_assert_eq(a->ops->send_buf(a, core_packed(frame.op, 0), 0, 0, first_bytes(), LEN), 1);
	cr_assert_eq(b->ops->send(b, &frame, 0), 0);
	a->awaited = single->flow.posted;
	b->awaited = any->flow.posted;
	both_sent(false);
}

/* Sends a call to both servers, which wait. */
static void both_called(void)
{
	unsigned i;

	for (i = 0; i < 2; i++) {
		cr_assert_eq(pair_call(&pairs[i].end[0], 0), 0);
		erpc_pair_run(&pairs[i], 20000);
		cr_assert_eq(pairs[i].end[1].pending_cnt, 1);
	}
}

static struct pair_call_ref take_pending(struct pair_end *e)
{
	return e->pending[--e->pending_cnt];
}

Test(erpc_single, a_single_reply_equals_a_response, .init = setup_server, .fini = teardown)
{
	const struct erpc_rx *a = &single->rx[0], *b = &any->rx[0];
	struct pair_call_ref call;
	struct iovec iov = { 0 };

	both_called();
	cr_assert(erpc_reply_may_single(single, WIRE_ERPC_FRAME_LEN, 0, 0));
	/* The reply to the first call is empty (erpc_pair.c). */
	call = take_pending(&pairs[0].end[1]);
	cr_assert_eq(single->conn.chan.ops->reply_release(&single->conn.chan, call.ref, call.retain,
							  "", 0, 0),
		     0);
	call = take_pending(&pairs[1].end[1]);
	cr_assert_eq(any->conn.chan.ops->reply(&any->conn.chan, call.ref, &iov, 0, 0, 0), 0);
	any->conn.chan.ops->release(&any->conn.chan, call.retain);
	compare_bytes(a->resp, b->resp);
	cr_expect(!memcmp(&a->s, &b->s, sizeof(a->s)));
	cr_expect_eq(a->resp_type, b->resp_type);
	cr_expect_eq(single->resp.wait_mask | single->resp.due_mask | single->resp.release_mask, 0);
	cr_expect_eq(any->resp.wait_mask | any->resp.due_mask | any->resp.release_mask, 0);
	cr_expect(util_list_is_empty(&single->wait_link));
	cr_expect(util_list_is_empty(&single->dirty_link), "no work is left");
	cr_expect_eq(single->resp.calls_pending, any->resp.calls_pending);
	cr_expect_eq(single->reply_reserved, any->reply_reserved);
	cr_expect_eq(single->resp.retained_len, any->resp.retained_len);
	cr_expect_eq(single->last_resp_ns, any->last_resp_ns);
}

Test(erpc_single, messages_with_company_are_not_single, .init = setup, .fini = teardown)
{
	struct erpc_session *s = single;
	uint32_t credits = s->flow.credits;

	cr_expect(erpc_batch_may_single(s, 2 * LEN, LEN, 0));
	cr_expect_not(erpc_batch_may_single(s, 2 * LEN, LEN, CORE_SEND_MORE), "more follows");
	cr_expect_not(erpc_batch_may_single(s, 2 * LEN, UTIL_COPY_SHORT + 1, 0), "it is long");
	s->ep->running = true;
	cr_expect_not(erpc_batch_may_single(s, 2 * LEN, LEN, 0), "progress sends it");
	s->ep->running = false;
	s->flow.credits = 0;
	cr_expect_not(erpc_batch_may_single(s, 2 * LEN, LEN, 0), "no credit");
	s->flow.credits = credits;
	s->flow.bursts = ERPC_BURSTS_TRUST;
	cr_expect_not(erpc_batch_may_single(s, 2 * LEN, LEN, 0), "a burst is expected");
	s->flow.bursts = 0;
	cr_assert_eq(pair_call(&pairs[0].end[0], CORE_SEND_MORE), 0);
	cr_expect_not(erpc_batch_may_single(s, 2 * LEN, LEN, 0), "others wait");
	cr_assert_eq(pair_call(&pairs[0].end[0], 0), 0);
	cr_expect_not(erpc_batch_may_single(s, 2 * LEN, LEN, 0), "others are in flight");
}

Test(erpc_single, a_reply_that_is_not_the_last_waits, .init = setup_server, .fini = teardown)
{
	struct pair_end *client = &pairs[0].end[0], *server = &pairs[0].end[1];

	cr_assert_eq(pair_call(client, CORE_SEND_MORE), 0);
	cr_assert_eq(pair_call(client, 0), 0);
	erpc_pair_run(&pairs[0], 20000);
	cr_assert_eq(server->pending_cnt, 2);
	cr_expect_not(erpc_reply_may_single(single, WIRE_ERPC_FRAME_LEN, 0, 0),
		      "two calls have no reply");
	pair_reply_one(server);
	cr_expect_not(erpc_reply_may_single(single, WIRE_ERPC_FRAME_LEN, 0, 0),
		      "another one waits");
}
