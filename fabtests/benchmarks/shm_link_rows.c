/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Rows, passes and printed results: see shm_link_rows.h. */
#include "shm_link_rows.h"

struct rows_opt rows_opt = { .cpu = { 0, 1 }, .round = 2000, .passes = 9 };

static int cmp_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double rows_median(double *v, uint32_t n)
{
	qsort(v, n, sizeof(*v), cmp_double);
	return v[n / 2];
}

static struct row rows[256];
static uint32_t row_cnt;

struct row *rows_add(pair_job_fn job, uint32_t cnt, uint64_t ring, const struct shm_tune *tune)
{
	struct row *r = &rows[row_cnt++];

	CHECK(row_cnt <= sizeof(rows) / sizeof(rows[0]));
	memset(r, 0, sizeof(*r));
	r->job = job;
	r->conf = (struct pair_conf){ .cpu = { rows_opt.cpu[0], rows_opt.cpu[1] },
				      .cnt = cnt,
				      .ring = ring,
				      .tune = tune,
				      .ahead = -1 };
	return r;
}

static void row_show(const char *section, struct row *r)
{
	double med = rows_median(r->ns, rows_opt.passes), min = r->ns[0];
	char rate[32] = "";

	if (r->len)
		snprintf(rate, sizeof(rate), "%8.2f GB/s", (double)r->len / min);
	printf("  %-48s %10.1f %10.1f ns %s\n", r->name, min, med, rate);
	if (rows_opt.json)
		fprintf(rows_opt.json,
			"{\"section\": \"%s\", \"name\": \"%s\", \"unit\": \"ns\", "
			"\"min\": %.2f, \"median\": %.2f}\n",
			section, r->name, min, med);
}

void rows_run(const char *section)
{
	uint32_t pass, i;

	for (i = 0; i < row_cnt; i++)
		CHECK((rows[i].ns = calloc(rows_opt.passes, sizeof(double))));
	for (pass = 0; pass < rows_opt.passes; pass++)
		for (i = 0; i < row_cnt; i++)
			rows[i].ns[pass] = pair_run(&rows[i].conf, rows[i].job, rows[i].arg);
	printf("%s%*s%10s %10s\n", section, (int)(50 - strlen(section)), "", "best pass", "median");
	for (i = 0; i < row_cnt; i++) {
		row_show(section, &rows[i]);
		free(rows[i].ns);
	}
	row_cnt = 0;
}
