/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Life of a server: crl_server_open, crl_server_close, counters. */
#include "local/crl_server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "local/crl_fork.h"
#include "local/crl_sock.h"

#define CRL_SERVER_DEPTH 32u

static int crl_server_tables(struct crl_server *server)
{
	uint32_t max = server->options.max_clients;

	server->peers = calloc(max, sizeof(*server->peers));
	server->live = calloc(max, sizeof(*server->live));
	server->generations = calloc(max, sizeof(*server->generations));
	server->handles = calloc(max, sizeof(*server->handles));
	server->free_ids = calloc(max, sizeof(*server->free_ids));
	if (!server->peers || !server->live || !server->generations || !server->handles ||
	    !server->free_ids)
		return -ENOMEM;
	for (uint32_t i = 0; i < max; i++) {
		server->free_ids[i] = max - 1 - i;
		server->handles[i] = 1;
	}
	server->free_cnt = max;
	return 0;
}

static int crl_server_memory(struct crl_server *server)
{
	uint32_t words = crl_tokens_count(server->options.max_clients);
	struct crl_page *page;
	int ret = crl_mem_create(&server->page, sizeof(*page), true);

	if (ret)
		return ret;
	page = server->page.base;
	crl_sleep_init(&server->sleep, &page->sleep);
	if (server->kind != CRL_DELEGATION)
		return 0;
	ret = crl_mem_create(&server->shared, crl_tokens_bytes(words), false);
	if (!ret)
		crl_tokens_init(&server->tokens, server->shared.base, words);
	return ret;
}

static int crl_server_sockets(struct crl_server *server, const char *name)
{
	server->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (server->epoll < 0)
		return -errno;
	server->spare = crl_sock_spare();
	if (server->spare < 0)
		return -errno;
	server->listener = crl_sock_listen(name, &server->file);
	if (server->listener < 0)
		return server->listener;
	server->name = strdup(name);
	return server->name ? crl_accept_watch_listener(server) : -ENOMEM;
}

int crl_server_open(struct crl_server **out, enum crl_kind kind, const char *name,
		    const struct crl_options *options)
{
	struct crl_server *server;
	int ret;

	if (kind != CRL_DELEGATION && kind != CRL_IPC)
		return -EINVAL;
	server = calloc(1, sizeof(*server));
	if (!server)
		return -ENOMEM;
	server->kind = kind;
	server->process = crl_fork_id();
	server->epoll = server->listener = server->spare = -1;
	ret = crl_options_check(&server->options, options, CRL_SERVER_DEPTH);
	server->shape = crl_options_shape(&server->options);
	ret = ret ? ret : crl_server_tables(server);
	ret = ret ? ret : crl_server_memory(server);
	ret = ret ? ret : crl_server_sockets(server, name);
	if (ret) {
		crl_server_close(server);
		return ret;
	}
	*out = server;
	return 0;
}

static void crl_server_close_peers(struct crl_server *server)
{
	for (uint32_t i = 0; server->peers && i < server->options.max_clients; i++) {
		struct crl_peer *peer = server->peers[i];

		if (!peer)
			continue;
		peer->callee.free_cnt = peer->callee.depth;
		if (server->process != crl_fork_id())
			crl_accept_forget(peer);
		else if (peer->control)
			crl_accept_drop(server, peer);
		else
			crl_accept_free(server, peer);
	}
}

/* Gives the name back, unless this is a forked child's copy of the server. */
static void crl_server_close_listener(struct crl_server *server)
{
	bool inherited = server->process != crl_fork_id();

	if (server->name && !inherited)
		crl_sock_unlink(server->name, &server->file);
	if (server->listener < 0)
		return;
	if (inherited)
		close(server->listener);
	else
		crl_sock_end(server->listener);
}

void crl_server_close(struct crl_server *server)
{
	crl_server_close_listener(server);
	crl_server_close_peers(server);
	if (server->epoll >= 0)
		close(server->epoll);
	if (server->spare >= 0)
		close(server->spare);
	crl_mem_close_fd(&server->page);
	crl_mem_free(&server->page);
	crl_mem_close_fd(&server->shared);
	crl_mem_free(&server->shared);
	free(server->peers);
	free(server->live);
	free(server->generations);
	free(server->handles);
	free(server->free_ids);
	free(server->name);
	free(server);
}

void crl_server_counters(const struct crl_server *server, struct crl_counters *counters)
{
	uint64_t open = 0;

	for (uint32_t i = 0; i < server->options.max_clients; i++)
		open += server->peers[i] ? crl_callee_open(&server->peers[i]->callee) : 0;
	*counters = server->counters;
	counters->clients = server->live_cnt;
	/* Each request that was taken is open, was replied to, or was discarded. */
	counters->replied = counters->taken - counters->discarded - open;
}
