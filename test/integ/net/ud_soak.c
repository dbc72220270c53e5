/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Traffic of three processes over a network that loses, repeats and reorders packets.
 *
 * Each process sends numbered messages of different lengths to both others. Any message of a sender
 * matches any receive for that sender, so the numbers that the receives get must be 0, 1, 2 and so
 * on: a message that is lost, repeated or late is seen, as are wrong contents. The parent watches
 * the six flows: none makes a pause of PAUSE_MAX seconds. After the given time, and ENOUGH messages
 * of each flow, the processes send no more, and all that was sent arrives.
 *
 * usage: FI_COPYRPC_FAULT=drop=0.3 ud_soak SECONDS
 */
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "integ/fab.h"

#define LOAD(x)     __atomic_load_n(&(x), __ATOMIC_ACQUIRE)
#define STORE(x, v) __atomic_store_n(&(x), (v), __ATOMIC_RELEASE)

#define PROCS     3u
#define WINDOW    8u
#define LEN_MAX   100000u
#define STEP      251u /* contents differ from message to message */
#define PAUSE_MAX 30.0 /* seconds */
#define LOOK      0.02 /* seconds between two looks of the parent */
#define LOOK_MAX  0.2  /* part that counts of a longer look: the machine stood still */
#define ENOUGH    10u  /* messages of each flow, however long they take */

/** Messages from one process to another. One writer for each field. */
struct flow {
	uint64_t received;
	uint64_t sent;
	bool is_final; /* no more will be sent; set after `sent` */
};

/** State shared by parent and children. */
struct shared {
	struct sockaddr_in addrs[PROCS];
	struct flow flows[PROCS][PROCS]; /* from, to */
	bool stop;                       /* set by the parent */
	unsigned open_cnt, done_cnt;
};

/** Message or receive in flight: the completion's context. */
struct op {
	struct fi_context ctx;
	uint8_t buf[LEN_MAX];
	uint64_t number;
	unsigned peer;
	bool is_send, is_busy;
};

static struct shared *shared;
static struct fab fab;
static struct op ops[PROCS][2 * WINDOW];
static uint8_t pattern[LEN_MAX + STEP];
static unsigned self;
static fi_addr_t addrs[PROCS];
static uint64_t sent[PROCS], posted[PROCS];

/* ---- messages ---- */

static size_t len_of(uint64_t number)
{
	if (number % 64 == 63)
		return LEN_MAX;
	return sizeof(number) + (number % 16 == 15 ? 8000 : 0) + number % 192;
}

static const uint8_t *contents_of(uint64_t number)
{
	return pattern + number % STEP;
}

static void fill(struct op *op)
{
	memcpy(op->buf, &op->number, sizeof(op->number));
	memcpy(op->buf + sizeof(op->number), contents_of(op->number),
	       len_of(op->number) - sizeof(op->number));
}

/** Checks that the receive has got the message of its number. */
static void check(const struct op *op, size_t len)
{
	uint64_t number;

	FAB_TRUE(len >= sizeof(number));
	memcpy(&number, op->buf, sizeof(number));
	if (number != op->number)
		fprintf(stderr, "%u from %u: message %llu in place of %llu\n", self, op->peer,
			(unsigned long long)number, (unsigned long long)op->number);
	FAB_TRUE(number == op->number && len == len_of(number));
	FAB_TRUE(!memcmp(op->buf + sizeof(number), contents_of(number), len - sizeof(number)));
}

/* ---- children ---- */

static ssize_t try_post(struct op *op)
{
	fi_addr_t with = addrs[op->peer];

	if (!op->is_send)
		return fi_trecv(fab.ep, op->buf, LEN_MAX, NULL, with, 0, 0, op);
	return fi_tsend(fab.ep, op->buf, len_of(op->number), NULL, with, 0, op);
}

static void post(struct op *op)
{
	ssize_t ret;

	op->number = op->is_send ? sent[op->peer]++ : posted[op->peer]++;
	op->is_busy = true;
	if (op->is_send)
		fill(op);
	while ((ret = try_post(op)) == -FI_EAGAIN)
		fi_cq_read(fab.cq, NULL, 0); /* progress */
	FAB_CHECK(ret);
}

/** Reads one completion, and posts the next operation in its place. */
static void step(void)
{
	struct fi_cq_tagged_entry entry;
	struct op *op;
	int err;

	if (!fab_poll(&fab, &entry, &err)) {
		sched_yield();
		return;
	}
	op = entry.op_context;
	if (err)
		fprintf(stderr, "%u: a %s ended: %s\n", self, op->is_send ? "send" : "receive",
			fi_strerror(err));
	FAB_TRUE(!err);
	op->is_busy = false;
	if (!op->is_send) {
		struct flow *flow = &shared->flows[op->peer][self];

		check(op, entry.len);
		STORE(flow->received, flow->received + 1);
	}
	if (!op->is_send || !LOAD(shared->stop))
		post(op);
}

static bool is_complete(struct flow *flow)
{
	return LOAD(flow->is_final) && LOAD(flow->received) == flow->sent;
}

/** Returns whether the peer's messages and those to it have arrived. */
static bool is_done_with(unsigned peer)
{
	if (!is_complete(&shared->flows[peer][self]) || !is_complete(&shared->flows[self][peer]))
		return false;
	for (unsigned i = 0; i < 2 * WINDOW; i++)
		if (ops[peer][i].is_send && ops[peer][i].is_busy)
			return false;
	return true;
}

static void begin_with(unsigned peer)
{
	addrs[peer] = fab_insert(&fab, &shared->addrs[peer]);
	for (unsigned i = 0; i < 2 * WINDOW; i++) {
		ops[peer][i].peer = peer;
		ops[peer][i].is_send = i % 2;
		post(&ops[peer][i]);
	}
}

static void announce_end(unsigned peer)
{
	struct flow *flow = &shared->flows[self][peer];

	flow->sent = sent[peer];
	STORE(flow->is_final, true);
}

static void end_with(unsigned peer)
{
	while (!is_done_with(peer))
		step();
}

/** Calls `with` for each other process. */
static void for_others(void (*with)(unsigned peer))
{
	for (unsigned i = 1; i < PROCS; i++)
		with((self + i) % PROCS);
}

static void run(void)
{
	struct sockaddr_in any_port = fab_addr("127.0.0.1", 0);

	for (size_t i = 0; i < sizeof(pattern); i++)
		pattern[i] = (uint8_t)(i * 2654435761u >> 24);
	fab_open(&fab, &any_port, FI_THREAD_SAFE, FI_PROGRESS_MANUAL);
	shared->addrs[self] = fab.addr;
	__atomic_add_fetch(&shared->open_cnt, 1, __ATOMIC_ACQ_REL);
	while (LOAD(shared->open_cnt) < PROCS)
		usleep(1000);
	for_others(begin_with);
	while (!LOAD(shared->stop))
		step();
	for_others(announce_end);
	for_others(end_with);
	__atomic_add_fetch(&shared->done_cnt, 1, __ATOMIC_ACQ_REL);
	while (LOAD(shared->done_cnt) < PROCS)
		step();
	fab_close(&fab);
}

static void start(unsigned i)
{
	pid_t parent = getpid(), pid = fork();

	FAB_TRUE(pid >= 0);
	if (pid)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	self = i;
	run();
	_exit(0);
}

/* ---- parent ---- */

#define FLOWS (PROCS * (PROCS - 1))

static double pauses[FLOWS], longest;

static struct flow *flow_at(unsigned i)
{
	unsigned from = i / (PROCS - 1);

	return &shared->flows[from][(from + 1 + i % (PROCS - 1)) % PROCS];
}

/** Adds the seconds of a look to the pauses of all flows, and ends those of flows that went on. */
static void watch(double seconds)
{
	static uint64_t seen[FLOWS];

	for (unsigned i = 0; i < FLOWS; i++) {
		struct flow *flow = flow_at(i);
		uint64_t received = LOAD(flow->received);

		pauses[i] += seconds < LOOK_MAX ? seconds : LOOK_MAX;
		longest = pauses[i] > longest ? pauses[i] : longest;
		if (pauses[i] >= PAUSE_MAX)
			fprintf(stderr, "flow %u: no message for %.0f s after %llu\n", i, pauses[i],
				(unsigned long long)received);
		FAB_TRUE(pauses[i] < PAUSE_MAX);
		if (received != seen[i] || is_complete(flow))
			pauses[i] = 0;
		seen[i] = received;
	}
}

/** Returns how many messages the slowest flow has moved. */
static uint64_t least_received(void)
{
	uint64_t least = UINT64_MAX;

	for (unsigned i = 0; i < FLOWS; i++)
		if (LOAD(flow_at(i)->received) < least)
			least = LOAD(flow_at(i)->received);
	return least;
}

/** Returns the number of children that have ended. Each must have ended well. */
static unsigned reap(void)
{
	static unsigned cnt;
	int status;

	while (waitpid(-1, &status, WNOHANG) > 0) {
		FAB_TRUE(WIFEXITED(status) && !WEXITSTATUS(status));
		cnt++;
	}
	return cnt;
}

static void watch_until_end(double seconds)
{
	double now = fab_seconds(), last = now, end = now + seconds;

	while (reap() < PROCS) {
		usleep((useconds_t)(LOOK * 1e6));
		now = fab_seconds();
		watch(now - last);
		last = now;
		if (now >= end && least_received() >= ENOUGH)
			STORE(shared->stop, true);
	}
}

static void report(double seconds)
{
	uint64_t total = 0;

	for (unsigned i = 0; i < FLOWS; i++) {
		FAB_TRUE(is_complete(flow_at(i)));
		total += flow_at(i)->received;
	}
	printf("ud_soak: %.0f s, %llu messages in order, at least %llu of each of %u flows, "
	       "longest pause %.2f s\n",
	       seconds, (unsigned long long)total, (unsigned long long)least_received(), FLOWS,
	       longest);
}

int main(int argc, char **argv)
{
	double begin = fab_seconds();

	if (argc != 2 || atof(argv[1]) <= 0) {
		fprintf(stderr, "usage: ud_soak SECONDS\n");
		return 2;
	}
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	FAB_TRUE(shared != MAP_FAILED);
	for (unsigned i = 0; i < PROCS; i++)
		start(i);
	watch_until_end(atof(argv[1]));
	report(fab_seconds() - begin);
	return 0;
}
