/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Calling side of one pair of rings: the open calls and their contexts. Used by crl_client.c
 * and, for each ordered pair of members, by crl_flux.c.
 *
 * A call has a slot with a generation. The tag that travels is both; a response whose tag names no
 * open call is skipped. Private memory of the caller; the callee cannot reach it.
 *
 * Functions that run for each call work on one comparison instead of several: a length below
 * `quick` says that the request is short, not beyond its maximum, and that nothing else has to be
 * done; a call whose slot holds the tag of the response is open, in range and of that generation.
 */
#ifndef LOCAL_CRL_CALLER_H
#define LOCAL_CRL_CALLER_H

#include <copyrpc/local.h>
#include <errno.h>

#include "local/crl_ring.h"
#include "local/crl_shape.h"

/*
 * Tag in a slot without a call. It names a slot that is never open, so no response that is looked
 * up finds it.
 */
#define CRL_CALL_CLOSED UINT64_MAX

/** Slot of a call. */
struct crl_call {
	void *context;
	uint64_t tag; /* of the open call: slot, then generation; CRL_CALL_CLOSED if none is */
};

struct crl_caller {
	struct crl_ring requests, responses;
	uint32_t request_pos, response_pos; /* next to write, next to read */
	uint32_t depth, free_cnt;
	uint32_t quick;         /* requests shorter than this are written by crl_caller_quick */
	uint64_t *free;         /* stack of the tags of the next calls */
	struct crl_call *calls; /* depth slots, and as many that are never open */
};

/** Prepares the calling side of the rings at `mem`. Returns 0 or -ENOMEM. */
int crl_caller_init(struct crl_caller *caller, const struct crl_shape *shape, void *mem);
void crl_caller_fini(struct crl_caller *caller);

/** Ends one open call without a response. Returns false if none is open. */
bool crl_caller_abandon(struct crl_caller *caller, void **context);

static inline uint32_t crl_caller_pending(const struct crl_caller *caller)
{
	return caller->depth - caller->free_cnt;
}

static inline bool crl_caller_ready(const struct crl_caller *caller)
{
	return crl_ring_ready(&caller->responses, caller->response_pos);
}

/* Opens a call, if a slot is free. Returns its tag. */
UTIL_INLINE uint64_t crl_caller_open(struct crl_caller *caller, void *context)
{
	uint64_t tag = caller->free[--caller->free_cnt];
	struct crl_call *call = &caller->calls[(uint32_t)tag];

	call->context = context;
	call->tag = tag;
	return tag;
}

/** Writes a request with len < quick. Returns 0, or -EAGAIN if `depth` calls are open. */
UTIL_INLINE int crl_caller_quick(struct crl_caller *caller, const void *data, size_t len,
				 void *context)
{
	if (UTIL_UNLIKELY(!caller->free_cnt))
		return -EAGAIN;
	crl_ring_put_short(&caller->requests, caller->request_pos++,
			   crl_caller_open(caller, context), data, (uint32_t)len);
	return 0;
}

/** Writes a request. Returns 0, -EMSGSIZE, or -EAGAIN if `depth` calls are open. */
static inline int crl_caller_call(struct crl_caller *caller, const void *data, size_t len,
				  void *context)
{
	if (UTIL_UNLIKELY(len > caller->requests.max))
		return -EMSGSIZE;
	if (!caller->free_cnt)
		return -EAGAIN;
	crl_ring_put(&caller->requests, caller->request_pos++, crl_caller_open(caller, context),
		     data, (uint32_t)len);
	return 0;
}

/** Closes the call that `tag` names. Returns false if there is none. */
UTIL_INLINE bool crl_caller_close(struct crl_caller *caller, uint64_t tag, void **context)
{
	struct crl_call *call = &caller->calls[tag & (2 * caller->depth - 1)];

	if (UTIL_UNLIKELY(call->tag != tag))
		return false;
	*context = call->context;
	call->tag = CRL_CALL_CLOSED;
	caller->free[caller->free_cnt++] = tag + (1ull << 32);
	return true;
}

/** Reads up to `max` responses. peer: their field of this name. Returns their number. */
static inline int crl_caller_poll(struct crl_caller *caller, struct crl_response *responses,
				  int max, uint32_t peer)
{
	struct crl_response *r = responses, *end = responses + max;
	uint32_t looks = caller->depth, free_cnt = caller->free_cnt;
	struct crl_item item;

	while (r < end && crl_ring_get(&caller->responses, caller->response_pos, &item)) {
		caller->response_pos++;
		if (UTIL_LIKELY(item.len <= caller->responses.max) &&
		    UTIL_LIKELY(crl_caller_close(caller, item.tag, &r->context))) {
			r->data = item.data;
			r->len = item.len;
			r->status = 0;
			r->peer = peer;
			r++;
		} else if (!--looks) {
			break;
		}
	}
	crl_ring_prefetch(&caller->requests, caller->request_pos, free_cnt, caller->free_cnt);
	return (int)(r - responses);
}

#endif
