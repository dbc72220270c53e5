/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A Unix socket pair for each client, for local_bench: a message for each request and response. */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "local_bench.h"

static int pairs[LB_CLIENTS][2]; /* client's end, server's end */
static unsigned int in_flight[LB_CLIENTS];
static struct lb_case conf;

static void prepare(const struct lb_case *c)
{
	conf = *c;
	for (unsigned int i = 0; i < c->clients; i++) {
		lb_must(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pairs[i]), "socketpair");
		in_flight[i] = 0;
	}
}

static void open_server(void)
{
}

static void open_client(unsigned int client)
{
	(void)client;
}

static int serve(void)
{
	unsigned char bytes[LB_BYTES];
	int cnt = 0;

	for (unsigned int i = 0; i < conf.clients; i++)
		for (unsigned int k = 0; k < conf.depth; k++) {
			ssize_t len = recv(pairs[i][1], bytes, sizeof(bytes), MSG_DONTWAIT);

			if (len <= 0)
				break;
			while (send(pairs[i][1], bytes, (size_t)len, MSG_NOSIGNAL) < 0 &&
			       errno == EINTR)
				;
			cnt++;
		}
	return cnt;
}

static bool call(unsigned int client, const void *data, bool more)
{
	(void)more;
	if (in_flight[client] == conf.depth ||
	    send(pairs[client][0], data, conf.bytes, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return false;
	in_flight[client]++;
	return true;
}

static int poll_client(unsigned int client)
{
	unsigned char bytes[LB_BYTES];
	ssize_t len;
	int cnt = 0;

	while (cnt < LB_BATCH &&
	       (len = recv(pairs[client][0], bytes, sizeof(bytes), MSG_DONTWAIT)) > 0) {
		lb_check(client, bytes, (size_t)len);
		in_flight[client]--;
		cnt++;
	}
	return cnt;
}

static void release(void)
{
	for (unsigned int i = 0; i < conf.clients; i++) {
		close(pairs[i][0]);
		close(pairs[i][1]);
	}
}

const struct lb_channel lb_socket = {
	.name = "socket",
	.prepare = prepare,
	.open_server = open_server,
	.open_client = open_client,
	.serve = serve,
	.call = call,
	.poll = poll_client,
	.close_client = open_client,
	.close_server = open_server,
	.release = release,
};
