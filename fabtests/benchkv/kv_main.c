/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * copyrpc_benchkv: a distributed key-value store that measures how clients of a node reach other
 * nodes. Manual page: copyrpc_benchkv(1).
 *
 * One MPI rank is one node. MPI starts the nodes, exchanges their addresses and adds up their
 * counters; requests travel over local channels (copyrpc/local.h) and copyrpc's calls, or with the
 * back end "mpi" as MPI messages. Each response is verified by its client; the exit status is 1 if
 * one was wrong or lost.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kv_conf.h"
#include "kv_idle.h"
#include "kv_node.h"
#include "kv_report.h"

#define KV_RANKS_MAX 1024u

static uint32_t kv_rank, kv_ranks;

/* Returns the largest value of all nodes. */
static int kv_any(int value)
{
	int any = 0;

	MPI_Allreduce(&value, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
	return any;
}

/* Publishes the addresses of all nodes on the boards. */
static int kv_exchange_names(struct kv_node *node)
{
	struct kv_name *own = calloc(node->conf->daemons, sizeof(*own));
	uint32_t cnt;

	if (!own)
		return -1;
	cnt = kv_node_names(node, own);
	MPI_Allgather(own, (int)(cnt * sizeof(*own)), MPI_BYTE, node->board->names,
		      (int)(cnt * sizeof(*own)), MPI_BYTE, MPI_COMM_WORLD);
	node->board->name_cnt = cnt * kv_ranks;
	free(own);
	return 0;
}

static void kv_sleep_until(uint64_t ns)
{
	struct timespec ts = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL))
		;
}

/* Waits until `end`. Rank 0 prints its node's rate once a second if asked to. */
static void kv_wait(const struct kv_node *node, uint32_t run, uint64_t end)
{
	uint64_t last = kv_now_ns(), done = kv_node_sums(node).done, now;

	while (node->conf->progress && !kv_rank && last + 1000000000 < end) {
		uint64_t before = done;

		kv_sleep_until(last + 1000000000);
		now = kv_now_ns();
		done = kv_node_sums(node).done;
		fprintf(stderr, "run %u of %u: %.0f requests/s on node 0\n", run + 1,
			node->conf->runs, (double)(done - before) * 1e9 / (double)(now - last));
		last = now;
	}
	kv_sleep_until(end);
}

/* Adds up a struct of counters over all nodes, on rank 0. */
static struct kv_sums kv_add_nodes(const struct kv_sums *own)
{
	struct kv_sums all = { .done = 0 };

	MPI_Reduce(own, &all, sizeof(all) / sizeof(uint64_t), MPI_UINT64_T, MPI_SUM, 0,
		   MPI_COMM_WORLD);
	return all;
}

static struct kv_sums kv_sums_since(const struct kv_sums *now, const struct kv_sums *then)
{
	struct kv_sums added;
	const uint64_t *a = (const uint64_t *)now, *b = (const uint64_t *)then;

	for (size_t i = 0; i < sizeof(added) / sizeof(uint64_t); i++)
		((uint64_t *)&added)[i] = a[i] - b[i];
	return added;
}

static struct kv_result kv_run(const struct kv_node *node, uint32_t index)
{
	struct kv_result result;
	struct kv_sums before, after, added;
	uint64_t start;

	MPI_Barrier(MPI_COMM_WORLD);
	start = kv_now_ns();
	before = kv_node_sums(node);
	kv_wait(node, index, start + (uint64_t)(node->conf->duration * 1e9));
	after = kv_node_sums(node);
	result.seconds = (double)(kv_now_ns() - start) * 1e-9;
	added = kv_sums_since(&after, &before);
	result.sums = kv_add_nodes(&added);
	return result;
}

/* Runs the closed loop and reports. Returns 0, or -1 without memory. */
static int kv_measure(struct kv_node *node)
{
	const struct kv_conf *conf = node->conf;
	struct kv_result *results = calloc(conf->runs, sizeof(*results));

	if (kv_any(!results)) {
		free(results);
		return -1;
	}
	if (!kv_rank)
		kv_report_begin(conf, kv_ranks);
	kv_board_enter(node->board, KV_RUN);
	for (uint32_t i = 0; i < conf->runs; i++) {
		results[i] = kv_run(node, i);
		if (!kv_rank)
			kv_report_run(conf, kv_ranks, i, &results[i]);
	}
	kv_node_drain(node);
	MPI_Barrier(MPI_COMM_WORLD); /* all requests of all nodes have their responses */
	kv_node_stop(node);

	struct kv_sums own = kv_node_sums(node), all = kv_add_nodes(&own);
	static struct kv_hist mine, total;

	kv_node_latency(node, &mine);
	MPI_Reduce(mine.count, total.count, KV_HIST_BUCKETS, MPI_UINT64_T, MPI_SUM, 0,
		   MPI_COMM_WORLD);
	if (!kv_rank)
		kv_report_end(conf, kv_ranks, results, &all, &total);
	free(results);
	return 0;
}

/* Ends all nodes, since one of them has failed and said why. */
static void kv_give_up(void)
{
	fflush(NULL);
	MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
}

static int kv_bench(struct kv_node *node)
{
	int failed;

	if (kv_any(kv_node_open(node, kv_rank, kv_ranks) != 0) || kv_exchange_names(node) ||
	    kv_any(kv_node_connect(node) != 0) || kv_any(kv_node_start(node) != 0) ||
	    kv_measure(node))
		kv_give_up();
	failed = kv_any(kv_node_failed(node));
	kv_node_close(node);
	return failed;
}

int main(int argc, char **argv)
{
	static struct kv_conf conf;
	static struct kv_node node;
	int ret = kv_conf_parse(&conf, argc, argv), level, rank, ranks;

	if (ret)
		return ret < 0 ? 2 : 0;
	/* Processes are forked before MPI and libfabric have threads and devices. */
	if (kv_node_alloc(&node, &conf, KV_RANKS_MAX))
		return EXIT_FAILURE;
	MPI_Init_thread(&argc, &argv,
			conf.backend == KV_MPI ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	kv_rank = (uint32_t)rank;
	kv_ranks = (uint32_t)ranks;
	if (kv_ranks > KV_RANKS_MAX || (conf.backend == KV_MPI && level < MPI_THREAD_MULTIPLE)) {
		if (!rank)
			fprintf(stderr,
				"copyrpc_benchkv: at most %u nodes; -b mpi needs "
				"MPI_THREAD_MULTIPLE\n",
				KV_RANKS_MAX);
		kv_give_up();
	}
	ret = kv_bench(&node);
	MPI_Finalize();
	return ret ? EXIT_FAILURE : EXIT_SUCCESS;
}
