/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Send modes and request life of MPI point-to-point that mpi_features leaves out: synchronous sends
 * that matched receives take, buffered and persistent requests, derived types at MPI_BOTTOM,
 * requests that outlive their communicator, inter-communicators.
 *
 * One function a feature. The last rank of an odd number is idle in those that pairs play. A barrier
 * stands between features.
 *
 * usage: mpi_p2p [feature]...      all of them by default
 */
#include <string.h>

#include "integ.h"

enum { TAG_DATA = 1, TAG_GO = 2, TAG_OTHER = 3 };

#define BURST 200

static void send_int(int value, int to, int tag)
{
	MPI_Send(&value, 1, MPI_INT, to, tag, MPI_COMM_WORLD);
}

static int recv_int(int from, int tag)
{
	int value = -1;

	MPI_Recv(&value, 1, MPI_INT, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return value;
}

static int still_pending(MPI_Request *req, int ms)
{
	double end = MPI_Wtime() + ms / 1000.0;
	int done = 0;

	while (!done && MPI_Wtime() < end)
		MPI_Test(req, &done, MPI_STATUS_IGNORE);
	return !done;
}

/* A synchronous message is probed, claimed and received; its send ends then and not before. */
static void ssend_mrecv_sender(int peer)
{
	MPI_Request req;
	int value = 17;

	for (int i = 0; i < 3; i++) {
		MPI_Issend(&value, 1, MPI_INT, peer, TAG_DATA, MPI_COMM_WORLD, &req);
		INTEG_CHECK(still_pending(&req, 10), "a probe alone ended a synchronous send");
		send_int(0, peer, TAG_GO);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
	}
}

static void ssend_mrecv_receiver(int peer)
{
	for (int i = 0; i < 3; i++) {
		MPI_Message message;
		MPI_Status st;
		int value = 0, count;

		MPI_Probe(peer, TAG_DATA, MPI_COMM_WORLD, &st);
		MPI_Get_count(&st, MPI_INT, &count);
		INTEG_CHECK(count == 1 && st.MPI_SOURCE == peer && st.MPI_TAG == TAG_DATA,
			    "probed count %d, source %d, tag %d", count, st.MPI_SOURCE, st.MPI_TAG);
		recv_int(peer, TAG_GO);
		MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &message, &st);
		MPI_Mrecv(&value, 1, MPI_INT, &message, &st);
		INTEG_CHECK(value == 17 && st.MPI_TAG == TAG_DATA, "value %d", value);
	}
}

/* Of synchronous sends with one envelope no more have ended than receives have been posted. */
static void ssend_order_sender(int peer)
{
	MPI_Request reqs[4];
	static char large[300000];
	int flag;

	for (int i = 0; i < 4; i++)
		MPI_Issend(large, i % 2 ? 8 : (int)sizeof(large), MPI_CHAR, peer, TAG_DATA,
			   MPI_COMM_WORLD, &reqs[i]);
	for (int i = 0; i < 4; i++) {
		INTEG_CHECK(still_pending(&reqs[i], 5), "synchronous send %d ended early", i);
		send_int(i, peer, TAG_GO);
		MPI_Wait(&reqs[i], MPI_STATUS_IGNORE);
		for (int j = i + 1; j < 4; j++) {
			MPI_Request_get_status(reqs[j], &flag, MPI_STATUS_IGNORE);
			INTEG_CHECK(!flag, "send %d ended with receive %d", j, i);
		}
	}
}

static void ssend_order_receiver(int peer)
{
	static char large[300000];

	for (int i = 0; i < 4; i++) {
		MPI_Status st;
		int count;

		recv_int(peer, TAG_GO);
		MPI_Recv(large, sizeof(large), MPI_CHAR, peer, TAG_DATA, MPI_COMM_WORLD, &st);
		MPI_Get_count(&st, MPI_CHAR, &count);
		INTEG_CHECK(count == (i % 2 ? 8 : (int)sizeof(large)), "message %d: %d", i, count);
	}
}

/* Buffered sends end at once; detaching waits for them. More than fits is an error. */
static void bsend_sender(int peer)
{
	int size = BURST * (64 + MPI_BSEND_OVERHEAD), old, err, class;
	char *buffer = malloc(size), *back, data[64];
	MPI_Request req;

	MPI_Buffer_attach(buffer, size);
	for (int i = 0; i < BURST / 2; i++) {
		memset(data, i, sizeof(data));
		MPI_Bsend(data, sizeof(data), MPI_CHAR, peer, TAG_DATA, MPI_COMM_WORLD);
	}
	/* On a communicator of its own: pml/ob1 loses all messages behind one that failed. */
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	err = MPI_Bsend(buffer, size * 2, MPI_CHAR, 0, TAG_DATA, MPI_COMM_SELF);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
	MPI_Error_class(err, &class);
	INTEG_CHECK(class == MPI_ERR_BUFFER, "error class %d", class);
	MPI_Ibsend(data, 0, MPI_CHAR, peer, TAG_OTHER, MPI_COMM_WORLD, &req);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	MPI_Bsend_init(data, sizeof(data), MPI_CHAR, peer, TAG_DATA, MPI_COMM_WORLD, &req);
	for (int i = BURST / 2; i < BURST; i++) {
		memset(data, i, sizeof(data));
		MPI_Start(&req);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
	}
	MPI_Request_free(&req);
	send_int(0, peer, TAG_GO);
	MPI_Buffer_detach(&back, &old);
	INTEG_CHECK(back == buffer && old == size, "detached %d bytes", old);
	free(buffer);
}

static void bsend_receiver(int peer)
{
	char data[64];

	recv_int(peer, TAG_GO);
	MPI_Recv(NULL, 0, MPI_CHAR, peer, TAG_OTHER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (int i = 0; i < BURST; i++) {
		MPI_Recv(data, sizeof(data), MPI_CHAR, peer, TAG_DATA, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
		INTEG_CHECK(data[0] == (char)i && data[63] == (char)i, "message %d: %d", i,
			    data[0]);
	}
}

/* Persistent requests of each mode, started many times, single and all at once. */
static void persistent_sender(int peer)
{
	MPI_Request reqs[3];
	double values[6] = { 0 };
	MPI_Datatype every_second;

	MPI_Type_vector(3, 1, 2, MPI_DOUBLE, &every_second);
	MPI_Type_commit(&every_second);
	MPI_Send_init(values, 1, every_second, peer, TAG_DATA, MPI_COMM_WORLD, &reqs[0]);
	MPI_Ssend_init(values, 6, MPI_DOUBLE, peer, TAG_OTHER, MPI_COMM_WORLD, &reqs[1]);
	MPI_Rsend_init(values, 0, MPI_DOUBLE, peer, TAG_GO, MPI_COMM_WORLD, &reqs[2]);
	MPI_Type_free(&every_second);
	for (int i = 0; i < BURST; i++) {
		for (int j = 0; j < 6; j++)
			values[j] = 10 * i + j;
		recv_int(peer, TAG_GO);
		MPI_Startall(3, reqs);
		MPI_Waitall(3, reqs, MPI_STATUSES_IGNORE);
	}
	for (int i = 0; i < 3; i++)
		MPI_Request_free(&reqs[i]);
}

static void persistent_receiver(int peer)
{
	MPI_Request reqs[3];
	double packed[3], sparse[12];
	MPI_Datatype every_second;

	MPI_Type_vector(6, 1, 2, MPI_DOUBLE, &every_second);
	MPI_Type_commit(&every_second);
	MPI_Recv_init(packed, 3, MPI_DOUBLE, peer, TAG_DATA, MPI_COMM_WORLD, &reqs[0]);
	MPI_Recv_init(sparse, 1, every_second, peer, TAG_OTHER, MPI_COMM_WORLD, &reqs[1]);
	MPI_Recv_init(NULL, 0, MPI_DOUBLE, peer, TAG_GO, MPI_COMM_WORLD, &reqs[2]);
	MPI_Type_free(&every_second);
	for (int i = 0; i < BURST; i++) {
		MPI_Startall(3, reqs);
		send_int(i, peer, TAG_GO);
		MPI_Waitall(3, reqs, MPI_STATUSES_IGNORE);
		for (int j = 0; j < 3; j++)
			INTEG_CHECK(packed[j] == 10 * i + 2 * j, "round %d: %g", i, packed[j]);
		for (int j = 0; j < 6; j++)
			INTEG_CHECK(sparse[2 * j] == 10 * i + j, "round %d: %g", i, sparse[2 * j]);
	}
	for (int i = 0; i < 3; i++)
		MPI_Request_free(&reqs[i]);
}

/* Absolute addresses: two places in one message, to and from MPI_BOTTOM; and one place alone. */
static MPI_Datatype at_addresses(int count, long *places[], int len)
{
	int lens[2] = { len, len };
	MPI_Aint at[2];
	MPI_Datatype type;

	for (int i = 0; i < count; i++)
		MPI_Get_address(places[i], &at[i]);
	MPI_Type_create_hindexed(count, lens, at, MPI_LONG, &type);
	MPI_Type_commit(&type);
	return type;
}

static void bottom_sender(int peer)
{
	long one[5] = { 1, 2, 3, 4, 5 }, two[9] = { 0, 0, 6, 7, 8, 9, 10 };
	long *places[2] = { one, two + 2 };

	for (int count = 1; count <= 2; count++) {
		MPI_Datatype type = at_addresses(count, places, 5);
		MPI_Request req;

		MPI_Send(MPI_BOTTOM, 1, type, peer, TAG_DATA, MPI_COMM_WORLD);
		MPI_Isend(MPI_BOTTOM, 1, type, peer, TAG_DATA, MPI_COMM_WORLD, &req);
		MPI_Type_free(&type);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
	}
}

static void bottom_receiver(int peer)
{
	for (int count = 1; count <= 2; count++)
		for (int i = 0; i < 2; i++) {
			long one[6] = { 0 }, two[6] = { 0 };
			long *places[2] = { two, one };
			MPI_Datatype type = at_addresses(count, places, 5);
			MPI_Request req;

			MPI_Irecv(MPI_BOTTOM, 1, type, peer, TAG_DATA, MPI_COMM_WORLD, &req);
			MPI_Type_free(&type);
			MPI_Wait(&req, MPI_STATUS_IGNORE);
			for (int j = 0; j < 5; j++) {
				INTEG_CHECK(two[j] == j + 1, "%ld", two[j]);
				INTEG_CHECK(one[j] == (count == 2 ? j + 6 : 0), "%ld", one[j]);
			}
			INTEG_CHECK(one[5] == 0 && two[5] == 0, "bytes behind the places");
		}
}

/* Large data in pieces, with different pieces at either end, and a message shorter than the type. */
#define PIECES 70000

static void vector_sender(int peer)
{
	int *data = malloc(3 * PIECES * sizeof(*data));
	MPI_Datatype two_of_three;
	MPI_Request req;

	for (int i = 0; i < 3 * PIECES; i++)
		data[i] = i;
	MPI_Type_vector(PIECES, 2, 3, MPI_INT, &two_of_three);
	MPI_Type_commit(&two_of_three);
	for (int i = 0; i < 3; i++) {
		MPI_Isend(data, 1, two_of_three, peer, TAG_DATA, MPI_COMM_WORLD, &req);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
	}
	MPI_Send(data, 11, MPI_INT, peer, TAG_DATA, MPI_COMM_WORLD);
	MPI_Type_free(&two_of_three);
	free(data);
}

static void vector_check(const int *got, int count, int stride)
{
	for (int i = 0; i < count; i++)
		INTEG_CHECK(got[i * stride] == i / 2 * 3 + i % 2, "element %d: %d", i,
			    got[i * stride]);
}

static void vector_receiver(int peer)
{
	int *data = calloc(4 * PIECES, sizeof(*data)), count;
	MPI_Datatype single;
	MPI_Status st;

	MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &single);
	MPI_Type_commit(&single);
	MPI_Recv(data, 2 * PIECES, MPI_INT, peer, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	vector_check(data, 2 * PIECES, 1);
	memset(data, 0, 4 * PIECES * sizeof(*data));
	for (int i = 0; i < 2; i++) {
		MPI_Recv(data, 2 * PIECES, single, peer, TAG_DATA, MPI_COMM_WORLD, &st);
		MPI_Get_elements(&st, MPI_INT, &count);
		INTEG_CHECK(count == 2 * PIECES, "%d elements", count);
		vector_check(data, 2 * PIECES, 2);
		INTEG_CHECK(data[1] == 0 && data[3] == 0, "gaps were written");
	}
	memset(data, 0, 4 * PIECES * sizeof(*data));
	MPI_Recv(data, 2 * PIECES, single, peer, TAG_DATA, MPI_COMM_WORLD, &st);
	MPI_Get_count(&st, single, &count);
	INTEG_CHECK(count == 11, "%d elements", count);
	for (int i = 0; i < 12; i++)
		INTEG_CHECK(data[2 * i] == (i < 11 ? i : 0), "element %d", i);
	MPI_Type_free(&single);
	free(data);
}

/* A message that is too long for a derived type and for a nonblocking receive: waiting returns
 * the error, the first bytes are there, and a synchronous send of it ends. */
static void truncate_sender(int peer)
{
	int data[64];

	for (int i = 0; i < 64; i++)
		data[i] = i;
	MPI_Ssend(data, 64, MPI_INT, peer, TAG_DATA, MPI_COMM_WORLD);
	MPI_Send(data, 64, MPI_INT, peer, TAG_DATA, MPI_COMM_WORLD);
	MPI_Send(data, 4, MPI_INT, peer, TAG_DATA, MPI_COMM_WORLD);
}

static void truncate_receiver(int peer)
{
	int data[80], sparse[80];
	MPI_Datatype every_second;
	MPI_Request reqs[3];
	MPI_Status st;
	int err, class, count;

	memset(data, -1, sizeof(data));
	memset(sparse, -1, sizeof(sparse));
	MPI_Type_vector(16, 1, 2, MPI_INT, &every_second);
	MPI_Type_commit(&every_second);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Irecv(data, 16, MPI_INT, peer, TAG_DATA, MPI_COMM_WORLD, &reqs[0]);
	MPI_Irecv(sparse, 1, every_second, peer, TAG_DATA, MPI_COMM_WORLD, &reqs[1]);
	MPI_Irecv(data + 40, 4, MPI_INT, peer, TAG_DATA, MPI_COMM_WORLD, &reqs[2]);
	for (int i = 0; i < 3; i++) {
		err = MPI_Wait(&reqs[i], &st);
		MPI_Error_class(err, &class);
		INTEG_CHECK(class == (i < 2 ? MPI_ERR_TRUNCATE : MPI_SUCCESS), "class %d", class);
		INTEG_CHECK(st.MPI_SOURCE == peer, "source %d", st.MPI_SOURCE);
	}
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	MPI_Get_count(&st, MPI_INT, &count);
	INTEG_CHECK(count == 4 && data[43] == 3, "the message behind them");
	INTEG_CHECK(data[16] == -1 && sparse[31] == -1 && sparse[1] == -1, "bytes behind a buffer");
	MPI_Type_free(&every_second);
}

/* A communicator is freed before its messages have come; another takes its place. */
static void freed_comm(int rank, int size)
{
	int peer = rank ^ 1, got[8], put[8];
	MPI_Request reqs[16];
	MPI_Comm comm, next;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	for (int i = 0; peer < size && i < 8; i++) {
		MPI_Irecv(&got[i], 1, MPI_INT, peer, i, comm, &reqs[i]);
		put[i] = 100 * rank + i;
	}
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; peer < size && i < 8; i++)
		MPI_Issend(&put[7 - i], 1, MPI_INT, peer, 7 - i, comm, &reqs[8 + i]);
	MPI_Comm_free(&comm);
	MPI_Comm_dup(MPI_COMM_WORLD, &next);
	if (peer < size)
		MPI_Sendrecv_replace(&put[0], 1, MPI_INT, peer, 0, peer, 0, next,
				     MPI_STATUS_IGNORE);
	if (peer < size)
		MPI_Waitall(16, reqs, MPI_STATUSES_IGNORE);
	for (int i = 0; peer < size && i < 8; i++)
		INTEG_CHECK(got[i] == 100 * peer + i, "tag %d: %d", i, got[i]);
	MPI_Comm_free(&next);
}

/* Requests that the user frees while they are on their way still deliver. */
static void freed_request(int rank, int size)
{
	int peer = rank ^ 1;
	static char put[100000], got[100000];
	MPI_Request req;

	memset(put, rank + 1, sizeof(put));
	if (peer < size) {
		for (int i = 0; i < 20; i++) {
			MPI_Issend(put, i * 5000, MPI_CHAR, peer, TAG_DATA, MPI_COMM_WORLD, &req);
			MPI_Request_free(&req);
		}
		for (int i = 0; i < 20; i++) {
			MPI_Recv(got, sizeof(got), MPI_CHAR, peer, TAG_DATA, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
			INTEG_CHECK(i == 0 || got[i * 5000 - 1] == (char)(peer + 1), "message %d",
				    i);
		}
	}
	/* The sends have left when their messages are here, but put is used until they are. */
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Many receives are cancelled in the middle of others; those keep their order. */
static void cancel_many(int rank, int size)
{
	int peer = rank ^ 1, got[BURST], cancelled, next = 0;
	MPI_Request reqs[BURST];
	MPI_Status st;

	for (int i = 0; peer < size && i < BURST; i++)
		MPI_Irecv(&got[i], 1, MPI_INT, i % 3 ? peer : MPI_ANY_SOURCE, TAG_DATA,
			  MPI_COMM_WORLD, &reqs[i]);
	for (int i = 1; peer < size && i < BURST; i += 2) {
		MPI_Cancel(&reqs[i]);
		MPI_Wait(&reqs[i], &st);
		MPI_Test_cancelled(&st, &cancelled);
		INTEG_CHECK(cancelled, "receive %d", i);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; peer < size && i < BURST / 2; i++)
		send_int(i, peer, TAG_DATA);
	for (int i = 0; peer < size && i < BURST; i += 2) {
		MPI_Wait(&reqs[i], MPI_STATUS_IGNORE);
		INTEG_CHECK(got[i] == next, "receive %d has %d, not %d", i, got[i], next);
		next++;
	}
}

/* Sends of a large tag, none of a collective is taken by a receive of any tag. */
static void any_tag(int rank, int size)
{
	int *upper, flag, value = rank, right = (rank + 1) % size, left = (rank + size - 1) % size;
	int sum, got = -1;
	MPI_Request req, coll;
	MPI_Status st;

	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &upper, &flag);
	INTEG_CHECK(flag && *upper >= 32767, "largest tag %d", *upper);
	MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &req);
	MPI_Iallreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &coll);
	MPI_Wait(&coll, MPI_STATUS_IGNORE);
	INTEG_CHECK(sum == size * (size - 1) / 2 && got == -1, "sum %d, got %d", sum, got);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Send(&value, 1, MPI_INT, right, *upper, MPI_COMM_WORLD);
	MPI_Wait(&req, &st);
	INTEG_CHECK(got == left && st.MPI_SOURCE == left && st.MPI_TAG == *upper,
		    "got %d from %d, tag %d", got, st.MPI_SOURCE, st.MPI_TAG);
}

/* Messages to the own rank, synchronous ones too. */
static void to_self(int rank, int size)
{
	int got = -1, flag;
	MPI_Request req;
	MPI_Message message;

	MPI_Issend(&rank, 1, MPI_INT, rank, TAG_DATA, MPI_COMM_WORLD, &req);
	do
		MPI_Improbe(rank, TAG_DATA, MPI_COMM_WORLD, &flag, &message, MPI_STATUS_IGNORE);
	while (!flag);
	INTEG_CHECK(still_pending(&req, 2), "not received yet");
	MPI_Mrecv(&got, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	INTEG_CHECK(got == rank && size > 0, "got %d", got);
}

/* Ranks of an inter-communicator are those of the other group. */
static void inter_comm(int rank, int size)
{
	MPI_Comm half, inter;
	int side = rank % 2, local, remote, got = -1;
	MPI_Status st;

	if (size < 2)
		return;
	MPI_Comm_split(MPI_COMM_WORLD, side, rank, &half);
	MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, !side, TAG_OTHER, &inter);
	MPI_Comm_rank(inter, &local);
	MPI_Comm_remote_size(inter, &remote);
	if (local < remote && 2 * local + 1 < size) {
		MPI_Request req;

		MPI_Issend(&rank, 1, MPI_INT, local, TAG_DATA, inter, &req);
		MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, TAG_DATA, inter, &st);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
		INTEG_CHECK(got == (rank ^ 1) && st.MPI_SOURCE == local, "%d from %d", got,
			    st.MPI_SOURCE);
	}
	MPI_Comm_free(&inter);
	MPI_Comm_free(&half);
}

/* A burst without a receive: the sender is never refused, and each message arrives in order. */
static void burst_sender(int peer)
{
	enum { COUNT = 20000 };
	MPI_Request *reqs = malloc(COUNT * sizeof(*reqs));
	int *values = malloc(COUNT * sizeof(*values));

	for (int i = 0; i < COUNT; i++) {
		values[i] = i;
		MPI_Isend(&values[i], 1, MPI_INT, peer, TAG_DATA, MPI_COMM_WORLD, &reqs[i]);
	}
	send_int(COUNT, peer, TAG_DATA);
	MPI_Waitall(COUNT, reqs, MPI_STATUSES_IGNORE);
	free(values);
	free(reqs);
}

static void burst_receiver(int peer)
{
	double end = MPI_Wtime() + 0.05;

	while (MPI_Wtime() < end)
		;
	for (int i = 0; i <= 20000; i++)
		INTEG_CHECK(recv_int(peer, TAG_DATA) == i, "message %d", i);
}

struct feature {
	const char *name;
	void (*sender)(int peer); /* both NULL if all ranks take part */
	void (*receiver)(int peer);
	void (*everybody)(int rank, int size);
};

static const struct feature features[] = {
	{ "ssend_mrecv", ssend_mrecv_sender, ssend_mrecv_receiver, NULL },
	{ "ssend_order", ssend_order_sender, ssend_order_receiver, NULL },
	{ "bsend", bsend_sender, bsend_receiver, NULL },
	{ "persistent", persistent_sender, persistent_receiver, NULL },
	{ "bottom", bottom_sender, bottom_receiver, NULL },
	{ "vector", vector_sender, vector_receiver, NULL },
	{ "truncate", truncate_sender, truncate_receiver, NULL },
	{ "freed_comm", NULL, NULL, freed_comm },
	{ "freed_request", NULL, NULL, freed_request },
	{ "cancel_many", NULL, NULL, cancel_many },
	{ "any_tag", NULL, NULL, any_tag },
	{ "to_self", NULL, NULL, to_self },
	{ "inter_comm", NULL, NULL, inter_comm },
	{ "burst", burst_sender, burst_receiver, NULL },
};

static void run_feature(const struct feature *f)
{
	int rank = integ_rank(), size = integ_size(), peer = rank ^ 1;

	if (f->everybody)
		f->everybody(rank, size);
	else if (peer < size && rank % 2 == 0)
		f->sender(peer);
	else if (peer < size)
		f->receiver(peer);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0) {
		printf("  %s\n", f->name);
		fflush(stdout);
	}
}

static int is_chosen(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], name))
			return 1;
	return argc < 2;
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); i++)
		if (is_chosen(features[i].name, argc, argv))
			run_feature(&features[i]);
	integ_done("mpi_p2p");
	MPI_Finalize();
	return 0;
}
