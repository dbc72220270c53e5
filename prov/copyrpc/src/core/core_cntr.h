/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* How many have ended, and how many badly? The numbers behind fi_cntr; the domain's lock covers them. */
#ifndef CORE_CNTR_H
#define CORE_CNTR_H

#include <stdint.h>

struct core_cntr {
	uint64_t value;
	uint64_t errors;
	void (*notify)(struct core_cntr *cntr); /* while somebody waits; or NULL */
};

static inline void core_cntr_add(struct core_cntr *cntr, uint64_t n)
{
	cntr->value += n;
	if (cntr->notify)
		cntr->notify(cntr);
}

static inline void core_cntr_add_err(struct core_cntr *cntr, uint64_t n)
{
	cntr->errors += n;
	if (cntr->notify)
		cntr->notify(cntr);
}

#endif
