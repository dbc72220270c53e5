/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Channels of libcopyrpc-local for local_bench. */
#include <copyrpc/flux.h>
#include <stdio.h>
#include <unistd.h>

#include "local_bench.h"

#define OPEN_MS 60000

static struct crl_options options;
static size_t bytes;
static int take;
static char name[64];
static struct crl_server *server;
static struct crl_client *clients[LB_CLIENTS];

static void prepare(const struct lb_case *c)
{
	static unsigned int count;

	bytes = c->bytes;
	take = (int)c->take;
	options = (struct crl_options){ .max_clients = LB_CLIENTS,
					.depth = c->depth,
					.request_max = c->bytes,
					.response_max = c->bytes };
	snprintf(name, sizeof(name), "local-bench.%d.%u", (int)getpid(), count++);
}

static void open_delegation(void)
{
	lb_must(crl_server_open(&server, CRL_DELEGATION, name, &options), "crl_server_open");
}

static void open_ipc(void)
{
	lb_must(crl_server_open(&server, CRL_IPC, name, &options), "crl_server_open");
}

static void open_client(unsigned int client)
{
	lb_must(crl_client_open(&clients[client], name, OPEN_MS), "crl_client_open");
}

static int serve(void)
{
	struct crl_request requests[LB_BATCH];
	int cnt = crl_server_take(server, requests, take);

	for (int i = 0; i < cnt; i++)
		crl_server_reply(server, requests[i].handle, requests[i].data, requests[i].len);
	return cnt;
}

static bool call(unsigned int client, const void *data, bool more)
{
	return !crl_client_call(clients[client], data, bytes, NULL, more ? CRL_MORE : 0);
}

static int poll_client(unsigned int client)
{
	struct crl_response responses[LB_BATCH];
	int cnt = lb_must(crl_client_poll(clients[client], responses, LB_BATCH), "crl_client_poll");

	for (int i = 0; i < cnt; i++)
		lb_check(client, responses[i].data, responses[i].len);
	return cnt;
}

static void close_client(unsigned int client)
{
	crl_client_close(clients[client]);
}

static void close_server(void)
{
	crl_server_close(server);
}

static void release(void)
{
}

/* ---- flux: member 0 serves ---- */

static struct crl_flux *flux;
static struct crl_member *members[LB_CLIENTS + 1];

static void prepare_flux(const struct lb_case *c)
{
	prepare(c);
	lb_must(crl_flux_open(&flux, c->clients + 1, &options), "crl_flux_open");
	for (uint32_t i = 0; i <= c->clients; i++)
		members[i] = crl_flux_member(flux, i);
}

static void open_no_server(void)
{
}

static void open_no_client(unsigned int client)
{
	(void)client;
}

static int serve_member(void)
{
	struct crl_request requests[LB_BATCH];
	int cnt = crl_member_take(members[0], requests, take);

	for (int i = 0; i < cnt; i++)
		crl_member_reply(members[0], requests[i].handle, requests[i].data, requests[i].len);
	return cnt;
}

static bool call_member(unsigned int client, const void *data, bool more)
{
	return !crl_member_call(members[client + 1], 0, data, bytes, NULL, more ? CRL_MORE : 0);
}

static int poll_member(unsigned int client)
{
	struct crl_response responses[LB_BATCH];
	int cnt = crl_member_poll(members[client + 1], responses, LB_BATCH);

	for (int i = 0; i < cnt; i++)
		lb_check(client, responses[i].data, responses[i].len);
	return cnt;
}

static void release_flux(void)
{
	crl_flux_close(flux);
}

const struct lb_channel lb_delegation = {
	.name = "delegation",
	.prepare = prepare,
	.open_server = open_delegation,
	.open_client = open_client,
	.serve = serve,
	.call = call,
	.poll = poll_client,
	.close_client = close_client,
	.close_server = close_server,
	.release = release,
};

const struct lb_channel lb_ipc = {
	.name = "ipc",
	.prepare = prepare,
	.open_server = open_ipc,
	.open_client = open_client,
	.serve = serve,
	.call = call,
	.poll = poll_client,
	.close_client = close_client,
	.close_server = close_server,
	.release = release,
};

const struct lb_channel lb_flux = {
	.name = "flux",
	.threads_only = true,
	.prepare = prepare_flux,
	.open_server = open_no_server,
	.open_client = open_no_client,
	.serve = serve_member,
	.call = call_member,
	.poll = poll_member,
	.close_client = open_no_client,
	.close_server = open_no_server,
	.release = release_flux,
};
