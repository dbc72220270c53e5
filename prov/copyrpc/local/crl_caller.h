/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Calling side of one pair of rings: the open calls and their contexts. Used by crl_client.c
 * and, for each ordered pair of members, by crl_flux.c.
 *
 * A call has a slot with a generation. The tag that travels is both; a response whose tag names no
 * open call is skipped. Private memory of the caller; the callee cannot reach it.
 */
#ifndef LOCAL_CRL_CALLER_H
#define LOCAL_CRL_CALLER_H

#include <copyrpc/local.h>
#include <errno.h>

#include "local/crl_ring.h"
#include "local/crl_shape.h"

/** Slot of a call. */
struct crl_call {
	void *context;
	uint32_t generation; /* odd while the call is open */
};

struct crl_caller {
	struct crl_ring requests, responses;
	uint32_t request_pos, response_pos; /* next to write, next to read */
	uint32_t depth, free_cnt;
	uint32_t *free; /* stack of free slots */
	struct crl_call *calls;
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

/** Writes a request. Returns 0, -EMSGSIZE, or -EAGAIN if `depth` calls are open. */
static inline int crl_caller_call(struct crl_caller *caller, const void *data, size_t len,
				  void *context)
{
	struct crl_call *call;
	uint32_t slot;

	if (UTIL_UNLIKELY(len > caller->requests.max))
		return -EMSGSIZE;
	if (!caller->free_cnt)
		return -EAGAIN;
	slot = caller->free[--caller->free_cnt];
	call = &caller->calls[slot];
	call->context = context;
	call->generation++;
	crl_ring_put(&caller->requests, caller->request_pos++,
		     (uint64_t)call->generation << 32 | slot, data, (uint32_t)len);
	return 0;
}

/** Closes the call that `tag` names. Returns false if there is none. */
static inline bool crl_caller_close(struct crl_caller *caller, uint64_t tag, void **context)
{
	uint32_t slot = (uint32_t)tag;
	struct crl_call *call = &caller->calls[slot & (caller->depth - 1)];

	if (slot >= caller->depth || !(call->generation & 1) ||
	    call->generation != (uint32_t)(tag >> 32))
		return false;
	*context = call->context;
	call->generation++;
	caller->free[caller->free_cnt++] = slot;
	return true;
}

/** Reads up to `max` responses. peer: their field of this name. Returns their number. */
static inline int crl_caller_poll(struct crl_caller *caller, struct crl_response *responses,
				  int max, uint32_t peer)
{
	struct crl_item item;
	int cnt = 0;

	for (uint32_t looks = caller->depth; looks && cnt < max; looks--) {
		struct crl_response *r = &responses[cnt];

		if (!crl_ring_get(&caller->responses, caller->response_pos, &item))
			break;
		caller->response_pos++;
		if (UTIL_UNLIKELY(item.len > caller->responses.max) ||
		    UTIL_UNLIKELY(!crl_caller_close(caller, item.tag, &r->context)))
			continue;
		r->data = item.data;
		r->len = item.len;
		r->status = 0;
		r->peer = peer;
		cnt++;
	}
	return cnt;
}

#endif
