/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages that the receiver leaves without a receive, more than a provider may have room for, hold
 * back no message that it does receive, however long they are and whatever send they came by.
 * Ranks come in pairs. Both ends of a pair send, then exchange messages with another tag, then
 * receive the first ones, in order or backwards.
 *
 * usage: mpi_unmatched [messages [bytes]]      default: 1500 of 100000 bytes
 */
#include <string.h>

#include "integ.h"

enum { TAG_FIRST = 1000, TAG_OTHER = 1 };

/* Receives at a time: a wait for each alone takes long where others use the processors. */
#define WINDOW 32

static int cnt = 1500, len = 100000;

/* Message i is the buffer from its byte i on: each message has other bytes. */
static unsigned char *out, *in, *expected;
static MPI_Request *reqs;

static void send_first(int peer, int tag_step,
		       int (*isend)(const void *buf, int bytes, MPI_Datatype type, int to, int tag,
				    MPI_Comm comm, MPI_Request *req))
{
	for (int i = 0; i < cnt; i++)
		isend(out + i, len, MPI_BYTE, peer, TAG_FIRST + i * tag_step, MPI_COMM_WORLD,
		      &reqs[i]);
}

/** Exchanges messages that overtake those without a receive. */
static void exchange(int peer, int bytes)
{
	MPI_Sendrecv(out, bytes, MPI_BYTE, peer, TAG_OTHER, in, bytes, MPI_BYTE, peer, TAG_OTHER,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	INTEG_CHECK(integ_mismatch(in, (size_t)bytes, (uint64_t)peer) == (size_t)bytes,
		    "the message of %d bytes that was received first", bytes);
}

/** Receives messages `first`, `first` + step, ... Returns how many: `left`, at most WINDOW. */
static int receive_some(int peer, int first, int step, int left, int tag_step)
{
	MPI_Request recvs[WINDOW];
	int n = left < WINDOW ? left : WINDOW;

	for (int k = 0; k < n; k++)
		MPI_Irecv(in + (size_t)k * (size_t)len, len, MPI_BYTE, peer,
			  TAG_FIRST + (first + k * step) * tag_step, MPI_COMM_WORLD, &recvs[k]);
	MPI_Waitall(n, recvs, MPI_STATUSES_IGNORE);
	for (int k = 0; k < n; k++)
		INTEG_CHECK(!memcmp(in + (size_t)k * (size_t)len, expected + first + k * step,
				    (size_t)len),
			    "message %d", first + k * step);
	return n;
}

static void check_all_pending(void)
{
	for (int i = 0, done; i < cnt; i++) {
		MPI_Request_get_status(reqs[i], &done, MPI_STATUS_IGNORE);
		INTEG_CHECK(!done, "synchronous send %d ended without a receive", i);
	}
}

/** Receives in the order in which the messages were sent, all with one tag. */
static void receive_in_order(int peer)
{
	for (int i = 0; i < cnt;)
		i += receive_some(peer, i, 1, cnt - i, 0);
}

/** Receives the last message first, each by its tag. */
static void receive_backwards(int peer)
{
	for (int left = cnt; left;)
		left -= receive_some(peer, left - 1, -1, left, 1);
}

static void run(int peer)
{
	send_first(peer, 0, MPI_Isend);
	exchange(peer, 8);
	exchange(peer, len);
	receive_in_order(peer);
	MPI_Waitall(cnt, reqs, MPI_STATUSES_IGNORE);
	send_first(peer, 1, MPI_Issend);
	exchange(peer, len);
	check_all_pending();
	exchange(peer, 8); /* neither end receives before both have checked */
	receive_backwards(peer);
	MPI_Waitall(cnt, reqs, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv)
{
	int peer;

	MPI_Init(&argc, &argv);
	cnt = argc > 1 ? atoi(argv[1]) : cnt;
	len = argc > 2 ? atoi(argv[2]) : len;
	out = malloc((size_t)(len + cnt));
	in = malloc((size_t)len * WINDOW);
	expected = malloc((size_t)(len + cnt));
	reqs = malloc((size_t)cnt * sizeof(*reqs));
	INTEG_CHECK(cnt > 0 && len >= 8 && out && in && expected && reqs, "arguments, or memory");
	integ_fill(out, (size_t)(len + cnt), (uint64_t)integ_rank());
	peer = integ_rank() ^ 1;
	integ_fill(expected, (size_t)(len + cnt), (uint64_t)peer);
	if (peer < integ_size())
		run(peer);
	integ_done("mpi_unmatched");
	free(out);
	free(in);
	free(expected);
	free(reqs);
	MPI_Finalize();
	return 0;
}
