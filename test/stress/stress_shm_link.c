/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Stress test of shared-memory links: both ends run at once.
 *
 * Two threads play two processes: a device each, links between them, messages of random length both
 * ways, every byte checked, room read from consumer words. The devices poll few links and park them
 * early, so that posts, sweeps, parking and sleeps overlap. A third and a fourth thread create and
 * close links, as the thread of the handshake does.
 *
 * Three rounds. In the first each writer uses the reader's own mapping, since ThreadSanitizer
 * identifies memory by its address. The second uses separate mappings. In the third the writers
 * fence instead of using membarrier.
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dev/shm/shm.h"
#include "dev/shm/shm_watch.h"
#include "support/check.h"
#include "util/clock.h"

#define LINKS    24
#define RING     4096u
#define MSGS     1500u /* per link and direction */
#define UNIT_MAX 12u
#define LIMIT_NS (600 * UTIL_NS_PER_S)

struct end {
	struct dev_link *link;
	uint64_t tx_pos, released, rx_pos;
	uint32_t sent, got;
	/* this end's own mapping, restored before close unmaps it */
	struct shm_inbox *own_inbox_map;
};

struct player {
	struct dev *dev;
	struct end ends[LINKS];
	uint64_t rand;
	uint32_t sleeps;
	pthread_t thread;
};

static struct player players[2];
static bool stop_control;

static uint64_t next_rand(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1dull;
}

static uint8_t pattern(uint32_t seq, uint64_t pos)
{
	return (uint8_t)(seq * 31 + pos * 7 + 1);
}

static uint32_t units_of(uint32_t seq)
{
	return 1 + seq * 2654435761u % UNIT_MAX;
}

/* ---- both ends in one process ---- */

static void link_pair(struct player *a, struct player *b, struct end *ea, struct end *eb)
{
	struct dev_desc da = { 0 }, db = { 0 };
	uint32_t i;

	CHECK(!shm_link_create(a->dev, RING, &ea->link));
	CHECK(!shm_link_create(b->dev, RING, &eb->link));
	CHECK(!shm_link_describe(ea->link, &da));
	CHECK(!shm_link_describe(eb->link, &db));
	CHECK(!shm_link_connect(ea->link, &db));
	CHECK(!shm_link_connect(eb->link, &da));
	for (i = 0; i < da.fd_cnt; i++)
		close(da.fds[i]);
	for (i = 0; i < db.fd_cnt; i++)
		close(db.fds[i]);
	ea->link->user = ea;
	eb->link->user = eb;
}

static void share_mapping(struct end *from, const struct end *to)
{
	struct shm_link *link = (struct shm_link *)from->link;
	const struct shm_link *peer = (const struct shm_link *)to->link;

	from->own_inbox_map = link->peer_inbox;
	link->base.tx_base = peer->base.rx_base;
	link->peer_notify = &peer->ctrl->notify;
	link->peer_consumer = &peer->ctrl->consumer;
	link->peer_inbox = peer->dev->inbox;
}

static void end_close(struct end *end)
{
	shm_link_detach(end->link);
	if (end->own_inbox_map)
		((struct shm_link *)end->link)->peer_inbox = end->own_inbox_map;
	shm_link_close(end->link);
}

/* ---- a player ---- */

static bool has_room(struct end *end, uint32_t units)
{
	uint64_t need = end->tx_pos + (uint64_t)units * DEV_IMM_UNIT + end->link->inband_len;

	if (need - end->released > RING)
		end->link->ops->read_consumer(end->link, &end->released);
	CHECK(end->released <= end->tx_pos);
	return need - end->released <= RING;
}

static void publish(struct end *end, uint32_t units)
{
	uint64_t off = end->tx_pos & (RING - 1), len = (uint64_t)units * DEV_IMM_UNIT, i;
	uint8_t *p = end->link->tx_base + off;

	for (i = 0; i < len; i++)
		if (i < DEV_LINK_WORD_OFF || i >= DEV_IMM_UNIT)
			p[i] = pattern(end->sent, i);
	CHECK(!shm_link_ops_inline.write_imm(end->link, off, (uint32_t)len, units));
	end->tx_pos += len;
}

/* Sends a message. The part before the ring's end is a message of its own, as a marker is. */
static bool try_send(struct end *end)
{
	uint64_t to_end = (RING - (end->tx_pos & (RING - 1))) / DEV_IMM_UNIT;
	uint32_t units = units_of(end->sent);

	if (end->sent == MSGS)
		return false;
	if (units > to_end)
		units = (uint32_t)to_end;
	if (!has_room(end, units))
		return false;
	publish(end, units);
	end->sent++;
	return true;
}

static void take(const struct dev_event *ev)
{
	struct end *end = ev->link->user;
	const uint8_t *p = ev->link->rx_base + (end->rx_pos & (RING - 1));
	uint64_t to_end = (RING - (end->rx_pos & (RING - 1))) / DEV_IMM_UNIT, i;
	uint32_t units = units_of(end->got);

	CHECK(ev->kind == DEV_EV_IMM);
	CHECK(ev->imm == (units > to_end ? to_end : units));
	for (i = 0; i < (uint64_t)ev->imm * DEV_IMM_UNIT; i++)
		CHECK(i >= DEV_LINK_WORD_OFF && i < DEV_IMM_UNIT ? 1
								 : p[i] == pattern(end->got, i));
	end->rx_pos += (uint64_t)ev->imm * DEV_IMM_UNIT;
	end->got++;
	__atomic_store_n(ev->link->consumer_word, end->rx_pos, __ATOMIC_RELEASE);
}

static bool is_done(const struct player *p, bool sending)
{
	uint32_t i;

	for (i = 0; i < LINKS; i++)
		if ((sending ? p->ends[i].sent : p->ends[i].got) != MSGS)
			return false;
	return true;
}

/* Sleeps once all is sent: an arriving message ends the sleep, room for sends does not. */
static void sleep_once(struct player *p)
{
	struct pollfd pfd = { .fd = shm_dev_wait_fd(p->dev), .events = POLLIN };

	if (shm_dev_arm(p->dev))
		return;
	CHECK(poll(&pfd, 1, 20000) == 1);
	shm_dev_disarm(p->dev);
	p->sleeps++;
}

static void *play(void *arg)
{
	struct player *p = arg;
	struct dev_event ev;
	uint64_t start = util_clock_ns(), r;
	bool idle;

	while (!is_done(p, false) || !is_done(p, true)) {
		r = next_rand(&p->rand);
		idle = !try_send(&p->ends[(r >> 8) % LINKS]);
		while (r & 3 && shm_dev_ops_inline.poll(p->dev, &ev)) {
			take(&ev);
			idle = false;
		}
		if (idle && is_done(p, true) && !is_done(p, false))
			sleep_once(p);
		else if (idle)
			sched_yield();
		if (!(r >> 52))
			CHECK(util_clock_ns() - start < LIMIT_NS);
	}
	return NULL;
}

/* Runs the other thread: creates and closes links, so that posts arrive for closed links. */
static void *control(void *arg)
{
	struct end ea, eb;
	uint32_t n = 0;

	while (!__atomic_load_n(&stop_control, __ATOMIC_ACQUIRE)) {
		memset(&ea, 0, sizeof(ea));
		memset(&eb, 0, sizeof(eb));
		link_pair(&players[0], &players[1], &ea, &eb);
		shm_link_post((struct shm_link *)ea.link, 1);
		shm_link_close(ea.link);
		shm_link_close(eb.link);
		usleep(n++ % 8 ? 100 : 1000);
	}
	return NULL;
}

static void player_open(struct player *p, uint64_t seed, bool membarrier)
{
	static const struct shm_tune eager = {
		.per_poll = 4, .tick = 4, .keep = 1, .idle_ticks = 8
	};

	memset(p, 0, sizeof(*p));
	p->rand = seed;
	CHECK(!shm_dev_open(&p->dev));
	shm_watch_tune((struct shm_dev *)p->dev, &eager);
	if (!membarrier)
		((struct shm_dev *)p->dev)->membarrier = false;
}

static void run_round(const char *name, bool shared, bool membarrier, uint64_t seed)
{
	pthread_t ctl[2];
	int i;

	player_open(&players[0], seed, membarrier);
	player_open(&players[1], seed ^ 0xfeed, membarrier);
	for (i = 0; i < LINKS; i++) {
		struct end *a = &players[0].ends[i], *b = &players[1].ends[i];

		link_pair(&players[0], &players[1], a, b);
		if (shared) {
			share_mapping(a, b);
			share_mapping(b, a);
		}
		CHECK(!shm_link_attach(a->link) && !shm_link_attach(b->link));
	}
	stop_control = false;
	for (i = 0; i < 2; i++) {
		CHECK(!pthread_create(&ctl[i], NULL, control, NULL));
		CHECK(!pthread_create(&players[i].thread, NULL, play, &players[i]));
	}
	for (i = 0; i < 2; i++)
		CHECK(!pthread_join(players[i].thread, NULL));
	__atomic_store_n(&stop_control, true, __ATOMIC_RELEASE);
	for (i = 0; i < 2; i++)
		CHECK(!pthread_join(ctl[i], NULL));
	printf("%s: %u messages each way, %u + %u sleeps\n", name, LINKS * MSGS, players[0].sleeps,
	       players[1].sleeps);
	for (i = 0; i < LINKS; i++) {
		end_close(&players[0].ends[i]);
		end_close(&players[1].ends[i]);
	}
	shm_dev_close(players[0].dev);
	shm_dev_close(players[1].dev);
}

int main(void)
{
	run_round("one mapping", true, true, 0x1234567);
	run_round("two mappings", false, true, 0x7654321);
	run_round("one mapping, fences", true, false, 0x1212121);
	return 0;
}
