/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Counter of completions and of errors, behind fi_cntr. The domain's lock covers it. */
#ifndef CORE_CORE_CNTR_H
#define CORE_CORE_CNTR_H

#include <stdint.h>

struct core_cntr {
	uint64_t value;
	uint64_t errors;
	void (*notify)(struct core_cntr *cntr); /* set while a thread waits; or NULL */
};

static inline void core_cntr_add(struct core_cntr *cntr, uint64_t n)
{
	cntr->value += n;
	if (cntr->notify)
		cntr->notify(cntr);
}

/**
 * Counters of an endpoint besides those of messages. READ and WRITE count accesses of the endpoint
 * (a fetching atomic is a read). REMOTE_READ and REMOTE_WRITE count accesses of peers to its
 * memory, in the same way; counters of regions differ (core_access_notify).
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

/** Counts the end of one operation, if there is a counter. */
static inline void core_cntr_count(struct core_cntr *cntr, int err)
{
	if (cntr && err)
		core_cntr_add_err(cntr, 1);
	else if (cntr)
		core_cntr_add(cntr, 1);
}

#endif
