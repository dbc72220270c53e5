/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Names of the counters and sums of counter rows. */
#include "model/fabric/mdl_count.h"

#include <stddef.h>

static const char *const count_names[MDL_CNT_MAX] = {
#define MDL_COUNT_NAME(id, name) [MDL_CNT_##id] = name,
	MDL_COUNTERS(MDL_COUNT_NAME)
#undef MDL_COUNT_NAME
};

const char *mdl_count_name(enum mdl_count_id id)
{
	return count_names[id];
}

void mdl_count_sum(struct mdl_count *row, const struct mdl_count *more)
{
	for (int id = 0; id < MDL_CNT_MAX; id++)
		mdl_count_add(row, id, mdl_count_get(more, id));
}
