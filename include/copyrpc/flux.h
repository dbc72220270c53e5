/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Flux: calls between n threads of a process, each with each. Library: copyrpc-local (pkg-config).
 * Manual page: copyrpc_local(7). Types and conventions are those of copyrpc/local.h.
 *
 *	crl_flux_open(&flux, n, NULL)
 *	thread i: m = crl_flux_member(flux, i)
 *		crl_member_call(m, to, request, ...)
 *		n = crl_member_take(m, requests, 64); crl_member_reply(m, requests[i].handle, ...)
 *		n = crl_member_poll(m, responses, 64)
 *
 * A member is both client and server of every other member (and of itself). Every ordered pair has
 * a ring for requests and one for responses, so members never contend. Replies may be deferred
 * without limit. A member is used by one thread at a time.
 */
#ifndef COPYRPC_FLUX_H
#define COPYRPC_FLUX_H

#include <copyrpc/local.h>

#ifdef __cplusplus
extern "C" {
#endif

struct crl_flux;
struct crl_member;

/** Largest number of members. */
#define CRL_MEMBERS_MAX 256u

/**
 * Opens a flux of `members` members. options: depth, for each ordered pair, request_max,
 * response_max and spin_us; may be NULL.
 *
 * Returns 0, -EINVAL for options beyond their limits, -ENOMEM, or the error of the system.
 */
int crl_flux_open(struct crl_flux **flux, uint32_t members, const struct crl_options *options);

/** Frees the flux and its members. No thread may use them any more. */
void crl_flux_close(struct crl_flux *flux);

/** Returns member `index`, owned by the flux; NULL if there is none. */
struct crl_member *crl_flux_member(struct crl_flux *flux, uint32_t index);

/**
 * Calls member `to`. `data` may be reused on return. flags: 0 or CRL_MORE.
 *
 * Returns 0, -EAGAIN if `depth` calls to that member are in flight, -EMSGSIZE beyond request_max,
 * or -EINVAL if there is no such member. On error nothing is sent.
 */
int crl_member_call(struct crl_member *member, uint32_t to, const void *data, size_t len,
		    void *context, unsigned int flags);

/** Ends a series of calls with CRL_MORE whose last call failed or did not follow. */
void crl_member_flush(struct crl_member *member);

/** Returns the number of calls in flight to member `to`. */
uint32_t crl_member_pending(const struct crl_member *member, uint32_t to);

/**
 * Stores up to `max` requests of all members in `requests`. Each must be replied to once, in any
 * order, now or later. Returns their number, 0 if there is none.
 */
int crl_member_take(struct crl_member *member, struct crl_request *requests, int max);

/**
 * Replies to a request. `data` may be reused on return. There is always room.
 *
 * Returns 0, -EMSGSIZE beyond response_max (the request is still open), or -EINVAL if no request
 * is open under `handle`.
 */
int crl_member_reply(struct crl_member *member, uint64_t handle, const void *data, size_t len);

/**
 * Stores up to `max` responses in `responses`. Their data is valid until the next poll. Returns
 * their number, 0 if there is none yet.
 */
int crl_member_poll(struct crl_member *member, struct crl_response *responses, int max);

/**
 * Waits until there is something to take or to poll: spins for spin_us, then sleeps. timeout_ms:
 * at most so long; negative: without limit. Returns 0, -ETIMEDOUT, or -EINTR after a signal.
 */
int crl_member_wait(struct crl_member *member, int timeout_ms);

/**
 * Returns a descriptor for epoll or poll, owned by the member. After crl_member_arm has returned 0,
 * it becomes readable when there is something to take or to poll. The next crl_member_take or
 * crl_member_poll disarms it.
 */
int crl_member_fd(const struct crl_member *member);

/** Prepares for sleep on crl_member_fd. Returns 0, or -EAGAIN if there is something to do. */
int crl_member_arm(struct crl_member *member);

#ifdef __cplusplus
}
#endif

#endif
