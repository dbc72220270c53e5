/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Serving side of one pair of rings: requests that were taken and not yet replied to. Used by
 * crl_server.h for each client and by crl_flux.c for each ordered pair of members.
 *
 * A request is copied when it is taken, so that a caller cannot change it later, and its entry is
 * free at once. The copy is in a slot with a generation; both are in the handle, so that a request
 * is replied to once. An honest caller never has more requests open than there are slots.
 *
 * A handle is the slot (16 bits), the owner (16 bits) and the generation (32 bits), from the lowest
 * bit on. The slot has the handle of its open request, so one comparison shows that a handle is in
 * range, open and of that generation.
 */
#ifndef LOCAL_CRL_CALLEE_H
#define LOCAL_CRL_CALLEE_H

#include <copyrpc/local.h>
#include <errno.h>

#include "local/crl_ring.h"
#include "local/crl_shape.h"

#define CRL_OWNERS_MAX  0xffffu
#define CRL_HANDLE_NONE UINT64_MAX /* names an owner above all others */

/** Slot of a request, in a cache line with the bytes of a short one. */
struct crl_taken {
	uint64_t handle; /* of the open request, or CRL_HANDLE_NONE */
	uint64_t tag;    /* of the caller */
	unsigned char data[];
};

struct crl_callee {
	struct crl_ring requests, responses;
	uint32_t request_pos, response_pos; /* next to read, next to write */
	uint32_t owner;                     /* below CRL_OWNERS_MAX; part of every handle */
	uint32_t depth, free_cnt;
	uint32_t quick;       /* responses shorter than this are written by crl_callee_quick */
	uint32_t brief;       /* requests of at most so many bytes share the line of their word */
	uint64_t *free;       /* stack of the handles of the next requests */
	unsigned char *slots; /* depth slots, as far apart as the entries of `requests` */
};

/**
 * Prepares the serving side of the rings at `mem`. generation: of the first handles. Returns 0 or
 * -ENOMEM.
 */
int crl_callee_init(struct crl_callee *callee, const struct crl_shape *shape, void *mem,
		    uint32_t owner, uint32_t generation);
void crl_callee_fini(struct crl_callee *callee);

/** Returns a generation that no handle has had so far, at least 1. No request is open. */
uint32_t crl_callee_generation(const struct crl_callee *callee);

/** Returns the `owner` in a handle. */
static inline uint32_t crl_handle_owner(uint64_t handle)
{
	return (uint32_t)handle >> 16;
}

static inline uint32_t crl_callee_open(const struct crl_callee *callee)
{
	return callee->depth - callee->free_cnt;
}

static inline bool crl_callee_ready(const struct crl_callee *callee)
{
	return callee->free_cnt && crl_ring_ready(&callee->requests, callee->request_pos);
}

/* Returns the slot of a handle; of any number some slot. */
static inline struct crl_taken *crl_callee_slot(const struct crl_callee *callee, uint64_t handle)
{
	return (struct crl_taken *)(callee->slots + (size_t)(handle & callee->requests.mask) *
							    callee->requests.stride);
}

/* Opens a request, if a slot is free. Returns its slot, whose bytes the caller copies. */
UTIL_INLINE struct crl_taken *crl_callee_keep(struct crl_callee *callee,
					      const struct crl_item *item,
					      struct crl_request *request)
{
	uint64_t handle = callee->free[--callee->free_cnt];
	struct crl_taken *taken = crl_callee_slot(callee, handle);

	callee->request_pos++;
	taken->handle = handle;
	taken->tag = item->tag;
	request->data = taken->data;
	request->len = item->len;
	request->handle = handle;
	request->client = callee->owner;
	request->reserved = 0;
	return taken;
}

/* Prefetches the responses that follow, but the next one. open: requests before the take. */
UTIL_INLINE void crl_callee_prepare(const struct crl_callee *callee, uint32_t open)
{
	crl_ring_prefetch(&callee->responses, callee->response_pos, open, crl_callee_open(callee));
}

/**
 * Continues a take at a request of any length that is there, with those behind it that are there by
 * now. cnt: requests that were taken so far. open: requests before the take. Returns as
 * crl_callee_take.
 */
int crl_callee_take_long(struct crl_callee *callee, struct crl_request *requests, int cnt, int max,
			 uint32_t open);

/** Takes up to `max` requests. Returns their number, or -EPROTO if an entry is not valid. */
UTIL_INLINE int crl_callee_take(struct crl_callee *callee, struct crl_request *requests, int max)
{
	struct crl_request *r = requests, *end = requests + max;
	uint32_t open = crl_callee_open(callee);
	struct crl_item item;

	while (r < end && callee->free_cnt &&
	       crl_ring_get(&callee->requests, callee->request_pos, &item)) {
		if (UTIL_UNLIKELY(item.len > callee->brief))
			return crl_callee_take_long(callee, requests, (int)(r - requests), max,
						    open);
		/* Entry and slot have a whole line, so a short string is copied with it. */
		memcpy(crl_callee_keep(callee, &item, r++)->data, item.data, CRL_RING_SHORT);
	}
	crl_callee_prepare(callee, open);
	return (int)(r - requests);
}

/** Closes the request under `handle`. Returns false if none is open. */
UTIL_INLINE bool crl_callee_close(struct crl_callee *callee, uint64_t handle, uint64_t *tag)
{
	struct crl_taken *taken = crl_callee_slot(callee, handle);

	if (UTIL_UNLIKELY(taken->handle != handle))
		return false;
	*tag = taken->tag;
	taken->handle = CRL_HANDLE_NONE;
	callee->free[callee->free_cnt++] = handle + (1ull << 32);
	return true;
}

/** Replies with len < quick. Returns 0, or -EINVAL if no request is open under `handle`. */
UTIL_INLINE int crl_callee_quick(struct crl_callee *callee, uint64_t handle, const void *data,
				 size_t len)
{
	uint64_t tag;

	if (UTIL_UNLIKELY(!crl_callee_close(callee, handle, &tag)))
		return -EINVAL;
	crl_ring_put_short(&callee->responses, callee->response_pos++, tag, data, (uint32_t)len);
	return 0;
}

/** Replies. Returns 0, -EMSGSIZE, or -EINVAL if no request is open under `handle`. */
static inline int crl_callee_reply(struct crl_callee *callee, uint64_t handle, const void *data,
				   size_t len)
{
	uint64_t tag;

	if (UTIL_UNLIKELY(len > callee->responses.max))
		return -EMSGSIZE;
	if (UTIL_UNLIKELY(!crl_callee_close(callee, handle, &tag)))
		return -EINVAL;
	crl_ring_put(&callee->responses, callee->response_pos++, tag, data, (uint32_t)len);
	return 0;
}

#endif
