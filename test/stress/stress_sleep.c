/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Stress test of wakeups: threads with an endpoint and a queue each, in one domain, all asleep.
 *
 * One token goes round, so only its owner is awake, and a lost wakeup stops the test. The threads
 * alternate between fi_cq_sread and, after fi_trywait, poll(2). They start before their queues have
 * endpoints, so in the domain's first progress domain. Then the queues of two threads are bound to
 * a third endpoint, which merges their progress domains, and another endpoint is opened and closed.
 * The suite builds the test with TSan.
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

#define WORKERS 3
#define HOPS    6000
#define LEN_MAX 20000
#define LONG_MS 60000 /* time-out that no sleep reaches */

struct worker {
	pthread_t thread;
	struct fid_cq *cq;
	struct fid_ep *ep;
	fi_addr_t addr;
	uint32_t slept; /* sleeps */
	uint32_t open;  /* sends in progress */
	uint32_t in[LEN_MAX / 4];
	uint32_t out[LEN_MAX / 4];
};

static struct stress_place place;
static struct worker workers[WORKERS];
static bool ready;    /* atomic: all endpoints are open */
static uint32_t hops; /* atomic */

/* Returns a length: mostly eager, sometimes of the rendezvous. */
static size_t len_of(uint32_t hop)
{
	return hop % 16 ? 4 : LEN_MAX;
}

static void post(struct worker *w)
{
	CHECK(!fi_trecv(w->ep, w->in, LEN_MAX, NULL, FI_ADDR_UNSPEC, 1, 0, w));
}

static void sleep_on(struct worker *w)
{
	struct fid *fids[1] = { &w->cq->fid };
	struct pollfd pfd = { .events = POLLIN };
	int ret = fi_trywait(place.fabric, fids, 1);

	CHECK(!ret || ret == -FI_EAGAIN);
	if (ret)
		return;
	w->slept++;
	CHECK(!fi_control(&w->cq->fid, FI_GETWAIT, &pfd.fd));
	CHECK(poll(&pfd, 1, LONG_MS) == 1);
}

/* Waits for the next completion. */
static void await(struct worker *w, struct fi_cq_tagged_entry *e, bool polls)
{
	ssize_t ret;

	if (polls)
		while ((ret = fi_cq_read(w->cq, e, 1)) == -FI_EAGAIN)
			sleep_on(w);
	else
		ret = fi_cq_sread(w->cq, e, 1, NULL, LONG_MS);
	CHECK(ret == 1);
}

/* Sends the token to the next worker once the send buffer is free. */
static void pass_on(struct worker *w, uint32_t hop)
{
	struct worker *next = &workers[(w - workers + 1) % WORKERS];
	struct fi_cq_tagged_entry e;
	ssize_t ret;

	while (w->open) {
		await(w, &e, hop & 1);
		CHECK(e.flags & FI_SEND);
		w->open--;
	}
	w->out[0] = hop + 1;
	w->out[len_of(hop + 1) / 4 - 1] = hop + 1;
	while ((ret = fi_tsend(w->ep, w->out, len_of(hop + 1), NULL, next->addr, 1, NULL)))
		CHECK(ret == -FI_EAGAIN && fi_cq_read(w->cq, &e, 0) <= 0);
	w->open++;
}

static void *run_worker(void *arg)
{
	struct worker *w = arg;
	struct fi_cq_tagged_entry e;
	uint32_t hop = (uint32_t)(w - workers); /* start value that differs between workers */

	while (hop + WORKERS <= HOPS) {
		await(w, &e, hop & 1);
		if (e.flags & FI_SEND) {
			w->open--;
			continue;
		}
		while (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE))
			sched_yield();
		hop = w->in[0];
		CHECK(e.len == len_of(hop) && w->in[e.len / 4 - 1] == hop);
		__atomic_store_n(&hops, hop, __ATOMIC_RELEASE);
		post(w);
		if (hop < HOPS)
			pass_on(w, hop);
	}
	while (w->open) {
		await(w, &e, true);
		w->open--;
	}
	return NULL;
}

static void open_workers(void)
{
	int i;

	for (i = 0; i < WORKERS; i++) {
		memset(&workers[i], 0, sizeof(workers[i]));
		workers[i].cq = stress_cq_open(place.domain, FI_WAIT_FD);
	}
	for (i = 0; i < WORKERS; i++)
		pthread_create(&workers[i].thread, NULL, run_worker, &workers[i]);
	for (i = 0; i < WORKERS; i++) {
		workers[i].ep = stress_ep_open(&place, workers[i].cq, workers[i].cq);
		workers[i].addr = stress_av_insert(place.av, workers[i].ep);
		post(&workers[i]);
	}
	__atomic_store_n(&ready, true, __ATOMIC_RELEASE);
}

static void await_hop(uint32_t hop)
{
	while (__atomic_load_n(&hops, __ATOMIC_ACQUIRE) < hop)
		sched_yield();
}

/*
 * Sends the token from a new endpoint and waits until it is half way; then merges the progress
 * domains of two workers.
 */
static void start_token(bool merged)
{
	static uint32_t token;
	struct fid_ep *between = NULL, *ep;
	struct fid_cq *cq = stress_cq_open(place.domain, FI_WAIT_FD);
	struct fi_cq_tagged_entry e;
	ssize_t ret;

	ep = stress_ep_open(&place, cq, cq);
	token = WORKERS * 8 + 1; /* short message to the first worker */
	while ((ret = fi_tsend(ep, &token, 4, NULL, workers[0].addr, 1, NULL)))
		CHECK(ret == -FI_EAGAIN);
	CHECK(fi_cq_sread(cq, &e, 1, NULL, LONG_MS) == 1);
	await_hop(HOPS / 2);
	if (merged)
		between = stress_ep_open(&place, workers[0].cq, workers[1].cq);
	CHECK(!fi_close(&ep->fid));
	CHECK(!fi_close(&cq->fid));
	for (int i = 0; i < WORKERS; i++)
		pthread_join(workers[i].thread, NULL);
	if (between)
		CHECK(!fi_close(&between->fid));
}

static void run(bool merged)
{
	uint32_t slept = 0;
	int i;

	ready = false;
	hops = 0;
	stress_place_open(&place, FI_THREAD_SAFE, 0);
	open_workers();
	start_token(merged);
	for (i = 0; i < WORKERS; i++) {
		slept += workers[i].slept;
		CHECK(!fi_close(&workers[i].ep->fid));
		CHECK(!fi_close(&workers[i].cq->fid));
	}
	stress_place_close(&place);
	printf("stress_sleep: %d workers, a token of %d hops, slept in poll(2) %u times%s\n",
	       WORKERS, HOPS, slept, merged ? ", progress domains merged" : "");
}

int main(void)
{
	run(false);
	run(true);
	return 0;
}
