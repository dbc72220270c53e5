/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Cost of a remote request, counted instead of timed: two nodes of the key-value benchmark in one
 * process, whose clients and daemons take turns in one thread, each with one loop a round. Only
 * node 0 has clients, so its daemons send and those of node 1 receive.
 *
 * Counts work of the adapter under copyrpc_hca(1), exactly and by part. With a section, raises
 * SIGUSR2 before and after that part of each round, for insn_count; section "empty" is what the two
 * signals cost. fabtests/scripts/kv-cost runs it for all back ends.
 *
 * usage: kv_cost_bench ROUNDS none|empty|clients|sender|receiver [option of copyrpc_benchkv...]
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "benchmarks/cost.h"
#include "kv_client.h"
#include "kv_idle.h"
#include "kv_node.h"
#include "kv_proc.h"

#define KV_NODES   2
#define KV_PID_GAP (1 << 23) /* more than a process number: tells the channels of nodes apart */
#define KV_WARM    64        /* responses of each client before counting begins */
#define KV_WARM_NS 60000000000

enum kv_part {
	KV_PART_NONE,
	KV_PART_EMPTY,
	KV_PART_CLIENTS,
	KV_PART_SENDER,
	KV_PART_RECEIVER,
	KV_PARTS,
};

static const char *const kv_parts[KV_PARTS] = { "none", "empty", "clients", "sender", "receiver" };

static struct kv_conf conf;
static struct kv_node nodes[KV_NODES];
static struct kv_client **clients;
static struct kv_adapter work[KV_PARTS]; /* of the adapter, in each part */
static enum kv_part section;
static atomic_bool opened;

_Noreturn void cost_die(const char *what, const char *why)
{
	fprintf(stderr, "kv_cost_bench: %s: %s\n", what, why);
	exit(EXIT_FAILURE);
}

static void kv_exchange(void)
{
	struct kv_board *first = nodes[0].board;
	uint32_t each = 0;

	for (uint32_t i = 0; i < KV_NODES; i++)
		each = kv_node_names(&nodes[i], &first->names[i * each]);
	first->name_cnt = KV_NODES * each;
	for (uint32_t i = 1; i < KV_NODES; i++) {
		memcpy(nodes[i].board->names, first->names,
		       first->name_cnt * sizeof(*first->names));
		nodes[i].board->name_cnt = first->name_cnt;
	}
}

static void kv_open_nodes(void)
{
	for (uint32_t i = 0; i < KV_NODES; i++) {
		if (kv_node_alloc(&nodes[i], &conf, KV_NODES))
			cost_die("node", "not allocated");
		nodes[i].board->node_pid = getpid() + (int)i * KV_PID_GAP;
		if (kv_node_open(&nodes[i], i, KV_NODES))
			cost_die("node", "not opened");
	}
	kv_exchange();
	for (uint32_t i = 0; i < KV_NODES; i++)
		if (kv_node_connect(&nodes[i]))
			cost_die("node", "not connected");
}

/* Runs each daemon of a node once. */
static void kv_daemons(uint32_t node)
{
	for (uint32_t i = 0; i < conf.daemons; i++)
		kv_daemon_loop(&nodes[node].daemons[i]);
}

static void *kv_open_clients(void *arg)
{
	(void)arg;
	for (uint32_t i = 0; i < conf.clients; i++) {
		clients[i] = kv_client_open(&conf, nodes[0].board, i);
		if (!clients[i])
			cost_die("client", "not opened");
	}
	atomic_store(&opened, true);
	return NULL;
}

/* Opens the clients in a thread, since they wait for the daemons, which run here. */
static void kv_connect_clients(void)
{
	pthread_t thread;

	clients = calloc(conf.clients, sizeof(struct kv_client *));
	if (!clients || pthread_create(&thread, NULL, kv_open_clients, NULL))
		cost_die("clients", "no memory");
	while (!atomic_load(&opened))
		for (uint32_t i = 0; i < KV_NODES; i++)
			kv_daemons(i);
	pthread_join(thread, NULL);
}

static void kv_do_part(enum kv_part part, bool fill)
{
	if (part == KV_PART_CLIENTS)
		for (uint32_t i = 0; i < conf.clients; i++)
			if (kv_client_advance(clients[i], fill) < 0)
				cost_die("client", "failed");
	if (part == KV_PART_SENDER)
		kv_daemons(0);
	if (part == KV_PART_RECEIVER)
		kv_daemons(1);
}

static void kv_count_work(struct kv_adapter *sum, const struct kv_adapter *before)
{
	struct kv_adapter now;

	kv_adapter_read(&now);
	sum->doorbells += now.doorbells - before->doorbells;
	sum->cqes += now.cqes - before->cqes;
	sum->packets += now.packets - before->packets;
}

static void kv_count_part(enum kv_part part)
{
	struct kv_adapter before;

	kv_adapter_read(&before);
	if (part == section)
		raise(SIGUSR2);
	kv_do_part(part, true);
	if (part == section)
		raise(SIGUSR2);
	kv_count_work(&work[part], &before);
}

static uint64_t kv_min_done(void)
{
	uint64_t least = UINT64_MAX;

	for (uint32_t i = 0; i < conf.clients; i++) {
		uint64_t done = atomic_load(&nodes[0].board->tallies[i].done);

		least = done < least ? done : least;
	}
	return least;
}

/* Runs until connections are up and each client has had some responses. */
static void kv_warm(void)
{
	uint64_t end = kv_now_ns() + KV_WARM_NS;

	while (kv_min_done() < KV_WARM) {
		for (enum kv_part part = KV_PART_CLIENTS; part < KV_PARTS; part++)
			kv_do_part(part, true);
		if (kv_now_ns() > end)
			cost_die("nodes", "no responses");
	}
}

static void kv_count_rounds(long rounds)
{
	cost_clock_stop();
	while (rounds--)
		for (enum kv_part part = KV_PART_EMPTY; part < KV_PARTS; part++)
			kv_count_part(part);
	cost_clock_start();
}

static void kv_print(const struct kv_sums *before, const struct kv_sums *after, long rounds)
{
	double requests = (double)(after->done - before->done);
	double batches = (double)(after->batches - before->batches);
	struct kv_adapter sum = { .doorbells = 0 };

	for (unsigned i = 0; i < KV_PARTS; i++) {
		sum.doorbells += work[i].doorbells;
		sum.cqes += work[i].cqes;
		sum.packets += work[i].packets;
	}
	printf("{\"requests\":%.0f,\"rounds\":%ld,\"doorbells\":%.5f,\"doorbells_clients\":%.5f,"
	       "\"doorbells_sender\":%.5f,\"doorbells_receiver\":%.5f,\"cqes\":%.5f,"
	       "\"packets\":%.5f,\"batch\":%.3f,\"wrong\":%llu}\n",
	       requests, rounds, (double)sum.doorbells / requests,
	       (double)work[KV_PART_CLIENTS].doorbells / requests,
	       (double)work[KV_PART_SENDER].doorbells / requests,
	       (double)work[KV_PART_RECEIVER].doorbells / requests, (double)sum.cqes / requests,
	       (double)sum.packets / requests,
	       batches > 0 ? (double)(after->calls - before->calls) / batches : 0,
	       (unsigned long long)after->faults);
}

/* Runs until all requests have their responses, so that nothing is lost at the end. */
static void kv_drain(void)
{
	for (int i = 0; i < 1000; i++)
		for (enum kv_part part = KV_PART_CLIENTS; part < KV_PARTS; part++)
			kv_do_part(part, false);
	for (uint32_t i = 0; i < conf.clients; i++)
		kv_client_close(clients[i]);
	for (uint32_t i = 0; i < KV_NODES; i++)
		kv_node_close(&nodes[i]);
	free(clients);
}

static enum kv_part kv_part_of(const char *name)
{
	for (unsigned i = 0; i < KV_PARTS; i++)
		if (!strcmp(name, kv_parts[i]))
			return (enum kv_part)i;
	cost_die(name, "expected none, empty, clients, sender or receiver");
}

int main(int argc, char **argv)
{
	struct kv_sums before, after;
	long rounds;

	if (argc < 3)
		cost_die("usage", "kv_cost_bench ROUNDS SECTION [option...]");
	rounds = atol(argv[1]);
	section = kv_part_of(argv[2]);
	argv[2] = argv[0];
	if (rounds < 1 || kv_conf_parse(&conf, argc - 2, argv + 2) || conf.processes)
		cost_die("options", "not valid");
	conf.remote_only = true;
	kv_open_nodes();
	kv_connect_clients();
	kv_warm();
	before = kv_node_sums(&nodes[0]);
	kv_count_rounds(rounds);
	after = kv_node_sums(&nodes[0]);
	kv_print(&before, &after, rounds);
	kv_drain();
	return after.faults ? EXIT_FAILURE : EXIT_SUCCESS;
}
