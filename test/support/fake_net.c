/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Network between ports and its faults: see fake_net.h. The ports are in fake_net_port.c. */
#include "support/fake_net.h"

#include <stdlib.h>
#include <string.h>

#define FAKE_MILLION 1000000u
#define FAKE_HDR_LEN 16u /* range that damage changes */

enum fake_stage {
	FAKE_AT_LINK, /* before the receiver's link */
	FAKE_ARRIVED, /* behind the receiver's link */
};

struct fake_event {
	uint64_t at_ns;
	uint64_t seq; /* keeps the order of events that are due at the same time */
	enum fake_stage stage;
	uint32_t from;
	uint32_t to;
	uint32_t len;
	uint8_t *data;
};

void fake_net_init(struct fake_net *net, uint64_t seed)
{
	memset(net, 0, sizeof(*net));
	net->rng.state = seed;
	net->mtu = 1024;
	net->latency_ns = 5000;
}

void fake_net_fini(struct fake_net *net)
{
	uint32_t i;

	for (i = 0; i < net->heap_cnt; i++)
		free(net->heap[i].data);
	free(net->heap);
	free(net->ports);
	memset(net, 0, sizeof(*net));
}

/* ---- events by time ---- */

static bool fake_before(const struct fake_event *a, const struct fake_event *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->seq < b->seq;
}

static void fake_push(struct fake_net *net, struct fake_event ev)
{
	uint32_t at = net->heap_cnt++;

	if (net->heap_cnt > net->heap_max) {
		net->heap_max = net->heap_max ? 2 * net->heap_max : 64;
		net->heap = realloc(net->heap, net->heap_max * sizeof(ev));
		if (!net->heap)
			abort();
	}
	ev.seq = net->event_seq++;
	for (; at && fake_before(&ev, &net->heap[(at - 1) / 2]); at = (at - 1) / 2)
		net->heap[at] = net->heap[(at - 1) / 2];
	net->heap[at] = ev;
}

static struct fake_event fake_pop(struct fake_net *net)
{
	struct fake_event first = net->heap[0], last = net->heap[--net->heap_cnt];
	uint32_t at = 0, child;

	while ((child = 2 * at + 1) < net->heap_cnt) {
		if (child + 1 < net->heap_cnt &&
		    fake_before(&net->heap[child + 1], &net->heap[child]))
			child++;
		if (!fake_before(&net->heap[child], &last))
			break;
		net->heap[at] = net->heap[child];
		at = child;
	}
	net->heap[at] = last;
	return first;
}

/* ---- send ---- */

static bool fake_happens(struct fake_net *net, uint32_t chance)
{
	return chance && rng_below(&net->rng, FAKE_MILLION) < chance;
}

static void fake_damage(struct fake_net *net, uint8_t *data, uint32_t len)
{
	uint32_t cnt = 1 + (uint32_t)rng_below(&net->rng, 8), bit;
	uint32_t span = 8 * (len < FAKE_HDR_LEN ? len : FAKE_HDR_LEN);

	while (span && cnt--) {
		bit = (uint32_t)rng_below(&net->rng, span);
		data[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	net->cnt.damaged++;
}

static void fake_chance(struct fake_net *net, struct fake_pkt *pkt)
{
	const struct fake_faults *f = &net->faults;

	if (fake_happens(net, f->drop)) {
		pkt->copies = 0;
	} else if (fake_happens(net, f->corrupt)) {
		pkt->copies = 0;
		net->cnt.corrupt++;
	} else if (fake_happens(net, f->dup)) {
		pkt->copies++;
	}
	if (fake_happens(net, f->reorder)) {
		pkt->delay_ns += 1 + rng_below(&net->rng, f->reorder_ns + 1);
		net->cnt.reordered++;
	}
	if (pkt->copies && fake_happens(net, f->damage))
		fake_damage(net, pkt->data, pkt->len);
}

static uint64_t fake_span_ns(const struct fake_net *net, uint32_t len)
{
	return net->bytes_per_s > 0 ? (uint64_t)(len * 1e9 / net->bytes_per_s) : 0;
}

static uint64_t fake_later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void fake_launch(struct fake_net *net, const struct fake_pkt *pkt, uint64_t leaves_ns)
{
	struct fake_event ev = {
		.stage = FAKE_AT_LINK, .from = pkt->from, .to = pkt->to, .len = pkt->len
	};

	/* A copy is delayed by up to the time of the original. */
	ev.at_ns = leaves_ns + net->latency_ns + pkt->delay_ns;
	for (uint32_t i = 0; i < pkt->copies; i++) {
		ev.data = malloc(pkt->len ? pkt->len : 1);
		if (!ev.data)
			abort();
		memcpy(ev.data, pkt->data, pkt->len);
		fake_push(net, ev);
		ev.at_ns += rng_below(&net->rng, net->latency_ns + 1);
	}
}

void fake_net_send(struct fake_port *port, uint32_t to, const struct dev_dgram_out *out)
{
	struct fake_net *net = port->net;
	struct fake_pkt pkt = { .from = port->number, .to = to, .copies = 1 };
	uint32_t i;

	pkt.len = dev_dgram_out_len(out);
	pkt.nth = net->cnt.sent++;
	pkt.data = malloc(pkt.len ? pkt.len : 1);
	if (!pkt.data)
		abort();
	for (i = 0, pkt.len = 0; i < DEV_DGRAM_PIECES; pkt.len += out->len[i++])
		if (out->len[i])
			memcpy(pkt.data + pkt.len, out->base[i], out->len[i]);
	port->egress_free_ns =
		fake_later(port->egress_free_ns, net->now_ns) + fake_span_ns(net, pkt.len);
	if (net->hook)
		net->hook(net, &pkt, net->hook_arg);
	if (!pkt.as_seen)
		fake_chance(net, &pkt);
	net->cnt.dropped += !pkt.copies;
	net->cnt.doubled += pkt.copies > 1;
	fake_launch(net, &pkt, port->egress_free_ns);
	free(pkt.data);
}

void fake_net_forge(struct fake_net *net, uint32_t from, uint32_t to, const void *data,
		    uint32_t len, uint64_t delay_ns)
{
	struct fake_event ev = { .at_ns = net->now_ns + delay_ns,
				 .stage = FAKE_ARRIVED,
				 .from = from,
				 .to = to,
				 .len = len };

	ev.data = malloc(len ? len : 1);
	if (!ev.data)
		abort();
	if (len)
		memcpy(ev.data, data, len);
	net->cnt.forged++;
	fake_push(net, ev);
}

/* ---- arrival ---- */

/** Puts a datagram into the queue before the receiver's link, if there is room. */
static void fake_enter_link(struct fake_net *net, struct fake_port *port, struct fake_event ev)
{
	uint64_t wait_ns = fake_later(port->ingress_free_ns, net->now_ns) - net->now_ns;
	uint64_t queued = (uint64_t)((double)wait_ns * net->bytes_per_s / 1e9);

	if (net->queue_max && queued + ev.len > net->queue_max) {
		net->cnt.queue_full++;
		free(ev.data);
		return;
	}
	port->queue_peak = fake_later(port->queue_peak, queued + ev.len);
	port->ingress_free_ns = net->now_ns + wait_ns + fake_span_ns(net, ev.len);
	ev.at_ns = port->ingress_free_ns;
	ev.stage = FAKE_ARRIVED;
	fake_push(net, ev);
}

static void fake_arrive(struct fake_net *net, struct fake_port *port, const struct fake_event *ev)
{
	uint8_t *to = fake_port_take(port, ev->from, ev->len);

	if (to) {
		memcpy(to, ev->data, ev->len);
		net->cnt.delivered++;
	} else {
		net->cnt.no_buffer++;
	}
	free(ev->data);
}

static void fake_handle(struct fake_net *net, struct fake_event ev)
{
	struct fake_port *port = ev.to < net->port_cnt ? net->ports[ev.to] : NULL;

	net->now_ns = fake_later(net->now_ns, ev.at_ns);
	if (!port) {
		net->cnt.nobody++;
		free(ev.data);
	} else if (ev.stage == FAKE_AT_LINK && net->bytes_per_s > 0) {
		fake_enter_link(net, port, ev);
	} else {
		fake_arrive(net, port, &ev);
	}
}

bool fake_net_step(struct fake_net *net, uint64_t until_ns)
{
	uint64_t before = net->cnt.delivered;

	while (net->heap_cnt && net->heap[0].at_ns <= until_ns) {
		fake_handle(net, fake_pop(net));
		if (net->cnt.delivered != before &&
		    !(net->heap_cnt && net->heap[0].at_ns <= net->now_ns))
			return true;
	}
	if (net->cnt.delivered != before)
		return true;
	net->now_ns = fake_later(net->now_ns, until_ns);
	return false;
}

void fake_net_run(struct fake_net *net, uint64_t until_ns)
{
	while (net->heap_cnt && net->heap[0].at_ns <= until_ns)
		fake_handle(net, fake_pop(net));
	net->now_ns = fake_later(net->now_ns, until_ns);
}
