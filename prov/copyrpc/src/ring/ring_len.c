/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Size of a new ring: see ring_len.h. */
#include "ring/ring_len.h"

#include "util/bits.h"

/* A new connection takes at most this fraction of the remaining budget. */
#define RING_LEN_SHARES 64u

uint64_t ring_len_next(size_t left, bool registers, size_t fixed)
{
	uint64_t len;

	left /= registers ? 2 : 1;
	len = left / RING_LEN_SHARES;
	if (fixed)
		len = util_pow2_floor(fixed);
	else if (len < RING_LEN_LEAST)
		len = RING_LEN_LEAST;
	else
		len = len < RING_LEN_DEFAULT ? util_pow2_floor(len) : RING_LEN_DEFAULT;
	return len <= left ? len : 0;
}
