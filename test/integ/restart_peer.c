/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A process that answers, and a process that asks: what the script `restart` starts, kills, starts again.
 *
 * usage: restart_peer serve IP PORT NAME     answers each question with NAME, until it is killed (5 minutes)
 *        restart_peer ask IP PORT [COUNT]    asks COUNT times (once), a tenth of a second apart
 *
 * An asker prints a line whenever the answer is another one than before: "answered NAME", or
 * "failed ERROR in N ms". Its exit status is 0 if the last question was answered.
 */
#include <sched.h>
#include <unistd.h>

#include "fab.h"

#define TAG_ASK    1
#define TAG_ANSWER 2
#define PATIENCE   20.0 /* seconds in which an operation must end, well or badly */

struct note {
	struct sockaddr_in from;
	char text[48];
};

static struct fab fab;

/** Waits for an operation: 0 or its error, or FI_ETIMEDOUT (positive) after PATIENCE if `bounded`. */
static int wait_for(const void *context, bool bounded)
{
	double end = fab_seconds() + PATIENCE;
	struct fi_cq_tagged_entry entry;
	int err;

	while (!bounded || fab_seconds() < end) {
		if (fab_poll(&fab, &entry, &err)) {
			if (entry.op_context == context)
				return err;
		} else if (bounded) {
			sched_yield();
		} else {
			usleep(500);
		}
	}
	fprintf(stderr, "an operation has not ended after %.0f s\n", PATIENCE);
	exit(3);
}

static void serve(const char *ip, int port, const char *name)
{
	struct sockaddr_in src = fab_addr(ip, port);
	struct note ask, answer = { 0 };
	fi_addr_t from;

	alarm(300);
	fab_open(&fab, &src, FI_THREAD_SAFE, FI_PROGRESS_MANUAL);
	snprintf(answer.text, sizeof(answer.text), "%s", name);
	printf("ready %d\n", ntohs(fab.addr.sin_port));
	fflush(stdout);
	for (;;) {
		FAB_CHECK(fi_trecv(fab.ep, &ask, sizeof(ask), NULL, FI_ADDR_UNSPEC, TAG_ASK, 0,
				   &ask));
		if (wait_for(&ask, false))
			continue;
		from = fab_insert(&fab, &ask.from);
		FAB_CHECK(
			fi_tsend(fab.ep, &answer, sizeof(answer), NULL, from, TAG_ANSWER, &answer));
		wait_for(&answer, false);
	}
}

/** 0 and the answer's text, or an error (positive). */
static int ask_once(fi_addr_t to, struct note *answer)
{
	struct note ask = { .from = fab.addr };
	int err, recv_err;

	FAB_CHECK(fi_trecv(fab.ep, answer, sizeof(*answer), NULL, to, TAG_ANSWER, 0, answer));
	FAB_CHECK(fi_tsend(fab.ep, &ask, sizeof(ask), NULL, to, TAG_ASK, &ask));
	err = wait_for(&ask, true);
	if (err) {
		fi_cancel(&fab.ep->fid, answer);
		/* It may have ended, and been passed over above, with the send's own error. */
		for (int i = 0; i < 1000; i++) {
			struct fi_cq_tagged_entry entry;

			fab_poll(&fab, &entry, &recv_err);
		}
		return err;
	}
	return wait_for(answer, true);
}

static int ask(const char *ip, int port, int count)
{
	struct sockaddr_in src = fab_addr(getenv("ASK_FROM") ? getenv("ASK_FROM") : ip, 0);
	struct sockaddr_in dst = fab_addr(ip, port);
	char line[96] = "", last[96] = "";
	struct note answer = { 0 };
	double begin;
	fi_addr_t to;
	int err = 0;

	fab_open(&fab, &src, FI_THREAD_SAFE, FI_PROGRESS_MANUAL);
	to = fab_insert(&fab, &dst);
	for (int i = 0; i < count; i++) {
		begin = fab_seconds();
		err = ask_once(to, &answer);
		answer.text[sizeof(answer.text) - 1] = 0;
		snprintf(line, sizeof(line), "%s %s", err ? "failed" : "answered",
			 err ? fi_strerror(err) : answer.text);
		if (strcmp(line, last)) {
			printf("%s in %.0f ms\n", line, (fab_seconds() - begin) * 1e3);
			fflush(stdout);
		}
		memcpy(last, line, sizeof(last));
		if (i + 1 < count)
			usleep(100000);
	}
	fab_close(&fab);
	return err ? 2 : 0;
}

int main(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[1], "serve"))
		serve(argv[2], atoi(argv[3]), argv[4]);
	if (argc >= 4 && !strcmp(argv[1], "ask"))
		return ask(argv[2], atoi(argv[3]), argc > 4 ? atoi(argv[4]) : 1);
	fprintf(stderr, "usage: restart_peer serve IP PORT NAME | ask IP PORT [COUNT]\n");
	return 1;
}
