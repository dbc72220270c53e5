/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages arrive once their sends are complete, though their sender makes no further call of MPI:
 * whatever call completes them, more than a provider has room for, and those of a collective
 * operation. The ranks of a node wait for each other with words in shared memory meanwhile.
 *
 * usage: mpi_held [feature]...      all of them by default
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "integ_feature.h"

enum { TAG_DATA = 1, TAG_GO = 2 };

#define HELD        16
#define BLOCKING    3
#define EMPTY       20000
#define LONG_LEN    8000
#define PACKETS_LEN 20000 /* several packets of a network */

/* Ways to complete a number of sends. */
static void complete_by_wait(MPI_Request *reqs)
{
	for (int i = 0; i < HELD; i++)
		MPI_Wait(&reqs[i], MPI_STATUS_IGNORE);
}

static void complete_by_waitall(MPI_Request *reqs)
{
	MPI_Waitall(HELD, reqs, MPI_STATUSES_IGNORE);
}

static void complete_by_waitany(MPI_Request *reqs)
{
	int done = 0;

	while (done != MPI_UNDEFINED)
		MPI_Waitany(HELD, reqs, &done, MPI_STATUS_IGNORE);
}

static void complete_by_waitsome(MPI_Request *reqs)
{
	int indices[HELD], done = 0;

	while (done != MPI_UNDEFINED)
		MPI_Waitsome(HELD, reqs, &done, indices, MPI_STATUSES_IGNORE);
}

static void complete_by_test(MPI_Request *reqs)
{
	for (int i = 0; i < HELD; i++)
		for (int done = 0; !done;)
			MPI_Test(&reqs[i], &done, MPI_STATUS_IGNORE);
}

static void complete_by_testall(MPI_Request *reqs)
{
	for (int done = 0; !done;)
		MPI_Testall(HELD, reqs, &done, MPI_STATUSES_IGNORE);
}

static void complete_by_testany(MPI_Request *reqs)
{
	int done = 0, idx = 0;

	while (!done || idx != MPI_UNDEFINED)
		MPI_Testany(HELD, reqs, &idx, &done, MPI_STATUS_IGNORE);
}

static void complete_by_testsome(MPI_Request *reqs)
{
	int indices[HELD], done = 0;

	while (done != MPI_UNDEFINED)
		MPI_Testsome(HELD, reqs, &done, indices, MPI_STATUSES_IGNORE);
}

static void (*const complete[])(MPI_Request *reqs) = {
	complete_by_wait, complete_by_waitall, complete_by_waitany, complete_by_waitsome,
	complete_by_test, complete_by_testall, complete_by_testany, complete_by_testsome,
};

/* Waits for a word in shared memory without a call of MPI. */
static void await_word(const int *word, int value)
{
	time_t end = time(NULL) + 60;

	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value)
		INTEG_CHECK(time(NULL) < end, "the word is %d, not %d", *word, value);
}

/*
 * Messages arrive once their sends are complete, though their sender makes no further call of MPI.
 * The receiver takes none before that, so that all but the first are in the sender's batch.
 * words: of the sender, of the receiver.
 */
static void each_call_round(MPI_Comm pair, int rank, int way, int *words)
{
	MPI_Request reqs[HELD];
	int values[HELD];

	if (rank == 1) {
		await_word(&words[0], way + 1);
		for (int i = 0; i < HELD; i++) {
			MPI_Recv(values, 1, MPI_INT, 0, TAG_DATA, pair, MPI_STATUS_IGNORE);
			INTEG_CHECK(values[0] == 100 * way + i, "message %d: %d", i, values[0]);
		}
		__atomic_store_n(&words[1], way + 1, __ATOMIC_RELEASE);
		return;
	}
	for (int i = 0; i < HELD; i++) {
		values[i] = 100 * way + i;
		MPI_Isend(&values[i], 1, MPI_INT, 1, TAG_DATA, pair, &reqs[i]);
	}
	complete[way](reqs);
	__atomic_store_n(&words[0], way + 1, __ATOMIC_RELEASE);
	await_word(&words[1], way + 1);
}

/* Returns two words that the ranks of a node share, without a window of MPI. */
static int *share_words(MPI_Comm pair, int rank)
{
	char path[] = "/tmp/mpi_requests-XXXXXX";
	int fd = rank ? -1 : mkstemp(path);
	int *words;

	INTEG_CHECK(rank || (fd >= 0 && !ftruncate(fd, sizeof(*words) * 2)), "no file %s", path);
	MPI_Bcast(path, sizeof(path), MPI_CHAR, 0, pair);
	if (rank)
		fd = open(path, O_RDWR);
	words = mmap(NULL, sizeof(*words) * 2, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	INTEG_CHECK(words != MAP_FAILED, "no memory of %s", path);
	close(fd);
	MPI_Barrier(pair);
	if (!rank)
		unlink(path);
	return words;
}

/* Two ranks of a node, and two words that they share: of the sender, of the receiver. */
struct near {
	MPI_Comm pair;
	int rank, size; /* size: 1 if no other rank of the node is left */
	int *words;
};

static void near_open(struct near *near, int rank)
{
	MPI_Comm node;
	int node_rank;

	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
	MPI_Comm_rank(node, &node_rank);
	MPI_Comm_split(node, node_rank / 2, rank, &near->pair);
	MPI_Comm_rank(near->pair, &near->rank);
	MPI_Comm_size(near->pair, &near->size);
	near->words = share_words(near->pair, near->rank);
	MPI_Comm_free(&node);
}

static void near_close(struct near *near)
{
	munmap(near->words, sizeof(*near->words) * 2);
	MPI_Comm_free(&near->pair);
}

static void each_call(int rank, int size)
{
	struct near near;

	near_open(&near, rank);
	for (int way = 0; near.size == 2 && way < (int)(sizeof(complete) / sizeof(complete[0]));
	     way++)
		each_call_round(near.pair, near.rank, way, near.words);
	near_close(&near);
	(void)size;
}

/* Sends of which a part may have to wait for the receiver. round: from 1 on. */
static void many_sender(const struct near *near, int round, int cnt, int len)
{
	static MPI_Request reqs[EMPTY];
	static char bytes[LONG_LEN];

	for (int i = 0; i < cnt; i++)
		MPI_Isend(bytes, len, MPI_BYTE, 1, TAG_DATA, near->pair, &reqs[i]);
	__atomic_store_n(&near->words[0], round, __ATOMIC_RELEASE);
	MPI_Waitall(cnt, reqs, MPI_STATUSES_IGNORE);
	await_word(&near->words[1], round);
}

static void many_receiver(const struct near *near, int round, int cnt, int len)
{
	static char bytes[LONG_LEN];

	await_word(&near->words[0], round);
	for (int i = 0; i < cnt; i++)
		MPI_Recv(bytes, len, MPI_BYTE, 0, TAG_DATA, near->pair, MPI_STATUS_IGNORE);
	__atomic_store_n(&near->words[1], round, __ATOMIC_RELEASE);
}

static void many(int rank, int rounds, int cnt, int len)
{
	struct near near;

	near_open(&near, rank);
	for (int round = 1; near.size == 2 && round <= rounds; round++) {
		if (near.rank == 0)
			many_sender(&near, round, cnt, len);
		else
			many_receiver(&near, round, cnt, len);
	}
	near_close(&near);
}

/* Exchanges a message with the peer, so that it has acknowledged those before. */
static void turn(const struct near *near)
{
	int value = 0;

	MPI_Sendrecv_replace(&value, 1, MPI_INT, !near->rank, TAG_DATA, !near->rank, TAG_DATA,
			     near->pair, MPI_STATUS_IGNORE);
}

static void blocking_round(const struct near *near, int round, int cnt)
{
	static int values[PACKETS_LEN / sizeof(int)];

	turn(near);
	turn(near);
	for (int i = 0; i < BLOCKING; i++) {
		values[0] = values[cnt - 1] = 100 * round + i;
		if (near->rank == 0) {
			MPI_Send(values, cnt, MPI_INT, 1, TAG_DATA, near->pair);
			continue;
		}
		MPI_Recv(values, cnt, MPI_INT, 0, TAG_DATA, near->pair, MPI_STATUS_IGNORE);
		INTEG_CHECK(values[0] == 100 * round + i && values[cnt - 1] == values[0],
			    "message %d: %d and %d", i, values[0], values[cnt - 1]);
	}
	if (near->rank == 0)
		await_word(&near->words[1], round);
	else
		__atomic_store_n(&near->words[1], round, __ATOMIC_RELEASE);
}

/* A few messages in a row by MPI_Send, whose receiver has them while their sender computes. */
static void blocking(int rank, int size)
{
	struct near near;

	near_open(&near, rank);
	for (int round = 1; near.size == 2 && round <= HELD; round++)
		blocking_round(&near, round, round % 2 ? 1 : (int)(PACKETS_LEN / sizeof(int)));
	near_close(&near);
	(void)size;
}

/* Buffered sends, of each kind, are complete at once. */
enum { BUFFERED_BLOCKING, BUFFERED_IMMEDIATE, BUFFERED_PERSISTENT, BUFFERED_KINDS };

static void buffered_send(const struct near *near, int kind, const int *values)
{
	MPI_Request reqs[BLOCKING];

	for (int i = 0; i < BLOCKING; i++) {
		if (kind == BUFFERED_BLOCKING) {
			MPI_Bsend(&values[i], 1, MPI_INT, 1, TAG_DATA, near->pair);
			continue;
		}
		if (kind == BUFFERED_IMMEDIATE) {
			MPI_Ibsend(&values[i], 1, MPI_INT, 1, TAG_DATA, near->pair, &reqs[i]);
			continue;
		}
		MPI_Bsend_init(&values[i], 1, MPI_INT, 1, TAG_DATA, near->pair, &reqs[i]);
		MPI_Start(&reqs[i]);
	}
	if (kind != BUFFERED_BLOCKING)
		MPI_Waitall(BLOCKING, reqs, MPI_STATUSES_IGNORE);
	await_word(&near->words[1], kind + 1);
	for (int i = 0; kind == BUFFERED_PERSISTENT && i < BLOCKING; i++)
		MPI_Request_free(&reqs[i]);
}

static void buffered_round(const struct near *near, int kind)
{
	int values[BLOCKING], value;

	turn(near);
	turn(near);
	for (int i = 0; i < BLOCKING; i++) {
		values[i] = 100 * kind + i;
		if (near->rank == 0)
			continue;
		MPI_Recv(&value, 1, MPI_INT, 0, TAG_DATA, near->pair, MPI_STATUS_IGNORE);
		INTEG_CHECK(value == values[i], "kind %d, message %d: %d", kind, i, value);
	}
	if (near->rank == 0)
		buffered_send(near, kind, values);
	else
		__atomic_store_n(&near->words[1], kind + 1, __ATOMIC_RELEASE);
}

/* Buffered messages arrive while their sender computes. */
static void buffered(int rank, int size)
{
	static char space[BLOCKING * (sizeof(int) + MPI_BSEND_OVERHEAD + 64)];
	struct near near;
	void *back;
	int len;

	near_open(&near, rank);
	MPI_Buffer_attach(space, sizeof(space));
	for (int kind = 0; near.size == 2 && kind < BUFFERED_KINDS; kind++)
		buffered_round(&near, kind);
	MPI_Buffer_detach(&back, &len);
	near_close(&near);
	(void)size;
}

/* More messages than the provider has room for. */
static void empty(int rank, int size)
{
	many(rank, 1, EMPTY, 0);
	(void)size;
}

/* In small rings (FI_COPYRPC_RING_SIZE) such messages travel in pieces. */
static void in_pieces(int rank, int size)
{
	many(rank, HELD, 1, LONG_LEN);
	many(rank, HELD, 3, LONG_LEN);
	(void)size;
}

/*
 * A broadcast along ranks 0, 1, 2 whose last message rank 1 sends from progress, behind others that
 * rank 2 has not taken yet. It is so with coll/adapt and its pipeline.
 */
static void collective_relay(MPI_Comm comm, int *words)
{
	MPI_Request reqs[HELD];
	int values[HELD] = { 0 }, value = 7;

	for (int i = 0; i < HELD; i++)
		MPI_Isend(&values[i], 1, MPI_INT, 2, TAG_DATA, comm, &reqs[i]);
	complete_by_waitall(reqs);
	MPI_Bcast(&value, 1, MPI_INT, 0, comm);
	__atomic_store_n(&words[0], 1, __ATOMIC_RELEASE);
	await_word(&words[1], 1);
}

static void collective_ranks(MPI_Comm comm, int rank, int *words)
{
	int value = rank ? 0 : 7;

	if (rank == 1) {
		collective_relay(comm, words);
		return;
	}
	if (rank == 2)
		await_word(&words[0], 1);
	MPI_Bcast(&value, 1, MPI_INT, 0, comm);
	INTEG_CHECK(value == 7, "value %d", value);
	if (rank == 2)
		__atomic_store_n(&words[1], 1, __ATOMIC_RELEASE);
	for (int i = 0; rank == 2 && i < HELD; i++)
		MPI_Recv(&value, 1, MPI_INT, 1, TAG_DATA, comm, MPI_STATUS_IGNORE);
}

static void collective(int rank, int size)
{
	MPI_Comm node, three;
	int *words;

	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
	MPI_Comm_rank(node, &rank);
	MPI_Comm_split(node, rank / 3, rank, &three);
	MPI_Comm_rank(three, &rank);
	MPI_Comm_size(three, &size);
	words = share_words(three, rank);
	if (size == 3)
		collective_ranks(three, rank, words);
	munmap(words, sizeof(*words) * 2);
	MPI_Comm_free(&three);
	MPI_Comm_free(&node);
}

/* Calls in whose progress a nonblocking collective may send. */
enum { OTHER_IPROBE, OTHER_IMPROBE, OTHER_RECV, OTHERS };

static void other_call(const struct near *near, int way)
{
	MPI_Message message;
	int found = 0;

	if (way == OTHER_IPROBE)
		MPI_Iprobe(1, TAG_GO, near->pair, &found, MPI_STATUS_IGNORE);
	else if (way == OTHER_IMPROBE)
		MPI_Improbe(1, TAG_GO, near->pair, &found, &message, MPI_STATUS_IGNORE);
	else
		MPI_Recv(NULL, 0, MPI_INT, 1, TAG_GO, near->pair, MPI_STATUS_IGNORE);
	INTEG_CHECK(!found, "a message that nobody sent was probed");
}

/*
 * Sends the result of the reduction from progress, behind messages that the peer has not taken, in
 * a call that has nothing to do with it.
 */
static void other_root(const struct near *near, int way)
{
	int values[HELD] = { 0 }, value = 1, sum = 0;
	MPI_Request reqs[HELD], all;

	MPI_Iallreduce(&value, &sum, 1, MPI_INT, MPI_SUM, near->pair, &all);
	for (int i = 0; i < HELD; i++)
		MPI_Isend(&values[i], 1, MPI_INT, 1, TAG_DATA, near->pair, &reqs[i]);
	__atomic_store_n(&near->words[0], 2 * way + 1, __ATOMIC_RELEASE);
	if (way != OTHER_RECV)
		await_word(&near->words[1], 2 * way + 1);
	other_call(near, way);
	__atomic_store_n(&near->words[0], 2 * way + 2, __ATOMIC_RELEASE);
	await_word(&near->words[1], 2 * way + 2);
	MPI_Wait(&all, MPI_STATUS_IGNORE);
	MPI_Waitall(HELD, reqs, MPI_STATUSES_IGNORE);
	INTEG_CHECK(sum == 3, "sum %d", sum);
}

/*
 * Sends its part of the reduction once the other has begun, or waits in its call. The message that
 * ends that call leaves once the result is here: the root may take both at once otherwise, and owes
 * no result then that it has not begun to send.
 */
static void other_leaf(const struct near *near, int way)
{
	int value = 2, sum = 0, done;
	MPI_Request all;

	await_word(&near->words[0], 2 * way + 1);
	if (way == OTHER_RECV)
		usleep(20000);
	MPI_Iallreduce(&value, &sum, 1, MPI_INT, MPI_SUM, near->pair, &all);
	if (way == OTHER_RECV) {
		MPI_Wait(&all, MPI_STATUS_IGNORE);
		MPI_Send(NULL, 0, MPI_INT, 0, TAG_GO, near->pair);
	} else {
		MPI_Test(&all, &done, MPI_STATUS_IGNORE);
	}
	__atomic_store_n(&near->words[1], 2 * way + 1, __ATOMIC_RELEASE);
	await_word(&near->words[0], 2 * way + 2);
	MPI_Wait(&all, MPI_STATUS_IGNORE);
	__atomic_store_n(&near->words[1], 2 * way + 2, __ATOMIC_RELEASE);
	for (int i = 0; i < HELD; i++)
		MPI_Recv(&value, 1, MPI_INT, 0, TAG_DATA, near->pair, MPI_STATUS_IGNORE);
	INTEG_CHECK(sum == 3, "sum %d", sum);
}

/* Messages that a nonblocking collective sends in the progress of other calls arrive. */
static void other(int rank, int size)
{
	struct near near;

	near_open(&near, rank);
	for (int way = 0; near.size == 2 && way < OTHERS; way++) {
		if (near.rank == 0)
			other_root(&near, way);
		else
			other_leaf(&near, way);
	}
	near_close(&near);
	(void)size;
}

static const struct integ_feature features[] = {
	{ "each_call", NULL, NULL, each_call },   { "blocking", NULL, NULL, blocking },
	{ "empty", NULL, NULL, empty },           { "in_pieces", NULL, NULL, in_pieces },
	{ "collective", NULL, NULL, collective }, { "other", NULL, NULL, other },
	{ "buffered", NULL, NULL, buffered },
};

int main(int argc, char **argv)
{
	return integ_run("mpi_held", features, sizeof(features) / sizeof(features[0]), argc, argv);
}
