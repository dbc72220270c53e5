/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Client of a delegation or ipc server. The server is crl_server.c; the memory, crl_hello.h. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "local/crl_caller.h"
#include "local/crl_fork.h"
#include "local/crl_hello.h"
#include "local/crl_mem.h"
#include "local/crl_sleep.h"
#include "local/crl_sock.h"
#include "local/crl_tokens.h"
#include "local/crl_wait.h"

#define CRL_CLIENT_CLOCK   64 /* polls without a response between two readings of the clock */
#define CRL_CLIENT_LOOK_NS (10 * UTIL_NS_PER_MS) /* between two looks whether the server lives */

/* Values of crl_client.owed. */
#define CRL_CLIENT_DEFERRED 1u /* calls with CRL_MORE are not announced yet */
#define CRL_CLIENT_TOKEN    2u /* the ring of tokens had no room */

struct crl_client {
	struct crl_caller caller;
	enum crl_kind kind;
	uint32_t id;
	struct crl_control *control;
	struct crl_waker waker; /* of the server */
	struct crl_sleep sleep;
	struct crl_tokens tokens;
	uint32_t owed;  /* CRL_CLIENT_...: what the next poll has to do first */
	bool gone;      /* the server has ended */
	uint32_t idle;  /* polls without a response */
	uint32_t quick; /* of the caller, while calls may be quick */
	uint32_t armed; /* at the last look at `sock`: crl_sleep_count */
	uint64_t look_ns;
	struct crl_options options;
	struct crl_mem mem, page, shared;
	uint32_t process; /* crl_fork_id of the process that opened the client */
	int sock, pidfd, epoll;
};

static int crl_client_check(const struct crl_hello *hello, int fd_cnt)
{
	struct crl_options checked;

	if (hello->magic != CRL_HELLO_MAGIC || hello->version != CRL_HELLO_VERSION)
		return -EPROTO;
	if (hello->status)
		return hello->status < 0 ? hello->status : -EPROTO;
	if (crl_options_check(&checked, &hello->options, 1) ||
	    checked.depth != hello->options.depth || hello->client >= checked.max_clients)
		return -EPROTO;
	if (hello->kind == CRL_DELEGATION)
		return fd_cnt == 3 ? 0 : -EPROTO;
	return hello->kind == CRL_IPC && fd_cnt == 2 ? 0 : -EPROTO;
}

/* Maps the memories. Takes the descriptors in any case. */
static int crl_client_map(struct crl_client *client, const int *fds, int fd_cnt)
{
	uint32_t words = crl_tokens_count(client->options.max_clients);
	int ret, err;

	ret = crl_mem_attach(&client->mem, fds[0], crl_hello_bytes(&client->options), false);
	err = crl_mem_attach(&client->page, fds[1], sizeof(struct crl_page), true);
	ret = ret ? ret : err;
	if (fd_cnt < 3)
		return ret;
	err = crl_mem_attach(&client->shared, fds[2], crl_tokens_bytes(words), false);
	if (!err)
		crl_tokens_init(&client->tokens, client->shared.base, words);
	return ret ? ret : err;
}

/* Lets short requests be written by the quick path, unless each call has more to do. */
static void crl_client_choose(struct crl_client *client)
{
	bool plain = !client->gone && !(client->owed & CRL_CLIENT_TOKEN) && !client->waker.fence;

	client->caller.quick = plain ? client->quick : 0;
}

static int crl_client_join(struct crl_client *client)
{
	struct crl_shape shape = crl_options_shape(&client->options);
	struct crl_page *page = client->page.base;
	int ret;

	client->control = client->mem.base;
	crl_sleep_init(&client->sleep, &client->control->sleep);
	client->waker.word = &page->sleep;
	client->waker.fence = !crl_sleep_register();
	ret = crl_caller_init(&client->caller, &shape, client->control + 1);
	client->quick = client->caller.quick;
	crl_client_choose(client);
	return ret;
}

static int crl_client_watch(struct crl_client *client)
{
	struct epoll_event ev = { .events = EPOLLIN };

	client->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (client->epoll < 0 || epoll_ctl(client->epoll, EPOLL_CTL_ADD, client->sock, &ev))
		return -errno;
	client->pidfd = crl_sock_pidfd(client->sock);
	if (client->pidfd >= 0 && epoll_ctl(client->epoll, EPOLL_CTL_ADD, client->pidfd, &ev))
		return -errno;
	return 0;
}

static int crl_client_connect(struct crl_client *client, const char *name, int timeout_ms)
{
	struct crl_wait wait = crl_wait_begin(timeout_ms, -1);
	struct crl_hello hello;
	int fds[CRL_SOCK_FDS], cnt, ret;

	client->sock = crl_sock_connect(name, timeout_ms);
	if (client->sock < 0)
		return client->sock;
	ret = crl_sock_check_user(client->sock);
	if (ret)
		return ret;
	cnt = crl_sock_recv(client->sock, &hello, sizeof(hello), fds, crl_wait_left(&wait));
	if (cnt < 0)
		return cnt;
	ret = crl_client_check(&hello, cnt);
	if (ret) {
		while (cnt)
			close(fds[--cnt]);
		return ret;
	}
	client->kind = hello.kind;
	client->id = hello.client;
	client->options = hello.options;
	ret = crl_client_map(client, fds, cnt);
	ret = ret ? ret : crl_client_join(client);
	return ret ? ret : crl_client_watch(client);
}

int crl_client_open(struct crl_client **out, const char *name, int timeout_ms)
{
	struct crl_client *client = calloc(1, sizeof(*client));
	int ret;

	if (!client)
		return -ENOMEM;
	client->sock = client->pidfd = client->epoll = -1;
	client->process = crl_fork_id();
	ret = crl_client_connect(client, name, timeout_ms);
	if (ret) {
		crl_client_close(client);
		return ret;
	}
	*out = client;
	return 0;
}

void crl_client_close(struct crl_client *client)
{
	crl_caller_fini(&client->caller);
	crl_mem_free(&client->mem);
	crl_mem_free(&client->page);
	crl_mem_free(&client->shared);
	if (client->epoll >= 0)
		close(client->epoll);
	if (client->pidfd >= 0)
		close(client->pidfd);
	if (client->sock >= 0 && client->process == crl_fork_id())
		crl_sock_end(client->sock);
	else if (client->sock >= 0)
		close(client->sock);
	free(client);
}

void crl_client_options(const struct crl_client *client, struct crl_options *options)
{
	*options = client->options;
}

uint32_t crl_client_pending(const struct crl_client *client)
{
	return crl_caller_pending(&client->caller);
}

/* Looks whether the server lives: its descriptors are readable when it does not. */
static void crl_client_look(struct crl_client *client)
{
	struct pollfd pfd = { .fd = client->pidfd, .events = POLLIN };
	uint32_t armed = crl_sleep_count(&client->sleep, &client->armed);

	client->gone =
		!crl_sock_drain(client->sock, armed) || (pfd.fd >= 0 && poll(&pfd, 1, 0) > 0);
	crl_client_choose(client);
}

/* Looks whether the server lives, now and then. */
static void crl_client_look_seldom(struct crl_client *client)
{
	uint64_t now;

	if (++client->idle < CRL_CLIENT_CLOCK)
		return;
	client->idle = 0;
	now = util_clock_ns();
	if (now - client->look_ns < CRL_CLIENT_LOOK_NS)
		return;
	client->look_ns = now;
	crl_client_look(client);
}

/* Wakes the server if it sleeps. */
__attribute__((noinline)) static int crl_client_wake(struct crl_client *client)
{
	if (UTIL_UNLIKELY(crl_sleep_due(&client->waker)))
		crl_sock_wake(client->sock);
	return 0;
}

/* Puts a token, now or at the next call or poll, and wakes the server if it sleeps. */
__attribute__((noinline)) static int crl_client_put(struct crl_client *client)
{
	client->owed = crl_tokens_put(&client->tokens, client->id) ? 0 : CRL_CLIENT_TOKEN;
	crl_client_choose(client);
	return crl_client_wake(client);
}

/* Announces the requests that were written: a token, if none is out, and a wakeup. */
static int crl_client_announce(struct crl_client *client)
{
	bool owes = client->owed & CRL_CLIENT_TOKEN;

	client->owed = 0;
	if (client->kind == CRL_DELEGATION && (crl_tokens_claim(&client->control->token) || owes))
		return crl_client_put(client);
	return crl_client_wake(client);
}

/* Announces a request without a function call, except where there is more to do. */
UTIL_INLINE int crl_client_announce_quick(struct crl_client *client)
{
	client->owed = 0;
	if (client->kind == CRL_DELEGATION && crl_tokens_claim(&client->control->token) &&
	    UTIL_UNLIKELY(!crl_tokens_put_first(&client->tokens, client->id)))
		return crl_client_put(client);
	return UTIL_LIKELY(crl_sleep_quiet(&client->waker)) ? 0 : crl_client_wake(client);
}

/* Returns the error of a call, whose predecessors must not wait for another one. */
__attribute__((noinline)) static int crl_client_refuse(struct crl_client *client, int ret)
{
	crl_client_flush(client);
	return ret;
}

/* Calls with a request of any length, in any state of the channel. */
__attribute__((noinline)) static int crl_client_call_any(struct crl_client *client,
							 const void *data, size_t len,
							 void *context, unsigned int flags)
{
	int ret;

	if (UTIL_UNLIKELY(client->gone))
		return -EPIPE;
	ret = crl_caller_call(&client->caller, data, len, context);
	if (UTIL_UNLIKELY(ret))
		return crl_client_refuse(client, ret);
	client->owed |= CRL_CLIENT_DEFERRED;
	return flags & CRL_MORE ? 0 : crl_client_announce(client);
}

int crl_client_call(struct crl_client *client, const void *data, size_t len, void *context,
		    unsigned int flags)
{
	int ret;

	if (UTIL_UNLIKELY(len >= client->caller.quick))
		return crl_client_call_any(client, data, len, context, flags);
	ret = crl_caller_quick(&client->caller, data, len, context);
	if (UTIL_UNLIKELY(ret))
		return crl_client_refuse(client, ret);
	if (!(flags & CRL_MORE))
		return crl_client_announce_quick(client);
	client->owed = CRL_CLIENT_DEFERRED;
	return 0;
}

void crl_client_flush(struct crl_client *client)
{
	if (client->owed)
		crl_client_announce(client);
}

/* Ends open calls of a server that is gone. */
static int crl_client_fail(struct crl_client *client, struct crl_response *responses, int max)
{
	int cnt = 0;
	void *context;

	while (cnt < max && crl_caller_abandon(&client->caller, &context))
		responses[cnt++] = (struct crl_response){ .context = context, .status = -EPIPE };
	return cnt ? cnt : -EPIPE;
}

int crl_client_poll(struct crl_client *client, struct crl_response *responses, int max)
{
	bool gone = client->gone;
	int cnt;

	if (UTIL_UNLIKELY(crl_sleep_is_armed(&client->sleep))) {
		crl_sleep_disarm(&client->sleep);
		crl_client_look(client);
	}
	if (UTIL_UNLIKELY(client->owed))
		crl_client_announce(client);
	cnt = crl_caller_poll(&client->caller, responses, max, 0);
	if (UTIL_LIKELY(cnt))
		return cnt;
	/* Responses that the server wrote before its end were there after `gone` was set. */
	if (UTIL_UNLIKELY(gone))
		return max > 0 ? crl_client_fail(client, responses, max) : 0;
	crl_client_look_seldom(client);
	return 0;
}

static bool crl_client_ready(void *object)
{
	struct crl_client *client = object;

	return client->gone || crl_caller_ready(&client->caller);
}

int crl_client_fd(const struct crl_client *client)
{
	return client->epoll;
}

int crl_client_arm(struct crl_client *client)
{
	crl_client_flush(client);
	crl_sleep_arm(&client->sleep);
	if (!crl_client_ready(client))
		return 0;
	crl_sleep_disarm(&client->sleep);
	return -EAGAIN;
}

int crl_client_wait(struct crl_client *client, int timeout_ms)
{
	struct crl_wait wait = crl_wait_begin(timeout_ms, client->options.spin_us);
	int ret = 0;

	crl_client_flush(client);
	if (crl_wait_spin(&wait, crl_client_ready, client))
		return 0;
	while (!ret && !crl_client_arm(client)) {
		ret = crl_wait_sleep(&wait, client->epoll);
		crl_sleep_disarm(&client->sleep);
		crl_client_look(client);
	}
	return ret;
}
