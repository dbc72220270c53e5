/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Message loops of cost.h: options, the shapes of messages, and the check that the bytes arrived.
 */
#include "cost.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define COST_WARM  2048 /* windows before the counted ones, so that adaptive choices have settled */
#define COST_STUCK 200000000L /* progress calls after which a message counts as lost */

struct cost_bufs {
	char *tx[COST_ENDS], *rx[COST_ENDS]; /* two windows of messages each */
	long replied;                        /* replies sent by the server */
	/* True while the second half of the buffers is in use */
	bool odd;
};

void cost_die(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s: %s\n", cost_transport, what, why);
	exit(EXIT_FAILURE);
}

static void cost_post_recvs(struct cost_pair *pair, const struct cost_conf *conf, int end,
			    char *buf, int first)
{
	for (int slot = first; slot < first + conf->window; slot++)
		cost_recv(pair, end, buf + (size_t)slot * conf->size, conf->size, slot);
}

/*
 * Posts the window's sends from `slot` on until one is refused. Returns the index of the first that
 * was not sent.
 */
static int cost_post_sends(struct cost_pair *pair, const struct cost_conf *conf, int end, char *buf,
			   int slot)
{
	while (slot < conf->window &&
	       cost_send(pair, end, buf + (size_t)slot * conf->size, conf->size, slot))
		slot++;
	return slot;
}

static void cost_step(struct cost_pair *pair, long *steps)
{
	cost_progress(pair, COST_CLIENT);
	cost_progress(pair, COST_SERVER);
	if (++*steps > COST_STUCK)
		cost_die("waiting for messages", "nothing arrives any more");
}

static void cost_oneway(struct cost_pair *pair, const struct cost_conf *conf,
			struct cost_bufs *bufs)
{
	long sent = pair->end[COST_CLIENT].sent + conf->window;
	long received = pair->end[COST_SERVER].received + conf->window;
	long steps = 0;
	int posted = 0;

	cost_post_recvs(pair, conf, COST_SERVER, bufs->rx[COST_SERVER], 0);
	while (posted < conf->window) {
		posted = cost_post_sends(pair, conf, COST_CLIENT, bufs->tx[COST_CLIENT], posted);
		cost_step(pair, &steps);
	}
	while (pair->end[COST_SERVER].received < received || pair->end[COST_CLIENT].sent < sent)
		cost_step(pair, &steps);
}

/*
 * Runs windows of requests. The client starts the next window when it has all replies. The server
 * receives the acknowledgements of its replies meanwhile, as in a real ping-pong, and therefore
 * uses two windows of buffers in turns.
 */
static void cost_rpc(struct cost_pair *pair, const struct cost_conf *conf, struct cost_bufs *bufs)
{
	long first = pair->end[COST_SERVER].received, replied = 0, steps = 0;
	long received = pair->end[COST_CLIENT].received + conf->window;
	long sent = pair->end[COST_CLIENT].sent + conf->window, before = bufs->replied;
	int half = bufs->odd ? conf->window : 0, posted = 0;

	bufs->odd = !bufs->odd;
	cost_post_recvs(pair, conf, COST_CLIENT, bufs->rx[COST_CLIENT], 0);
	cost_post_recvs(pair, conf, COST_SERVER, bufs->rx[COST_SERVER], half);
	while (pair->end[COST_CLIENT].received < received || pair->end[COST_CLIENT].sent < sent ||
	       pair->end[COST_SERVER].sent < before) {
		posted = cost_post_sends(pair, conf, COST_CLIENT, bufs->tx[COST_CLIENT], posted);
		cost_step(pair, &steps);
		for (; replied < pair->end[COST_SERVER].received - first; replied++)
			cost_send(pair, COST_SERVER,
				  bufs->rx[COST_SERVER] + (size_t)(half + replied) * conf->size,
				  conf->size, half + (int)replied);
	}
	bufs->replied += replied;
}

/* Runs the warm-up and the counted windows, and checks the bytes. Only the last call is counted. */
static __attribute__((noinline)) void cost_run(struct cost_pair *pair, const struct cost_conf *conf,
					       struct cost_bufs *bufs, long rounds)
{
	for (long round = 0; round < rounds; round++) {
		if (conf->shape >= COST_PUT)
			cost_access_window(pair, conf);
		else
			(conf->shape == COST_RPC ? cost_rpc : cost_oneway)(pair, conf, bufs);
	}
}

/* Marks a begin or an end for insn_count, in fewer instructions than raise, as they are counted. */
static void cost_mark(void)
{
	pid_t pid = getpid();

	syscall(SYS_tgkill, pid, pid, SIGUSR2);
}

/* Stops for insn_count -s. Then runs the windows, the second half of them between two marks. */
static void cost_run_marked(struct cost_pair *pair, const struct cost_conf *conf,
			    struct cost_bufs *bufs)
{
	raise(SIGSTOP);
	cost_run(pair, conf, bufs, conf->rounds / 2);
	cost_mark();
	cost_run(pair, conf, bufs, conf->rounds - conf->rounds / 2);
	cost_mark();
}

/* Lets the counted windows move the bytes of the client, or to it, by accesses. */
static void cost_bufs_open(struct cost_pair *pair, const struct cost_conf *conf,
			   struct cost_bufs *bufs)
{
	size_t len = (size_t)conf->window * conf->size;

	if (conf->shape < COST_PUT)
		return;
	memset(bufs->rx[COST_CLIENT], 0, len);
	memset(bufs->rx[COST_SERVER], 0, len);
	if (conf->shape == COST_PUT)
		cost_accesses->open(pair, bufs->tx[COST_CLIENT], bufs->rx[COST_SERVER], len);
	else
		cost_accesses->open(pair, bufs->rx[COST_CLIENT], bufs->tx[COST_SERVER], len);
}

static void cost_bufs_init(struct cost_bufs *bufs, const struct cost_conf *conf)
{
	size_t len = 2 * (size_t)conf->window * conf->size;

	for (int end = 0; end < COST_ENDS; end++) {
		bufs->tx[end] = malloc(len);
		bufs->rx[end] = calloc(1, len);
		if (!bufs->tx[end] || !bufs->rx[end])
			cost_die("buffers", "out of memory");
		for (size_t i = 0; i < len; i++)
			bufs->tx[end][i] = (char)(i * 31 + i / conf->size + 1);
	}
}

static void cost_bufs_check(const struct cost_bufs *bufs, const struct cost_conf *conf)
{
	size_t len = (size_t)conf->window * conf->size;
	const char *sent = bufs->tx[COST_CLIENT];
	bool server = conf->shape != COST_GET;
	bool client = conf->shape == COST_RPC || conf->shape == COST_GET;

	if ((server && memcmp(sent, bufs->rx[COST_SERVER], len)) ||
	    (client && memcmp(sent, bufs->rx[COST_CLIENT], len)))
		cost_die("checking the bytes", "they are not those that were sent");
}

static void cost_bufs_free(struct cost_bufs *bufs)
{
	for (int end = 0; end < COST_ENDS; end++) {
		free(bufs->tx[end]);
		free(bufs->rx[end]);
	}
}

static void usage(void)
{
	fprintf(stderr,
		"usage: %s [-p NAME] [-S SHAPE] [-s BYTES] [-w WINDOW] [-n ROUNDS] [-m]\n"
		"SHAPE: oneway, rpc, put, get\n"
		"moves ROUNDS windows of messages between two ends in one thread\n"
		"-m raises SIGUSR2 before and after the second half of them, for insn_count\n",
		cost_transport);
	exit(2);
}

static long number(const char *text, long most)
{
	char *end;
	long value = strtol(text, &end, 10);

	if (*end || value < 1 || value > most)
		usage();
	return value;
}

static enum cost_shape cost_shape(const char *name)
{
	static const char *const names[] = { "oneway", "rpc", "put", "get" };

	for (int i = 0; i < (cost_accesses ? 4 : 2); i++)
		if (!strcmp(name, names[i]))
			return (enum cost_shape)i;
	usage();
	return COST_ONEWAY;
}

int main(int argc, char **argv)
{
	struct cost_conf conf = { .shape = COST_ONEWAY, .size = 32, .window = 16, .rounds = 100 };
	const char *name = NULL;
	struct cost_bufs bufs = { .replied = 0 };
	struct cost_pair *pair;
	bool marks = false;
	long helped;
	int opt;

	while ((opt = getopt(argc, argv, "p:S:s:w:n:m")) != -1) {
		switch (opt) {
		case 'p': name = optarg; break;
		case 'S': conf.shape = cost_shape(optarg); break;
		case 's': conf.size = (size_t)number(optarg, 1 << 20); break;
		case 'w': conf.window = (int)number(optarg, 1024); break;
		case 'n': conf.rounds = number(optarg, 1000000000); break;
		case 'm': marks = true; break;
		default: usage();
		}
	}
	cost_bufs_init(&bufs, &conf);
	pair = cost_pair_open(name, 2 * conf.window, conf.shape >= COST_PUT);
	cost_rpc(pair, &conf, &bufs); /* Connects both ends */
	cost_bufs_open(pair, &conf, &bufs);
	cost_clock_stop();
	cost_run(pair, &conf, &bufs, COST_WARM);
	helped = cost_access_helped(); /* the first access of a key may be a call */
	if (marks)
		cost_run_marked(pair, &conf, &bufs);
	else
		cost_run(pair, &conf, &bufs, conf.rounds);
	cost_clock_start();
	cost_bufs_check(&bufs, &conf);
	if (conf.shape >= COST_PUT) {
		cost_accesses->close(pair);
		printf("%ld calls of the server's progress\n", cost_access_helped() - helped);
	}
	cost_pair_close(pair);
	cost_bufs_free(&bufs);
	printf("%ld messages\n", conf.rounds * conf.window * (conf.shape == COST_RPC ? 2 : 1));
	return 0;
}
