/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Checks after every step, and the report of a violation: see flow.h. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit/ring/flow_end.h"
#include "wire/wire_ring.h"

void flow_fail(struct flow_run *run, const char *cond, const char *what)
{
	int i;

	for (i = 0; i < 2; i++) {
		const struct ring_conn *c = &run->pair.end[i].conn;

		fprintf(stderr,
			"end %d: producer %#" PRIx64 " flushed %#" PRIx64 " known %#" PRIx64
			" R %" PRIu64 " claimed %" PRIu64 " credit %" PRIu64 " posts %u open %d\n"
			"       rx producer %#" PRIx64 " parsed %#" PRIx64 " consumer %#" PRIx64
			" advertised %#" PRIx64 " retained %u calls %u\n",
			i, c->tx.flow.producer, c->tx.flush_start, c->tx.flow.remote_consumer,
			c->tx.flow.granted, c->tx.flow.claimed, c->tx.credit, c->tx.post_cnt,
			c->tx.open, c->rx.producer, c->rx.parsed, c->rx.consumer, c->rx.advertised,
			run->end[i].hold_cnt, run->end[i].call_cnt);
	}
	cr_assert_fail("%s: %s (%s); COPYRPC_TEST_SEED=%" PRIu64 " step %" PRIu64, run->c->name,
		       what, cond, run->seed, run->step);
	abort();
}

static uint64_t flow_grant_at(const uint8_t *bytes, uint32_t imm)
{
	struct wire_meta meta;

	if (imm & WIRE_IMM_SHORT)
		return 0;
	memcpy(&meta, bytes, sizeof(meta));
	return meta.credit_grant;
}

/** Returns the credit that has left the writer and not reached the reader. */
static uint64_t flow_grants_in_transit(const struct ring_conn *conn)
{
	uint32_t i, cnt = fake_link_in_transit(conn->link);
	struct fake_write w;
	uint64_t sum = 0;

	for (i = 0; i < cnt; i++) {
		const uint8_t *bytes = fake_link_peek(conn->link, i, &w);

		sum += flow_grant_at(bytes, w.imm);
	}
	for (i = 0; i < conn->tx.post_cnt; i++)
		sum += flow_grant_at(conn->tx.base + conn->tx.posts[i].off, conn->tx.posts[i].imm);
	return sum;
}

static void flow_check_credit(struct flow_end *w)
{
	const struct ring_tx *tx = &w->ring->conn.tx;
	uint64_t claimed = 0;
	unsigned i;

	for (i = 0; i < w->open_cnt; i++)
		claimed += wire_reservation(w->open[i].ref.resp_max);
	FLOW_CHECK(w->run, tx->flow.claimed == claimed, "claims do not add up");
	FLOW_CHECK(w->run,
		   tx->flow.granted == w->peer->ring->conn.tx.credit + w->peer->reserved +
					       flow_grants_in_transit(&w->ring->conn),
		   "credit is not conserved");
}

/** Returns true while batches may be lost that will be written again. */
static bool flow_takes_over(const struct flow_end *w)
{
	const struct ring_conn *conn = &w->ring->conn;

	return conn->rail &&
	       (fake_link_of(conn->link)->dead || conn->tx.replay != conn->tx.replay_end ||
		conn->rail->phase != w->peer->ring->conn.rail->phase ||
		(conn->rail->phase != RING_RAIL_BESIDE && conn->rail->phase != RING_RAIL_TAKEN));
}

void flow_check(struct flow_end *w)
{
	const struct ring_tx *tx = &w->ring->conn.tx;
	const struct ring_rx *rx = &w->peer->ring->conn.rx;
	struct flow_run *run = w->run;

	FLOW_CHECK(run, ring_flow_holds(&tx->flow), "the invariant");
	FLOW_CHECK(run, tx->flow.producer - rx->consumer <= tx->flow.cap, "the ring overflows");
	FLOW_CHECK(run, rx->consumer - tx->flow.remote_consumer <= tx->len,
		   "advertised more than released");
	FLOW_CHECK(run, rx->consumer - w->peer->consumer <= rx->len, "consumer goes back");
	FLOW_CHECK(run, rx->parsed - rx->consumer <= rx->len, "released and not parsed");
	FLOW_CHECK(run, tx->flow.producer - rx->parsed <= tx->len, "parsed and not sent");
	FLOW_CHECK(run, *w->peer->ring->conn.link->consumer_word == rx->consumer, "consumer word");
	FLOW_CHECK(run, tx->open || (!tx->msg_cnt && tx->flush_start == tx->flow.producer),
		   "no batch is open");
	w->peer->consumer = rx->consumer;
	if (flow_takes_over(w) || flow_takes_over(w->peer))
		return;
	if (fake_link_in_transit(w->ring->conn.link) < 40 || rng_chance(&run->rng, 1, 64))
		flow_check_credit(w);
}
