/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A node of the key-value benchmark: see kv_node.h. */
#include "kv_node.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kv_client.h"
#include "kv_cores.h"
#include "kv_insn.h"
#include "kv_proc.h"

#define KV_FLUX_DEPTH 256 /* requests between two daemons */
#define KV_WARM_EACH  16  /* requests of a client for each connection that it may use */
#define KV_WARM_MS    60000

static int kv_node_error(const char *what, int ret)
{
	fprintf(stderr, "copyrpc_benchkv: %s: %s\n", what, strerror(-ret));
	return ret;
}

/* Returns zeroed memory that forked clients share, or NULL. */
static void *kv_shared_alloc(size_t len)
{
	void *at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

struct kv_board *kv_board_alloc(uint32_t clients, uint32_t names)
{
	struct kv_board *board = kv_shared_alloc(sizeof(*board));

	if (!board)
		return NULL;
	board->tallies = kv_shared_alloc(clients * sizeof(*board->tallies));
	board->names = kv_shared_alloc(names * sizeof(*board->names));
	return board->tallies && board->names ? board : NULL;
}

/* ---- clients ---- */

/* Binds the calling thread, number `index` of the node's, to a processor if the user wants that. */
static void kv_bind(const struct kv_conf *conf, const struct kv_board *board, uint32_t index)
{
	if (conf->cores)
		kv_cores_bind(board->first_core + index);
}

/* Waits in a forked client until its node is set up, then runs it. */
static void kv_client_process(struct kv_node *node, uint32_t index)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (kv_board_phase(node->board) == KV_SETUP)
		usleep(1000);
	kv_bind(node->conf, node->board, node->conf->daemons + index);
	if (kv_board_phase(node->board) != KV_END)
		kv_client_run(node->conf, node->board, index);
	_exit(0);
}

static int kv_node_fork(struct kv_node *node)
{
	for (uint32_t i = 0; i < node->conf->clients; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return kv_node_error("fork", -errno);
		if (!pid)
			kv_client_process(node, i);
		node->client_pids[i] = pid;
		node->clients_started++;
	}
	return 0;
}

int kv_node_alloc(struct kv_node *node, const struct kv_conf *conf, uint32_t ranks_max)
{
	*node = (struct kv_node){
		.conf = conf,
		.board = kv_board_alloc(conf->clients, ranks_max * conf->daemons),
		.ipc = calloc(conf->daemons, sizeof(struct crl_server *)),
		.daemons = calloc(conf->daemons, sizeof(struct kv_daemon)),
		.tallies = kv_shared_alloc(conf->daemons * sizeof(struct kv_daemon_tally)),
		.daemon_threads = calloc(conf->daemons, sizeof(pthread_t)),
		.client_threads = calloc(conf->clients, sizeof(pthread_t)),
		.client_pids = calloc(conf->clients, sizeof(pid_t)),
	};
	if (!node->board || !node->ipc || !node->daemons || !node->tallies ||
	    !node->daemon_threads || !node->client_threads || !node->client_pids)
		return kv_node_error("memory", -ENOMEM);
	node->board->node_pid = getpid();
	return conf->processes ? kv_node_fork(node) : 0;
}

/* ---- set-up ---- */

static int kv_node_open_server(struct kv_node *node, enum crl_kind kind, uint32_t daemon,
			       struct crl_server **server)
{
	struct crl_options options = {
		.max_clients = node->conf->clients,
		.depth = node->conf->depth,
		.request_max = (uint32_t)kv_conf_request_max(node->conf),
		.response_max = (uint32_t)kv_conf_response_max(node->conf),
	};
	char name[KV_CHANNEL_NAME_MAX];
	int ret;

	kv_channel_name(name, node->board->node_pid, daemon);
	ret = crl_server_open(server, kind, name, &options);
	return ret ? kv_node_error(name, ret) : 0;
}

static int kv_node_open_channels(struct kv_node *node)
{
	const struct kv_conf *conf = node->conf;
	struct crl_options options = {
		.depth = KV_FLUX_DEPTH,
		.request_max = (uint32_t)kv_conf_request_max(conf),
		.response_max = (uint32_t)kv_conf_response_max(conf),
	};
	int ret = 0;

	for (uint32_t i = 0; i < conf->daemons && !ret; i++)
		ret = kv_node_open_server(node, CRL_IPC, i, &node->ipc[i]);
	if (!ret && (conf->backend == KV_DELEGATION || conf->backend == KV_MPI))
		ret = kv_node_open_server(node, CRL_DELEGATION, KV_CHANNEL_RING, &node->ring);
	if (!ret && (ret = crl_flux_open(&node->flux, conf->daemons, &options)))
		kv_node_error("flux", ret);
	return ret;
}

/* Returns true if daemon `id` has an endpoint. */
static bool kv_node_has_net(const struct kv_node *node, uint32_t id)
{
	enum kv_backend backend = node->conf->backend;

	return node->board->ranks > 1 && (!id || backend == KV_META || backend == KV_DIRECT);
}

static int kv_node_open_daemon(struct kv_node *node, uint32_t id)
{
	struct kv_daemon *d = &node->daemons[id];
	size_t request_max = kv_conf_request_max(node->conf);
	size_t response_max = kv_conf_response_max(node->conf);
	int ret = 0;

	*d = (struct kv_daemon){
		.conf = node->conf,
		.board = node->board,
		.id = id,
		.ipc = node->ipc[id],
		.ring = id ? NULL : node->ring,
		.member = crl_flux_member(node->flux, id),
		.tally = &node->tallies[id],
	};
	atomic_store(&d->tally->insn_fd, -1);
	if (kv_node_has_net(node, id))
		ret = node->conf->backend == KV_MPI
			      ? kv_net_open_mpi(&d->net, request_max, response_max)
			      : kv_net_open_rpc(&d->net, request_max, response_max);
	if (!ret && (ret = kv_daemon_init(d)))
		kv_node_error("memory", ret);
	return ret;
}

int kv_node_open(struct kv_node *node, uint32_t rank, uint32_t ranks)
{
	int ret;

	node->board->rank = rank;
	node->board->ranks = ranks;
	ret = kv_node_open_channels(node);
	for (uint32_t i = 0; i < node->conf->daemons && !ret; i++)
		ret = kv_node_open_daemon(node, i);
	return ret;
}

uint32_t kv_node_names(const struct kv_node *node, struct kv_name *names)
{
	uint32_t cnt = 0;

	for (uint32_t i = 0; i < node->conf->daemons; i++)
		if (node->daemons[i].net)
			names[cnt++] = node->daemons[i].net->name;
	return cnt;
}

/*
 * Connects a daemon: its target `rank` is the endpoint of that node which calls back to this one,
 * so that two nodes have one connection.
 */
static int kv_node_connect_daemon(struct kv_node *node, struct kv_daemon *d)
{
	struct kv_board *board = node->board;
	uint32_t each = board->name_cnt / board->ranks;
	struct kv_name *targets = calloc(board->ranks, sizeof(*targets));
	int ret;

	if (!targets)
		return kv_node_error("memory", -ENOMEM);
	for (uint32_t rank = 0; rank < board->ranks; rank++)
		targets[rank] = board->names[rank * each +
					     kv_daemon_caller(node->conf, board->rank) % each];
	ret = d->net->ops->connect(d->net, targets, board->ranks);
	free(targets);
	return ret;
}

int kv_node_connect(struct kv_node *node)
{
	int ret = 0;

	for (uint32_t i = 0; i < node->conf->daemons && !ret; i++)
		if (node->daemons[i].net)
			ret = kv_node_connect_daemon(node, &node->daemons[i]);
	return ret;
}

/* ---- life ---- */

static void *kv_daemon_main(void *arg)
{
	struct kv_daemon *d = arg;

	kv_bind(d->conf, d->board, d->id);
	kv_daemon_run(d);
	return NULL;
}

struct kv_client_start {
	struct kv_node *node;
	uint32_t index;
};

static void *kv_client_main(void *arg)
{
	struct kv_client_start start = *(struct kv_client_start *)arg;

	free(arg);
	kv_bind(start.node->conf, start.node->board, start.node->conf->daemons + start.index);
	kv_client_run(start.node->conf, start.node->board, start.index);
	return NULL;
}

static int kv_node_start_client(struct kv_node *node, uint32_t index)
{
	struct kv_client_start *start = malloc(sizeof(*start));
	int ret;

	if (!start)
		return kv_node_error("memory", -ENOMEM);
	*start = (struct kv_client_start){ node, index };
	ret = pthread_create(&node->client_threads[index], NULL, kv_client_main, start);
	if (ret) {
		free(start);
		return kv_node_error("thread", -ret);
	}
	node->clients_started++;
	return 0;
}

/* Returns true if a client process has ended, however. Leaves it to waitpid(2). */
static bool kv_node_client_ended(const struct kv_node *node, uint32_t index)
{
	siginfo_t info = { .si_pid = 0 };

	return node->conf->processes &&
	       !waitid(P_PID, (id_t)node->client_pids[index], &info, WEXITED | WNOHANG | WNOWAIT) &&
	       info.si_pid;
}

/* Waits for the end of a client process. One that was killed has failed, and has no tally. */
static void kv_node_join_client(struct kv_node *node, uint32_t index)
{
	int status = 0;

	if (waitpid(node->client_pids[index], &status, 0) < 0 || !WIFSIGNALED(status))
		return;
	fprintf(stderr, "copyrpc_benchkv: client %u of node %u was killed by signal %d\n", index,
		node->board->rank, WTERMSIG(status));
	atomic_store(&node->board->tallies[index].failed, true);
}

/* Waits until all clients are connected. Returns 0, or -EIO if one has failed. */
static int kv_node_await_clients(struct kv_node *node)
{
	for (uint32_t i = 0; i < node->conf->clients; i++)
		while (!atomic_load(&node->board->tallies[i].ready)) {
			if (atomic_load(&node->board->tallies[i].failed))
				return -EIO;
			if (kv_node_client_ended(node, i) &&
			    !atomic_load(&node->board->tallies[i].ready))
				return kv_node_error("a client process", -ECHILD);
			usleep(1000);
		}
	return 0;
}

int kv_node_start(struct kv_node *node)
{
	int ret = 0;

	kv_board_enter(node->board, KV_CONNECT);
	for (uint32_t i = 0; i < node->conf->daemons; i++) {
		ret = pthread_create(&node->daemon_threads[i], NULL, kv_daemon_main,
				     &node->daemons[i]);
		if (ret)
			return kv_node_error("thread", -ret);
		node->daemons_started++;
	}
	for (uint32_t i = 0; i < node->conf->clients && !node->conf->processes && !ret; i++)
		ret = kv_node_start_client(node, i);
	return ret ? ret : kv_node_await_clients(node);
}

void kv_node_warm(struct kv_node *node)
{
	uint64_t wanted = (uint64_t)KV_WARM_EACH * node->board->ranks * node->conf->daemons;
	uint32_t ready = 0;

	kv_board_enter(node->board, KV_WARM);
	for (int ms = 0; ms < KV_WARM_MS && ready < node->conf->clients; ms++) {
		struct kv_tally *tally = &node->board->tallies[ready];

		if (atomic_load(&tally->done) >= wanted || atomic_load(&tally->failed) ||
		    kv_node_client_ended(node, ready))
			ready++;
		else
			usleep(1000);
	}
}

static void kv_node_add_clients(const struct kv_node *node, struct kv_sums *sums)
{
	for (uint32_t i = 0; i < node->conf->clients; i++) {
		struct kv_tally *tally = &node->board->tallies[i];

		sums->done += atomic_load(&tally->done);
		sums->remote += atomic_load(&tally->remote);
		sums->last += atomic_load(&tally->last);
		sums->unreachable += atomic_load(&tally->unreachable);
		sums->faults += atomic_load(&tally->faults);
		sums->lost += atomic_load(&tally->lost);
	}
}

static void kv_node_add_daemons(const struct kv_node *node, struct kv_sums *sums)
{
	for (uint32_t i = 0; i < node->conf->daemons; i++) {
		struct kv_daemon_tally *tally = &node->tallies[i];

		sums->loops += atomic_load(&tally->loops);
		sums->sleeps += atomic_load(&tally->sleeps);
		sums->executed += atomic_load(&tally->executed);
		sums->forwarded += atomic_load(&tally->forwarded);
		sums->calls += atomic_load(&tally->calls);
		sums->batches += atomic_load(&tally->batches);
		sums->waited += atomic_load(&tally->waited);
		sums->insns += kv_insn_read(atomic_load(&tally->insn_fd));
	}
}

struct kv_sums kv_node_sums(const struct kv_node *node)
{
	struct kv_sums sums = { .done = 0 };
	struct rusage usage;

	kv_node_add_clients(node, &sums);
	kv_node_add_daemons(node, &sums);
	getrusage(RUSAGE_SELF, &usage);
	sums.switches = (uint64_t)(usage.ru_nvcsw + usage.ru_nivcsw);
	sums.cpu = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
		   (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
	for (uint32_t i = 0; i < node->conf->clients && node->client_pids[i]; i++) {
		sums.switches += kv_proc_switches(node->client_pids[i]);
		sums.cpu += kv_proc_cpu(node->client_pids[i]);
	}
	return sums;
}

bool kv_node_counts_insns(const struct kv_node *node)
{
	for (uint32_t i = 0; i < node->conf->daemons; i++)
		if (atomic_load(&node->tallies[i].insn_fd) < 0)
			return false;
	return true;
}

uint64_t kv_node_memory(const struct kv_node *node)
{
	uint64_t kib = kv_proc_memory(getpid());

	for (uint32_t i = 0; i < node->conf->clients && node->client_pids[i]; i++)
		kib += kv_proc_memory(node->client_pids[i]);
	return kib;
}

void kv_node_drain(struct kv_node *node)
{
	kv_board_enter(node->board, KV_DRAIN);
	for (uint32_t i = 0; i < node->clients_started; i++)
		if (node->conf->processes)
			kv_node_join_client(node, i);
		else
			pthread_join(node->client_threads[i], NULL);
	memset(node->client_pids, 0, node->conf->clients * sizeof(*node->client_pids));
	node->clients_started = 0;
}

void kv_node_stop(struct kv_node *node)
{
	kv_board_enter(node->board, KV_END);
	for (uint32_t i = 0; i < node->daemons_started; i++)
		pthread_join(node->daemon_threads[i], NULL);
	node->daemons_started = 0;
}

void kv_node_close(struct kv_node *node)
{
	const struct kv_conf *conf = node->conf;

	for (uint32_t i = 0; node->daemons && i < conf->daemons; i++) {
		if (node->daemons[i].net)
			node->daemons[i].net->ops->close(node->daemons[i].net);
		kv_daemon_fini(&node->daemons[i]);
		if (node->ipc[i])
			crl_server_close(node->ipc[i]);
	}
	if (node->ring)
		crl_server_close(node->ring);
	if (node->flux)
		crl_flux_close(node->flux);
	free(node->ipc);
	free(node->daemons);
	free(node->daemon_threads);
	free(node->client_threads);
	free(node->client_pids);
}

bool kv_node_failed(const struct kv_node *node)
{
	struct kv_sums sums = kv_node_sums(node);

	for (uint32_t i = 0; i < node->conf->clients; i++)
		if (atomic_load(&node->board->tallies[i].failed))
			return true;
	return sums.faults || sums.lost;
}

uint64_t kv_node_error_wait(const struct kv_node *node)
{
	uint64_t longest = 0;

	for (uint32_t i = 0; i < node->conf->clients; i++) {
		uint64_t wait = atomic_load(&node->board->tallies[i].error_wait);

		longest = wait > longest ? wait : longest;
	}
	return longest;
}

void kv_node_latency(const struct kv_node *node, struct bench_hist *hist)
{
	for (uint32_t i = 0; i < node->conf->clients; i++)
		bench_hist_merge(hist, &node->board->tallies[i].latency);
}
