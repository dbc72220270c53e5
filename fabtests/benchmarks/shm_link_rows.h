/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The table of shm_link_bench: what is run, and what came out?
 *
 * A section adds its rows and runs them all, pass by pass: rows alternate, so that a change of the machine's mood
 * hits them all. A value is the median of a pass's blocks.
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

/** A row of a table: what to run, and what came out, a value per pass. */
struct row {
	char name[80];
	pair_job_fn job;
	const void *arg;
	struct pair_conf conf;
	size_t len; /* bytes of a message, for GB/s; 0: none */
	double *ns;
};

/** Another row: name, arg, len and the rest of conf are the caller's to set. */
struct row *rows_add(pair_job_fn job, uint32_t cnt, uint64_t ring, const struct shm_tune *tune);
/** Runs and prints the rows of a section, which are forgotten. */
void rows_run(const char *section);
/** Sorts v. */
double rows_median(double *v, uint32_t n);

/* shm_link_copy.c */
void bench_copy(void);

#endif
