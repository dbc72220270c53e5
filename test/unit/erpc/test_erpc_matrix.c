/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Each kind of packet, the first, one in the middle and the last of it, meets each fault, one at a time:
 * nothing is lost, nothing comes twice, the order stays, every call is answered once, and what was
 * refused is counted.
 *
 * The exchange has all kinds: messages of several packets (REQ, CR, RESP), calls, and memory that is
 * fetched (RFR). It runs once untouched to count the packets of each kind.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "support/erpc_pair.h"

#define US    1000u
#define MTU   300u
#define KINDS 4u

enum fault {
	LOST,
	DOUBLED,
	REORDERED, /* some that are sent later come first */
	DELAYED,   /* past the time-out: it was sent again meanwhile */
	CORRUPTED, /* its header is none any more */
	STRANGERS, /* before it comes one with another token's tag, */
	SPOOFED,   /* from another address, */
	NO_ONES,   /* for a session that is not there, */
	CUT,       /* with a part of its header */
	FAULTS,
};

static const char *const fault_names[] = { "lost",      "doubled",   "reordered",
					   "delayed",   "corrupted", "a stranger's",
					   "a spoofed", "no one's",  "cut" };

struct matrix {
	unsigned sender; /* its packets are counted, and one of them is hit */
	enum wire_erpc_kind kind;
	enum fault fault;
	uint32_t nth; /* of that kind; UINT32_MAX: none */
	uint32_t seen[2][KINDS];
	uint32_t hits;
};

static struct erpc_pair p;
static struct matrix m;

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
	switch (m.fault) {
	case LOST: pkt->copies = 0; break;
	case DOUBLED: pkt->copies = 2; break;
	case REORDERED: pkt->delay_ns = 30 * US; break;
	case DELAYED: pkt->delay_ns = 5 * ERPC_RTO_FIRST; break;
	case CORRUPTED: pkt->data[13] ^= 0xF0; break; /* the magic */
	default: forge(net, pkt); break;
	}
}

static void look(struct fake_net *net, struct fake_pkt *pkt, void *arg)
{
	struct wire_erpc_hdr h = { 0 };
	uint32_t n;

	(void)arg;
	cr_assert(wire_erpc_get(&h, pkt->data, pkt->len));
	n = m.seen[pkt->from][h.kind]++;
	if (pkt->from == m.sender && h.kind == m.kind && n == m.nth)
		hit(net, pkt);
}

/** From end 0: long and short messages, calls, memory to fetch; from end 1 a few of them. */
static void exchange(void)
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
	cr_assert(pair_get(&p.end[0]));
	cr_assert_eq(pair_call(&p.end[1], 0), 0);
	erpc_pair_settle(&p);
	/* What is late comes, and finds everything done. */
	erpc_pair_run(&p, 10ull * ERPC_RTO_FIRST);
	cr_assert_eq(pair_send(&p.end[0], 0), 0);
	erpc_pair_settle(&p);
}

static uint64_t refused(enum fault fault)
{
	uint64_t sum = 0;
	unsigned i;

	for (i = 0; i < 2; i++) {
		const struct erpc_stats *s = &p.end[i].port->stats;

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
	const struct erpc_stats *a = &p.end[0].port->stats, *b = &p.end[1].port->stats;
	bool hit_one = m.nth != UINT32_MAX;
	bool forged = hit_one && m.fault >= CORRUPTED;

	cr_assert_eq(m.hits, hit_one);
	cr_assert_eq(a->rx_pkts + b->rx_pkts, p.net.cnt.delivered, "nothing vanishes");
	cr_assert_eq(refused(m.fault), forged, "%lu", refused(m.fault));
	cr_assert_eq(a->rx_bad + b->rx_bad + a->rx_bad_state + b->rx_bad_state, 0);
	if (hit_one && (m.fault == LOST || m.fault == CORRUPTED || m.fault == DELAYED)) {
		/* What an answer says a later batch of its sender's may say as well. */
		bool is_answer = m.kind == WIRE_ERPC_CR || m.kind == WIRE_ERPC_RESP;
		uint64_t spared = is_answer ? p.end[!m.sender].port->stats.rides : 0;

		cr_assert_gt(a->losses + b->losses + spared, 0, "it was noticed");
	} else if (m.fault != REORDERED)
		cr_assert_eq(a->losses + b->losses, 0, "nothing was missing");
	/* What came twice was recognized, at either end. */
	if (hit_one && m.fault == DOUBLED)
		cr_assert_eq(a->rx_repeats + a->rx_stale + b->rx_repeats + b->rx_stale >= 1, 1);
}

static void run_one(uint32_t inline_max)
{
	memset(m.seen, 0, sizeof(m.seen));
	m.hits = 0;
	erpc_pair_init(&p, 7);
	p.net.mtu = MTU;
	p.net.inline_max = inline_max;
	p.net.hook = look;
	erpc_pair_open(&p);
	p.end[0].get_max = 12 * MTU;
	p.end[1].late_chance = 50;
	p.end[0].hold_chance = p.end[1].hold_chance = 20;
	exchange();
	erpc_pair_check(&p);
	cr_assert_eq(p.end[0].gets_done, 1);
	check_counters();
	erpc_pair_fini(&p);
}

static void run_kind(unsigned sender, enum wire_erpc_kind kind, uint32_t inline_max)
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
			cr_log_info("kind %u, %s, number %u of %u", kind, fault_names[m.fault],
				    m.nth, cnt);
			run_one(inline_max);
		}
	}
}

static void run_both_devices(unsigned sender, enum wire_erpc_kind kind)
{
	run_kind(sender, kind, 0);
	run_kind(sender, kind, 60);
}

Test(erpc_matrix, parts_of_requests)
{
	run_both_devices(0, WIRE_ERPC_REQ);
}

Test(erpc_matrix, credit_returns)
{
	run_both_devices(1, WIRE_ERPC_CR);
}

Test(erpc_matrix, requests_for_responses)
{
	run_both_devices(0, WIRE_ERPC_RFR);
}

Test(erpc_matrix, responses)
{
	run_both_devices(1, WIRE_ERPC_RESP);
}

Test(erpc_matrix, responses_of_the_end_that_asks)
{
	run_both_devices(0, WIRE_ERPC_RESP);
}
