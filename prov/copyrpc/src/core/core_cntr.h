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

/**
 * What a counter of an endpoint counts besides messages: the first two what the endpoint did (an
 * atomic that fetches is a read), the others what peers did to the memory behind it.
 */
enum core_cntr_rma {
	CORE_CNTR_READ,
	CORE_CNTR_WRITE,
	CORE_CNTR_REMOTE_READ,
	CORE_CNTR_REMOTE_WRITE,
	CORE_CNTR_RMA_CNT
};

static inline void core_cntr_add_err(struct core_cntr *cntr, uint64_t n)
{
	cntr->errors += n;
	if (cntr->notify)
		cntr->notify(cntr);
}

/** One operation has ended, well or badly, and is counted if somebody wants that (NULL: nobody). */
static inline void core_cntr_count(struct core_cntr *cntr, int err)
{
	if (cntr && err)
		core_cntr_add_err(cntr, 1);
	else if (cntr)
		core_cntr_add(cntr, 1);
}

#endif
