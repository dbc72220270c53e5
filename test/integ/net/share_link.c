/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Senders to one sink at full speed, and the share of each: run by the script `share-link` on both
 * sides of a narrow link.
 *
 * usage: share_link sink IP FLOWS WARM SECONDS   prints "ready PORT", waits until all have sent
 * something,
 *                                                 then
 *                                                 WARM
 *                                                 seconds,
 *                                                 then
 *                                                 counts
 *                                                 for
 *                                                 SECONDS
 *        share_link send IP TO_IP TO_PORT FLOW    sends until it is killed (5 minutes)
 *
 * The sink prints a line of Mbit/s of each flow and one with "total MBIT fairness JAIN". No process
 * spins.
 */
#include <poll.h>
#include <unistd.h>

#include "integ/fab.h"

#define LEN       16384u
#define WINDOW    8u /* messages of a sender in flight */
#define RECEIVES  256u
#define FLOWS_MAX 64u

static struct fab fab;
static int wait_fd;
static uint64_t got[FLOWS_MAX]; /* bytes */

/**
 * Reads one completion, or sleeps until there may be one, at most for `ms`: many processes share a
 * processor.
 */
static bool next(struct fi_cq_tagged_entry *entry, int ms)
{
	struct fid *fid = &fab.cq->fid;
	struct pollfd pfd = { .fd = wait_fd, .events = POLLIN };
	int err;

	if (fab_poll(&fab, entry, &err)) {
		if (!err)
			return true;
		fprintf(stderr, "an operation ends with: %s\n", fi_strerror(err));
		exit(1);
	}
	if (!fi_trywait(fab.fabric, &fid, 1))
		poll(&pfd, 1, ms);
	return false;
}

static void open_at(const char *ip)
{
	struct sockaddr_in src = fab_addr(ip, 0);

	alarm(300);
	fab.wait = FI_WAIT_FD;
	fab_open(&fab, &src, FI_THREAD_SAFE, FI_PROGRESS_MANUAL);
	FAB_CHECK(fi_control(&fab.cq->fid, FI_GETWAIT, &wait_fd));
}

/* ---- the sink ---- */

static void post(void *buf)
{
	FAB_CHECK(fi_trecv(fab.ep, buf, LEN, NULL, FI_ADDR_UNSPEC, 0, UINT64_MAX, buf));
}

/** Receives messages until then. */
static void take(double end)
{
	struct fi_cq_tagged_entry entry;

	while (fab_seconds() < end) {
		if (!next(&entry, 20))
			continue;
		FAB_TRUE(entry.tag < FLOWS_MAX && entry.len == LEN);
		got[entry.tag] += entry.len;
		post(entry.op_context);
	}
}

static bool all_came(unsigned flows)
{
	for (unsigned i = 0; i < flows; i++)
		if (!got[i])
			return false;
	return true;
}

static void tell(unsigned flows, double seconds)
{
	double sum = 0, squares = 0, mbit;

	printf("flows");
	for (unsigned i = 0; i < flows; i++) {
		mbit = (double)got[i] * 8e-6 / seconds;
		printf(" %.1f", mbit);
		sum += mbit;
		squares += mbit * mbit;
	}
	printf("\ntotal %.1f fairness %.3f\n", sum,
	       squares > 0 ? sum * sum / (flows * squares) : 0);
}

static int sink(const char *ip, unsigned flows, double warm, double seconds)
{
	char *bufs = malloc((size_t)RECEIVES * LEN);
	double began;

	FAB_TRUE(bufs && flows > 0 && flows <= FLOWS_MAX);
	open_at(ip);
	for (unsigned i = 0; i < RECEIVES; i++)
		post(bufs + (size_t)i * LEN);
	printf("ready %d\n", ntohs(fab.addr.sin_port));
	fflush(stdout);
	while (!all_came(flows))
		take(fab_seconds() + 0.05);
	take(fab_seconds() + warm);
	memset(got, 0, sizeof(got));
	began = fab_seconds();
	take(began + seconds);
	tell(flows, fab_seconds() - began);
	return 0;
}

/* ---- a sender ---- */

static void send_on(fi_addr_t to, uint64_t flow)
{
	static char buf[LEN];
	struct fi_cq_tagged_entry entry;
	unsigned flying = 0;
	ssize_t ret;

	for (;;) {
		while (flying < WINDOW) {
			ret = fi_tsend(fab.ep, buf, LEN, NULL, to, flow, buf);
			if (ret == -FI_EAGAIN)
				break;
			FAB_CHECK(ret);
			flying++;
		}
		if (next(&entry, 100))
			flying--;
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in to;

	if (argc == 6 && !strcmp(argv[1], "sink"))
		return sink(argv[2], (unsigned)atoi(argv[3]), atof(argv[4]), atof(argv[5]));
	if (argc != 6 || strcmp(argv[1], "send")) {
		fprintf(stderr, "usage: share_link sink IP FLOWS WARM SECONDS | "
				"send IP TO_IP TO_PORT FLOW\n");
		return 1;
	}
	open_at(argv[2]);
	to = fab_addr(argv[3], atoi(argv[4]));
	send_on(fab_insert(&fab, &to), (uint64_t)atoi(argv[5]));
	return 0;
}
