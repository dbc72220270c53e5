/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Exchanges between all pairs of ranks at once, with every byte checked.
 *
 * In each round every pair of ranks, a rank and itself included, exchanges a message of random size
 * from `least` (0) to 2 MiB. Size and content follow from (seed, round, source, target), so both
 * ends know them. Sizes are drawn evenly over their logarithm: small ones are as frequent as large
 * ones; a smaller one than `least` becomes that. The odd rounds go through MPI_Alltoallv, the even
 * ones through MPI_Isend and MPI_Irecv.
 *
 * usage: mpi_alltoall [rounds [seed [least]]]
 */
#include "integ.h"

#define LEN_BITS_MAX 21

struct exchange {
	int size;
	unsigned char **bufs; /* one for each peer */
	int *lens;
};

static uint64_t seed_of(uint64_t seed, int round, int from, int to)
{
	uint64_t state = seed ^ ((uint64_t)round << 40) ^ ((uint64_t)from << 20) ^ (uint64_t)to;

	return integ_random(&state);
}

static int least;

static int len_of(uint64_t seed)
{
	uint64_t bits = integ_random(&seed) % (LEN_BITS_MAX + 1);
	int len = (int)(integ_random(&seed) % ((1u << bits) + 1));

	return len < least ? least : len;
}

static void exchange_init(struct exchange *x, int size)
{
	x->size = size;
	x->bufs = calloc(size, sizeof(*x->bufs));
	x->lens = calloc(size, sizeof(*x->lens));
	for (int i = 0; i < size; i++)
		x->bufs[i] = malloc(1u << LEN_BITS_MAX);
}

static void exchange_fini(struct exchange *x)
{
	for (int i = 0; i < x->size; i++)
		free(x->bufs[i]);
	free(x->bufs);
	free(x->lens);
}

static void check_block(const unsigned char *buf, int len, uint64_t seed, int round, int from)
{
	size_t at = integ_mismatch(buf, len, seed);

	INTEG_CHECK(at == (size_t)len, "round %d from %d: byte %zu of %d", round, from, at, len);
}

static void round_p2p(struct exchange *out, struct exchange *in, uint64_t seed, int round)
{
	int rank = integ_rank(), size = integ_size();
	MPI_Request *reqs = calloc(2 * (size_t)size, sizeof(*reqs));
	MPI_Status *stats = calloc(2 * (size_t)size, sizeof(*stats));

	for (int i = 0; i < size; i++)
		MPI_Irecv(in->bufs[i], 1 << LEN_BITS_MAX, MPI_BYTE, i, round, MPI_COMM_WORLD,
			  &reqs[i]);
	for (int i = 0; i < size; i++)
		MPI_Isend(out->bufs[i], out->lens[i], MPI_BYTE, i, round, MPI_COMM_WORLD,
			  &reqs[size + i]);
	MPI_Waitall(2 * size, reqs, stats);
	for (int i = 0; i < size; i++) {
		int got;

		MPI_Get_count(&stats[i], MPI_BYTE, &got);
		INTEG_CHECK(got == in->lens[i], "round %d from %d: %d bytes", round, i, got);
		check_block(in->bufs[i], got, seed_of(seed, round, i, rank), round, i);
	}
	free(reqs);
	free(stats);
}

static size_t displacements(const int *lens, int *displs, int size)
{
	size_t total = 0;

	for (int i = 0; i < size; i++) {
		displs[i] = (int)total;
		total += lens[i];
	}
	return total;
}

static void round_collective(struct exchange *out, struct exchange *in, uint64_t seed, int round)
{
	int rank = integ_rank(), size = integ_size();
	int *out_at = calloc(size, sizeof(int)), *in_at = calloc(size, sizeof(int));
	unsigned char *sent = malloc(displacements(out->lens, out_at, size) + 1);
	unsigned char *got = malloc(displacements(in->lens, in_at, size) + 1);

	for (int i = 0; i < size; i++)
		integ_fill(sent + out_at[i], out->lens[i], seed_of(seed, round, rank, i));
	MPI_Alltoallv(sent, out->lens, out_at, MPI_BYTE, got, in->lens, in_at, MPI_BYTE,
		      MPI_COMM_WORLD);
	for (int i = 0; i < size; i++)
		check_block(got + in_at[i], in->lens[i], seed_of(seed, round, i, rank), round, i);
	free(sent);
	free(got);
	free(out_at);
	free(in_at);
}

static void draw_round(struct exchange *out, struct exchange *in, uint64_t seed, int round)
{
	int rank = integ_rank();

	for (int i = 0; i < out->size; i++) {
		out->lens[i] = len_of(seed_of(seed, round, rank, i));
		in->lens[i] = len_of(seed_of(seed, round, i, rank));
		integ_fill(out->bufs[i], out->lens[i], seed_of(seed, round, rank, i));
	}
}

int main(int argc, char **argv)
{
	struct exchange out, in;
	uint64_t seed;
	int rounds;

	MPI_Init(&argc, &argv);
	rounds = argc > 1 ? atoi(argv[1]) : 10;
	seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	least = argc > 3 ? atoi(argv[3]) : 0;
	INTEG_CHECK(least <= 1 << LEN_BITS_MAX, "%d bytes are too many", least);
	exchange_init(&out, integ_size());
	exchange_init(&in, integ_size());
	for (int round = 0; round < rounds; round++) {
		draw_round(&out, &in, seed, round);
		if (round % 2)
			round_collective(&out, &in, seed, round);
		else
			round_p2p(&out, &in, seed, round);
	}
	exchange_fini(&out);
	exchange_fini(&in);
	integ_done("mpi_alltoall");
	MPI_Finalize();
	return 0;
}
