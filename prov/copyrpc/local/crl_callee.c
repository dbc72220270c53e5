/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Set-up and end of the serving side of a pair of rings (crl_callee.h). */
#include "local/crl_callee.h"

#include <stdlib.h>

int crl_callee_init(struct crl_callee *callee, const struct crl_shape *shape, void *mem,
		    uint32_t owner)
{
	*callee = (struct crl_callee){
		.owner = owner,
		.depth = shape->depth,
		.free_cnt = shape->depth,
		.stride = (uint32_t)util_align_up(shape->request_max, UTIL_CACHE_LINE),
	};
	crl_shape_rings(shape, mem, &callee->requests, &callee->responses);
	callee->free = malloc(shape->depth * sizeof(*callee->free));
	callee->taken = calloc(shape->depth, sizeof(*callee->taken));
	callee->copies = aligned_alloc(UTIL_CACHE_LINE, (size_t)shape->depth * callee->stride);
	if (!callee->free || !callee->taken || !callee->copies) {
		crl_callee_fini(callee);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < shape->depth; i++)
		callee->free[i] = shape->depth - 1 - i;
	return 0;
}

void crl_callee_fini(struct crl_callee *callee)
{
	free(callee->free);
	free(callee->taken);
	free(callee->copies);
	callee->free = NULL;
	callee->taken = NULL;
	callee->copies = NULL;
}
