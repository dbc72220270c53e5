/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory of an endpoint's sessions. Called by erpc_session_open and erpc_session_close.
 *
 * A message touches a few lines of its session, and each of thousands of sessions is on pages of
 * its own: the processor then translates several addresses for each message. So all but the first
 * sessions, which would not fill a huge page, lie in chunks of one. Freed sessions are used again
 * first; the memory returns when the endpoint closes.
 *
 * Tested in test/unit/erpc/test_erpc_many.c.
 */
#include <string.h>

#include "erpc/base/erpc_ep.h"
#include "erpc/base/erpc_session.h"

#define ERPC_CHUNK_FEW  8u
#define ERPC_CHUNK_HUGE ((UTIL_POOL_HUGE - UTIL_POOL_HEAD) / sizeof(struct erpc_session))

static_assert(UTIL_POOL_HEAD + ERPC_CHUNK_HUGE * sizeof(struct erpc_session) >
		      UTIL_POOL_HUGE - sizeof(struct erpc_session),
	      "a chunk fills a huge page");

void erpc_ep_mem_init(struct erpc_ep *ep)
{
	util_pool_init(&ep->sessions_few, sizeof(struct erpc_session), ERPC_CHUNK_FEW,
		       ERPC_SESSIONS_FEW);
	util_pool_init(&ep->sessions_huge, sizeof(struct erpc_session), ERPC_CHUNK_HUGE, 0);
}

void erpc_ep_mem_fini(struct erpc_ep *ep)
{
	util_pool_fini(&ep->sessions_few);
	util_pool_fini(&ep->sessions_huge);
}

struct erpc_session *erpc_ep_alloc_session(struct erpc_ep *ep)
{
	struct erpc_session *s;
	bool huge = false;

	pthread_mutex_lock(&ep->lock);
	s = util_pool_alloc(&ep->sessions_few);
	if (!s) {
		huge = true;
		s = util_pool_alloc(&ep->sessions_huge);
	}
	pthread_mutex_unlock(&ep->lock);
	if (!s)
		return NULL;
	memset(s, 0, sizeof(*s));
	s->huge = huge;
	return s;
}

void erpc_ep_free_session(struct erpc_ep *ep, struct erpc_session *s)
{
	pthread_mutex_lock(&ep->lock);
	util_pool_release(s->huge ? &ep->sessions_huge : &ep->sessions_few, s);
	pthread_mutex_unlock(&ep->lock);
}
