/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Stress test of a sender that waits for room in its session while the receiver is idle: it must
 * sleep, and always wake.
 *
 * Two threads, each with a domain of its own, over datagrams. In each round the sender posts more
 * than a session accepts. The receiver stays idle until the sender has fallen asleep several times
 * in a row; a sender that is kept awake blocks both. Then a thread that sleeps, too, receives
 * everything. The sender alternates between fi_trywait, whose refusals are counted, and
 * fi_cq_sread. The suite builds the test with TSan.
 */
#include <poll.h>
#include <pthread.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "open.h"
#include "support/check.h"

#define ROUNDS  24
#define BURST   24 /* messages; a session takes five of the long ones */
#define LEN     16384
#define SLEEPS  4     /* of the sender, before the receiver continues */
#define REFUSED 200   /* refusals of fi_trywait in a row, each after some progress */
#define LONG_MS 60000 /* time-out that no sleep reaches */
#define NAP_MS  20

struct side {
	struct stress_place place;
	struct fid_cq *cq;
	struct fid_ep *ep;
	unsigned refused; /* in a row */
	uint32_t slept;
};

static struct side sender, receiver;
static uint32_t slept;    /* atomic: sleeps of the sender in this round */
static uint32_t round_no; /* atomic: round of the sender */
static uint32_t received; /* atomic: rounds that the receiver has ended */

static void open_side(struct side *s)
{
	stress_place_open(&s->place, FI_THREAD_SAFE, 0);
	s->cq = stress_cq_open(s->place.domain, FI_WAIT_FD);
	s->ep = stress_ep_open(&s->place, s->cq, s->cq);
}

static void close_side(struct side *s)
{
	CHECK(!fi_close(&s->ep->fid));
	CHECK(!fi_close(&s->cq->fid));
	stress_place_close(&s->place);
}

static bool read_one(struct side *s, struct fi_cq_tagged_entry *e)
{
	ssize_t ret = fi_cq_read(s->cq, e, 1);

	CHECK(ret == 1 || ret == -FI_EAGAIN);
	s->refused = ret == 1 ? 0 : s->refused;
	return ret == 1;
}

/* Sleeps once and counts the sleep. */
static void sleep_once(struct side *s, uint32_t *times)
{
	struct fid *fids[1] = { &s->cq->fid };
	struct pollfd pfd = { .events = POLLIN };

	if (fi_trywait(s->place.fabric, fids, 1)) {
		CHECK(++s->refused < REFUSED);
		return;
	}
	s->refused = 0;
	s->slept++;
	__atomic_add_fetch(times, 1, __ATOMIC_RELEASE);
	CHECK(!fi_control(&s->cq->fid, FI_GETWAIT, &pfd.fd));
	CHECK(poll(&pfd, 1, LONG_MS) == 1);
}

/* Reads one completion with fi_cq_sread. A sleep that timed out counts, too. */
static bool sread_one(struct side *s, struct fi_cq_tagged_entry *e, uint32_t *times)
{
	ssize_t ret = fi_cq_sread(s->cq, e, 1, NULL, NAP_MS);

	CHECK(ret == 1 || ret == -FI_EAGAIN);
	if (ret == -FI_EAGAIN)
		__atomic_add_fetch(times, 1, __ATOMIC_RELEASE);
	return ret == 1;
}

static void await(struct side *s, struct fi_cq_tagged_entry *e, uint32_t *times, bool sreads)
{
	while (sreads ? !sread_one(s, e, times) : !read_one(s, e))
		if (!sreads)
			sleep_once(s, times);
}

static size_t len_of(uint32_t round, uint32_t i)
{
	return (round + i) % 5 ? LEN - i : 4 + i; /* with a short one in between */
}

/* Receives all messages of a round. Short ones may complete before earlier long ones. */
static void receive_round(uint32_t round, uint8_t *bufs)
{
	struct fi_cq_tagged_entry e;
	uint32_t i, nth, came = 0, unused = 0;

	for (i = 0; i < BURST; i++)
		CHECK(!fi_trecv(receiver.ep, bufs + (size_t)i * LEN, LEN, NULL, FI_ADDR_UNSPEC,
				(uint64_t)round * BURST + i, 0, NULL));
	for (i = 0; i < BURST; i++) {
		await(&receiver, &e, &unused, false);
		nth = (uint32_t)(e.tag - (uint64_t)round * BURST);
		CHECK(nth < BURST && !(came & 1u << nth) && e.len == len_of(round, nth));
		CHECK(bufs[(size_t)nth * LEN + e.len - 1] == (uint8_t)(round + nth));
		came |= 1u << nth;
	}
}

static bool is_away(uint32_t round)
{
	return __atomic_load_n(&round_no, __ATOMIC_ACQUIRE) <= round ||
	       __atomic_load_n(&slept, __ATOMIC_ACQUIRE) < SLEEPS;
}

static void *run_receiver(void *arg)
{
	uint8_t *bufs = malloc((size_t)BURST * LEN);
	uint32_t round;

	CHECK(bufs);
	for (round = 0; round < ROUNDS; round++) {
		/* The first round connects, so the receiver must make progress. */
		while (round && is_away(round))
			sched_yield();
		receive_round(round, bufs);
		__atomic_store_n(&received, round + 1, __ATOMIC_RELEASE);
	}
	free(bufs);
	return NULL;
}

/* Waits until the receiver is idle: otherwise it would take messages of the next round, too. */
static void await_receiver(uint32_t round)
{
	struct fi_cq_tagged_entry e;

	while (__atomic_load_n(&received, __ATOMIC_ACQUIRE) < round) {
		CHECK(fi_cq_read(sender.cq, &e, 1) == -FI_EAGAIN);
		sched_yield();
	}
}

static void send_round(fi_addr_t to, uint32_t round, uint8_t *bufs)
{
	struct fi_cq_tagged_entry e;
	uint32_t i;

	await_receiver(round);
	__atomic_store_n(&slept, 0, __ATOMIC_RELEASE);
	for (i = 0; i < BURST; i++) {
		uint8_t *buf = bufs + (size_t)i * LEN;

		memset(buf, (uint8_t)(round + i), LEN);
		CHECK(!fi_tsend(sender.ep, buf, len_of(round, i), NULL, to,
				(uint64_t)round * BURST + i, buf));
	}
	__atomic_store_n(&round_no, round + 1, __ATOMIC_RELEASE);
	for (i = 0; i < BURST; i++)
		await(&sender, &e, &slept, round % 2);
}

int main(void)
{
	uint8_t *bufs = malloc((size_t)BURST * LEN);
	pthread_t thread;
	fi_addr_t to;
	uint32_t round;

	setenv("FI_COPYRPC_ENDPOINT", "ud", 1);
	setenv("FI_COPYRPC_PATHS", "udp", 1);
	CHECK(bufs);
	open_side(&sender);
	open_side(&receiver);
	to = stress_av_insert(sender.place.av, receiver.ep);
	CHECK(!pthread_create(&thread, NULL, run_receiver, NULL));
	for (round = 0; round < ROUNDS; round++)
		send_round(to, round, bufs);
	pthread_join(thread, NULL);
	printf("stress_room: %d rounds of %d messages; slept in poll(2) %u and %u times\n", ROUNDS,
	       BURST, sender.slept, receiver.slept);
	close_side(&sender);
	close_side(&receiver);
	free(bufs);
	return 0;
}
