/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* TCP connection of ft_talk.h. */
#include "ft_talk.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>

#define TRIES 300 /* of 0.1 s each */

static struct addrinfo *resolve(const char *host, const char *port)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found = NULL;

	if (!host) {
		hints.ai_family = AF_INET6; /* Accepts IPv4 too */
		hints.ai_flags = AI_PASSIVE;
	}
	return getaddrinfo(host, port, &hints, &found) ? NULL : found;
}

int ft_talk_listen(const char *port)
{
	struct addrinfo *addr = resolve(NULL, port);
	int sock, on = 1;

	if (!addr)
		return -1;
	sock = socket(addr->ai_family, SOCK_STREAM, 0);
	setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(sock, addr->ai_addr, addr->ai_addrlen) || listen(sock, 4)) {
		close(sock);
		sock = -1;
	}
	freeaddrinfo(addr);
	return sock;
}

static void no_delay(int sock)
{
	int on = 1;

	setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

int ft_talk_accept(int listener)
{
	struct pollfd wait = { .fd = listener, .events = POLLIN };
	int sock;

	if (poll(&wait, 1, 60000) != 1)
		return -1;
	sock = accept(listener, NULL, NULL);
	if (sock >= 0)
		no_delay(sock);
	return sock;
}

static int connect_once(const struct addrinfo *addr)
{
	int sock = socket(addr->ai_family, SOCK_STREAM, 0);

	if (sock >= 0 && connect(sock, addr->ai_addr, addr->ai_addrlen)) {
		close(sock);
		return -1;
	}
	return sock;
}

int ft_talk_connect(const char *host, const char *port)
{
	struct addrinfo *addr = resolve(host, port);
	int sock = -1;

	for (int i = 0; addr && sock < 0 && i < TRIES; i++) {
		sock = connect_once(addr);
		if (sock < 0)
			usleep(100000);
	}
	if (addr)
		freeaddrinfo(addr);
	if (sock >= 0)
		no_delay(sock);
	return sock;
}

bool ft_talk_verdict(int sock, char *verdict)
{
	return send(sock, verdict, 1, MSG_NOSIGNAL) == 1 &&
	       recv(sock, verdict, 1, MSG_WAITALL) == 1;
}
