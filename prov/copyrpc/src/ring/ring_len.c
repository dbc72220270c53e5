/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Size of a new ring: see ring_len.h. */
#include "ring/ring_len.h"

#include "util/bits.h"

/* A new connection takes at most this fraction of the remaining budget. */
#define RING_LEN_SHARES 64u

#define RING_LEN_AMPLE 4u /* The first connections share this fraction of the budget. */
#define RING_LEN_SPARE 4u /* Rings of full size leave this fraction of it. */

/** Returns true if the ring may have full size. */
static bool ring_len_is_full(size_t mem, size_t left, enum eng_size size)
{
	switch (size) {
	case ENG_SIZE_LARGE: return left > mem / RING_LEN_SPARE;
	case ENG_SIZE_SMALL: return false;
	default: return mem - left < mem / RING_LEN_AMPLE;
	}
}

uint64_t ring_len_next(size_t mem, size_t left, bool registers, size_t fixed, enum eng_size size)
{
	size_t rings = registers ? 2 : 1;
	uint64_t most =
		ring_len_is_full(mem, left, size) ? RING_LEN_DEFAULT : RING_LEN_MANY / rings;
	uint64_t len;

	left /= rings;
	len = left / RING_LEN_SHARES;
	if (fixed)
		len = util_pow2_floor(fixed);
	else if (len < RING_LEN_LEAST)
		len = RING_LEN_LEAST;
	else
		len = len < most ? util_pow2_floor(len) : most;
	return len <= left ? len : 0;
}
