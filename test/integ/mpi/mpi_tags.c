/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Matching in random orders: each receive gets the message that MPI's rules give it, whole.
 *
 * In each round every rank sends DEPTH messages to every rank, itself included, with few tags, of
 * random size up to 256 KiB. The receives of a pair are posted in another order, some of them for
 * any tag: one after the other takes the oldest message left that it matches, so both ends know
 * which. A third of the rounds posts the receives first, a third the sends, and in the others both
 * alternate. Besides, messages of a second communicator are received from any source; their order
 * per source and tag is checked. Receives that nothing matches are posted among the others, and
 * canceled at the end of the round. Rounds do not overlap.
 *
 * usage: mpi_tags [rounds [seed]]
 */
#include "integ.h"

#include <stdbool.h>

enum {
	DEPTH = 12,    /* messages of a pair */
	ANY_DEPTH = 3, /* messages of a pair received from any source */
	TAGS = 4,
	NEVER = 99, /* tag of receives that nothing matches */
	LEN_BITS = 18,
	LEN_MAX = 1 << LEN_BITS,
};

/* Receive, and the message that it must get. */
struct receive {
	int source, tag; /* arguments of MPI_Irecv */
	int want;        /* number of the message in its pair; -1: by its source */
	unsigned char *buf;
};

static struct tags {
	uint64_t seed, dice;
	MPI_Comm comm, any;
	int rank, size, cnt, posted;
	struct receive *receive;
	unsigned char **sent; /* buffers of sends */
	MPI_Request *in, *out;
	int sends, receives, blanks;
} t;

static int dice(int sides)
{
	return (int)(integ_random(&t.dice) % (uint64_t)sides);
}

/* Returns the seed of a message, known to both ends. */
static uint64_t seed_of(int round, int from, int to, int number, bool any)
{
	uint64_t state = t.seed ^ (uint64_t)round << 40 ^ (uint64_t)from << 28 ^
			 (uint64_t)to << 16 ^ (uint64_t)number << 1 ^ (uint64_t)any;

	return integ_random(&state);
}

static int tag_of(uint64_t seed)
{
	return (int)(integ_random(&seed) % TAGS);
}

static int len_of(uint64_t seed)
{
	uint64_t bits;

	integ_random(&seed);
	bits = integ_random(&seed) % (LEN_BITS + 1);
	return (int)(integ_random(&seed) % ((1u << bits) + 1));
}

/* Computes the receives of a pair: each takes the oldest message left that it matches. */
static void plan_pair(int round, int from)
{
	bool taken[DEPTH] = { false };

	for (int i = 0; i < DEPTH; i++) {
		struct receive *receive = &t.receive[t.receives++];
		int pick, first = 0;

		do
			pick = dice(DEPTH);
		while (taken[pick]);
		receive->source = from;
		receive->tag =
			dice(4) ? tag_of(seed_of(round, from, t.rank, pick, false)) : MPI_ANY_TAG;
		while (taken[first] ||
		       (receive->tag != MPI_ANY_TAG &&
			receive->tag != tag_of(seed_of(round, from, t.rank, first, false))))
			first++;
		taken[first] = true;
		receive->want = first;
	}
}

static void plan_any(int round)
{
	for (int from = 0; from < t.size; from++)
		for (int i = 0; i < ANY_DEPTH; i++) {
			struct receive *receive = &t.receive[t.receives++];

			receive->source = MPI_ANY_SOURCE;
			receive->tag = tag_of(seed_of(round, from, t.rank, i, true));
			receive->want = -1;
		}
}

/* Mixes the receives of different sources; those of one keep their order. */
static void plan_merge(void)
{
	struct receive *mixed = calloc((size_t)t.cnt, sizeof(*mixed));
	int groups = t.size + 1, *next = calloc((size_t)groups, sizeof(*next));

	for (int i = 0; i < t.receives; i++) {
		int group, at;

		do {
			group = dice(groups);
			at = group * DEPTH + next[group];
		} while (next[group] == (group < t.size ? DEPTH : ANY_DEPTH * t.size));
		next[group]++;
		mixed[i] = t.receive[at];
		mixed[i].buf = t.receive[i].buf;
	}
	for (int i = 0; i < t.receives; i++)
		t.receive[i] = mixed[i];
	free(next);
	free(mixed);
}

static void plan(int round)
{
	t.receives = 0;
	for (int from = 0; from < t.size; from++)
		plan_pair(round, from);
	plan_any(round);
	plan_merge();
}

static void post_blank(void)
{
	static char none[8];

	MPI_Irecv(none, sizeof(none), MPI_BYTE, dice(2) ? dice(t.size) : MPI_ANY_SOURCE, NEVER,
		  t.comm, &t.in[t.cnt + t.blanks++]);
}

static void post_receive(void)
{
	struct receive *receive = &t.receive[t.posted];
	bool any = receive->want < 0;

	if (!dice(8) && t.blanks < t.cnt)
		post_blank();
	MPI_Irecv(receive->buf, LEN_MAX, MPI_BYTE, receive->source, receive->tag,
		  any ? t.any : t.comm, &t.in[t.posted++]);
}

/* Sends the next message to some rank: those of a pair in order. */
static void post_send(int round, int *next, int *next_any)
{
	unsigned char *buf = t.sent[t.sends];
	uint64_t seed;
	bool any;
	int to;

	do {
		to = dice(t.size);
		any = !dice(4);
	} while (any ? next_any[to] == ANY_DEPTH : next[to] == DEPTH);
	seed = seed_of(round, t.rank, to, any ? next_any[to]++ : next[to]++, any);
	integ_fill(buf, (size_t)len_of(seed), seed);
	MPI_Isend(buf, len_of(seed), MPI_BYTE, to, tag_of(seed), any ? t.any : t.comm,
		  &t.out[t.sends++]);
}

static void look(void)
{
	int flag;

	for (int i = dice(4); i > 0; i--)
		MPI_Iprobe(MPI_ANY_SOURCE, NEVER, t.any, &flag, MPI_STATUS_IGNORE);
}

static void post_all(int round)
{
	int *next = calloc((size_t)t.size, sizeof(*next));
	int *next_any = calloc((size_t)t.size, sizeof(*next_any));

	while (t.posted < t.cnt || t.sends < t.cnt) {
		bool receive = round % 3 == 0   ? t.posted < t.cnt
			       : round % 3 == 1 ? t.sends == t.cnt
						: dice(2);

		if (round % 3 < 2 && (round % 3 ? t.sends : t.posted) == t.cnt &&
		    !(round % 3 ? t.posted : t.sends))
			MPI_Barrier(MPI_COMM_WORLD);
		if (t.sends == t.cnt || (receive && t.posted < t.cnt))
			post_receive();
		else
			post_send(round, next, next_any);
		if (!dice(3))
			look();
	}
	free(next_any);
	free(next);
}

static void check_one(int round, const struct receive *receive, const MPI_Status *st, int *from_any)
{
	bool any = receive->want < 0;
	int number = receive->want, got;
	uint64_t seed;
	size_t at;

	/* of one source and tag, receives from any source take the messages in order */
	for (; any; from_any[st->MPI_SOURCE * TAGS + st->MPI_TAG]++) {
		number = from_any[st->MPI_SOURCE * TAGS + st->MPI_TAG];
		INTEG_CHECK(number < ANY_DEPTH, "round %d: one message too many from %d", round,
			    st->MPI_SOURCE);
		if (tag_of(seed_of(round, st->MPI_SOURCE, t.rank, number, true)) == st->MPI_TAG)
			break;
	}
	if (any)
		from_any[st->MPI_SOURCE * TAGS + st->MPI_TAG]++;
	seed = seed_of(round, st->MPI_SOURCE, t.rank, number, any);
	MPI_Get_count(st, MPI_BYTE, &got);
	INTEG_CHECK(any || st->MPI_SOURCE == receive->source, "round %d: from %d, not %d", round,
		    st->MPI_SOURCE, receive->source);
	INTEG_CHECK(st->MPI_TAG == tag_of(seed) && got == len_of(seed),
		    "round %d from %d: tag %d of %d bytes instead of message %d, tag %d of %d "
		    "bytes",
		    round, st->MPI_SOURCE, st->MPI_TAG, got, number, tag_of(seed), len_of(seed));
	at = integ_mismatch(receive->buf, (size_t)got, seed);
	INTEG_CHECK(at == (size_t)got, "round %d from %d: byte %zu of %d", round, st->MPI_SOURCE,
		    at, got);
}

static void cancel_blanks(int round)
{
	for (int i = 0; i < t.blanks; i++) {
		MPI_Status st;
		int canceled;

		MPI_Cancel(&t.in[t.cnt + i]);
		MPI_Wait(&t.in[t.cnt + i], &st);
		MPI_Test_cancelled(&st, &canceled);
		INTEG_CHECK(canceled, "round %d: a receive of tag %d got something", round, NEVER);
	}
}

static void run(int round)
{
	MPI_Status *st = calloc((size_t)t.cnt, sizeof(*st));
	int *from_any = calloc((size_t)t.size * TAGS, sizeof(*from_any));

	t.posted = t.sends = t.blanks = 0;
	plan(round);
	post_all(round);
	MPI_Waitall(t.cnt, t.in, st);
	for (int i = 0; i < t.cnt; i++)
		check_one(round, &t.receive[i], &st[i], from_any);
	MPI_Waitall(t.sends, t.out, MPI_STATUSES_IGNORE);
	cancel_blanks(round);
	MPI_Barrier(MPI_COMM_WORLD);
	free(from_any);
	free(st);
}

static void init(void)
{
	MPI_Comm_dup(MPI_COMM_WORLD, &t.comm);
	MPI_Comm_dup(MPI_COMM_WORLD, &t.any);
	t.rank = integ_rank();
	t.size = integ_size();
	t.cnt = t.size * (DEPTH + ANY_DEPTH);
	t.receive = calloc((size_t)t.cnt, sizeof(*t.receive));
	t.sent = calloc((size_t)t.cnt, sizeof(*t.sent));
	t.in = calloc((size_t)t.cnt * 2, sizeof(*t.in));
	t.out = calloc((size_t)t.cnt, sizeof(*t.out));
	for (int i = 0; i < t.cnt; i++) {
		t.receive[i].buf = malloc(LEN_MAX);
		t.sent[i] = malloc(LEN_MAX);
	}
}

static void fini(void)
{
	for (int i = 0; i < t.cnt; i++) {
		free(t.receive[i].buf);
		free(t.sent[i]);
	}
	free(t.receive);
	free(t.sent);
	free(t.in);
	free(t.out);
	MPI_Comm_free(&t.comm);
	MPI_Comm_free(&t.any);
}

int main(int argc, char **argv)
{
	int rounds;

	MPI_Init(&argc, &argv);
	rounds = argc > 1 ? atoi(argv[1]) : 30;
	t.seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	init();
	t.dice = t.seed + 1000 * (uint64_t)t.rank;
	for (int round = 0; round < rounds; round++)
		run(round);
	fini();
	integ_done("mpi_tags");
	MPI_Finalize();
	return 0;
}
