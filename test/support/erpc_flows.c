/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Implements erpc_flows.h. */
#include "support/erpc_flows.h"

#include <stdlib.h>
#include <string.h>

#include "support/fake_fail.h"
#include "support/rng.h"

#define FLOWS_RX_CNT    2048u
#define FLOWS_TX_CNT    256u
#define FLOWS_SLOW_WAKE 50u /* one wake-up in 50 takes ten times as long */

struct flows_sim;

struct flows_get {
	struct core_get get; /* first */
	struct core_exposure exposure;
	struct iovec iov;
	struct flow *flow;
	bool open;
};

/** Sender. */
struct flow {
	struct flows_sim *sim;
	unsigned idx;
	uint64_t begin_ns;
	struct erpc_ep *ep;
	struct erpc_session *s;    /* the sender's end */
	struct erpc_session *sink; /* the receiver's end; its `user` is this flow */
	uint64_t sent, received;
	uint8_t *memory; /* FLOWS_GET_LEN bytes to send from, or to expose */
	struct flows_get gets[FLOWS_GETS];
};

struct flows_sim {
	struct fake_net net;
	struct erpc_ep *ep; /* the receiver's */
	struct flow flow[FLOWS_MAX];
	uint8_t *sink; /* FLOWS_GET_LEN bytes, destination of gets */
	uint64_t began_ns;
	struct rng rng;
	uint64_t wake_ns[FLOWS_MAX + 1]; /* end of each sleep; the receiver's is the last */
	double bin_queue;                /* time in the queue in this bin, weighted by time */
	struct flows *out;
};

struct flows_cfg flows_cfg_default(unsigned cnt)
{
	return (struct flows_cfg){ .cnt = cnt,
				   .paced = true,
				   .ns = 100000000,
				   .bin_ns = 1000000,
				   .link_bytes_per_s = 25e9 / 8,
				   .latency_ns = 10000,
				   .queue_max = 4u << 20,
				   .step_ns = 500,
				   .mtu = 4096 };
}

/* ---- receive ---- */

static void flow_received(struct flow *flow, uint64_t len)
{
	struct flows_sim *sim = flow->sim;
	uint64_t bin = (sim->net.now_ns - sim->began_ns) / sim->out->cfg.bin_ns;

	if (bin < sim->out->bin_cnt)
		sim->out->bins[bin].bytes[flow->idx] += (double)len;
}

static enum core_rx_verdict flows_on_msg(struct core_chan *chan, uint32_t op, const uint8_t *data,
					 uint32_t len, core_retain_t retain)
{
	struct flow *flow = erpc_session_of(chan)->user;
	uint64_t number;

	memcpy(&number, data, sizeof(number));
	if (number != flow->received++ || len != FLOWS_LEN + sizeof(number))
		fake_fail("flow %u: message %lu of %u bytes came as number %lu", flow->idx, number,
			  len, flow->received - 1);
	flow_received(flow, FLOWS_LEN);
	return CORE_RX_DONE;
}

static void flows_on_get_done(struct core_chan *chan, struct core_get *get)
{
	struct flows_get *g = (struct flows_get *)get;

	if (get->status)
		fake_fail("a get ends with %d", get->status);
	g->open = false;
	flow_received(g->flow, get->len);
}

static void flows_on_acked(struct core_chan *chan, uint64_t pos)
{
}

static const struct core_upcalls flows_upcalls = {
	.on_msg = flows_on_msg,
	.on_get_done = flows_on_get_done,
	.on_acked = flows_on_acked,
};

static void flows_failed(struct erpc_session *s)
{
	fake_fail("a session fails: %d", s->err);
}

/* ---- send ---- */

static void flow_send(struct flow *flow)
{
	struct core_chan *chan = &flow->s->conn.chan;

	while (chan->ops->send_buf(chan, core_packed(WIRE_OP_MSG | WIRE_F_TAG, 0), flow->sent, 0,
				   flow->memory, FLOWS_LEN) >= 0) {
		flow->sent++;
		chan->awaited = *chan->posted;
	}
}

static void flow_get(struct flow *flow)
{
	struct core_chan *exposer = &flow->s->conn.chan, *getter = &flow->sink->conn.chan;
	unsigned i;

	for (i = 0; i < FLOWS_GETS; i++) {
		struct flows_get *g = &flow->gets[i];

		if (g->open)
			continue;
		if (!g->exposure.chan &&
		    exposer->ops->expose(exposer, flow->memory, FLOWS_GET_LEN, &g->exposure))
			fake_fail("expose failed");
		g->exposure.chan = exposer;
		g->flow = flow;
		g->open = true;
		g->iov = (struct iovec){ .iov_base = flow->sim->sink, .iov_len = FLOWS_GET_LEN };
		g->get = (struct core_get){ .remote_addr = (uintptr_t)flow->memory,
					    .remote_key = g->exposure.key,
					    .iov = &g->iov,
					    .iov_cnt = 1,
					    .len = FLOWS_GET_LEN };
		if (getter->ops->get(getter, &g->get))
			fake_fail("get failed");
	}
}

static void flows_send(struct flows_sim *sim)
{
	const struct flows_cfg *cfg = &sim->out->cfg;
	unsigned i;

	for (i = 0; i < cfg->cnt; i++) {
		if (sim->net.now_ns < sim->flow[i].begin_ns)
			continue;
		if (cfg->get)
			flow_get(&sim->flow[i]);
		else
			flow_send(&sim->flow[i]);
	}
}

/* ---- open and close ---- */

static struct erpc_ep *flows_ep(struct flows_sim *sim, unsigned seed)
{
	struct dev_dgram_attr dg_attr = { .rx_cnt = FLOWS_RX_CNT, .tx_cnt = FLOWS_TX_CNT };
	struct erpc_ep_attr attr = { .tx_cnt = FLOWS_TX_CNT,
				     .up = &flows_upcalls,
				     .seed = seed + 1,
				     .failed = flows_failed };
	struct erpc_ep *ep;

	if (sim->out->cfg.paced)
		attr.link_rate = sim->out->cfg.link_bytes_per_s;
	attr.host_ns = sim->out->cfg.host_ns;
	if (fake_net_ops.open(fake_net_dev(&sim->net), &dg_attr, &attr.dg) ||
	    erpc_ep_open(&attr, &ep))
		fake_fail("no endpoint");
	return ep;
}

static struct dev_dgram_ah *flows_resolve(struct erpc_ep *from, struct erpc_ep *to)
{
	struct dev_dgram_ah *ah;
	struct dev_desc desc;

	if (to->dg->ops->describe(to->dg, &desc) || from->dg->ops->resolve(from->dg, &desc, &ah))
		fake_fail("no address");
	return ah;
}

static void flow_open(struct flows_sim *sim, unsigned idx)
{
	const struct flows_cfg *cfg = &sim->out->cfg;
	struct flow *flow = &sim->flow[idx];
	struct wire_erpc_params ours, theirs;

	*flow = (struct flow){ .sim = sim, .idx = idx, .begin_ns = sim->began_ns };
	if (cfg->last_start_ns && idx == cfg->cnt - 1)
		flow->begin_ns += cfg->last_start_ns;
	flow->ep = flows_ep(sim, idx + 1);
	flow->memory = calloc(1, FLOWS_GET_LEN);
	if (!flow->memory || erpc_session_open(flow->ep, &ours, &flow->s) ||
	    erpc_session_open(sim->ep, &theirs, &flow->sink) ||
	    erpc_session_connect(flow->s, &theirs, flows_resolve(flow->ep, sim->ep)) ||
	    erpc_session_connect(flow->sink, &ours, flows_resolve(sim->ep, flow->ep)))
		fake_fail("no session");
	flow->s->user = flow;
	flow->sink->user = flow;
	erpc_session_attach(flow->s);
	erpc_session_attach(flow->sink);
}

static void flow_close(struct flow *flow)
{
	unsigned i;

	flow->sim->out->paced += flow->ep->unread.paced;
	flow->sim->out->resent += flow->ep->unread.resent;
	for (i = 0; i < FLOWS_GETS; i++)
		if (flow->gets[i].exposure.chan)
			flow->s->conn.chan.ops->unexpose(&flow->s->conn.chan,
							 &flow->gets[i].exposure);
	flow->s->conn.chan.ops->close(&flow->s->conn.chan);
	flow->sink->conn.chan.ops->close(&flow->sink->conn.chan);
	erpc_ep_close(flow->ep);
	free(flow->memory);
}

static void flows_open(struct flows_sim *sim)
{
	const struct flows_cfg *cfg = &sim->out->cfg;
	unsigned i;

	fake_net_init(&sim->net, 1);
	sim->net.now_ns = sim->began_ns = 1000000;
	sim->rng.state = 1;
	sim->net.mtu = cfg->mtu;
	sim->net.bytes_per_s = cfg->link_bytes_per_s;
	sim->net.latency_ns = cfg->latency_ns;
	sim->net.queue_max = cfg->queue_max;
	sim->sink = malloc(FLOWS_GET_LEN);
	if (!sim->sink)
		fake_fail("no memory");
	sim->ep = flows_ep(sim, 0);
	for (i = 0; i < cfg->cnt; i++)
		flow_open(sim, i);
}

static void flows_close(struct flows_sim *sim)
{
	unsigned i;

	sim->out->resent += sim->ep->unread.resent;
	sim->out->lost = sim->net.cnt.queue_full;
	for (i = 0; i < sim->out->cfg.cnt; i++)
		flow_close(&sim->flow[i]);
	erpc_ep_close(sim->ep);
	fake_net_fini(&sim->net);
	free(sim->sink);
}

/* ---- time ---- */

/** Calls progress of an endpoint that does not sleep. */
static void flows_poll(struct flows_sim *sim, struct erpc_ep *ep, uint64_t *wake_ns)
{
	uint64_t mean_ns = sim->out->cfg.wake_ns, late_ns;

	if (sim->net.now_ns < *wake_ns)
		return;
	ep->armed = mean_ns;
	erpc_ep_progress(ep, sim->net.now_ns);
	if (!mean_ns)
		return;
	late_ns = rng_below(&sim->rng, 2 * mean_ns);
	*wake_ns = sim->net.now_ns + (rng_chance(&sim->rng, 1, FLOWS_SLOW_WAKE) ? 10 : 1) * late_ns;
}

static void flows_progress(struct flows_sim *sim)
{
	const struct flows_cfg *cfg = &sim->out->cfg;
	bool away =
		cfg->every_ns && (sim->net.now_ns - sim->began_ns) % cfg->every_ns < cfg->away_ns;
	unsigned i;

	if (!away || cfg->senders_away)
		flows_poll(sim, sim->ep, &sim->wake_ns[FLOWS_MAX]);
	for (i = 0; i < cfg->cnt && !(away && cfg->senders_away); i++)
		flows_poll(sim, sim->flow[i].ep, &sim->wake_ns[i]);
}

/** Records the queue before the receiver's link since `since_ns`. */
static void flows_sample(struct flows_sim *sim, uint64_t since_ns)
{
	uint64_t bin = (since_ns - sim->began_ns) / sim->out->cfg.bin_ns;
	uint64_t free_ns = fake_port_of(sim->ep->dg)->ingress_free_ns;
	double queue_ns = free_ns > since_ns ? (double)(free_ns - since_ns) : 0;
	struct flows_bin *b = &sim->out->bins[bin];

	b->queue_ns +=
		queue_ns * (double)(sim->net.now_ns - since_ns) / (double)sim->out->cfg.bin_ns;
	if (queue_ns > b->queue_max_ns)
		b->queue_max_ns = queue_ns;
}

void flows_run(const struct flows_cfg *cfg, struct flows *f)
{
	struct flows_sim *sim = calloc(1, sizeof(*sim));
	uint64_t since_ns;

	memset(f, 0, sizeof(*f));
	f->cfg = *cfg;
	f->bin_cnt = (unsigned)(cfg->ns / cfg->bin_ns);
	if (!sim || f->bin_cnt > FLOWS_BINS || cfg->cnt > FLOWS_MAX)
		fake_fail("%u flows, %u bins", cfg->cnt, f->bin_cnt);
	sim->out = f;
	flows_open(sim);
	while (sim->net.now_ns < sim->began_ns + f->bin_cnt * cfg->bin_ns) {
		since_ns = sim->net.now_ns;
		flows_send(sim);
		flows_progress(sim);
		fake_net_step(&sim->net, since_ns + cfg->step_ns);
		flows_sample(sim, since_ns);
	}
	flows_close(sim);
	free(sim);
}

/* ---- results ---- */

double flows_fairness(const struct flows *f, unsigned from, unsigned to)
{
	double sum = 0, squares = 0, bytes;
	unsigned i, k;

	for (i = 0; i < f->cfg.cnt; i++) {
		for (bytes = 0, k = from; k < to; k++)
			bytes += f->bins[k].bytes[i];
		sum += bytes;
		squares += bytes * bytes;
	}
	return squares > 0 ? sum * sum / (f->cfg.cnt * squares) : 0;
}

double flows_used(const struct flows *f, unsigned from, unsigned to)
{
	double sum = 0;
	unsigned i, k;

	for (k = from; k < to; k++)
		for (i = 0; i < f->cfg.cnt; i++)
			sum += f->bins[k].bytes[i];
	return sum / (f->cfg.link_bytes_per_s * (double)((to - from) * f->cfg.bin_ns) / 1e9);
}

double flows_queue_ns(const struct flows *f, unsigned from, unsigned to)
{
	double sum = 0;
	unsigned k;

	for (k = from; k < to; k++)
		sum += f->bins[k].queue_ns;
	return sum / (to - from);
}

double flows_queue_max_ns(const struct flows *f, unsigned from, unsigned to)
{
	double max = 0;
	unsigned k;

	for (k = from; k < to; k++)
		if (f->bins[k].queue_max_ns > max)
			max = f->bins[k].queue_max_ns;
	return max;
}
