/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two processes exchange messages over datagrams, while a third one, which has stolen the job key,
 * attacks them.
 *
 * The attacker floods all their ports with garbage, with valid-looking headers, with connection
 * requests; it presents cookies that it never received; it begins hundreds of handshakes without
 * completing them; it completes some, sends packets in its sessions that no peer sends, and
 * abandons thousands of them. Meanwhile every message between the two must arrive, once, whole and
 * in order, and their memory must not grow beyond a bound. While the attacker's host occupies all
 * pending connections, a new peer from another host connects; a process that connects to an
 * attacker that never completes the handshake gets an error after the peer timeout.
 *
 * The two are processes that call libfabric; the attacker has sockets, and the formats of wire/.
 *
 * usage: ud_attacked [packets of each flood]
 */
#include <linux/filter.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "integ/fab.h"
#include "support/proc.h"
#include "ud_foe.h"
#include "wire/wire_erpc.h"

#define LIMIT     60.0 /* seconds for each step */
#define WINDOW    8
#define LEN_MAX   20000u
#define FOES      400u
#define FRIENDLY  64u         /* of them: those that complete the handshake */
#define GROW_MAX  (48u << 10) /* KiB */
#define TIMEOUT   "120000"    /* no peer expires before the test is over */
#define FOE_IP    "127.0.0.2" /* an address of another host */
#define JOB_KEY   "stolen"    /* without a key no datagram from this host opens a connection */
#define PORTS_MAX 8u
#define ABANDONED 100u /* times that all friendly ones vanish */

/** A process under attack. */
struct victim {
	pid_t pid;
	struct sockaddr_in addr;
	uint64_t received;
	int err; /* for a process whose send must fail: its error, positive */
	bool is_open, stop;
	bool is_bare; /* the sockets of the process have no filter */
};

/* shared: two that exchange messages, a new peer, one that connects to an attacker */
static struct victim *victims;
static struct foe foes[FOES];
static struct sockaddr_in ports[PORTS_MAX]; /* all of the first victim's */
static uint32_t port_cnt;
static uint64_t rng = 88172645463325252ull;

#define LOAD(x)     __atomic_load_n(&(x), __ATOMIC_ACQUIRE)
#define STORE(x, v) __atomic_store_n(&(x), (v), __ATOMIC_RELEASE)

static uint64_t next_random(void)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return rng;
}

/* ---- honest processes ---- */

static uint32_t len_of(uint64_t number)
{
	return (uint32_t)(number * 2654435761u % (number % 16 ? 200 : LEN_MAX));
}

static void fill(uint8_t *buf, uint64_t number)
{
	for (uint32_t i = 0, len = len_of(number); i < len; i++)
		buf[i] = (uint8_t)(number * 7 + i);
}

static void check(const uint8_t *buf, size_t len, uint64_t number)
{
	FAB_TRUE(len == len_of(number));
	for (uint32_t i = 0; i < len; i++)
		FAB_TRUE(buf[i] == (uint8_t)(number * 7 + i));
}

/** Buffer in flight: the completion's context. */
struct op {
	struct fi_context ctx;
	uint8_t buf[LEN_MAX];
	uint64_t number;
	bool is_send;
};

static struct fab fab;
static struct op ops[2 * WINDOW];
static uint64_t sent, posted;

static ssize_t try_post(struct op *op, fi_addr_t with)
{
	if (!op->is_send)
		return fi_trecv(fab.ep, op->buf, LEN_MAX, NULL, with, op->number, 0, op);
	return fi_tsend(fab.ep, op->buf, len_of(op->number), NULL, with, op->number, op);
}

static void post(struct op *op, fi_addr_t with)
{
	ssize_t ret;

	op->number = op->is_send ? sent++ : posted++;
	if (op->is_send)
		fill(op->buf, op->number);
	while ((ret = try_post(op, with)) == -FI_EAGAIN)
		fi_cq_read(fab.cq, NULL, 0); /* progress */
	FAB_CHECK(ret);
}

/** Reads one completion, and checks that the message is whole. */
static struct op *take(struct victim *self)
{
	struct fi_cq_tagged_entry entry;
	struct op *op;
	int err;

	if (!fab_poll(&fab, &entry, &err)) {
		sched_yield();
		return NULL;
	}
	op = entry.op_context;
	if (err)
		fprintf(stderr, "a %s ended: %s\n", op->is_send ? "send" : "receive",
			fi_strerror(err));
	FAB_TRUE(!err);
	if (!op->is_send) {
		check(op->buf, entry.len, op->number);
		STORE(self->received, self->received + 1);
	}
	return op;
}

/* ---- filters of the own sockets ---- */

#define FDS_MAX 256

static struct filter {
	struct sock_filter ops[64];
	unsigned short len; /* 0: the descriptor has none */
} filters[FDS_MAX];

/** Takes the filter from each socket, or puts it back. */
static void set_bare(bool is_bare)
{
	for (int fd = 0; fd < FDS_MAX; fd++) {
		struct filter *f = &filters[fd];
		struct sock_fprog program = { .filter = f->ops };
		socklen_t len = sizeof(f->ops) / sizeof(f->ops[0]);
		int zero = 0;

		/* Counts instructions, not bytes. */
		if (is_bare && !getsockopt(fd, SOL_SOCKET, SO_GET_FILTER, f->ops, &len) && len) {
			f->len = (unsigned short)len;
			FAB_TRUE(
				!setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &zero, sizeof(zero)));
		} else if (!is_bare && f->len) {
			program.len = f->len;
			FAB_TRUE(!setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program,
					     sizeof(program)));
			f->len = 0;
		}
	}
}

/** Exchanges messages with the other, until a stop is requested and no message is in flight. */
static void talk(struct victim *self, const struct victim *other)
{
	fi_addr_t with = fab_insert(&fab, &other->addr);
	struct op *op;
	bool is_bare = false;
	unsigned i;

	for (i = 0; i < 2 * WINDOW; i++) {
		ops[i].is_send = i % 2;
		post(&ops[i], with);
	}
	while (!LOAD(self->stop)) {
		if (LOAD(self->is_bare) != is_bare) {
			is_bare = !is_bare;
			set_bare(is_bare);
		}
		if ((op = take(self)))
			post(op, with);
	}
}

/** Sends one message and records its error. */
static void call_at(struct victim *self, const struct victim *other)
{
	fi_addr_t to = fab_insert(&fab, &other->addr);
	struct fi_cq_tagged_entry entry;
	int err;

	FAB_CHECK(fi_tsend(fab.ep, ops[0].buf, 8, NULL, to, UINT64_MAX, &ops[0]));
	while (!fab_poll(&fab, &entry, &err))
		sched_yield();
	STORE(self->err, err);
	STORE(self->received, 1);
}

/** Starts a process: 0 and 1 exchange messages, the others send to one of `other`. */
static void start(unsigned i, unsigned other, const char *timeout_ms)
{
	struct victim *self = &victims[i];
	pid_t parent = getpid(), pid = fork();
	struct sockaddr_in any;

	FAB_TRUE(pid >= 0);
	if (pid) {
		self->pid = pid;
		return;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	setenv("FI_COPYRPC_PEER_TIMEOUT", timeout_ms, 1);
	any = fab_addr("127.0.0.1", 0);
	fab_open(&fab, &any, FI_THREAD_SAFE, FI_PROGRESS_MANUAL);
	self->addr = fab.addr;
	STORE(self->is_open, true);
	while (!LOAD(victims[other].is_open))
		usleep(1000);
	if (i < 2)
		talk(self, &victims[other]);
	else
		call_at(self, &victims[other]);
	_exit(0);
}

/** Fails if it takes too long, or a process has ended that should not. */
static void await(const char *what, bool (*done)(void))
{
	double begin = fab_seconds();
	int status;

	while (!done()) {
		if (waitpid(-1, &status, WNOHANG) > 0 && status)
			fab_fail(__FILE__, __LINE__, what, "a process under attack has ended");
		if (fab_seconds() - begin > LIMIT)
			fab_fail(__FILE__, __LINE__, what, "it takes too long");
		usleep(1000);
	}
}

static uint64_t marks[2];

static bool both_received_more(void)
{
	return LOAD(victims[0].received) > marks[0] + 200 &&
	       LOAD(victims[1].received) > marks[1] + 200;
}

/** Waits until the two have exchanged more messages. */
static void await_talk(const char *what)
{
	marks[0] = LOAD(victims[0].received);
	marks[1] = LOAD(victims[1].received);
	await(what, both_received_more);
}

/* ---- state visible from outside ---- */

/** Finds the UDP ports of a process: that of its endpoint, and that of its sessions. */
static void find_ports(const struct victim *v)
{
	FILE *file = fopen("/proc/net/udp", "re");
	unsigned long inode;
	unsigned port;
	char line[512];

	FAB_TRUE(file);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "%*u: %*x:%x %*x:%*x %*x %*x:%*x %*x:%*x %*x %*u %*u %lu", &port,
			   &inode) == 2 &&
		    port_cnt < PORTS_MAX && proc_owns_socket(v->pid, inode))
			ports[port_cnt++] = fab_addr("127.0.0.1", (int)port);
	fclose(file);
	FAB_TRUE(port_cnt >= 2);
}

/* ---- attacks ---- */

static uint32_t flood_cnt = 50000;

static void flood_garbage(struct foe *foe, uint32_t i)
{
	uint8_t buf[1500];
	size_t len = next_random() % (sizeof(buf) + 1), k;

	for (k = 0; k < len; k++)
		buf[k] = (uint8_t)next_random();
	foe_send(foe, &ports[i % port_cnt], buf, len);
}

/** Sends valid-looking headers, for sessions that may exist. */
static void flood_headers(struct foe *foe, uint32_t i)
{
	uint8_t buf[256] = { 0 };
	struct wire_erpc_hdr h = {
		.req_type = WIRE_ERPC_BATCH,
		.msg_size = 8,
		.session = (uint16_t)(next_random() % 4),
		.kind = (enum wire_erpc_kind)(i % 4),
		.req_num = next_random() % WIRE_ERPC_REQ_MAX,
		.tag = (uint16_t)next_random(),
	};

	wire_erpc_put(buf, &h);
	foe_send(foe, &ports[i % port_cnt], buf, WIRE_ERPC_HDR_LEN + 8);
}

static void flood_requests(struct foe *foe, uint32_t i)
{
	foe->nonce++;
	foe_ask(foe, &victims[i % 2].addr);
	foe_listen(foe, &victims[i % 2].addr);
}

/** Sends invented cookies, and those of another attacker. */
static void flood_cookies(struct foe *foe, uint32_t i)
{
	uint8_t cookie[WIRE_CM_COOKIE_LEN];
	uint64_t random = next_random();

	memcpy(cookie, &random, sizeof(random));
	memcpy(cookie + sizeof(random), &random, sizeof(random));
	foe_hello(foe, &victims[0].addr, i % 2 ? cookie : foes[(i + 1) % FOES].ack.ack.cookie);
}

/** Sends the last cookie, and nothing after it. */
static void flood_half_open(struct foe *foe, uint32_t i)
{
	foe->is_mute = true;
	foe_listen(foe, &victims[0].addr);
	if (foe->ack.src_inc && i % 4)
		foe_hello(foe, &victims[0].addr, foe->ack.ack.cookie);
	else
		foe_ask(foe, &victims[0].addr);
}

/** Sends packets with random contents in an established session. */
static void flood_session(struct foe *foe, uint32_t i)
{
	uint8_t buf[1472];
	uint32_t slot = (uint32_t)next_random() % 8, k, len = (uint32_t)next_random() % 1400;
	uint64_t first = foe->params.token >> 20 & 0xFFFFFFFFF8;
	struct wire_erpc_hdr h = {
		.req_type = slot < 5   ? WIRE_ERPC_BATCH
			    : slot < 7 ? WIRE_ERPC_GET
				       : WIRE_ERPC_REPLIES,
		.msg_size = i % 8 ? len : 60000,
		.session = foe->params.session,
		.kind = (enum wire_erpc_kind)(i % 16 ? WIRE_ERPC_REQ : next_random() % 4),
		.req_num = first + slot + 8 * (next_random() % 2),
		.tag = (uint16_t)foe->params.token,
	};

	if (!foe->params.token)
		return;
	for (k = WIRE_ERPC_HDR_LEN; k < sizeof(buf); k++)
		buf[k] = (uint8_t)next_random();
	if (i % 4)
		memset(buf + WIRE_ERPC_HDR_LEN, 0, 16);
	wire_erpc_put(buf, &h);
	foe_send(foe, &foe->port, buf, h.msg_size == len ? len + WIRE_ERPC_HDR_LEN : sizeof(buf));
}

static void flood(const char *what, void (*one)(struct foe *foe, uint32_t i), uint32_t foe_cnt)
{
	uint32_t i;

	for (i = 0; i < flood_cnt; i++)
		one(&foes[i % foe_cnt], i);
	await_talk(what);
	printf("ud_attacked: %-10s %u packets, the others went on talking, %lu MiB\n", what,
	       flood_cnt, proc_resident_kib(victims[0].pid) >> 10);
	fflush(stdout);
}

/** Sends valid-looking headers as fast as it can, from many ports, until it is killed. */
static pid_t start_flood(void)
{
	pid_t parent = getpid(), pid = fork();
	uint32_t i;

	FAB_TRUE(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	for (i = 0;; i++)
		flood_headers(&foes[i % FOES], i);
}

/** Returns the messages that the two exchange in a second. */
static double rate_of(bool is_bare)
{
	uint64_t before;
	double begin;

	STORE(victims[0].is_bare, is_bare);
	STORE(victims[1].is_bare, is_bare);
	usleep(100000);
	before = LOAD(victims[0].received) + LOAD(victims[1].received);
	begin = fab_seconds();
	usleep(700000);
	return (double)(LOAD(victims[0].received) + LOAD(victims[1].received) - before) /
	       (fab_seconds() - begin);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *values, size_t cnt)
{
	qsort(values, cnt, sizeof(values[0]), by_value);
	return values[cnt / 2];
}

/**
 * Floods without a limit, while the kernel filters the victims' sockets and while it does not, in
 * turns. The ratio is reported, not demanded: it depends on which processes get the processors.
 */
static void flood_without_limit(void)
{
	double quiet = rate_of(false), with[5], without[5];
	pid_t pid = start_flood();
	int status;
	unsigned i;

	for (i = 0; i < 5; i++) {
		with[i] = rate_of(false);
		without[i] = rate_of(true);
	}
	STORE(victims[0].is_bare, false);
	STORE(victims[1].is_bare, false);
	FAB_TRUE(!kill(pid, SIGKILL) && waitpid(pid, &status, 0) == pid);
	await_talk("the unlimited flood");
	printf("ud_attacked: flood without limit: %.0f messages a second before, %.0f with the "
	       "filter and %.0f "
	       "without (medians of 5 in turns), ratio %.2f\n",
	       quiet, median(with, 5), median(without, 5),
	       median(with, 5) / (median(without, 5) > 0 ? median(without, 5) : 1));
	fflush(stdout);
}

/* ---- with and without an end of the handshake ---- */

static bool friends_are_in(void)
{
	uint32_t i, cnt = 0;

	for (i = 0; i < FRIENDLY; i++) {
		struct foe *foe = &foes[i];

		foe_listen(foe, &victims[0].addr);
		cnt += foe->params.token != 0;
		if (foe->params.token)
			continue;
		if (foe->ack.src_inc)
			foe_hello(foe, &victims[0].addr, foe->ack.ack.cookie);
		foe_ask(foe, &victims[0].addr);
	}
	return cnt == FRIENDLY;
}

/**
 * All friendly attackers complete the handshake and vanish, again and again: half of them are
 * replaced by another process at the same address, the others leave a closed port. Their state is
 * freed as fast as it is created.
 */
static void abandon(uint32_t rounds)
{
	unsigned fds = proc_fd_cnt(victims[0].pid);
	unsigned long before = proc_resident_kib(victims[0].pid);
	uint32_t round, i;

	for (round = 0; round < rounds; round++) {
		for (i = 0; i < FRIENDLY; i++) {
			if (i % 2) {
				foe_vanish(&foes[i]);
				foe_open(&foes[i], FOE_IP, next_random() | 1);
			} else {
				foe_restart(&foes[i], next_random() | 1);
			}
		}
		await("foes that come to vanish", friends_are_in);
	}
	await_talk("abandoned sessions");
	FAB_TRUE(proc_fd_cnt(victims[0].pid) == fds);
	printf("ud_attacked: abandoned  %u sessions, the others went on talking, %ld KiB more in "
	       "use\n",
	       rounds * FRIENDLY, (long)(proc_resident_kib(victims[0].pid) - before));
	fflush(stdout);
}

/** Meanwhile the attackers occupy the pending connections. */
static bool newcomer_is_in(void)
{
	static uint32_t i;
	uint32_t end = i + FOES;

	while (i++ != end)
		flood_half_open(&foes[i % (FOES - 1)], i);
	return LOAD(victims[2].received);
}

/** Replies to connection requests, and sends nothing else. */
static bool caller_has_given_up(void)
{
	struct foe *foe = &foes[FOES - 1];

	foe->req.src_inc = 0;
	foe_listen(foe, &victims[3].addr);
	if (foe->req.src_inc)
		foe_invite(foe, &victims[3].addr);
	return LOAD(victims[3].received);
}

/**
 * A process that connects to a silent attacker gets an error, and not before the documented time.
 */
static void call_at_a_mute(void)
{
	double begin = fab_seconds();

	victims[4].addr = foes[FOES - 1].addr;
	victims[4].is_open = true;
	start(3, 4, "2000");
	await("a call at a foe that is mute", caller_has_given_up);
	FAB_TRUE(victims[3].err == FI_ETIMEDOUT);
	FAB_TRUE(fab_seconds() - begin > 1.9);
	printf("ud_attacked: a call at a mute foe ended after %.1f s\n", fab_seconds() - begin);
}

static void stop_all(void)
{
	unsigned i;

	for (i = 0; i < 2; i++) {
		int status;

		STORE(victims[i].stop, true);
		FAB_TRUE(waitpid(victims[i].pid, &status, 0) == victims[i].pid && !status);
	}
}

int main(int argc, char **argv)
{
	unsigned long before;
	double begin;
	uint32_t i;

	flood_cnt = argc > 1 ? (uint32_t)atoi(argv[1]) : flood_cnt;
	setenv("FI_COPYRPC_JOB_KEY", JOB_KEY, 1);
	/* Messages that wait for a victim without a processor are not growth. */
	setenv("FI_COPYRPC_UNEXPECTED_MEM", "4M", 1);
	foe_set_key(JOB_KEY);
	victims = mmap(NULL, 5 * sizeof(*victims), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	FAB_TRUE(victims != MAP_FAILED);
	start(0, 1, TIMEOUT);
	start(1, 0, TIMEOUT);
	await_talk("the beginning");
	find_ports(&victims[0]);
	find_ports(&victims[1]);
	before = proc_resident_kib(victims[0].pid);
	for (i = 0; i < FOES; i++)
		foe_open(&foes[i], FOE_IP, next_random() | 1);
	flood("garbage", flood_garbage, FOES);
	flood("headers", flood_headers, FOES);
	flood_without_limit();
	flood("requests", flood_requests, FOES);
	flood("cookies", flood_cookies, FOES);
	await("foes that end the handshake", friends_are_in);
	flood("sessions", flood_session, FRIENDLY);
	abandon(ABANDONED);
	flood("half open", flood_half_open, FOES - 1);
	FAB_TRUE(proc_resident_kib(victims[0].pid) < before + GROW_MAX);
	begin = fab_seconds();
	start(2, 0, TIMEOUT);
	await("a newcomer", newcomer_is_in);
	FAB_TRUE(!victims[2].err);
	printf("ud_attacked: a newcomer was connected, and its message delivered, after %.2f s\n",
	       fab_seconds() - begin);
	call_at_a_mute();
	await_talk("the end");
	printf("ud_attacked: ok: %lu messages between the two, %ld KiB more in use\n",
	       (unsigned long)(victims[0].received + victims[1].received),
	       (long)proc_resident_kib(victims[0].pid) - (long)before);
	stop_all();
	return 0;
}
