/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Set-up and end of the calling side of a pair of rings (crl_caller.h). */
#include "local/crl_caller.h"

#include <stdlib.h>

int crl_caller_init(struct crl_caller *caller, const struct crl_shape *shape, void *mem)
{
	*caller = (struct crl_caller){ .depth = shape->depth, .free_cnt = shape->depth };
	crl_shape_rings(shape, mem, &caller->requests, &caller->responses);
	caller->free = malloc(shape->depth * sizeof(*caller->free));
	caller->calls = calloc(2 * (size_t)shape->depth, sizeof(*caller->calls));
	if (!caller->free || !caller->calls) {
		crl_caller_fini(caller);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < shape->depth; i++) {
		caller->free[i] = shape->depth - 1 - i;
		caller->calls[i].tag = CRL_CALL_CLOSED;
	}
	caller->quick = crl_ring_long(&caller->requests);
	return 0;
}

void crl_caller_fini(struct crl_caller *caller)
{
	free(caller->free);
	free(caller->calls);
	caller->free = NULL;
	caller->calls = NULL;
}

bool crl_caller_abandon(struct crl_caller *caller, void **context)
{
	for (uint32_t slot = 0; slot < caller->depth; slot++)
		if (caller->calls[slot].tag != CRL_CALL_CLOSED)
			return crl_caller_close(caller, caller->calls[slot].tag, context);
	return false;
}
