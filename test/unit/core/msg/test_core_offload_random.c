/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tagged messages by a device and by the channel at random: three nodes, a device and a transport
 * that take their time, refuse operations, and match while software removes. Checked: each send
 * and each receive ends once, each byte is right, and messages of a source stay in order:
 *
 *   - A receive that accepts an older message of the same source is not given the younger one,
 *     unless the older one has gone to an older receive.
 *   - A message does not pass an older receive that accepts it, unless that one was cancelled, or
 *     got an older message or one of another source.
 *
 * COPYRPC_TEST_SEED and COPYRPC_TEST_STEPS as in rng.h.
 */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/core_pair.h"
#include "support/fake_tags.h"
#include "support/pool_used.h"
#include "util/param.h"

#define NODES     3u
#define SEEDS     30u
#define STEPS     600u
#define MSGS      400u
#define RECVS     1200u
#define LEN_MAX   1500u
#define EAGER     64u
#define NEVER     UINT32_MAX
#define UPPER_TAG (1ull << 60)

struct msg {
	uint32_t id;
	unsigned from, to;
	uint64_t tag;
	uint64_t data;
	bool has_data;
	bool is_sent; /* the send has ended */
	size_t len;
	uint32_t recv; /* receive that took it, or NEVER */
	uint8_t bytes[LEN_MAX];
};

struct recv {
	unsigned node;
	fi_addr_t from; /* or FI_ADDR_UNSPEC */
	uint64_t tag;
	uint64_t ignore;
	size_t len;
	bool is_peek;    /* ends without a message, or with one that is claimed */
	bool is_claimed; /* the message that this peek found waits for core_rx_claim */
	bool is_ended;
	bool is_cancelled;
	uint32_t msg; /* or NEVER */
	uint8_t bytes[LEN_MAX];
};

static struct node nodes[NODES];
static struct msg msgs[MSGS];
static struct recv recvs[RECVS];
static uint32_t msg_cnt, recv_cnt;
static struct rng rng;

static unsigned below(unsigned n)
{
	return (unsigned)rng_below(&rng, n);
}

static bool accepts(const struct recv *r, const struct msg *m)
{
	return r->node == m->to && !((r->tag ^ m->tag) & ~r->ignore) &&
	       (r->from == FI_ADDR_UNSPEC || r->from == m->from);
}

/* ---- steps ---- */

static uint64_t random_tag(void)
{
	return below(12) ? below(3) : UPPER_TAG;
}

static size_t random_len(void)
{
	return below(3) ? 200 + below(LEN_MAX - 200) : 8 + below(EAGER);
}

static void step_send(void)
{
	struct msg *m = &msgs[msg_cnt];
	struct iovec iov;
	struct core_send s = { .iov = &iov, .iov_cnt = 1, .context = m, .tagged = true };
	int ret;

	if (msg_cnt == MSGS)
		return;
	*m = (struct msg){ .id = msg_cnt, .from = below(NODES), .to = below(NODES), .recv = NEVER };
	m->tag = random_tag();
	m->len = random_len();
	m->has_data = below(2);
	m->data = below(8) ? rng_next(&rng) >> 32 : rng_next(&rng) | 1ull << 40;
	node_fill(m->bytes, m->len, m->id);
	memcpy(m->bytes, &m->id, sizeof(m->id));
	iov = (struct iovec){ m->bytes, m->len };
	s.dest = m->to;
	s.len = m->len;
	s.tag = m->tag;
	s.data = m->data;
	s.flags = FI_COMPLETION | (m->has_data ? FI_REMOTE_CQ_DATA : 0) |
		  (below(10) ? 0 : FI_MATCH_COMPLETE);
	ret = (int)core_tx_send(&nodes[m->from].ep, &s);
	cr_assert_eq(ret, 0, "send: %d", ret);
	msg_cnt++;
}

static struct recv *new_recv(unsigned node, bool is_peek)
{
	static const uint64_t ignores[] = { 0, 0, 0, 1, 3, UINT64_MAX };
	struct recv *r = &recvs[recv_cnt++];

	*r = (struct recv){ .node = node, .is_peek = is_peek, .msg = NEVER };
	r->from = below(2) ? FI_ADDR_UNSPEC : below(NODES);
	r->tag = random_tag();
	r->ignore = ignores[below(sizeof(ignores) / sizeof(ignores[0]))];
	r->len = below(6) ? LEN_MAX : 8 + below(500);
	memset(r->bytes, 0xA5, sizeof(r->bytes));
	return r;
}

static void post(struct recv *r)
{
	int ret = node_recv(&nodes[r->node], r->from, r->bytes, r->len, true, r->tag, r->ignore,
			    FI_COMPLETION | (below(4) ? 0 : FI_MORE), r);

	cr_assert_eq(ret, 0, "receive: %d", ret);
}

static void step_recv(void)
{
	if (recv_cnt < RECVS / 2)
		post(new_recv(below(NODES), false));
}

static struct core_recv recv_args(struct recv *r, struct iovec *iov, uint64_t flags)
{
	*iov = (struct iovec){ r->bytes, r->len };
	return (struct core_recv){ .src = r->from,
				   .iov = iov,
				   .iov_cnt = 1,
				   .tag = r->tag,
				   .ignore = r->ignore,
				   .context = r,
				   .flags = FI_COMPLETION | flags,
				   .tagged = true };
}

/** Peeks, and mostly claims: such a receive is posted at this moment, if it finds a message. */
static void step_peek(void)
{
	bool claims = below(3);
	struct core_recv args;
	struct iovec iov;
	struct recv *r;

	if (recv_cnt >= RECVS / 2)
		return;
	r = new_recv(below(NODES), true);
	r->is_claimed = claims;
	args = recv_args(r, &iov, FI_PEEK | (claims ? FI_CLAIM : 0));
	cr_assert_eq(core_rx_peek(&nodes[r->node].ep, &args), 0);
}

static void step_cancel(void)
{
	struct recv *r;

	if (!recv_cnt)
		return;
	r = &recvs[below(recv_cnt)];
	if (r->is_ended || r->is_peek || r->is_cancelled)
		return;
	r->is_cancelled = !core_rx_cancel(&nodes[r->node].ep, r);
}

static void step_conditions(void)
{
	fake_engine_cfg.no_delivery = !below(3);
	fake_engine_cfg.room = 1 + below(4);
	fake_engine_cfg.gets_refused = below(3);
	fake_tags_cfg.chance = 30 + below(65);
	fake_tags_cfg.room = 1 + below(6);
	fake_tags_cfg.refused = below(40);
}

/* ---- completions ---- */

static void end_send(struct msg *m)
{
	cr_assert_not(m->is_sent, "message %u is sent twice", m->id);
	m->is_sent = true;
	memset(m->bytes, 0xEE, sizeof(m->bytes));
}

/** Checks the bytes of a receive, and that none behind them was written. */
static void check_bytes(const struct recv *r)
{
	static uint8_t want[LEN_MAX];
	const struct msg *m = &msgs[r->msg];
	size_t len = m->len < r->len ? m->len : r->len;

	node_fill(want, m->len, m->id);
	memcpy(want, &m->id, sizeof(m->id));
	cr_assert(!memcmp(r->bytes, want, len), "bytes of message %u", m->id);
	for (size_t i = len; i < LEN_MAX; i++)
		cr_assert_eq(r->bytes[i], 0xA5, "byte %zu behind message %u", i, m->id);
}

/** Notes the message of a receive, which its first bytes name. */
static struct msg *take_msg(struct recv *r)
{
	struct msg *m;

	cr_assert_not(r->is_ended, "receive %zu ends twice", (size_t)(r - recvs));
	cr_assert_not(r->is_cancelled, "receive %zu was cancelled", (size_t)(r - recvs));
	r->is_ended = true;
	memcpy(&r->msg, r->bytes, sizeof(r->msg));
	cr_assert_lt(r->msg, msg_cnt);
	m = &msgs[r->msg];
	cr_assert_eq(m->recv, NEVER, "message %u is received twice", m->id);
	m->recv = (uint32_t)(r - recvs);
	cr_assert(accepts(r, m), "receive %u does not accept message %u", m->recv, m->id);
	check_bytes(r);
	return m;
}

static void check_head(const struct msg *m, uint64_t flags, uint64_t tag, uint64_t data)
{
	cr_assert_eq(tag, m->tag, "tag of message %u", m->id);
	cr_assert_eq(!!(flags & FI_REMOTE_CQ_DATA), m->has_data, "data of message %u", m->id);
	if (m->has_data)
		cr_assert_eq(data, m->data, "data of message %u", m->id);
}

/** Claims a message that a peek has found. */
static void claim(struct recv *r)
{
	struct iovec iov;
	struct core_recv args = recv_args(r, &iov, FI_CLAIM);

	r->is_peek = false;
	cr_assert_eq(core_rx_claim(&nodes[r->node].ep, &args), 0);
}

static void end_recv(struct recv *r, const struct core_cqe *e)
{
	struct msg *m;

	if (r->is_peek) {
		cr_assert_not(r->is_ended);
		if (r->is_claimed)
			claim(r);
		else
			r->is_ended = true;
		return;
	}
	m = take_msg(r);
	cr_assert_eq(e->e.len, m->len);
	cr_assert_eq(e->src, m->from);
	check_head(m, e->e.flags, e->e.tag, e->e.data);
}

static void fail_recv(struct recv *r, const struct fi_cq_err_entry *err)
{
	struct msg *m;

	if (err->err == FI_ETRUNC) {
		m = take_msg(r);
		cr_assert_gt(m->len, r->len);
		cr_assert_eq(err->len, r->len);
		cr_assert_eq(err->olen, m->len - r->len);
		check_head(m, err->flags, err->tag, err->data);
		return;
	}
	cr_assert(r->is_peek ? err->err == FI_ENOMSG : err->err == FI_ECANCELED, "%d", err->err);
	cr_assert_not(r->is_ended);
	r->is_ended = true;
	r->is_cancelled = true;
}

static void poll_node(struct node *n)
{
	struct fi_cq_err_entry err;
	struct core_cqe e;
	int ret;

	while ((ret = node_poll(n, &e, &err))) {
		void *context = ret == 1 ? e.e.op_context : err.op_context;

		if ((uint8_t *)context < (uint8_t *)recvs ||
		    (uint8_t *)context >= (uint8_t *)(recvs + RECVS)) {
			cr_assert_eq(ret, 1, "send: %d", err.err);
			end_send(context);
		} else if (ret == 1) {
			end_recv(context, &e);
		} else {
			fail_recv(context, &err);
		}
	}
}

/* ---- order ---- */

/** Checks a message against an older one of the same source. */
static void check_pair(const struct msg *m1, const struct msg *m2)
{
	if (m1->from != m2->from || !accepts(&recvs[m2->recv], m1))
		return;
	cr_assert_lt(m1->recv, m2->recv,
		     "%u to %u: message %u took receive %u, the younger %u took %u", m1->from,
		     m1->to, m1->id, m1->recv, m2->id, m2->recv);
}

/** Checks a message against a receive that is older than its own. */
static void check_older(const struct msg *m, const struct recv *r)
{
	if (r->is_peek || r->is_claimed || r->is_cancelled || !accepts(r, m))
		return;
	cr_assert_neq(r->msg, NEVER, "message %u passed receive %zu", m->id, (size_t)(r - recvs));
	cr_assert(msgs[r->msg].from != m->from || r->msg < m->id,
		  "message %u passed receive %zu, which the younger %u took", m->id,
		  (size_t)(r - recvs), r->msg);
}

static void check_order(void)
{
	for (uint32_t i = 0; i < msg_cnt; i++) {
		for (uint32_t j = 0; j < i; j++)
			check_pair(&msgs[j], &msgs[i]);
		for (uint32_t j = 0; j < msgs[i].recv; j++)
			check_older(&msgs[i], &recvs[j]);
	}
	for (uint32_t i = 0; i < recv_cnt; i++)
		if (recvs[i].msg != NEVER)
			check_bytes(&recvs[i]);
}

/* ---- run ---- */

static void open_nodes(void)
{
	fake_engine_reset();
	fake_tags_reset();
	fake_engine_cfg.eager_max = EAGER + 40;
	fake_tags_cfg.is_random = true;
	fake_tags_cfg.chance = 80;
	fake_tags_cfg.rng.state = rng_next(&rng);
	node_limits = (struct core_limits){ .eager_max = EAGER,
					    .single_copy_min = 128,
					    .unexpected_mem = 1 << 20 };
	util_params.tag_offload = 1;
	msg_cnt = 0;
	recv_cnt = 0;
	nodes_open(nodes, NODES);
}

static void run_step(void)
{
	unsigned what = below(40);
	unsigned n = below(NODES);

	if (what < 9)
		step_send();
	else if (what < 18)
		step_recv();
	else if (what < 20)
		step_peek();
	else if (what < 22)
		step_cancel();
	else if (what < 23)
		step_conditions();
	core_dom_progress(&nodes[n].dom);
	poll_node(&nodes[n]);
}

static bool is_all_received(void)
{
	for (uint32_t i = 0; i < msg_cnt; i++)
		if (msgs[i].recv == NEVER || !msgs[i].is_sent)
			return false;
	return true;
}

/** Posts a receive for each message that is left, and ends all. */
static void finish(void)
{
	fake_engine_cfg.no_delivery = false;
	fake_engine_cfg.room = 1000;
	for (uint32_t i = 0; i < msg_cnt; i++) {
		struct recv *r;

		if (msgs[i].recv != NEVER)
			continue;
		r = new_recv(msgs[i].to, false);
		r->from = FI_ADDR_UNSPEC;
		r->ignore = UINT64_MAX;
		r->len = LEN_MAX;
		post(r);
	}
	for (unsigned i = 0; i < 3000 && !is_all_received(); i++) {
		for (unsigned n = 0; n < NODES; n++) {
			core_dom_progress(&nodes[n].dom);
			poll_node(&nodes[n]);
		}
	}
	for (uint32_t i = 0; i < msg_cnt; i++)
		cr_assert(msgs[i].recv != NEVER && msgs[i].is_sent, "message %u, %s", i,
			  msgs[i].is_sent ? "sent" : "not sent");
}

static void cancel_rest(void)
{
	for (uint32_t i = 0; i < recv_cnt; i++) {
		if (recvs[i].is_ended)
			continue;
		cr_assert_eq(core_rx_cancel(&nodes[recvs[i].node].ep, &recvs[i]), 0);
		poll_node(&nodes[recvs[i].node]);
		cr_assert(recvs[i].is_ended, "receive %u", i);
		cr_assert_eq(recvs[i].bytes[0], 0xA5);
	}
}

static void close_nodes(void)
{
	for (unsigned n = 0; n < NODES; n++) {
		cr_assert_eq(nodes[n].ep.tx_open, 0);
		cr_assert_eq(pool_used(&nodes[n].ep.unexps), 0);
		cr_assert_eq(pool_used(&nodes[n].ep.rx_reqs), 0);
		cr_assert_eq(pool_used(&nodes[n].ep.dones), 0);
	}
	cr_assert_eq(fake_engine_exposed(), 0);
	cr_assert_eq(fake_engine_retained(), 0);
	nodes_close(nodes, NODES);
	cr_assert_eq(fake_tags_cnt.lists, 0);
	cr_assert_eq(fake_tags_cnt.registered, 0);
	util_params.tag_offload = 0;
}

static struct fake_tags_cnt run_seed(uint64_t seed)
{
	unsigned steps = (unsigned)rng_env("COPYRPC_TEST_STEPS", STEPS);

	rng.state = seed;
	open_nodes();
	for (unsigned i = 0; i < steps; i++)
		run_step();
	finish();
	check_order();
	cancel_rest();
	close_nodes();
	return fake_tags_cnt;
}

Test(core_offload_random, messages_of_a_source_stay_in_order)
{
	uint64_t only = rng_env("COPYRPC_TEST_SEED", 0);
	uint64_t seed = only ? only : 1, end = only ? only : SEEDS;
	struct fake_tags_cnt sum = { 0 };

	for (; seed <= end; seed++) {
		struct fake_tags_cnt cnt;

		fprintf(stderr, "core_offload: COPYRPC_TEST_SEED=%" PRIu64 "\n", seed);
		cnt = run_seed(seed);
		sum.matches += cnt.matches;
		sum.unexpected += cnt.unexpected;
		sum.removes += cnt.removes;
		sum.sure_removes += cnt.sure_removes;
		sum.finishes += cnt.finishes;
	}
	fprintf(stderr, "core_offload: %u matches, %u unexpected, %u removed, %u surely\n",
		sum.matches, sum.unexpected, sum.removes, sum.sure_removes);
	if (only)
		return;
	cr_expect_gt(sum.matches, 0);
	cr_expect_gt(sum.unexpected, 0);
	cr_expect_gt(sum.removes, sum.sure_removes);
	cr_expect_gt(sum.sure_removes, 0);
}
