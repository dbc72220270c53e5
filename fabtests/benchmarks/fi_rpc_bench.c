/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Cost of a call of the RPC extension, against the same exchange as two messages.
 *
 * A closed loop between two processes: N requests are in flight at any time, and each response
 * starts the next one. They run once as calls (fi_copyrpc_call, replied to in batches as received),
 * once as tagged messages with receives posted ahead, injected both ways. Samples of both
 * alternate, so that other processes disturb both alike. The medians are reported as rate and as
 * time of one round trip, and the ratio of the rates.
 *
 * Parent: caller. Child: callee. Addresses and the present mode are in shared memory.
 */
#include "bench.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_ext_copyrpc.h>
#include <rdma/fi_tagged.h>

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define WINDOW_MAX  1024
#define SAMPLES_MAX 99
#define BATCH       64
#define TAG_ASK     1
#define TAG_REPLY   2

enum rpc_mode { RPC_CALLS, RPC_MESSAGES, RPC_MODES, RPC_STOP };

struct rpc_shared {
	int mode; /* enum rpc_mode: requested by the caller */
	int seen; /* mode that the callee has entered */
	bool named[2];
	char names[2][64];
};

struct rpc_op {
	struct fi_context2 context; /* first member */
	char *buf;
	bool receive;
};

struct rpc_node {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fi_copyrpc_ops *rpc;
	fi_addr_t peer;
	struct rpc_op ops[WINDOW_MAX];
	char *bytes;
};

static struct rpc_shared *shared;
static size_t size = 32;
static int windows[16] = { 1, 8, 64, 256 };
static int window_cnt = 4, samples = 21;
static long sample_us = 2000;
static const char *label = "";
static FILE *json;
static int cores[2] = { -1, -1 };

static void must(const char *what, long ret)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "fi_rpc_bench: %s: %s\n", what, fi_strerror((int)-ret));
	exit(EXIT_FAILURE);
}

static void node_open(struct rpc_node *n, int rank)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_CONTEXT };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	size_t len = sizeof(shared->names[rank]);

	hints->fabric_attr->prov_name = strdup("copyrpc");
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_TAGGED | FI_MSG;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	must("fi_getinfo",
	     fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", NULL, FI_SOURCE, hints, &n->info));
	fi_freeinfo(hints);
	must("fi_fabric", fi_fabric(n->info->fabric_attr, &n->fabric, NULL));
	must("fi_domain", fi_domain(n->fabric, n->info, &n->domain, NULL));
	must("fi_av_open", fi_av_open(n->domain, &av_attr, &n->av, NULL));
	must("fi_cq_open", fi_cq_open(n->domain, &cq_attr, &n->cq, NULL));
	must("fi_endpoint", fi_endpoint(n->domain, n->info, &n->ep, NULL));
	must("fi_ep_bind", fi_ep_bind(n->ep, &n->av->fid, 0));
	must("fi_ep_bind", fi_ep_bind(n->ep, &n->cq->fid, FI_TRANSMIT | FI_RECV));
	must("fi_enable", fi_enable(n->ep));
	must("fi_copyrpc_open", fi_copyrpc_open(&n->ep->fid, &n->rpc));
	must("fi_getname", fi_getname(&n->ep->fid, shared->names[rank], &len));
	__atomic_store_n(&shared->named[rank], true, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&shared->named[!rank], __ATOMIC_ACQUIRE))
		sched_yield();
	if (fi_av_insert(n->av, shared->names[!rank], 1, &n->peer, 0, NULL) != 1)
		must("fi_av_insert", -FI_EINVAL);
	n->bytes = calloc(WINDOW_MAX + 1, size);
	for (int i = 0; i < WINDOW_MAX; i++)
		n->ops[i].buf = n->bytes + (size_t)i * size;
}

static void node_close(struct rpc_node *n)
{
	must("fi_close", fi_close(&n->ep->fid));
	must("fi_close", fi_close(&n->cq->fid));
	must("fi_close", fi_close(&n->av->fid));
	must("fi_close", fi_close(&n->domain->fid));
	must("fi_close", fi_close(&n->fabric->fid));
	fi_freeinfo(n->info);
	free(n->bytes);
}

static ssize_t node_read(struct rpc_node *n, struct fi_cq_entry *entries)
{
	ssize_t cnt = fi_cq_read(n->cq, entries, BATCH);

	if (cnt == -FI_EAGAIN)
		return 0;
	must("fi_cq_read", cnt);
	return cnt;
}

static void node_recv(struct rpc_node *n, struct rpc_op *op, uint64_t tag)
{
	op->receive = true;
	must("fi_trecv", fi_trecv(n->ep, op->buf, size, NULL, n->peer, tag, 0, op));
}

static void node_send(struct rpc_node *n, const void *buf, uint64_t tag)
{
	ssize_t ret;

	while ((ret = fi_tinject(n->ep, buf, size, n->peer, tag)) == -FI_EAGAIN)
		fi_cq_read(n->cq, NULL, 0);
	must("fi_tinject", ret);
}

/* ---- the callee ---- */

static void callee_calls(struct rpc_node *n)
{
	struct fi_copyrpc_request reqs[BATCH];
	ssize_t cnt = fi_copyrpc_recv(n->rpc, n->ep, reqs, BATCH, 0);

	for (ssize_t i = 0; i < cnt; i++)
		must("fi_copyrpc_reply", fi_copyrpc_reply(n->rpc, n->ep, &reqs[i], reqs[i].data,
							  size, i + 1 < cnt ? FI_MORE : 0));
}

static void callee_messages(struct rpc_node *n)
{
	struct fi_cq_entry entries[BATCH];
	ssize_t cnt = node_read(n, entries);

	for (ssize_t i = 0; i < cnt; i++) {
		struct rpc_op *op = entries[i].op_context;

		node_send(n, op->buf, TAG_REPLY);
		node_recv(n, op, TAG_ASK);
	}
}

static void callee(void)
{
	static struct rpc_node n;
	int mode;

	bench_pin(cores[1]);
	node_open(&n, 1);
	for (int i = 0; i < WINDOW_MAX; i++)
		node_recv(&n, &n.ops[i], TAG_ASK);
	while ((mode = __atomic_load_n(&shared->mode, __ATOMIC_ACQUIRE)) != RPC_STOP) {
		__atomic_store_n(&shared->seen, mode, __ATOMIC_RELEASE);
		(mode == RPC_CALLS ? callee_calls : callee_messages)(&n);
	}
	node_close(&n);
}

/* ---- the caller ---- */

static void caller_start(struct rpc_node *n, struct rpc_op *op, enum rpc_mode mode, bool more)
{
	ssize_t ret;

	if (mode == RPC_MESSAGES) {
		node_recv(n, op, TAG_REPLY);
		node_send(n, n->bytes + WINDOW_MAX * size, TAG_ASK);
		return;
	}
	while ((ret = fi_copyrpc_call(n->rpc, n->ep, n->bytes + WINDOW_MAX * size, size, op->buf,
				      size, n->peer, op, more ? FI_MORE : 0)) == -FI_EAGAIN)
		fi_cq_read(n->cq, NULL, 0);
	must("fi_copyrpc_call", ret);
}

/* Runs `rounds` requests with `window` in flight. Returns seconds. */
static double caller_run(struct rpc_node *n, enum rpc_mode mode, int window, long rounds)
{
	struct fi_cq_entry entries[BATCH];
	long begun = 0, ended = 0;
	uint64_t start;
	ssize_t cnt;

	__atomic_store_n(&shared->mode, (int)mode, __ATOMIC_RELEASE);
	while (__atomic_load_n(&shared->seen, __ATOMIC_ACQUIRE) != (int)mode)
		sched_yield();
	start = bench_now_ns();
	for (; begun < window && begun < rounds; begun++)
		caller_start(n, &n->ops[begun], mode, begun + 1 < window);
	while (ended < rounds) {
		cnt = node_read(n, entries);
		ended += cnt;
		for (ssize_t i = 0; i < cnt && begun < rounds; i++, begun++)
			caller_start(n, entries[i].op_context, mode, i + 1 < cnt);
	}
	return (double)(bench_now_ns() - start) * 1e-9;
}

static void report(int window, long rounds, const double median[RPC_MODES])
{
	double rate[RPC_MODES], us[RPC_MODES];

	for (int m = 0; m < RPC_MODES; m++) {
		rate[m] = (double)rounds / median[m] * 1e-6;
		us[m] = median[m] * 1e6 / (double)rounds * window;
	}
	printf("%9d %12.3f %12.3f %12.2f %12.2f %9.2f\n", window, rate[RPC_CALLS],
	       rate[RPC_MESSAGES], us[RPC_CALLS], us[RPC_MESSAGES],
	       rate[RPC_CALLS] / rate[RPC_MESSAGES]);
	if (!json)
		return;
	for (int m = 0; m < RPC_MODES; m++)
		fprintf(json,
			"{\"bench\": \"fi_rpc_bench\", \"label\": \"%s\", \"test\": \"%s\", "
			"\"size\": %zu, \"in_flight\": %d, \"rate_mops\": %.4f, "
			"\"round_trip_us\": %.3f, \"samples\": %d}\n",
			label, m == RPC_CALLS ? "calls" : "messages", size, window, rate[m], us[m],
			samples);
}

static void measure(struct rpc_node *n, int window)
{
	static double taken[RPC_MODES][SAMPLES_MAX];
	double median[RPC_MODES];
	long rounds = 64;

	while (caller_run(n, RPC_MESSAGES, window, rounds) * 1e6 < (double)sample_us)
		rounds *= 2;
	caller_run(n, RPC_CALLS, window, rounds);
	for (int i = 0; i < samples; i++)
		for (int m = 0; m < RPC_MODES; m++)
			taken[m][i] = caller_run(n, (enum rpc_mode)m, window, rounds);
	for (int m = 0; m < RPC_MODES; m++)
		median[m] = bench_median(taken[m], (size_t)samples);
	report(window, rounds, median);
}

static void caller(void)
{
	static struct rpc_node n;

	bench_pin(cores[0]);
	node_open(&n, 0);
	printf("# %zu bytes each way%s%s\n", size, *label ? ", " : "", label);
	printf("%9s %12s %12s %12s %12s %9s\n", "in flight", "calls M/s", "msgs M/s", "call us",
	       "msg us", "ratio");
	for (int i = 0; i < window_cnt; i++)
		measure(&n, windows[i]);
	__atomic_store_n(&shared->mode, RPC_STOP, __ATOMIC_RELEASE);
	node_close(&n);
}

static void usage(void)
{
	fprintf(stderr, "usage: fi_rpc_bench [-s BYTES] [-w N,...] [-n SAMPLES] [-T US] [-c A,B] "
			"[-l LABEL] [-j FILE]\n");
	exit(2);
}

static void windows_parse(char *text)
{
	char *word;

	for (window_cnt = 0; window_cnt < 16 && (word = strtok(text, ",")); text = NULL) {
		windows[window_cnt] = atoi(word);
		if (windows[window_cnt] < 1 || windows[window_cnt] > WINDOW_MAX)
			usage();
		window_cnt++;
	}
}

static void options(int argc, char **argv)
{
	int opt;

	while ((opt = getopt(argc, argv, "s:w:n:T:c:l:j:")) != -1) {
		switch (opt) {
		case 's': size = strtoul(optarg, NULL, 0); break;
		case 'w': windows_parse(optarg); break;
		case 'n': samples = atoi(optarg); break;
		case 'T': sample_us = atol(optarg); break;
		case 'c':
			if (sscanf(optarg, "%d,%d", &cores[0], &cores[1]) != 2)
				usage();
			break;
		case 'l': label = optarg; break;
		case 'j': json = strcmp(optarg, "-") ? fopen(optarg, "a") : stdout; break;
		default: usage();
		}
	}
	if (samples < 1 || samples > SAMPLES_MAX || !size || size > 4096)
		usage();
}

int main(int argc, char **argv)
{
	pid_t child;

	options(argc, argv);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		return EXIT_FAILURE;
	shared->seen = -1;
	child = bench_fork();
	if (!child) {
		callee();
		return 0;
	}
	caller();
	bench_join(child);
	return 0;
}
