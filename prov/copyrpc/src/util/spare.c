/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Blocks that are kept: see spare.h. */
#include "util/spare.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MIN_SHIFT 8 /* of UTIL_SPARE_MIN */

static bool spare_keeps(size_t len)
{
	return len > UTIL_SPARE_MIN && len <= UTIL_SPARE_MAX;
}

/** The class whose blocks are the shortest that hold `len` bytes, which it keeps; *size: how long those are. */
static unsigned spare_class(size_t len, size_t *size)
{
	size_t last = len - 1; /* 2^top <= last < 2^(top + 1), in four quarters */
	unsigned top = 63u - (unsigned)__builtin_clzll(last);
	unsigned quarter = (unsigned)(last >> (top - 2)) & 3;

	*size = (size_t)(5 + quarter) << (top - 2);
	return (top - MIN_SHIFT) * 4 + quarter;
}

void util_spare_init(struct util_spare *spare, size_t kept_max)
{
	memset(spare, 0, sizeof(*spare));
	spare->kept_max = kept_max;
}

void util_spare_fini(struct util_spare *spare)
{
	for (unsigned c = 0; c < UTIL_SPARE_CLASSES; c++) {
		struct util_spare_block *block = spare->free[c], *next;

		for (; block; block = next) {
			next = block->next;
			free(block);
		}
	}
	util_spare_init(spare, spare->kept_max);
}

void *util_spare_alloc(struct util_spare *spare, size_t len)
{
	struct util_spare_block *block;
	size_t size;
	unsigned c;

	if (!spare_keeps(len))
		return malloc(len);
	c = spare_class(len, &size);
	block = spare->free[c];
	if (!block)
		return malloc(size);
	spare->free[c] = block->next;
	spare->kept -= size;
	return block;
}

void util_spare_free(struct util_spare *spare, void *block, size_t len)
{
	struct util_spare_block *kept = block;
	size_t size;
	unsigned c;

	if (!block)
		return;
	if (!spare_keeps(len)) {
		free(block);
		return;
	}
	c = spare_class(len, &size);
	if (size > spare->kept_max - spare->kept) {
		free(block);
		return;
	}
	kept->next = spare->free[c];
	spare->free[c] = kept;
	spare->kept += size;
}
