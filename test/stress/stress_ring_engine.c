/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Stress test of the ring engine: connections open and close while the control thread and two
 * progress threads run.
 *
 * Two threads with an engine each, over shared memory and the real handshake. In each round one
 * engine connects, or both at once; each sends some messages and makes a call; one closes, or both.
 * The other receives on_down after everything that had arrived. The next round uses the same
 * addresses.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <rdma/fi_errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/core_ep.h"
#include "engine/eng_engine.h"
#include "ring/ring_transports.h"
#include "support/check.h"
#include "util/clock.h"
#include "util/param.h"

#define ROUNDS   150u
#define MESSAGES 5u
#define LIMIT_NS (200 * UTIL_NS_PER_S) /* limit of a round */

struct player {
	struct core_ep ep; /* first member: upcalls name it */
	struct core_engine *engine;
	struct core_engine_ep *eep;
	struct sockaddr_storage addr;
	struct core_chan *chan;
	uint32_t round;
	uint32_t sent, got;   /* messages in this round */
	bool called, replied; /* call of this end */
	bool asked;           /* call of the peer was replied to */
	uint32_t ups, downs;
	pthread_t thread;
};

static const struct eng_transports transports = { .cnt = 1, .ops = { &ring_transport_shm } };
static struct player players[2];
static pthread_barrier_t barrier;

static struct player *player_of(struct core_chan *chan)
{
	return (struct player *)chan->peer;
}

static enum core_rx_verdict on_msg(struct core_chan *chan, uint32_t op, const uint8_t *data,
				   uint32_t len, core_retain_t retain)
{
	struct player *p = player_of(chan);
	uint32_t round;

	CHECK(len == sizeof(round) && op == p->got);
	memcpy(&round, data, sizeof(round));
	CHECK(round == p->round);
	p->got++;
	return CORE_RX_DONE;
}

static enum core_rx_verdict on_call(struct core_chan *chan, struct core_call_ref ref,
				    const uint8_t *data, uint32_t len, core_retain_t retain)
{
	CHECK(len == 8);
	CHECK(!core_chan_reply(chan, ref, data + 4, 4));
	player_of(chan)->asked = true;
	return CORE_RX_DONE;
}

static void on_reply(struct core_chan *chan, void *context, int status, const uint8_t *data,
		     uint32_t len)
{
	struct player *p = context;

	CHECK(!status && len == 4 && !memcmp(data, &p->round, 4));
	p->replied = true;
}

static void on_up(struct core_ep *ep, struct core_chan *chan, const struct sockaddr *addr,
		  uint64_t incarnation)
{
	struct player *p = (struct player *)ep;

	CHECK(incarnation);
	CHECK(!p->chan);
	chan->peer = (struct core_peer *)p;
	p->chan = chan;
	p->ups++;
}

static void on_connect_failed(struct core_ep *ep, const struct sockaddr *addr, int err)
{
	fprintf(stderr, "a connect failed: %s\n", fi_strerror(-err));
	abort();
}

static void on_down(struct core_chan *chan, int err)
{
	struct player *p = player_of(chan);

	CHECK(err == -FI_ESHUTDOWN);
	CHECK(p->got == MESSAGES);
	p->downs++;
	p->chan = NULL;
	chan->ops->close(chan);
}

static const struct core_upcalls upcalls = {
	.on_msg = on_msg,
	.on_call = on_call,
	.on_reply = on_reply,
	.on_up = on_up,
	.on_connect_failed = on_connect_failed,
	.on_down = on_down,
};

static void talk(struct player *p)
{
	struct iovec iov = { .iov_base = &p->round, .iov_len = sizeof(p->round) };
	struct core_frame frame = { .op = p->sent, .iov = &iov, .iov_cnt = 1, .len = 4 };

	while (p->sent < MESSAGES && !p->chan->ops->send(p->chan, &frame, 0))
		frame.op = ++p->sent;
	if (p->sent == MESSAGES && !p->called)
		p->called = !p->chan->ops->call(p->chan, &frame, 4, p, 0);
}

static bool has_talked(const struct player *p)
{
	return p->got == MESSAGES && p->replied && p->asked;
}

/** Makes progress until `p` has exchanged everything or, with `down`, has no channel any more. */
static void run_until(struct player *p, bool down)
{
	uint64_t start = util_clock_ns();

	while (down ? p->chan != NULL : !has_talked(p)) {
		ring_shm_progress(&p->engine->base);
		if (p->chan && !down)
			talk(p);
		sched_yield();
		CHECK(util_clock_ns() - start < LIMIT_NS);
	}
}

static void play_round(struct player *p, const struct player *peer, unsigned self)
{
	unsigned who = p->round % 3; /* 0, 1: this player connects and closes; 2: both do */

	p->sent = p->got = 0;
	p->called = p->replied = p->asked = false;
	pthread_barrier_wait(&barrier);
	if (who == 2 || who == self)
		CHECK(!eng_connect(p->eep, (const struct sockaddr *)&peer->addr, false));
	run_until(p, false);
	if (who == 2)
		pthread_barrier_wait(&barrier);
	if (p->chan && (who == 2 || who == self)) {
		struct core_chan *chan = p->chan;

		while (chan->ops->is_busy(chan))
			chan->ops->flush(chan);
		p->chan = NULL;
		chan->ops->close(chan);
	}
	run_until(p, true);
	p->round++;
}

static void *play(void *arg)
{
	struct player *p = arg;
	unsigned self = p == &players[1];

	while (p->round < ROUNDS)
		play_round(p, &players[!self], self);
	return NULL;
}

static void player_open(struct player *p)
{
	struct sockaddr_in any = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	CHECK(!eng_open(&transports, &upcalls, &p->engine));
	CHECK(!eng_ep_open(&p->engine->base, &p->ep, (const struct sockaddr *)&any, &p->eep));
	eng_ep_addr(p->eep, &p->addr);
}

int main(void)
{
	int i;

	util_params.mem = 16u << 20;
	util_params.peer_timeout_ms = 100000;
	CHECK(!pthread_barrier_init(&barrier, NULL, 2));
	for (i = 0; i < 2; i++)
		player_open(&players[i]);
	for (i = 0; i < 2; i++)
		CHECK(!pthread_create(&players[i].thread, NULL, play, &players[i]));
	for (i = 0; i < 2; i++)
		CHECK(!pthread_join(players[i].thread, NULL));
	printf("%u rounds, channels up %u + %u, ends reported %u + %u\n", ROUNDS, players[0].ups,
	       players[1].ups, players[0].downs, players[1].downs);
	for (i = 0; i < 2; i++) {
		eng_ep_close(players[i].eep);
		eng_close(&players[i].engine->base);
	}
	pthread_barrier_destroy(&barrier);
	return 0;
}
