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
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kv_conf.h"
#include "kv_cores.h"
#include "kv_idle.h"
#include "kv_node.h"
#include "kv_report.h"

#define KV_RANKS_MAX 1024u

static uint32_t kv_rank, kv_ranks;
static MPI_Comm kv_comm;   /* the nodes that take part in sums now */
static MPI_Comm kv_living; /* all nodes but one that will stop or die; null there */

/* Returns the largest value of all nodes. */
static int kv_any(int value)
{
	int any = 0;

	MPI_Allreduce(&value, &any, 1, MPI_INT, MPI_MAX, kv_comm);
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

	MPI_Reduce(own, &all, sizeof(all) / sizeof(uint64_t), MPI_UINT64_T, MPI_SUM, 0, kv_comm);
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

/* Returns the work of the adapters between two readings, and the queue pairs of the second one. */
static struct kv_adapter kv_adapter_since(const struct kv_adapter *now,
					  const struct kv_adapter *then)
{
	return (struct kv_adapter){
		.doorbells = now->doorbells - then->doorbells,
		.cqes = now->cqes - then->cqes,
		.packets = now->packets - then->packets,
		.qps = now->qps,
	};
}

/* Returns the responses of all nodes but the last to each other. Collective in kv_living. */
static uint64_t kv_add_others(const struct kv_sums *added)
{
	uint64_t own = added->done - added->last, all = 0;

	if (kv_living != MPI_COMM_NULL)
		MPI_Reduce(&own, &all, 1, MPI_UINT64_T, MPI_SUM, 0, kv_living);
	return all;
}

static struct kv_result kv_run(const struct kv_node *node, uint32_t index)
{
	struct kv_result result = { .counts_insns = !kv_any(!kv_node_counts_insns(node)) };
	struct kv_sums before, after, added;
	struct kv_adapter work_before, work_after;
	uint64_t start, memory;

	MPI_Barrier(kv_comm);
	start = kv_now_ns();
	before = kv_node_sums(node);
	kv_adapter_read(&work_before);
	kv_wait(node, index, start + (uint64_t)(node->conf->duration * 1e9));
	after = kv_node_sums(node);
	result.on_adapter = kv_adapter_read(&work_after);
	result.adapter = kv_adapter_since(&work_after, &work_before);
	result.seconds = (double)(kv_now_ns() - start) * 1e-9;
	added = kv_sums_since(&after, &before);
	result.sums = kv_add_nodes(&added);
	result.others = kv_add_others(&added);
	memory = kv_node_memory(node);
	MPI_Reduce(&memory, &result.memory, 1, MPI_UINT64_T, MPI_SUM, 0, kv_comm);
	return result;
}

/* Stops this process, with all its threads, for the duration of a run. */
static void kv_stop_self(const struct kv_conf *conf)
{
	pid_t self = getpid(), waker = fork();

	if (!waker) {
		kv_sleep_until(kv_now_ns() + (uint64_t)(conf->duration * 1e9));
		kill(self, SIGCONT);
		_exit(0);
	}
	if (waker > 0) {
		raise(SIGSTOP);
		waitpid(waker, NULL, 0);
	}
}

/* Run during which the last node stops or dies. The others measure it without that node. */
static struct kv_result kv_fatal_run(const struct kv_node *node, uint32_t index)
{
	struct kv_result result = { .seconds = 1 };

	MPI_Barrier(kv_comm);
	if (kv_living == MPI_COMM_NULL) {
		if (node->conf->fate == KV_DIES)
			raise(SIGKILL);
		kv_stop_self(node->conf);
		return result;
	}
	kv_comm = kv_living;
	result = kv_run(node, index);
	if (node->conf->fate == KV_STOPS)
		kv_comm = MPI_COMM_WORLD;
	return result;
}

static void kv_runs(const struct kv_node *node, struct kv_result *results)
{
	const struct kv_conf *conf = node->conf;

	for (uint32_t i = 0; i < conf->runs; i++) {
		results[i] = conf->fate && i == kv_conf_fatal_run(conf) ? kv_fatal_run(node, i)
									: kv_run(node, i);
		if (!kv_rank)
			kv_report_run(conf, kv_ranks, i, &results[i]);
	}
}

/* Adds up and reports the results of all runs. Clients and daemons have ended. */
static void kv_finish(const struct kv_node *node, const struct kv_result *results)
{
	struct kv_sums own = kv_node_sums(node), all = kv_add_nodes(&own);
	uint64_t wait = kv_node_error_wait(node), longest = 0;
	static struct bench_hist mine, total;

	kv_node_latency(node, &mine);
	MPI_Reduce(mine.count, total.count, BENCH_HIST_BUCKETS, MPI_UINT64_T, MPI_SUM, 0, kv_comm);
	MPI_Reduce(&wait, &longest, 1, MPI_UINT64_T, MPI_MAX, 0, kv_comm);
	if (!kv_rank && node->conf->fate)
		kv_report_fate(node->conf, kv_ranks, results, longest);
	if (!kv_rank)
		kv_report_end(node->conf, kv_ranks, results, &all, &total);
}

/* Runs the closed loop and reports. Returns 0, or -1 without memory. */
static int kv_measure(struct kv_node *node)
{
	const struct kv_conf *conf = node->conf;
	struct kv_result *results = calloc(conf->runs, sizeof(*results));
	int no_insns;

	if (kv_any(!results)) {
		free(results);
		return -1;
	}
	no_insns = kv_any(!kv_node_counts_insns(node));
	if (!kv_rank)
		kv_report_begin(conf, kv_ranks, !no_insns);
	kv_node_warm(node);
	MPI_Barrier(kv_comm);
	kv_board_enter(node->board, KV_RUN);
	kv_runs(node, results);
	kv_node_drain(node);
	MPI_Barrier(kv_comm); /* all requests of all nodes have their responses */
	kv_node_stop(node);
	kv_finish(node, results);
	free(results);
	return 0;
}

/* Returns true, with a message, if something that was printed could not be written. */
static bool kv_unwritten(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return false;
	fprintf(stderr, "copyrpc_benchkv: the results could not be written\n");
	return true;
}

/* Ends all nodes, since one of them has failed and said why. */
static void kv_give_up(void)
{
	fflush(NULL);
	MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
}

/* Ends this process once all living nodes are here. */
static void kv_leave(int failed)
{
	fflush(NULL);
	MPI_Barrier(kv_living);
	_exit(failed ? EXIT_FAILURE : EXIT_SUCCESS);
}

/* Says once that nodes are bound to fewer processors than they could use. */
static void kv_warn_cores(uint32_t threads)
{
	uint32_t lacking = kv_cores_lacking(threads), most = 0;

	MPI_Reduce(&lacking, &most, 1, MPI_UINT32_T, MPI_MAX, 0, kv_comm);
	if (most)
		fprintf(stderr,
			"copyrpc_benchkv: the %u daemons and clients of a node share %u "
			"processor%s, to which they are bound; with mpirun --bind-to none they "
			"may use all\n",
			threads, most, most == 1 ? "" : "s");
}

/* Determines which processors the threads of this node use, beside those of others on its host. */
static void kv_find_cores(struct kv_node *node)
{
	uint32_t threads = node->conf->daemons + node->conf->clients;
	int place, nodes;
	MPI_Comm host;

	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, (int)kv_rank, MPI_INFO_NULL,
			    &host);
	MPI_Comm_rank(host, &place);
	MPI_Comm_size(host, &nodes);
	MPI_Comm_free(&host);
	node->board->first_core = (uint32_t)place * threads;
	node->board->crowded = kv_cores_usable() < (uint32_t)nodes * threads;
	kv_warn_cores(threads);
}

static int kv_bench(struct kv_node *node)
{
	int failed;

	kv_find_cores(node);
	if (kv_any(kv_node_open(node, kv_rank, kv_ranks) != 0) || kv_exchange_names(node) ||
	    kv_any(kv_node_connect(node) != 0) || kv_any(kv_node_start(node) != 0) ||
	    kv_measure(node))
		kv_give_up();
	failed = kv_any(kv_node_failed(node) || kv_unwritten());
	kv_node_close(node);
	return failed;
}

int main(int argc, char **argv)
{
	static struct kv_conf conf;
	static struct kv_node node;
	int ret = kv_conf_parse(&conf, argc, argv), level, rank, ranks;

	if (ret)
		return ret < 0 ? 2 : kv_unwritten();
	/* Processes are forked before MPI and libfabric have threads and devices. */
	if (kv_node_alloc(&node, &conf, KV_RANKS_MAX))
		return EXIT_FAILURE;
	MPI_Init_thread(&argc, &argv,
			conf.backend == KV_MPI ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	kv_rank = (uint32_t)rank;
	kv_ranks = (uint32_t)ranks;
	kv_comm = MPI_COMM_WORLD;
	if (conf.fate && ranks < 3) {
		if (!rank)
			fprintf(stderr, "copyrpc_benchkv: -x needs 3 nodes or more\n");
		kv_give_up();
	}
	if (kv_ranks > KV_RANKS_MAX || (conf.backend == KV_MPI && level < MPI_THREAD_MULTIPLE)) {
		if (!rank)
			fprintf(stderr,
				"copyrpc_benchkv: at most %u nodes; -b mpi needs "
				"MPI_THREAD_MULTIPLE\n",
				KV_RANKS_MAX);
		kv_give_up();
	}
	MPI_Comm_split(MPI_COMM_WORLD, conf.fate && rank == ranks - 1 ? MPI_UNDEFINED : 0, rank,
		       &kv_living);
	ret = kv_bench(&node);
	if (conf.fate == KV_DIES)
		kv_leave(ret); /* MPI_Finalize would wait for the dead node */
	MPI_Finalize();
	return ret ? EXIT_FAILURE : EXIT_SUCCESS;
}
