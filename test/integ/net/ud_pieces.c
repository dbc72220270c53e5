/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Time of a message of several pieces on a network that loses packets, beside that of one buffer.
 *
 * Two endpoints of this process send 1 MiB in turns as one buffer and as four pieces of different
 * lengths. Each message arrives whole. The median of the pieces' times is at most RATIO times that
 * of one buffer, if need be after more turns: the loss of a packet costs the same whatever the
 * message is made of. Times are processor times, which do not contain what other processes take.
 *
 * usage: FI_COPYRPC_FAULT=drop=0.3 ud_pieces [turns]
 */
#include <stdint.h>

#include "integ/fab.h"

#define LEN      (1u << 20)
#define PIECES   4
#define TURNS    200
#define PATIENCE 120.0 /* seconds for one message */
#define RATIO    1.2   /* found: 1.0 to 1.1; 1.6 and more in CONT frames, piece by piece */
#define TRIES    3     /* of so many turns, on a busy machine: each adds to those before */

static struct fab from, to;
static fi_addr_t peer;
static uint8_t out[LEN], in[LEN];

/* Returns whether a completion was read. Makes progress at both ends. */
static int poll_both(void)
{
	struct fi_cq_tagged_entry entry;
	int ended = 0;

	ended += fi_cq_read(from.cq, &entry, 1) == 1;
	ended += fi_cq_read(to.cq, &entry, 1) == 1;
	return ended;
}

static double cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/*
 * Sends the message in pieces, and returns the processor time until both ends have completed. As
 * this thread polls without a pause, that is all the time but for what other processes take.
 */
static double transfer(uint32_t pieces, uint64_t tag)
{
	struct iovec iov[PIECES];
	double begin = fab_seconds(), cpu = cpu_seconds();
	ssize_t ret;
	int ended = 0;

	for (uint32_t i = 0, at = 0; i < pieces; i++) {
		uint32_t end = i + 1 == pieces ? LEN : LEN / (PIECES + 1) * (i + 1) + i;

		iov[i] = (struct iovec){ .iov_base = out + at, .iov_len = end - at };
		at = end;
	}
	out[tag % LEN] ^= 0x5a;
	memset(in, 0, sizeof(in));
	FAB_CHECK(fi_trecv(to.ep, in, LEN, NULL, FI_ADDR_UNSPEC, tag, 0, NULL));
	while ((ret = fi_tsendv(from.ep, iov, NULL, pieces, peer, tag, NULL)) == -FI_EAGAIN)
		ended += poll_both();
	FAB_CHECK(ret);
	while (ended < 2) {
		FAB_TRUE(fab_seconds() - begin < PATIENCE);
		ended += poll_both();
	}
	cpu = cpu_seconds() - cpu;
	FAB_TRUE(!memcmp(in, out, LEN));
	return cpu;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sorts the seconds, and returns the one in the middle. */
static double median(double *seconds, int cnt)
{
	qsort(seconds, (size_t)cnt, sizeof(*seconds), compare);
	return seconds[cnt / 2];
}

/* Sends both kinds of message in turns, behind those that `cnt` tells of. */
static void take_turns(double *one, double *four, int cnt, int turns)
{
	for (int i = cnt; i < cnt + turns; i++) {
		one[i] = transfer(1, 2 * (uint64_t)i + 2);
		four[i] = transfer(PIECES, 2 * (uint64_t)i + 3);
	}
}

/* Reports the medians of the turns so far, and returns their ratio. Sorts the seconds. */
static double compare_turns(double *one, double *four, int cnt)
{
	double times = median(four, cnt) / median(one, cnt);

	printf("ud_pieces: %d turns, medians: one buffer %.2f ms, %d pieces %.2f ms, %.2f times as "
	       "long; longest %.0f and %.0f ms\n",
	       cnt, median(one, cnt) * 1e3, PIECES, median(four, cnt) * 1e3, times,
	       one[cnt - 1] * 1e3, four[cnt - 1] * 1e3);
	fflush(stdout);
	return times;
}

static void open_both(void)
{
	struct sockaddr_in local = fab_addr("127.0.0.1", 0);

	fab_open(&from, &local, FI_THREAD_SAFE, FI_PROGRESS_MANUAL);
	fab_open(&to, &local, FI_THREAD_SAFE, FI_PROGRESS_MANUAL);
	FAB_TRUE(from.info->tx_attr->iov_limit >= PIECES);
	peer = fab_insert(&from, &to.addr);
	for (uint32_t i = 0; i < LEN; i++)
		out[i] = (uint8_t)(i * 2654435761u >> 24);
	transfer(1, 1); /* connects */
}

int main(int argc, char **argv)
{
	static double one[TRIES * TURNS], four[TRIES * TURNS];
	int turns = argc > 1 ? atoi(argv[1]) : TURNS;

	FAB_TRUE(turns > 0 && turns <= TURNS);
	open_both();
	for (int i = 0; i < TRIES; i++) {
		take_turns(one, four, i * turns, turns);
		if (compare_turns(one, four, (i + 1) * turns) <= RATIO)
			return 0;
	}
	fprintf(stderr, "ud_pieces: more than %.1f times as long\n", RATIO);
	return 1;
}
