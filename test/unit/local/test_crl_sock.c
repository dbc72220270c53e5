/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Paths of servers; messages with descriptors, and wakeups, of a peer that breaks the rules. */
#include "local/crl_sock.h"

#include <copyrpc/local.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
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

Test(crl_sock, a_message_whose_descriptors_find_no_number_says_so)
{
	struct rlimit limit;
	int first = lowest(), fds[CRL_SOCK_FDS];
	char msg[8];

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	for (int room = 0; room < CRL_SOCK_FDS; room++) {
		struct rlimit low = { (rlim_t)(first + room), limit.rlim_max };

		send_fds(CRL_SOCK_FDS);
		cr_assert_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
		cr_expect_eq(crl_sock_recv(sv[1], msg, 8, fds, 1000), -EMFILE, "room for %d", room);
		cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
		cr_expect_eq(lowest(), first, "room for %d: one is left open", room);
	}
}

Test(crl_sock, a_path_is_taken_from_the_socket_of_a_dead_server_alone)
{
	char dir[] = "/tmp/crl-sock-XXXXXX", path[64];
	struct crl_sock_file file;
	struct stat st;
	int sock;

	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/name", dir);
	sock = crl_sock_listen(path, &file);
	cr_assert_geq(sock, 0);
	cr_expect_eq(crl_sock_listen(path, &file), -EADDRINUSE, "a server listens");
	close(sock); /* leaves the file, like a crash */
	sock = crl_sock_listen(path, &file);
	cr_assert_geq(sock, 0);
	close(sock);
	cr_assert_eq(unlink(path), 0);
	sock = open(path, O_CREAT | O_WRONLY, 0600);
	cr_assert_eq(write(sock, "data", 4), 4);
	close(sock);
	cr_expect_eq(crl_sock_listen(path, &file), -EADDRINUSE, "a file of the user");
	cr_expect_eq(stat(path, &st), 0);
	cr_expect_eq(st.st_size, 4);
	unlink(path);
	cr_assert_eq(rmdir(dir), 0);
}

#define OPENERS 3
#define ROUNDS  300

struct opener {
	pthread_barrier_t *start;
	const char *path;
	int sock;
};

static void *open_at_once(void *arg)
{
	struct opener *opener = arg;
	struct crl_sock_file file;

	pthread_barrier_wait(opener->start);
	opener->sock = crl_sock_listen(opener->path, &file);
	return NULL;
}

/* Returns the socket of the one opener that has the path. Fails the test if others have it too. */
static int the_one_that_opened(const char *path)
{
	struct opener openers[OPENERS];
	pthread_t threads[OPENERS];
	pthread_barrier_t start;
	int sock = -1;

	pthread_barrier_init(&start, NULL, OPENERS);
	for (int i = 0; i < OPENERS; i++) {
		openers[i] = (struct opener){ .start = &start, .path = path };
		cr_assert_eq(pthread_create(&threads[i], NULL, open_at_once, &openers[i]), 0);
	}
	for (int i = 0; i < OPENERS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < OPENERS; i++) {
		if (openers[i].sock == -EADDRINUSE)
			continue;
		cr_assert_geq(openers[i].sock, 0, "error %d", openers[i].sock);
		cr_assert_eq(sock, -1, "two servers have one path");
		sock = openers[i].sock;
	}
	cr_assert_geq(sock, 0, "no server has the path");
	pthread_barrier_destroy(&start);
	return sock;
}

Test(crl_sock, one_of_the_servers_that_open_a_path_at_the_same_moment_has_it)
{
	char dir[] = "/tmp/crl-sock-XXXXXX", path[64];

	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/name", dir);
	for (int i = 0; i < ROUNDS; i++) {
		int sock = the_one_that_opened(path), client = crl_sock_connect(path, 1000), peer;

		cr_assert_geq(client, 0, "round %d: error %d", i, client);
		peer = accept(sock, NULL, NULL);
		cr_assert_geq(peer, 0, "round %d", i);
		close(peer);
		close(client);
		close(sock); /* leaves the file, like a crash */
	}
	cr_assert_eq(unlink(path), 0);
	cr_assert_eq(rmdir(dir), 0, "a file is left behind");
}

/* Opens a path, and has the result of crl_sock_listen. */
static void *listen_once(void *arg)
{
	struct opener *opener = arg;
	struct crl_sock_file file;

	opener->sock = crl_sock_listen(opener->path, &file);
	return NULL;
}

/* Another user holds the lock of the directory, and keeps it. */
Test(crl_sock, without_the_lock_a_path_that_is_free_is_taken_and_none_is_cleared)
{
	char dir[] = "/tmp/crl-sock-XXXXXX", paths[OPENERS][64];
	struct opener openers[OPENERS];
	pthread_t threads[OPENERS];
	struct crl_sock_file file;
	int server, lock;

	cr_assert_not_null(mkdtemp(dir));
	for (int i = 0; i < OPENERS; i++)
		snprintf(paths[i], sizeof(paths[i]), "%s/%d", dir, i);
	server = crl_sock_listen(paths[1], &file);
	close(crl_sock_listen(paths[2], &file)); /* leaves the file, like a crash */
	lock = open(dir, O_RDONLY);
	cr_assert_eq(flock(lock, LOCK_SH), 0);
	for (int i = 0; i < OPENERS; i++) {
		openers[i] = (struct opener){ .path = paths[i] };
		cr_assert_eq(pthread_create(&threads[i], NULL, listen_once, &openers[i]), 0);
	}
	for (int i = 0; i < OPENERS; i++)
		pthread_join(threads[i], NULL);
	cr_expect_geq(openers[0].sock, 0, "error %d", openers[0].sock);
	cr_expect_eq(openers[1].sock, -EADDRINUSE, "a server listens");
	cr_expect_eq(openers[2].sock, -EBUSY);
	close(lock);
	close(openers[0].sock);
	close(server);
	server = crl_sock_listen(paths[2], &file);
	cr_expect_geq(server, 0, "error %d", server);
	close(server);
	for (int i = 0; i < OPENERS; i++)
		cr_assert_eq(unlink(paths[i]), 0);
	cr_assert_eq(rmdir(dir), 0, "a file is left behind");
}

/* The first server's socket was removed, and a second server has its path by now. */
Test(crl_sock, a_server_that_closes_leaves_the_socket_of_another)
{
	char dir[] = "/tmp/crl-sock-XXXXXX", path[64];
	struct crl_server *first, *second;
	int client;

	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/name", dir);
	cr_assert_eq(crl_server_open(&first, CRL_IPC, path, NULL), 0);
	cr_assert_eq(unlink(path), 0);
	cr_assert_eq(crl_server_open(&second, CRL_IPC, path, NULL), 0);
	crl_server_close(first);
	client = crl_sock_connect(path, 1000);
	cr_expect_geq(client, 0, "error %d", client);
	close(client);
	crl_server_close(second);
	cr_assert_eq(rmdir(dir), 0, "a file is left behind");
}

Test(crl_sock, a_peer_that_wakes_without_end_is_as_good_as_gone)
{
	for (unsigned i = 0; i < CRL_SOCK_WAKES - 1; i++)
		crl_sock_wake(sv[0]);
	cr_expect(crl_sock_drain(sv[1], 0));
	for (unsigned i = 0; i < CRL_SOCK_WAKES; i++)
		crl_sock_wake(sv[0]);
	cr_expect_not(crl_sock_drain(sv[1], 0));
	cr_expect(crl_sock_drain(sv[1], 0), "nothing is left");
	for (unsigned i = 0; i < CRL_SOCK_WAKES + 9; i++)
		crl_sock_wake(sv[0]);
	cr_expect(crl_sock_drain(sv[1], 10), "this side was armed ten times");
	shutdown(sv[0], SHUT_RDWR);
	cr_expect_not(crl_sock_drain(sv[1], 0));
}
