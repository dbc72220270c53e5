/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two processes exchange messages over datagrams, while a third one, which has stolen the job key,
 * attacks them with the floods of ud_flood.h, and with thousands of sessions that it abandons.
 * Meanwhile every message between the two must arrive, once, whole and in order, and their memory
 * must not grow beyond a bound. While the attacker's host occupies all pending connections, a new
 * peer from another host connects; a process that connects to an attacker that never completes the
 * handshake gets an error after the peer timeout.
 *
 * usage: ud_attacked [packets of each flood]
 */
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "integ/fab.h"
#include "support/proc.h"
#include "ud_flood.h"
#include "ud_victim.h"

#define FRIENDLY  64u         /* attackers that complete the handshake, of FOES */
#define GROW_MAX  (48u << 10) /* KiB */
#define TIMEOUT   "120000"    /* no peer expires before the test is over */
#define FOE_IP    "127.0.0.2" /* an address of another host */
#define JOB_KEY   "stolen"    /* without a key no datagram from this host opens a connection */
#define ABANDONED 100u        /* times that all friendly ones vanish */

static uint32_t flood_cnt = 50000;

static void flood(const char *what, void (*one)(struct foe *foe, uint32_t i), uint32_t foe_cnt)
{
	uint32_t i;

	for (i = 0; i < flood_cnt; i++)
		one(&foes[i % foe_cnt], i);
	victim_await_talk(what);
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
	victim_await_talk("the unlimited flood");
	printf("ud_attacked: flood without limit: %.0f messages a second before, %.0f with the "
	       "filter and %.0f "
	       "without (medians of 5 in turns), ratio %.2f\n",
	       quiet, median(with, 5), median(without, 5),
	       median(with, 5) / (median(without, 5) > 0 ? median(without, 5) : 1));
	fflush(stdout);
}

/* With and without an end of the handshake */

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

/** Returns the number of descriptors, but for a UDP socket connected to a living process. */
static unsigned held(pid_t pid)
{
	unsigned cnt, peer;

	do {
		cnt = proc_fd_cnt(pid);
		peer = proc_has_udp_peer(pid);
	} while (cnt != proc_fd_cnt(pid)); /* one opens just now */
	return cnt - peer;
}

static unsigned held_before;

/** Records the descriptors of the victim, but for some that it has for a moment only. */
static void note_held(void)
{
	held_before = held(victims[0].pid);
	for (int i = 0; i < 50; i++) {
		unsigned now = held(victims[0].pid);

		held_before = now < held_before ? now : held_before;
		usleep(1000);
	}
}

/** Returns false while the victim has others, such as one with which it asks for a route. */
static bool holds_as_before(void)
{
	return held(victims[0].pid) == held_before;
}

/**
 * All friendly attackers complete the handshake and vanish, again and again: half of them are
 * replaced by another process at the same address, the others leave a closed port. Their state is
 * freed as fast as it is created.
 */
static void abandon(uint32_t rounds)
{
	unsigned long before = proc_resident_kib(victims[0].pid);
	uint32_t round, i;

	note_held();
	for (round = 0; round < rounds; round++) {
		for (i = 0; i < FRIENDLY; i++) {
			if (i % 2) {
				foe_vanish(&foes[i]);
				foe_open(&foes[i], FOE_IP, flood_random() | 1);
			} else {
				foe_restart(&foes[i], flood_random() | 1);
			}
		}
		victim_await("foes that come to vanish", friends_are_in);
	}
	victim_await_talk("abandoned sessions");
	victim_await("the descriptors of abandoned sessions", holds_as_before);
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
	victim_start(3, 4, "2000");
	victim_await("a call at a foe that is mute", caller_has_given_up);
	FAB_TRUE(victims[3].err == FI_ETIMEDOUT);
	FAB_TRUE(fab_seconds() - begin > 1.9);
	printf("ud_attacked: a call at a mute foe ended after %.1f s\n", fab_seconds() - begin);
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
	victim_init();
	victim_start(0, 1, TIMEOUT);
	victim_start(1, 0, TIMEOUT);
	victim_await_talk("the beginning");
	flood_find_ports(victims[0].pid);
	flood_find_ports(victims[1].pid);
	before = proc_resident_kib(victims[0].pid);
	for (i = 0; i < FOES; i++)
		foe_open(&foes[i], FOE_IP, flood_random() | 1);
	flood("garbage", flood_garbage, FOES);
	flood("headers", flood_headers, FOES);
	flood_without_limit();
	flood("requests", flood_requests, FOES);
	flood("cookies", flood_cookies, FOES);
	victim_await("foes that end the handshake", friends_are_in);
	flood("sessions", flood_session, FRIENDLY);
	abandon(ABANDONED);
	flood("half open", flood_half_open, FOES - 1);
	FAB_TRUE(proc_resident_kib(victims[0].pid) < before + GROW_MAX);
	begin = fab_seconds();
	victim_start(2, 0, TIMEOUT);
	victim_await("a newcomer", newcomer_is_in);
	FAB_TRUE(!victims[2].err);
	printf("ud_attacked: a newcomer was connected, and its message delivered, after %.2f s\n",
	       fab_seconds() - begin);
	call_at_a_mute();
	victim_await_talk("the end");
	printf("ud_attacked: ok: %lu messages between the two, %ld KiB more in use\n",
	       (unsigned long)(victims[0].received + victims[1].received),
	       (long)proc_resident_kib(victims[0].pid) - (long)before);
	victim_stop();
	return 0;
}
