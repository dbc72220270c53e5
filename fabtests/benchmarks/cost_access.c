/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Windows of remote memory accesses (cost.h). The server makes no progress unless the transport
 * cannot do without: its calls are then counted, and are part of the cost.
 */
#include "cost.h"

#define COST_VAIN  10000L     /* vain progress calls of the client before the server helps */
#define COST_STUCK 200000000L /* and before an access counts as lost */

static long cost_helped;

long cost_access_helped(void)
{
	return cost_helped;
}

static void cost_access_step(struct cost_pair *pair, long *vain)
{
	cost_progress(pair, COST_CLIENT);
	if (++*vain <= COST_VAIN)
		return;
	cost_progress(pair, COST_SERVER);
	cost_helped++;
	if (*vain > COST_STUCK)
		cost_die("waiting for accesses", "they do not end");
}

void cost_access_window(struct cost_pair *pair, const struct cost_conf *conf)
{
	long accessed = pair->end[COST_CLIENT].accessed + conf->window, vain = 0;
	bool put = conf->shape == COST_PUT;

	for (int slot = 0; slot < conf->window; slot++) {
		while (!cost_accesses->start(pair, put, (size_t)slot * conf->size, conf->size, slot,
					     slot + 1 < conf->window))
			cost_access_step(pair, &vain);
		vain = 0;
	}
	if (cost_accesses->finish)
		cost_accesses->finish(pair);
	while (pair->end[COST_CLIENT].accessed < accessed)
		cost_access_step(pair, &vain);
}
