/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Cache lines of a ring connection that a message touches, with many of them.
 *
 * usage: ring_many_bench shm|mlx5|verbs CONNECTIONS ROUNDS
 *
 * Two engines in one thread with CONNECTIONS between them. In a round BURST of them, in random
 * order and each at most once, send a tagged message of 8 bytes; then the other engine makes
 * progress until all have arrived, and then the first one. Raises the signals of insn_count -l:
 * see there. fabtests/scripts/ring-lines counts.
 */
#include <rdma/fi_errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cm/base/cm.h"
#include "core/core_ep.h"
#include "engine/eng_conn.h"
#include "engine/eng_engine.h"
#include "ring/ring_transports.h"
#include "util/param.h"
#include "wire/wire_op.h"

#define BURST    8u
#define CNT_MAX  4096u
#define WARM     4u /* messages of each connection before */
#define POLLS    100000000ul
#define RING_LEN (32u << 10)

struct side {
	struct core_engine *engine;
	struct core_ep ep;
	struct core_engine_ep eep;
	struct eng_conn *conns[CNT_MAX];
};

static struct side tx, rx;
static uint32_t cnt, at;
static uint32_t order[CNT_MAX];
static unsigned long received;

static void must(const char *what, int ret)
{
	if (!ret)
		return;
	fprintf(stderr, "ring_many_bench: %s: %s\n", what, fi_strerror(-ret));
	exit(EXIT_FAILURE);
}

/* ---- up-calls ---- */

static enum core_rx_verdict on_msg(struct core_chan *chan, uint32_t op, const uint8_t *data,
				   uint32_t len, core_retain_t retain)
{
	received++;
	return CORE_RX_DONE;
}

static void on_acked(struct core_chan *chan, uint64_t pos)
{
}

static void on_down(struct core_chan *chan, int err)
{
	must("a connection", err);
}

static const struct core_upcalls upcalls = {
	.on_msg = on_msg,
	.on_acked = on_acked,
	.on_down = on_down,
};

/* ---- connections ---- */

static void side_open(struct side *side, const struct eng_transport_ops *ops)
{
	const struct eng_transports transports = { .cnt = 1, .ops = { ops } };

	must("engine", eng_open(&transports, &upcalls, &side->engine));
	side->ep.stats = &side->ep.unread;
	side->eep.engine = side->engine;
	side->eep.ep = &side->ep;
	util_list_init(&side->eep.conns);
}

/** Makes one end of a connection, as eng_setup.c does. */
static struct eng_conn *prepare(struct side *side, struct cm_params *params)
{
	struct eng_transport *transport = eng_transport_at(side->engine, 0);
	struct eng_conn *conn;

	memset(params, 0, sizeof(*params));
	params->path = transport->ops->path;
	must("prepare",
	     transport->ops->prepare(transport, &side->eep, NULL, ENG_SIZE_DEFAULT, params, &conn));
	conn->engine = side->engine;
	conn->transport = transport;
	conn->up = &upcalls;
	conn->ep = &side->ep;
	conn->eep = &side->eep;
	util_list_init(&conn->chan.stopped_link);
	util_list_init(&conn->fail_link);
	util_list_init(&conn->conn_link);
	return conn;
}

static void close_fds(const struct dev_desc *desc)
{
	for (uint32_t i = 0; i < desc->fd_cnt; i++)
		close(desc->fds[i]);
}

static void join(uint32_t i)
{
	static struct cm_params params[2];
	struct eng_conn *a = tx.conns[i] = prepare(&tx, &params[0]);
	struct eng_conn *b = rx.conns[i] = prepare(&rx, &params[1]);

	must("establish", a->transport->ops->establish(a, &params[1]));
	must("establish", b->transport->ops->establish(b, &params[0]));
	close_fds(&params[0].dev);
	close_fds(&params[1].dev);
	must("attach", a->transport->ops->attach(a));
	must("attach", b->transport->ops->attach(b));
}

static void leave(struct eng_conn *conn)
{
	conn->transport->ops->stop(conn);
	conn->transport->ops->free(conn);
}

/** Chooses the order of connections, the same in each run. */
static void choose_order(void)
{
	uint64_t random = 88172645463325252ull;
	uint32_t i, k, swap;

	for (i = 0; i < cnt; i++)
		order[i] = i;
	for (i = cnt - 1; i; i--) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		k = (uint32_t)(random % (i + 1));
		swap = order[i];
		order[i] = order[k];
		order[k] = swap;
	}
}

/* ---- rounds ---- */

static void say(struct eng_conn *conn)
{
	static const uint64_t what = 42;
	struct core_chan *chan = &conn->chan;

	if (chan->ops->send_buf(chan, core_packed(WIRE_OP_MSG | WIRE_F_TAG, 0), 1, 0, &what,
				sizeof(what)) < 0)
		must("send", -FI_EAGAIN);
}

static void progress(const struct side *side)
{
	struct eng_transport *transport = eng_transport_at(side->engine, 0);

	transport->ops->poll(transport);
	transport->ops->flush(transport);
}

static void end_part(bool mark)
{
	if (mark)
		raise(SIGUSR1);
}

static void run(uint32_t rounds, bool mark)
{
	struct eng_conn *speakers[BURST];
	unsigned long polls, all;
	uint32_t i;

	while (rounds--) {
		for (i = 0; i < BURST; i++)
			speakers[i] = tx.conns[order[at++ % cnt]];
		all = received + BURST;
		end_part(mark);
		for (i = 0; i < BURST; i++)
			say(speakers[i]);
		progress(&tx);
		end_part(mark);
		for (polls = 0; received != all && polls < POLLS; polls++)
			progress(&rx);
		must("waiting for messages", received == all ? 0 : -FI_ETIMEDOUT);
		end_part(mark);
		progress(&tx);
		end_part(mark);
	}
}

static const struct eng_transport_ops *transport_named(const char *name)
{
	static const struct eng_transport_ops *const all[] = {
		&ring_transport_shm,
		&ring_transport_mlx5,
		&ring_transport_verbs,
	};

	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!strcmp(all[i]->name, name))
			return all[i];
	return NULL;
}

/** Raises the limit of descriptors as far as permitted: each connection has some. */
static void raise_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

int main(int argc, char **argv)
{
	const struct eng_transport_ops *ops = argc == 4 ? transport_named(argv[1]) : NULL;
	uint32_t rounds;

	if (!ops) {
		fprintf(stderr, "usage: ring_many_bench shm|mlx5|verbs CONNECTIONS ROUNDS\n");
		return 2;
	}
	cnt = (uint32_t)strtoul(argv[2], NULL, 10);
	rounds = (uint32_t)strtoul(argv[3], NULL, 10);
	if (!rounds || cnt > CNT_MAX || cnt % BURST || cnt < rounds * BURST) {
		fprintf(stderr,
			"ring_many_bench: at most %u connections, a multiple of %u, and %u "
			"for each round\n",
			CNT_MAX, BURST, BURST);
		return 2;
	}
	raise_files();
	util_params.mem = (size_t)CNT_MAX * 4 * RING_LEN;
	util_params.ring_size = RING_LEN;
	util_params.rc_max = CNT_MAX; /* a queue pair for each connection */
	side_open(&tx, ops);
	side_open(&rx, ops);
	for (uint32_t i = 0; i < cnt; i++)
		join(i);
	choose_order();
	run(WARM * cnt / BURST, false);
	raise(SIGUSR2);
	run(rounds, true);
	raise(SIGUSR2);
	printf("%u messages\n", rounds * BURST);
	for (uint32_t i = 0; i < cnt; i++) {
		leave(tx.conns[i]);
		leave(rx.conns[i]);
	}
	eng_close(&tx.engine->base);
	eng_close(&rx.engine->base);
	return 0;
}
