/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Table of the FI_COPYRPC_* parameters: name, type, default, bounds and help text of each. Used by
 * param.c; test_param.c has the tests.
 */
#ifndef UTIL_PARAM_TABLE_H
#define UTIL_PARAM_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum util_param_kind {
	UTIL_PARAM_SIZE,   /* size_t: a number with an optional K, M, G or T */
	UTIL_PARAM_INT,    /* int: a number */
	UTIL_PARAM_BOOL,   /* int: 0, 1, or libfabric's words for them */
	UTIL_PARAM_STR,    /* const char *: any text; empty: not set */
	UTIL_PARAM_SECRET, /* const char *: any text, never logged; empty: not set */
};

struct util_param {
	const char *name; /* upper case, without the prefix */
	enum util_param_kind kind;
	size_t offset; /* offset of the value in struct util_params */
	uint64_t def;
	uint64_t min; /* 0 is also allowed if zero_ok */
	uint64_t max;
	bool zero_ok;
	const char *str_def;
	const char *unit;
	const char *help;
};

extern const struct util_param util_param_table[];
extern const size_t util_param_cnt;

#endif
