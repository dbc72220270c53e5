/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Server and client of the script `restart`, which starts, kills and restarts them.
 *
 * usage: restart_peer serve IP PORT NAME     replies to each request with NAME, until it is killed
 * (5 minutes)
 *        restart_peer ask IP PORT [COUNT]    sends COUNT requests (one), a tenth of a second
 *        apart
 *
 * The client prints a line whenever the reply differs from the previous one: "got NAME", or
 * "failed ERROR in N ms". Its exit status is 0 if the last request had a reply.
 */
#include <sched.h>
#include <unistd.h>

#include "integ/fab.h"

#define TAG_ASK   1
#define TAG_REPLY 2
#define PATIENCE  90.0 /* seconds in which an operation must end, well or badly */
#define LOOKS     200u /* for completions, before naps */

struct note {
	struct sockaddr_in from;
	char text[48];
};

static struct fab fab;

/** Waits for an operation with long naps. Returns 0 or its error. */
static int wait_for(const void *context)
{
	struct fi_cq_tagged_entry entry;
	int err;

	for (;;) {
		if (!fab_poll(&fab, &entry, &err))
			usleep(500);
		else if (entry.op_context == context)
			return err;
	}
}

/**
 * Waits for the ends of a request and of its reply, which may come in either order. Returns the
 * request's error.
 */
static int wait_for_both(const void *ask, const void *reply, int *reply_err)
{
	double end = fab_seconds() + PATIENCE;
	bool asked = false, replied = false;
	struct fi_cq_tagged_entry entry;
	int ask_err = 0, err;
	unsigned looks = 0;

	while (!(asked && replied) && fab_seconds() < end) {
		if (!fab_poll(&fab, &entry, &err)) {
			if (++looks < LOOKS)
				sched_yield();
			else
				usleep(100);
			continue;
		}
		if (entry.op_context == ask) {
			asked = true;
			ask_err = err;
			/* A request that did not arrive has no reply. */
			if (err && !replied)
				fi_cancel(&fab.ep->fid, (void *)(uintptr_t)reply);
		} else if (entry.op_context == reply) {
			replied = true;
			*reply_err = err;
		}
	}
	if (asked && replied)
		return ask_err;
	fprintf(stderr, "%s has not ended after %.0f s\n", asked ? "a receive" : "a send",
		PATIENCE);
	exit(3);
}

static void serve(const char *ip, int port, const char *name)
{
	struct sockaddr_in src = fab_addr(ip, port);
	struct note ask, reply = { 0 };
	fi_addr_t from;

	alarm(900);
	fab_open(&fab, &src, FI_THREAD_SAFE, FI_PROGRESS_MANUAL);
	snprintf(reply.text, sizeof(reply.text), "%s", name);
	printf("ready %d\n", ntohs(fab.addr.sin_port));
	fflush(stdout);
	for (;;) {
		FAB_CHECK(fi_trecv(fab.ep, &ask, sizeof(ask), NULL, FI_ADDR_UNSPEC, TAG_ASK, 0,
				   &ask));
		if (wait_for(&ask))
			continue;
		from = fab_insert(&fab, &ask.from);
		FAB_CHECK(fi_tsend(fab.ep, &reply, sizeof(reply), NULL, from, TAG_REPLY, &reply));
		wait_for(&reply);
	}
}

/** Returns 0 and the reply's text, or an error (positive). */
static int ask_once(fi_addr_t to, struct note *reply)
{
	struct note ask = { .from = fab.addr };
	int err, recv_err = 0;

	FAB_CHECK(fi_trecv(fab.ep, reply, sizeof(*reply), NULL, to, TAG_REPLY, 0, reply));
	FAB_CHECK(fi_tsend(fab.ep, &ask, sizeof(ask), NULL, to, TAG_ASK, &ask));
	err = wait_for_both(&ask, reply, &recv_err);
	return err ? err : recv_err;
}

/** Repeats at most `count` times, until the reply is `last_line`. */
static int ask(const char *ip, int port, int count, const char *last_line)
{
	struct sockaddr_in src = fab_addr(getenv("ASK_FROM") ? getenv("ASK_FROM") : ip, 0);
	struct sockaddr_in dst = fab_addr(ip, port);
	char line[96] = "", last[96] = "";
	struct note reply = { 0 };
	double begin;
	fi_addr_t to;
	int err = 0;

	fab_open(&fab, &src, FI_THREAD_SAFE, FI_PROGRESS_MANUAL);
	to = fab_insert(&fab, &dst);
	for (int i = 0; i < count && strcmp(last, last_line); i++) {
		begin = fab_seconds();
		err = ask_once(to, &reply);
		reply.text[sizeof(reply.text) - 1] = 0;
		snprintf(line, sizeof(line), "%s %s", err ? "failed" : "got",
			 err ? fi_strerror(err) : reply.text);
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
		return ask(argv[2], atoi(argv[3]), argc > 4 ? atoi(argv[4]) : 1,
			   argc > 5 ? argv[5] : "none");
	fprintf(stderr, "usage: restart_peer serve IP PORT NAME | ask IP PORT [COUNT [LINE]]\n");
	return 1;
}
