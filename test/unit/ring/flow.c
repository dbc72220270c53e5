/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Episodes of random steps that each end with a drain: see flow.h. */
#include "unit/ring/flow.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <string.h>

#include "unit/ring/flow_end.h"

#define FLOW_EPISODE  3000u
#define FLOW_PATIENCE 20000u
#define FLOW_FAILURE  100u /* Steps between failures of a link, on average */

static struct flow_run flow_run;

static void flow_draw_weights(struct flow_run *run)
{
	static const unsigned choice[] = { 0, 1, 1, 2, 4, 16 };
	unsigned i, k;

	for (i = 0; i < 2; i++) {
		for (k = 0; k < 6; k++)
			run->end[i].weight[k] = choice[rng_below(&run->rng, 6)];
		run->end[i].weight[5] += rng_chance(&run->rng, 1, 2) ? 4 : 0;
	}
	run->hold_rate = (unsigned)rng_below(&run->rng, 3) * (unsigned)rng_below(&run->rng, 6);
	run->reenter_rate = (unsigned)rng_below(&run->rng, 7);
}

static void flow_step(struct flow_run *run)
{
	struct flow_end *end = &run->end[rng_below(&run->rng, 2)];
	unsigned sum = 0, k = 0, draw;

	while (k < 6)
		sum += end->weight[k++];
	draw = (unsigned)rng_below(&run->rng, sum + 1);
	for (k = 0; k < 5 && draw >= end->weight[k]; k++)
		draw -= end->weight[k];
	flow_steps[k](end);
	if (run->c->pair.rails && rng_chance(&run->rng, 1, FLOW_FAILURE))
		flow_fail_link(end);
	if (rng_chance(&run->rng, 1, 4))
		fake_link_deliver(end->ring->conn.link);
	run->step++;
	flow_check(&run->end[0]);
	flow_check(&run->end[1]);
}

static bool flow_end_is_done(const struct flow_end *w)
{
	const struct ring_tx *tx = &w->ring->conn.tx;
	const struct ring_rx *rx = &w->peer->ring->conn.rx;

	return !tx->open && !tx->post_cnt && !w->open_cnt && !w->call_cnt && !w->hold_cnt &&
	       w->out_head == w->out_tail && !fake_link_in_transit(w->ring->conn.link) &&
	       tx->flow.producer == rx->consumer;
}

static uint64_t flow_writes(const struct ring_end *end)
{
	return end->dev.write_cnt + end->second.write_cnt;
}

static void flow_serve(struct flow_run *run)
{
	unsigned i;

	for (i = 0; i < 2; i++) {
		while (run->end[i].hold_cnt)
			flow_release(&run->end[i]);
		while (run->end[i].open_cnt)
			flow_reply(&run->end[i]);
		flow_progress(&run->end[i]);
		flow_check(&run->end[0]);
		flow_check(&run->end[1]);
	}
}

/** Starts nothing new: everything must arrive, and then nothing more may leave. */
static void flow_drain(struct flow_run *run)
{
	unsigned rounds = 0, silent = 0;
	uint64_t writes = 0, now;

	run->reenter_rate = 0;
	while (silent < 64) {
		flow_serve(run);
		now = flow_writes(&run->pair.end[0]) + flow_writes(&run->pair.end[1]);
		if (now != writes || !flow_end_is_done(&run->end[0]) ||
		    !flow_end_is_done(&run->end[1]))
			silent = 0;
		else
			silent++;
		writes = now;
		FLOW_CHECK(run, rounds++ < FLOW_PATIENCE, "it does not drain");
	}
}

/** Checks what the protocol promises each of two silent ends. */
static void flow_check_promises(struct flow_run *run, struct flow_end *end)
{
	uint32_t max = (uint32_t)end->ring->conn.eng.chan.eager_max;
	unsigned rounds;

	for (rounds = 0; flow_send_len(end, max, 0); rounds++) {
		flow_serve(run);
		FLOW_CHECK(run, rounds < 200, "the largest message is never admitted");
	}
	flow_drain(run);
	for (rounds = 0; flow_call_with(end, max, flow_sure_resp_max(end)); rounds++) {
		flow_serve(run);
		FLOW_CHECK(run, rounds < 200, "the largest call is never admitted");
	}
	flow_drain(run);
}

static void flow_init(struct flow_run *run, const struct flow_case *c, uint64_t seed)
{
	struct ring_pair_cfg cfg = c->pair;
	unsigned i;

	memset(run, 0, sizeof(*run));
	run->c = c;
	run->seed = seed;
	run->rng.state = seed;
	cfg.seed = seed;
	ring_pair_flush = c->flush;
	ring_pair_init(&run->pair, &cfg, &flow_upcalls);
	for (i = 0; i < 2; i++) {
		struct flow_end *end = &run->end[i];

		end->run = run;
		end->peer = &run->end[!i];
		end->ring = &run->pair.end[i];
		end->ring->user = end;
		end->ring->dev.sq_len = c->sq_len;
		end->ring->dev.no_read = c->no_read;
		end->ring->second.sq_len = c->sq_len;
		end->ring->second.no_read = c->no_read;
		end->consumer = end->ring->conn.rx.consumer;
	}
}

void flow_play(const struct flow_case *c, uint64_t seed, uint64_t steps)
{
	struct flow_run *run = &flow_run;
	unsigned i;

	flow_init(run, c, seed);
	while (run->step < steps) {
		uint64_t until = run->step + 1 + rng_below(&run->rng, FLOW_EPISODE);

		flow_draw_weights(run);
		while (run->step < until)
			flow_step(run);
		flow_drain(run);
		flow_check_promises(run, &run->end[rng_below(&run->rng, 2)]);
	}
	cr_assert(!c->pair.rails || flow_has_failed(run), "no link has failed");
	for (i = 0; i < 2 && steps > FLOW_EPISODE; i++)
		cr_assert(run->end[i].sent && run->end[i].called && run->end[i].replied,
			  "%s: end %u did nothing; COPYRPC_TEST_SEED=%" PRIu64, c->name, i, seed);
	ring_pair_fini(&run->pair);
}
