/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Process of rpc_mix: its objects, its turns of calling, serving and reading completions, and the
 * tagged messages in between.
 */
#include "rpc_mix.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#define TAG 7

struct fab fab;
struct fi_copyrpc_ops *rpc;
fi_addr_t names[PROCS_MAX];
uint8_t *out;

static struct {
	struct fi_context2 context;
	uint64_t buf[4];
} tagged_recv[4];

static void tagged_post(unsigned i)
{
	FAB_CHECK(fi_trecv(fab.ep, tagged_recv[i].buf, sizeof(tagged_recv[i].buf), NULL,
			   FI_ADDR_UNSPEC, TAG, 0, &tagged_recv[i]));
}

static void tagged_send(void)
{
	uint64_t msg[4] = { self, 1, 2, 3 };
	uint32_t to = rng_below(&rng, procs);

	if (!kills && !fi_tinject(fab.ep, msg, sizeof(msg), names[to], TAG))
		STORE(shared->slots[self].tagged_out[to], shared->slots[self].tagged_out[to] + 1);
}

static bool take(void)
{
	struct fi_cq_tagged_entry entry;
	bool found = false;
	unsigned i;
	int err;

	while (fab_poll(&fab, &entry, &err)) {
		found = true;
		if (entry.flags & FI_COPYRPC_CALL) {
			caller_end(&entry, err);
			continue;
		}
		for (i = 0; entry.op_context != &tagged_recv[i]; i++)
			FAB_TRUE(i < 4);
		FAB_TRUE(!err && tagged_recv[i].buf[3] == 3);
		shared->slots[self].tagged_in++;
		tagged_post(i);
	}
	return found;
}

static bool all_done(void)
{
	uint64_t out_cnt = 0;

	for (uint32_t i = 0; i < procs; i++) {
		if (is_dead(i))
			continue;
		if (!LOAD(shared->slots[i].done))
			return false;
		out_cnt += LOAD(shared->slots[i].tagged_out[self]);
	}
	return out_cnt == shared->slots[self].tagged_in;
}

static void run(void)
{
	unsigned turn = 0;
	bool busy;

	while (!LOAD(shared->slots[self].done) || !all_done() || callee_held()) {
		busy = callee_serve();
		busy = caller_start_some() || busy;
		busy = take() || busy;
		if (rng_below(&rng, 64) == 0)
			caller_cancel_one();
		if (started < call_goal && rng_below(&rng, 16) == 0)
			tagged_send();
		if (started >= call_goal && !open_cnt) {
			caller_release();
			STORE(shared->slots[self].done, true);
		}
		if (++turn % 1024 == 0)
			caller_watch_dead();
		if (!busy)
			sched_yield();
	}
}

static void say(int sig)
{
	fprintf(stderr, "process %u: %lu of %lu calls begun, %u open, %u requests held\n", self,
		(unsigned long)started, (unsigned long)call_goal, open_cnt, callee_held());
	_exit(1);
}

void process_run(void)
{
	struct sockaddr_in src = fab_addr("127.0.0.1", 0);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGALRM, say);
	alarm(seconds);
	rng.state = rng.state * 0x9e3779b97f4a7c15ull + self + 1;
	fab_open(&fab, &src, FI_THREAD_DOMAIN, FI_PROGRESS_MANUAL);
	FAB_CHECK(fi_copyrpc_open(&fab.ep->fid, &rpc));
	FAB_TRUE(FI_COPYRPC_OPS_HAS(rpc, room));
	shared->slots[self].addr = fab.addr;
	STORE(shared->slots[self].open, true);
	out = malloc(len_max + sizeof(struct head));
	caller_open();
	for (uint32_t i = 0; i < procs; i++) {
		while (!LOAD(shared->slots[i].open))
			sched_yield();
		names[i] = fab_insert(&fab, &shared->slots[i].addr);
	}
	for (unsigned i = 0; i < 4; i++)
		tagged_post(i);
	run();
	caller_check();
	shared->slots[self].calls = ended;
	fab_close(&fab);
	caller_free();
	free(out);
}
