/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Parser of FI_COPYRPC_FAULT. Called by flt_dgram.c.
 *
 * drop=0.01,dup=0.01,reorder=0.05,delay=2ms,corrupt=0.001,seed=7
 *
 * Probabilities, from 0 to 1, apply to each received datagram. delay applies to all; a time is a
 * number with ns, us, ms or s. Keywords may come in any order, each once. Without a seed each
 * endpoint chooses one and logs it.
 */
#ifndef DEV_FAULT_FLT_CONFIG_H
#define DEV_FAULT_FLT_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FLT_MILLION      1000000u
#define FLT_DELAY_MAX_NS 10000000000ull

struct flt_config {
	uint32_t drop; /* probabilities in parts of FLT_MILLION */
	uint32_t dup;
	uint32_t reorder;
	uint32_t corrupt;
	uint64_t delay_ns;
	uint64_t seed;
	bool has_seed;
};

/**
 * Parses `text`. Returns false if it is malformed: `why` (of `len` bytes) then has the wrong part
 * and a remedy.
 */
bool flt_config_read(struct flt_config *c, const char *text, char *why, size_t len);

#endif
