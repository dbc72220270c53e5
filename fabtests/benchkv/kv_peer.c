/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Closed loop towards memcached, as copyrpc_benchkv drives its own store: each connection has
 * `depth` requests in flight, half of them gets, over its ASCII protocol and the loopback
 * interface. Started by fabtests/scripts/kv-peers, which has redis-benchmark for redis.
 *
 * A connection sends a batch and waits for all its responses, as redis-benchmark -P does. Values
 * are zeros in decimal, so that no value looks like the end of a response.
 *
 * usage: kv_peer_bench PORT CONNECTIONS DEPTH REQUESTS      prints the requests per second
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kv_idle.h"

#define PEER_KEYS      1024u
#define PEER_VALUE_LEN 32
#define PEER_CONNS_MAX 512
#define PEER_DEPTH_MAX 1024
#define PEER_LINE_MAX  96 /* bytes of a request */

struct peer_conn {
	int fd;
	int waiting;   /* responses that are missing in this batch */
	char line[64]; /* begin of a line that has not ended */
	size_t line_len;
};

static struct peer_conn conns[PEER_CONNS_MAX];
static uint32_t random_state = 1;

static void peer_die(const char *what)
{
	fprintf(stderr, "kv_peer_bench: %s: %s\n", what, strerror(errno));
	exit(EXIT_FAILURE);
}

static uint32_t peer_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 17;
	random_state ^= random_state << 5;
	return random_state;
}

static int peer_connect(int port)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)))
		peer_die("connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

/* Writes one request. Returns its length. */
static int peer_request(char *at)
{
	uint32_t number = peer_random(), key = (number >> 1) % PEER_KEYS;

	if (number & 1)
		return snprintf(at, PEER_LINE_MAX, "get k%u\r\n", key);
	return snprintf(at, PEER_LINE_MAX, "set k%u 0 0 %d\r\n%0*d\r\n", key, PEER_VALUE_LEN,
			PEER_VALUE_LEN, 0);
}

static void peer_send(struct peer_conn *conn, int depth)
{
	static char batch[PEER_DEPTH_MAX * PEER_LINE_MAX];
	size_t len = 0, sent = 0;

	for (int i = 0; i < depth; i++)
		len += (size_t)peer_request(batch + len);
	while (sent < len) {
		ssize_t n = write(conn->fd, batch + sent, len - sent);

		if (n < 0)
			peer_die("write");
		sent += (size_t)n;
	}
	conn->waiting = depth;
}

/* Processes one line of a response. */
static void peer_line(struct peer_conn *conn)
{
	if (!strcmp(conn->line, "END") || !strcmp(conn->line, "STORED")) {
		conn->waiting--;
	} else if (strncmp(conn->line, "VALUE ", 6) != 0 && conn->line[0] != '0') {
		errno = EPROTO;
		peer_die(conn->line);
	}
}

static void peer_receive(struct peer_conn *conn)
{
	static char bytes[65536];
	ssize_t n = read(conn->fd, bytes, sizeof(bytes));

	if (n <= 0)
		peer_die("read");
	for (ssize_t i = 0; i < n; i++) {
		if (bytes[i] != '\n') {
			if (bytes[i] != '\r' && conn->line_len < sizeof(conn->line) - 1)
				conn->line[conn->line_len++] = bytes[i];
			continue;
		}
		conn->line[conn->line_len] = '\0';
		conn->line_len = 0;
		peer_line(conn);
	}
}

/* Runs the closed loop for at least `requests` responses. Returns their number. */
static long peer_loop(int cnt, int depth, long requests)
{
	struct pollfd fds[PEER_CONNS_MAX];
	long done = 0;

	for (int i = 0; i < cnt; i++) {
		fds[i] = (struct pollfd){ .fd = conns[i].fd, .events = POLLIN };
		peer_send(&conns[i], depth);
	}
	while (done < requests) {
		if (poll(fds, (nfds_t)cnt, -1) < 0)
			peer_die("poll");
		for (int i = 0; i < cnt; i++) {
			if (!fds[i].revents)
				continue;
			peer_receive(&conns[i]);
			if (conns[i].waiting)
				continue;
			done += depth;
			peer_send(&conns[i], depth);
		}
	}
	return done;
}

int main(int argc, char **argv)
{
	int cnt = argc > 2 ? atoi(argv[2]) : 0, depth = argc > 3 ? atoi(argv[3]) : 0;
	uint64_t start;
	long done;

	if (argc != 5 || cnt < 1 || cnt > PEER_CONNS_MAX || depth < 1 || depth > PEER_DEPTH_MAX) {
		fprintf(stderr, "usage: kv_peer_bench PORT CONNECTIONS DEPTH REQUESTS\n");
		return 2;
	}
	for (int i = 0; i < cnt; i++)
		conns[i].fd = peer_connect(atoi(argv[1]));
	start = kv_now_ns();
	done = peer_loop(cnt, depth, atol(argv[4]));
	printf("%.0f\n", (double)done * 1e9 / (double)(kv_now_ns() - start));
	return 0;
}
