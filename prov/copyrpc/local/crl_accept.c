/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Clients come and go: accepts connections, gives each client its memory, notices the end of one.
 * Called by crl_take.c and crl_wait.c; never blocks, and waits for no byte of a client.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "local/crl_server.h"
#include "local/crl_sock.h"

#define CRL_ACCEPT_EVENTS 64
#define CRL_ACCEPT_BURST  64 /* connections accepted before requests are looked at again */

/* Kinds of events. */
enum crl_event { CRL_EVENT_LISTENER, CRL_EVENT_SOCK, CRL_EVENT_PIDFD };

/* Watches a descriptor. The event names the client with its generation, never memory. */
static int crl_accept_watch(struct crl_server *server, int fd, enum crl_event event, uint32_t id,
			    uint32_t generation)
{
	struct epoll_event ev = {
		.events = EPOLLIN,
		.data.u64 = (uint64_t)generation << 32 | id << 2 | event,
	};

	return epoll_ctl(server->epoll, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

int crl_accept_watch_listener(struct crl_server *server)
{
	return crl_accept_watch(server, server->listener, CRL_EVENT_LISTENER, 0, 0);
}

void crl_accept_free(struct crl_server *server, struct crl_peer *peer)
{
	server->peers[peer->id] = NULL;
	/* No handle of this client is one of the next client with its id. */
	if (peer->callee.free)
		server->handles[peer->id] = crl_callee_generation(&peer->callee);
	server->free_ids[server->free_cnt++] = peer->id;
	crl_callee_fini(&peer->callee);
	free(peer);
}

/* Closes what the client and the server share. */
static void crl_accept_close(struct crl_server *server, struct crl_peer *peer)
{
	if (peer->sock >= 0) {
		epoll_ctl(server->epoll, EPOLL_CTL_DEL, peer->sock, NULL);
		crl_sock_end(peer->sock);
	}
	if (peer->pidfd >= 0) {
		epoll_ctl(server->epoll, EPOLL_CTL_DEL, peer->pidfd, NULL);
		close(peer->pidfd);
	}
	crl_mem_close_fd(&peer->mem);
	crl_mem_free(&peer->mem);
	peer->control = NULL;
	peer->callee.quick = 0;
}

void crl_accept_forget(struct crl_peer *peer)
{
	if (peer->control) {
		close(peer->sock);
		if (peer->pidfd >= 0)
			close(peer->pidfd);
	}
	crl_callee_fini(&peer->callee);
	free(peer);
}

void crl_accept_drop(struct crl_server *server, struct crl_peer *peer)
{
	struct crl_peer *last = server->live[--server->live_cnt];

	server->live[peer->live_idx] = last;
	last->live_idx = peer->live_idx;
	if (server->current == peer)
		server->current = NULL;
	crl_accept_close(server, peer);
	if (!crl_callee_open(&peer->callee))
		crl_accept_free(server, peer);
}

/* Creates the memory of a client. */
static int crl_accept_memory(struct crl_server *server, struct crl_peer *peer)
{
	int ret = crl_mem_create(&peer->mem, crl_hello_bytes(&server->options), false);

	if (ret)
		return ret;
	peer->control = peer->mem.base;
	peer->waker.word = &peer->control->sleep;
	return crl_callee_init(&peer->callee, &server->shape, peer->control + 1, peer->id,
			       server->handles[peer->id]);
}

static int crl_accept_hello(struct crl_server *server, const struct crl_peer *peer)
{
	struct crl_hello hello = {
		.magic = CRL_HELLO_MAGIC,
		.version = CRL_HELLO_VERSION,
		.kind = server->kind,
		.client = peer->id,
		.options = server->options,
	};
	int fds[CRL_SOCK_FDS] = { peer->mem.fd, server->page.fd, server->shared.fd };

	return crl_sock_send(peer->sock, &hello, sizeof(hello), fds,
			     server->kind == CRL_DELEGATION ? 3 : 2);
}

/* Connects a client that has its id. */
static int crl_accept_peer(struct crl_server *server, struct crl_peer *peer)
{
	int ret = crl_accept_memory(server, peer);

	peer->pidfd = crl_sock_pidfd(peer->sock);
	peer->waker.fence = !crl_sleep_register();
	crl_sleep_count(&server->sleep, &peer->armed);
	if (peer->waker.fence)
		peer->callee.quick = 0;
	if (!ret)
		ret = crl_accept_watch(server, peer->sock, CRL_EVENT_SOCK, peer->id,
				       peer->generation);
	if (!ret && peer->pidfd >= 0)
		ret = crl_accept_watch(server, peer->pidfd, CRL_EVENT_PIDFD, peer->id,
				       peer->generation);
	ret = ret ? ret : crl_accept_hello(server, peer);
	if (ret)
		return ret;
	crl_mem_close_fd(&peer->mem);
	peer->live_idx = server->live_cnt;
	server->live[server->live_cnt++] = peer;
	server->counters.accepted++;
	return 0;
}

static int crl_accept_new(struct crl_server *server, int sock)
{
	struct crl_peer *peer;
	int ret = crl_sock_check_user(sock);

	if (ret)
		return ret;
	if (!server->free_cnt)
		return -EUSERS;
	peer = calloc(1, sizeof(*peer));
	if (!peer)
		return -ENOMEM;
	peer->sock = sock;
	peer->id = server->free_ids[--server->free_cnt];
	peer->generation = ++server->generations[peer->id];
	server->peers[peer->id] = peer;
	ret = crl_accept_peer(server, peer);
	if (!ret)
		return 0;
	peer->sock = -1; /* refused and closed by the caller */
	crl_accept_close(server, peer);
	crl_accept_free(server, peer);
	return ret;
}

static void crl_accept_refuse(struct crl_server *server, int sock, int status)
{
	struct crl_hello hello = {
		.magic = CRL_HELLO_MAGIC,
		.version = CRL_HELLO_VERSION,
		.status = status,
	};

	server->counters.refused++;
	crl_sock_send(sock, &hello, sizeof(hello), NULL, 0);
	close(sock);
}

/*
 * Refuses a client for which this process has no descriptor left: not accepted, it would keep the
 * listener readable.
 */
static void crl_accept_full(struct crl_server *server)
{
	int sock;

	if (server->spare < 0)
		return;
	close(server->spare);
	sock = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (sock >= 0)
		crl_accept_refuse(server, sock, -EMFILE);
	server->spare = crl_sock_spare();
}

static void crl_accept_all(struct crl_server *server)
{
	/* Another thread may have taken the number of the last one. */
	if (server->spare < 0)
		server->spare = crl_sock_spare();
	for (int i = 0; i < CRL_ACCEPT_BURST; i++) {
		int ret, sock = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (sock < 0) {
			if (errno == EMFILE || errno == ENFILE)
				crl_accept_full(server);
			return;
		}
		ret = crl_accept_new(server, sock);
		if (ret)
			crl_accept_refuse(server, sock, ret);
	}
}

/* Takes the wakeups of a client. Returns false if it is gone or sent too many. */
static bool crl_accept_drain(struct crl_server *server, struct crl_peer *peer)
{
	return crl_sock_drain(peer->sock, crl_sleep_count(&server->sleep, &peer->armed));
}

static void crl_accept_event(struct crl_server *server, uint64_t data)
{
	enum crl_event event = data & 3;
	uint32_t id = (uint32_t)data >> 2;
	struct crl_peer *peer = server->peers[id];

	if (event == CRL_EVENT_LISTENER)
		crl_accept_all(server);
	else if (peer && peer->control && peer->generation == (uint32_t)(data >> 32) &&
		 (event == CRL_EVENT_PIDFD || !crl_accept_drain(server, peer)))
		crl_accept_drop(server, peer);
}

void crl_accept_events(struct crl_server *server)
{
	struct epoll_event events[CRL_ACCEPT_EVENTS];
	int cnt;

	/* Ends a forked child, which has no such page, before it accepts its parent's clients. */
	(void)atomic_load_explicit(server->sleep.word, memory_order_relaxed);
	cnt = epoll_wait(server->epoll, events, CRL_ACCEPT_EVENTS, 0);
	for (int i = 0; i < cnt; i++)
		crl_accept_event(server, events[i].data.u64);
}
