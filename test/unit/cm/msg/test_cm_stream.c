/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Packets on TCP streams: cm/msg/cm_stream.c. */
#include "cm/msg/cm_stream.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <unistd.h>

#include "unit/cm/cm_fixture.h"

struct ends {
	struct cm_node *node;
	struct cm_stream here, there;
	int listen_fd;
	union cm_addr addr;
};

static void wait_for(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	cr_assert_eq(poll(&pfd, 1, CM_TEST_WAIT_MS), 1);
}

static void open_ends(struct ends *e, const char *key)
{
	memset(e, 0, sizeof(*e));
	e->node = cm_test_node(key, 0);
	cm_test_addr("127.0.0.1", 0, &e->addr);
	e->listen_fd = cm_stream_listen(&e->addr, 4);
	cr_assert_geq(e->listen_fd, 0);
	e->here.src.fd = cm_stream_connect(&e->addr);
	cr_assert_geq(e->here.src.fd, 0);
	wait_for(e->listen_fd);
	e->there.src.fd = cm_fd_accept(e->listen_fd);
	cr_assert_geq(e->there.src.fd, 0);
	e->there.nonce = 77;
}

static void close_ends(struct ends *e)
{
	close(e->here.src.fd);
	close(e->there.src.fd);
	close(e->listen_fd);
	cm_node_close(e->node);
}

/* Sends the bytes of `there` one at a time. */
static size_t trickle(struct ends *e, struct wire_connreq_pkt *pkt, uint8_t *buf)
{
	union cm_addr local, remote;
	size_t len;

	cr_assert_eq(cm_stream_names(&e->there, &local, &remote), 0);
	pkt->nonce = e->there.nonce;
	len = wire_connreq_encode(pkt, buf);
	cm_mac_seal(&e->node->key, &local, &remote, buf, len);
	return len;
}

Test(cm_stream, a_packet_sent_in_single_bytes_is_received_whole)
{
	struct wire_connreq_pkt pkt = { .type = WIRE_CONNREQ_GREET }, got;
	uint8_t buf[WIRE_CONNREQ_MAX];
	struct ends e;
	size_t len;

	open_ends(&e, "k");
	len = trickle(&e, &pkt, buf);
	for (size_t i = 0; i < len; i++) {
		cr_assert_eq(cm_stream_recv(e.node, &e.here, &got), -FI_EAGAIN);
		cr_assert_eq(write(e.there.src.fd, buf + i, 1), 1);
		wait_for(e.here.src.fd);
	}
	cr_assert_eq(cm_stream_recv(e.node, &e.here, &got), 0);
	cr_expect_eq(got.type, WIRE_CONNREQ_GREET);
	cr_expect_eq(e.here.nonce, 77);
	close_ends(&e);
}

Test(cm_stream, packets_back_to_back_come_one_by_one)
{
	struct wire_connreq_pkt greet = { .type = WIRE_CONNREQ_GREET }, got;
	struct wire_connreq_pkt no = { .type = WIRE_CONNREQ_REFUSE,
				       .err = FI_EBUSY,
				       .data_len = 3 };
	struct ends e;

	open_ends(&e, NULL);
	cr_assert_eq(cm_stream_send(e.node, &e.there, &greet), 0);
	cr_assert_eq(cm_stream_send(e.node, &e.there, &no), 0);
	wait_for(e.here.src.fd);
	cr_assert_eq(cm_stream_recv(e.node, &e.here, &got), 0);
	cr_expect_eq(got.type, WIRE_CONNREQ_GREET);
	cr_assert_eq(cm_stream_recv(e.node, &e.here, &got), 0);
	cr_expect_eq(got.type, WIRE_CONNREQ_REFUSE);
	cr_expect_eq(got.err, FI_EBUSY);
	cr_assert_eq(cm_stream_recv(e.node, &e.here, &got), -FI_EAGAIN);
	close_ends(&e);
}

Test(cm_stream, another_streams_nonce_is_refused)
{
	struct wire_connreq_pkt greet = { .type = WIRE_CONNREQ_GREET }, got;
	struct ends e;

	open_ends(&e, NULL);
	e.here.nonce = 78;
	cr_assert_eq(cm_stream_send(e.node, &e.there, &greet), 0);
	wait_for(e.here.src.fd);
	cr_assert_eq(cm_stream_recv(e.node, &e.here, &got), -FI_EINVAL);
	close_ends(&e);
}

Test(cm_stream, another_jobs_packet_is_refused)
{
	struct wire_connreq_pkt greet = { .type = WIRE_CONNREQ_GREET }, got;
	struct cm_node *other = cm_test_node("another", 0);
	struct ends e;

	open_ends(&e, "k");
	cr_assert_eq(cm_stream_send(other, &e.there, &greet), 0);
	wait_for(e.here.src.fd);
	cr_assert_eq(cm_stream_recv(e.node, &e.here, &got), -FI_EKEYREJECTED);
	cm_node_close(other);
	close_ends(&e);
}

Test(cm_stream, invalid_bytes_and_the_end_return_different_errors)
{
	struct wire_connreq_pkt got;
	struct ends e;

	open_ends(&e, NULL);
	cr_assert_eq(write(e.there.src.fd, "HTTP/1.1 400 ", 13), 13);
	wait_for(e.here.src.fd);
	cr_assert_eq(cm_stream_recv(e.node, &e.here, &got), -FI_EINVAL);
	close_ends(&e);
	open_ends(&e, NULL);
	shutdown(e.there.src.fd, SHUT_RDWR);
	wait_for(e.here.src.fd);
	cr_assert_eq(cm_stream_recv(e.node, &e.here, &got), -FI_ECONNRESET);
	close_ends(&e);
}

Test(cm_stream, a_port_can_be_bound_again_at_once)
{
	struct ends e;
	int fd;

	open_ends(&e, NULL);
	close(e.there.src.fd); /* closed first: the lingering end */
	close(e.here.src.fd);
	close(e.listen_fd);
	fd = cm_stream_listen(&e.addr, 4);
	cr_assert_geq(fd, 0);
	close(fd);
	cm_node_close(e.node);
}
