/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A process of another user gets into no local channel and learns no byte of it.
 *
 * A server and an honest client of root exchange a secret. A process with the uid 65534 then
 * tries every way in: the name, the address behind the name, the socket's path, a server of its own
 * under the user's name, the descriptors of both processes under /proc, pidfd_getfd, their memory,
 * and ptrace. The honest client goes on, and its place is not taken.
 *
 * usage: local_foreign delegation|ipc     (as root; exits with 77 otherwise)
 */
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <stddef.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "integ_local.h"

#define NOBODY   65534
#define SECRET   "the secret"
#define ATTEMPTS 3

/* Memory that the processes share. */
struct board {
	pid_t server, client;
	_Atomic uint32_t trips; /* calls of the honest client */
	atomic_bool stop, stop_server;
	struct crl_counters counters;
};

static struct board *board;
static char name[64];

static void serve(enum crl_kind kind)
{
	struct crl_server *server;
	struct crl_request request;

	CHECK(!crl_server_open(&server, kind, name, NULL));
	if (*name == '/')
		CHECK(!chmod(name, 0777)); /* the mode is not what protects it */
	while (!board->stop_server) {
		int n = crl_server_take(server, &request, 1);

		if (n)
			crl_server_reply(server, request.handle, SECRET, sizeof(SECRET));
		else
			crl_server_wait(server, 1);
		crl_server_counters(server, &board->counters);
	}
	_exit(0);
}

static void call(void)
{
	struct crl_client *client = local_open(name);
	struct crl_response response;

	while (!board->stop) {
		CHECK(!crl_client_call(client, SECRET, sizeof(SECRET), NULL, 0));
		while (!crl_client_poll(client, &response, 1))
			crl_client_wait(client, -1);
		CHECK(!response.status && !strcmp(response.data, SECRET));
		board->trips++;
		local_nap_us(100);
	}
	_exit(0);
}

/* ---- the other user ---- */

static struct sockaddr_un address(socklen_t *len)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	size_t cnt;

	if (*name == '/')
		cnt = (size_t)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", name) + 1;
	else
		cnt = 1 + (size_t)snprintf(addr.sun_path + 1, sizeof(addr.sun_path) - 1,
					   "copyrpc-local/0/%s", name);
	*len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + cnt);
	return addr;
}

/* The library refuses, or finds another name. */
static void try_client(void)
{
	struct crl_client *client;
	int ret = crl_client_open(&client, name, LOCAL_LIMIT_MS);

	CHECK(ret == (*name == '/' ? -EACCES : -ECONNREFUSED));
}

/* A program of the other user's own: what it gets is the refusal, and no descriptor. */
static void try_socket(void)
{
	int sock = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	char bytes[512] = { 0 }, control[512];
	struct iovec iov = { bytes, sizeof(bytes) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	socklen_t len;
	struct sockaddr_un addr = address(&len);
	ssize_t got;

	CHECK(sock >= 0 && !connect(sock, (struct sockaddr *)&addr, len));
	got = recvmsg(sock, &msg, 0);
	CHECK(got >= 0 && !CMSG_FIRSTHDR(&msg));
	for (ssize_t i = 16; i < got; i++) /* behind magic, version and status */
		CHECK(!bytes[i]);
	CHECK(recvmsg(sock, &msg, 0) <= 0);
	close(sock);
}

/* Opens what /proc shows of a process. */
static void try_proc(pid_t pid)
{
	static const char *const files[] = {
		"mem", "maps", "environ", "fd/3", "fd/4", "map_files"
	};
	char path[64];

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		int fd;

		snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, files[i]);
		fd = open(path, O_RDONLY);
		CHECK(fd < 0 || read(fd, path, sizeof(path)) <= 0);
		if (fd >= 0)
			close(fd);
	}
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	CHECK(!opendir(path) && errno == EACCES);
}

static void try_process(pid_t pid)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

	try_proc(pid);
	CHECK(pidfd >= 0);
	for (int fd = 0; fd < 64; fd++)
		CHECK(syscall(SYS_pidfd_getfd, pidfd, fd, 0) == -1 && errno == EPERM);
	close(pidfd);
	CHECK(ptrace(PTRACE_ATTACH, pid, NULL, NULL) == -1 && errno == EPERM);
	CHECK(kill(pid, SIGSTOP) == -1 && errno == EPERM);
}

/* A server of the other user under the name of this one does not get its clients. */
static void try_server(void)
{
	int sock = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	socklen_t len;
	struct sockaddr_un addr = address(&len);

	CHECK(bind(sock, (struct sockaddr *)&addr, len) == -1);
	CHECK(errno == EADDRINUSE);
	close(sock);
}

static void attack(void)
{
	CHECK(!setgroups(0, NULL) && !setgid(NOBODY) && !setuid(NOBODY));
	for (int i = 0; i < ATTEMPTS; i++) {
		try_client();
		try_socket();
		try_process(board->server);
		try_process(board->client);
		try_server();
	}
	_exit(0);
}

/* ---- the parent ---- */

static void await_trips(uint32_t more)
{
	uint32_t until = board->trips + more;
	uint64_t limit = local_now_ns() + LOCAL_LIMIT_NS;

	while (board->trips < until) {
		CHECK(local_now_ns() < limit);
		local_nap_us(1000);
	}
}

static void await_end(pid_t pid)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

/* A name that the other user has taken first: the owner's clients refuse its server. */
static void check_impostor(void)
{
	struct crl_client *client;
	pid_t pid;

	board->trips = 0;
	pid = local_fork();
	if (!pid) {
		socklen_t len;
		struct sockaddr_un addr = address(&len);
		int sock = socket(AF_UNIX, SOCK_SEQPACKET, 0);

		CHECK(!setgroups(0, NULL) && !setgid(NOBODY) && !setuid(NOBODY));
		CHECK(!bind(sock, (struct sockaddr *)&addr, len) && !listen(sock, 8));
		board->trips = 1;
		pause();
	}
	while (!board->trips)
		local_nap_us(1000);
	CHECK(crl_client_open(&client, name, LOCAL_LIMIT_MS) == -EACCES);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	if (*name == '/')
		unlink(name);
	board->trips = 0;
}

static void check(enum crl_kind kind)
{
	pid_t server, client, foreigner;

	check_impostor();
	board->stop = board->stop_server = false;
	server = local_fork();
	if (!server)
		serve(kind);
	client = local_fork();
	if (!client)
		call();
	board->server = server;
	board->client = client;
	await_trips(10);
	foreigner = local_fork();
	if (!foreigner)
		attack();
	await_end(foreigner);
	await_trips(10);
	CHECK(board->counters.clients == 1 && board->counters.accepted == 1);
	CHECK(board->counters.refused >= ATTEMPTS);
	board->stop = true;
	await_end(client);
	board->stop_server = true;
	await_end(server);
	if (*name == '/')
		unlink(name);
}

int main(int argc, char **argv)
{
	enum crl_kind kind = argc > 1 && !strcmp(argv[1], "delegation") ? CRL_DELEGATION : CRL_IPC;

	if (geteuid()) {
		puts("needs root");
		return 77;
	}
	board = local_board(sizeof(*board));
	snprintf(name, sizeof(name), "local-foreign.%d", (int)getpid());
	check(kind);
	snprintf(name, sizeof(name), "/tmp/local-foreign.%d", (int)getpid());
	check(kind);
	puts("ok");
	return 0;
}
