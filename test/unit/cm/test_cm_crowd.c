/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Thousands of connections at one endpoint; some of the hosts fail.
 *
 * All peers share one socket; each has its own address in 127/8, at the same port. The test replies
 * to every PING, except for peers of a host (127.x/16) that was switched off. Exactly those must
 * fail, and not before the peer timeout; likewise the peers of a host that sends BYE. And the last
 * of many connections costs the control thread what the first one does.
 *
 *	COPYRPC_CROWD	connections (default 600; at most 60000)
 */
#include <criterion/criterion.h>
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "cm/ep/cm_ep.h"
#include "cm/conn/cm_dgram.h"
#include "support/rng.h"
#include "unit/cm/cm_fixture.h"
#include "util/clock.h"

#define SMALL      2000u /* peers that fit a short timeout on a slow machine */
#define HOSTS      4u
#define ASKED_MAX  64u /* handshakes in progress */
#define STORM      2048u
#define STORM_PART 256u
#define LIMIT_NS   (120 * UTIL_NS_PER_S)

enum member_state { NEW, ASKED, UP, MUTE };

struct member {
	union cm_addr addr;
	enum member_state state;
	uint64_t nonce;
	uint64_t said_ns;
};

static struct cm_node *node;
static struct cm_end a;
static union cm_addr to;
static int sock;
static struct member *crowd;
static uint32_t crowd_cnt, up_cnt, asked_cnt;
static uint64_t pings, timeout_ns;
static struct cm_mac_key no_key;

/** Member i is process i / HOSTS of host i % HOSTS: 127.(16 + host).x.y */
static void member_init(uint32_t i, uint16_t port)
{
	struct member *m = &crowd[i];

	memset(m, 0, sizeof(*m));
	m->addr.in.sin_family = AF_INET;
	m->addr.in.sin_port = port;
	m->addr.in.sin_addr.s_addr = htonl(0x7F000000u + ((16 + i % HOSTS) << 16) + 1 + i / HOSTS);
	m->nonce = 1 + i;
}

/** Returns NULL for an address of another test, whose late packets reach this port too. */
static struct member *member_at(struct in_addr ip)
{
	uint32_t host = ntohl(ip.s_addr),
		 i = ((host & 0xFFFF) - 1) * HOSTS + (host >> 16 & 0xFF) - 16;

	return i < crowd_cnt ? &crowd[i] : NULL;
}

/** Sends from the member's own address. */
static void say(const struct member *m, struct wire_cm_pkt *pkt)
{
	char control[CMSG_SPACE(sizeof(struct in_pktinfo))] = { 0 };
	uint8_t buf[WIRE_CM_MAX];
	struct iovec iov = { .iov_base = buf };
	struct msghdr msg = { .msg_name = &to.sa,
			      .msg_namelen = cm_addr_len(&to),
			      .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
	struct in_pktinfo info = { .ipi_spec_dst = m->addr.in.sin_addr };

	pkt->nonce = m->nonce;
	pkt->src_inc = m->nonce;
	iov.iov_len = wire_cm_encode(pkt, buf);
	cm_mac_seal(&no_key, &m->addr, &to, buf, iov.iov_len);
	cmsg->cmsg_level = IPPROTO_IP;
	cmsg->cmsg_type = IP_PKTINFO;
	cmsg->cmsg_len = CMSG_LEN(sizeof(info));
	memcpy(CMSG_DATA(cmsg), &info, sizeof(info));
	if (sendmsg(sock, &msg, 0) < 0)
		cr_assert(errno == EAGAIN || errno == ENOBUFS || errno == ECONNREFUSED, "%d",
			  errno);
}

static void say_short(const struct member *m, enum wire_cm_type type)
{
	struct wire_cm_pkt pkt = { .type = type, .dst_inc = a.cep->inc };

	say(m, &pkt);
}

static void ask(struct member *m)
{
	struct wire_cm_pkt req = { .type = WIRE_CM_REQ };

	req.req.paths = WIRE_CM_PATH_UDP;
	say(m, &req);
	m->said_ns = util_clock_ns();
}

static void greet(struct member *m, const struct wire_cm_pkt *ack)
{
	struct wire_cm_pkt hello = { .type = WIRE_CM_HELLO, .dst_inc = a.cep->inc };

	memcpy(hello.hello.cookie, ack->ack.cookie, WIRE_CM_COOKIE_LEN);
	cm_addr_to_wire(&m->addr, &hello.hello.addr);
	hello.hello.params.path = WIRE_CM_PATH_UDP;
	say(m, &hello);
	m->said_ns = util_clock_ns();
}

static void take(struct member *m, const struct wire_cm_pkt *pkt)
{
	pings += pkt->type == WIRE_CM_PING;
	if (m->state == MUTE || pkt->nonce != m->nonce)
		return;
	switch (pkt->type) {
	case WIRE_CM_ACK:
		if (m->state == ASKED)
			greet(m, pkt);
		break;
	case WIRE_CM_WELCOME:
		asked_cnt -= m->state == ASKED;
		up_cnt += m->state != UP;
		m->state = UP;
		say_short(m, WIRE_CM_READY);
		break;
	case WIRE_CM_PING: say_short(m, WIRE_CM_PONG); break;
	default: break;
	}
}

/** Handles received packets, for `ms` at most. */
static void hear(int ms)
{
	char control[CMSG_SPACE(sizeof(struct in_pktinfo))];
	struct pollfd pfd = { .fd = sock, .events = POLLIN };
	uint8_t buf[WIRE_CM_MAX];
	struct wire_cm_pkt pkt;
	struct in_pktinfo info;
	struct member *m;
	ssize_t len;

	for (poll(&pfd, 1, ms);;) {
		struct iovec iov = { .iov_base = buf, .iov_len = sizeof(buf) };
		struct msghdr msg = { .msg_iov = &iov,
				      .msg_iovlen = 1,
				      .msg_control = control,
				      .msg_controllen = sizeof(control) };

		len = recvmsg(sock, &msg, MSG_DONTWAIT);
		if (len < 0)
			return;
		cr_assert_not_null(CMSG_FIRSTHDR(&msg));
		memcpy(&info, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(info));
		m = member_at(info.ipi_addr);
		if (!m)
			continue;
		cr_assert(!wire_cm_decode(buf, (size_t)len, &pkt));
		take(m, &pkt);
	}
}

/** Connects the first `cnt` members in batches, repeating lost packets. */
static void come(uint32_t cnt)
{
	uint64_t began_ns = util_clock_ns();
	uint32_t i;

	while (up_cnt < cnt) {
		cr_assert_lt(util_clock_ns() - began_ns, LIMIT_NS);
		for (i = 0; i < cnt; i++) {
			struct member *m = &crowd[i];

			if (m->state == NEW && asked_cnt < ASKED_MAX) {
				m->state = ASKED;
				asked_cnt++;
				ask(m);
			} else if (m->state == ASKED &&
				   util_clock_ns() - m->said_ns > 100 * UTIL_NS_PER_MS) {
				ask(m);
			}
		}
		hear(1);
	}
	while (cm_end_get(&a, &a.up) < cnt)
		hear(1);
	printf("%u connections in %.2f s\n", cnt, (double)(util_clock_ns() - began_ns) / 1e9);
}

static void open_sock(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	int on = 1, size = 8 << 20;
	socklen_t len = sizeof(any);
	uint32_t i;

	sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	cr_assert_geq(sock, 0);
	cr_assert(!setsockopt(sock, IPPROTO_IP, IP_PKTINFO, &on, sizeof(on)));
	setsockopt(sock, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	cr_assert(!bind(sock, (struct sockaddr *)&any, len));
	cr_assert(!getsockname(sock, (struct sockaddr *)&any, &len));
	for (i = 0; i < crowd_cnt; i++)
		member_init(i, any.sin_port);
}

/** Opens the endpoint and the members' socket. Members have not connected yet. */
static void open_all(uint32_t cnt, uint64_t peer_timeout_ns)
{
	crowd_cnt = cnt;
	crowd = calloc(crowd_cnt, sizeof(*crowd));
	cm_test_paths = (struct cm_paths){ WIRE_CM_PATH_UDP, { WIRE_CM_PATH_UDP } };
	timeout_ns = peer_timeout_ns;
	cm_test_apart = true;
	node = cm_test_node(NULL, (int)(timeout_ns / UTIL_NS_PER_MS));
	cm_end_open(&a, node, "127.0.0.1", 0);
	to = cm_test_addr_of(&a);
	open_sock();
}

static void set_up(void)
{
	uint32_t cnt = (uint32_t)rng_env("COPYRPC_CROWD", 600);

	open_all(cnt, (cnt <= SMALL ? 5 : 30) * UTIL_NS_PER_S);
	come(cnt);
}

static void tear_down(void)
{
	cm_end_close(&a);
	cm_node_close(node);
	close(sock);
	free(crowd);
}

TestSuite(cm_crowd, .timeout = 600);

static uint32_t host_cnt(uint32_t host)
{
	return (crowd_cnt + HOSTS - 1 - host) / HOSTS;
}

/** Checks that exactly the connections of these members have ended. */
static void check_down(uint32_t host)
{
	struct util_list *it;
	uint32_t cnt = 0;

	pthread_mutex_lock(&a.lock);
	for (it = a.conns.next; it != &a.conns; it = it->next) {
		struct cm_end_conn *c = UTIL_CONTAINER_OF(it, struct cm_end_conn, link);
		bool is_of = (ntohl(c->cm->addr.in.sin_addr.s_addr) >> 16 & 0xFF) == 16 + host;

		cr_assert(is_of || !c->is_down, "a connection of another host has ended");
		cnt += c->is_down;
	}
	pthread_mutex_unlock(&a.lock);
	cr_assert_eq(cnt, host_cnt(host));
}

static void until_down(uint32_t cnt)
{
	uint64_t began_ns = util_clock_ns();

	while (cm_end_get(&a, &a.down) < cnt) {
		hear(10);
		cr_assert_lt(util_clock_ns() - began_ns, LIMIT_NS, "%u of %u are over",
			     cm_end_get(&a, &a.down), cnt);
	}
}

Test(cm_crowd, a_host_that_dies_ends_exactly_its_own_connections, .init = set_up, .fini = tear_down)
{
	uint64_t dead_ns = util_clock_ns(), took_ns;
	uint32_t i;

	for (i = 1; i < crowd_cnt; i += HOSTS)
		crowd[i].state = MUTE;
	pings = 0;
	until_down(1);
	took_ns = util_clock_ns() - dead_ns;
	/* The last of them may have sent a packet a quarter of the timeout before the host died. */
	cr_expect_geq(took_ns, timeout_ns / 2, "%lu ms", (unsigned long)(took_ns / UTIL_NS_PER_MS));
	until_down(host_cnt(1));
	took_ns = util_clock_ns() - dead_ns;
	check_down(1);
	cr_expect_eq(a.down_err, -FI_ETIMEDOUT);
	printf("%u of %u ended, the last one after %.2f of %.0f s; %lu PINGs\n", host_cnt(1),
	       crowd_cnt, (double)took_ns / 1e9, (double)timeout_ns / 1e9, pings);
	/* The others stay connected beyond the time in which they would have failed. */
	for (dead_ns = util_clock_ns(); util_clock_ns() - dead_ns < timeout_ns / 4;)
		hear(10);
	check_down(1);
}

/** Every peer of a host sends BYE, repeated until it arrives, so no peer has to time out. */
Test(cm_crowd, a_host_that_leaves_ends_exactly_its_own_connections, .init = set_up,
     .fini = tear_down)
{
	uint32_t i;

	while (cm_end_get(&a, &a.down) < host_cnt(2)) {
		for (i = 2; i < crowd_cnt; i += HOSTS) {
			crowd[i].state = MUTE;
			say_short(&crowd[i], WIRE_CM_BYE);
			if (i % 64 == 2)
				hear(0);
		}
		hear(100);
	}
	check_down(2);
	cr_expect_eq(a.down_err, -FI_ESHUTDOWN);
}

/** Returns the processor time that the control thread has used. */
static uint64_t control_ns(void)
{
	struct timespec used;
	clockid_t clock;

	cr_assert(!pthread_getcpuclockid(node->thread, &clock));
	cr_assert(!clock_gettime(clock, &used));
	return (uint64_t)used.tv_sec * UTIL_NS_PER_S + (uint64_t)used.tv_nsec;
}

/** Connects the next STORM_PART members. Returns the processor time of one. */
static uint64_t storm_ns(uint32_t first)
{
	uint64_t before_ns;

	come(first);
	before_ns = control_ns();
	come(first + STORM_PART);
	return (control_ns() - before_ns) / STORM_PART;
}

static void set_up_storm(void)
{
	open_all(STORM, 120 * UTIL_NS_PER_S); /* PINGs play no part */
}

/*
 * A list that is searched for each packet would cost the last ones several times as much: eight
 * times as many are before them.
 */
Test(cm_crowd, the_last_of_many_connections_costs_what_the_first_do, .init = set_up_storm,
     .fini = tear_down)
{
	uint64_t first_ns = storm_ns(STORM_PART / 2);
	uint64_t last_ns = storm_ns(STORM - STORM_PART);

	printf("a connection: %lu ns, the last ones %lu\n", (unsigned long)first_ns,
	       (unsigned long)last_ns);
	cr_expect_leq(last_ns, 3 * first_ns, "%lu, then %lu ns", (unsigned long)first_ns,
		      (unsigned long)last_ns);
}
