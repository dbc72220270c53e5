/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tag matching by the device (FI_COPYRPC_TAG_OFFLOAD=1): long tagged messages to posted receives
 * need no processor at the receiver.
 *
 *   stopped   with receives posted (for one source or any, one tag or any) the receiver is stopped
 *             (SIGSTOP); all sends complete, and no byte of them is missing when it goes on
 *   kept      messages to no receive, with a short one behind them, which the receiver awaits first
 *   left      likewise, and the sender closes its endpoint before the receiver goes on
 *   canceled  a receive is canceled, and the next message of its tag goes to the one behind it
 *
 * usage: tag_stopped [rounds]
 */
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "integ/fab.h"

#define MESSAGES 16u
#define LEN      (200u << 10)
#define PATIENCE 120.0 /* seconds */
#define TAG_WARM 1000u
#define TAG_KEPT 2000u
#define TAG_LAST 3000u /* a short message */

static struct fab fab;
static fi_addr_t peer;
static uint8_t *bytes; /* MESSAGES buffers of LEN */
static int to_receiver[2], to_sender[2];

static void say(int fd, const void *what, size_t len)
{
	FAB_TRUE(write(fd, what, len) == (ssize_t)len);
}

static void hear(int fd, void *what, size_t len)
{
	FAB_TRUE(read(fd, what, len) == (ssize_t)len);
}

static uint8_t *buffer(unsigned i)
{
	return bytes + (size_t)i * LEN;
}

static uint8_t pattern(uint64_t tag, unsigned round, size_t at)
{
	return (uint8_t)(tag * 31 + round * 7 + at * 13 + (at >> 9));
}

static void fill(unsigned i, uint64_t tag, unsigned round)
{
	for (size_t at = 0; at < LEN; at++)
		buffer(i)[at] = pattern(tag, round, at);
}

static void check(unsigned i, uint64_t tag, unsigned round, size_t len)
{
	for (size_t at = 0; at < len; at++)
		FAB_TRUE(buffer(i)[at] == pattern(tag, round, at));
}

/** Awaits a completion. Returns the number of its buffer. */
static unsigned await(struct fi_cq_tagged_entry *entry, int *err)
{
	double begin = fab_seconds();

	while (!fab_poll(&fab, entry, err))
		FAB_TRUE(fab_seconds() - begin < PATIENCE);
	return (unsigned)(((uint8_t *)entry->op_context - bytes) / LEN);
}

static void await_ok(unsigned cnt)
{
	struct fi_cq_tagged_entry entry;
	int err;

	while (cnt--) {
		await(&entry, &err);
		FAB_TRUE(!err);
	}
}

static void open_all(void)
{
	struct sockaddr_in loopback = { .sin_family = AF_INET,
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	fab_open(&fab, &loopback, FI_THREAD_SAFE, FI_PROGRESS_MANUAL);
	bytes = calloc(MESSAGES, LEN);
	FAB_TRUE(bytes);
}

static void meet(const int out, const int in)
{
	struct sockaddr_in theirs;

	say(out, &fab.addr, sizeof(fab.addr));
	hear(in, &theirs, sizeof(theirs));
	peer = fab_insert(&fab, &theirs);
}

static void post_recv(unsigned i, fi_addr_t src, uint64_t tag, uint64_t ignore)
{
	FAB_CHECK(fi_trecv(fab.ep, buffer(i), LEN, NULL, src, tag, ignore, buffer(i)));
}

static void post_send(unsigned i, size_t len, uint64_t tag)
{
	double begin = fab_seconds();
	ssize_t ret;

	while ((ret = fi_tsend(fab.ep, buffer(i), len, NULL, peer, tag, buffer(i)))) {
		FAB_TRUE(ret == -FI_EAGAIN && fab_seconds() - begin < PATIENCE);
		fi_cq_read(fab.cq, NULL, 0);
	}
}

static void progress(double seconds)
{
	double end = fab_seconds() + seconds;

	while (fab_seconds() < end)
		fi_cq_read(fab.cq, NULL, 0);
}

/* ---- receiver ---- */

/** Long messages one by one: both ends make contact, and know what the other has parsed. */
static void warm_up(bool sends)
{
	for (unsigned i = 0; i < 4; i++) {
		if (sends)
			post_send(0, LEN, TAG_WARM);
		else
			post_recv(0, FI_ADDR_UNSPEC, TAG_WARM, 0);
		await_ok(1);
		progress(0.01);
	}
}

static void receive_stopped(unsigned round)
{
	struct fi_cq_tagged_entry entry;
	uint8_t byte = 1;
	int err;

	for (unsigned i = 0; i < MESSAGES; i++)
		post_recv(i, i % 2 ? peer : FI_ADDR_UNSPEC, i + 1 == MESSAGES ? 0 : i,
			  i + 1 == MESSAGES ? UINT64_MAX : 0);
	progress(0.05);
	say(to_sender[1], &byte, 1);
	raise(SIGSTOP);
	for (unsigned i = 0; i < MESSAGES; i++)
		check(i, i, round, LEN); /* before anything is read from the queue */
	for (unsigned i = 0; i < MESSAGES; i++) {
		unsigned which = await(&entry, &err);

		FAB_TRUE(!err && which == i && entry.len == LEN && entry.tag == i);
	}
}

static void receive_kept(unsigned round)
{
	struct fi_cq_tagged_entry entry;
	int err;

	post_recv(MESSAGES - 1, FI_ADDR_UNSPEC, TAG_LAST, 0);
	FAB_TRUE(await(&entry, &err) == MESSAGES - 1 && !err && entry.len == 8);
	for (unsigned i = 0; i + 1 < MESSAGES; i++) {
		post_recv(i, FI_ADDR_UNSPEC, TAG_KEPT + i, 0);
		FAB_TRUE(await(&entry, &err) == i && !err && entry.len == LEN);
		check(i, TAG_KEPT + i, round, LEN);
	}
}

static void receive_canceled(unsigned round)
{
	struct fi_cq_tagged_entry entry;
	uint8_t byte = 1;
	int err;

	post_recv(0, FI_ADDR_UNSPEC, 5, 0);
	post_recv(1, peer, 5, 0);
	progress(0.01);
	FAB_CHECK(fi_cancel(&fab.ep->fid, buffer(0)));
	FAB_TRUE(await(&entry, &err) == 0 && err == FI_ECANCELED);
	say(to_sender[1], &byte, 1);
	FAB_TRUE(await(&entry, &err) == 1 && !err && entry.len == LEN);
	check(1, 5, round, LEN);
}

static void receiver(unsigned rounds)
{
	open_all();
	meet(to_sender[1], to_receiver[0]);
	warm_up(false);
	for (unsigned round = 0; round < rounds; round++) {
		receive_stopped(round);
		receive_kept(round);
		receive_canceled(round);
	}
	receive_stopped(rounds);
	fab_close(&fab);
}

/* ---- sender ---- */

static void send_stopped(pid_t child, unsigned round, bool leaves)
{
	int status;
	uint8_t byte;

	hear(to_sender[0], &byte, 1);
	FAB_TRUE(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
	for (unsigned i = 0; i < MESSAGES; i++) {
		fill(i, i, round);
		post_send(i, LEN, i);
	}
	await_ok(MESSAGES);
	if (leaves)
		fab_close(&fab);
	FAB_TRUE(!kill(child, SIGCONT));
}

static void send_kept(unsigned round)
{
	for (unsigned i = 0; i + 1 < MESSAGES; i++) {
		fill(i, TAG_KEPT + i, round);
		post_send(i, LEN, TAG_KEPT + i);
	}
	post_send(MESSAGES - 1, 8, TAG_LAST);
	await_ok(MESSAGES);
}

static void send_canceled(unsigned round)
{
	uint8_t byte;

	hear(to_sender[0], &byte, 1);
	fill(0, 5, round);
	post_send(0, LEN, 5);
	await_ok(1);
}

static void sender(pid_t child, unsigned rounds)
{
	open_all();
	meet(to_receiver[1], to_sender[0]);
	warm_up(true);
	for (unsigned round = 0; round < rounds; round++) {
		send_stopped(child, round, false);
		send_kept(round);
		send_canceled(round);
	}
	send_stopped(child, rounds, true);
	printf("tag_stopped: %u messages to a process that was stopped\n", (rounds + 1) * MESSAGES);
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 0) : 5;
	pid_t child;
	int status;

	FAB_CHECK(pipe(to_receiver));
	FAB_CHECK(pipe(to_sender));
	fflush(stdout);
	child = fork();
	FAB_CHECK(child);
	if (!child) {
		FAB_CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL));
		receiver(rounds);
		exit(0);
	}
	sender(child, rounds);
	FAB_TRUE(waitpid(child, &status, 0) == child && !status);
	return 0;
}
