/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Serving side of one pair of rings: requests that were taken and not yet replied to. Used by
 * crl_server.h for each client and by crl_flux.c for each ordered pair of members.
 *
 * A request is copied when it is taken, so that a caller cannot change it later, and its entry is
 * free at once. It has a slot with a generation; both are in its handle, so that a
 * request is replied to once. An honest caller never has more requests open than there are slots.
 */
#ifndef LOCAL_CRL_CALLEE_H
#define LOCAL_CRL_CALLEE_H

#include <copyrpc/local.h>
#include <errno.h>

#include "local/crl_ring.h"
#include "local/crl_shape.h"

/** Slot of a request. */
struct crl_taken {
	uint64_t tag;        /* of the caller */
	uint32_t generation; /* odd while the request is open */
};

struct crl_callee {
	struct crl_ring requests, responses;
	uint32_t request_pos, response_pos; /* next to read, next to write */
	uint32_t owner;                     /* 16 bits of every handle */
	uint32_t depth, free_cnt;
	uint32_t stride; /* bytes of a copy */
	uint32_t *free;  /* stack of free slots */
	struct crl_taken *taken;
	unsigned char *copies;
};

/** Prepares the serving side of the rings at `mem`. Returns 0 or -ENOMEM. */
int crl_callee_init(struct crl_callee *callee, const struct crl_shape *shape, void *mem,
		    uint32_t owner);
void crl_callee_fini(struct crl_callee *callee);

/** Returns the `owner` in a handle. */
static inline uint32_t crl_handle_owner(uint64_t handle)
{
	return (uint32_t)(handle >> 48);
}

static inline uint32_t crl_callee_open(const struct crl_callee *callee)
{
	return callee->depth - callee->free_cnt;
}

static inline bool crl_callee_ready(const struct crl_callee *callee)
{
	return callee->free_cnt && crl_ring_ready(&callee->requests, callee->request_pos);
}

static inline void crl_callee_keep(struct crl_callee *callee, const struct crl_item *item,
				   struct crl_request *request)
{
	uint32_t slot = callee->free[--callee->free_cnt];
	struct crl_taken *taken = &callee->taken[slot];
	unsigned char *copy = callee->copies + (size_t)slot * callee->stride;

	util_copy(copy, item->data, item->len);
	taken->tag = item->tag;
	taken->generation++;
	request->data = copy;
	request->len = item->len;
	request->handle = (uint64_t)callee->owner << 48 | (uint64_t)slot << 32 | taken->generation;
	request->client = callee->owner;
	request->reserved = 0;
}

/** Takes up to `max` requests. Returns their number, or -EPROTO if an entry is not valid. */
static inline int crl_callee_take(struct crl_callee *callee, struct crl_request *requests, int max)
{
	struct crl_item item;
	int cnt = 0;

	while (cnt < max && callee->free_cnt &&
	       crl_ring_get(&callee->requests, callee->request_pos, &item)) {
		if (UTIL_UNLIKELY(item.len > callee->requests.max))
			return cnt ? cnt : -EPROTO;
		callee->request_pos++;
		crl_callee_keep(callee, &item, &requests[cnt++]);
	}
	return cnt;
}

/** Closes the request under `handle`. Returns false if none is open. */
static inline bool crl_callee_close(struct crl_callee *callee, uint64_t handle, uint64_t *tag)
{
	uint32_t slot = (uint32_t)(handle >> 32) & 0xffff;
	struct crl_taken *taken = &callee->taken[slot & (callee->depth - 1)];

	if (slot >= callee->depth || !(taken->generation & 1) ||
	    taken->generation != (uint32_t)handle)
		return false;
	*tag = taken->tag;
	taken->generation++;
	callee->free[callee->free_cnt++] = slot;
	return true;
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
