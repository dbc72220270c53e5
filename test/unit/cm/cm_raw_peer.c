/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Raw peer, which can violate the protocol: see cm_fixture.h. */
#include "unit/cm/cm_fixture.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <unistd.h>

#include "cm/base/cm_addr.h"
#include "util/clock.h"

void cm_raw_peer_open(struct cm_raw_peer *s, const char *ip, const char *key)
{
	union cm_addr raw;
	socklen_t len = sizeof(raw);

	CM_CHECK(!cm_mac_init());
	memset(&raw, 0, sizeof(raw));
	s->stream = -1;
	cm_test_addr(ip, 0, &s->addr);
	s->udp = socket(s->addr.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	CM_CHECK(s->udp >= 0 && !bind(s->udp, &s->addr.sa, cm_addr_len(&s->addr)));
	CM_CHECK(!getsockname(s->udp, &raw.sa, &len));
	cm_addr_import(&raw.sa, &s->addr);
	s->inc = s->first_inc = s->sent_inc = cm_mac_random();
	s->nonce = cm_mac_random();
	cm_mac_key_set(&s->key, key);
}

void cm_raw_peer_refuse(struct cm_raw_peer *s)
{
	union cm_addr nobody = s->addr;

	cm_addr_set_port(&nobody, 1);
	CM_CHECK(!connect(s->udp, &nobody.sa, cm_addr_len(&nobody)));
}

void cm_raw_peer_close(struct cm_raw_peer *s)
{
	close(s->udp);
	if (s->stream >= 0)
		close(s->stream);
}

static size_t cm_raw_peer_seal(struct cm_raw_peer *s, const union cm_addr *to,
			       struct wire_cm_pkt *pkt, uint8_t *buf)
{
	size_t len;

	if (!pkt->src_inc)
		pkt->src_inc = s->inc;
	if (!pkt->nonce)
		pkt->nonce = s->nonce;
	s->sent_inc = pkt->src_inc;
	len = wire_cm_encode(pkt, buf);
	cm_mac_seal(&s->key, &s->addr, to, buf, len);
	return len;
}

void cm_raw_peer_send(struct cm_raw_peer *s, const union cm_addr *to, struct wire_cm_pkt *pkt)
{
	uint8_t buf[WIRE_CM_MAX];
	size_t len = cm_raw_peer_seal(s, to, pkt, buf);

	CM_CHECK(sendto(s->udp, buf, len, 0, &to->sa, cm_addr_len(to)) == (ssize_t)len);
}

static bool cm_raw_peer_poll(int fd, int ms)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return poll(&pfd, 1, ms) == 1;
}

static void cm_raw_peer_take(struct cm_raw_peer *s, struct wire_cm_pkt *pkt)
{
	uint8_t buf[WIRE_CM_MAX];
	ssize_t n = recv(s->udp, buf, sizeof(buf), 0);

	CM_CHECK(n > 0);
	CM_CHECK(!wire_cm_decode(buf, (size_t)n, pkt));
}

static bool cm_raw_peer_is_own(const struct cm_raw_peer *s, const struct wire_cm_pkt *pkt)
{
	uint64_t inc = pkt->dst_inc;

	return !inc || inc == s->inc || inc == s->first_inc || inc == s->sent_inc;
}

bool cm_raw_peer_recv(struct cm_raw_peer *s, struct wire_cm_pkt *pkt, int ms)
{
	const uint64_t end_ns = util_clock_ns() + (uint64_t)ms * UTIL_NS_PER_MS;
	uint64_t now_ns;

	do {
		now_ns = util_clock_ns();
		ms = now_ns < end_ns ? (int)((end_ns - now_ns) / UTIL_NS_PER_MS) : 0;
		if (!cm_raw_peer_poll(s->udp, ms))
			return false;
		cm_raw_peer_take(s, pkt);
	} while (!cm_raw_peer_is_own(s, pkt));
	return true;
}

struct wire_cm_pkt cm_raw_peer_await(struct cm_raw_peer *s, enum wire_cm_type type)
{
	struct wire_cm_pkt pkt;

	do
		cr_assert(cm_raw_peer_recv(s, &pkt, CM_TEST_WAIT_MS), "no %s",
			  wire_cm_type_name(type));
	while (pkt.type != type);
	return pkt;
}

bool cm_raw_peer_recv_reply(struct cm_raw_peer *s, struct wire_cm_pkt *pkt)
{
	do
		if (!cm_raw_peer_recv(s, pkt, CM_TEST_WAIT_MS))
			return false;
	while (pkt->type == WIRE_CM_PING);
	return true;
}

bool cm_raw_peer_get_ack(struct cm_raw_peer *s, const union cm_addr *to, struct wire_cm_pkt *ack)
{
	struct wire_cm_pkt req = { .type = WIRE_CM_REQ };

	req.req.paths = WIRE_CM_PATH_SHM | WIRE_CM_PATH_NIC;
	cm_raw_peer_send(s, to, &req);
	return cm_raw_peer_recv_reply(s, ack) && ack->type == WIRE_CM_ACK;
}

bool cm_raw_peer_connect(struct cm_raw_peer *s, const struct wire_cm_pkt *ack)
{
	if (s->stream >= 0)
		close(s->stream);
	s->stream = cm_fd_socket();
	CM_CHECK(s->stream >= 0);
	return !cm_fd_connect(s->stream, ack->ack.name);
}

void cm_raw_peer_make_hello(struct cm_raw_peer *s, const struct wire_cm_pkt *ack,
			    struct wire_cm_pkt *hello)
{
	*hello = (struct wire_cm_pkt){ .type = WIRE_CM_HELLO, .dst_inc = ack->src_inc };
	memcpy(hello->hello.cookie, ack->ack.cookie, WIRE_CM_COOKIE_LEN);
	cm_addr_to_wire(&s->addr, &hello->hello.addr);
	hello->hello.params.path = s->stream < 0 ? WIRE_CM_PATH_NIC : WIRE_CM_PATH_SHM;
}

void cm_raw_peer_send_stream(struct cm_raw_peer *s, const union cm_addr *to,
			     struct wire_cm_pkt *pkt, const int *fds, uint32_t fd_cnt)
{
	uint8_t buf[WIRE_CM_MAX];
	size_t len = cm_raw_peer_seal(s, to, pkt, buf);

	CM_CHECK(!cm_fd_send(s->stream, buf, len, fds, fd_cnt));
}

int cm_raw_peer_recv_stream(struct cm_raw_peer *s, struct wire_cm_pkt *pkt, int ms)
{
	struct cm_fd_msg msg;
	int ret;

	if (!cm_raw_peer_poll(s->stream, ms))
		return -1;
	ret = cm_fd_recv(s->stream, &msg);
	if (ret != 1)
		return 0;
	cm_fd_drop(&msg);
	CM_CHECK(!wire_cm_decode(msg.buf, msg.len, pkt));
	return 1;
}

void cm_raw_peer_establish(struct cm_raw_peer *s, const union cm_addr *to)
{
	struct wire_cm_pkt ack, hello, reply, ready = { .type = WIRE_CM_READY };

	cr_assert(cm_raw_peer_get_ack(s, to, &ack));
	cr_assert(cm_raw_peer_connect(s, &ack));
	cm_raw_peer_make_hello(s, &ack, &hello);
	cm_raw_peer_send_stream(s, to, &hello, NULL, 0);
	cr_assert(cm_raw_peer_recv_stream(s, &reply, CM_TEST_WAIT_MS) == 1);
	cr_assert_eq(reply.type, WIRE_CM_WELCOME);
	ready.dst_inc = ack.src_inc;
	cm_raw_peer_send_stream(s, to, &ready, NULL, 0);
}
