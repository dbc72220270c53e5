/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Set-up and end of the serving side of a pair of rings (crl_callee.h). */
#include "local/crl_callee.h"

#include <stdlib.h>

_Static_assert(sizeof(struct crl_taken) == sizeof(struct crl_entry), "both have CRL_RING_SHORT");
_Static_assert(CRL_DEPTH_MAX < 1u << 16, "a slot fits into its part of a handle");
_Static_assert(CRL_CLIENTS_MAX <= CRL_OWNERS_MAX, "no client has the owner of CRL_HANDLE_NONE");

static void crl_callee_fill(struct crl_callee *callee, uint32_t generation)
{
	for (uint32_t i = 0; i < callee->depth; i++) {
		callee->free[callee->depth - 1 - i] =
			(uint64_t)generation << 32 | callee->owner << 16 | i;
		crl_callee_slot(callee, i)->handle = CRL_HANDLE_NONE;
	}
}

int crl_callee_init(struct crl_callee *callee, const struct crl_shape *shape, void *mem,
		    uint32_t owner, uint32_t generation)
{
	*callee = (struct crl_callee){
		.owner = owner,
		.depth = shape->depth,
		.free_cnt = shape->depth,
	};
	crl_shape_rings(shape, mem, &callee->requests, &callee->responses);
	callee->quick = crl_ring_long(&callee->responses);
	callee->brief = shape->request_max < CRL_RING_SHORT ? shape->request_max : CRL_RING_SHORT;
	callee->free = malloc(shape->depth * sizeof(*callee->free));
	callee->slots =
		aligned_alloc(UTIL_CACHE_LINE, crl_ring_size(shape->depth, shape->request_max));
	if (!callee->free || !callee->slots) {
		crl_callee_fini(callee);
		return -ENOMEM;
	}
	crl_callee_fill(callee, generation);
	return 0;
}

void crl_callee_fini(struct crl_callee *callee)
{
	free(callee->free);
	free(callee->slots);
	callee->free = NULL;
	callee->slots = NULL;
}

uint32_t crl_callee_generation(const struct crl_callee *callee)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < callee->depth; i++)
		if (most < callee->free[i] >> 32)
			most = (uint32_t)(callee->free[i] >> 32);
	return most;
}

int crl_callee_take_long(struct crl_callee *callee, struct crl_request *requests, int cnt, int max,
			 uint32_t open)
{
	uint32_t next = callee->request_pos + 1;
	int end = cnt + 1 + crl_ring_fetch(&callee->requests, next, max - cnt - 1);
	struct crl_item item;

	while (cnt < end && callee->free_cnt &&
	       crl_ring_get(&callee->requests, callee->request_pos, &item)) {
		if (UTIL_UNLIKELY(item.len > callee->requests.max))
			return cnt ? cnt : -EPROTO;
		memcpy(crl_callee_keep(callee, &item, &requests[cnt])->data, item.data, item.len);
		cnt++;
	}
	crl_callee_prepare(callee, open);
	return cnt;
}
