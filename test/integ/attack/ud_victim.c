/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Honest processes: see ud_victim.h. */
#include "ud_victim.h"

#include <linux/filter.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "integ/fab.h"

#define LIMIT   60.0 /* seconds for each step */
#define WINDOW  8
#define LEN_MAX 20000u

struct victim *victims;

void victim_init(void)
{
	victims = mmap(NULL, VICTIMS_MAX * sizeof(*victims), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	FAB_TRUE(victims != MAP_FAILED);
}

/* Messages that check themselves */

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

/* Filters of the own sockets */

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

/* Life of a victim */

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

void victim_start(unsigned i, unsigned other, const char *timeout_ms)
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

/* Seen from the parent */

void victim_await(const char *what, bool (*done)(void))
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

void victim_await_talk(const char *what)
{
	marks[0] = LOAD(victims[0].received);
	marks[1] = LOAD(victims[1].received);
	victim_await(what, both_received_more);
}

void victim_stop(void)
{
	unsigned i;

	for (i = 0; i < 2; i++) {
		int status;

		STORE(victims[i].stop, true);
		FAB_TRUE(waitpid(victims[i].pid, &status, 0) == victims[i].pid && !status);
	}
}
