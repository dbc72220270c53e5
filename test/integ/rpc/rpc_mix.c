/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Every call gets its own response under mixed load.
 *
 * A few processes call each other and themselves: requests and maximum response sizes of all sizes,
 * replies out of order, retained responses, requests released before their reply, responses that
 * are too long at first, calls cancelled, tagged messages in between. Contents determine the
 * expected response. Each accepted call ends with exactly one completion; after a cancellation its
 * buffer is unchanged. With -k processes are killed meanwhile: calls to them end within LIMIT
 * seconds.
 *
 * The parent calls no libfabric: it forks, kills, and announces phases through shared memory.
 *
 * usage: rpc_mix [-n PROCESSES] [-c CALLS] [-w WINDOW] [-l LEN] [-k KILLS] [-s SEED] [-t SECONDS]
 *   CALLS of each process; LEN: longest request and response
 */
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fi_ext_copyrpc.h>

#include "integ/fab.h"
#include "support/rng.h"

#define PROCS_MAX     8
#define WINDOW_MAX    512
#define HELD_MAX      128
#define KEPT_MAX      8
#define ABANDONED_MAX 256
#define LIMIT         28.0 /* seconds: less than the peer timeout */
#define TAG           7

struct head {
	uint64_t seed;
	uint32_t want; /* bytes of the response */
	uint32_t len;  /* of the request */
};

struct slot {
	struct sockaddr_in addr;
	bool open, done, dead;
	uint64_t tagged_out[PROCS_MAX], tagged_in;
	uint64_t calls, errors, cancelled, again;
};

struct shared {
	struct slot slots[PROCS_MAX];
};

struct call {
	struct call *next; /* unused ones */
	struct head head;
	uint8_t *resp;
	uint32_t resp_max;
	uint32_t peer;
	bool expose, open, cancelled;
};

struct kept {
	uint64_t data;
	const uint8_t *buf;
	size_t len;
	uint64_t seed;
};

static struct shared *shared;
static uint32_t procs = 2, self, window = 64, kills;
static uint32_t len_max = 3000;
static uint64_t call_goal = 50000;
static struct rng rng = { .state = 1 };
static unsigned seconds = 100;

static struct fab fab;
static struct fi_copyrpc_ops *rpc;
static struct call calls[WINDOW_MAX], *free_calls;
static fi_addr_t names[PROCS_MAX];
static uint32_t open_cnt, open_to[PROCS_MAX];
static uint64_t started, ended;
static struct fi_copyrpc_request held[HELD_MAX];
static uint32_t held_cnt;
static struct kept kept[KEPT_MAX];
static uint32_t kept_cnt;
static uint8_t *abandoned[ABANDONED_MAX];
static uint32_t abandoned_cnt;
static uint8_t *out;
static struct {
	struct fi_context2 context;
	uint64_t buf[4];
} tagged_recv[4];

#define LOAD(x)     __atomic_load_n(&(x), __ATOMIC_ACQUIRE)
#define STORE(x, v) __atomic_store_n(&(x), (v), __ATOMIC_RELEASE)

static void fill(uint8_t *buf, size_t len, uint64_t seed)
{
	for (size_t i = 0; i < len; i++) {
		if (i % 8 == 0)
			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		buf[i] = (uint8_t)(seed >> (8 * (i % 8)));
	}
}

static bool is_filled(const uint8_t *buf, size_t len, uint64_t seed)
{
	for (size_t i = 0; i < len; i++) {
		if (i % 8 == 0)
			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		if (buf[i] != (uint8_t)(seed >> (8 * (i % 8))))
			return false;
	}
	return true;
}

/* Returns mostly small lengths, sometimes any length, and the edges of blocks. */
static uint32_t random_len(void)
{
	static const uint32_t edges[] = { 0, 1, 15, 16, 17, 20, 21, 32, 48, 49, 52, 53, 64, 84 };

	switch (rng_below(&rng, 4)) {
	case 0: return rng_below(&rng, len_max + 1);
	case 1: return edges[rng_below(&rng, sizeof(edges) / sizeof(edges[0]))] % (len_max + 1);
	default: return rng_below(&rng, len_max < 100 ? len_max + 1 : 100);
	}
}

/* ---- the callee ---- */

static void check_request(const struct fi_copyrpc_request *req, struct head *head)
{
	const uint8_t *data = req->data;

	memset(head, 0, sizeof(*head));
	if (req->len < sizeof(*head)) { /* too short for a head: the response is empty */
		FAB_TRUE(is_filled(data, req->len, req->len));
		return;
	}
	memcpy(head, data, sizeof(*head));
	FAB_TRUE(head->len == req->len && head->want <= req->resp_max);
	FAB_TRUE(is_filled(data + sizeof(*head), req->len - sizeof(*head), head->seed));
}

static void respond(uint32_t i)
{
	struct fi_copyrpc_request req = held[i];
	struct iovec iov[2];
	struct head head;
	uint64_t flags = rng_below(&rng, 2) ? FI_MORE : 0;
	ssize_t ret;

	check_request(&req, &head);
	held[i] = held[--held_cnt];
	fill(out, head.want, ~head.seed);
	if (rng_below(&rng, 16) == 0) {
		FAB_CHECK(fi_copyrpc_release(rpc, fab.ep, &req));
		FAB_CHECK(fi_copyrpc_release(rpc, fab.ep, &req));
	}
	if (rng_below(&rng, 16) == 0)
		FAB_TRUE(fi_copyrpc_reply(rpc, fab.ep, &req, out, req.resp_max + 1, 0) ==
			 -FI_EMSGSIZE);
	if (rng_below(&rng, 8)) {
		ret = fi_copyrpc_reply(rpc, fab.ep, &req, out, head.want, flags);
	} else {
		iov[0] = (struct iovec){ out, head.want / 3 };
		iov[1] = (struct iovec){ out + head.want / 3, head.want - head.want / 3 };
		ret = fi_copyrpc_replyv(rpc, fab.ep, &req, iov, 2, flags);
	}
	/*
	 * A caller that cancelled may have closed by now, once all have the completions they waited
	 * for.
	 */
	FAB_TRUE(!ret || (ret == -FI_ECONNRESET && (kills || LOAD(shared->slots[self].done))));
	FAB_TRUE(fi_copyrpc_reply(rpc, fab.ep, &req, out, 0, 0) == -FI_EINVAL);
}

static bool serve(bool last)
{
	uint32_t room = HELD_MAX - held_cnt, want = room < 32 ? room : 32;
	ssize_t ret = fi_copyrpc_recv(rpc, fab.ep, held + held_cnt, want, 0);

	FAB_TRUE(ret >= 0 || ret == -FI_EAGAIN);
	if (ret > 0)
		held_cnt += (uint32_t)ret;
	/* Some requests wait until others have come: replies are in no order. */
	while (held_cnt && (last || held_cnt > HELD_MAX / 2 || ret <= 0 || rng_below(&rng, 3))) {
		respond(rng_below(&rng, held_cnt));
		if (!last && ret <= 0)
			break;
	}
	return ret > 0;
}

/* ---- the caller ---- */

static ssize_t post(struct call *call, uint32_t len)
{
	uint8_t *msg = out;
	uint64_t flags =
		(rng_below(&rng, 2) ? FI_MORE : 0) | (call->expose ? FI_COPYRPC_RETAIN : 0);
	void *resp = call->expose ? NULL : call->resp;
	struct iovec iov[2] = { { msg, len / 2 }, { msg + len / 2, len - len / 2 } };
	struct fi_copyrpc_msg m = { .msg_iov = iov,
				    .iov_count = 2,
				    .resp = resp,
				    .resp_len = call->resp_max,
				    .addr = names[call->peer],
				    .context = call };
	ssize_t ret;

	if (len < sizeof(call->head)) {
		fill(msg, len, len);
	} else {
		memcpy(msg, &call->head, sizeof(call->head));
		fill(msg + sizeof(call->head), len - sizeof(call->head), call->head.seed);
	}
	if (rng_below(&rng, 8))
		ret = fi_copyrpc_call(rpc, fab.ep, msg, len, resp, call->resp_max,
				      names[call->peer], call, flags);
	else
		ret = fi_copyrpc_callmsg(rpc, fab.ep, &m, flags);
	memset(msg, 0xEE, len); /* the buffer may be written again, and is not read any more */
	return ret;
}

static bool is_dead(uint32_t peer)
{
	return LOAD(shared->slots[peer].dead);
}

static bool start(void)
{
	struct call *call = free_calls;
	uint32_t len = random_len();
	ssize_t ret;

	call->peer = rng_below(&rng, procs);
	if (is_dead(call->peer))
		return true;
	call->resp_max = random_len();
	call->head.seed = rng_next(&rng);
	call->head.want = len < sizeof(call->head) ? 0 : rng_below(&rng, call->resp_max + 1);
	call->head.len = len;
	call->expose = rng_below(&rng, 8) == 0;
	call->cancelled = false;
	memset(call->resp, 0xA5, len_max + 1);
	ret = post(call, len);
	if (ret == -FI_EAGAIN)
		return shared->slots[self].again++, false;
	if (ret && kills)
		return false; /* the process is being killed */
	FAB_CHECK(ret);
	free_calls = call->next;
	call->open = true;
	open_cnt++;
	open_to[call->peer]++;
	started++;
	return true;
}

static void release_kept(uint32_t keep)
{
	while (kept_cnt > keep) {
		uint32_t i = rng_below(&rng, kept_cnt);

		FAB_TRUE(is_filled(kept[i].buf, kept[i].len, kept[i].seed));
		FAB_CHECK(fi_copyrpc_release_response(rpc, fab.ep, kept[i].data));
		FAB_TRUE(fi_copyrpc_release_response(rpc, fab.ep, kept[i].data) == -FI_EINVAL);
		kept[i] = kept[--kept_cnt];
	}
}

static void take_response(struct call *call, const struct fi_cq_tagged_entry *entry)
{
	FAB_TRUE(entry->len == call->head.want);
	FAB_TRUE(!(entry->flags & FI_COPYRPC_RETAIN) == !call->expose);
	if (!call->expose) {
		FAB_TRUE(is_filled(call->resp, entry->len, ~call->head.seed));
		for (size_t i = entry->len; i <= call->resp_max; i++)
			FAB_TRUE(call->resp[i] == 0xA5);
		return;
	}
	release_kept(KEPT_MAX - 1);
	kept[kept_cnt++] = (struct kept){
		.data = entry->data, .buf = entry->buf, .len = entry->len, .seed = ~call->head.seed
	};
}

/* Checks that the late response to a cancelled call is not written here. */
static void abandon(struct call *call)
{
	if (abandoned_cnt < ABANDONED_MAX) {
		abandoned[abandoned_cnt++] = call->resp;
		call->resp = malloc(len_max + 1);
		FAB_TRUE(call->resp);
	}
}

static void finish(struct call *call, const struct fi_cq_tagged_entry *entry, int err)
{
	FAB_TRUE(call->open && (entry->flags & FI_COPYRPC_CALL));
	call->open = false;
	open_cnt--;
	open_to[call->peer]--;
	ended++;
	if (call->cancelled) {
		FAB_TRUE(err == FI_ECANCELED);
		shared->slots[self].cancelled++;
		abandon(call);
	} else if (err) {
		if (!kills)
			fab_fail(__FILE__, __LINE__, "a call ended", fi_strerror(err));
		shared->slots[self].errors++;
	} else {
		take_response(call, entry);
	}
	call->next = free_calls;
	free_calls = call;
}

static void cancel_one(void)
{
	struct call *call = &calls[rng_below(&rng, window)];

	if (!call->open || call->cancelled || is_dead(call->peer))
		return; /* calls to the dead end by themselves */
	FAB_CHECK(fi_cancel(&fab.ep->fid, call));
	FAB_TRUE(fi_cancel(&fab.ep->fid, call) == -FI_ENOENT);
	call->cancelled = true;
}

/* ---- between them ---- */

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
			finish(entry.op_context, &entry, err);
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

static void watch_dead(void)
{
	static double since[PROCS_MAX];

	for (uint32_t i = 0; i < procs; i++) {
		if (!is_dead(i) || !open_to[i])
			continue;
		since[i] = since[i] > 0 ? since[i] : fab_seconds();
		if (fab_seconds() - since[i] > LIMIT)
			fab_fail(__FILE__, __LINE__, "calls to a dead process", "still wait");
	}
}

static void run(void)
{
	unsigned turn = 0;
	bool busy;

	while (!LOAD(shared->slots[self].done) || !all_done() || held_cnt) {
		busy = serve(false);
		while (started < call_goal && free_calls && rng_below(&rng, 8) && start())
			busy = true;
		busy = take() || busy;
		if (rng_below(&rng, 64) == 0)
			cancel_one();
		if (started < call_goal && rng_below(&rng, 16) == 0)
			tagged_send();
		if (started >= call_goal && !open_cnt)
			STORE(shared->slots[self].done, true);
		if (++turn % 1024 == 0)
			watch_dead();
		if (!busy)
			sched_yield();
	}
}

static void say(int sig)
{
	fprintf(stderr, "process %u: %lu of %lu calls begun, %u open, %u requests held\n", self,
		(unsigned long)started, (unsigned long)call_goal, open_cnt, held_cnt);
	_exit(1);
}

static void child(void)
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
	for (uint32_t i = 0; i < window; i++) {
		calls[i].resp = malloc(len_max + 1);
		calls[i].next = free_calls;
		free_calls = &calls[i];
	}
	for (uint32_t i = 0; i < procs; i++) {
		while (!LOAD(shared->slots[i].open))
			sched_yield();
		names[i] = fab_insert(&fab, &shared->slots[i].addr);
	}
	for (unsigned i = 0; i < 4; i++)
		tagged_post(i);
	run();
	release_kept(0);
	FAB_TRUE(started == ended && started == call_goal);
	for (uint32_t i = 0; i < abandoned_cnt; i++) {
		for (size_t k = 0; k <= len_max; k++)
			FAB_TRUE(abandoned[i][k] == 0xA5);
		free(abandoned[i]);
	}
	shared->slots[self].calls = ended;
	fab_close(&fab);
	for (uint32_t i = 0; i < window; i++)
		free(calls[i].resp);
	free(out);
}

/* ---- the parent ---- */

static void kill_some(pid_t *pids)
{
	uint32_t victim;

	for (uint32_t i = 0; i < procs && kills; i++)
		while (!LOAD(shared->slots[i].open))
			usleep(1000);
	for (uint32_t i = 0; i < kills; i++) {
		usleep(200000 + rng_below(&rng, 200000));
		do {
			victim = rng_below(&rng, procs);
		} while (!pids[victim]);
		kill(pids[victim], SIGKILL);
		waitpid(pids[victim], NULL, 0);
		pids[victim] = 0;
		STORE(shared->slots[victim].dead, true);
	}
}

static int parent(pid_t *pids)
{
	uint64_t sum = 0, errors = 0, cancelled = 0, again = 0;
	int status, bad = 0;

	alarm(seconds + 10);
	kill_some(pids);
	for (uint32_t i = 0; i < procs; i++) {
		if (!pids[i])
			continue;
		waitpid(pids[i], &status, 0);
		if (status) {
			fprintf(stderr, "process %u: status 0x%x\n", i, status);
			bad = 1;
			STORE(shared->slots[i].dead, true);
			for (uint32_t k = 0; k < procs; k++)
				if (pids[k] && k != i)
					kill(pids[k], SIGALRM);
		}
		sum += shared->slots[i].calls;
		errors += shared->slots[i].errors;
		cancelled += shared->slots[i].cancelled;
		again += shared->slots[i].again;
	}
	printf("%s: %lu calls, %lu cancelled, %lu failed with their callee, %lu times no room\n",
	       bad ? "FAILED" : "ok", (unsigned long)sum, (unsigned long)cancelled,
	       (unsigned long)errors, (unsigned long)again);
	return bad;
}

static void options(int argc, char **argv)
{
	int opt;

	while ((opt = getopt(argc, argv, "n:c:w:l:k:s:t:")) != -1) {
		unsigned long long value = strtoull(optarg ? optarg : "0", NULL, 0);

		switch (opt) {
		case 'n': procs = (uint32_t)value; break;
		case 'c': call_goal = value; break;
		case 'w': window = (uint32_t)value; break;
		case 'l': len_max = (uint32_t)value; break;
		case 'k': kills = (uint32_t)value; break;
		case 's': rng.state = value; break;
		case 't': seconds = (unsigned)value; break;
		default: exit(2);
		}
	}
	if (!procs || procs > PROCS_MAX || !window || window > WINDOW_MAX || kills >= procs)
		exit(2);
}

int main(int argc, char **argv)
{
	pid_t pids[PROCS_MAX] = { 0 };

	options(argc, argv);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	FAB_TRUE(shared != MAP_FAILED);
	for (self = 0; self < procs; self++) {
		pids[self] = fork();
		FAB_TRUE(pids[self] >= 0);
		if (!pids[self]) {
			child();
			return 0;
		}
	}
	return parent(pids);
}
