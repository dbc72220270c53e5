/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * copyrpc_info --listen: accepts probers, each in a child that opens its own endpoint. See
 * info_peer.h.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "info/info_peer.h"

#define LISTEN_CHILDREN 8u
#define LISTEN_SECONDS  200u /* for all of a path, after which the child ends */
#define LISTEN_STATUS   3

/* Opens the socket, for IPv6 and IPv4 if the host has both. Returns it or -1. */
static int listen_open(const char *port)
{
	static const int families[] = { AF_INET6, AF_INET };
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE }, *it;
	int one = 1, zero = 0, fd;

	for (size_t i = 0; i < 2; i++) {
		hints.ai_family = families[i];
		if (getaddrinfo(NULL, port, &hints, &it))
			continue;
		fd = socket(it->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		if (families[i] == AF_INET6)
			setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
		if (fd >= 0 && !bind(fd, it->ai_addr, it->ai_addrlen) && !listen(fd, 16)) {
			freeaddrinfo(it);
			return fd;
		}
		freeaddrinfo(it);
		if (fd >= 0)
			close(fd);
	}
	return -1;
}

static unsigned listen_port(int fd)
{
	struct sockaddr_in6 at = { .sin6_port = 0 }; /* the port is at one place in both families */
	socklen_t len = sizeof(at);

	getsockname(fd, (struct sockaddr *)&at, &len);
	return ntohs(at.sin6_port);
}

/* Returns what became of a path, in words for the user of --listen. */
static const char *listen_outcome(const struct info_peer_result *result, const char *path)
{
	bool has_no_endpoint =
		result->stage == INFO_PEER_OPEN_HERE || result->stage == INFO_PEER_OPEN_THERE;

	if (result->stage == INFO_PEER_DONE)
		return "messages were exchanged";
	if (result->error == -EACCES)
		return "the job keys differ";
	if (result->stage == INFO_PEER_TALK)
		return "no copyrpc_info is at the other end";
	if (has_no_endpoint && !strcmp(path, "nic"))
		return "not tried: an RDMA device is missing, here or there";
	return "failed; copyrpc_info --probe says why";
}

/* Serves one path. The time of a child is limited, so a prober cannot hold it. */
static void listen_serve(int fd)
{
	struct info_peer_result result = { .stage = INFO_PEER_TALK };
	struct timeval limit = { .tv_sec = LISTEN_SECONDS };
	struct itimerval end = { .it_value = limit };
	struct info_talk talk = { .fd = fd };

	setitimer(ITIMER_REAL, &end, NULL);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	result.error = info_talk_listen(&talk, getenv("FI_COPYRPC_JOB_KEY"));
	if (!result.error)
		info_peer_path(&talk, talk.path, false, &result);
	printf("path %s: %s\n", talk.path[0] ? talk.path : "?", listen_outcome(&result, talk.path));
	fflush(stdout);
	_exit(0);
}

/* Waits for children that ended, or for one of them if there are too many. */
static void listen_reap(unsigned *children)
{
	while (*children && waitpid(-1, NULL, *children < LISTEN_CHILDREN ? WNOHANG : 0) > 0)
		(*children)--;
}

int info_peer_listen(const char *port)
{
	int fd = listen_open(port), conn;
	unsigned children = 0;
	pid_t pid;

	if (fd < 0) {
		fprintf(stderr, "copyrpc_info: TCP port %s cannot be opened: %s\n", port,
			strerror(errno));
		return LISTEN_STATUS;
	}
	printf("listening at TCP port %u; on another host: copyrpc_info --probe THIS-HOST --port "
	       "%u\n",
	       listen_port(fd), listen_port(fd));
	fflush(stdout);
	for (;;) {
		listen_reap(&children);
		conn = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
		if (conn < 0)
			continue;
		pid = fork();
		if (!pid) {
			close(fd);
			listen_serve(conn);
		}
		children += pid > 0;
		close(conn);
	}
}
