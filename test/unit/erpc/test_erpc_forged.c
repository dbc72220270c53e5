/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Packets that no honest peer sends (docs/datagram-protocol.md, section 7): each is refused for the first
 * reason there is, counted there, and has changed nothing else; what it says in a packet that fits ends
 * its session alone.
 */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <stddef.h>
#include <string.h>

#include "erpc/erpc_kick.h"
#include "erpc/erpc_stats.h"
#include "support/erpc_pair.h"

#define STRANGER   9u /* a port that nobody has */
#define BATCH_HEAD sizeof(struct wire_erpc_batch)

/** Everything is forged for end 0, in the name of end 1. */
static struct erpc_pair p;

static void setup(void)
{
	unsigned i;

	erpc_pair_init(&p, 1);
	erpc_pair_open(&p);
	/* Every slot that is tried has had a request, so that there is one that is over. */
	for (i = 0; i < 2; i++) {
		cr_assert_eq(pair_call(&p.end[i], 0), 0);
		cr_assert(pair_get(&p.end[i]));
	}
	erpc_pair_settle(&p);
	erpc_pair_check(&p);
}

static void teardown(void)
{
	cr_expect_eq(p.end[0].port->dg->rx_held, 0, "what was refused was given back");
	erpc_pair_fini(&p);
}

/** Honest traffic goes on as if nothing had been. */
static void goes_on(void)
{
	cr_assert_eq(p.end[0].s->err, 0);
	cr_assert_eq(pair_send(&p.end[0], 0), 0);
	cr_assert_eq(pair_call(&p.end[1], 0), 0);
	cr_assert(pair_get(&p.end[0]));
	cr_assert(pair_get(&p.end[1]));
	erpc_pair_settle(&p);
	erpc_pair_check(&p);
	cr_assert_eq(p.end[0].gets_refused + p.end[1].gets_refused, 0);
}

/* ---- a packet ---- */

struct packet {
	struct wire_erpc_hdr h;
	uint32_t from;
	uint32_t len; /* of the payload */
	uint8_t data[1024];
};

/** Next request of end 1 in that slot, which end 0 would take: a batch, a get or answers with nothing in it. */
static struct packet request(uint32_t slot)
{
	const struct erpc_session *s = p.end[0].s;
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
		.from = fake_port_of(p.end[1].port->dg)->number,
		.len = sizeof(head),
	};

	memcpy(pkt.data, &head, sizeof(head));
	return pkt;
}

/** An answer to end 0's request in that slot. */
static struct packet response(uint32_t slot, enum wire_erpc_kind kind)
{
	struct packet pkt = request(slot);

	pkt.h.kind = kind;
	pkt.h.req_type = 0;
	pkt.h.req_num = p.end[0].s->tx[slot].c.req_num;
	pkt.h.msg_size = 0;
	pkt.len = 0;
	return pkt;
}

static void deliver_bytes(uint32_t from, const uint8_t *bytes, uint32_t len)
{
	struct fake_net *net = &p.net;

	fake_net_forge(net, from, fake_port_of(p.end[0].port->dg)->number, bytes, len, 0);
	fake_net_run(net, net->now_ns);
	erpc_port_progress(p.end[0].port, net->now_ns);
}

static void deliver(const struct packet *pkt)
{
	uint8_t bytes[WIRE_ERPC_HDR_LEN + sizeof(pkt->data)];

	wire_erpc_put(bytes, &pkt->h);
	memcpy(bytes + WIRE_ERPC_HDR_LEN, pkt->data, pkt->len);
	deliver_bytes(pkt->from, bytes, WIRE_ERPC_HDR_LEN + pkt->len);
}

/* ---- what it changed ---- */

static const char *const reasons[] = { "malformed", "no session", "token", "source",
				       "state",     "stale",      "early", "bad" };

/** The reasons are beside each other, in the order of the checks. */
static const uint64_t *counters(const struct erpc_stats *stats)
{
	_Static_assert(offsetof(struct erpc_stats, rx_bad) -
				       offsetof(struct erpc_stats, rx_malformed) ==
			       7 * sizeof(uint64_t),
		       "eight in a row");
	return &stats->rx_malformed;
}

enum reason { MALFORMED, NO_SESSION, BAD_TOKEN, BAD_SOURCE, BAD_STATE, STALE, EARLY, BAD };

/** What was there before. */
struct before {
	struct erpc_stats stats;
	struct erpc_session s;
	uint64_t answers;
	size_t bufs;
};

static void look(struct before *b)
{
	b->stats = p.end[0].port->stats;
	b->s = *p.end[0].s;
	b->answers = p.net.cnt.sent;
	b->bufs = p.end[0].port->bufs.used_cnt;
}

static void only_counted(const struct before *b, enum reason reason, const char *what)
{
	const struct erpc_port *port = p.end[0].port;
	struct erpc_stats want = b->stats;

	want.rx_pkts++;
	(&want.rx_malformed)[reason]++;
	cr_expect_eq(counters(&port->stats)[reason], counters(&b->stats)[reason] + 1, "%s: %s",
		     what, reasons[reason]);
	cr_expect(!memcmp(&want, &port->stats, sizeof(want)), "%s: another counter", what);
	cr_expect(!memcmp(&b->s, p.end[0].s, sizeof(b->s)), "%s: the session has changed", what);
	cr_expect_eq(p.net.cnt.sent, b->answers, "%s: it was answered", what);
	cr_expect_eq(port->bufs.used_cnt, b->bufs, "%s", what);
	cr_expect_eq(port->dg->rx_held, 0, "%s: its buffer was kept", what);
	cr_expect_eq(port->bodies.used_cnt, 0, "%s", what);
}

static void refused(const struct packet *pkt, enum reason reason, const char *what)
{
	struct before b;

	look(&b);
	deliver(pkt);
	only_counted(&b, reason, what);
}

/* ---- before a session is known ---- */

Test(erpc_forged, what_is_no_packet, .init = setup, .fini = teardown)
{
	uint8_t bytes[WIRE_ERPC_HDR_LEN];
	struct packet pkt = request(0);
	struct before b;
	uint32_t len;

	wire_erpc_put(bytes, &pkt.h);
	for (len = 0; len < WIRE_ERPC_HDR_LEN; len++) {
		look(&b);
		deliver_bytes(pkt.from, bytes, len);
		only_counted(&b, MALFORMED, "shorter than a header");
	}
	for (len = 0; len < 16; len++) {
		if (len == WIRE_ERPC_MAGIC)
			continue;
		bytes[13] = (uint8_t)((bytes[13] & 0xF) | len << 4);
		look(&b);
		deliver_bytes(pkt.from, bytes, WIRE_ERPC_HDR_LEN);
		only_counted(&b, MALFORMED, "another magic");
	}
	goes_on();
}

/** Each packet has all the faults that are looked for later, too. */
Test(erpc_forged, the_first_reason_counts, .init = setup, .fini = teardown)
{
	struct packet pkt = request(0);

	pkt.h.pkt_num = 5; /* it has no place */
	refused(&pkt, BAD, "number");
	p.end[0].s->err = -FI_EIO;
	refused(&pkt, BAD_STATE, "state");
	pkt.from = STRANGER;
	refused(&pkt, BAD_SOURCE, "source");
	pkt.h.tag ^= 1;
	refused(&pkt, BAD_TOKEN, "token");
	pkt.h.session++;
	refused(&pkt, NO_SESSION, "session");
	p.end[0].s->err = 0;
	goes_on();
}

Test(erpc_forged, every_bit_of_the_tag_and_all_other_numbers, .init = setup, .fini = teardown)
{
	struct packet pkt;
	unsigned bit;

	for (bit = 0; bit < 16; bit++) {
		pkt = request(0);
		pkt.h.tag ^= (uint16_t)(1u << bit);
		refused(&pkt, BAD_TOKEN, "tag");
		pkt = request(0);
		pkt.h.session ^= (uint16_t)(1u << bit);
		refused(&pkt, NO_SESSION, "session");
	}
	goes_on();
}

Test(erpc_forged, who_knows_everything_and_is_somebody_else, .init = setup, .fini = teardown)
{
	uint32_t slot;

	for (slot = 0; slot < ERPC_SLOTS; slot++) {
		struct packet pkt = request(slot);

		pkt.from = STRANGER;
		refused(&pkt, BAD_SOURCE, "a stranger");
		pkt.from = fake_port_of(p.end[0].port->dg)->number;
		refused(&pkt, BAD_SOURCE, "we ourselves");
	}
	goes_on();
}

/** A session's number may be another's tomorrow, and packets of the first one still be on their way. */
Test(erpc_forged, a_session_that_is_gone, .init = setup, .fini = teardown)
{
	struct erpc_session *a, *b;
	struct packet pkt = request(0);
	struct erpc_stats before;

	erpc_pair_join(p.end[0].port, p.end[1].port, &a, &b);
	pkt.h.session = a->num;
	pkt.h.tag = a->tag;
	pkt.h.req_num = a->rx[0].s.req_num + ERPC_SLOTS;
	erpc_session_close(a);
	refused(&pkt, NO_SESSION, "gone");
	before = p.end[0].port->stats;
	erpc_session_close(b);
	cr_expect(!memcmp(&before, &p.end[0].port->stats, sizeof(before)));
	goes_on();
}

/* ---- requests ---- */

Test(erpc_forged, requests_that_are_not_their_slots, .init = setup, .fini = teardown)
{
	struct packet pkt;
	unsigned slot, type;

	for (slot = 0; slot < ERPC_SLOTS; slot++)
		for (type = 0; type < 256; type++) {
			pkt = request(slot);
			if (pkt.h.req_type == type)
				continue;
			pkt.h.req_type = (uint8_t)type;
			refused(&pkt, BAD, "type");
		}
	goes_on();
}

Test(erpc_forged, requests_of_another_time, .init = setup, .fini = teardown)
{
	struct packet pkt;
	unsigned slot, i;

	for (slot = 0; slot < ERPC_SLOTS; slot++) {
		for (i = 1; i < 44 - 3; i++) {
			pkt = request(slot);
			pkt.h.req_num ^= 1ull << (i + 3);
			refused(&pkt, STALE, "number");
		}
		pkt = request(slot);
		pkt.h.req_num = (pkt.h.req_num + ERPC_SLOTS) % WIRE_ERPC_REQ_MAX;
		refused(&pkt, STALE, "one too far");
		pkt.h.req_num = (pkt.h.req_num - 3 * ERPC_SLOTS) % WIRE_ERPC_REQ_MAX;
		refused(&pkt, STALE, "long over");
	}
	goes_on();
}

/** Sizes and packet numbers that do not agree with each other, or with the length of the packet. */
Test(erpc_forged, requests_whose_parts_do_not_fit, .init = setup, .fini = teardown)
{
	uint32_t payload = p.end[0].s->payload, slot;
	struct packet pkt;

	for (slot = 0; slot < ERPC_SLOTS; slot++) {
		pkt = request(slot);
		pkt.len--;
		refused(&pkt, BAD, "shorter than it says");
		pkt.len += 2;
		refused(&pkt, BAD, "longer than it says");
		pkt = request(slot);
		pkt.h.pkt_num = 1;
		refused(&pkt, BAD, "a second one of one");
		pkt = request(slot);
		pkt.h.msg_size = WIRE_ERPC_MSG_MAX;
		pkt.len = payload;
		refused(&pkt, BAD, "16 MiB");
		pkt.h.msg_size = ERPC_BUF_LARGE + 1;
		refused(&pkt, BAD, "more than a request may have");
		pkt.h.msg_size = 2 * payload;
		pkt.len = payload - 1;
		refused(&pkt, BAD, "a first part that is not full");
		pkt.len = payload;
		pkt.h.pkt_num = 1;
		refused(&pkt, EARLY, "the second part first");
		pkt.h.pkt_num = (1u << 14) - 1;
		refused(&pkt, BAD, "a part far behind its end");
	}
	goes_on();
}

/** A request has begun: what does not belong to it changes nothing of it, and then it goes on. */
Test(erpc_forged, a_request_that_changes_its_mind, .init = setup)
{
	struct erpc_session *s = p.end[0].s;
	uint32_t payload = s->payload;
	struct packet first = request(0), pkt;
	struct before b;

	first.h.msg_size = 3 * payload;
	first.len = payload;
	deliver(&first);
	cr_assert_eq(s->rx[0].s.rx, 1);
	cr_assert_eq(s->rx[0].body->len, 3 * payload);
#define CHANGED(reason)                                                                            \
	do {                                                                                       \
		look(&b);                                                                          \
		deliver(&pkt);                                                                     \
		cr_expect_eq(counters(&p.end[0].port->stats)[reason],                              \
			     counters(&b.stats)[reason] + 1);                                      \
		cr_expect(!memcmp(&b.s, s, sizeof(b.s)));                                          \
		cr_expect_eq(p.end[0].port->bodies.used_cnt, 1);                                   \
	} while (0)
	pkt = first;
	pkt.h.pkt_num = 1;
	pkt.h.msg_size = 4 * payload;
	CHANGED(BAD); /* another size */
	pkt.h.msg_size = 3 * payload;
	pkt.len = payload - 1;
	CHANGED(BAD); /* a part that is not full */
	pkt.len = payload;
	pkt.h.pkt_num = 2;
	CHANGED(EARLY);
	pkt = first;
	pkt.h.req_num += ERPC_SLOTS;
	CHANGED(BAD); /* the next one, before this one was answered */
	pkt.h.kind = WIRE_ERPC_RFR;
	pkt.h.req_num = first.h.req_num;
	pkt.h.msg_size = 0;
	pkt.h.pkt_num = 3;
	pkt.len = 0;
	CHANGED(BAD); /* part of a response that there is not */
#undef CHANGED
	first.h.pkt_num = 1;
	deliver(&first);
	cr_expect_eq(s->rx[0].s.rx, 2);
	erpc_pair_fini(&p);
}

Test(erpc_forged, parts_of_responses_that_are_not_there, .init = setup, .fini = teardown)
{
	struct packet pkt;
	uint32_t slot;

	for (slot = 0; slot < ERPC_SLOTS; slot++) {
		bool had = p.end[0].s->rx[slot].s.req_pkts;

		pkt = request(slot);
		pkt.h.kind = WIRE_ERPC_RFR;
		pkt.h.msg_size = 0;
		pkt.h.pkt_num = 1;
		pkt.len = 0;
		refused(&pkt, BAD, "of a request that has not begun");
		pkt.h.req_num -= ERPC_SLOTS;
		pkt.h.pkt_num = (1u << 14) - 1;
		refused(&pkt, had ? BAD : STALE, "behind the end");
		pkt.h.pkt_num = 0;
		refused(&pkt, had ? BAD : STALE, "where a part of the request was");
		pkt.h.pkt_num = 1;
		pkt.len = 1;
		refused(&pkt, had ? BAD : STALE, "with bytes");
		pkt.h.req_num -= ERPC_SLOTS;
		refused(&pkt, STALE, "of a request that is over");
	}
	goes_on();
}

/* ---- answers ---- */

Test(erpc_forged, answers_that_nobody_waits_for, .init = setup, .fini = teardown)
{
	static const enum wire_erpc_kind kinds[] = { WIRE_ERPC_CR, WIRE_ERPC_RESP };
	struct packet pkt;
	uint32_t slot, k;

	for (slot = 0; slot < ERPC_SLOTS; slot++)
		for (k = 0; k < 2; k++) {
			pkt = response(slot, kinds[k]);
			refused(&pkt, STALE, "to nothing");
			pkt.h.req_type = WIRE_ERPC_REFUSED;
			refused(&pkt, STALE, "a refusal of nothing");
			pkt.h.req_num -= ERPC_SLOTS;
			refused(&pkt, STALE, "to what is over");
			pkt.h.req_num += 2 * ERPC_SLOTS;
			refused(&pkt, BAD, "to what was never asked");
		}
	goes_on();
}

/** Nothing reaches the peer any more: what is sent from now on is under way until this ends. */
static void swallow(struct fake_net *net, struct fake_pkt *pkt, void *arg)
{
	(void)net;
	(void)arg;
	pkt->copies = 0;
}

Test(erpc_forged, answers_that_do_not_fit_what_is_under_way, .init = setup, .fini = teardown)
{
	uint32_t payload = p.end[0].s->payload;
	struct packet pkt;

	p.net.hook = swallow;
	cr_assert_eq(pair_send(&p.end[0], 0), 0);
	cr_assert_eq(p.end[0].s->free_mask, ERPC_FREE_ALL & ~1u);
	erpc_port_progress(p.end[0].port, p.net.now_ns);
	pkt = response(0, WIRE_ERPC_CR);
	refused(&pkt, BAD, "the only part of a request has no CR");
	pkt = response(0, WIRE_ERPC_RESP);
	pkt.h.pkt_num = 1;
	refused(&pkt, BAD, "to a packet that was not sent");
	pkt = response(0, WIRE_ERPC_RESP);
	pkt.len = 8;
	refused(&pkt, BAD, "longer than it says");
	pkt.h.msg_size = 16;
	refused(&pkt, BAD, "shorter than it says");
	pkt.h.msg_size = payload + 1;
	pkt.len = payload;
	refused(&pkt, BAD, "more than fits one packet");
	p.net.hook = NULL;
	goes_on();
}

Test(erpc_forged, answers_that_are_not_what_a_get_asked_for, .init = setup, .fini = teardown)
{
	uint32_t payload = p.end[0].s->payload, slot = ERPC_GET_SLOT;
	struct packet pkt;

	p.net.hook = swallow;
	cr_assert(pair_get(&p.end[0]));
	cr_assert_gt(p.end[0].gets[0].get.len, payload + 1);
	erpc_port_progress(p.end[0].port, p.net.now_ns);
	pkt = response(slot, WIRE_ERPC_RESP);
	refused(&pkt, BAD, "nothing");
	pkt.h.msg_size = (uint32_t)p.end[0].gets[0].get.len - 1;
	pkt.len = payload;
	refused(&pkt, BAD, "less");
	pkt.h.msg_size += 2;
	refused(&pkt, BAD, "more");
	pkt.h.msg_size--;
	pkt.len--;
	refused(&pkt, BAD, "a part that is not full");
	pkt.len++;
	pkt.h.pkt_num = 1;
	refused(&pkt, BAD, "a part that was not asked for");
	pkt.h.req_type = WIRE_ERPC_REFUSED;
	pkt.h.msg_size = 0;
	pkt.len = 0;
	refused(&pkt, BAD, "a refusal of what was not asked for");
	p.net.hook = NULL;
	goes_on();
}

/* ---- content ---- */

static enum core_rx_verdict not_understood(struct core_chan *chan, uint32_t op, const uint8_t *data,
					   uint32_t len, core_hold_t hold)
{
	(void)chan;
	(void)op;
	(void)data;
	(void)len;
	(void)hold;
	return CORE_RX_BAD;
}

static unsigned told;

static void on_reply(struct core_chan *chan, void *context, int status, const uint8_t *data,
		     uint32_t len)
{
	(void)chan;
	(void)context;
	(void)status;
	(void)data;
	(void)len;
	told++;
}

static void on_arrived(struct core_chan *chan, uint64_t pos)
{
	(void)chan;
	(void)pos;
}

static const struct core_upcalls upcalls = {
	.on_msg = not_understood,
	.on_reply = on_reply,
	.on_arrived = on_arrived,
};

/** Another session between the two ports: the one that is lied to. */
static struct erpc_session *victim, *liar;

static void join(void)
{
	erpc_pair_join(p.end[0].port, p.end[1].port, &victim, &liar);
	victim->conn.up = &upcalls;
}

static void part(void)
{
	erpc_session_close(victim);
	erpc_session_close(liar);
}

/** A packet for the victim: a request in that slot, or the response to its own there. */
static struct packet lie(uint32_t slot, enum wire_erpc_kind kind)
{
	struct packet pkt = request(slot);

	pkt.h.kind = kind;
	pkt.h.session = victim->num;
	pkt.h.tag = victim->tag;
	pkt.h.req_num = victim->rx[slot].s.req_num + ERPC_SLOTS;
	if (kind == WIRE_ERPC_RESP) {
		pkt.h.req_num = victim->tx[slot].c.req_num;
		pkt.h.req_type = WIRE_ERPC_PROMPT;
	}
	memset(pkt.data, 0, BATCH_HEAD);
	pkt.len = BATCH_HEAD;
	return pkt;
}

/** A frame that says it is of `len` bytes, of which `there` are in the packet. */
static void add(struct packet *pkt, unsigned kind, uint32_t word, uint32_t allowance, uint32_t len,
		uint32_t there)
{
	uint64_t head = len | (uint64_t)kind << 24 | (uint64_t)word << 32;

	memset(pkt->data + pkt->len, 0, 64);
	memcpy(pkt->data + pkt->len, &head, sizeof(head));
	memcpy(pkt->data + pkt->len + sizeof(head), &allowance, sizeof(allowance));
	pkt->len += there;
}

/** It ends the victim, which has nothing of it left, and nobody else. */
static void ends(struct packet pkt, const char *why)
{
	struct erpc_stats before = p.end[0].port->stats;

	pkt.h.msg_size = pkt.len;
	deliver(&pkt);
	cr_expect_eq(victim->err, -FI_EIO, "%s", why);
	cr_expect_eq(p.end[0].port->stats.rx_bad, before.rx_bad + 1, "%s", why);
	deliver(&pkt);
	cr_expect_eq(p.end[0].port->stats.rx_bad_state, before.rx_bad_state + 1, "%s", why);
	erpc_session_stop(victim);
	cr_expect_eq(p.end[0].port->dg->rx_held, 0, "%s", why);
	cr_expect_eq(p.end[0].port->bodies.used_cnt, 0, "%s", why);
	part();
	join();
}

Test(erpc_forged, content_that_is_none_ends_its_session_alone, .init = setup, .fini = teardown)
{
	static const uint32_t out_of_turn[] = { ERPC_SLOTS, UINT32_MAX, 1u << 31 };
	struct packet pkt;
	unsigned i;

	join();
	for (pkt = lie(0, WIRE_ERPC_REQ), i = 0; i < BATCH_HEAD; i++) {
		pkt = lie(0, WIRE_ERPC_REQ);
		pkt.len = i;
		ends(pkt, "a batch without a number");
		pkt = lie(ERPC_REPLY_SLOT, WIRE_ERPC_REQ);
		pkt.len = i;
		ends(pkt, "answers without a head");
	}
	for (i = 0; i < 3; i++) {
		pkt = lie(0, WIRE_ERPC_REQ);
		memcpy(pkt.data, &out_of_turn[i], sizeof(out_of_turn[i]));
		ends(pkt, "a batch out of turn");
	}
	for (i = 1; i < 256; i++) {
		if (i >= WIRE_ERPC_FRAME_MSG && i <= WIRE_ERPC_FRAME_REPLY)
			continue;
		pkt = lie(0, WIRE_ERPC_REQ);
		add(&pkt, i, 0, 0, 0, 16);
		ends(pkt, "a frame of no kind");
	}
	for (i = 1; i < 24; i++) {
		pkt = lie(0, WIRE_ERPC_REQ);
		add(&pkt, WIRE_ERPC_FRAME_MSG, 0, 0, 16, i);
		ends(pkt, "a frame beyond the end");
		pkt = lie(0, WIRE_ERPC_REQ);
		add(&pkt, WIRE_ERPC_FRAME_CALL, 0, 0, 12, i);
		ends(pkt, "a call beyond the end");
	}
	pkt = lie(0, WIRE_ERPC_REQ);
	add(&pkt, WIRE_ERPC_FRAME_MSG, 0, 0, 0xFFFFFF, 24);
	ends(pkt, "a frame of 16 MiB");
	for (i = 0; i < 4; i++) {
		pkt = lie(0, WIRE_ERPC_REQ);
		add(&pkt, WIRE_ERPC_FRAME_CALL, 0, 0, i, 16);
		ends(pkt, "a call without its operation");
	}
	pkt = lie(0, WIRE_ERPC_REQ);
	add(&pkt, WIRE_ERPC_FRAME_MSG, 0, 0, 8, 16);
	ends(pkt, "what core does not understand");
	part();
	goes_on();
}

Test(erpc_forged, what_was_not_granted_or_asked_ends_its_session_alone, .init = setup,
     .fini = teardown)
{
	struct packet pkt;

	join();
	pkt = lie(0, WIRE_ERPC_REQ);
	add(&pkt, WIRE_ERPC_FRAME_CALL, 0, 2 * ERPC_GRANT, 4, 16);
	ends(pkt, "an allowance beyond what was granted");
	pkt = lie(0, WIRE_ERPC_REQ);
	add(&pkt, WIRE_ERPC_FRAME_CALL, 0, UINT32_MAX, 4, 16);
	ends(pkt, "the largest allowance there is");
	pkt = lie(0, WIRE_ERPC_REQ);
	add(&pkt, WIRE_ERPC_FRAME_REPLY, 0, 0, 0, 8);
	ends(pkt, "an answer to nothing, in a batch");
	pkt = lie(ERPC_REPLY_SLOT, WIRE_ERPC_REQ);
	add(&pkt, WIRE_ERPC_FRAME_REPLY, UINT32_MAX, 0, 0, 8);
	ends(pkt, "an answer to nothing");
	pkt = lie(ERPC_REPLY_SLOT, WIRE_ERPC_REQ);
	add(&pkt, WIRE_ERPC_FRAME_MSG, 0, 0, 0, 8);
	ends(pkt, "a message among answers");
	cr_expect_eq(told, 0);
	part();
	goes_on();
}

/** The victim asks something, and hears an answer of `len` bytes that names `word`, `times` times. */
static struct packet answer(uint32_t allowance, uint32_t word, uint32_t len, unsigned times)
{
	struct packet pkt;

	cr_assert_eq(victim->conn.chan.ops->call_buf(&victim->conn.chan, 0x800, "what?", 5,
						     allowance, NULL, 0),
		     0);
	erpc_port_progress(p.end[0].port, p.net.now_ns);
	for (pkt = lie(0, WIRE_ERPC_RESP); times; times--)
		add(&pkt, WIRE_ERPC_FRAME_REPLY, word, 0, len,
		    wire_erpc_frame_span(WIRE_ERPC_FRAME_REPLY, len));
	return pkt;
}

Test(erpc_forged, answers_that_were_not_asked_for_that_way_end_their_session_alone, .init = setup,
     .fini = teardown)
{
	uint32_t word;

	join();
	p.net.hook = swallow;
	/* The name of its first call: an honest answer to it is heard. */
	for (word = 0; !told; word++) {
		struct packet pkt = answer(8, word, 8, 1);

		cr_assert_lt(word, 1000);
		pkt.h.msg_size = pkt.len;
		deliver(&pkt);
		part();
		join();
	}
	word--;
	ends(answer(8, word, 9, 1), "an answer beyond its allowance");
	ends(answer(8, word + 1, 8, 1), "an answer to another call");
	cr_expect_eq(told, 1);
	ends(answer(8, word, 8, 2), "an answer that comes twice");
	cr_expect_eq(told, 2);
	part();
	p.net.hook = NULL;
	goes_on();
}

/* ---- memory ---- */

static struct wire_erpc_hdr last;

static void see(struct fake_net *net, struct fake_pkt *pkt, void *arg)
{
	swallow(net, pkt, arg);
	cr_assert(wire_erpc_get(&last, pkt->data, pkt->len));
	cr_assert(last.req_type != WIRE_ERPC_REFUSED || pkt->len == WIRE_ERPC_HDR_LEN);
}

/** The victim is asked for memory: what does it say? */
static unsigned said_to(uint64_t addr, uint64_t key, uint32_t len, uint32_t ask_len)
{
	struct wire_erpc_get ask = { .addr = addr, .key = key, .len = len };
	struct packet pkt = lie(ERPC_GET_SLOT, WIRE_ERPC_REQ);
	uint64_t bad = p.end[0].port->stats.rx_bad;

	memset(pkt.data, 0, 64);
	memcpy(pkt.data, &ask, sizeof(ask));
	pkt.h.msg_size = pkt.len = ask_len;
	last.kind = WIRE_ERPC_REQ;
	deliver(&pkt);
	cr_assert_eq(last.kind, WIRE_ERPC_RESP);
	cr_assert_eq(p.end[0].port->stats.rx_bad - bad, last.req_type == WIRE_ERPC_REFUSED);
	return last.req_type;
}

Test(erpc_forged, memory_that_was_not_lent_to_who_asks, .init = setup, .fini = teardown)
{
	const uint32_t size = sizeof(struct wire_erpc_get), len = 100;
	uint8_t *memory = p.end[0].memory + 1000;
	uint64_t addr = (uintptr_t)memory;
	struct core_loan loan, other;
	unsigned bit;

	join();
	p.net.hook = see;
	cr_assert_eq(victim->conn.chan.ops->lend(&victim->conn.chan, memory, len, &loan), 0);
	cr_assert_eq(p.end[0].s->conn.chan.ops->lend(&p.end[0].s->conn.chan, memory, len, &other),
		     0);
	cr_expect_eq(said_to(addr, loan.key, len, size), WIRE_ERPC_PROMPT);
	cr_expect_eq(said_to(addr + len, loan.key, 0, size), WIRE_ERPC_PROMPT);
	for (bit = 0; bit < 64; bit++)
		cr_expect_eq(said_to(addr, loan.key ^ 1ull << bit, len, size), WIRE_ERPC_REFUSED);
	cr_expect_eq(said_to(addr, other.key, len, size), WIRE_ERPC_REFUSED, "another's");
	cr_expect_eq(said_to(addr - 1, loan.key, len, size), WIRE_ERPC_REFUSED);
	cr_expect_eq(said_to(addr - 1, loan.key, 0, size), WIRE_ERPC_REFUSED);
	cr_expect_eq(said_to(addr + 1, loan.key, len, size), WIRE_ERPC_REFUSED);
	cr_expect_eq(said_to(addr, loan.key, len + 1, size), WIRE_ERPC_REFUSED);
	cr_expect_eq(said_to(addr, loan.key, UINT32_MAX, size), WIRE_ERPC_REFUSED);
	cr_expect_eq(said_to(addr + len + 1, loan.key, 0, size), WIRE_ERPC_REFUSED);
	cr_expect_eq(said_to(0, loan.key, 1, size), WIRE_ERPC_REFUSED);
	cr_expect_eq(said_to(UINT64_MAX, loan.key, 2, size), WIRE_ERPC_REFUSED, "it wraps");
	cr_expect_eq(said_to(addr, loan.key, len, size - 1), WIRE_ERPC_REFUSED);
	cr_expect_eq(said_to(addr, loan.key, len, size + 1), WIRE_ERPC_REFUSED);
	victim->conn.chan.ops->unlend(&victim->conn.chan, &loan);
	cr_expect_eq(said_to(addr, loan.key, len, size), WIRE_ERPC_REFUSED, "lent no more");
	p.end[0].s->conn.chan.ops->unlend(&p.end[0].s->conn.chan, &other);
	cr_expect_eq(victim->err, 0, "who is refused may go on");
	part();
	p.net.hook = NULL;
	goes_on();
}
