/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Exposures: only exposed memory is read; after unexpose no part leaves, and the get fails. */
#include "erpc/bulk/erpc_expose.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "support/erpc_pair.h"
#include "support/pool_used.h"
#include "unit/erpc/rx/forged.h"

#define US    1000u
#define MTU   1024u
#define PARTS 40u

static struct erpc_pair p;
static unsigned parts, refused; /* responses of the exposing end */

static void look(struct fake_net *net, struct fake_pkt *pkt, void *arg)
{
	struct wire_erpc_hdr h = erpc_pair_hdr(pkt);

	if (h.kind != WIRE_ERPC_RESP || h.req_num % ERPC_SLOTS != ERPC_GET_SLOT)
		return;
	parts += pkt->len > WIRE_ERPC_HDR_LEN;
	refused += h.req_type == WIRE_ERPC_REFUSED;
}

static void take_back(struct pair_get *g)
{
	g->exposure.chan->ops->unexpose(g->exposure.chan, &g->exposure);
	g->exposure.chan = NULL;
}

/** Unexposes the memory after `cnt` parts have left. */
static void revoked_behind(unsigned cnt)
{
	struct pair_get *g = &p.end[0].gets[0];
	unsigned rounds;

	parts = refused = 0;
	erpc_pair_init(&p, 1);
	p.net.mtu = MTU;
	p.net.bytes_per_s = 1e9;
	erpc_pair_open(&p);
	p.net.hook = look;
	p.end[0].get_exact = PARTS * p.end[0].s->payload;
	cr_assert(pair_get(&p.end[0]));
	for (rounds = 0; parts < cnt; rounds++) {
		erpc_pair_run(&p, US);
		cr_assert_lt(rounds, 100000);
	}
	cr_assert(g->open);
	take_back(g);
	memset(p.end[1].memory, 0xEE, PAIR_GET_LEN);
	parts = 0;
	for (rounds = 0; g->open; rounds++) {
		erpc_pair_run(&p, US);
		cr_assert_lt(rounds, 100000, "the get does not end");
	}
	cr_expect_eq(parts, 0, "after %u", cnt);
	cr_expect_gt(refused, 0);
	cr_expect_eq(g->get.status, -FI_EACCES);
	cr_expect_eq(memchr(g->buf, 0xEE, 1), NULL);
	cr_expect_eq(pool_used(&p.end[1].ep->exposure_pool), 0);
	cr_assert(pair_get(&p.end[0]), "the session continues");
	erpc_pair_settle(&p);
	cr_expect_eq(p.end[0].gets_done, 1);
	erpc_pair_fini(&p);
}

Test(erpc_expose, after_unexpose_no_part_leaves)
{
	unsigned cnt;

	for (cnt = 1; cnt < PARTS / 2; cnt++)
		revoked_behind(cnt);
}

/** Requests memory from the victim. Returns the type of its response. */
static unsigned refusal_of(uint64_t addr, uint64_t key, uint32_t len, uint32_t req_len)
{
	struct wire_erpc_get req = { .addr = addr, .key = key, .len = len };
	struct packet pkt = forged_victim_packet(ERPC_GET_SLOT, WIRE_ERPC_REQ);
	unsigned type;
	uint64_t bad = forged_pair.end[0].ep->stats->rx_bad;

	memset(pkt.data, 0, 64);
	memcpy(pkt.data, &req, sizeof(req));
	pkt.h.msg_size = pkt.len = req_len;
	forged_record();
	forged_deliver(&pkt);
	cr_assert_eq(forged_sent.cnt, 1);
	cr_assert_eq(forged_sent.h[0].kind, WIRE_ERPC_RESP);
	type = forged_sent.h[0].req_type;
	cr_assert(type != WIRE_ERPC_REFUSED || !forged_sent.len[0]);
	cr_assert_eq(forged_pair.end[0].ep->stats->rx_bad - bad, type == WIRE_ERPC_REFUSED);
	return type;
}

Test(erpc_expose, only_memory_exposed_to_the_session_is_read, .init = forged_setup,
     .fini = forged_teardown)
{
	const uint32_t size = sizeof(struct wire_erpc_get), len = 100;
	uint8_t *memory = forged_pair.end[0].memory + 1000;
	uint64_t addr = (uintptr_t)memory;
	struct core_exposure exposure, other;
	unsigned bit;

	forged_victim_open(NULL);
	cr_assert_eq(forged_victim->conn.chan.ops->expose(&forged_victim->conn.chan, memory, len,
							  &exposure),
		     0);
	cr_assert_eq(forged_pair.end[0].s->conn.chan.ops->expose(&forged_pair.end[0].s->conn.chan,
								 memory, len, &other),
		     0);
	cr_expect_neq(refusal_of(addr, exposure.key, len, size), WIRE_ERPC_REFUSED);
	cr_expect_neq(refusal_of(addr + len, exposure.key, 0, size), WIRE_ERPC_REFUSED);
	for (bit = 0; bit < 64; bit++)
		cr_expect_eq(refusal_of(addr, exposure.key ^ 1ull << bit, len, size),
			     WIRE_ERPC_REFUSED);
	cr_expect_eq(refusal_of(addr, other.key, len, size), WIRE_ERPC_REFUSED, "another's");
	cr_expect_eq(refusal_of(addr - 1, exposure.key, len, size), WIRE_ERPC_REFUSED);
	cr_expect_eq(refusal_of(addr - 1, exposure.key, 0, size), WIRE_ERPC_REFUSED);
	cr_expect_eq(refusal_of(addr + 1, exposure.key, len, size), WIRE_ERPC_REFUSED);
	cr_expect_eq(refusal_of(addr, exposure.key, len + 1, size), WIRE_ERPC_REFUSED);
	cr_expect_eq(refusal_of(addr, exposure.key, UINT32_MAX, size), WIRE_ERPC_REFUSED);
	cr_expect_eq(refusal_of(addr + len + 1, exposure.key, 0, size), WIRE_ERPC_REFUSED);
	cr_expect_eq(refusal_of(0, exposure.key, 1, size), WIRE_ERPC_REFUSED);
	cr_expect_eq(refusal_of(UINT64_MAX, exposure.key, 2, size), WIRE_ERPC_REFUSED,
		     "the range wraps");
	cr_expect_eq(refusal_of(addr, exposure.key, len, size - 1), WIRE_ERPC_REFUSED);
	cr_expect_eq(refusal_of(addr, exposure.key, len, size + 1), WIRE_ERPC_REFUSED);
	forged_victim->conn.chan.ops->unexpose(&forged_victim->conn.chan, &exposure);
	cr_expect_eq(refusal_of(addr, exposure.key, len, size), WIRE_ERPC_REFUSED,
		     "no longer exposed");
	forged_pair.end[0].s->conn.chan.ops->unexpose(&forged_pair.end[0].s->conn.chan, &other);
	cr_expect_eq(forged_victim->err, 0, "a refused request does not fail the session");
	forged_victim_close();
	forged_check_traffic();
}

/** Returns the number of packets with which the victim responds to a GET of three parts. */
static unsigned responses_to(const struct core_exposure *exposure, const uint8_t *memory,
			     uint32_t more)
{
	struct wire_erpc_get req = { .addr = (uintptr_t)memory,
				     .key = exposure->key,
				     .len = 2 * forged_pair.end[0].s->payload + 1,
				     .more = more };
	struct packet pkt = forged_victim_packet(ERPC_GET_SLOT, WIRE_ERPC_REQ);
	unsigned i;

	memcpy(pkt.data, &req, sizeof(req));
	pkt.h.msg_size = pkt.len = sizeof(req);
	forged_record();
	forged_deliver(&pkt);
	for (i = 0; i < forged_sent.cnt; i++) {
		cr_assert_eq(forged_sent.h[i].kind, WIRE_ERPC_RESP);
		cr_assert_eq(forged_sent.h[i].pkt_num, i);
	}
	cr_assert_eq(forged_sent.len[i - 1] == 1, i == 3, "the third part has one byte");
	return forged_sent.h[0].req_type == WIRE_ERPC_REFUSED ? 0 : forged_sent.cnt;
}

Test(erpc_expose, a_get_requests_further_parts_with_the_first, .init = forged_setup,
     .fini = forged_teardown)
{
	uint8_t *memory = forged_pair.end[0].memory;
	struct core_exposure exposure;
	struct core_chan *chan;

	forged_victim_open(NULL);
	chan = &forged_victim->conn.chan;
	cr_assert_eq(chan->ops->expose(chan, memory, PAIR_GET_LEN, &exposure), 0);
	cr_expect_eq(responses_to(&exposure, memory, 0), 1);
	cr_expect_eq(responses_to(&exposure, memory, 1), 2);
	cr_expect_eq(responses_to(&exposure, memory, 2), 3);
	cr_expect_eq(responses_to(&exposure, memory, WIRE_ERPC_RUN_MAX - 1), 3,
		     "there are no more");
	cr_expect_eq(responses_to(&exposure, memory, WIRE_ERPC_RUN_MAX), 0, "refused");
	cr_expect_eq(responses_to(&exposure, memory, UINT32_MAX), 0);
	cr_expect_eq(forged_victim->err, 0);
	chan->ops->unexpose(chan, &exposure);
	forged_victim_close();
	forged_check_traffic();
}

/* ---- memory that the device still reads ---- */

static struct dev_mem *const regs = (struct dev_mem *)&p; /* never read */
static unsigned reg_cnt;

static int reg_mem(struct dev *dev, const void *addr, size_t len, unsigned access,
		   struct dev_mem **mem)
{
	reg_cnt++;
	*mem = regs;
	return 0;
}

static void dereg_mem(struct dev *dev, struct dev_mem *mem)
{
	cr_assert_eq(mem, regs);
	reg_cnt--;
}

static void reply_from(const struct core_exposure *exposure, const uint8_t *memory)
{
	struct wire_erpc_get req = { .addr = (uintptr_t)memory, .key = exposure->key, .len = 100 };
	struct packet pkt = forged_victim_packet(ERPC_GET_SLOT, WIRE_ERPC_REQ);

	memcpy(pkt.data, &req, sizeof(req));
	pkt.h.msg_size = pkt.len = sizeof(req);
	forged_deliver(&pkt);
}

/** Exposes two pieces of memory on a slow device that reads packets when they leave. */
static struct core_chan *late_open(struct core_exposure exposure[2])
{
	static const struct dev_ops reg_ops = { .mem_reg = reg_mem, .mem_dereg = dereg_mem };
	struct pair_end *end = &forged_pair.end[0];
	struct core_chan *chan;

	forged_victim_open(NULL);
	chan = &forged_victim->conn.chan;
	end->ep->dev_ops = &reg_ops;
	end->ep->dg->inline_max = 0;
	end->ep->out.hdr_kept = UINT32_MAX;
	forged_pair.net.bytes_per_s = 1e6;
	for (unsigned i = 0; i < 2; i++)
		cr_assert_eq(chan->ops->expose(chan, end->memory + 1000 * i, 100, &exposure[i]), 0);
	cr_assert_eq(reg_cnt, 2);
	return chan;
}

static void late_close(uint32_t inline_max)
{
	struct erpc_ep *ep = forged_pair.end[0].ep;

	erpc_expose_reap(ep, false);
	cr_expect_eq(reg_cnt, 0);
	ep->dg->inline_max = inline_max;
	ep->out.hdr_kept = 0;
	ep->dev_ops = NULL;
	forged_victim_close();
}

/* The peer's next get in a slot says that it has the response, not that the device has read it. */
Test(erpc_expose, memory_stays_registered_until_the_device_has_read_it, .init = forged_setup,
     .fini = forged_teardown)
{
	struct pair_end *end = &forged_pair.end[0];
	struct dev_dgram *dg = end->ep->dg;
	uint32_t inline_max = dg->inline_max;
	struct core_exposure exposure[2];
	struct core_chan *chan = late_open(exposure);

	for (unsigned i = 0; i < 2; i++)
		reply_from(&exposure[i], end->memory + 1000 * i);
	chan->ops->unexpose(chan, &exposure[0]); /* gives up: the network's time stands still */
	cr_expect(!dev_dgram_is_done(dg, dg->tx_posted - 2));
	erpc_expose_reap(end->ep, false);
	cr_expect_eq(reg_cnt, 2);
	while (!dev_dgram_is_done(dg, dg->tx_posted - 1))
		erpc_pair_run(&forged_pair, US);
	chan->ops->unexpose(chan, &exposure[1]);
	late_close(inline_max);
}

/* A get may rest between two responses while other sessions send. */
Test(erpc_expose, the_last_packet_is_known_however_long_ago_another_one_was)
{
	struct dev_dgram dg = { .tx_posted = 0 };
	struct erpc_ep ep = { .dg = &dg };
	struct erpc_session s = { .ep = &ep };
	static const uint32_t later[] = { 6, 5, INT32_MAX, 0x80000006, UINT32_MAX };
	static const uint32_t known[] = { 6, 6, INT32_MAX, 0x80000006, UINT32_MAX };
	struct erpc_exposure exposure = { .session = &s };

	for (unsigned i = 0; i < 5; i++) {
		struct erpc_rx rx = { .exposure = &exposure, .last_tx = later[i] };

		dg.tx_posted = known[i] + 1;
		exposure.sent = true;
		exposure.last_tx = 5 + (i == 1);
		erpc_expose_leave(&rx);
		cr_expect_eq(exposure.last_tx, known[i], "case %u", i);
		cr_expect_null(rx.exposure);
	}
}

static struct dev_dgram_ops timed_ops;
static const struct dev_dgram_ops *fake_ops;

static unsigned polls;

/**
 * Polls like the fake device, in 20 ns of the network's time, and in 10 us once a yield follows
 * each poll: a yield may take as long as other processes run, and the wait is limited.
 */
static int timed_poll(struct dev_dgram *dg, struct dev_dgram_in *in, unsigned cnt)
{
	uint64_t ns = polls++ < ERPC_AWAIT_POLLS ? 20 : 10000;

	fake_net_run(&forged_pair.net, forged_pair.net.now_ns + ns);
	return fake_ops->poll(dg, in, cnt);
}

/* The device takes more polls than are made without a yield. */
Test(erpc_expose, unexpose_waits_for_a_device_that_has_other_work, .init = forged_setup,
     .fini = forged_teardown)
{
	struct pair_end *end = &forged_pair.end[0];
	struct dev_dgram *dg = end->ep->dg;
	uint32_t inline_max = dg->inline_max;
	struct core_exposure exposure[2];
	struct core_chan *chan = late_open(exposure);

	fake_ops = dg->ops;
	timed_ops = *fake_ops;
	timed_ops.poll = timed_poll;
	dg->ops = &timed_ops;
	for (unsigned i = 0; i < 2; i++) {
		uint32_t number;

		reply_from(&exposure[i], end->memory + 1000 * i);
		number = dg->tx_posted - 1;
		polls = 0;
		cr_assert(!dev_dgram_is_done(dg, number));
		chan->ops->unexpose(chan, &exposure[i]);
		cr_expect(dev_dgram_is_done(dg, number));
		cr_expect_gt(polls, ERPC_AWAIT_POLLS + 1);
	}
	dg->ops = fake_ops;
	late_close(inline_max);
}
