/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Every MPI wait, called by several threads of a rank at once (MPI_THREAD_MULTIPLE).
 *
 * Ranks come in pairs. In each round thread t of one rank waits for messages that thread t of the
 * other sends at once, after a millisecond, or after so long that a wait that polls gives up. The
 * arrays hold a null request and an inactive persistent one too. Another request is ended by a
 * thread that makes no MPI progress, and one is a nonblocking collective.
 *
 * Short sends to this process are complete at the first MPI_Testall.
 *
 * usage: mpi_waits [rounds]
 */
#include <pthread.h>
#include <unistd.h>

#include "integ.h"

#define THREADS 3
#define MSGS    4
#define CNT     (MSGS + 2)
#define LONG_US 40000
#define WAITS   4 /* kinds of them */

struct side {
	int tag;
	MPI_Comm comm; /* of this thread and its peer */
	MPI_Request persistent;
	long in[MSGS];
	MPI_Request reqs[CNT];
};

static long rounds = 24;

static void post(struct side *side)
{
	for (int i = 0; i < MSGS; i++)
		MPI_Irecv(&side->in[i], 1, MPI_LONG, integ_rank() ^ 1, side->tag + i,
			  MPI_COMM_WORLD, &side->reqs[i]);
	side->reqs[MSGS] = MPI_REQUEST_NULL;
	side->reqs[MSGS + 1] = side->persistent;
}

static void send_all(const struct side *side, long round)
{
	static const useconds_t delays[] = { 0, 1000, LONG_US };

	usleep(delays[round / WAITS % 3]);
	for (int i = 0; i < MSGS; i++) {
		long value = round * MSGS + i;

		MPI_Send(&value, 1, MPI_LONG, integ_rank() ^ 1, side->tag + i, MPI_COMM_WORLD);
	}
}

static void wait_each(struct side *side)
{
	MPI_Status st;

	for (int i = 0; i < CNT; i++) {
		MPI_Wait(&side->reqs[i], &st);
		INTEG_CHECK(i >= MSGS || st.MPI_TAG == side->tag + i, "tag %d", st.MPI_TAG);
	}
}

static void wait_all(struct side *side)
{
	MPI_Status st[CNT];

	MPI_Waitall(CNT, side->reqs, st);
	for (int i = 0; i < MSGS; i++)
		INTEG_CHECK(st[i].MPI_TAG == side->tag + i, "tag %d", st[i].MPI_TAG);
}

static void wait_any(struct side *side)
{
	MPI_Status st;
	int at;

	for (int i = 0; i < MSGS; i++) {
		MPI_Waitany(CNT, side->reqs, &at, &st);
		INTEG_CHECK(at >= 0 && at < MSGS && st.MPI_TAG == side->tag + at, "index %d", at);
	}
	MPI_Waitany(CNT, side->reqs, &at, &st);
	INTEG_CHECK(at == MPI_UNDEFINED, "index %d", at);
}

static void wait_some(struct side *side)
{
	MPI_Status st[CNT];
	int cnt, at[CNT];

	for (int done = 0; done < MSGS; done += cnt) {
		MPI_Waitsome(CNT, side->reqs, &cnt, at, st);
		INTEG_CHECK(cnt > 0 && cnt <= MSGS - done, "%d ended", cnt);
	}
	MPI_Waitsome(CNT, side->reqs, &cnt, at, st);
	INTEG_CHECK(cnt == MPI_UNDEFINED, "%d ended", cnt);
}

static void run_round(struct side *side, long round)
{
	static void (*const waits[WAITS])(struct side *) = { wait_each, wait_all, wait_any,
							     wait_some };

	waits[round % WAITS](side);
	for (int i = 0; i < MSGS; i++)
		INTEG_CHECK(side->in[i] == round * MSGS + i, "round %ld: %ld", round, side->in[i]);
}

static void *end_request(void *arg)
{
	usleep(LONG_US);
	MPI_Grequest_complete(*(MPI_Request *)arg);
	return NULL;
}

static int grequest_query(void *state, MPI_Status *st)
{
	MPI_Status_set_elements(st, MPI_BYTE, 0);
	MPI_Status_set_cancelled(st, 0);
	return MPI_SUCCESS;
}

static int grequest_free(void *state)
{
	return MPI_SUCCESS;
}

static int grequest_cancel(void *state, int complete)
{
	return MPI_SUCCESS;
}

/* Waits for requests that are no messages. */
static void run_others(struct side *side)
{
	MPI_Request reqs[2], other;
	pthread_t thread;

	MPI_Grequest_start(grequest_query, grequest_free, grequest_cancel, NULL, &other);
	reqs[0] = other;
	MPI_Ibarrier(side->comm, &reqs[1]);
	INTEG_CHECK(!pthread_create(&thread, NULL, end_request, &other), "no thread");
	MPI_Waitall(2, reqs, MPI_STATUSES_IGNORE);
	pthread_join(thread, NULL);
}

static void *run_side(void *arg)
{
	struct side *side = arg;
	int sends = integ_rank() & 1;

	MPI_Recv_init(NULL, 0, MPI_INT, integ_rank() ^ 1, side->tag + MSGS, MPI_COMM_WORLD,
		      &side->persistent);
	for (long i = 0; i < rounds; i++, sends = !sends) {
		if (sends) {
			send_all(side, i);
		} else {
			post(side);
			run_round(side, i);
		}
	}
	run_others(side);
	MPI_Request_free(&side->persistent);
	return NULL;
}

static void run_tests(void)
{
	MPI_Request reqs[MSGS];
	int out = 1, in[MSGS], done;

	for (int i = 0; i < MSGS; i++)
		MPI_Isend(&out, 1, MPI_INT, 0, i, MPI_COMM_SELF, &reqs[i]);
	MPI_Testall(MSGS, reqs, &done, MPI_STATUSES_IGNORE);
	INTEG_CHECK(done, "short sends are not complete");
	for (int i = 0; i < MSGS; i++)
		MPI_Irecv(&in[i], 1, MPI_INT, 0, i, MPI_COMM_SELF, &reqs[i]);
	MPI_Testall(MSGS, reqs, &done, MPI_STATUSES_IGNORE);
	INTEG_CHECK(done, "messages that are here are not received");
}

static void run_sides(void)
{
	struct side sides[THREADS];
	pthread_t threads[THREADS];

	for (int t = 0; t < THREADS; t++) {
		sides[t].tag = 10 * (t + 1);
		MPI_Comm_split(MPI_COMM_WORLD, integ_rank() / 2, integ_rank(), &sides[t].comm);
	}
	for (int t = 0; t < THREADS; t++)
		INTEG_CHECK(!pthread_create(&threads[t], NULL, run_side, &sides[t]), "no thread");
	for (int t = 0; t < THREADS; t++) {
		pthread_join(threads[t], NULL);
		MPI_Comm_free(&sides[t].comm);
	}
}

int main(int argc, char **argv)
{
	int provided;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	INTEG_CHECK(provided == MPI_THREAD_MULTIPLE, "level %d", provided);
	INTEG_CHECK(integ_size() % 2 == 0, "%d ranks, needs an even number", integ_size());
	if (argc > 1)
		rounds = atol(argv[1]);
	run_tests();
	run_sides();
	integ_done("mpi_waits");
	MPI_Finalize();
	return 0;
}
