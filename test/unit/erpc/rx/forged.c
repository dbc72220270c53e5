/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Implements forged.h. */
#include "unit/erpc/rx/forged.h"

#include <assert.h>
#include <criterion/criterion.h>
#include <stddef.h>
#include <string.h>

#include "support/erpc_divert.h"
#include "support/pool_used.h"

struct erpc_pair forged_pair;

void forged_setup(void)
{
	unsigned i;

	erpc_pair_start(&forged_pair, 1, PAIR_MTU);
	/* Each slot has a completed request. */
	for (i = 0; i < 2; i++) {
		cr_assert_eq(pair_call(&forged_pair.end[i], 0), 0);
		cr_assert(pair_get(&forged_pair.end[i]));
	}
	erpc_pair_settle(&forged_pair);
	erpc_pair_check(&forged_pair);
}

void forged_teardown(void)
{
	cr_expect_eq(forged_pair.end[0].ep->dg->rx_retained, 0,
		     "every receive buffer was returned");
	erpc_pair_fini(&forged_pair);
}

void forged_check_traffic(void)
{
	forged_pair.net.hook = NULL;
	cr_assert_eq(forged_pair.end[0].s->err, 0);
	cr_assert_eq(pair_send(&forged_pair.end[0], 0), 0);
	cr_assert_eq(pair_call(&forged_pair.end[1], 0), 0);
	cr_assert(pair_get(&forged_pair.end[0]));
	cr_assert(pair_get(&forged_pair.end[1]));
	erpc_pair_settle(&forged_pair);
	erpc_pair_check(&forged_pair);
	cr_assert_eq(forged_pair.end[0].gets_refused + forged_pair.end[1].gets_refused, 0);
}

/* ---- packets ---- */

struct packet forged_request(uint32_t slot)
{
	const struct erpc_session *s = forged_pair.end[0].s;
	struct wire_erpc_batch head = { .seq = s->order.next };
	struct packet pkt = {
		.h = { .req_type = slot < ERPC_BATCH_SLOTS   ? WIRE_ERPC_BATCH
				   : slot == ERPC_REPLY_SLOT ? WIRE_ERPC_REPLIES
							     : WIRE_ERPC_GET,
		       .session = s->num,
		       .kind = WIRE_ERPC_REQ,
		       .req_num = (s->rx[slot].s.req_num + ERPC_SLOTS) % WIRE_ERPC_REQ_MAX,
		       .msg_size = sizeof(head),
		       .tag = s->tag },
		.from = fake_port_of(forged_pair.end[1].ep->dg)->number,
		.len = sizeof(head),
	};

	memcpy(pkt.data, &head, sizeof(head));
	return pkt;
}

struct packet forged_response(uint32_t slot, enum wire_erpc_kind kind)
{
	struct packet pkt = forged_request(slot);

	pkt.h.kind = kind;
	pkt.h.req_type = 0;
	pkt.h.req_num = forged_pair.end[0].s->tx[slot].c.req_num;
	pkt.h.msg_size = 0;
	pkt.len = 0;
	return pkt;
}

static void forged_send_bytes(uint32_t from, const uint8_t *bytes, uint32_t len)
{
	fake_net_forge(&forged_pair.net, from, fake_port_of(forged_pair.end[0].ep->dg)->number,
		       bytes, len, 0);
}

void forged_send(const struct packet *pkt)
{
	uint8_t bytes[WIRE_ERPC_HDR_LEN + sizeof(pkt->data)];

	wire_erpc_put(bytes, &pkt->h);
	memcpy(bytes + WIRE_ERPC_HDR_LEN, pkt->data, pkt->len);
	forged_send_bytes(pkt->from, bytes, WIRE_ERPC_HDR_LEN + pkt->len);
}

void forged_progress(void)
{
	fake_net_run(&forged_pair.net, forged_pair.net.now_ns);
	erpc_ep_progress(forged_pair.end[0].ep, forged_pair.net.now_ns);
}

void forged_deliver_bytes(uint32_t from, const uint8_t *bytes, uint32_t len)
{
	forged_send_bytes(from, bytes, len);
	forged_progress();
}

void forged_deliver(const struct packet *pkt)
{
	forged_send(pkt);
	forged_progress();
}

/* ---- effects ---- */

static const char *const reasons[] = { "malformed", "no session", "token", "source",
				       "state",     "stale",      "early", "bad" };

const uint64_t *forged_counters(const struct copyrpc_stats_packets *stats)
{
	static_assert(offsetof(struct copyrpc_stats_packets, rx_bad) -
				      offsetof(struct copyrpc_stats_packets, rx_malformed) ==
			      7 * sizeof(uint64_t),
		      "eight in a row");
	return &stats->rx_malformed;
}

void forged_snapshot(struct before *b)
{
	b->stats = *forged_pair.end[0].ep->stats;
	b->s = *forged_pair.end[0].s;
	b->responses = forged_pair.net.cnt.sent;
	b->bufs = forged_pair.end[0].ep->bufs.used_cnt;
}

/** Notes of early packets do not count as progress of a request. */
bool forged_is_unchanged(struct before *b)
{
	const struct erpc_session *s = forged_pair.end[0].s;
	uint32_t slot;

	for (slot = 0; slot < ERPC_SLOTS; slot++) {
		b->s.rx[slot].early = s->rx[slot].early;
		b->s.rx[slot].early_num = s->rx[slot].early_num;
	}
	b->s.rx_ns = s->rx_ns; /* the time of the last packet may change */
	return !memcmp(&b->s, s, sizeof(b->s));
}

void forged_only_counted(struct before *b, enum reason reason, const char *what)
{
	const struct erpc_ep *ep = forged_pair.end[0].ep;
	struct copyrpc_stats_packets want = b->stats;

	want.rx_pkts++;
	(&want.rx_malformed)[reason]++;
	cr_expect_eq(forged_counters(ep->stats)[reason], forged_counters(&b->stats)[reason] + 1,
		     "%s: %s", what, reasons[reason]);
	cr_expect(!memcmp(&want, ep->stats, sizeof(want)), "%s: a packet was sent", what);
	cr_expect(forged_is_unchanged(b), "%s: a packet was sent", what);
	cr_expect_eq(forged_pair.net.cnt.sent, b->responses, "%s: a packet was sent", what);
	cr_expect_eq(ep->bufs.used_cnt, b->bufs, "%s", what);
	cr_expect_eq(ep->dg->rx_retained, 0, "%s: its buffer was kept", what);
	cr_expect_eq(pool_used(&ep->bodies), 0, "%s", what);
}

void forged_refused(const struct packet *pkt, enum reason reason, const char *what)
{
	struct before b;

	forged_snapshot(&b);
	forged_deliver(pkt);
	forged_only_counted(&b, reason, what);
}

void forged_without_request(enum wire_erpc_kind kind)
{
	struct packet pkt;
	uint32_t slot;

	for (slot = 0; slot < ERPC_SLOTS; slot++) {
		pkt = forged_response(slot, kind);
		forged_refused(&pkt, STALE, "to nothing");
		pkt.h.req_type = WIRE_ERPC_REFUSED;
		forged_refused(&pkt, STALE, "a refusal of nothing");
		pkt.h.req_num -= ERPC_SLOTS;
		forged_refused(&pkt, STALE, "to what is over");
		pkt.h.req_num += 2 * ERPC_SLOTS;
		forged_refused(&pkt, BAD, "to what was never asked");
	}
}

/* ---- sent packets ---- */

struct forged_sent forged_sent;

void forged_drop(struct fake_net *net, struct fake_pkt *pkt, void *arg)
{
	unsigned i = forged_sent.cnt;

	pkt->copies = 0;
	if (i == FORGED_SENT_MAX)
		return;
	cr_assert(wire_erpc_get(&forged_sent.h[i], pkt->data, pkt->len));
	forged_sent.len[i] = pkt->len - WIRE_ERPC_HDR_LEN;
	forged_sent.first[i] = forged_sent.len[i] ? pkt->data[WIRE_ERPC_HDR_LEN] : 0;
	forged_sent.cnt++;
}

void forged_record(void)
{
	forged_sent.cnt = 0;
	forged_pair.net.hook = forged_drop;
}

/* ---- victim ---- */

struct erpc_session *forged_victim;
static struct erpc_session *attacker;

void forged_victim_open(const struct core_upcalls *up)
{
	erpc_pair_join(forged_pair.end[0].ep, forged_pair.end[1].ep, &forged_victim, &attacker);
	erpc_divert(forged_victim, up);
}

void forged_victim_close(void)
{
	erpc_session_close(forged_victim);
	erpc_session_close(attacker);
}

struct packet forged_victim_packet(uint32_t slot, enum wire_erpc_kind kind)
{
	struct packet pkt = forged_request(slot);

	pkt.h.kind = kind;
	pkt.h.session = forged_victim->num;
	pkt.h.tag = forged_victim->tag;
	pkt.h.req_num = forged_victim->rx[slot].s.req_num + ERPC_SLOTS;
	if (kind == WIRE_ERPC_RESP) {
		pkt.h.req_num = forged_victim->tx[slot].c.req_num;
		pkt.h.req_type = WIRE_ERPC_PROMPT;
	}
	memset(pkt.data, 0, BATCH_HEAD);
	pkt.len = BATCH_HEAD;
	return pkt;
}

void forged_add(struct packet *pkt, unsigned kind, uint32_t word, uint32_t resp_max, uint32_t len,
		uint32_t there)
{
	uint64_t head = len | (uint64_t)kind << 24 | (uint64_t)word << 32;

	memset(pkt->data + pkt->len, 0, 64);
	memcpy(pkt->data + pkt->len, &head, sizeof(head));
	memcpy(pkt->data + pkt->len + sizeof(head), &resp_max, sizeof(resp_max));
	pkt->len += there;
}
