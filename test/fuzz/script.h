/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Input of a fuzzer, read as a script that selects actions and their numbers. Reads beyond the end
 * return zeroes.
 */
#ifndef FUZZ_SCRIPT_H
#define FUZZ_SCRIPT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "support/check.h"

struct script {
	const uint8_t *at;
	const uint8_t *end;
};

/** Returns the next bytes, up to eight, as a number. */
static inline uint64_t script_take(struct script *script, unsigned bytes)
{
	uint64_t value = 0;
	size_t left = (size_t)(script->end - script->at);

	bytes = bytes < left ? bytes : (unsigned)left;
	memcpy(&value, script->at, bytes);
	script->at += bytes;
	return value;
}

/** Copies the next bytes unchanged. */
static inline void script_bytes(struct script *script, uint8_t *to, size_t len)
{
	size_t left = (size_t)(script->end - script->at);

	memset(to, 0, len);
	len = len < left ? len : left;
	memcpy(to, script->at, len);
	script->at += len;
}

static inline bool script_is_over(const struct script *script)
{
	return script->at == script->end;
}

#endif
