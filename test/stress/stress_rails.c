/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Stress test of two devices for one connection (FI_COPYRPC_RAILS=2): the second one is pulled and
 * comes back while connections are made, used and closed.
 *
 * Two workers with an endpoint and a thread each send long messages to themselves and to each
 * other. Another thread opens endpoints that send to both, and pairs of endpoints of which one is
 * closed while a message of the other one arrives. So links on the second device are made by the
 * control threads, used, and ended at any moment of its failure.
 *
 * Every message of a worker arrives once, in order, with its bytes, and none fails. On the device
 * model the test ends once the second device has moved bytes, has been out, and has moved bytes
 * again; elsewhere after STRAYS rounds of them. The suite builds the test with sanitizers.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "open.h"
#include "support/check.h"
#include "util/clock.h"

#define WORKERS    2
#define WINDOW     4
#define LEN_MIN    (128u << 10) /* Shortest message of which the second device moves half */
#define LEN_MAX    300000u
#define STRAYS     40
#define STRAY      WORKERS /* Tag of the endpoints that are opened and closed */
#define MOVED      (512u << 10)
#define PATIENCE_S 120 /* For each step of the second device */

struct worker {
	struct fid_cq *cq;
	struct fid_ep *ep;
	fi_addr_t addr;
	uint32_t sent[WORKERS];  /* Atomic */
	uint32_t taken[WORKERS]; /* By sender */
	uint32_t strays;         /* Messages of other endpoints */
	bool completed;          /* The last send */
	uint8_t in[WINDOW][LEN_MAX];
};

static struct stress_place shared;
static struct worker workers[WORKERS];
static uint8_t bytes[LEN_MAX + 256]; /* Message n is what begins at n % 256 */
static bool is_over;                 /* Atomic: nothing more is sent */
static int done;                     /* Atomic: workers that have received everything */
static long long (*counter)(const char *name);

static size_t len_of(uint32_t n)
{
	return n % 4 ? LEN_MIN + n % 7 * 20000 + n % 5 : n % 1000;
}

static void post(struct worker *w, uint8_t *buf)
{
	CHECK(!fi_trecv(w->ep, buf, LEN_MAX, NULL, FI_ADDR_UNSPEC, 0, UINT64_MAX, buf));
}

/** Checks a message: the tag is the sender, the CQ data the number of the message. */
static void take_message(struct worker *w, const struct fi_cq_tagged_entry *e)
{
	uint8_t *buf = e->op_context;
	uint32_t n = (uint32_t)e->data;

	CHECK(e->tag <= STRAY);
	CHECK(e->len == len_of(n) && !memcmp(buf, bytes + n % 256, e->len));
	if (e->tag == STRAY)
		w->strays++;
	else
		CHECK(n == w->taken[e->tag]++);
	memset(buf, 0, e->len);
	post(w, buf);
}

/** Prints the failed operation, which no message of a worker should be, and aborts. */
static void die_of_error(struct worker *w)
{
	struct fi_cq_err_entry failed = { 0 };

	fi_cq_readerr(w->cq, &failed, 0);
	fprintf(stderr, "worker %td: a %s fails (data %" PRIu64 ", tag %" PRIu64 "): %s, %s\n",
		w - workers, failed.flags & FI_RECV ? "receive" : "send", failed.data, failed.tag,
		fi_strerror(failed.err),
		fi_cq_strerror(w->cq, failed.prov_errno, failed.err_data, NULL, 0));
	abort();
}

static void progress(struct worker *w)
{
	struct fi_cq_tagged_entry e;
	ssize_t ret = fi_cq_read(w->cq, &e, 1);

	if (ret == -FI_EAVAIL)
		die_of_error(w);
	CHECK(ret == 1 || ret == -FI_EAGAIN);
	if (ret == 1 && (e.flags & FI_RECV))
		take_message(w, &e);
	else if (ret == 1)
		w->completed = true;
	else
		usleep(300);
}

static void send_next(struct worker *w, int me, int to)
{
	uint32_t n = w->sent[to];
	ssize_t ret;

	w->completed = false;
	while ((ret = fi_tsenddata(w->ep, bytes + n % 256, len_of(n), NULL, n, workers[to].addr,
				   (uint64_t)me, NULL)) == -FI_EAGAIN)
		progress(w);
	CHECK(!ret);
	__atomic_store_n(&w->sent[to], n + 1, __ATOMIC_RELEASE);
	while (!w->completed)
		progress(w);
}

static bool has_all(const struct worker *w)
{
	for (int i = 0; i < WORKERS; i++)
		if (w->taken[i] < __atomic_load_n(&workers[i].sent[w - workers], __ATOMIC_ACQUIRE))
			return false;
	return true;
}

static void *run_worker(void *arg)
{
	struct worker *w = arg;
	int me = (int)(w - workers);

	for (int i = 0; i < WINDOW; i++)
		post(w, w->in[i]);
	for (int i = 0; !__atomic_load_n(&is_over, __ATOMIC_ACQUIRE); i++) {
		send_next(w, me, i % WORKERS);
		for (int k = 0; k < 16; k++)
			progress(w);
	}
	while (!has_all(w))
		progress(w);
	__atomic_add_fetch(&done, 1, __ATOMIC_ACQ_REL);
	while (__atomic_load_n(&done, __ATOMIC_ACQUIRE) < WORKERS)
		progress(w); /* The other worker may need progress of this one */
	return NULL;
}

struct stray {
	struct fid_cq *cq;
	struct fid_ep *ep;
};

static struct stray stray_open(void)
{
	struct fid_cq *cq = stress_cq_open(shared.domain, FI_WAIT_NONE);

	return (struct stray){ cq, stress_ep_open(&shared, cq, cq) };
}

static void stray_close(const struct stray *s)
{
	CHECK(!fi_close(&s->ep->fid));
	CHECK(!fi_close(&s->cq->fid));
}

static void stray_send(const struct stray *s, uint32_t n, fi_addr_t to)
{
	CHECK(!fi_tsenddata(s->ep, bytes + n % 256, len_of(n), NULL, n, to, STRAY, NULL));
}

/** Returns true if an operation has ended; `error`: it may have failed. */
static bool stray_poll(const struct stray *s, bool error)
{
	struct fi_cq_err_entry failed = { 0 };
	struct fi_cq_tagged_entry e;
	ssize_t ret = fi_cq_read(s->cq, &e, 1);

	CHECK(ret == 1 || ret == -FI_EAGAIN || (ret == -FI_EAVAIL && error));
	return ret == 1 || (ret == -FI_EAVAIL && fi_cq_readerr(s->cq, &failed, 0) == 1);
}

/** An endpoint sends a short and a long message to each worker. */
static void meet_workers(uint32_t n)
{
	struct stray s = stray_open();

	for (uint32_t i = 0; i < 2 * WORKERS; i++) {
		stray_send(&s, 4 * n + i / WORKERS, workers[i % WORKERS].addr);
		while (!stray_poll(&s, false))
			usleep(300);
	}
	stray_close(&s);
}

/**
 * An endpoint receives a short message of another one, and is closed while a long one arrives, in
 * one of the turns that takes.
 */
static void leave_early(uint32_t n)
{
	static uint8_t in[2][LEN_MAX];
	struct stray from = stray_open(), to = stray_open();
	fi_addr_t addr = stress_av_insert(shared.av, to.ep);
	uint32_t left = 2;

	for (int i = 0; i < 2; i++)
		CHECK(!fi_trecv(to.ep, in[i], LEN_MAX, NULL, FI_ADDR_UNSPEC, 0, UINT64_MAX, in[i]));
	stray_send(&from, 4 * n, addr);
	while (left) {
		left -= stray_poll(&from, false);
		left -= stray_poll(&to, false);
		usleep(100);
	}
	stray_send(&from, 4 * n + 1, addr);
	for (uint32_t i = 0; i < n / 2 % 8; i++)
		stray_poll(&to, false);
	stray_close(&to);
	while (!stray_poll(&from, true))
		usleep(300);
	stray_close(&from);
	CHECK(!fi_av_remove(shared.av, &addr, 1, 0));
}

static void send_stray(uint32_t n)
{
	if (n % 2)
		leave_early(n);
	else
		meet_workers(n);
}

static uint64_t moved(void)
{
	return (uint64_t)counter("wire_bytes_out@mlx5_1");
}

/** Sends strays from number *n on until the second device has moved some bytes. */
static void await_bytes(uint32_t *n)
{
	uint64_t end_ns = util_clock_ns() + PATIENCE_S * UTIL_NS_PER_S, before = moved();

	while (moved() < before + MOVED) {
		send_stray((*n)++);
		CHECK(util_clock_ns() < end_ns);
	}
}

/** Sends strays until the second device has moved no byte for a second. */
static void await_silence(uint32_t *n)
{
	uint64_t end_ns = util_clock_ns() + PATIENCE_S * UTIL_NS_PER_S;
	uint64_t since_ns = util_clock_ns(), last = moved();

	while (util_clock_ns() - since_ns < UTIL_NS_PER_S) {
		send_stray((*n)++);
		CHECK(util_clock_ns() < end_ns);
		if (moved() != last)
			since_ns = util_clock_ns();
		last = moved();
	}
}

static uint32_t disturb(void)
{
	const char *rails = getenv("FI_COPYRPC_RAILS");
	uint32_t n = 0;

	*(void **)&counter = dlsym(RTLD_DEFAULT, "copyrpc_hca_counter");
	if (counter && rails && atoi(rails) == 2) {
		await_bytes(&n);
		await_silence(&n);
		await_bytes(&n);
		printf("stress_rails: the second device was used, pulled, and used again\n");
	}
	while (n < STRAYS)
		send_stray(n++);
	return n;
}

static void open_worker(struct worker *w)
{
	w->cq = stress_cq_open(shared.domain, FI_WAIT_NONE);
	w->ep = stress_ep_open(&shared, w->cq, w->cq);
	w->addr = stress_av_insert(shared.av, w->ep);
}

int main(void)
{
	pthread_t threads[WORKERS];
	uint32_t strays, cnt = 0;

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7 + (i >> 8) + (i >> 16));
	stress_place_open(&shared, FI_THREAD_SAFE, FI_TAGGED);
	for (int i = 0; i < WORKERS; i++)
		open_worker(&workers[i]);
	for (int i = 0; i < WORKERS; i++)
		pthread_create(&threads[i], NULL, run_worker, &workers[i]);
	strays = disturb();
	__atomic_store_n(&is_over, true, __ATOMIC_RELEASE);
	for (int i = 0; i < WORKERS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < WORKERS; i++) {
		cnt += workers[i].taken[0] + workers[i].taken[1];
		CHECK(!fi_close(&workers[i].ep->fid));
		CHECK(!fi_close(&workers[i].cq->fid));
	}
	stress_place_close(&shared);
	printf("stress_rails: %u messages of workers, %u of strays in %u rounds\n", cnt,
	       workers[0].strays + workers[1].strays, strays);
	return 0;
}
