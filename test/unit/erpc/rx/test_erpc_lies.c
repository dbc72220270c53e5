/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Packets that fit, and say what no honest peer says (docs/datagram-protocol.md, section 7): they end their
 * session, and no other; and memory that was not lent to who asks stays where it is.
 */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "unit/erpc/rx/forged.h"

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

static enum core_rx_verdict call_not_understood(struct core_chan *chan, struct core_call_ref ref,
						const uint8_t *data, uint32_t len, core_hold_t hold)
{
	(void)ref;
	return not_understood(chan, 0, data, len, hold);
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
	.on_call = call_not_understood,
	.on_reply = on_reply,
	.on_arrived = on_arrived,
};

/** Another session between the two ports: the one that is lied to. */
static struct erpc_session *victim, *liar;

static void join(void)
{
	erpc_pair_join(forged_pair.end[0].port, forged_pair.end[1].port, &victim, &liar);
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
	struct packet pkt = forged_request(slot);

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
	struct erpc_stats before = forged_pair.end[0].port->stats;

	pkt.h.msg_size = pkt.len;
	forged_deliver(&pkt);
	cr_expect_eq(victim->err, -FI_EIO, "%s", why);
	cr_expect_eq(forged_pair.end[0].port->stats.rx_bad, before.rx_bad + 1, "%s", why);
	forged_deliver(&pkt);
	cr_expect_eq(forged_pair.end[0].port->stats.rx_bad_state, before.rx_bad_state + 1, "%s",
		     why);
	erpc_session_stop(victim);
	cr_expect_eq(forged_pair.end[0].port->dg->rx_held, 0, "%s", why);
	cr_expect_eq(forged_pair.end[0].port->bodies.used_cnt, 0, "%s", why);
	part();
	join();
}

Test(erpc_lies, content_that_is_none_ends_its_session_alone, .init = forged_setup,
     .fini = forged_teardown)
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
	pkt = lie(0, WIRE_ERPC_REQ);
	add(&pkt, WIRE_ERPC_FRAME_CALL, 0, 0, 8, 24);
	ends(pkt, "a call that core does not understand");
	for (i = 0; i < 2; i++) {
		struct wire_erpc_batch head = { .seq = i, .ack = 1 };

		pkt = lie(0, WIRE_ERPC_REQ);
		memcpy(pkt.data, &head, sizeof(head));
		ends(pkt, "an ack of what was not sent, in a batch that waits as well");
	}
	part();
	forged_goes_on();
}

Test(erpc_lies, what_was_not_granted_or_asked_ends_its_session_alone, .init = forged_setup,
     .fini = forged_teardown)
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
	forged_goes_on();
}

/** The victim asks something, and hears an answer of `len` bytes that names `word`, `times` times. */
static struct packet answer(uint32_t allowance, uint32_t word, uint32_t len, unsigned times)
{
	struct packet pkt;

	cr_assert_eq(victim->conn.chan.ops->call_buf(&victim->conn.chan, 0x800, "what?", 5,
						     allowance, NULL, 0),
		     0);
	erpc_port_progress(forged_pair.end[0].port, forged_pair.net.now_ns);
	for (pkt = lie(0, WIRE_ERPC_RESP); times; times--)
		add(&pkt, WIRE_ERPC_FRAME_REPLY, word, 0, len,
		    wire_erpc_frame_span(WIRE_ERPC_FRAME_REPLY, len));
	return pkt;
}

Test(erpc_lies, answers_that_were_not_asked_for_that_way_end_their_session_alone,
     .init = forged_setup, .fini = forged_teardown)
{
	uint32_t word;

	join();
	forged_pair.net.hook = forged_swallow;
	/* The name of its first call: an honest answer to it is heard. */
	for (word = 0; !told; word++) {
		struct packet pkt = answer(8, word, 8, 1);

		cr_assert_lt(word, 1000);
		pkt.h.msg_size = pkt.len;
		forged_deliver(&pkt);
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
	forged_pair.net.hook = NULL;
	forged_goes_on();
}

/* ---- memory ---- */

static struct wire_erpc_hdr last;

static void see(struct fake_net *net, struct fake_pkt *pkt, void *arg)
{
	forged_swallow(net, pkt, arg);
	cr_assert(wire_erpc_get(&last, pkt->data, pkt->len));
	cr_assert(last.req_type != WIRE_ERPC_REFUSED || pkt->len == WIRE_ERPC_HDR_LEN);
}

/** The victim is asked for memory: what does it say? */
static unsigned said_to(uint64_t addr, uint64_t key, uint32_t len, uint32_t ask_len)
{
	struct wire_erpc_get ask = { .addr = addr, .key = key, .len = len };
	struct packet pkt = lie(ERPC_GET_SLOT, WIRE_ERPC_REQ);
	uint64_t bad = forged_pair.end[0].port->stats.rx_bad;

	memset(pkt.data, 0, 64);
	memcpy(pkt.data, &ask, sizeof(ask));
	pkt.h.msg_size = pkt.len = ask_len;
	last.kind = WIRE_ERPC_REQ;
	forged_deliver(&pkt);
	cr_assert_eq(last.kind, WIRE_ERPC_RESP);
	cr_assert_eq(forged_pair.end[0].port->stats.rx_bad - bad,
		     last.req_type == WIRE_ERPC_REFUSED);
	return last.req_type;
}

Test(erpc_lies, memory_that_was_not_lent_to_who_asks, .init = forged_setup, .fini = forged_teardown)
{
	const uint32_t size = sizeof(struct wire_erpc_get), len = 100;
	uint8_t *memory = forged_pair.end[0].memory + 1000;
	uint64_t addr = (uintptr_t)memory;
	struct core_loan loan, other;
	unsigned bit;

	join();
	forged_pair.net.hook = see;
	cr_assert_eq(victim->conn.chan.ops->lend(&victim->conn.chan, memory, len, &loan), 0);
	cr_assert_eq(forged_pair.end[0].s->conn.chan.ops->lend(&forged_pair.end[0].s->conn.chan,
							       memory, len, &other),
		     0);
	cr_expect_neq(said_to(addr, loan.key, len, size), WIRE_ERPC_REFUSED);
	cr_expect_neq(said_to(addr + len, loan.key, 0, size), WIRE_ERPC_REFUSED);
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
	forged_pair.end[0].s->conn.chan.ops->unlend(&forged_pair.end[0].s->conn.chan, &other);
	cr_expect_eq(victim->err, 0, "who is refused may go on");
	part();
	forged_pair.net.hook = NULL;
	forged_goes_on();
}
