/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Messages with descriptors, and wakeups, of a peer that breaks the rules. */
#include "local/crl_sock.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MOST 8

static int sv[2];

static void setup(void)
{
	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv), 0);
}

static void teardown(void)
{
	close(sv[0]);
	close(sv[1]);
}

TestSuite(crl_sock, .init = setup, .fini = teardown);

/* Sends 8 bytes with `cnt` copies of a descriptor. */
static void send_fds(unsigned cnt)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(MOST * sizeof(int))];
	} control;
	struct iovec iov = { "message", 8 };
	struct msghdr hdr = { .msg_iov = &iov, .msg_iovlen = 1 };

	memset(&control, 0, sizeof(control));
	if (cnt) {
		hdr.msg_control = &control;
		hdr.msg_controllen = CMSG_SPACE(cnt * sizeof(int));
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(cnt * sizeof(int));
		for (unsigned i = 0; i < cnt; i++)
			memcpy(CMSG_DATA(&control.head) + i * sizeof(int), &sv[0], sizeof(int));
	}
	cr_assert_eq(sendmsg(sv[0], &hdr, 0), 8);
}

/* Returns the lowest descriptor that is not in use. */
static int lowest(void)
{
	int fd = dup(sv[0]);

	close(fd);
	return fd;
}

Test(crl_sock, more_descriptors_than_expected_are_refused_and_closed)
{
	struct {
		int fds[CRL_SOCK_FDS];
		int behind[MOST];
	} got;
	int first = lowest();
	char msg[8];

	for (unsigned cnt = 0; cnt <= MOST; cnt++) {
		memset(&got, 0x7E, sizeof(got));
		send_fds(cnt);
		if (cnt <= CRL_SOCK_FDS) {
			cr_expect_eq(crl_sock_recv(sv[1], msg, 8, got.fds, 1000), (int)cnt);
			for (unsigned i = 0; i < cnt; i++)
				close(got.fds[i]);
		} else {
			cr_expect_eq(crl_sock_recv(sv[1], msg, 8, got.fds, 1000), -EPROTO);
		}
		for (unsigned i = 0; i < MOST; i++)
			cr_expect_eq(got.behind[i], 0x7E7E7E7E, "%u descriptors", cnt);
		cr_expect_eq(lowest(), first, "%u descriptors: one is left open", cnt);
	}
}

Test(crl_sock, a_peer_that_wakes_without_end_is_as_good_as_gone)
{
	for (unsigned i = 0; i < CRL_SOCK_WAKES - 1; i++)
		crl_sock_wake(sv[0]);
	cr_expect(crl_sock_drain(sv[1]));
	for (unsigned i = 0; i < CRL_SOCK_WAKES; i++)
		crl_sock_wake(sv[0]);
	cr_expect_not(crl_sock_drain(sv[1]));
	cr_expect(crl_sock_drain(sv[1]), "nothing is left");
	shutdown(sv[0], SHUT_RDWR);
	cr_expect_not(crl_sock_drain(sv[1]));
}
