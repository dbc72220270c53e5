/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Table of shm_link_bench: jobs and their results.
 *
 * A section adds its rows and runs them all, pass by pass: rows alternate, so that a change of the
 * machine's state affects all of them. A value is the median of a pass's blocks.
 */
#ifndef SHM_LINK_ROWS_H
#define SHM_LINK_ROWS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "shm_link_pair.h"

#define ROWS_BLOCKS 21

extern struct rows_opt {
	int cpu[2]; /* of the two processes */
	const char *only;
	FILE *json;
	uint32_t round;  /* messages in a block */
	uint32_t passes; /* over all rows of a section */
} rows_opt;

/** Row of a table: a job and its results, a value per pass. */
struct row {
	char name[80];
	pair_job_fn job;
	const void *arg;
	struct pair_conf conf;
	size_t len; /* bytes of a message, for GB/s; 0: none */
	double *ns;
};

/** Adds a row. The caller sets name, arg, len and the rest of conf. */
struct row *rows_add(pair_job_fn job, uint32_t cnt, uint64_t ring, const struct shm_tune *tune);
/** Runs and prints the rows of a section, and removes them. */
void rows_run(const char *section);
/** Sorts v and returns its median. */
double rows_median(double *v, uint32_t n);

/* shm_link_copy.c */
void bench_copy(void);
/* shm_link_attacked.c */
void bench_attacked(void);

#endif
