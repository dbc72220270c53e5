/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Each kind of packet, the first, a middle and the last one, with each fault, one at a time:
 * nothing is lost, duplicated or reordered, each call gets one reply, and refused packets are
 * counted.
 *
 * Kinds: requests of each type; batches with a piggybacked ack; responses that are empty, with
 * replies, with memory, or refusals. The exchange contains all kinds. A run without faults counts
 * the packets of each.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "support/erpc_pair.h"

#define US     1000u
#define MTU    300u
#define ROUNDS 12u /* of ping-pong */
/* bytes/s; paced endpoints acknowledge each packet, and this one is never reached */
#define PACE_RATE 1e12
#define QUIET     6u /* the first ones have no piggybacked acks yet */

enum kind {
	BATCH,       /* REQ, a part of messages and calls */
	PIGGYBACK,   /* REQ of a ping-pong, with piggybacked acks */
	GET,         /* REQ for memory */
	REPLIES,     /* REQ with replies */
	CR_BATCH,    /* acknowledges a part of a batch */
	RFR_GET,     /* requests another part of the memory */
	RESP_EMPTY,  /* acknowledges a batch */
	RESP_CALLS,  /* acknowledges a batch, with replies */
	RESP_MEMORY, /* a part of the memory */
	RESP_REFUSED,
	RESP_REPLIES, /* acknowledges REPLIES */
	KINDS,
};

static const char *const kind_names[] = {
	"a batch",
	"a batch with a piggybacked ack",
	"a get",
	"a request with replies",
	"CR",
	"RFR",
	"an empty response",
	"a response with replies",
	"memory",
	"a refusal",
	"a response to replies",
};

enum fault {
	LOST,
	DOUBLED,
	AGAIN,     /* a copy arrives after the exchange */
	REORDERED, /* later packets arrive first */
	DELAYED,   /* arrives after its retransmission */
	CORRUPTED, /* invalid header */
	STRANGERS, /* preceded by one with the tag of another token */
	SPOOFED,   /* preceded by one from another address */
	NO_ONES,   /* preceded by one for an unknown session */
	CUT,       /* preceded by one with a part of its header */
	FAULTS,
};

static const char *const fault_names[] = { "lost",         "doubled",       "again",
					   "reordered",    "delayed",       "corrupted",
					   "a stranger's", "a spoofed one", "an unknown session",
					   "cut" };

struct matrix {
	unsigned sender; /* end with the packet that is hit */
	enum kind kind;
	enum fault fault;
	uint32_t nth; /* of that kind; UINT32_MAX: none */
	uint32_t seen[2][KINDS];
	uint32_t hits;
	bool piggybacks; /* batches are of the kind PIGGYBACK now */
	bool useless; /* the packet hit requested memory that was refused: its loss has no effect */
	uint64_t resent; /* repeated and stale packets of the run without faults */
};

static struct erpc_pair p;
static struct matrix m;

static enum kind kind_of(const struct fake_pkt *pkt)
{
	struct wire_erpc_hdr h = erpc_pair_hdr(pkt);
	uint32_t slot;

	slot = h.req_num % ERPC_SLOTS;
	switch (h.kind) {
	case WIRE_ERPC_REQ:
		if (slot < ERPC_BATCH_SLOTS)
			return m.piggybacks ? PIGGYBACK : BATCH;
		return slot == ERPC_REPLY_SLOT ? REPLIES : GET;
	case WIRE_ERPC_CR: return CR_BATCH;
	case WIRE_ERPC_RFR: return RFR_GET;
	case WIRE_ERPC_RESP: break;
	}
	if (slot < ERPC_BATCH_SLOTS)
		return h.msg_size ? RESP_CALLS : RESP_EMPTY;
	if (slot == ERPC_REPLY_SLOT)
		return RESP_REPLIES;
	return h.req_type == WIRE_ERPC_REFUSED ? RESP_REFUSED : RESP_MEMORY;
}

static void forge(struct fake_net *net, const struct fake_pkt *pkt)
{
	uint32_t from = pkt->from, len = pkt->len;
	uint8_t bytes[MTU];
	struct wire_erpc_hdr h = { 0 };

	memcpy(bytes, pkt->data, len);
	wire_erpc_get(&h, bytes, len);
	switch (m.fault) {
	case STRANGERS: h.tag ^= 0x100; break;
	case SPOOFED: from = 77; break;
	case NO_ONES: h.session ^= 0x4000; break;
	default: len = WIRE_ERPC_HDR_LEN - 1; break;
	}
	wire_erpc_put(bytes, &h);
	fake_net_forge(net, from, pkt->to, bytes, len, 1);
}

static void hit(struct fake_net *net, struct fake_pkt *pkt)
{
	m.hits++;
	m.useless = m.kind == RFR_GET && p.end[0].gets_done;
	switch (m.fault) {
	case LOST: pkt->copies = 0; break;
	case DOUBLED: pkt->copies = 2; break;
	case AGAIN:
		fake_net_forge(net, pkt->from, pkt->to, pkt->data, pkt->len, 5 * ERPC_RTO_FIRST);
		break;
	case REORDERED: pkt->delay_ns = 30 * US; break;
	case DELAYED: pkt->delay_ns = 5 * ERPC_RTO_FIRST; break;
	case CORRUPTED: pkt->data[13] ^= 0xF0; break; /* the magic */
	default: forge(net, pkt); break;
	}
}

static void look(struct fake_net *net, struct fake_pkt *pkt, void *arg)
{
	enum kind kind = kind_of(pkt);
	uint32_t n = m.seen[pkt->from][kind]++;

	if (pkt->from == m.sender && kind == m.kind && n == m.nth)
		hit(net, pkt);
}

/** Sends long and short messages, and calls, from end 0, and a few from end 1. */
static void messages(void)
{
	unsigned i;

	for (i = 0; i < 3; i++) {
		p.end[0].len_exact = i ? 100 : 1500;
		cr_assert_eq(pair_send(&p.end[0], 0), 0);
		cr_assert_eq(pair_call(&p.end[0], 0), 0);
		p.end[1].len_exact = 700;
		cr_assert_eq(pair_send(&p.end[1], 0), 0);
		erpc_pair_run(&p, 20 * US);
	}
}

/** Gets memory, and memory that is unexposed before the request. */
static void gets(void)
{
	struct pair_end *e = &p.end[0];
	unsigned i;

	cr_assert(pair_get(e));
	erpc_pair_settle(&p);
	for (i = 0; i < 3; i++) {
		cr_assert(pair_get(e));
		p.end[1].s->conn.chan.ops->unexpose(&p.end[1].s->conn.chan, &e->gets[0].exposure);
		erpc_pair_settle(&p);
		cr_assert_eq(e->gets_refused, i + 1);
	}
}

/** Replies so late that they need requests of their own. */
static void late_replies(void)
{
	unsigned i;

	p.end[1].defer_chance = 100;
	for (i = 0; i < 3; i++) {
		cr_assert_eq(pair_call(&p.end[0], 0), 0);
		while (!p.end[1].pending_cnt)
			erpc_pair_run(&p, 1000 * US);
		erpc_pair_run(&p, 1000 * US);
		erpc_pair_settle(&p);
	}
}

static void receive(struct pair_end *e)
{
	while (e->received != e->peer->sent)
		erpc_pair_run(&p, 5100);
}

static void ping_pong(void)
{
	unsigned i;

	p.end[0].len_exact = p.end[1].len_exact = 8;
	for (i = 0; i < ROUNDS; i++) {
		m.piggybacks = i >= QUIET;
		cr_assert_eq(pair_send(&p.end[0], 0), 0);
		receive(&p.end[1]);
		cr_assert_eq(pair_send(&p.end[1], 0), 0);
		receive(&p.end[0]);
	}
	m.piggybacks = false;
}

static void exchange(void)
{
	messages();
	gets();
	cr_assert_eq(pair_call(&p.end[1], 0), 0);
	erpc_pair_settle(&p);
	late_replies();
	ping_pong();
	erpc_pair_settle(&p);
	/* Late packets arrive after the exchange. */
	erpc_pair_run(&p, 10ull * ERPC_RTO_FIRST);
	cr_assert_eq(pair_send(&p.end[0], 0), 0);
	erpc_pair_settle(&p);
	erpc_pair_run(&p, 10ull * ERPC_RTO_FIRST);
}

static uint64_t refused(enum fault fault)
{
	uint64_t sum = 0;
	unsigned i;

	for (i = 0; i < 2; i++) {
		const struct copyrpc_stats_packets *s = p.end[i].ep->stats;

		switch (fault) {
		case CORRUPTED:
		case CUT: sum += s->rx_malformed; break;
		case STRANGERS: sum += s->rx_bad_token; break;
		case SPOOFED: sum += s->rx_bad_source; break;
		case NO_ONES: sum += s->rx_no_session; break;
		default:
			sum += s->rx_malformed + s->rx_bad_token + s->rx_bad_source +
			       s->rx_no_session;
			break;
		}
	}
	return sum;
}

static void check_counters(void)
{
	const struct copyrpc_stats_packets *a = p.end[0].ep->stats, *b = p.end[1].ep->stats;
	bool hit_one = m.nth != UINT32_MAX;
	bool forged = hit_one && m.fault >= CORRUPTED;
	uint64_t lost = p.end[0].ep->unread.losses + p.end[1].ep->unread.losses;
	uint64_t again = a->rx_repeats + a->rx_stale + b->rx_repeats + b->rx_stale;

	cr_assert_eq(m.hits, hit_one);
	cr_assert_eq(a->rx_pkts + b->rx_pkts, p.net.cnt.delivered, "all packets are counted");
	cr_assert_eq(refused(m.fault), forged, "%lu", refused(m.fault));
	cr_assert_eq(b->rx_bad, p.end[0].gets_refused, "memory that is not exposed");
	cr_assert_eq(a->rx_bad + a->rx_bad_state + b->rx_bad_state, 0);
	cr_assert(hit_one || a->piggybacks + b->piggybacks >= ROUNDS, "acks were piggybacked");
	if (hit_one && m.kind == CR_BATCH) {
		; /* the next response acknowledges the same */
	} else if (hit_one && (m.fault == LOST || m.fault == CORRUPTED || m.fault == DELAYED)) {
		/* A later batch of the sender may piggyback the same ack. */
		bool is_response = m.kind >= RESP_EMPTY;
		uint64_t spared = is_response ? p.end[!m.sender].ep->stats->piggybacks : m.useless;

		cr_assert_gt(lost + spared, 0, "the loss was detected");
	} else if (m.fault != REORDERED)
		cr_assert_eq(lost, 0, "no loss was detected");
	/* Either end recognizes duplicates. */
	if (!hit_one)
		m.resent = again;
	else if (m.fault == DOUBLED || m.fault == AGAIN)
		cr_assert_gt(again, m.resent);
}

static void run_one(uint32_t inline_max)
{
	memset(m.seen, 0, sizeof(m.seen));
	m.hits = 0;
	erpc_pair_init(&p, 7);
	p.net.mtu = MTU;
	p.net.inline_max = inline_max;
	p.pace_rate = m.kind == CR_BATCH ? PACE_RATE : 0;
	p.net.hook = look;
	erpc_pair_open(&p);
	p.end[0].get_exact = 3 * ERPC_CREDITS_MAX * MTU; /* parts are requested meanwhile */
	p.end[0].get_pieces = 1;
	p.end[0].retain_chance = p.end[1].retain_chance = 20;
	exchange();
	erpc_pair_check(&p);
	cr_assert_eq(p.end[0].gets_done, 1);
	check_counters();
	erpc_pair_fini(&p);
}

static void run_kind(unsigned sender, enum kind kind, uint32_t inline_max)
{
	uint32_t cnt, where[3], i;

	m = (struct matrix){ .sender = sender, .kind = kind, .nth = UINT32_MAX };
	run_one(inline_max);
	cnt = m.seen[sender][kind];
	cr_assert_geq(cnt, 3, "the exchange has %u of kind %u", cnt, kind);
	where[0] = 0;
	where[1] = cnt / 2;
	where[2] = cnt - 1;
	for (m.fault = 0; m.fault < FAULTS; m.fault++) {
		for (i = 0; i < 3; i++) {
			m.nth = where[i];
			cr_log_info("%s, %s, number %u of %u", kind_names[kind],
				    fault_names[m.fault], m.nth, cnt);
			run_one(inline_max);
		}
	}
}

static void run_both_devices(unsigned sender, enum kind kind)
{
	run_kind(sender, kind, 0);
	run_kind(sender, kind, 60);
}

Test(erpc_matrix, parts_of_batches)
{
	run_both_devices(0, BATCH);
}

Test(erpc_matrix, batches_with_piggybacked_acks)
{
	run_both_devices(0, PIGGYBACK);
	run_both_devices(1, PIGGYBACK);
}

Test(erpc_matrix, requests_for_memory)
{
	run_both_devices(0, GET);
}

Test(erpc_matrix, requests_with_replies)
{
	run_both_devices(1, REPLIES);
}

Test(erpc_matrix, credit_returns)
{
	run_both_devices(1, CR_BATCH);
}

Test(erpc_matrix, requests_for_responses)
{
	run_both_devices(0, RFR_GET);
}

Test(erpc_matrix, empty_responses)
{
	run_both_devices(0, RESP_EMPTY);
	run_both_devices(1, RESP_EMPTY);
}

Test(erpc_matrix, responses_with_replies)
{
	run_both_devices(1, RESP_CALLS);
}

Test(erpc_matrix, parts_of_memory)
{
	run_both_devices(1, RESP_MEMORY);
}

Test(erpc_matrix, refusals_of_memory)
{
	run_both_devices(1, RESP_REFUSED);
}

Test(erpc_matrix, responses_to_replies)
{
	run_both_devices(0, RESP_REPLIES);
}
