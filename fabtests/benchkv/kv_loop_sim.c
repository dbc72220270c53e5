/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Simulation of daemons: see kv_loop_sim.h.
 *
 * The daemon whose next loop begins first runs it; its sends arrive later than any loop that has
 * begun, because the wire takes longer than 0. So no queue of events is needed.
 */
#include "kv_loop_sim.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Messages that one node may have on the way to another: calls of the one, responses of both. */
#define KV_SIM_PIPE_LEN (2 * KV_SIM_LOAD_MAX)

/* Bounds of the time that KV_SIM_HOLD waits, in ns */
#define KV_SIM_HOLD_MIN 500u
#define KV_SIM_HOLD_MAX 100000u

/** Message: the call of a request, or its response. */
struct kv_sim_msg {
	uint64_t at;  /* time of arrival; while pending: when it was appended */
	uint16_t own; /* node of the request */
	uint16_t req; /* index of the request there */
	bool first;   /* first of its batch */
	bool response;
};

/** Connection from one node to another. */
struct kv_sim_pipe {
	struct kv_sim_msg msgs[KV_SIM_PIPE_LEN]; /* a ring */
	uint64_t head;                           /* oldest message that was not taken */
	uint64_t sent;                           /* messages before it have left */
	uint64_t tail;                           /* messages before it were appended */
	uint64_t taken_ns;                       /* when the last message was taken */
	uint32_t responses;                      /* appended and not sent */
};

struct kv_sim_node {
	uint64_t next_ns;                /* start of the next loop */
	uint64_t ready[KV_SIM_LOAD_MAX]; /* when a client sends the request; 0: in flight */
	uint64_t began[KV_SIM_LOAD_MAX]; /* when it did */
	uint32_t load, held;             /* requests wanted, and begun or about to begin */
	uint32_t calls;                  /* without a response */
	uint64_t gap_ns;                 /* KV_SIM_HOLD: mean time between messages, x 8 */
	uint64_t last_ns;                /* time of the last message */
};

struct kv_sim {
	struct kv_sim_conf conf;
	struct kv_sim_counts counts;
	uint64_t now, rng;
	struct kv_sim_node node[KV_SIM_NODES_MAX];
	struct kv_sim_pipe *pipes; /* [from * nodes + to] */
};

/** One loop of a daemon, while it runs. */
struct kv_sim_loop {
	struct kv_sim *sim;
	uint32_t id;
	uint64_t start, now;
	uint32_t work, responses;
};

static const char *const kv_sim_names[KV_SIM_POLICIES] = { "each", "loop", "rule", "idle", "hold" };

const char *kv_sim_policy_name(enum kv_sim_policy policy)
{
	return kv_sim_names[policy];
}

static uint32_t kv_sim_random(struct kv_sim *sim, uint32_t below)
{
	sim->rng = sim->rng * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((sim->rng >> 33) % below);
}

static struct kv_sim_pipe *kv_sim_pipe(const struct kv_sim *sim, uint32_t from, uint32_t to)
{
	return &sim->pipes[from * sim->conf.nodes + to];
}

static struct kv_sim_msg *kv_sim_at(struct kv_sim_pipe *pipe, uint64_t pos)
{
	return &pipe->msgs[pos % KV_SIM_PIPE_LEN];
}

struct kv_sim *kv_sim_open(const struct kv_sim_conf *conf)
{
	struct kv_sim *sim = calloc(1, sizeof(*sim));

	assert(conf->nodes >= 2 && conf->nodes <= KV_SIM_NODES_MAX && conf->wire_ns);
	if (!sim)
		return NULL;
	sim->conf = *conf;
	if (!conf->target)
		sim->conf.target = conf->nodes;
	sim->rng = conf->seed;
	sim->now = 1;
	sim->pipes = calloc((size_t)conf->nodes * conf->nodes, sizeof(*sim->pipes));
	for (uint32_t i = 0; i < conf->nodes; i++)
		sim->node[i].next_ns = 1 + kv_sim_random(sim, conf->loop_ns + 1);
	if (sim->pipes)
		return sim;
	free(sim);
	return NULL;
}

void kv_sim_close(struct kv_sim *sim)
{
	free(sim->pipes);
	free(sim);
}

/* Lets the client of request `req` think from `from` on. */
static void kv_sim_think(struct kv_sim *sim, struct kv_sim_node *node, uint32_t req, uint64_t from)
{
	uint32_t client_ns = sim->conf.client_ns;

	node->ready[req] = from + client_ns / 2 + kv_sim_random(sim, client_ns + 1);
}

void kv_sim_load(struct kv_sim *sim, uint32_t load)
{
	assert(load <= KV_SIM_LOAD_MAX);
	for (uint32_t i = 0; i < sim->conf.nodes; i++) {
		struct kv_sim_node *node = &sim->node[i];

		node->load = load;
		for (uint32_t req = 0; req < KV_SIM_LOAD_MAX && node->held < load; req++)
			if (!node->ready[req] && !node->began[req]) {
				kv_sim_think(sim, node, req, sim->now);
				node->held++;
			}
	}
}

/* ---- sending ---- */

/* Sends everything appended for `to` as one batch. */
static void kv_sim_send(struct kv_sim_loop *loop, uint32_t to)
{
	struct kv_sim *sim = loop->sim;
	struct kv_sim_pipe *pipe = kv_sim_pipe(sim, loop->id, to);

	if (pipe->sent == pipe->tail)
		return;
	loop->now += sim->conf.send_ns;
	pipe->responses = 0;
	sim->counts.batches++;
	sim->counts.messages += pipe->tail - pipe->sent;
	for (bool first = true; pipe->sent < pipe->tail; pipe->sent++, first = false) {
		struct kv_sim_msg *msg = kv_sim_at(pipe, pipe->sent);

		msg->at = loop->now + sim->conf.wire_ns;
		msg->first = first;
	}
}

/* Returns true if the sender does not know yet that everything it sent was taken. */
static bool kv_sim_is_in_flight(const struct kv_sim_loop *loop, const struct kv_sim_pipe *pipe)
{
	return pipe->head < pipe->sent || pipe->taken_ns + loop->sim->conf.wire_ns > loop->now;
}

/* KV_SIM_HOLD: notes the time between messages, as a mean with a weight of 1/8 for the new one. */
static void kv_sim_note_gap(struct kv_sim_loop *loop)
{
	struct kv_sim_node *node = &loop->sim->node[loop->id];
	uint64_t gap = loop->start - node->last_ns;

	node->gap_ns += gap - node->gap_ns / 8;
	node->last_ns = loop->start;
}

static void kv_sim_append(struct kv_sim_loop *loop, uint32_t to, struct kv_sim_msg msg)
{
	struct kv_sim *sim = loop->sim;
	struct kv_sim_pipe *pipe = kv_sim_pipe(sim, loop->id, to);
	enum kv_sim_policy policy = sim->conf.policy;

	assert(pipe->tail - pipe->head < KV_SIM_PIPE_LEN);
	loop->now += sim->conf.msg_ns;
	msg.at = loop->now;
	*kv_sim_at(pipe, pipe->tail++) = msg;
	pipe->responses += msg.response;
	kv_sim_note_gap(loop);
	if (policy == KV_SIM_EACH || pipe->tail - pipe->sent >= sim->conf.full ||
	    (policy == KV_SIM_RULE && !kv_sim_is_in_flight(loop, pipe)))
		kv_sim_send(loop, to);
}

/* Returns the time after which KV_SIM_HOLD sends what is there. */
static uint64_t kv_sim_hold_ns(const struct kv_sim *sim, const struct kv_sim_node *node)
{
	uint64_t ns = sim->conf.target * (node->gap_ns / 8);

	return ns < KV_SIM_HOLD_MIN ? KV_SIM_HOLD_MIN : ns > KV_SIM_HOLD_MAX ? KV_SIM_HOLD_MAX : ns;
}

static bool kv_sim_hold_ends(const struct kv_sim_loop *loop, struct kv_sim_pipe *pipe)
{
	const struct kv_sim *sim = loop->sim;
	const struct kv_sim_node *node = &sim->node[loop->id];

	return pipe->tail - pipe->sent >= sim->conf.target || !node->calls ||
	       (!sim->conf.hold_responses && pipe->responses) ||
	       loop->now - kv_sim_at(pipe, pipe->sent)->at >= kv_sim_hold_ns(sim, node);
}

/* Returns true if the batch for `to` leaves at the end of the loop. */
static bool kv_sim_leaves(const struct kv_sim_loop *loop, uint32_t to)
{
	struct kv_sim_pipe *pipe = kv_sim_pipe(loop->sim, loop->id, to);

	switch (loop->sim->conf.policy) {
	case KV_SIM_LOOP: return true;
	case KV_SIM_IDLE: return !kv_sim_is_in_flight(loop, pipe);
	case KV_SIM_HOLD: return pipe->sent != pipe->tail && kv_sim_hold_ends(loop, pipe);
	default: return false; /* decided at the append, and at the start of the next loop */
	}
}

/* ---- a loop ---- */

static void kv_sim_complete(struct kv_sim_loop *loop, uint32_t req)
{
	struct kv_sim *sim = loop->sim;
	struct kv_sim_node *node = &sim->node[loop->id];

	bench_hist_add(&sim->counts.latency, loop->now - node->began[req]);
	sim->counts.done++;
	loop->responses++;
	node->calls--;
	node->began[req] = 0;
	if (node->held > node->load)
		node->held--;
	else
		kv_sim_think(sim, node, req, loop->now);
}

/* Takes what has arrived from `from`. Calls are replied to in the same loop. */
static void kv_sim_take(struct kv_sim_loop *loop, uint32_t from)
{
	struct kv_sim *sim = loop->sim;
	struct kv_sim_pipe *pipe = kv_sim_pipe(sim, from, loop->id);

	while (pipe->head < pipe->sent && kv_sim_at(pipe, pipe->head)->at <= loop->start) {
		struct kv_sim_msg msg = *kv_sim_at(pipe, pipe->head++);

		pipe->taken_ns = loop->now;
		loop->now += sim->conf.msg_ns + (msg.first ? sim->conf.recv_ns : 0);
		loop->work++;
		if (msg.response)
			kv_sim_complete(loop, msg.req);
		else
			kv_sim_append(loop, from,
				      (struct kv_sim_msg){
					      .own = msg.own, .req = msg.req, .response = true });
	}
}

static void kv_sim_begin(struct kv_sim_loop *loop, uint32_t req)
{
	struct kv_sim *sim = loop->sim;
	uint32_t to = kv_sim_random(sim, sim->conf.nodes - 1);
	struct kv_sim_node *node = &sim->node[loop->id];

	node->began[req] = node->ready[req];
	node->ready[req] = 0;
	node->calls++;
	sim->counts.issued++;
	loop->work++;
	kv_sim_append(loop, to + (to >= loop->id),
		      (struct kv_sim_msg){ .own = (uint16_t)loop->id, .req = (uint16_t)req });
}

static void kv_sim_take_requests(struct kv_sim_loop *loop)
{
	struct kv_sim_node *node = &loop->sim->node[loop->id];
	uint64_t until = loop->now;

	for (uint32_t req = 0; req < KV_SIM_LOAD_MAX; req++)
		if (node->ready[req] && node->ready[req] <= until)
			kv_sim_begin(loop, req);
}

static void kv_sim_step(struct kv_sim *sim, uint32_t id)
{
	uint64_t start = sim->node[id].next_ns;
	struct kv_sim_loop loop = {
		.sim = sim, .id = id, .start = start, .now = start + sim->conf.loop_ns
	};

	for (uint32_t i = 0; i < sim->conf.nodes && sim->conf.policy == KV_SIM_RULE; i++)
		kv_sim_send(&loop, i);
	for (uint32_t i = 0; i < sim->conf.nodes; i++)
		kv_sim_take(&loop, i);
	kv_sim_take_requests(&loop);
	for (uint32_t i = 0; i < sim->conf.nodes; i++)
		if (kv_sim_leaves(&loop, i))
			kv_sim_send(&loop, i);
	sim->counts.loops += loop.work > 0;
	sim->counts.few += loop.work && loop.responses <= 1;
	sim->node[id].next_ns = loop.now > start ? loop.now : start + 1;
}

struct kv_sim_counts kv_sim_run(struct kv_sim *sim, uint64_t ns)
{
	uint64_t end = sim->now + ns;

	memset(&sim->counts, 0, sizeof(sim->counts));
	for (;;) {
		uint32_t first = 0;

		for (uint32_t i = 1; i < sim->conf.nodes; i++)
			if (sim->node[i].next_ns < sim->node[first].next_ns)
				first = i;
		if (sim->node[first].next_ns >= end)
			break;
		sim->now = sim->node[first].next_ns;
		kv_sim_step(sim, first);
	}
	sim->now = end;
	return sim->counts;
}

uint64_t kv_sim_in_flight(const struct kv_sim *sim)
{
	uint32_t nodes = sim->conf.nodes;
	uint64_t cnt = 0;

	for (uint32_t i = 0; i < nodes * nodes; i++)
		cnt += sim->pipes[i].tail - sim->pipes[i].head;
	for (uint32_t i = 0; i < nodes; i++)
		for (uint32_t req = 0; req < KV_SIM_LOAD_MAX; req++)
			cnt += sim->node[i].ready[req] != 0;
	return cnt;
}
