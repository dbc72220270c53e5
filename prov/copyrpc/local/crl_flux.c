/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Flux: n x n pairs of rings between the threads of a process (copyrpc/flux.h). A member has a link
 * to every member: the calling side of the pair towards it, and the serving side of the pair from
 * it. Both sides of a pair are in one process, and trust each other no more than elsewhere.
 */
#include <copyrpc/flux.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "local/crl_callee.h"
#include "local/crl_caller.h"
#include "local/crl_mem.h"
#include "local/crl_sleep.h"
#include "local/crl_wait.h"

#define CRL_FLUX_DEPTH 256u

/* Link of a member to another one. */
struct crl_link {
	_Alignas(UTIL_CACHE_LINE) struct crl_caller caller;
	struct crl_callee callee;
	struct crl_waker waker; /* of the other member */
	bool deferred;          /* calls with CRL_MORE are not announced yet */
};

struct crl_member {
	_Alignas(UTIL_CACHE_LINE) _Atomic uint32_t sleep_word;
	_Alignas(UTIL_CACHE_LINE) struct crl_flux *flux;
	struct crl_link *links;
	struct crl_sleep sleep;
	uint32_t take_start, poll_start; /* link at which the next look begins */
	uint32_t index;
	uint32_t deferred_cnt;
	int event;
};

struct crl_flux {
	struct crl_member *members;
	uint32_t cnt;
	struct crl_options options;
	struct crl_shape shape;
	struct crl_mem mem; /* the rings of pair (i, j) are the (i * cnt + j)th */
};

static void *crl_flux_pair(const struct crl_flux *flux, uint32_t from, uint32_t to)
{
	return (char *)flux->mem.base +
	       ((size_t)from * flux->cnt + to) * crl_shape_bytes(&flux->shape);
}

static int crl_flux_link(struct crl_flux *flux, uint32_t from, uint32_t to, bool fence)
{
	struct crl_link *link = &flux->members[from].links[to];
	int ret;

	link->waker.word = &flux->members[to].sleep_word;
	link->waker.fence = fence;
	ret = crl_caller_init(&link->caller, &flux->shape, crl_flux_pair(flux, from, to));
	ret = ret ? ret
		  : crl_callee_init(&link->callee, &flux->shape, crl_flux_pair(flux, to, from), to,
				    1);
	if (fence)
		link->caller.quick = link->callee.quick = 0;
	return ret;
}

static int crl_flux_join(struct crl_flux *flux, uint32_t index)
{
	struct crl_member *member = &flux->members[index];
	bool fence = !crl_sleep_register();
	int ret = 0;

	member->flux = flux;
	member->index = index;
	crl_sleep_init(&member->sleep, &member->sleep_word);
	member->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (member->event < 0)
		return -errno;
	member->links = aligned_alloc(UTIL_CACHE_LINE, flux->cnt * sizeof(*member->links));
	if (!member->links)
		return -ENOMEM;
	memset(member->links, 0, flux->cnt * sizeof(*member->links));
	for (uint32_t i = 0; !ret && i < flux->cnt; i++)
		ret = crl_flux_link(flux, index, i, fence);
	return ret;
}

static int crl_flux_members(struct crl_flux *flux, uint32_t cnt)
{
	int ret;

	flux->members = aligned_alloc(UTIL_CACHE_LINE, cnt * sizeof(*flux->members));
	if (!flux->members)
		return -ENOMEM;
	memset(flux->members, 0, cnt * sizeof(*flux->members));
	flux->cnt = cnt;
	for (uint32_t i = 0; i < cnt; i++)
		flux->members[i].event = -1;
	ret = crl_mem_create(&flux->mem, (size_t)cnt * cnt * crl_shape_bytes(&flux->shape), false);
	if (ret)
		return ret;
	crl_mem_close_fd(&flux->mem);
	for (uint32_t i = 0; !ret && i < cnt; i++)
		ret = crl_flux_join(flux, i);
	return ret;
}

int crl_flux_open(struct crl_flux **out, uint32_t members, const struct crl_options *options)
{
	struct crl_flux *flux;
	int ret;

	if (!members || members > CRL_MEMBERS_MAX)
		return -EINVAL;
	flux = calloc(1, sizeof(*flux));
	if (!flux)
		return -ENOMEM;
	ret = crl_options_check(&flux->options, options, CRL_FLUX_DEPTH);
	flux->shape = crl_options_shape(&flux->options);
	ret = ret ? ret : crl_flux_members(flux, members);
	if (ret) {
		crl_flux_close(flux);
		return ret;
	}
	*out = flux;
	return 0;
}

static void crl_flux_leave(struct crl_flux *flux, struct crl_member *member)
{
	for (uint32_t i = 0; member->links && i < flux->cnt; i++) {
		crl_caller_fini(&member->links[i].caller);
		crl_callee_fini(&member->links[i].callee);
	}
	free(member->links);
	if (member->event >= 0)
		close(member->event);
}

void crl_flux_close(struct crl_flux *flux)
{
	for (uint32_t i = 0; i < flux->cnt; i++)
		crl_flux_leave(flux, &flux->members[i]);
	free(flux->members);
	crl_mem_free(&flux->mem);
	free(flux);
}

struct crl_member *crl_flux_member(struct crl_flux *flux, uint32_t index)
{
	return index < flux->cnt ? &flux->members[index] : NULL;
}

/* Wakes the other member if it sleeps. */
static void crl_member_announce(struct crl_member *member, struct crl_link *link)
{
	static const uint64_t one = 1;
	uint32_t to = (uint32_t)(link - member->links);

	member->deferred_cnt -= link->deferred;
	link->deferred = false;
	if (UTIL_UNLIKELY(crl_sleep_due(&link->waker)))
		(void)!write(member->flux->members[to].event, &one, sizeof(one));
}

void crl_member_flush(struct crl_member *member)
{
	for (uint32_t i = 0; member->deferred_cnt && i < member->flux->cnt; i++)
		if (member->links[i].deferred)
			crl_member_announce(member, &member->links[i]);
}

/* Ends a call to `link`, whose request was written if `ret` is 0. */
__attribute__((noinline)) static int crl_member_called(struct crl_member *member,
						       struct crl_link *link, int ret,
						       unsigned int flags)
{
	if (UTIL_UNLIKELY(ret)) {
		crl_member_flush(member);
	} else if (!(flags & CRL_MORE)) {
		crl_member_announce(member, link);
	} else if (!link->deferred) {
		link->deferred = true;
		member->deferred_cnt++;
	}
	return ret;
}

/* Calls with a request of any length. */
__attribute__((noinline)) static int crl_member_call_any(struct crl_member *member,
							 struct crl_link *link, const void *data,
							 size_t len, void *context,
							 unsigned int flags)
{
	int ret = crl_caller_call(&link->caller, data, len, context);

	return crl_member_called(member, link, ret, flags);
}

/* Returns true if what was written to `link` needs no announcement, now or later. */
static inline bool crl_member_quiet(const struct crl_link *link, unsigned int flags)
{
	return flags & CRL_MORE ? link->deferred : !link->deferred && crl_sleep_quiet(&link->waker);
}

int crl_member_call(struct crl_member *member, uint32_t to, const void *data, size_t len,
		    void *context, unsigned int flags)
{
	struct crl_link *link;
	int ret;

	if (UTIL_UNLIKELY(to >= member->flux->cnt))
		return -EINVAL;
	link = &member->links[to];
	if (UTIL_UNLIKELY(len >= link->caller.quick))
		return crl_member_call_any(member, link, data, len, context, flags);
	ret = crl_caller_quick(&link->caller, data, len, context);
	if (UTIL_LIKELY(!ret && crl_member_quiet(link, flags)))
		return 0;
	return crl_member_called(member, link, ret, flags);
}

uint32_t crl_member_pending(const struct crl_member *member, uint32_t to)
{
	return to < member->flux->cnt ? crl_caller_pending(&member->links[to].caller) : 0;
}

/* Ends an armed sleep. */
static void crl_member_awake(struct crl_member *member)
{
	uint64_t count;

	if (UTIL_LIKELY(!crl_sleep_is_armed(&member->sleep)))
		return;
	crl_sleep_disarm(&member->sleep);
	(void)!read(member->event, &count, sizeof(count));
}

static uint32_t crl_member_next(const struct crl_member *member, uint32_t link)
{
	return link + 1 < member->flux->cnt ? link + 1 : 0;
}

int crl_member_take(struct crl_member *member, struct crl_request *requests, int max)
{
	uint32_t at = member->take_start;
	int got, cnt = 0;

	crl_member_awake(member);
	for (uint32_t looks = member->flux->cnt; looks && cnt < max; looks--) {
		got = crl_callee_take(&member->links[at].callee, requests + cnt, max - cnt);
		cnt += got > 0 ? got : 0;
		at = crl_member_next(member, at);
	}
	member->take_start = at;
	return cnt;
}

/* Replies with any length. */
__attribute__((noinline)) static int crl_member_reply_any(struct crl_member *member,
							  struct crl_link *link, uint64_t handle,
							  const void *data, size_t len)
{
	int ret = crl_callee_reply(&link->callee, handle, data, len);

	if (!ret)
		crl_member_announce(member, link);
	return ret;
}

int crl_member_reply(struct crl_member *member, uint64_t handle, const void *data, size_t len)
{
	uint32_t from = crl_handle_owner(handle);
	struct crl_link *link;
	int ret;

	if (UTIL_UNLIKELY(from >= member->flux->cnt))
		return -EINVAL;
	link = &member->links[from];
	if (UTIL_UNLIKELY(len >= link->callee.quick))
		return crl_member_reply_any(member, link, handle, data, len);
	ret = crl_callee_quick(&link->callee, handle, data, len);
	if (UTIL_LIKELY(ret || crl_sleep_quiet(&link->waker)))
		return ret;
	return crl_member_called(member, link, 0, 0);
}

int crl_member_poll(struct crl_member *member, struct crl_response *responses, int max)
{
	uint32_t at = member->poll_start;
	int cnt = 0;

	crl_member_awake(member);
	if (UTIL_UNLIKELY(member->deferred_cnt))
		crl_member_flush(member);
	for (uint32_t looks = member->flux->cnt; looks && cnt < max; looks--) {
		struct crl_caller *caller = &member->links[at].caller;

		if (crl_caller_ready(caller))
			cnt += crl_caller_poll(caller, responses + cnt, max - cnt, at);
		at = crl_member_next(member, at);
	}
	member->poll_start = at;
	return cnt;
}

static bool crl_member_ready(void *object)
{
	struct crl_member *member = object;

	for (uint32_t i = 0; i < member->flux->cnt; i++)
		if (crl_caller_ready(&member->links[i].caller) ||
		    crl_callee_ready(&member->links[i].callee))
			return true;
	return false;
}

int crl_member_fd(const struct crl_member *member)
{
	return member->event;
}

int crl_member_arm(struct crl_member *member)
{
	crl_member_flush(member);
	crl_sleep_arm(&member->sleep);
	if (!crl_member_ready(member))
		return 0;
	crl_member_awake(member);
	return -EAGAIN;
}

int crl_member_wait(struct crl_member *member, int timeout_ms)
{
	struct crl_wait wait = crl_wait_begin(timeout_ms, member->flux->options.spin_us);
	int ret = 0;

	crl_member_flush(member);
	if (crl_wait_spin(&wait, crl_member_ready, member))
		return 0;
	while (!ret && !crl_member_arm(member)) {
		ret = crl_wait_sleep(&wait, member->event);
		crl_member_awake(member);
	}
	return ret;
}
