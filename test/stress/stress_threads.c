/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Stress test of threading levels: threads that do no more than their level permits.
 *
 * Every level below FI_THREAD_DOMAIN: two threads with two endpoints and a queue each, in one
 * domain, send to themselves and to each other. FI_THREAD_DOMAIN: a domain each, without locks.
 * Then two threads send into one shared receive context, whose messages a third thread reads,
 * asleep on a wait set. Every message arrives once, in order of its sender, with its bytes. The
 * suite builds the test with TSan.
 */
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
#include "util/fi_old.h"

#define MSGS    3000
#define THREADS 2
#define WINDOW  8
#define LEN_MAX 20000

/* Thread whose ep[0] sends to its own ep[1] and to that of the other thread. */
struct worker {
	struct stress_place place;
	struct fid_cq *cq;
	struct fid_ep *ep[2];
	fi_addr_t to[THREADS]; /* addresses of all ep[1] in this worker's vector */
	uint32_t sent[THREADS];
	uint32_t taken[THREADS]; /* messages received, by sender */
	uint32_t completed;      /* sends */
	uint8_t out[LEN_MAX];
	uint8_t in[WINDOW][LEN_MAX];
};

static struct worker workers[THREADS];

/* Returns a length around the rendezvous limit. */
static size_t len_of(uint32_t n)
{
	return n % 64 ? 4 + n % 300 : LEN_MAX - n % 1000;
}

static struct fid_ep *open_ep(const struct stress_place *place, struct fid_cq *cq,
			      struct fid_ep *srx)
{
	struct fid_ep *ep;

	CHECK(!fi_endpoint(place->domain, place->info, &ep, NULL));
	CHECK(!fi_ep_bind(ep, &place->av->fid, 0));
	CHECK(!fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	CHECK(!srx || !fi_ep_bind(ep, &srx->fid, 0));
	CHECK(!fi_enable(ep));
	return ep;
}

static void open_worker(struct worker *w, enum fi_threading level,
			const struct stress_place *shared)
{
	int i;

	memset(w, 0, sizeof(*w));
	if (shared)
		w->place = *shared;
	else
		stress_place_open(&w->place, level, FI_TAGGED);
	w->cq = stress_cq_open(w->place.domain, FI_WAIT_NONE);
	for (i = 0; i < 2; i++)
		w->ep[i] = open_ep(&w->place, w->cq, NULL);
}

static void close_worker(struct worker *w, const struct stress_place *shared)
{
	CHECK(!fi_close(&w->ep[0]->fid));
	CHECK(!fi_close(&w->ep[1]->fid));
	CHECK(!fi_close(&w->cq->fid));
	if (!shared)
		stress_place_close(&w->place);
}

static void post(struct worker *w, uint8_t *buf)
{
	CHECK(!fi_trecv(w->ep[1], buf, LEN_MAX, NULL, FI_ADDR_UNSPEC, 0, UINT64_MAX, buf));
}

/* Checks a message: the tag is the number of the sender, the CQ data the number of the message. */
static void take(struct worker *w, const struct fi_cq_tagged_entry *e)
{
	uint8_t *buf = e->op_context;
	uint32_t n = (uint32_t)e->data;

	if (e->flags & FI_SEND) {
		w->completed++;
		return;
	}
	CHECK(e->tag < THREADS && n == w->taken[e->tag]++);
	CHECK(e->len == len_of(n) && buf[0] == (n & 0xFF) && buf[e->len - 1] == (n & 0xFF));
	post(w, buf);
}

static void progress(struct worker *w)
{
	struct fi_cq_tagged_entry e[4];
	ssize_t i, ret = fi_cq_read(w->cq, e, 4);

	CHECK(ret > 0 || ret == -FI_EAGAIN);
	for (i = 0; i < ret; i++)
		take(w, &e[i]);
}

/* Sends one message at a time: the buffer is filled again after its completion. */
static void send_next(struct worker *w, int me, int to)
{
	uint32_t n = w->sent[to]++, completed = w->completed;
	ssize_t ret;

	memset(w->out, (int)(n & 0xFF), len_of(n));
	while ((ret = fi_tsenddata(w->ep[0], w->out, len_of(n), NULL, n, w->to[to], (uint64_t)me,
				   w->out)) == -FI_EAGAIN)
		progress(w);
	CHECK(!ret);
	while (w->completed == completed)
		progress(w);
}

static bool is_done(const struct worker *w)
{
	for (int i = 0; i < THREADS; i++)
		if (w->taken[i] < MSGS)
			return false;
	return true;
}

static int gone; /* atomic: threads that have received and completed everything */

static void *run_worker(void *arg)
{
	struct worker *w = arg;
	int me = (int)(w - workers), i;

	for (i = 0; i < WINDOW; i++)
		post(w, w->in[i]);
	for (i = 0; i < THREADS * MSGS; i++)
		send_next(w, me, i % THREADS);
	while (!is_done(w))
		progress(w);
	__atomic_add_fetch(&gone, 1, __ATOMIC_ACQ_REL);
	while (__atomic_load_n(&gone, __ATOMIC_ACQUIRE) < THREADS)
		progress(w); /* the other thread may need progress of this one */
	return NULL;
}

static void run_level(enum fi_threading level, bool own)
{
	struct stress_place shared = { 0 };
	pthread_t threads[THREADS];
	int i, j;

	if (!own)
		stress_place_open(&shared, level, FI_TAGGED);
	for (i = 0; i < THREADS; i++)
		open_worker(&workers[i], level, own ? NULL : &shared);
	for (i = 0; i < THREADS; i++)
		for (j = 0; j < THREADS; j++)
			workers[i].to[j] = stress_av_insert(workers[i].place.av, workers[j].ep[1]);
	gone = 0;
	for (i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, run_worker, &workers[i]);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (i = 0; i < THREADS; i++)
		close_worker(&workers[i], own ? NULL : &shared);
	if (!own)
		stress_place_close(&shared);
	printf("stress_threads: level %d, %s: %d messages a thread and target\n", level,
	       own ? "a domain each" : "one domain", MSGS);
}

static bool shared_is_over; /* all messages have arrived */

struct sender {
	struct fid_ep *ep;
	struct fid_cq *cq;
	fi_addr_t to;
	uint64_t tag;
};

static void *run_sender(void *arg)
{
	struct sender *s = arg;
	struct fi_cq_tagged_entry e;
	uint32_t n;
	ssize_t ret;

	for (n = 0; n < MSGS; n++)
		while ((ret = fi_tinjectdata(s->ep, &n, sizeof(n), n, s->to, s->tag)))
			CHECK(ret == -FI_EAGAIN && fi_cq_read(s->cq, &e, 1) == -FI_EAGAIN);
	/* Messages that the device had no room for leave in a progress call of their sender. */
	while (!__atomic_load_n(&shared_is_over, __ATOMIC_ACQUIRE)) {
		CHECK(fi_cq_read(s->cq, &e, 1) == -FI_EAGAIN);
		sched_yield();
	}
	return NULL;
}

/* Reads both queues; each message must be the next of its sender. Returns the number read. */
static uint32_t take_shared(struct fid_cq **cqs, struct fid_ep *srx, uint32_t *next)
{
	struct fi_cq_tagged_entry e;
	uint32_t cnt = 0;

	for (int i = 0; i < THREADS; i++)
		while (fi_cq_read(cqs[i], &e, 1) == 1) {
			CHECK(e.tag < THREADS && e.data == next[e.tag]++);
			CHECK(*(uint32_t *)e.op_context == (uint32_t)e.data);
			CHECK(!fi_trecv(srx, e.op_context, 4, NULL, FI_ADDR_UNSPEC, 0, UINT64_MAX,
					e.op_context));
			cnt++;
		}
	return cnt;
}

/*
 * Runs the shared context: its endpoint i receives from sender i, the main thread sleeps on the
 * set.
 */
static void run_shared(void)
{
	struct fi_wait_attr wait_attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fid_cq *cqs[THREADS];
	struct fid_ep *srx, *eps[THREADS];
	struct sender senders[THREADS];
	uint32_t in[WINDOW], next[THREADS] = { 0 }, cnt = 0;
	pthread_t threads[THREADS];
	struct fid_wait *set;
	struct stress_place place;
	int i;

	stress_place_open(&place, FI_THREAD_SAFE, FI_TAGGED);
	CHECK(!fi_wait_open(place.fabric, &wait_attr, &set));
	CHECK(!fi_srx_context(place.domain, NULL, &srx, NULL));
	for (i = 0; i < THREADS; i++) {
		attr.wait_obj = FI_WAIT_SET;
		attr.wait_set = set;
		CHECK(!fi_cq_open(place.domain, &attr, &cqs[i], NULL));
		eps[i] = open_ep(&place, cqs[i], srx);
		attr.wait_obj = FI_WAIT_NONE;
		CHECK(!fi_cq_open(place.domain, &attr, &senders[i].cq, NULL));
		senders[i].ep = open_ep(&place, senders[i].cq, NULL);
		senders[i].to = stress_av_insert(place.av, eps[i]);
		senders[i].tag = (uint64_t)i;
	}
	for (i = 0; i < WINDOW; i++)
		CHECK(!fi_trecv(srx, &in[i], 4, NULL, FI_ADDR_UNSPEC, 0, UINT64_MAX, &in[i]));
	for (i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, run_sender, &senders[i]);
	while (cnt < THREADS * MSGS) {
		CHECK(!fi_wait(set, 20000));
		cnt += take_shared(cqs, srx, next);
	}
	__atomic_store_n(&shared_is_over, true, __ATOMIC_RELEASE);
	for (i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		CHECK(!fi_close(&senders[i].ep->fid));
		CHECK(!fi_close(&senders[i].cq->fid));
		CHECK(!fi_close(&eps[i]->fid));
		CHECK(!fi_close(&cqs[i]->fid));
	}
	CHECK(!fi_close(&srx->fid));
	CHECK(!fi_close(&set->fid));
	stress_place_close(&place);
	printf("stress_threads: %d messages a sender through a shared receive context\n", MSGS);
}

int main(void)
{
	static const enum fi_threading levels[] = { FI_THREAD_SAFE, FI_THREAD_FID,
						    FI_THREAD_ENDPOINT, FI_THREAD_COMPLETION };

	for (unsigned i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
		run_level(levels[i], false);
	run_level(FI_THREAD_DOMAIN, true);
	run_level(FI_THREAD_SAFE, true);
	run_shared();
	return 0;
}
