/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Stress test of progress domains: threads with an endpoint and a queue each, in one domain.
 *
 * Each worker sends to all, messages around the rendezvous limit, writes into a shared region and
 * adds to a word in it. Another thread changes the shared state of the domain: inserts and removes
 * addresses, registers and closes regions, opens endpoints, sends from them and closes them. In a
 * second run it binds one endpoint to the queues of two workers, which merges their progress
 * domains.
 *
 * Every message arrives once, in order of its sender, with its bytes; no addition is lost. The
 * suite builds the test with TSan.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
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
#define MSGS    1200 /* to each worker */
#define WINDOW  8
#define LEN_MAX 20000
#define KEY     1
#define STRAY   WORKERS /* tag of the endpoints that are opened and closed */

struct worker {
	struct fid_cq *cq;
	struct fid_ep *ep;
	fi_addr_t addr;
	uint32_t sent[WORKERS];
	uint32_t taken[WORKERS];
	uint32_t strays;    /* atomic: messages received from them */
	uint32_t completed; /* all but receives */
	uint8_t out[LEN_MAX];
	uint8_t in[WINDOW][LEN_MAX];
};

static struct stress_place shared;
static struct worker workers[WORKERS];
static uint64_t region[1 + WORKERS * WORKERS * 64]; /* the sum, then 64 words for each pair */
static int done;  /* atomic: workers that have received and completed everything */
static bool stop; /* atomic: the other thread has ended */

static size_t len_of(uint32_t n)
{
	return n % 64 ? 4 + n % 300 : LEN_MAX - n % 1000;
}

static void post(struct worker *w, uint8_t *buf)
{
	CHECK(!fi_trecv(w->ep, buf, LEN_MAX, NULL, FI_ADDR_UNSPEC, 0, UINT64_MAX, buf));
}

/* Checks a message: the tag is the number of the sender, the CQ data the number of the message. */
static void take_message(struct worker *w, const struct fi_cq_tagged_entry *e)
{
	uint8_t *buf = e->op_context;
	uint32_t n = (uint32_t)e->data;

	if (e->tag == STRAY) {
		__atomic_add_fetch(&w->strays, 1, __ATOMIC_RELEASE);
	} else {
		CHECK(e->tag < WORKERS && n == w->taken[e->tag]++);
		CHECK(e->len == len_of(n));
		CHECK(buf[0] == (n & 0xFF) && buf[e->len - 1] == (n & 0xFF));
	}
	post(w, buf);
}

static void progress(struct worker *w)
{
	struct fi_cq_tagged_entry e[4];
	ssize_t i, ret = fi_cq_read(w->cq, e, 4);

	CHECK(ret > 0 || ret == -FI_EAGAIN);
	for (i = 0; i < ret; i++) {
		if (e[i].flags & FI_RECV)
			take_message(w, &e[i]);
		else
			w->completed++;
	}
}

#define UNTIL_TAKEN(w, call)                                                                       \
	do {                                                                                       \
		uint32_t before = (w)->completed;                                                  \
		ssize_t ret;                                                                       \
		while ((ret = (call)) == -FI_EAGAIN)                                               \
			progress(w);                                                               \
		CHECK(!ret);                                                                       \
		while ((w)->completed == before)                                                   \
			progress(w);                                                               \
	} while (0)

static void send_next(struct worker *w, int me, int to)
{
	uint32_t n = w->sent[to]++;

	memset(w->out, (int)(n & 0xFF), len_of(n));
	UNTIL_TAKEN(w, fi_tsenddata(w->ep, w->out, len_of(n), NULL, n, workers[to].addr,
				    (uint64_t)me, w->out));
}

/* Writes into the words of this pair and adds to the sum, at the region of another endpoint. */
static void touch_region(struct worker *w, int me, int to, uint32_t n)
{
	uint64_t place = 8 + (uint64_t)(me * WORKERS + to) * 512, one = 1;

	memset(w->out, (int)n, 512);
	UNTIL_TAKEN(w, fi_write(w->ep, w->out, 512, NULL, workers[to].addr, place, KEY, NULL));
	UNTIL_TAKEN(w, fi_atomic(w->ep, &one, 1, NULL, workers[to].addr, 0, KEY, FI_UINT64, FI_SUM,
				 NULL));
}

static bool has_all(const struct worker *w)
{
	for (int i = 0; i < WORKERS; i++)
		if (w->taken[i] < MSGS)
			return false;
	return true;
}

static void *run_worker(void *arg)
{
	struct worker *w = arg;
	int me = (int)(w - workers);

	for (int i = 0; i < WINDOW; i++)
		post(w, w->in[i]);
	for (int i = 0; i < WORKERS * MSGS; i++) {
		send_next(w, me, i % WORKERS);
		if (i % 16 == 0)
			touch_region(w, me, i / 16 % WORKERS, (uint32_t)i);
	}
	while (!has_all(w))
		progress(w);
	__atomic_add_fetch(&done, 1, __ATOMIC_ACQ_REL);
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE))
		progress(w); /* other workers may need progress of this one */
	return NULL;
}

static bool are_done(void)
{
	return __atomic_load_n(&done, __ATOMIC_ACQUIRE) == WORKERS;
}

/* Inserts and removes an unused address. */
static void change_addresses(uint16_t n)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(n % 1000 + 1) };
	fi_addr_t addr;

	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK(fi_av_insert(shared.av, &sin, 1, &addr, 0, NULL) == 1);
	CHECK(!fi_av_remove(shared.av, &addr, 1, 0));
}

static void change_regions(uint32_t n)
{
	static uint8_t mem[4096];
	struct fid_mr *mr;

	CHECK(!fi_mr_reg(shared.domain, mem, sizeof(mem), FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
			 KEY + 1 + n, 0, &mr, NULL));
	CHECK(!fi_close(&mr->fid));
}

static bool have_strays(uint32_t n)
{
	for (int i = 0; i < WORKERS; i++)
		if (__atomic_load_n(&workers[i].strays, __ATOMIC_ACQUIRE) <= n)
			return false;
	return true;
}

/* Opens an endpoint, with or without a name, sends to all workers and closes it. */
static void send_stray(uint32_t n)
{
	struct fid_cq *cq = stress_cq_open(shared.domain, FI_WAIT_NONE);
	struct fid_ep *ep = stress_ep_open(&shared, cq, cq);
	fi_addr_t addr = n % 2 ? stress_av_insert(shared.av, ep) : FI_ADDR_UNSPEC;
	struct fi_cq_tagged_entry e;
	ssize_t ret;

	for (int i = 0; i < WORKERS; i++)
		while ((ret = fi_tinjectdata(ep, &n, sizeof(n), n, workers[i].addr, STRAY)))
			CHECK(ret == -FI_EAGAIN && fi_cq_read(cq, &e, 1) == -FI_EAGAIN);
	if (addr == FI_ADDR_UNSPEC)
		addr = stress_av_insert(shared.av, ep);
	while (!have_strays(n))
		CHECK(fi_cq_read(cq, &e, 1) == -FI_EAGAIN);
	CHECK(!fi_av_remove(shared.av, &addr, 1, 0));
	CHECK(!fi_close(&ep->fid));
	CHECK(!fi_close(&cq->fid));
}

static uint32_t disturb(bool merged)
{
	struct fid_ep *between = NULL;
	uint32_t n = 0;

	for (; !are_done() || n < 40; n++) {
		change_addresses((uint16_t)n);
		change_regions(n);
		send_stray(n);
		if (merged && n == 3)
			between = stress_ep_open(&shared, workers[0].cq, workers[1].cq);
		sched_yield();
	}
	if (between)
		CHECK(!fi_close(&between->fid));
	return n;
}

static void open_worker(struct worker *w)
{
	memset(w, 0, sizeof(*w));
	w->cq = stress_cq_open(shared.domain, FI_WAIT_NONE);
	w->ep = stress_ep_open(&shared, w->cq, w->cq);
	w->addr = stress_av_insert(shared.av, w->ep);
}

static void run(bool merged)
{
	pthread_t threads[WORKERS];
	struct fid_mr *mr;
	uint32_t strays;
	int i;

	stress_place_open(&shared, FI_THREAD_SAFE, 0);
	memset(region, 0, sizeof(region));
	CHECK(!fi_mr_reg(shared.domain, region, sizeof(region), FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
			 KEY, 0, &mr, NULL));
	done = 0;
	stop = false;
	for (i = 0; i < WORKERS; i++)
		open_worker(&workers[i]);
	for (i = 0; i < WORKERS; i++)
		pthread_create(&threads[i], NULL, run_worker, &workers[i]);
	strays = disturb(merged);
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	for (i = 0; i < WORKERS; i++)
		pthread_join(threads[i], NULL);
	CHECK(region[0] == WORKERS * ((WORKERS * MSGS + 15) / 16));
	for (i = 0; i < WORKERS; i++) {
		CHECK(!fi_close(&workers[i].ep->fid));
		CHECK(!fi_close(&workers[i].cq->fid));
	}
	CHECK(!fi_close(&mr->fid));
	stress_place_close(&shared);
	printf("stress_pdoms: %d workers, %d messages to each, %u strays%s\n", WORKERS, MSGS,
	       strays, merged ? ", progress domains merged" : "");
}

int main(void)
{
	run(false);
	run(true);
	return 0;
}
