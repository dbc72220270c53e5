/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Features of MPI's point-to-point chapter that demand most of a transport.
 *
 * One function a feature. Most are played by pairs: an even rank talks to the odd one above it
 * (with an odd number of ranks the last one is idle). A barrier stands between features, so that a
 * stray message is caught by the next one's first receive.
 *
 * usage: mpi_features [feature]...      all of them by default
 */
#include <string.h>
#include <unistd.h>

#include "integ_feature.h"

#define MESSAGES_MANY 10000
#define LARGE_LEN     ((8 << 20) + 1)

enum { TAG_DATA = 1, TAG_GO = 2, TAG_NEVER = 3, TAG_MANY = 100 };

/* A probe tells source, tag and length, and leaves the message where it is. */
static void probe_sender(int peer)
{
	unsigned char buf[3000];

	integ_fill(buf, sizeof(buf), 7);
	MPI_Send(buf, sizeof(buf), MPI_BYTE, peer, TAG_DATA, MPI_COMM_WORLD);
	MPI_Send(buf, 17, MPI_BYTE, peer, TAG_DATA, MPI_COMM_WORLD);
}

static void probe_receiver(int peer)
{
	unsigned char buf[3000];
	MPI_Status st;
	int len, found;

	MPI_Iprobe(peer, TAG_NEVER, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
	INTEG_CHECK(!found, "a message that nobody sent was probed");
	for (int i = 0; i < 3; i++) {
		MPI_Probe(i ? peer : MPI_ANY_SOURCE, i ? TAG_DATA : MPI_ANY_TAG, MPI_COMM_WORLD,
			  &st);
		MPI_Get_count(&st, MPI_BYTE, &len);
		INTEG_CHECK(st.MPI_SOURCE == peer && st.MPI_TAG == TAG_DATA, "probe %d", i);
		INTEG_CHECK(len == sizeof(buf), "probe %d says %d bytes", i, len);
	}
	MPI_Recv(buf, len, MPI_BYTE, peer, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	INTEG_CHECK(integ_mismatch(buf, len, 7) == (size_t)len, "probed message");
	do
		MPI_Iprobe(peer, TAG_DATA, MPI_COMM_WORLD, &found, &st);
	while (!found);
	MPI_Get_count(&st, MPI_BYTE, &len);
	INTEG_CHECK(len == 17, "second probe says %d bytes", len);
	MPI_Recv(buf, len, MPI_BYTE, peer, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* A message that a receive has taken, which came before the probe, is not probed. */
static void probe_taken_sender(int peer)
{
	for (int i = 0; i < 100; i++) {
		integ_send_int(i, peer, TAG_DATA);
		integ_send_int(i, peer, TAG_GO);
		integ_recv_int(peer, TAG_GO);
	}
}

static void probe_taken_receiver(int peer)
{
	for (int i = 0; i < 100; i++) {
		int source = i % 2 ? peer : MPI_ANY_SOURCE, value = -1, found;
		MPI_Message message;
		MPI_Request req;

		integ_recv_int(peer, TAG_GO); /* the message before it is here, too */
		MPI_Irecv(&value, 1, MPI_INT, source, TAG_DATA, MPI_COMM_WORLD, &req);
		MPI_Iprobe(MPI_ANY_SOURCE, TAG_DATA, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
		INTEG_CHECK(!found, "message %d was probed behind its receive", i);
		MPI_Improbe(peer, TAG_DATA, MPI_COMM_WORLD, &found, &message, MPI_STATUS_IGNORE);
		INTEG_CHECK(!found, "message %d was taken from its receive", i);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
		INTEG_CHECK(value == i, "message %d: %d", i, value);
		integ_send_int(0, peer, TAG_GO);
	}
}

/* Blocking probes that have waited for long find the message, and nothing of them is left. */
static void probe_late_sender(int peer)
{
	for (int i = 0; i < 4; i++) {
		integ_recv_int(peer, TAG_GO);
		usleep(20000);
		integ_send_int(i, peer, TAG_DATA);
	}
}

static void probe_late_receiver(int peer)
{
	for (int i = 0; i < 4; i++) {
		MPI_Message message;
		MPI_Status st;
		int value = -1;

		integ_send_int(0, peer, TAG_GO);
		if (i % 2) {
			MPI_Mprobe(peer, TAG_DATA, MPI_COMM_WORLD, &message, &st);
			MPI_Mrecv(&value, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
		} else {
			MPI_Probe(peer, TAG_DATA, MPI_COMM_WORLD, &st);
			value = integ_recv_int(peer, TAG_DATA);
		}
		INTEG_CHECK(st.MPI_SOURCE == peer && st.MPI_TAG == TAG_DATA && value == i,
			    "message %d: %d", i, value);
	}
}

/* A matched probe takes the message away from every other receive. */
static void mprobe_sender(int peer)
{
	for (int i = 0; i < 3; i++)
		integ_send_int(i, peer, TAG_DATA);
}

static void mprobe_receiver(int peer)
{
	MPI_Message first, third;
	int value = -1, found;

	MPI_Improbe(peer, TAG_NEVER, MPI_COMM_WORLD, &found, &first, MPI_STATUS_IGNORE);
	INTEG_CHECK(!found, "a message that nobody sent was probed");
	MPI_Mprobe(peer, TAG_DATA, MPI_COMM_WORLD, &first, MPI_STATUS_IGNORE);
	value = integ_recv_int(peer, TAG_DATA);
	INTEG_CHECK(value == 1, "the receive after the probe got %d", value);
	MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &third, MPI_STATUS_IGNORE);
	MPI_Mrecv(&value, 1, MPI_INT, &third, MPI_STATUS_IGNORE);
	INTEG_CHECK(value == 2, "the second probe took %d", value);
	MPI_Mrecv(&value, 1, MPI_INT, &first, MPI_STATUS_IGNORE);
	INTEG_CHECK(value == 0, "the first probe took %d", value);
}

/* A synchronous send ends only when its receive has begun. */
static void ssend_sender(int peer)
{
	MPI_Request req;
	int value = 42;

	MPI_Issend(&value, 1, MPI_INT, peer, TAG_DATA, MPI_COMM_WORLD, &req);
	INTEG_CHECK(integ_still_pending(&req, 20), "a synchronous send ended without a receive");
	integ_send_int(0, peer, TAG_GO);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	MPI_Ssend(NULL, 0, MPI_BYTE, peer, TAG_DATA, MPI_COMM_WORLD);
}

static void ssend_receiver(int peer)
{
	int value;

	integ_recv_int(peer, TAG_GO);
	value = integ_recv_int(peer, TAG_DATA);
	INTEG_CHECK(value == 42, "got %d", value);
	MPI_Recv(NULL, 0, MPI_BYTE, peer, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* A cancelled receive takes no message, and one that has a message cannot be cancelled. */
static void cancel_sender(int peer)
{
	integ_recv_int(peer, TAG_GO);
	integ_send_int(5, peer, TAG_DATA);
	integ_send_int(6, peer, TAG_MANY);
}

static void cancel_receiver(int peer)
{
	MPI_Request req;
	MPI_Status st;
	int value = -1, cancelled;

	MPI_Irecv(&value, 1, MPI_INT, peer, TAG_DATA, MPI_COMM_WORLD, &req);
	MPI_Cancel(&req);
	MPI_Wait(&req, &st);
	MPI_Test_cancelled(&st, &cancelled);
	INTEG_CHECK(cancelled, "nothing was sent yet");
	integ_send_int(0, peer, TAG_GO);
	INTEG_CHECK(integ_recv_int(peer, TAG_DATA) == 5, "the cancelled receive took a message");
	INTEG_CHECK(value == -1, "the cancelled receive was written: %d", value);
	MPI_Irecv(&value, 1, MPI_INT, peer, TAG_MANY, MPI_COMM_WORLD, &req);
	MPI_Wait(&req, &st);
	MPI_Test_cancelled(&st, &cancelled);
	INTEG_CHECK(!cancelled && value == 6, "cancelled %d, value %d", cancelled, value);
}

/* A message without bytes is a message too. */
static void zero_sender(int peer)
{
	for (int i = 0; i < 100; i++)
		MPI_Send(NULL, 0, MPI_BYTE, peer, TAG_MANY + i, MPI_COMM_WORLD);
}

static void zero_receiver(int peer)
{
	MPI_Status st;
	char untouched = 'x';
	int len;

	for (int i = 99; i >= 0; i--) {
		MPI_Recv(&untouched, 1, MPI_BYTE, peer, TAG_MANY + i, MPI_COMM_WORLD, &st);
		MPI_Get_count(&st, MPI_BYTE, &len);
		INTEG_CHECK(len == 0 && untouched == 'x', "message %d has %d bytes", i, len);
	}
}

/* Posted receives are served in the order they were posted, wildcards or not. */
static void posted_sender(int peer)
{
	integ_recv_int(peer, TAG_GO);
	for (int i = 0; i < 4; i++)
		integ_send_int(i, peer, TAG_DATA);
}

static void posted_receiver(int peer)
{
	MPI_Request reqs[4];
	int got[4];

	MPI_Irecv(&got[0], 1, MPI_INT, peer, TAG_DATA, MPI_COMM_WORLD, &reqs[0]);
	MPI_Irecv(&got[1], 1, MPI_INT, MPI_ANY_SOURCE, TAG_DATA, MPI_COMM_WORLD, &reqs[1]);
	MPI_Irecv(&got[2], 1, MPI_INT, peer, MPI_ANY_TAG, MPI_COMM_WORLD, &reqs[2]);
	MPI_Irecv(&got[3], 1, MPI_INT, peer, TAG_DATA, MPI_COMM_WORLD, &reqs[3]);
	integ_send_int(0, peer, TAG_GO);
	MPI_Waitall(4, reqs, MPI_STATUSES_IGNORE);
	for (int i = 0; i < 4; i++)
		INTEG_CHECK(got[i] == i, "receive %d got message %d", i, got[i]);
}

/* Many unexpected messages, received in the opposite order. */
static void unexpected_sender(int peer)
{
	for (int i = 0; i < MESSAGES_MANY; i++)
		integ_send_int(i, peer, TAG_MANY + i);
	integ_send_int(0, peer, TAG_GO);
}

static void unexpected_receiver(int peer)
{
	integ_recv_int(peer, TAG_GO);
	for (int i = MESSAGES_MANY - 1; i >= 0; i--)
		INTEG_CHECK(integ_recv_int(peer, TAG_MANY + i) == i, "message %d", i);
}

/* Large messages, once with the receive posted first and once without. */
static void large_sender(int peer)
{
	unsigned char *buf = malloc(LARGE_LEN);

	for (int i = 0; i < 4; i++) {
		integ_fill(buf, LARGE_LEN, i);
		if (i % 2)
			integ_recv_int(peer, TAG_GO);
		MPI_Send(buf, LARGE_LEN, MPI_BYTE, peer, TAG_DATA, MPI_COMM_WORLD);
	}
	free(buf);
}

static void large_receiver(int peer)
{
	unsigned char *buf = malloc(LARGE_LEN);
	MPI_Request req;

	for (int i = 0; i < 4; i++) {
		size_t at;

		MPI_Irecv(buf, LARGE_LEN, MPI_BYTE, peer, TAG_DATA, MPI_COMM_WORLD, &req);
		if (i % 2)
			integ_send_int(0, peer, TAG_GO);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
		at = integ_mismatch(buf, LARGE_LEN, i);
		INTEG_CHECK(at == LARGE_LEN, "message %d differs at byte %zu", i, at);
	}
	free(buf);
}

/* A message longer than its buffer is an error there, and spoils nothing behind it. */
static void truncate_sender(int peer)
{
	char buf[64] = { 0 };

	MPI_Send(buf, sizeof(buf), MPI_BYTE, peer, TAG_DATA, MPI_COMM_WORLD);
	integ_send_int(9, peer, TAG_DATA);
}

static void truncate_receiver(int peer)
{
	char buf[64];
	int err, class;

	memset(buf, 'x', sizeof(buf));
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	err = MPI_Recv(buf, 16, MPI_BYTE, peer, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	MPI_Error_class(err, &class);
	INTEG_CHECK(class == MPI_ERR_TRUNCATE, "error class %d", class);
	INTEG_CHECK(buf[16] == 'x', "bytes behind the buffer were written");
	INTEG_CHECK(integ_recv_int(peer, TAG_DATA) == 9, "the next message");
}

/* A column of a matrix: the data is not in one piece. */
static void strided_sender(int peer)
{
	double matrix[40][30];
	MPI_Datatype column;

	for (int i = 0; i < 40 * 30; i++)
		matrix[i / 30][i % 30] = i;
	MPI_Type_vector(40, 1, 30, MPI_DOUBLE, &column);
	MPI_Type_commit(&column);
	MPI_Send(&matrix[0][3], 1, column, peer, TAG_DATA, MPI_COMM_WORLD);
	MPI_Type_free(&column);
}

static void strided_receiver(int peer)
{
	double column[40];

	MPI_Recv(column, 40, MPI_DOUBLE, peer, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (int i = 0; i < 40; i++)
		INTEG_CHECK(column[i] == i * 30 + 3, "row %d", i);
}

/* Wildcard receives from all ranks: each sender's messages arrive in the order of sending. */
static void wildcard_order(int rank, int size)
{
	int *next = calloc(size, sizeof(*next));

	for (int i = 0; rank != 0 && i < 500; i++)
		integ_send_int(i, 0, TAG_MANY + i % 7);
	for (int i = 0; rank == 0 && i < 500 * (size - 1); i++) {
		MPI_Status st;
		int value;

		MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
		INTEG_CHECK(value == next[st.MPI_SOURCE], "rank %d: %d", st.MPI_SOURCE, value);
		INTEG_CHECK(st.MPI_TAG == TAG_MANY + value % 7, "tag %d", st.MPI_TAG);
		next[st.MPI_SOURCE]++;
	}
	free(next);
}

/* Collectives with sums that are known. */
static void collectives(int rank, int size)
{
	long sum = 0, root = rank == 0 ? 77 : 0, *all = calloc(size, sizeof(*all));
	long mine = rank + 1, expected = (long)size * (size + 1) / 2;

	for (int i = 0; i < 100; i++) {
		MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
		INTEG_CHECK(sum == expected, "sum %ld", sum);
	}
	MPI_Bcast(&root, 1, MPI_LONG, 0, MPI_COMM_WORLD);
	INTEG_CHECK(root == 77, "broadcast %ld", root);
	MPI_Allgather(&mine, 1, MPI_LONG, all, 1, MPI_LONG, MPI_COMM_WORLD);
	for (int i = 0; i < size; i++)
		INTEG_CHECK(all[i] == i + 1, "gathered %ld from %d", all[i], i);
	free(all);
}

/* One-sided: each rank puts its number into its right neighbour's window and adds to rank 0's. */
static void window(int rank, int size)
{
	long slots[2] = { -1, 0 }, mine = rank;
	MPI_Win win;

	MPI_Win_create(slots, sizeof(slots), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	MPI_Win_fence(0, win);
	MPI_Put(&mine, 1, MPI_LONG, (rank + 1) % size, 0, 1, MPI_LONG, win);
	MPI_Accumulate(&mine, 1, MPI_LONG, 0, 1, 1, MPI_LONG, MPI_SUM, win);
	MPI_Win_fence(0, win);
	INTEG_CHECK(slots[0] == (rank + size - 1) % size, "put %ld", slots[0]);
	INTEG_CHECK(rank || slots[1] == (long)size * (size - 1) / 2, "accumulated %ld", slots[1]);
	MPI_Win_free(&win);
}

static const struct integ_feature features[] = {
	{ "probe", probe_sender, probe_receiver, NULL },
	{ "probe_taken", probe_taken_sender, probe_taken_receiver, NULL },
	{ "probe_late", probe_late_sender, probe_late_receiver, NULL },
	{ "mprobe", mprobe_sender, mprobe_receiver, NULL },
	{ "ssend", ssend_sender, ssend_receiver, NULL },
	{ "cancel", cancel_sender, cancel_receiver, NULL },
	{ "zero", zero_sender, zero_receiver, NULL },
	{ "posted", posted_sender, posted_receiver, NULL },
	{ "unexpected", unexpected_sender, unexpected_receiver, NULL },
	{ "large", large_sender, large_receiver, NULL },
	{ "truncate", truncate_sender, truncate_receiver, NULL },
	{ "strided", strided_sender, strided_receiver, NULL },
	{ "wildcard", NULL, NULL, wildcard_order },
	{ "collectives", NULL, NULL, collectives },
	{ "window", NULL, NULL, window },
};

int main(int argc, char **argv)
{
	return integ_run("mpi_features", features, sizeof(features) / sizeof(features[0]), argc,
			 argv);
}
