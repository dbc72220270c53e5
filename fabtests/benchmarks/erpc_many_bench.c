/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Cost of a message against the number of sessions of an endpoint.
 *
 * usage: erpc_many_bench [-s SESSIONS] [-a ACTIVE] [-o ORDER] [-c] [-n ROUNDS] [-m | -l]
 *
 * Two endpoints of erpc/ in one thread, back to back (erpc_pipe.h), with SESSIONS sessions between
 * them, of which the first ACTIVE (default: all) send. In a round, BURST sessions, in turn or in
 * random order and each at most once, send a tagged message of 8 bytes, or with -c make a call that
 * is replied to. Then the other endpoint makes progress, and then the first one. The clock is
 * simulated: a round takes ROUND_NS. With -l it begins when the timers of the last one are done,
 * which touch its sessions once more.
 *
 * Prints nanoseconds per message: the median of the blocks, both ends together. -m raises SIGUSR2
 * before and after the rounds, for insn_count; -l also SIGUSR1 after each part of a round, for
 * insn_count -l. fabtests/scripts/session-cost compares. ORDER: rr (default) or random.
 */
#include <rdma/fi_errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "erpc/erpc_progress.h"
#include "erpc/erpc_setup.h"
#include "erpc_pipe.h"
#include "util/clock.h"
#include "wire/wire_op.h"

#define BURST        8u
#define ROUND_NS     4000u
#define TIMERS_NS    17000u /* new timers have entered the wheel, or not (erpc_loss.h) */
#define RX_CNT       2048u
#define BLOCKS       15u
#define SESSIONS_MAX 60000u
#define CALL_OP      0x801u
#define RESP_MAX     64u

static struct {
	uint32_t sessions, active;
	uint32_t rounds; /* rounds of a block */
	bool random, calls, marks, parts;
} opt = { .sessions = 10, .rounds = 2048 };

static struct erpc_ep *eps[2];
static struct erpc_session *sessions[SESSIONS_MAX];
/* sending sessions, followed by the first ones again */
static uint32_t order[SESSIONS_MAX + BURST];
static uint32_t at;
static bool warming;
static uint64_t now_ns = 1000000, received, replied;

static void must(const char *what, int ret)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "erpc_many_bench: %s: %s\n", what, fi_strerror(-ret));
	exit(EXIT_FAILURE);
}

/* ---- up-calls ---- */

static enum core_rx_verdict on_msg(struct core_chan *chan, uint32_t op, const uint8_t *data,
				   uint32_t len, core_retain_t hold)
{
	received++;
	return CORE_RX_DONE;
}

static enum core_rx_verdict on_call(struct core_chan *chan, struct core_call_ref ref,
				    const uint8_t *data, uint32_t len, core_retain_t hold)
{
	uint64_t resp = len;

	received++;
	must("reply", core_chan_reply(chan, ref, &resp, sizeof(resp)));
	return CORE_RX_DONE;
}

static void on_reply(struct core_chan *chan, void *context, int status, const uint8_t *data,
		     uint32_t len)
{
	must("a call", status);
	replied++;
}

static void on_acked(struct core_chan *chan, uint64_t pos)
{
	replied += !opt.calls;
}

static const struct core_upcalls upcalls = {
	.on_msg = on_msg,
	.on_call = on_call,
	.on_reply = on_reply,
	.on_acked = on_acked,
};

static void failed(struct erpc_session *s)
{
	must("a session", s->err);
}

/* ---- sessions ---- */

static struct erpc_session *join(void)
{
	struct wire_erpc_params half[2];
	struct erpc_session *s[2];
	unsigned i;

	for (i = 0; i < 2; i++)
		must("session", erpc_session_open(eps[i], &half[i], &s[i]));
	for (i = 0; i < 2; i++) {
		must("connect", erpc_session_connect(s[i], &half[!i], erpc_pipe_ah(eps[i]->dg)));
		erpc_session_attach(s[i]);
	}
	return s[0];
}

static void open_all(void)
{
	struct dev_dgram *ends[2];
	unsigned i;

	erpc_pipe_open(ends, RX_CNT);
	for (i = 0; i < 2; i++) {
		struct erpc_ep_attr attr = { .dg = ends[i],
					     .tx_cnt = RX_CNT,
					     .up = &upcalls,
					     .seed = i + 1,
					     .failed = failed };

		must("port", erpc_ep_open(&attr, &eps[i]));
	}
	for (i = 0; i < opt.sessions; i++)
		sessions[i] = join();
}

static void close_all(void)
{
	unsigned i;
	uint32_t num;

	for (i = 0; i < 2; i++)
		for (num = 0; num < ERPC_SESSIONS_MAX; num++)
			if (eps[i]->sessions[num])
				erpc_session_close(eps[i]->sessions[num]);
	for (i = 0; i < 2; i++)
		erpc_ep_close(eps[i]);
}

/** Chooses the order of sessions, the same in each run. */
static void choose_order(void)
{
	uint64_t random = 88172645463325252ull;
	uint32_t i, k, swap;

	for (i = 0; i < opt.active; i++)
		order[i] = i;
	for (i = opt.active - 1; opt.random && i; i--) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		k = (uint32_t)(random % (i + 1));
		swap = order[i];
		order[i] = order[k];
		order[k] = swap;
	}
	for (i = 0; i < BURST; i++)
		order[opt.active + i] = order[i % opt.active];
}

/* ---- measurement ---- */

static void say(struct erpc_session *s)
{
	static const uint64_t what = 42;
	struct core_chan *chan = &s->conn.chan;

	if (opt.calls)
		must("call", chan->ops->call_buf(chan, CALL_OP, &what, sizeof(what), RESP_MAX,
						 (void *)(uintptr_t)1, 0));
	else
		must("send", chan->ops->send_buf(chan, core_packed(WIRE_OP_MSG | WIRE_F_TAG, 0), 1,
						 0, &what, sizeof(what)));
}

/** Ends a part of a round: the other end goes on. */
static void end_part(bool mark)
{
	if (mark)
		raise(SIGUSR1);
}

/** Lets both ends make progress `ns` later. */
static void pass(uint32_t ns)
{
	now_ns += ns;
	erpc_ep_progress(eps[0], now_ns);
	erpc_ep_progress(eps[1], now_ns);
}

static void run(uint32_t rounds, bool mark)
{
	struct erpc_session *speakers[BURST];
	uint32_t i;

	while (rounds--) {
		if (mark)
			pass(TIMERS_NS);
		for (i = 0; i < BURST; i++)
			speakers[i] = sessions[order[at + i]];
		at += BURST;
		at = at < opt.active ? at : at - opt.active;
		end_part(mark);
		for (i = 0; i < BURST; i++)
			say(speakers[i]);
		if (warming) /* dates the packets, so that their round trips are measured */
			erpc_ep_progress(eps[0], now_ns);
		end_part(mark);
		now_ns += ROUND_NS / 2;
		erpc_ep_progress(eps[1], now_ns);
		end_part(mark);
		now_ns += ROUND_NS / 2;
		erpc_ep_progress(eps[0], now_ns);
		end_part(mark);
	}
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median_ns(void)
{
	double block[BLOCKS];
	uint64_t began_ns;
	unsigned i;

	for (i = 0; i < BLOCKS; i++) {
		began_ns = util_clock_ns();
		run(opt.rounds, false);
		block[i] = (double)(util_clock_ns() - began_ns) / (opt.rounds * BURST);
	}
	qsort(block, BLOCKS, sizeof(block[0]), by_value);
	return block[BLOCKS / 2];
}

static void usage(void)
{
	fprintf(stderr, "usage: erpc_many_bench [-s SESSIONS] [-a ACTIVE] [-o rr|random] [-c] "
			"[-n ROUNDS] [-m | -l]\n"
			"sessions that speak: at least 8, all of them at most 60000\n");
	exit(2);
}

static void options(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "s:a:o:cn:ml")) != -1) {
		switch (c) {
		case 's': opt.sessions = (uint32_t)strtoul(optarg, NULL, 10); break;
		case 'a': opt.active = (uint32_t)strtoul(optarg, NULL, 10); break;
		case 'o': opt.random = !strcmp(optarg, "random"); break;
		case 'c': opt.calls = true; break;
		case 'n': opt.rounds = (uint32_t)strtoul(optarg, NULL, 10); break;
		case 'm': opt.marks = true; break;
		case 'l': opt.marks = opt.parts = true; break;
		default: usage();
		}
	}
	if (!opt.active)
		opt.active = opt.sessions;
	if (opt.active < BURST || opt.active > opt.sessions || opt.sessions > SESSIONS_MAX ||
	    !opt.rounds || optind != argc)
		usage();
}

int main(int argc, char **argv)
{
	uint64_t start;

	options(argc, argv);
	open_all();
	choose_order();
	/*
	 * Uses each session a few times: lazy allocations are done, and round trips are measured.
	 */
	warming = true;
	run((4 * opt.active + BURST - 1) / BURST, false);
	warming = false;
	start = received;
	if (opt.marks) {
		raise(SIGUSR2);
		run(opt.rounds, opt.parts);
		raise(SIGUSR2);
		printf("%u messages\n", opt.rounds * BURST);
	} else {
		printf("%.1f ns a message\n", median_ns());
	}
	if (received - start < (uint64_t)opt.rounds * BURST || received != replied)
		must("a message was not received or not replied to", -FI_EOTHER);
	close_all();
	return 0;
}
