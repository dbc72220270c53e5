/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fuzz target of the receive side: a datagram or a malicious peer must not affect other sessions.
 *
 * An endpoint has an honest session and several with an attacker, on the simulated network. The
 * input is a script: packets that fit a session except for changes (erpc_attacker.h), random bytes,
 * repeated packets of the honest peer, packets from strangers. In between users send, call, reply,
 * get, expose, retain and close, and time advances.
 *
 * Checks besides the sanitizers: a refused packet is counted under the first reason and changes
 * nothing; credits, grants, slots and retained bytes add up; memory is bounded; messages of the
 * honest session arrive once and in order.
 */
#include <rdma/fi_errno.h>

#include "erpc/erpc_progress.h"
#include "erpc/tx/erpc_kick.h"
#include "erpc_side.h"
#include "support/fake_net.h"
#include "support/pool_used.h"

#define RX_CNT   128u
#define TX_CNT   64u
#define ATTACKED 4u /* sessions with the attacker */
#define SEEN     16u
#define STRANGER 77u
#define MEM_MAX  (32u << 20)

enum node { HERE, FRIEND, ATTACKER, NODES };

static struct script script;
static struct fake_net net;
static struct dev_dgram *attacker_dg;
static struct erpc_ep *eps[ATTACKER]; /* HERE, FRIEND */
static struct side ours, theirs;      /* the honest session */
static struct side attacked[ATTACKED];
static struct attacker attacker;
static uint8_t seen[SEEN][LEN_MAX]; /* packets of the honest session */
static uint32_t seen_len[SEEN], seen_from[SEEN], seen_cnt;

static uint64_t take(unsigned bytes)
{
	return script_take(&script, bytes);
}

/* ---- open and close ---- */

static struct dev_dgram_ah *address(struct dev_dgram *at, struct dev_dgram *of)
{
	struct dev_dgram_ah *ah;
	struct dev_desc desc;

	CHECK(!of->ops->describe(of, &desc));
	CHECK(!at->ops->resolve(at, &desc, &ah));
	return ah;
}

static void side_close(struct side *side)
{
	if (!side->s)
		return;
	side_unexpose(side);
	if (!side->s->err)
		side->s->err = -FI_ESHUTDOWN;
	erpc_session_end(side->s);
	side->retained_cnt = side->call_cnt = 0;
	side->s->conn.chan.ops->close(&side->s->conn.chan);
	CHECK(!side->into);
	side->s = NULL;
}

static void side_open(struct side *side, struct erpc_ep *ep, struct wire_erpc_params *params)
{
	*side = (struct side){ .honest = side->honest, .peer = side->peer, .attacker = &attacker };
	CHECK(!erpc_session_open(ep, params, &side->s));
	side->token = params->token;
	side->s->user = side;
}

/** Opens a session with the attacker, with parameters that the script may change. */
static void attacked_open(struct side *side)
{
	uint8_t how = (uint8_t)take(1);
	struct wire_erpc_params params;

	side_open(side, eps[HERE], &params);
	params = (struct wire_erpc_params){ .version = WIRE_ERPC_VERSION,
					    .session = (uint16_t)how,
					    .credits = 32,
					    .token = how,
					    .mtu = 1024 };
	if (how & 0x80)
		script_bytes(&script, (uint8_t *)&params + take(1) % sizeof(params) / 4 * 4, 4);
	if (erpc_session_connect(side->s, &params, address(eps[HERE]->dg, attacker_dg)))
		side_close(side);
	else if (!(how & 0x40))
		erpc_session_attach(side->s);
}

/** Opens, attaches or closes the session. */
static void live(struct side *side)
{
	if (!side->s)
		attacked_open(side);
	else if (!side->s->attached)
		erpc_session_attach(side->s);
	else
		side_close(side);
}

static void hear(struct fake_net *n, struct fake_pkt *pkt, void *arg)
{
	uint32_t i = seen_cnt % SEEN;

	if (pkt->to == ATTACKER) {
		attacker_observe(&attacker, pkt->data, pkt->len);
		return;
	}
	CHECK(pkt->len <= LEN_MAX);
	memcpy(seen[i], pkt->data, pkt->len);
	seen_len[i] = pkt->len;
	seen_from[i] = pkt->from;
	seen_cnt++;
}

static void ep_open(enum node node, double rate)
{
	struct dev_dgram_attr dg_attr = { .rx_cnt = RX_CNT, .tx_cnt = TX_CNT };
	struct erpc_ep_attr attr = { .tx_cnt = TX_CNT,
				     .up = &side_upcalls,
				     .link_rate = rate,
				     .seed = 1 + node,
				     .failed = side_failed };

	CHECK(!fake_net_ops.open(fake_net_dev(&net), &dg_attr, &attr.dg));
	if (node == ATTACKER)
		attacker_dg = attr.dg;
	else
		CHECK(!erpc_ep_open(&attr, &eps[node]));
}

static void open_all(uint8_t shape)
{
	struct wire_erpc_params here, there;
	unsigned i;

	fake_net_init(&net, 1);
	net.now_ns = 1000000;
	net.mtu = shape & 1 ? 300 : 1024;
	net.inline_max = shape & 2 ? 60 : 0;
	net.hook = hear;
	for (i = 0; i < NODES; i++)
		ep_open((enum node)i, shape & 4 ? 1e8 : 0);
	attacker = (struct attacker){ .script = &script };
	seen_cnt = 0;
	ours = (struct side){ .honest = true, .peer = &theirs };
	theirs = (struct side){ .honest = true, .peer = &ours };
	memset(attacked, 0, sizeof(attacked));
	side_open(&ours, eps[HERE], &here);
	side_open(&theirs, eps[FRIEND], &there);
	CHECK(!erpc_session_connect(ours.s, &there, address(eps[HERE]->dg, eps[FRIEND]->dg)));
	CHECK(!erpc_session_connect(theirs.s, &here, address(eps[FRIEND]->dg, eps[HERE]->dg)));
	erpc_session_attach(ours.s);
	erpc_session_attach(theirs.s);
	for (i = 0; i < ATTACKED; i++)
		attacked_open(&attacked[i]);
}

static void pass(uint64_t ns)
{
	uint64_t until = net.now_ns + ns;

	do {
		erpc_ep_progress(eps[HERE], net.now_ns);
		erpc_ep_progress(eps[FRIEND], net.now_ns);
	} while (fake_net_step(&net, until));
}

/* ---- received packets ---- */

enum verdict { MALFORMED, NO_SESSION, BAD_TOKEN, BAD_SOURCE, BAD_STATE, PASSED };

static struct side *side_with(uint32_t num)
{
	unsigned i;

	if (ours.s->num == num)
		return &ours;
	for (i = 0; i < ATTACKED; i++)
		if (attacked[i].s && attacked[i].s->num == num)
			return &attacked[i];
	return NULL;
}

/** Returns the verdict by docs/datagram-protocol.md, sections 2 and 7. */
static enum verdict expected(uint32_t from, const uint8_t *pkt, uint32_t len)
{
	const struct side *side;

	if (len < 16 || pkt[13] >> 4 != 0xB)
		return MALFORMED;
	side = side_with(pkt[4] | (uint32_t)pkt[5] << 8);
	if (!side)
		return NO_SESSION;
	if ((pkt[14] | (uint32_t)pkt[15] << 8) != (side->token & 0xFFFF))
		return BAD_TOKEN;
	if (from != (side->honest ? FRIEND : ATTACKER))
		return BAD_SOURCE;
	return side->s->err ? BAD_STATE : PASSED;
}

static uint64_t refused_later(const struct copyrpc_stats_packets *st)
{
	return st->rx_stale + st->rx_early + st->rx_bad + st->rx_repeats + st->rx_no_memory;
}

/** Delivers one packet: it is counted under its reason, or has an effect. */
static void deliver(uint32_t from, const uint8_t *pkt, uint32_t len)
{
	enum verdict verdict;
	struct copyrpc_stats_packets before;
	struct erpc_session s;
	const struct side *side;
	uint32_t saved;

	pass(0);
	saved = eps[HERE]->saved_cnt;
	before = *eps[HERE]->stats;
	verdict = expected(from, pkt, len);
	side = verdict == PASSED ? side_with(pkt[4] | (uint32_t)pkt[5] << 8) : &ours;
	s = *side->s;
	fake_net_forge(&net, from, HERE, pkt, len, 0);
	fake_net_run(&net, net.now_ns);
	erpc_rx_poll(eps[HERE], net.now_ns);
	if (verdict != PASSED) {
		before.rx_pkts++;
		(&before.rx_malformed)[verdict]++;
		CHECK(!memcmp(&before, eps[HERE]->stats, sizeof(before)));
		CHECK(!memcmp(&s, side->s, sizeof(s)));
	} else if (!memcmp(&s, side->s, sizeof(s))) {
		CHECK(refused_later(eps[HERE]->stats) > refused_later(&before) ||
		      eps[HERE]->saved_cnt > saved || eps[HERE]->stats->tx_pkts > before.tx_pkts);
	}
	erpc_ep_flush(eps[HERE]);
}

/** Delivers a packet of the attacker for one of its sessions. */
static void rx_attack(void)
{
	struct side *side = &attacked[take(1) % ATTACKED];
	uint8_t pkt[ATTACKER_PKT_MAX];

	if (side->s)
		deliver(ATTACKER, pkt, attacker_packet(&attacker, side->s, pkt));
}

/** Delivers a packet for the honest session with a wrong address or tag. */
static void rx_stranger(void)
{
	uint8_t pkt[ATTACKER_PKT_MAX], how = (uint8_t)take(1);
	uint32_t from = how & 1 ? ATTACKER : how & 2 ? STRANGER : FRIEND, len;

	len = attacker_packet(&attacker, ours.s, pkt);
	if (from == FRIEND)
		pkt[14 + (how >> 2 & 1)] ^= (uint8_t)(how >> 3 | 1);
	if (expected(from, pkt, len) != PASSED)
		deliver(from, pkt, len);
}

static void rx_bytes(void)
{
	uint8_t pkt[256];
	uint32_t len = (uint32_t)take(1), from = (uint32_t)take(1) % NODES;

	script_bytes(&script, pkt, len);
	if (expected(from, pkt, len) != PASSED || from == ATTACKER)
		deliver(from, pkt, len);
}

/** Repeats a packet, late. */
static void rx_repeat(void)
{
	uint32_t i = (uint32_t)take(1) % SEEN;

	if (i >= seen_cnt)
		return;
	fake_net_forge(&net, seen_from[i], !seen_from[i], seen[i], seen_len[i], 1 + take(2));
}

/* ---- invariants ---- */

static void check_session(const struct side *side)
{
	const struct erpc_session *s = side->s;
	uint32_t flying = 0, slot;

	if (!s || !s->listed || s->err)
		return;
	for (slot = 0; slot < ERPC_SLOTS; slot++) {
		CHECK(erpc_client_is_free(&s->tx[slot].c) == (s->send.free_mask >> slot & 1));
		CHECK(s->tx[slot].c.rx <= s->tx[slot].c.tx);
		if (!erpc_client_is_free(&s->tx[slot].c))
			flying += erpc_client_in_flight(&s->tx[slot].c);
	}
	CHECK(s->flow.credits + flying == s->credit_max);
	CHECK(s->calls.grant_left <= ERPC_GRANT &&
	      s->reply_reserved <= 2 * ERPC_GRANT + ERPC_BUF_LARGE);
	CHECK(s->send.seq - s->send.seq_done <= ERPC_SLOTS);
	CHECK((s->ack.wait_mask & s->ack.empty_mask) == 0);
}

static void check(void)
{
	const struct erpc_ep *ep = eps[HERE];
	unsigned i;

	check_session(&ours);
	check_session(&theirs);
	for (i = 0; i < ATTACKED; i++)
		check_session(&attacked[i]);
	CHECK(!ours.s->err && !theirs.s->err);
	CHECK(ep->dg->rx_retained <= RX_CNT);
	CHECK(pool_used(&ep->bodies) <= (ATTACKED + 1) * (RETAINED_MAX + ERPC_SLOTS));
	CHECK(ep->bufs.mem <= MEM_MAX);
	CHECK(ep->session_cnt <= ATTACKED + 1);
}

static void step(void)
{
	uint8_t what = (uint8_t)take(1);

	switch (what % 16) {
	default: rx_attack(); break;
	case 6:
	case 7: rx_stranger(); break;
	case 8: rx_bytes(); break;
	case 9: rx_repeat(); break;
	case 10: side_act(&ours, what >> 4); break;
	case 11: side_act(&theirs, what >> 4); break;
	case 12:
	case 13: side_act(&attacked[what >> 4 & 3], (uint8_t)take(1)); break;
	case 14: pass(take(1) << (what >> 4)); break;
	case 15: live(&attacked[what >> 4 & 3]); break;
	}
	check();
}

static bool is_done(const struct side *side, const struct side *other)
{
	return side->received == other->sent && side->replies == side->calls_sent && !side->into &&
	       !side->s->conn.chan.ops->is_busy(&side->s->conn.chan);
}

/** Asserts that all honest messages arrive soon after the attacks end. */
static void settle(void)
{
	unsigned rounds = 0;

	while (!is_done(&ours, &theirs) || !is_done(&theirs, &ours)) {
		CHECK(rounds++ < 20000);
		while (ours.call_cnt)
			side_reply(&ours);
		while (theirs.call_cnt)
			side_reply(&theirs);
		while (ours.retained_cnt)
			side_release(&ours);
		while (theirs.retained_cnt)
			side_release(&theirs);
		pass(1000000);
	}
	check();
	CHECK(ours.s->flow.credits == ours.s->credit_max && ours.s->calls.grant_left == ERPC_GRANT);
}

/** Returns the number of buffers that wait for the device. */
static size_t waiting(const struct erpc_ep *ep)
{
	const struct util_list *it;
	size_t cnt = 0;

	for (it = ep->bufs.waiting.next; it != &ep->bufs.waiting; it = it->next)
		cnt++;
	return cnt;
}

static void ep_close(struct erpc_ep *ep)
{
	fake_net_run(&net, net.now_ns + 1000000);
	erpc_ep_progress(ep, net.now_ns);
	CHECK(!ep->dg->rx_retained && !ep->session_cnt && !ep->promised);
	CHECK(!pool_used(&ep->bodies));
	CHECK(ep->bufs.used_cnt == waiting(ep) && !pool_used(&ep->exposure_pool));
	erpc_ep_close(ep);
}

static void close_all(void)
{
	unsigned i;

	for (i = 0; i < ATTACKED; i++)
		side_close(&attacked[i]);
	side_close(&ours);
	side_close(&theirs);
	ep_close(eps[HERE]);
	ep_close(eps[FRIEND]);
	attacker_dg->ops->close(attacker_dg);
	fake_net_fini(&net);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	script = (struct script){ data, data + size };
	open_all((uint8_t)take(1));
	while (!script_is_over(&script))
		step();
	settle();
	close_all();
	return 0;
}
