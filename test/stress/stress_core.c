/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * May all threads use one endpoint at once (FI_THREAD_SAFE), with and without a progress thread?
 *
 * Two endpoints of one process, each in a domain of its own, and threads that send and receive on
 * both: a ping-pong per thread, on tags of its own, of short and long messages, with posted and
 * unexpected receives, injected messages, cancelled receives and reads of the queue in between.
 * Each message's bytes are checked. The objects that ship are called through their libfabric
 * interface, without libfabric's loader, so that ThreadSanitizer sees all of it.
 *
 * Rounds: FI_PROGRESS_MANUAL, FI_PROGRESS_AUTO.
 */
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include "ofi/cpr_prov.h"
#include "support/check.h"
#include "util/clock.h"

#define THREADS  4
#define TURNS    2000u
#define LEN_MAX  (96u << 10)
#define LIMIT_NS (600 * UTIL_NS_PER_S)

struct end {
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct sockaddr_in addr;
};

/** Operation of one thread. The thread that reads its completion sets `done`. */
struct op {
	int done; /* 0: open, 1: complete, else the negative error */
};

struct worker {
	pthread_t thread;
	unsigned idx;
	uint64_t cancelled;
};

static struct end ends[2];
static uint64_t begin_ns;

static void end_open(struct end *end, struct fi_provider *prov, enum fi_progress progress)
{
	struct sockaddr_in src = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_info *hints = fi_allocinfo(), *info;
	size_t len = sizeof(end->addr);

	CHECK(hints);
	hints->caps = FI_TAGGED | FI_DIRECTED_RECV;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	hints->domain_attr->data_progress = progress;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->src_addr = malloc(sizeof(src));
	CHECK(hints->src_addr);
	memcpy(hints->src_addr, &src, sizeof(src));
	hints->src_addrlen = sizeof(src);
	CHECK(!prov->getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
	CHECK(!prov->fabric(info->fabric_attr, &end->fabric, NULL));
	CHECK(!fi_domain(end->fabric, info, &end->domain, NULL));
	CHECK(!fi_av_open(end->domain, &av_attr, &end->av, NULL));
	CHECK(!fi_cq_open(end->domain, &cq_attr, &end->cq, NULL));
	CHECK(!fi_endpoint(end->domain, info, &end->ep, NULL));
	CHECK(!fi_ep_bind(end->ep, &end->av->fid, 0));
	CHECK(!fi_ep_bind(end->ep, &end->cq->fid, FI_TRANSMIT | FI_RECV));
	CHECK(!fi_enable(end->ep));
	CHECK(!fi_getname(&end->ep->fid, &end->addr, &len));
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

static void end_close(struct end *end)
{
	CHECK(!fi_close(&end->ep->fid));
	CHECK(!fi_close(&end->cq->fid));
	CHECK(!fi_close(&end->av->fid));
	CHECK(!fi_close(&end->domain->fid));
	CHECK(!fi_close(&end->fabric->fid));
}

/** Reads a few completions, of any thread. */
static void end_poll(struct end *end)
{
	struct fi_cq_tagged_entry entries[4];
	struct fi_cq_err_entry err = { 0 };
	ssize_t cnt = fi_cq_read(end->cq, entries, 4);
	struct op *op;

	for (ssize_t i = 0; i < cnt; i++) {
		op = entries[i].op_context;
		CHECK(__atomic_exchange_n(&op->done, 1, __ATOMIC_ACQ_REL) == 0);
	}
	if (cnt == -FI_EAVAIL && fi_cq_readerr(end->cq, &err, 0) == 1) {
		op = err.op_context;
		CHECK(__atomic_exchange_n(&op->done, -err.err, __ATOMIC_ACQ_REL) == 0);
	}
	CHECK(cnt > 0 || cnt == -FI_EAGAIN || cnt == -FI_EAVAIL);
	if (cnt <= 0)
		sched_yield();
}

/** Waits for an operation, reading both queues. Returns 1 or its error. */
static int op_wait(struct op *op)
{
	int done;

	while (!(done = __atomic_load_n(&op->done, __ATOMIC_ACQUIRE))) {
		end_poll(&ends[0]);
		end_poll(&ends[1]);
		CHECK(util_clock_ns() - begin_ns < LIMIT_NS);
	}
	return done;
}

static uint32_t len_of(uint32_t turn)
{
	static const uint32_t max[] = { 9, 300, 9000, 30000, LEN_MAX };

	return turn * 2654435761u % max[turn % 5];
}

static uint8_t byte_of(uint32_t turn, uint32_t i)
{
	return (uint8_t)(turn * 31 + i * 7 + 1);
}

static void fill(uint8_t *buf, uint32_t turn)
{
	for (uint32_t i = 0; i < len_of(turn); i++)
		buf[i] = byte_of(turn, i);
}

static void check(const uint8_t *buf, uint32_t turn)
{
	for (uint32_t i = 0; i < len_of(turn); i++)
		CHECK(buf[i] == byte_of(turn, i));
}

static void post_recv(struct end *end, uint8_t *buf, uint64_t tag, struct op *op)
{
	op->done = 0;
	CHECK(!fi_trecv(end->ep, buf, LEN_MAX, NULL, 0, tag, 0, op));
}

static void send_turn(struct end *end, const uint8_t *buf, uint32_t turn, uint64_t tag)
{
	uint32_t len = len_of(turn);
	struct op op = { 0 };
	ssize_t ret;

	do {
		ret = turn % 3 == 0 && len <= 64 ? fi_tinject(end->ep, buf, len, 0, tag)
						 : fi_tsend(end->ep, buf, len, NULL, 0, tag, &op);
		if (ret == -FI_EAGAIN) {
			end_poll(&ends[0]);
			end_poll(&ends[1]);
			CHECK(util_clock_ns() - begin_ns < LIMIT_NS);
		}
	} while (ret == -FI_EAGAIN);
	CHECK(!ret);
	if (!(turn % 3 == 0 && len <= 64))
		CHECK(op_wait(&op) == 1);
}

/** Cancels a receive that matches no message: it ends exactly once. */
static void cancel_one(struct worker *w, struct end *end, uint8_t *buf)
{
	struct op op;

	post_recv(end, buf, 1000 + w->idx, &op);
	end_poll(end);
	CHECK(!fi_cancel(&end->ep->fid, &op));
	CHECK(op_wait(&op) == -FI_ECANCELED);
	w->cancelled++;
}

/*
 * Sends in turns from one end to the other. A message of the rendezvous completes at its sender
 * only after the receive, so its receive is posted first; others may arrive unexpected.
 */
static void *run_worker(void *arg)
{
	struct worker *w = arg;
	uint8_t *out = malloc(LEN_MAX), *in = malloc(LEN_MAX);
	struct end *from, *to;
	struct op op;

	CHECK(out && in);
	for (uint32_t turn = 0; turn < TURNS; turn++) {
		bool late = len_of(turn) < 8000 && turn % 2;

		from = &ends[(turn + w->idx) % 2];
		to = &ends[(turn + w->idx + 1) % 2];
		fill(out, turn);
		if (!late)
			post_recv(to, in, w->idx, &op);
		send_turn(from, out, turn, w->idx);
		if (late)
			post_recv(to, in, w->idx, &op);
		CHECK(op_wait(&op) == 1);
		check(in, turn);
		if (turn % 16 == 5)
			cancel_one(w, to, in);
	}
	free(out);
	free(in);
	return NULL;
}

static void run_round(struct fi_provider *prov, const char *name, enum fi_progress progress)
{
	struct worker workers[THREADS] = { 0 };
	uint64_t cancelled = 0;
	fi_addr_t fi_addr;

	begin_ns = util_clock_ns();
	for (int i = 0; i < 2; i++)
		end_open(&ends[i], prov, progress);
	for (int i = 0; i < 2; i++) {
		CHECK(fi_av_insert(ends[i].av, &ends[1 - i].addr, 1, &fi_addr, 0, NULL) == 1);
		CHECK(fi_addr == 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		workers[i].idx = i;
		CHECK(!pthread_create(&workers[i].thread, NULL, run_worker, &workers[i]));
	}
	for (unsigned i = 0; i < THREADS; i++) {
		CHECK(!pthread_join(workers[i].thread, NULL));
		cancelled += workers[i].cancelled;
	}
	for (int i = 0; i < 2; i++)
		end_close(&ends[i]);
	printf("%s: %u threads, %u messages, %llu receives cancelled, %.1f s\n", name, THREADS,
	       THREADS * TURNS, (unsigned long long)cancelled,
	       (double)(util_clock_ns() - begin_ns) * 1e-9);
	fflush(stdout);
}

int main(void)
{
	struct fi_provider *prov = fi_prov_ini();

	CHECK(prov);
	run_round(prov, "manual progress", FI_PROGRESS_MANUAL);
	run_round(prov, "automatic progress", FI_PROGRESS_AUTO);
	prov->cleanup();
	return 0;
}
