/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Single messages to several sessions leave together, if the process polls soon. */
#include "erpc/tx/erpc_stage.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "erpc/tx/erpc_batch.h"
#include "support/erpc_pair.h"

#define US       1000u
#define SESSIONS (2 * ERPC_STAGE_MAX)
#define CALL_OP  0x801u
#define RESP_MAX 64u

/** One end of a session. */
struct user {
	struct erpc_session *s;
	uint64_t sent, received, calls, replied, acked;
};

static struct fake_net net;
static struct erpc_ep *eps[2];
static struct user users[2][SESSIONS];

/* ---- up-calls ---- */

static enum core_rx_verdict on_msg(struct core_chan *chan, uint32_t op, const uint8_t *data,
				   uint32_t len, core_retain_t retain)
{
	struct user *u = erpc_session_of(chan)->user;
	uint64_t number;

	cr_assert_eq(len, 2 * sizeof(number), "tag and bytes");
	memcpy(&number, data + sizeof(number), sizeof(number));
	cr_assert_eq(number, u->received++, "in order");
	return CORE_RX_DONE;
}

static enum core_rx_verdict on_call(struct core_chan *chan, struct core_call_ref ref,
				    const uint8_t *data, uint32_t len, core_retain_t retain)
{
	struct user *u = erpc_session_of(chan)->user;
	uint64_t number;

	memcpy(&number, data + len - sizeof(number), sizeof(number));
	cr_assert_eq(number, u->received++, "in order");
	cr_assert_eq(core_chan_reply(chan, ref, &number, sizeof(number)), 0);
	return CORE_RX_DONE;
}

static void on_reply(struct core_chan *chan, void *context, int status, const uint8_t *data,
		     uint32_t len)
{
	struct user *u = erpc_session_of(chan)->user;

	cr_assert_eq(status, 0);
	u->replied++;
}

static void on_acked(struct core_chan *chan, uint64_t pos)
{
	struct user *u = erpc_session_of(chan)->user;

	cr_assert_geq(pos, u->acked);
	u->acked = pos;
}

static const struct core_upcalls ups = {
	.on_msg = on_msg, .on_call = on_call, .on_reply = on_reply, .on_acked = on_acked
};

static void failed(struct erpc_session *s)
{
}

/* ---- fixture ---- */

static struct erpc_ep *ep_open(uint64_t seed)
{
	struct dev_dgram_attr dg_attr = { .rx_cnt = 256, .tx_cnt = 64 };
	struct erpc_ep_attr attr = { .tx_cnt = 64, .up = &ups, .seed = seed, .failed = failed };
	struct erpc_ep *ep;

	cr_assert_eq(fake_net_ops.open(fake_net_dev(&net), &dg_attr, &attr.dg), 0);
	cr_assert_eq(erpc_ep_open(&attr, &ep), 0);
	return ep;
}

static void begin(void)
{
	unsigned i, end;

	fake_net_init(&net, 5);
	net.now_ns = 1000000;
	eps[0] = ep_open(1);
	eps[1] = ep_open(2);
	for (i = 0; i < SESSIONS; i++) {
		erpc_pair_join(eps[0], eps[1], &users[0][i].s, &users[1][i].s);
		for (end = 0; end < 2; end++)
			users[end][i].s->user = &users[end][i];
	}
}

/** Polls one end `ns` later. */
static void poll_end(unsigned end, uint64_t ns)
{
	fake_net_run(&net, net.now_ns + ns);
	erpc_ep_progress(eps[end], net.now_ns);
}

/** Polls the sender `ns` later. */
static void poll_after(uint64_t ns)
{
	poll_end(0, ns);
}

static void settle(void)
{
	unsigned i;

	for (i = 0; i < 100; i++) {
		poll_after(5 * US);
		erpc_ep_progress(eps[1], net.now_ns);
	}
}

static void end(void)
{
	unsigned i;

	settle();
	for (i = 0; i < SESSIONS; i++) {
		cr_expect_eq(users[1][i].received, users[0][i].sent);
		erpc_session_close(users[0][i].s);
		erpc_session_close(users[1][i].s);
	}
	for (i = 0; i < 2; i++) {
		cr_expect_eq(eps[i]->bufs.used_cnt, 0, "no buffer is left");
		erpc_ep_close(eps[i]);
	}
	fake_net_fini(&net);
}

/** Sends a message. Returns false without room. */
static bool message_from(struct user *u)
{
	struct core_chan *chan = &u->s->conn.chan;
	int ret = chan->ops->send_buf(chan, core_packed(WIRE_OP_MSG | WIRE_F_TAG, 0), 1, 0,
				      &u->sent, sizeof(u->sent));

	cr_assert(ret == 1 || ret == -FI_EAGAIN, "%d", ret);
	u->sent += ret == 1;
	return ret == 1;
}

static bool call_from(struct user *u)
{
	struct core_chan *chan = &u->s->conn.chan;
	bool room = chan->ops->call_room(chan, sizeof(u->sent), RESP_MAX) > 0;
	int ret = chan->ops->call_buf(chan, CALL_OP, &u->sent, sizeof(u->sent), RESP_MAX, u, 0);

	cr_assert(!ret || (ret == -FI_EAGAIN && !room), "%d", ret);
	u->sent += !ret;
	u->calls += !ret;
	return !ret;
}

static void message(unsigned i)
{
	cr_assert(message_from(&users[0][i]));
}

static void call(unsigned i)
{
	struct user *u = &users[0][i];
	struct core_chan *chan = &u->s->conn.chan;

	cr_assert_eq(chan->ops->call_buf(chan, CALL_OP, &u->sent, sizeof(u->sent), RESP_MAX, u, 0),
		     0);
	u->sent++;
	u->calls++;
}

/** Sends a message of each of the last `cnt` sessions, from the last one on: all but one jump. */
static void messages(unsigned cnt)
{
	unsigned i;

	for (i = 0; i < cnt; i++)
		message(SESSIONS - 1 - i);
}

/** Returns the packets that leave with `cnt` messages, without a poll; then lets all arrive. */
static uint64_t packets_of(unsigned cnt)
{
	uint64_t before = net.cnt.sent, left;

	messages(cnt);
	left = net.cnt.sent - before;
	settle();
	return left;
}

static void earn_trust(void)
{
	unsigned i;

	for (i = 0; i <= ERPC_STAGE_TRUST; i++)
		packets_of(ERPC_STAGE_MAX);
}

/* ---- tests ---- */

Test(erpc_stage, messages_leave_at_once_until_there_is_trust)
{
	unsigned i;

	begin();
	packets_of(ERPC_STAGE_MAX); /* their buffers come from the heap: not by the fast path */
	for (i = 0; i < ERPC_STAGE_TRUST; i++)
		cr_expect_eq(packets_of(ERPC_STAGE_MAX - 1), ERPC_STAGE_MAX - 1);
	cr_expect_eq(packets_of(ERPC_STAGE_MAX - 1), 0, "trust");
	end();
}

Test(erpc_stage, staged_messages_leave_together)
{
	uint64_t before;

	begin();
	earn_trust();
	before = net.cnt.sent;
	messages(ERPC_STAGE_MAX - 1);
	cr_expect_eq(net.cnt.sent, before);
	message(0);
	cr_expect_eq(net.cnt.sent, before + ERPC_STAGE_MAX, "there are so many");
	settle();
	before = net.cnt.sent;
	messages(ERPC_STAGE_FEW);
	cr_expect_not(erpc_ep_is_quiet(eps[0]), "no thread sleeps");
	cr_expect_not(erpc_ep_is_idle(eps[0]), "no poll is skipped");
	poll_after(0);
	cr_expect_eq(net.cnt.sent, before + ERPC_STAGE_FEW, "with the poll");
	end();
}

Test(erpc_stage, calls_are_staged_too)
{
	uint64_t before;
	unsigned i;

	begin();
	for (i = SESSIONS; i--;) /* allocates the tables of ids */
		call(i);
	earn_trust();
	before = net.cnt.sent;
	for (i = ERPC_STAGE_MAX - 1; i--;)
		call(i);
	cr_expect_eq(net.cnt.sent, before);
	settle();
	for (i = 0; i < SESSIONS; i++)
		cr_expect_eq(users[0][i].replied, 1 + (i < ERPC_STAGE_MAX - 1));
	end();
}

/* A poll after more than ERPC_STAGE_SOON_NS ends the trust. */
Test(erpc_stage, a_process_that_computes_keeps_nothing_back)
{
	begin();
	earn_trust();
	messages(ERPC_STAGE_FEW);
	poll_after(ERPC_STAGE_SOON_NS + 1);
	settle();
	cr_expect_eq(packets_of(ERPC_STAGE_FEW + 1), ERPC_STAGE_FEW + 1);
	end();
}

Test(erpc_stage, few_messages_end_the_trust)
{
	begin();
	earn_trust();
	cr_expect_eq(packets_of(ERPC_STAGE_FEW - 1), 0);
	cr_expect_eq(packets_of(ERPC_STAGE_FEW + 1), ERPC_STAGE_FEW + 1);
	end();
}

/* A processor fetches them by itself. */
Test(erpc_stage, neighbours_earn_no_trust)
{
	unsigned round, i;

	begin();
	settle();
	for (round = 0; round < 2 * ERPC_STAGE_TRUST; round++) {
		for (i = 0; i < SESSIONS; i++)
			message(i);
		settle();
	}
	cr_expect_eq(packets_of(ERPC_STAGE_MAX - 1), ERPC_STAGE_MAX - 1);
	end();
}

/* A later message or call lets a staged one leave first; on_msg and on_call check the order. */
Test(erpc_stage, a_session_keeps_its_order)
{
	static const uint8_t bytes[UTIL_COPY_SHORT + 1];
	struct core_chan *chan;
	uint64_t before;

	begin();
	earn_trust();
	chan = &users[0][1].s->conn.chan;
	before = net.cnt.sent;
	message(1);
	cr_expect_eq(net.cnt.sent, before);
	message(1);
	cr_expect_eq(net.cnt.sent, before + 1, "the first one");
	call(1);
	settle();
	cr_expect_eq(users[0][1].replied, 1);
	earn_trust();
	before = net.cnt.sent;
	message(1);
	cr_expect_gt(chan->ops->call_room(chan, sizeof(bytes), RESP_MAX), 0);
	cr_expect_eq(net.cnt.sent, before + 1, "its slot does not count as free");
	end();
}

Test(erpc_stage, flush_and_stop_send_it)
{
	struct core_chan *chan;
	uint64_t before;

	begin();
	earn_trust();
	chan = &users[0][1].s->conn.chan;
	before = net.cnt.sent;
	message(1);
	cr_expect(chan->ops->is_busy(chan));
	chan->ops->flush(chan);
	cr_expect_eq(net.cnt.sent, before + 1);
	settle();
	earn_trust();
	before = net.cnt.sent;
	message(1);
	chan->ops->stop(chan);
	cr_expect_eq(net.cnt.sent, before + 1);
	end();
}

Test(erpc_stage, it_waits_for_a_credit_that_others_took)
{
	struct erpc_session *s;
	uint64_t before;
	uint16_t credits;

	begin();
	earn_trust();
	s = users[0][1].s;
	before = net.cnt.sent;
	message(1);
	credits = s->flow.credits;
	s->flow.credits = 0;
	poll_after(0);
	cr_expect_eq(net.cnt.sent, before);
	s->flow.credits = credits;
	erpc_session_mark(s);
	end();
}

Test(erpc_stage, a_failed_session_sends_nothing)
{
	uint64_t before;
	struct user *u;

	begin();
	earn_trust();
	u = &users[0][1];
	before = net.cnt.sent;
	message(1);
	message(2);
	erpc_session_fail(u->s, -FI_EIO, NULL);
	u->sent--;
	erpc_session_end(u->s);
	cr_expect_eq(net.cnt.sent, before + 1, "the other session's");
	end();
}

/* ---- random traffic ---- */

static struct rng rng;

/** Sends from one end, of sessions in random order. Returns true if something is staged. */
static bool random_burst(unsigned end)
{
	unsigned cnt = 1 + (unsigned)rng_below(&rng, SESSIONS);
	struct user *u;

	while (cnt--) {
		u = &users[end][rng_below(&rng, SESSIONS)];
		if (rng_chance(&rng, 1, 4))
			call_from(u);
		else
			message_from(u);
		if (rng_chance(&rng, 1, 50))
			u->s->conn.chan.ops->flush(&u->s->conn.chan);
	}
	return eps[end]->stage.cnt;
}

static bool random_is_done(void)
{
	unsigned i, end;

	for (end = 0; end < 2; end++)
		for (i = 0; i < SESSIONS; i++) {
			const struct user *u = &users[end][i];

			if (users[!end][i].received != u->sent || u->replied != u->calls ||
			    u->acked != u->s->flow.posted)
				return false;
		}
	return true;
}

/** Sends in both directions over a network that loses packets, with pauses now and then. */
static void random_traffic(uint64_t seed, uint64_t drop)
{
	unsigned steps, staged = 0, end_of;

	rng.state = seed;
	begin();
	net.faults.drop = drop;
	for (steps = 0; steps < 5000; steps++) {
		end_of = (unsigned)rng_below(&rng, 2);
		staged += random_burst(end_of);
		poll_end(end_of, rng_chance(&rng, 1, 50) ? 100 * US : rng_below(&rng, 8 * US));
		if (rng_chance(&rng, 1, 2))
			poll_end(!end_of, 0);
	}
	for (steps = 0; !random_is_done() && steps < 100000; steps++) {
		poll_end(0, 20 * US);
		poll_end(1, 0);
	}
	cr_expect(random_is_done());
	cr_expect_gt(staged, 100);
	net.faults.drop = 0;
	end();
}

Test(erpc_stage, random_traffic_arrives_once_and_in_order)
{
	random_traffic(1, 0);
	memset(users, 0, sizeof(users));
	random_traffic(2, 20000);
}
