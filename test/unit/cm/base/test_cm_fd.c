/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Abstract sockets and the descriptors they carry: cm/base/cm_fd.c. */
#include "cm/base/cm_fd.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "cm/base/cm_mac.h"
#include "unit/cm/cm_fixture.h"

static char name[WIRE_CM_NAME_LEN + 1];
static int pair[2];

static void set_up(void)
{
	cr_assert(!cm_mac_init());
	cm_mac_random_name(name, sizeof(name));
	cr_assert(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair));
}

TestSuite(cm_fd, .init = set_up);

static int send_fds(uint32_t cnt)
{
	int fds[WIRE_CM_FDS_MAX] = { 0 }, ret;

	for (uint32_t i = 0; i < cnt; i++)
		fds[i] = cm_test_memfd("x");
	ret = cm_fd_send(pair[0], (const uint8_t *)"hello", 5, fds, cnt);
	for (uint32_t i = 0; i < cnt; i++)
		close(fds[i]);
	return ret;
}

Test(cm_fd, packets_keep_their_borders_and_descriptors)
{
	struct cm_fd_msg msg;

	for (uint32_t cnt = 0; cnt <= WIRE_CM_FDS_MAX; cnt++)
		cr_assert(!send_fds(cnt));
	for (uint32_t cnt = 0; cnt <= WIRE_CM_FDS_MAX; cnt++) {
		cr_assert_eq(cm_fd_recv(pair[1], &msg), 1);
		cr_assert(msg.len == 5 && !memcmp(msg.buf, "hello", 5));
		cr_assert(msg.fd_cnt == cnt && !msg.is_cut);
		for (uint32_t i = 0; i < cnt; i++)
			cr_assert(fcntl(msg.fds[i], F_GETFD) & FD_CLOEXEC);
		cm_fd_drop(&msg);
	}
	cr_assert_eq(cm_fd_recv(pair[1], &msg), -FI_EAGAIN);
}

Test(cm_fd, surplus_descriptors_are_closed_and_reported)
{
	unsigned before = cm_test_fd_count();
	struct cm_fd_msg msg;

	cr_assert(!send_fds(0));
	{
		/* more than cm_fd_send accepts: built by hand */
		char control[CMSG_SPACE(sizeof(int) * 16)];
		struct iovec iov = { .iov_base = "hello", .iov_len = 5 };
		struct msghdr mh = { .msg_iov = &iov,
				     .msg_iovlen = 1,
				     .msg_control = control,
				     .msg_controllen = sizeof(control) };
		struct cmsghdr *cmsg = CMSG_FIRSTHDR(&mh);
		int fds[16];

		for (int i = 0; i < 16; i++)
			fds[i] = cm_test_memfd("x");
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(fds));
		memcpy(CMSG_DATA(cmsg), fds, sizeof(fds));
		cr_assert_eq(sendmsg(pair[0], &mh, 0), 5);
		for (int i = 0; i < 16; i++)
			close(fds[i]);
	}
	cr_assert_eq(cm_fd_recv(pair[1], &msg), 1);
	cr_assert(!msg.is_cut);
	cr_assert_eq(cm_fd_recv(pair[1], &msg), 1);
	cr_assert(msg.is_cut && msg.fd_cnt <= WIRE_CM_FDS_MAX);
	cm_fd_drop(&msg);
	cr_assert_eq(cm_test_fd_count(), before);
}

Test(cm_fd, too_long_packets_are_reported)
{
	uint8_t big[WIRE_CM_MAX + 1] = { 0 };
	struct cm_fd_msg msg;

	cr_assert(!cm_fd_send(pair[0], big, sizeof(big), NULL, 0));
	cr_assert_eq(cm_fd_recv(pair[1], &msg), 1);
	cr_assert(msg.is_cut);
}

Test(cm_fd, descriptors_beyond_the_process_limit_are_reported)
{
	struct rlimit lim, old;
	struct cm_fd_msg msg;
	int probe;

	cr_assert(!send_fds(3));
	getrlimit(RLIMIT_NOFILE, &old);
	probe = dup(pair[0]);
	close(probe);
	lim = old;
	lim.rlim_cur = (rlim_t)probe + 1; /* one number is free */
	cr_assert(!setrlimit(RLIMIT_NOFILE, &lim));
	cr_assert_eq(cm_fd_recv(pair[1], &msg), 1);
	setrlimit(RLIMIT_NOFILE, &old);
	cr_assert(msg.is_cut && msg.fd_cnt < 3);
	cm_fd_drop(&msg);
}

Test(cm_fd, packets_sent_before_the_end_are_received)
{
	struct cm_fd_msg msg;

	/* Unread data at the closing end turns the end into a reset. */
	cr_assert(!cm_fd_send(pair[1], (const uint8_t *)"unread", 6, NULL, 0));
	cr_assert(!send_fds(1));
	close(pair[0]);
	cr_assert_eq(cm_fd_recv(pair[1], &msg), 1);
	cr_assert(msg.len == 5 && msg.fd_cnt == 1);
	cm_fd_drop(&msg);
	cr_assert_eq(cm_fd_recv(pair[1], &msg), 0);
}

Test(cm_fd, sending_to_a_closed_socket_returns_an_error_without_a_signal)
{
	close(pair[1]);
	cr_assert(cm_fd_send(pair[0], (const uint8_t *)"x", 1, NULL, 0) < 0);
}

Test(cm_fd, a_name_connects_to_its_own_listener)
{
	int listener = cm_fd_listen(name), fd, there;
	char other[WIRE_CM_NAME_LEN + 1];
	uid_t uid;

	cr_assert(listener >= 0);
	cr_assert_eq(cm_fd_accept(listener), -FI_EAGAIN);
	fd = cm_fd_socket();
	cm_mac_random_name(other, sizeof(other));
	cr_assert_eq(cm_fd_connect(fd, other), -FI_ECONNREFUSED);
	cr_assert_eq(cm_fd_connect(fd, name), 0);
	there = cm_fd_accept(listener);
	cr_assert(there >= 0);
	cr_assert(!cm_fd_peer_uid(there, &uid) && uid == geteuid());
	cr_assert(!cm_fd_peer_uid(fd, &uid) && uid == geteuid());
	cr_expect_eq(cm_fd_peer_pid(there), getpid());
	cr_expect_eq(cm_fd_peer_pid(fd), getpid());
	cr_expect_eq(cm_fd_peer_pid(-1), 0);
	cr_assert(fcntl(there, F_GETFD) & FD_CLOEXEC && fcntl(fd, F_GETFD) & FD_CLOEXEC &&
		  fcntl(listener, F_GETFD) & FD_CLOEXEC);
	cr_assert_eq(cm_fd_listen(name), -FI_EADDRINUSE);
}

Test(cm_fd, a_full_queue_returns_eagain)
{
	int listener = cm_fd_listen(name), ret = 0;

	cr_assert(!listen(listener, 2));
	for (int i = 0; i < 10 && !ret; i++)
		ret = cm_fd_connect(cm_fd_socket(), name);
	cr_assert_eq(ret, -FI_EAGAIN);
}
