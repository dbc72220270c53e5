/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Scaling of threads that share no endpoint.
 *
 * Each thread has two endpoints and a completion queue, and sends tagged messages from one to the
 * other: it posts receives, injects, and reads completions. With -m one all threads share a domain,
 * with -m own each thread has a domain. Run it with one thread and with several: the rate should
 * grow with the threads while there are idle processors. Threads start together and stop together
 * after a fixed time; the median of several rounds is reported. The processor time of each message
 * is reported too; it should not grow, also on a machine that is busy with other work.
 *
 * usage: fi_threads_bench [-p PROVIDER] [-m one
 * own] [-l safe
 * fid
 * endpoint
 * completion
 * domain]
 * 			   [-s BYTES] [-w WINDOW] [-T MS] [-n ROUNDS] [THREADS...] (1 and 2)
 */
#include <inttypes.h>
#include <pthread.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

#define THREADS_MAX 64
#define ROUNDS_MAX  101
#define WINDOW_MAX  1024
#define NAME_LEN    256
#define TAG         1

static const char *provider = "copyrpc";
static bool own_domains;
static enum fi_threading level = FI_THREAD_SAFE;
static const char *level_name = "safe";
static size_t len = 8;
static int window = 16, rounds = 9;
static long round_ms = 100;

/* Owner of endpoints: one for all threads, or one each. */
struct place {
	struct fid_domain *domain;
	struct fid_av *av;
};

struct worker {
	pthread_t thread;
	struct place place;
	struct fid_cq *cq;
	struct fid_ep *ep[2];
	fi_addr_t addr;
	long received;
	uint64_t msgs; /* messages of the round */
	uint64_t insns;
	uint64_t cpu_ns;
	char in[4096], out[4096];
	struct fi_context2 contexts[WINDOW_MAX];
} __attribute__((aligned(128)));

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct worker workers[THREADS_MAX];
static int worker_cnt;
static pthread_barrier_t barrier;
static bool stop; /* atomic: the round has ended */

static void must(long ret, const char *what)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "fi_threads_bench: %s: %s\n", what, fi_strerror((int)-ret));
	exit(1);
}

static void find(void)
{
	struct fi_info *hints = fi_allocinfo();

	must(hints ? 0 : -FI_ENOMEM, "fi_allocinfo");
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_TAGGED;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->domain_attr->threading = level;
	hints->fabric_attr->prov_name = strdup(provider);
	must(fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", NULL, FI_SOURCE, hints, &info), provider);
	fi_freeinfo(hints);
	must(info->tx_attr->inject_size >= len ? 0 : -FI_EMSGSIZE, "the size cannot be injected");
	must(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
}

static void open_place(struct place *place)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE };

	must(fi_domain(fabric, info, &place->domain, NULL), "fi_domain");
	must(fi_av_open(place->domain, &attr, &place->av, NULL), "fi_av_open");
}

static void open_worker(struct worker *w, const struct place *shared)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED };
	char name[NAME_LEN];
	size_t name_len = sizeof(name);
	int i;

	w->place = *shared;
	if (own_domains)
		open_place(&w->place);
	must(fi_cq_open(w->place.domain, &attr, &w->cq, NULL), "fi_cq_open");
	for (i = 0; i < 2; i++) {
		must(fi_endpoint(w->place.domain, info, &w->ep[i], NULL), "fi_endpoint");
		must(fi_ep_bind(w->ep[i], &w->place.av->fid, 0), "fi_ep_bind");
		must(fi_ep_bind(w->ep[i], &w->cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
		must(fi_enable(w->ep[i]), "fi_enable");
	}
	must(fi_getname(&w->ep[1]->fid, name, &name_len), "fi_getname");
	must(fi_av_insert(w->place.av, name, 1, &w->addr, 0, NULL) == 1 ? 0 : -FI_EINVAL,
	     "fi_av_insert");
}

static void take(struct worker *w)
{
	struct fi_cq_tagged_entry entries[64];
	long ret = fi_cq_read(w->cq, entries, 64);

	if (ret == -FI_EAGAIN)
		return;
	must(ret, "fi_cq_read");
	w->received += ret;
}

static void run_window(struct worker *w)
{
	long ret;
	int i;

	w->received = 0;
	for (i = 0; i < window; i++)
		must(fi_trecv(w->ep[1], w->in, len, NULL, FI_ADDR_UNSPEC, TAG, 0, &w->contexts[i]),
		     "fi_trecv");
	for (i = 0; i < window; i++) {
		while ((ret = fi_tinject(w->ep[0], w->out, len, w->addr, TAG)) == -FI_EAGAIN)
			take(w);
		must(ret, "fi_tinject");
	}
	while (w->received < window)
		take(w);
	w->msgs += (uint64_t)window;
}

static uint64_t cpu_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Runs the rounds. The first one connects and is not reported. */
static void *run_worker(void *arg)
{
	struct worker *w = arg;
	int round, fd = bench_insn_open();
	uint64_t insns, cpu;

	for (round = 0; round <= rounds; round++) {
		pthread_barrier_wait(&barrier);
		w->msgs = 0;
		insns = bench_insn_read(fd);
		cpu = cpu_now_ns();
		while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
			run_window(w);
		w->cpu_ns = cpu_now_ns() - cpu;
		w->insns = bench_insn_read(fd) - insns;
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

/*
 * Runs a round. Returns million messages per second, and instructions and processor time of one
 * message, of all threads together.
 */
static void run_round(double *rate, double *insns, double *ns)
{
	struct timespec pause = { round_ms / 1000, round_ms % 1000 * 1000000 };
	uint64_t t0, msgs = 0, all = 0, cpu = 0;
	int i;

	__atomic_store_n(&stop, false, __ATOMIC_RELAXED);
	pthread_barrier_wait(&barrier);
	t0 = bench_now_ns();
	nanosleep(&pause, NULL);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	t0 = bench_now_ns() - t0;
	pthread_barrier_wait(&barrier);
	for (i = 0; i < worker_cnt; i++) {
		msgs += workers[i].msgs;
		all += workers[i].insns;
		cpu += workers[i].cpu_ns;
	}
	*rate = (double)msgs * 1e3 / (double)t0;
	*insns = msgs ? (double)all / (double)msgs : 0;
	*ns = msgs ? (double)cpu / (double)msgs : 0;
}

static void close_worker(struct worker *w)
{
	must(fi_close(&w->ep[0]->fid), "fi_close");
	must(fi_close(&w->ep[1]->fid), "fi_close");
	must(fi_close(&w->cq->fid), "fi_close");
}

static void close_place(struct place *place)
{
	must(fi_close(&place->av->fid), "fi_close");
	must(fi_close(&place->domain->fid), "fi_close");
}

static void measure(int cnt)
{
	double rates[ROUNDS_MAX + 1], insns[ROUNDS_MAX + 1], ns[ROUNDS_MAX + 1];
	struct place shared = { 0 };
	int i;

	must(cnt > 0 && cnt <= THREADS_MAX ? 0 : -FI_EINVAL, "threads");
	worker_cnt = cnt;
	if (!own_domains)
		open_place(&shared);
	pthread_barrier_init(&barrier, NULL, (unsigned)cnt + 1);
	for (i = 0; i < cnt; i++) {
		open_worker(&workers[i], &shared);
		pthread_create(&workers[i].thread, NULL, run_worker, &workers[i]);
	}
	for (i = 0; i <= rounds; i++)
		run_round(&rates[i], &insns[i], &ns[i]);
	for (i = 0; i < cnt; i++) {
		pthread_join(workers[i].thread, NULL);
		close_worker(&workers[i]);
		if (own_domains)
			close_place(&workers[i].place);
	}
	if (!own_domains)
		close_place(&shared);
	pthread_barrier_destroy(&barrier);
	printf("%-10s %-7s %-10s %7d %6zu %6d %10.3f %10.1f %12.0f\n", provider,
	       own_domains ? "own" : "one", level_name, cnt, len, window,
	       bench_median(rates + 1, (size_t)rounds), bench_median(ns + 1, (size_t)rounds),
	       bench_median(insns + 1, (size_t)rounds));
	fflush(stdout);
}

static bool set_level(const char *name)
{
	static const struct {
		const char *name;
		enum fi_threading level;
	} levels[] = { { "safe", FI_THREAD_SAFE },
		       { "fid", FI_THREAD_FID },
		       { "endpoint", FI_THREAD_ENDPOINT },
		       { "completion", FI_THREAD_COMPLETION },
		       { "domain", FI_THREAD_DOMAIN } };

	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		if (strcmp(name, levels[i].name))
			continue;
		level = levels[i].level;
		level_name = levels[i].name;
		return true;
	}
	return false;
}

static bool set_place(const char *name)
{
	own_domains = !strcmp(name, "own");
	return own_domains || !strcmp(name, "one");
}

int main(int argc, char **argv)
{
	bool ok = true;
	int opt, i;

	while ((opt = getopt(argc, argv, "p:m:l:s:w:T:n:")) != -1) {
		switch (opt) {
		case 'p': provider = optarg; break;
		case 'm': ok &= set_place(optarg); break;
		case 'l': ok &= set_level(optarg); break;
		case 's': len = strtoul(optarg, NULL, 0); break;
		case 'w': window = atoi(optarg); break;
		case 'T': round_ms = atol(optarg); break;
		case 'n': rounds = atoi(optarg); break;
		default: return 2;
		}
	}
	if (!ok || len > sizeof(workers[0].in) || window < 1 || window > WINDOW_MAX || rounds < 1 ||
	    rounds > ROUNDS_MAX || round_ms < 1)
		return 2;
	find();
	printf("# provider domains level      threads   size window   M msgs/s cpu ns/msg"
	       "  instr./msg\n");
	for (i = optind; i < argc; i++)
		measure(atoi(argv[i]));
	if (optind == argc) {
		measure(1);
		measure(2);
	}
	fi_close(&fabric->fid);
	fi_freeinfo(info);
	return 0;
}
