/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Send modes and data of MPI point-to-point that mpi_features leaves out: synchronous sends that
 * matched receives take, buffered sends, derived types at MPI_BOTTOM, large data in pieces, more
 * messages at a time than a provider keeps.
 *
 * usage: mpi_p2p [feature]...      all of them by default
 */
#include <string.h>

#include "integ_feature.h"

enum { TAG_DATA = 1, TAG_GO = 2, TAG_OTHER = 3 };

#define BURST 200

/* A synchronous message is probed, claimed and received; its send ends then and not before. */
static void ssend_mrecv_sender(int peer)
{
	MPI_Request req;
	int value = 17;

	for (int i = 0; i < 3; i++) {
		MPI_Issend(&value, 1, MPI_INT, peer, TAG_DATA, MPI_COMM_WORLD, &req);
		INTEG_CHECK(integ_still_pending(&req, 10),
			    "a probe alone ended a synchronous send");
		integ_send_int(0, peer, TAG_GO);
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
		integ_recv_int(peer, TAG_GO);
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
		INTEG_CHECK(integ_still_pending(&reqs[i], 5), "synchronous send %d ended early", i);
		integ_send_int(i, peer, TAG_GO);
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

		integ_recv_int(peer, TAG_GO);
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
	integ_send_int(0, peer, TAG_GO);
	MPI_Buffer_detach(&back, &old);
	INTEG_CHECK(back == buffer && old == size, "detached %d bytes", old);
	free(buffer);
}

static void bsend_receiver(int peer)
{
	char data[64];

	integ_recv_int(peer, TAG_GO);
	MPI_Recv(NULL, 0, MPI_CHAR, peer, TAG_OTHER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (int i = 0; i < BURST; i++) {
		MPI_Recv(data, sizeof(data), MPI_CHAR, peer, TAG_DATA, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
		INTEG_CHECK(data[0] == (char)i && data[63] == (char)i, "message %d: %d", i,
			    data[0]);
	}
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

/* Large data in pieces, others at either end, and a message shorter than the type. */
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

#define FLOOD     600
#define FLOOD_LEN 150000

/* Lengths of the messages of a flood: whole ones, some in pieces, some that the receiver takes. */
static int flood_len(int i)
{
	static const int lens[] = { 20000, 100, 4000, FLOOD_LEN, 8, 60000 };

	return lens[i % 6];
}

/* Both ends begin all their sends, then receive in order: each first message has its receive. */
static void flood(int rank, int size)
{
	static char put[FLOOD_LEN], got[FLOOD_LEN];
	static MPI_Request reqs[FLOOD];
	int peer = rank ^ 1;

	memset(put, rank + 1, sizeof(put));
	for (int i = 0; peer < size && i < FLOOD; i++)
		MPI_Isend(put, flood_len(i), MPI_CHAR, peer, i, MPI_COMM_WORLD, &reqs[i]);
	for (int i = 0; peer < size && i < FLOOD; i++) {
		memset(got, 0, sizeof(got));
		MPI_Recv(got, flood_len(i), MPI_CHAR, peer, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		INTEG_CHECK(got[0] == (char)(peer + 1) && got[flood_len(i) - 1] == got[0],
			    "message %d", i);
	}
	if (peer < size)
		MPI_Waitall(FLOOD, reqs, MPI_STATUSES_IGNORE);
}

static const struct integ_feature features[] = {
	{ "ssend_mrecv", ssend_mrecv_sender, ssend_mrecv_receiver, NULL },
	{ "ssend_order", ssend_order_sender, ssend_order_receiver, NULL },
	{ "bsend", bsend_sender, bsend_receiver, NULL },
	{ "bottom", bottom_sender, bottom_receiver, NULL },
	{ "vector", vector_sender, vector_receiver, NULL },
	{ "truncate", truncate_sender, truncate_receiver, NULL },
	{ "flood", NULL, NULL, flood },
};

int main(int argc, char **argv)
{
	return integ_run("mpi_p2p", features, sizeof(features) / sizeof(features[0]), argc, argv);
}
