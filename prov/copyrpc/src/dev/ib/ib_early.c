/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Arrivals before attach (ib_early.h). */
#include "dev/ib/ib_early.h"

#include <stdlib.h>

#include "dev/dev.h"

#define IB_EARLY_SLACK 64u
#define IB_EARLY_CAP   16u

bool ib_early_put(struct ib_early *early, uint64_t ring_len, uint32_t imm)
{
	/* A ring holds at most this many writes: more break the protocol. */
	uint64_t max = ring_len / DEV_IMM_UNIT + IB_EARLY_SLACK;

	if (early->cnt == max)
		return false;
	if (early->cnt == early->cap) {
		uint32_t cap = early->cap ? 2 * early->cap : IB_EARLY_CAP;
		uint32_t *more = realloc(early->imm, cap * sizeof(*more));

		if (!more)
			return false;
		early->imm = more;
		early->cap = cap;
	}
	early->imm[early->cnt++] = imm;
	return true;
}

void ib_early_fini(struct ib_early *early)
{
	free(early->imm);
	*early = (struct ib_early){ 0 };
}
