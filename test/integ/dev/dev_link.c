/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Links of a NIC between two processes.
 *
 * usage: dev_link mlx5|verbs [messages [small|wrap|long|dc|few|mixed|moves|scarce|broken]]
 * both directions at once, then the end of one process
 *
 * small: queues of the smallest depths, so that each of them is full, empty and wrapped all the
 * time. wrap: as small, on two links only and without long waits, so that 16 bits overflow, which
 * is checked for all counters. long: likewise checked on two links, with queues of the usual depths
 * and long rings. dc: over DC, an initiator for each link. few: over DC, two initiators with small
 * queues for all links. mixed: half of the links over DC, the others over RC. moves: as few, but
 * each end moves each link every 100 writes between DC and RC. scarce: as moves, and one end has
 * queue pairs for half of the links. broken: as moves, and one end breaks what half of the links
 * use at that moment: they end, the others do not. Names of the devices: dev_pair.h.
 *
 * Two processes, a device each, links with rings from 1 KiB to 1 MiB between them. Messages of
 * random length go both ways over all of them; every byte and every immediate is checked; free
 * space is found by reading the peer's consumer word. Meanwhile each end gets from, and puts into,
 * memory that the other registered. An idle process sleeps. Half of the links are attached late,
 * when events are pending already. Then one end is killed, and the other must get an event.
 */
#include <poll.h>
#include <rdma/fi_errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "dev/mlx5/m5.h"
#include "dev/verbs/vb.h"
#include "dev_link.h"
#include "reg_seen.h"
#include "rnr_soon.h"
#include "util/param.h"

#define PEER_MS     1500
#define DOWN_NS     (20 * UTIL_NS_PER_S)
#define IDLE_ROUNDS 2000u /* empty polls before sleep */

const struct dev_ops *ops;
struct dev *dev;
struct end ends[LINKS];
unsigned links = LINKS;
static uint32_t msgs = 20000;
bool moves, is_broken;
static bool small, wrap, is_long, few, is_mixed, is_scarce;
static int rc_max = 1000;
static uint32_t sleeps, reads, downs;
static uint64_t start_ns;

/* ---- set-up ---- */

static void make_links(void)
{
	struct dev_desc own, peer;
	unsigned i, dcs = 0;

	for (i = 0; i < links; i++) {
		const uint64_t ring_len = 1024ull << 2 * (is_long ? i + 3 : i);

		memset(&own, 0, sizeof(own));
		own.peer_moves = moves;
		CHECK(!ops->link_create(dev, ring_len, &ends[i].link));
		CHECK(!ends[i].link->ops->describe(ends[i].link, &own));
		pair_tell(&own, sizeof(own));
		pair_hear(&peer, sizeof(peer));
		CHECK(!ends[i].link->ops->connect(ends[i].link, &peer));
		ends[i].link->user = &ends[i];
		CHECK(ends[i].link->tx_base && ends[i].link->tx_len == ring_len);
		dcs += !!(ends[i].link->caps & DEV_CAP_DC);
		CHECK(!moves == !(ends[i].link->caps & DEV_CAP_MOVE));
		CHECK(ops != &m5_dev_ops || moves ||
		      !((struct m5_link *)ends[i].link)->dc.id ==
			      !(ends[i].link->caps & DEV_CAP_DC));
	}
	if (is_mixed || is_scarce)
		CHECK(dcs && dcs < links);
	else
		CHECK(dcs == (rc_max ? 0 : links));
	pair_meet();
}

/*
 * Relaxed ordering of writes is requested for data, which is read after a completion only, and not
 * for the word that the peer polls, where it gains nothing.
 */
static void check_memory(void)
{
	const unsigned data = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING;
	unsigned i;

	for (i = 0; i < links; i++) {
		const struct dev_link *link = ends[i].link;

		CHECK(reg_seen_access(link->rx_base) == (data | IBV_ACCESS_REMOTE_WRITE));
		CHECK(reg_seen_access(link->rx_base + link->rx_len - 1) ==
		      (data | IBV_ACCESS_REMOTE_WRITE));
		CHECK(reg_seen_access(link->tx_base) == data);
		CHECK((reg_seen_access(link->consumer_word) & ~(unsigned)IBV_ACCESS_LOCAL_WRITE) ==
		      IBV_ACCESS_REMOTE_READ);
	}
	bulk_check_memory();
}

/* ---- traffic ---- */

/* Computed from the number of the message and the ring, the same at both ends. */
static uint32_t units_of(const struct end *end, uint32_t seq, uint64_t ring_len)
{
	uint64_t max = ring_len / DEV_IMM_UNIT / 4;

	if (seq % 3 && max > 8)
		max = 8; /* mostly small */
	return 1 + (uint32_t)((seq * 2654435761ull >> 7) % (max < 1024 ? max : 1024));
}

/* Cuts a message at the ring's end. */
static uint32_t clip(uint32_t units, uint64_t pos, uint64_t ring_len)
{
	uint64_t left = (ring_len - (pos & (ring_len - 1))) / DEV_IMM_UNIT;

	return units < left ? units : (uint32_t)left;
}

static bool has_room(struct end *end, uint64_t len)
{
	uint64_t value;
	int ret;

	if (end->tx_pos + len - end->released <= end->link->tx_len)
		return true;
	if (end->reading)
		return false;
	ret = end->link->ops->read_consumer(end->link, &value);
	CHECK(ret == 0 || ret == -FI_EAGAIN);
	end->reading = !ret;
	reads += !ret;
	return false;
}

/* ---- 16 bits ---- */

/* The device's own counters of blocks and of receives, extended beyond 16 bits. */
static struct long_count {
	uint16_t last;
	uint64_t total;
} blocks[LINKS], receives;

static void long_count_see(struct long_count *count, uint16_t now)
{
	count->total += (uint16_t)(now - count->last);
	count->last = now;
}

static void see_lap(struct end *end)
{
	long_count_see(&blocks[end - ends], ((struct m5_link *)end->link)->sq.pi);
	long_count_see(&receives, ((struct m5_dev *)dev)->srq.recv.posted);
}

/* Checks that every counter of 16 bits overflowed and, with small queues, that none was longer. */
static void check_laps(void)
{
	const struct m5_dev *m5 = (struct m5_dev *)dev;
	unsigned i;

	CHECK(!small || (m5->srq.mask == 3 && m5->rx.size == 4));
	CHECK(receives.total > UINT16_MAX && m5->rx.ci > UINT16_MAX);
	for (i = 0; i < links; i++) {
		const struct m5_link *link = (struct m5_link *)ends[i].link;

		printf("side %d: link %u: %llu blocks in a queue of %u, %u send completions in a "
		       "queue of %u\n",
		       side, i, (unsigned long long)blocks[i].total, link->sq.mask + 1u,
		       link->scq->cq.ci, link->scq->cq.size);
		CHECK(blocks[i].total > UINT16_MAX);
		CHECK(ends[i].rx_pos / DEV_IMM_UNIT > UINT16_MAX);
	}
	printf("side %d: %llu receives posted in a list of %u, %u completions in a queue of %u\n",
	       side, (unsigned long long)receives.total, m5->srq.mask, m5->rx.ci, m5->rx.size);
}

static bool try_send(struct end *end)
{
	uint64_t off, len, i, ring_len;
	uint32_t units;
	bool asks;
	int ret;

	if (end->is_gone || end->sent == msgs)
		return false;
	ring_len = end->link->tx_len;
	off = end->tx_pos & (ring_len - 1);
	units = clip(units_of(end, end->sent, ring_len), end->tx_pos, ring_len);
	len = (uint64_t)units * DEV_IMM_UNIT;
	if (!has_room(end, len))
		return false;
	for (i = 0; i < len; i++)
		end->link->tx_base[off + i] = pair_pattern(end->sent, i);
	asks = end->sent % 5 == 0;
	ret = (asks ? end->link->ops->write_imm_ack
		    : end->link->ops->write_imm)(end->link, off, (uint32_t)len, units);
	if (ret) {
		CHECK(ret == -FI_EAGAIN);
		end->eagain++;
		return false;
	}
	end->asked += asks;
	end->tx_pos += len;
	end->sent++;
	if (wrap || is_long)
		see_lap(end);
	if (moves)
		move_now_and_then(end);
	return true;
}

static void take_imm(struct end *end, uint32_t imm)
{
	const uint8_t *p = end->link->rx_base + (end->rx_pos & (end->link->rx_len - 1));
	uint64_t i, len = (uint64_t)imm * DEV_IMM_UNIT;

	CHECK(imm ==
	      clip(units_of(end, end->got, end->link->rx_len), end->rx_pos, end->link->rx_len));
	for (i = 0; i < len; i++)
		CHECK(p[i] == pair_pattern(end->got, i));
	end->rx_pos += len;
	end->got++;
	if (wrap || is_long)
		see_lap(end);
	__atomic_store_n(end->link->consumer_word, end->rx_pos, __ATOMIC_RELEASE);
}

/* ---- the loop ---- */

/* Closes a link that has ended: the peer's next access fails. */
static void leave(struct end *end)
{
	end->is_gone = true;
	end->link->ops->detach(end->link);
	end->link->ops->close(end->link);
}

static bool poll_one(void)
{
	struct dev_event ev;
	struct end *end;

	if (!ops->poll(dev, &ev))
		return false;
	if (loop_take(&ev))
		return true;
	end = ev.link->user;
	switch (ev.kind) {
	case DEV_EV_IMM: take_imm(end, ev.imm); break;
	case DEV_EV_READ:
		CHECK(ev.value >= end->released && ev.value <= end->tx_pos);
		end->reading = false;
		end->released = ev.value;
		break;
	case DEV_EV_ACK: CHECK(++end->acked <= end->asked); break;
	case DEV_EV_GET: bulk_done(); break;
	case DEV_EV_WITHDRAWN: CHECK(!"an end of a withdrawal that was not started"); break;
	case DEV_EV_ACCESS: CHECK(!"an end of accesses that were not started"); break;
	case DEV_EV_DOWN:
		CHECK(ev.status < 0);
		fprintf(stderr, "side %d: link %u down: %s\n", side, (unsigned)(end - ends),
			fi_strerror(-ev.status));
		downs++;
		if (is_broken)
			leave(end);
		break;
	}
	return true;
}

static void poll_once(void)
{
	poll_one();
}

static bool is_done(void)
{
	unsigned i;

	for (i = 0; is_broken && i < BREAKS; i++)
		if (!ends[i].is_gone && side)
			return false;
	for (i = is_broken ? BREAKS : 0; i < links; i++)
		if (ends[i].sent != msgs || ends[i].got != msgs || ends[i].acked != ends[i].asked)
			return false;
	return bulk_is_over();
}

static void sleep_once(void)
{
	struct pollfd pfd = { .fd = ops->wait_fd(dev), .events = POLLIN };
	static unsigned rung_for_nothing;

	if (ops->arm(dev))
		return;
	/* Free space for own writes wakes no sleeper, hence the short time. Arrivals do. */
	if (poll(&pfd, 1, 20)) {
		rung_for_nothing = poll_one() ? 0 : rung_for_nothing + 1;
		CHECK(rung_for_nothing < 100);
	} else if (poll_one()) {
		CHECK(poll(&pfd, 1, 5000) == 1);
	}
	/* Side 1 stays armed: its next arm must clear the pending signal. */
	if (!side)
		ops->disarm(dev);
	sleeps++;
}

static void play(void)
{
	unsigned idle = 0, i;

	while (!is_done()) {
		bool busy = false;

		for (i = 0; i < links; i++)
			busy |= try_send(&ends[pair_rand() % links]);
		for (i = 0; i < 32 && poll_one(); i++)
			busy = true;
		for (i = 0; is_broken && side && i < BREAKS; i++)
			if (!ends[i].is_gone && ends[i].sent >= msgs / 2)
				move_break(&ends[i]);
		bulk_start();
		loop_use();
		CHECK(downs <= (is_broken ? BREAKS : 0));
		idle = busy ? 0 : idle + 1;
		/* Polls until there is an event, as an application does. */
		if (idle >= IDLE_ROUNDS && !wrap)
			sleep_once();
		else if (idle && wrap)
			sched_yield(); /* The awaited event comes from a thread of the device */
		CHECK(util_clock_ns() - start_ns <
		      LIMIT_NS + msgs * (moves ? 20 : 10) * UTIL_NS_PER_MS);
	}
}

static void attach_all(void)
{
	struct dev_event ev;
	unsigned i;

	for (i = 0; i < links; i += 2)
		CHECK(!ends[i].link->ops->attach(ends[i].link));
	/* The other end sends before this one attaches the rest. */
	if (side) {
		usleep(20000);
		for (i = 0; i < 100; i++)
			if (ops->poll(dev, &ev))
				take_imm(ev.link->user, ev.imm);
	}
	for (i = 1; i < links; i += 2)
		CHECK(!ends[i].link->ops->attach(ends[i].link));
	CHECK(!ends[1].sent);
	if (!side)
		for (i = 0; i < links; i++)
			CHECK(try_send(&ends[i]) || few); /* initiators may be taken */
}

static void report(uint32_t rounds)
{
	uint64_t eagain = 0, bytes = 0;
	unsigned i;

	for (i = 0; i < links; i++) {
		eagain += ends[i].eagain;
		bytes += ends[i].tx_pos;
	}
	printf("side %d: %u messages, %llu bytes sent on %u links in %.2f s; %u consumer reads, "
	       "%llu times no room in the send queue, %u sleeps, %u other links\n",
	       side, msgs * links, (unsigned long long)bytes, links,
	       (double)(util_clock_ns() - start_ns) / 1e9, reads, (unsigned long long)eagain,
	       sleeps, rounds);
	bulk_report();
	fflush(stdout);
}

/* After the other end was killed, all used links must report it, with no event after that. */
static void be_left(void)
{
	uint64_t begin = util_clock_ns(), value;
	unsigned i;

	while (downs < links) {
		/* A used link detects it. */
		for (i = 0; i < links; i++) {
			int ret;

			if (ends[i].reading || ends[i].is_gone)
				continue;
			ret = ends[i].link->ops->read_consumer(ends[i].link, &value);
			CHECK(ret == 0 || ret == -FI_EAGAIN);
			ends[i].reading = !ret;
		}
		for (i = 0; i < 1000; i++)
			poll_one();
		CHECK(util_clock_ns() - begin < DOWN_NS);
	}
	printf("side %d: %u links down %.2f s after the peer was killed\n", side, downs,
	       (double)(util_clock_ns() - begin) / 1e9);
	for (i = 0; i < 1000; i++)
		CHECK(!poll_one());
	for (i = 0; i < links; i++) {
		if (ends[i].is_gone)
			continue;
		CHECK(ends[i].link->ops->write_imm(ends[i].link, 0, 32, 1) < 0);
		ends[i].link->ops->detach(ends[i].link);
		ends[i].link->ops->close(ends[i].link);
	}
	bulk_free();
	ops->close(dev);
}

static void run_side(void)
{
	struct dev_link *never;

	util_params.peer_timeout_ms = PEER_MS;
	util_params.rc_max = is_scarce && side ? (int)(1 + LINKS / 2) : rc_max;
	util_params.dci_count = few ? 2 : LINKS;
	if (small)
		m5_tune = (struct m5_tune){ .srq = 3, .cq = 4, .sq_blocks = 8 };
	if (few)
		m5_tune = (struct m5_tune){ .srq = 15, .cq = 16, .sq_blocks = 8 };
	rnr_is_soon = wrap;
	CHECK(!ops->open(&dev));
	CHECK(!ops->link_create(dev, 1024, &never));
	churn();
	make_links();
	bulk_make_buffers();
	check_memory();
	start_ns = util_clock_ns();
	attach_all();
	loop_start();
	play();
	report(loop_stop(poll_once));
	if (wrap || is_long)
		check_laps();
	if (moves)
		move_check(msgs);
	pair_meet();
	while (poll_one())
		;
	bulk_check_puts();
	never->ops->close(never);
	pair_meet();
	if (side)
		raise(SIGKILL);
	usleep(50000);
	be_left();
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	if (!strcmp(argv[1], "mlx5"))
		ops = &m5_dev_ops;
	if (!strcmp(argv[1], "verbs"))
		ops = &vb_dev_ops;
	if (!ops)
		return 2;
	if (argc > 2)
		msgs = (uint32_t)strtoul(argv[2], NULL, 0);
	wrap = argc > 3 && !strcmp(argv[3], "wrap");
	few = argc > 3 && !strcmp(argv[3], "few");
	if (argc > 3 && (few || !strcmp(argv[3], "dc")))
		rc_max = 0;
	is_mixed = argc > 3 && !strcmp(argv[3], "mixed");
	if (is_mixed)
		rc_max = 1 + LINKS / 2; /* the link that stays unused has a queue pair as well */
	is_scarce = argc > 3 && !strcmp(argv[3], "scarce");
	is_broken = argc > 3 && !strcmp(argv[3], "broken");
	moves = is_scarce || is_broken || (argc > 3 && !strcmp(argv[3], "moves"));
	few |= moves;
	is_long = argc > 3 && !strcmp(argv[3], "long");
	small = wrap || (argc > 3 && !strcmp(argv[3], "small"));
	links = wrap || is_long ? 2 : LINKS;
	return pair_run(argv, run_side, true);
}
