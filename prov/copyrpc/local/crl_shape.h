/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sizes of a channel and the place of its two rings in memory. Used by both sides of a pair, which
 * must compute the same.
 *
 * The ring of responses has twice the entries of the ring of requests: responses stay in it until
 * the caller's next poll, and meanwhile as many calls may be in flight again.
 */
#ifndef LOCAL_CRL_SHAPE_H
#define LOCAL_CRL_SHAPE_H

#include <copyrpc/local.h>
#include <stddef.h>
#include <stdint.h>

#include "local/crl_ring.h"

/** Sizes of one pair of rings. */
struct crl_shape {
	uint32_t depth; /* calls in flight, a power of two */
	uint32_t request_max;
	uint32_t response_max;
};

static inline size_t crl_shape_bytes(const struct crl_shape *shape)
{
	return crl_ring_size(shape->depth, shape->request_max) +
	       crl_ring_size(2 * shape->depth, shape->response_max);
}

static inline void crl_shape_rings(const struct crl_shape *shape, void *mem,
				   struct crl_ring *requests, struct crl_ring *responses)
{
	unsigned char *base = mem;

	crl_ring_init(requests, base, shape->depth, shape->request_max);
	crl_ring_init(responses, base + crl_ring_size(shape->depth, shape->request_max),
		      2 * shape->depth, shape->response_max);
}

/** Stores `options` with defaults in `out`. Returns 0 or -EINVAL. */
int crl_options_check(struct crl_options *out, const struct crl_options *options, uint32_t depth);

static inline struct crl_shape crl_options_shape(const struct crl_options *options)
{
	return (struct crl_shape){
		.depth = options->depth,
		.request_max = options->request_max,
		.response_max = options->response_max,
	};
}

#endif
