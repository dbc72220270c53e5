/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Time of a message of several pieces on a network that loses packets, beside that of one buffer.
 *
 * Two endpoints of this process send 1 MiB in turns as one buffer and as four pieces of different
 * lengths. Each message arrives whole, within seconds. The median of the pieces' times is at most
 * RATIO times that of one buffer: the loss of a packet costs the same whatever the message is made
 * of.
 *
 * usage: FI_COPYRPC_FAULT=drop=0.3 ud_pieces [turns]
 */
#include <stdint.h>

#include "integ/fab.h"

#define LEN      (1u << 20)
#define PIECES   4
#define TURNS    200
#define PATIENCE 30.0 /* seconds for one message */
#define RATIO    1.5  /* found: 0.9 to 1.2; 1.6 and more in CONT frames, piece by piece */

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

/* Sends the message in pieces, and returns the seconds until both ends have completed. */
static double transfer(uint32_t pieces, uint64_t tag)
{
	struct iovec iov[PIECES];
	double begin = fab_seconds();
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
	FAB_TRUE(!memcmp(in, out, LEN));
	return fab_seconds() - begin;
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

int main(int argc, char **argv)
{
	struct sockaddr_in local = { .sin_family = AF_INET };
	int turns = argc > 1 ? atoi(argv[1]) : TURNS;
	double one[TURNS], four[TURNS], times;

	FAB_TRUE(turns > 0 && turns <= TURNS);

	inet_pton(AF_INET, "127.0.0.1", &local.sin_addr);
	fab_open(&from, &local, FI_THREAD_SAFE, FI_PROGRESS_MANUAL);
	fab_open(&to, &local, FI_THREAD_SAFE, FI_PROGRESS_MANUAL);
	FAB_TRUE(from.info->tx_attr->iov_limit >= PIECES);
	FAB_TRUE(fi_av_insert(from.av, &to.addr, 1, &peer, 0, NULL) == 1);
	for (uint32_t i = 0; i < LEN; i++)
		out[i] = (uint8_t)(i * 2654435761u >> 24);
	transfer(1, 1); /* connects */
	for (int i = 0; i < turns; i++) {
		one[i] = transfer(1, 2 * (uint64_t)i + 2);
		four[i] = transfer(PIECES, 2 * (uint64_t)i + 3);
	}
	times = median(four, turns) / median(one, turns);
	printf("ud_pieces: %d turns, medians: one buffer %.2f ms, %d pieces %.2f ms, %.2f times as "
	       "long; longest %.0f and %.0f ms\n",
	       turns, median(one, turns) * 1e3, PIECES, median(four, turns) * 1e3, times,
	       one[turns - 1] * 1e3, four[turns - 1] * 1e3);
	FAB_TRUE(times <= RATIO);
	return 0;
}
