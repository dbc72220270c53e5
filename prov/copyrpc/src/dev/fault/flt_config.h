/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How bad shall the network be? FI_COPYRPC_FAULT, read.
 *
 *	drop=0.01,dup=0.01,reorder=0.05,delay=2ms,corrupt=0.001,seed=7
 *
 * Chances are between 0 and 1, for each datagram that comes. delay is for all of them; a time is a
 * number with ns, us, ms or s. Words may come in any order, each once. Without a seed each endpoint
 * takes another one, and says in the log which.
 *
 * Shown by test/unit/dev/fault/test_flt_config.c.
 */
#ifndef FLT_FLT_CONFIG_H
#define FLT_FLT_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FLT_MILLION      1000000u
#define FLT_DELAY_MAX_NS 10000000000ull

struct flt_config {
	uint32_t drop; /* chances in parts of FLT_MILLION */
	uint32_t dup;
	uint32_t reorder;
	uint32_t corrupt;
	uint64_t delay_ns;
	uint64_t seed;
	bool has_seed;
};

/**
 * False if `text` is not of that form: `why` (of `len` bytes) then says which part is wrong and what to
 * write there.
 */
bool flt_config_read(struct flt_config *c, const char *text, char *why, size_t len);

#endif
