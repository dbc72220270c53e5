/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Requests and replies of a server: crl_server_take, crl_server_reply.
 *
 * ipc: the server looks at the next entry of every client. delegation: it looks at the next token,
 * then at the client that the token names. Before it looks there it clears the client's word
 * `token`; a client that writes a request after that puts a token again. Every CRL_TAKE_SWEEP_NS
 * and before it sleeps the server looks at every client, so that a token which was overwritten
 * costs its client only time. After a sign that the ring of tokens was damaged it looks at every
 * client each time, until CRL_TAKE_SUSPECT calls have seen no further sign.
 */
#include <errno.h>

#include "local/crl_server.h"
#include "local/crl_sock.h"
#include "util/clock.h"

#define CRL_TAKE_CLOCK     16 /* calls between two readings of the clock */
#define CRL_TAKE_EVENTS_NS (1 * UTIL_NS_PER_MS)
#define CRL_TAKE_SWEEP_NS  (10 * UTIL_NS_PER_MS)
#define CRL_TAKE_SUSPECT   1024 /* calls that look at every client after a sign of damage */

/* Disconnects a client whose memory is not valid. */
__attribute__((noinline)) static int crl_take_expel(struct crl_server *server,
						    struct crl_peer *peer)
{
	server->counters.expelled++;
	crl_accept_drop(server, peer);
	return 0;
}

/* Takes from one client. */
UTIL_INLINE int crl_take_from(struct crl_server *server, struct crl_peer *peer,
			      struct crl_request *requests, int max)
{
	int cnt = crl_callee_take(&peer->callee, requests, max);

	return UTIL_LIKELY(cnt >= 0) ? cnt : crl_take_expel(server, peer);
}

/* Looks at every client once, beginning with another one each time. */
UTIL_INLINE int crl_take_round(struct crl_server *server, struct crl_request *requests, int max)
{
	uint32_t idx = server->start < server->live_cnt ? server->start : 0;
	int cnt = 0;

	for (uint32_t looks = server->live_cnt; looks && cnt < max; looks--) {
		cnt += crl_take_from(server, server->live[idx], requests + cnt, max - cnt);
		if (++idx >= server->live_cnt)
			idx = 0;
		if (!server->live_cnt)
			break;
	}
	server->start = idx;
	return cnt;
}

/* Finds the client of the next token. Returns false if there is no token. */
UTIL_INLINE bool crl_take_next(struct crl_server *server)
{
	struct crl_peer *peer;
	uint32_t id = 0;
	enum crl_token token = crl_tokens_take(&server->tokens, &id);

	if (token == CRL_TOKEN_NONE)
		return false;
	if (UTIL_UNLIKELY(token == CRL_TOKEN_INVALID)) {
		server->counters.repaired++;
		server->suspect = CRL_TAKE_SUSPECT;
		return true;
	}
	peer = id < server->options.max_clients ? server->peers[id] : NULL;
	if (!peer || !peer->control)
		return true;
	/* Reads the client's exchange: the requests before it are visible. */
	atomic_exchange_explicit(&peer->control->token, 0, memory_order_acq_rel);
	server->current = peer;
	server->budget = server->options.depth;
	return true;
}

UTIL_INLINE int crl_take_current(struct crl_server *server, struct crl_request *requests, int max)
{
	int most = max < (int)server->budget ? max : (int)server->budget;
	int cnt = crl_take_from(server, server->current, requests, most);

	server->budget -= (uint32_t)cnt;
	if (cnt < most || !server->budget)
		server->current = NULL;
	return cnt;
}

UTIL_INLINE int crl_take_tokens(struct crl_server *server, struct crl_request *requests, int max)
{
	int cnt = 0;

	for (uint32_t looks = server->tokens.mask + 1; looks && cnt < max; looks--) {
		if (!server->current && !crl_take_next(server))
			break;
		if (server->current)
			cnt += crl_take_current(server, requests + cnt, max - cnt);
	}
	return cnt;
}

/* Returns true if the client of any of the requests has announced them: its token is lost. */
static bool crl_take_lost(const struct crl_server *server, const struct crl_request *requests,
			  int cnt)
{
	for (int i = 0; i < cnt; i++) {
		const struct crl_peer *peer = server->peers[requests[i].client];

		if (peer->control &&
		    atomic_load_explicit(&peer->control->token, memory_order_relaxed))
			return true;
	}
	return false;
}

/* Takes requests whose token is missing, or not put yet. */
__attribute__((noinline)) static int crl_take_sweep(struct crl_server *server,
						    struct crl_request *requests, int max)
{
	int cnt = crl_take_round(server, requests, max);

	server->sweep = cnt == max;
	server->suspect -= server->suspect > 0;
	server->counters.swept += (uint64_t)cnt;
	if (crl_take_lost(server, requests, cnt))
		server->suspect = CRL_TAKE_SUSPECT;
	if (cnt && !crl_tokens_ready(&server->tokens))
		crl_tokens_repair(&server->tokens);
	return cnt;
}

/*
 * Looks at one client instead of the tokens. Tokens that fill `requests` each time, such as those
 * that a faulty client keeps writing, would put a sweep off for ever.
 */
__attribute__((noinline)) static int crl_take_late(struct crl_server *server,
						   struct crl_request *requests, int max)
{
	int cnt = 0;

	if (max <= 0)
		return 0;
	server->late--;
	if (server->start >= server->live_cnt)
		server->start = 0;
	if (server->live_cnt)
		cnt = crl_take_from(server, server->live[server->start++], requests, max);
	server->counters.swept += (uint64_t)cnt;
	return cnt;
}

/* Takes what the tokens say, and what a sweep finds that is due. */
UTIL_INLINE int crl_take_delegated(struct crl_server *server, struct crl_request *requests, int max)
{
	int cnt = UTIL_UNLIKELY(server->late) ? crl_take_late(server, requests, max) : 0;

	if (UTIL_UNLIKELY(cnt))
		return cnt;
	cnt = crl_take_tokens(server, requests, max);
	if (UTIL_LIKELY(!server->sweep && !server->suspect))
		return cnt;
	if (cnt < max)
		return cnt + crl_take_sweep(server, requests + cnt, max - cnt);
	if (server->sweep && !server->late && max > 0)
		server->late = server->live_cnt;
	return cnt;
}

/* Looks at descriptors and lost tokens when it is time. */
static void crl_take_slow(struct crl_server *server)
{
	uint64_t now;

	server->takes = 0;
	now = util_clock_ns();
	if (now - server->events_ns >= CRL_TAKE_EVENTS_NS) {
		server->events_ns = now;
		crl_accept_events(server);
	}
	if (now - server->sweep_ns >= CRL_TAKE_SWEEP_NS) {
		server->sweep_ns = now;
		server->sweep = server->kind == CRL_DELEGATION;
	}
}

int crl_server_take(struct crl_server *server, struct crl_request *requests, int max)
{
	int cnt = 0;

	if (UTIL_UNLIKELY(crl_sleep_is_armed(&server->sleep))) {
		crl_sleep_disarm(&server->sleep);
		crl_accept_events(server);
	}
	if (UTIL_UNLIKELY(++server->takes >= CRL_TAKE_CLOCK))
		crl_take_slow(server);
	if (server->kind == CRL_IPC)
		cnt = crl_take_round(server, requests, max);
	else
		cnt = crl_take_delegated(server, requests, max);
	server->counters.taken += (uint64_t)cnt;
	return cnt;
}

bool crl_take_any(const struct crl_server *server)
{
	for (uint32_t i = 0; i < server->live_cnt; i++)
		if (crl_callee_ready(&server->live[i]->callee))
			return true;
	return false;
}

bool crl_take_ready(const struct crl_server *server)
{
	const struct crl_peer *current = server->current;

	if (server->kind == CRL_IPC || server->suspect)
		return crl_take_any(server);
	return (current && crl_callee_ready(&current->callee)) || crl_tokens_ready(&server->tokens);
}

/* Ends a request whose client is gone. */
static int crl_take_discard(struct crl_server *server, struct crl_peer *peer, uint64_t handle)
{
	uint64_t tag;

	if (!crl_callee_close(&peer->callee, handle, &tag))
		return -EINVAL;
	server->counters.discarded++;
	if (!crl_callee_open(&peer->callee))
		crl_accept_free(server, peer);
	return -EPIPE;
}

/* Wakes a client if it sleeps. */
__attribute__((noinline)) static int crl_take_wake(struct crl_server *server, struct crl_peer *peer)
{
	if (UTIL_UNLIKELY(crl_sleep_due(&peer->waker))) {
		server->counters.wakeups++;
		crl_sock_wake(peer->sock);
	}
	return 0;
}

/* Replies with any length to a client in any state. */
__attribute__((noinline)) static int crl_take_reply_any(struct crl_server *server,
							struct crl_peer *peer, uint64_t handle,
							const void *data, size_t len)
{
	int ret;

	if (UTIL_UNLIKELY(!peer))
		return -EINVAL;
	if (UTIL_UNLIKELY(!peer->control))
		return crl_take_discard(server, peer, handle);
	ret = crl_callee_reply(&peer->callee, handle, data, len);
	return ret ? ret : crl_take_wake(server, peer);
}

int crl_server_reply(struct crl_server *server, uint64_t handle, const void *data, size_t len)
{
	uint32_t id = crl_handle_owner(handle);
	struct crl_peer *peer = id < server->options.max_clients ? server->peers[id] : NULL;
	int ret;

	if (UTIL_UNLIKELY(!peer || len >= peer->callee.quick))
		return crl_take_reply_any(server, peer, handle, data, len);
	ret = crl_callee_quick(&peer->callee, handle, data, len);
	if (UTIL_UNLIKELY(ret))
		return ret;
	return UTIL_LIKELY(crl_sleep_quiet(&peer->waker)) ? 0 : crl_take_wake(server, peer);
}
