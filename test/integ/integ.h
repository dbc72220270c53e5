/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What do the MPI test programs share?
 *
 * A check that ends the whole job with a line saying what was wrong and where, and bytes that
 * anybody can compute: the content of a message follows from a seed, so the receiver needs no
 * second message to know what it should have got.
 */
#ifndef INTEG_H
#define INTEG_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>

/** Ends the job with a line on stderr unless `cond` holds. */
#define INTEG_CHECK(cond, ...)                                                                     \
	do {                                                                                       \
		if (!(cond))                                                                       \
			integ_fail(__FILE__, __LINE__, #cond, __VA_ARGS__);                        \
	} while (0)

#define integ_fail(file, line, cond, ...)                                                          \
	do {                                                                                       \
		fprintf(stderr, "%s:%d: rank %d: not so: %s: ", file, line, integ_rank(), cond);   \
		fprintf(stderr, __VA_ARGS__);                                                      \
		fputc('\n', stderr);                                                               \
		MPI_Abort(MPI_COMM_WORLD, 1);                                                      \
		abort();                                                                           \
	} while (0)

static inline int integ_rank(void)
{
	int rank;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	return rank;
}

static inline int integ_size(void)
{
	int size;

	MPI_Comm_size(MPI_COMM_WORLD, &size);
	return size;
}

/** splitmix64: the next number of the sequence that `state` stands for. */
static inline uint64_t integ_random(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/** Fills `len` bytes with the pattern of `seed`. */
static inline void integ_fill(unsigned char *buf, size_t len, uint64_t seed)
{
	uint64_t word = 0;

	for (size_t i = 0; i < len; i++) {
		if (i % 8 == 0)
			word = integ_random(&seed);
		buf[i] = (unsigned char)(word >> (i % 8 * 8));
	}
}

/** The offset of the first byte that is not the pattern of `seed`; `len` if all are. */
static inline size_t integ_mismatch(const unsigned char *buf, size_t len, uint64_t seed)
{
	uint64_t word = 0;

	for (size_t i = 0; i < len; i++) {
		if (i % 8 == 0)
			word = integ_random(&seed);
		if (buf[i] != (unsigned char)(word >> (i % 8 * 8)))
			return i;
	}
	return len;
}

/** Says once, from rank 0, that the program's own answer was right. */
static inline void integ_done(const char *name)
{
	MPI_Barrier(MPI_COMM_WORLD);
	if (integ_rank() == 0)
		printf("%s: ok on %d ranks\n", name, integ_size());
}

#endif
