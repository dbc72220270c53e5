/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fixture of the MPI test programs.
 *
 * A check that ends the whole job with a line that names fault and place, and bytes that both ends
 * can compute: the content of a message follows from a seed, so the receiver needs no second
 * message to check it.
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

/** splitmix64: returns the next number of the sequence `state`. */
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

/** Returns the offset of the first byte that differs from the pattern of `seed`, or `len`. */
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

/** Reports success once, from rank 0. */
static inline void integ_done(const char *name)
{
	MPI_Barrier(MPI_COMM_WORLD);
	if (integ_rank() == 0)
		printf("%s: ok on %d ranks\n", name, integ_size());
}

#endif
