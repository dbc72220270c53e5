/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Life of requests of MPI point-to-point: persistent ones, those that outlive their communicator or
 * are freed on their way, cancelled and failed receives, and bursts; messages to the own rank, of
 * any tag, and between the groups of an inter-communicator.
 *
 * usage: mpi_requests [feature]...      all of them by default
 */
#include <dlfcn.h>
#include <unistd.h>

#include "integ_feature.h"

enum { TAG_DATA = 1, TAG_GO = 2, TAG_OTHER = 3 };

#define BURST     200
#define SYNCS     100   /* more than the component has the provider report */
#define SYNC_LONG 20000 /* numbers of a message whose match the provider reports */

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
		integ_recv_int(peer, TAG_GO);
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
		integ_send_int(i, peer, TAG_GO);
		MPI_Waitall(3, reqs, MPI_STATUSES_IGNORE);
		for (int j = 0; j < 3; j++)
			INTEG_CHECK(packed[j] == 10 * i + 2 * j, "round %d: %g", i, packed[j]);
		for (int j = 0; j < 6; j++)
			INTEG_CHECK(sparse[2 * j] == 10 * i + j, "round %d: %g", i, sparse[2 * j]);
	}
	for (int i = 0; i < 3; i++)
		MPI_Request_free(&reqs[i]);
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

static int sync_put[SYNCS + 1][SYNC_LONG], sync_got[SYNC_LONG];

/*
 * Begins synchronous sends of SYNCS tags, and a standard send of a further tag behind them. None of
 * them is complete before its receive.
 */
static void sync_send_all(int peer, int len, MPI_Request *reqs)
{
	int done = 0, flag;

	for (int i = 0; i <= SYNCS; i++)
		sync_put[i][0] = sync_put[i][len - 1] = i;
	for (int i = 0; i < SYNCS; i++)
		MPI_Issend(sync_put[i], len, MPI_INT, peer, i, MPI_COMM_WORLD, &reqs[i]);
	MPI_Send(sync_put[SYNCS], 1, MPI_INT, peer, SYNCS, MPI_COMM_WORLD);
	for (int i = 0; i < 50; i++) {
		MPI_Testany(SYNCS, reqs, &done, &flag, MPI_STATUS_IGNORE);
		INTEG_CHECK(!flag, "message %d is complete without a receive", done);
	}
	MPI_Send(NULL, 0, MPI_INT, peer, SYNCS + 1, MPI_COMM_WORLD);
	MPI_Waitall(SYNCS, reqs, MPI_STATUSES_IGNORE);
}

static void sync_recv(int peer, int len, int tag)
{
	MPI_Recv(sync_got, len, MPI_INT, peer, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	INTEG_CHECK(sync_got[0] == tag && sync_got[len - 1] == tag, "tag %d: %d and %d", tag,
		    sync_got[0], sync_got[len - 1]);
}

/*
 * Many synchronous messages match in the reverse of their order, the first one behind a standard
 * message that was sent last.
 */
static void sync_reversed(int rank, int size)
{
	static const int lens[] = { 1, SYNC_LONG };
	MPI_Request reqs[SYNCS];

	for (int n = 0; (rank ^ 1) < size && n < 2; n++) {
		if (rank & 1) {
			sync_send_all(rank ^ 1, lens[n], reqs);
			continue;
		}
		sync_recv(rank ^ 1, 1, SYNCS);
		MPI_Recv(NULL, 0, MPI_INT, rank ^ 1, SYNCS + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		for (int i = SYNCS - 1; i >= 0; i--)
			sync_recv(rank ^ 1, lens[n], i);
	}
}

/* Makes the provider refuse receives, if libcarrier stands between it and MPI. */
static void refuse_receives(int yes)
{
	int *refuse;

	*(void **)&refuse = dlsym(RTLD_DEFAULT, "carrier_refuse_recvs");
	if (refuse)
		__atomic_store_n(refuse, yes, __ATOMIC_RELAXED);
}

#define REFUSED 8

/* Sends return while the provider takes no receive, and keep their order. */
static void sync_refused_sender(int peer)
{
	MPI_Request reqs[REFUSED], other;
	int values[REFUSED + 1], flag;

	refuse_receives(1);
	for (int i = 0; i < REFUSED; i++) {
		values[i] = i;
		MPI_Issend(&values[i], 1, MPI_INT, peer, TAG_DATA + i % 2, MPI_COMM_WORLD,
			   &reqs[i]);
	}
	values[REFUSED] = REFUSED;
	MPI_Isend(&values[REFUSED], 1, MPI_INT, peer, TAG_DATA, MPI_COMM_WORLD, &other);
	INTEG_CHECK(integ_still_pending(&reqs[0], 5), "message 0 is complete without a receive");
	refuse_receives(0);
	for (int i = 0; i < REFUSED; i++) {
		integ_send_int(0, peer, TAG_OTHER);
		MPI_Wait(&reqs[i], MPI_STATUS_IGNORE);
		for (int j = i + 1; j < REFUSED; j++) {
			MPI_Test(&reqs[j], &flag, MPI_STATUS_IGNORE);
			INTEG_CHECK(!flag, "message %d is complete with %d", j, i);
		}
	}
	MPI_Wait(&other, MPI_STATUS_IGNORE);
}

static void sync_refused_receiver(int peer)
{
	for (int i = 0; i < REFUSED; i++) {
		integ_recv_int(peer, TAG_OTHER);
		INTEG_CHECK(integ_recv_int(peer, TAG_DATA + i % 2) == i, "message %d", i);
	}
	INTEG_CHECK(integ_recv_int(peer, TAG_DATA) == REFUSED, "the standard message");
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
		integ_send_int(i, peer, TAG_DATA);
	for (int i = 0; peer < size && i < BURST; i += 2) {
		MPI_Wait(&reqs[i], MPI_STATUS_IGNORE);
		INTEG_CHECK(got[i] == next, "receive %d has %d, not %d", i, got[i], next);
		next++;
	}
}

/* A receive of a message that a probe has found has matched, also if the provider refuses it. */
static void cancel_matched_receiver(int peer)
{
	int got = -1, cancelled;
	MPI_Message message;
	MPI_Request req;
	MPI_Status st;

	MPI_Mprobe(peer, TAG_DATA, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
	refuse_receives(1);
	MPI_Imrecv(&got, 1, MPI_INT, &message, &req);
	MPI_Cancel(&req);
	refuse_receives(0);
	MPI_Wait(&req, &st);
	MPI_Test_cancelled(&st, &cancelled);
	INTEG_CHECK(!cancelled && got == 1, "%s, got %d", cancelled ? "cancelled" : "received",
		    got);
	INTEG_CHECK(integ_recv_int(peer, TAG_DATA) == 2, "the next message");
}

static void cancel_matched_sender(int peer)
{
	integ_send_int(1, peer, TAG_DATA);
	integ_send_int(2, peer, TAG_DATA);
}

/* Returns the number of KiB in memory. */
static long resident(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	long pages = 0;

	INTEG_CHECK(file && fscanf(file, "%*d %ld", &pages) == 1, "no /proc/self/statm");
	fclose(file);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

#define CANCELS   20000
#define GROWN_MAX 2048 /* KiB; 100 bytes for each */

/* Receives that are begun, cancelled and freed, with no other call between, leave no memory. */
static void cancel_freed(int rank, int size)
{
	MPI_Datatype every_second;
	static int got[4];
	long grown = 0;
	MPI_Request req;

	MPI_Type_vector(2, 1, 2, MPI_INT, &every_second);
	MPI_Type_commit(&every_second);
	for (int i = 0; i < CANCELS + CANCELS / 10; i++) {
		if (i == CANCELS / 10)
			grown = -resident();
		MPI_Irecv(got, 1, every_second, MPI_ANY_SOURCE, TAG_OTHER, MPI_COMM_WORLD, &req);
		MPI_Cancel(&req);
		MPI_Request_free(&req);
	}
	grown += resident();
	INTEG_CHECK(grown < GROWN_MAX, "rank %d of %d grew by %ld KiB", rank, size, grown);
	MPI_Type_free(&every_second);
}

#define FAILED         4
#define FAILED_LATE_US 20000 /* a wait of threads does not poll for so long */

static int failed_values[FAILED][2];

/* Starts a receive that is persistent, or not. */
static MPI_Request failed_begin(int i, int persistent, int peer)
{
	MPI_Request req;

	failed_values[i][0] = -1;
	if (persistent) {
		MPI_Recv_init(failed_values[i], 1, MPI_INT, peer, TAG_DATA, MPI_COMM_WORLD, &req);
		MPI_Start(&req);
	} else {
		MPI_Irecv(failed_values[i], 1, MPI_INT, peer, TAG_DATA, MPI_COMM_WORLD, &req);
	}
	return req;
}

/* Ends what an MPI_Waitall with an error has left: it need not wait for requests behind that. */
static void failed_end(int i, MPI_Request *req)
{
	if (*req != MPI_REQUEST_NULL && i != 1)
		MPI_Wait(req, MPI_STATUS_IGNORE);
	if (*req != MPI_REQUEST_NULL)
		MPI_Request_free(req);
	INTEG_CHECK(failed_values[i][0] == i || i == 1, "message %d: %d", i, failed_values[i][0]);
}

static void failed_status(int i, const MPI_Status *st)
{
	int class;

	MPI_Error_class(st->MPI_ERROR, &class);
	INTEG_CHECK(class == (i == 1 ? MPI_ERR_TRUNCATE : MPI_SUCCESS) ||
			    (i > 1 && class == MPI_ERR_PENDING),
		    "receive %d has class %d", i, class);
}

/* Ways: all but the first receive are persistent; no statuses; others are behind the failed one. */
enum { FAILED_PERSISTENT = 1, FAILED_IGNORE = 2, FAILED_MORE = 4, FAILED_WAYS = 8 };

static int failed_cnt(int way)
{
	return way & FAILED_MORE ? FAILED : 2;
}

static void failed_wait(int way, int peer)
{
	MPI_Request reqs[FAILED];
	MPI_Status st[FAILED];
	int cnt = failed_cnt(way), ignore = way & FAILED_IGNORE, err;

	for (int i = 0; i < cnt; i++)
		reqs[i] = failed_begin(i, i > 0 && way & FAILED_PERSISTENT, peer);
	integ_send_int(way, peer, TAG_GO);
	err = MPI_Waitall(cnt, reqs, ignore ? MPI_STATUSES_IGNORE : st);
	INTEG_CHECK(err != MPI_SUCCESS, "no error, way %d", way);
	for (int i = 0; !ignore && i < cnt; i++)
		failed_status(i, &st[i]);
	for (int i = 0; i < cnt; i++)
		failed_end(i, &reqs[i]);
}

/* MPI_Waitall() reports that the second receive is too short for its message. */
static void failed_waitall_receiver(int peer)
{
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	for (int way = 0; way < FAILED_WAYS; way++)
		failed_wait(way, peer);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static void failed_waitall_sender(int peer)
{
	for (int way = 0; way < FAILED_WAYS; way++) {
		integ_recv_int(peer, TAG_GO);
		for (int i = 0; i < failed_cnt(way); i++) {
			int values[2] = { i, i };

			if (i == FAILED - 1)
				usleep(FAILED_LATE_US);
			MPI_Send(values, i == 1 ? 2 : 1, MPI_INT, peer, TAG_DATA, MPI_COMM_WORLD);
		}
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
	INTEG_CHECK(integ_still_pending(&req, 2), "not received yet");
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
	integ_send_int(COUNT, peer, TAG_DATA);
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
		INTEG_CHECK(integ_recv_int(peer, TAG_DATA) == i, "message %d", i);
}

static const struct integ_feature features[] = {
	{ "persistent", persistent_sender, persistent_receiver, NULL },
	{ "freed_comm", NULL, NULL, freed_comm },
	{ "freed_request", NULL, NULL, freed_request },
	{ "sync_reversed", NULL, NULL, sync_reversed },
	{ "sync_refused", sync_refused_sender, sync_refused_receiver, NULL },
	{ "cancel_many", NULL, NULL, cancel_many },
	{ "cancel_matched", cancel_matched_sender, cancel_matched_receiver, NULL },
	{ "cancel_freed", NULL, NULL, cancel_freed },
	{ "failed_waitall", failed_waitall_sender, failed_waitall_receiver, NULL },
	{ "any_tag", NULL, NULL, any_tag },
	{ "to_self", NULL, NULL, to_self },
	{ "inter_comm", NULL, NULL, inter_comm },
	{ "burst", burst_sender, burst_receiver, NULL },
};

int main(int argc, char **argv)
{
	return integ_run("mpi_requests", features, sizeof(features) / sizeof(features[0]), argc,
			 argv);
}
