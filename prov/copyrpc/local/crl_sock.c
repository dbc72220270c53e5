/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unix sockets (crl_sock.h). No state. */
#include "local/crl_sock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "local/crl_lock.h"
#include "local/crl_wait.h"
#include "util/uid.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

#define CRL_SOCK_NAME_MAX 64
#define CRL_SOCK_BACKLOG  1024

/* Stores the address of a name: a path, or an abstract name that has the user in it. */
static int crl_sock_address(const char *name, struct sockaddr_un *addr, socklen_t *len)
{
	size_t head = offsetof(struct sockaddr_un, sun_path);
	int cnt;

	*addr = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (!name || !*name)
		return -EINVAL;
	if (*name == '/') {
		cnt = snprintf(addr->sun_path, sizeof(addr->sun_path), "%s", name);
		*len = (socklen_t)(head + (size_t)cnt + 1);
		return (size_t)cnt < sizeof(addr->sun_path) ? 0 : -ENAMETOOLONG;
	}
	if (strlen(name) > CRL_SOCK_NAME_MAX)
		return -ENAMETOOLONG;
	cnt = snprintf(addr->sun_path + 1, sizeof(addr->sun_path) - 1, "copyrpc-local/%u/%s",
		       (unsigned int)geteuid(), name);
	*len = (socklen_t)(head + 1 + (size_t)cnt);
	return 0;
}

static int crl_sock_new(void)
{
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return sock < 0 ? -errno : sock;
}

/* Returns true if the path is that of a socket: connect(2) refuses other files in the same way. */
static bool crl_sock_is_socket(const char *name)
{
	struct stat st;

	return !lstat(name, &st) && S_ISSOCK(st.st_mode);
}

/*
 * Removes the socket of a path if no server listens there. lock: of the path, or the negative errno
 * because of which there is none. Returns 0, -EADDRINUSE if a server listens or the path is of
 * another file, or the error of the lock: without it nothing is removed.
 */
static int crl_sock_clear(const char *name, const struct sockaddr_un *addr, socklen_t len, int lock)
{
	int ret, sock = crl_sock_new();

	if (sock < 0)
		return sock;
	ret = connect(sock, (const struct sockaddr *)addr, len) ? errno : 0;
	close(sock);
	if (ret != ECONNREFUSED || !crl_sock_is_socket(name))
		return -EADDRINUSE;
	if (lock < 0)
		return lock;
	return unlink(name) ? -EADDRINUSE : 0;
}

static int crl_sock_bind(int sock, const char *name, const struct sockaddr_un *addr, socklen_t len,
			 int lock)
{
	int ret;

	if (!bind(sock, (const struct sockaddr *)addr, len))
		return 0;
	if (errno != EADDRINUSE || *name != '/')
		return -errno;
	ret = crl_sock_clear(name, addr, len, lock);
	if (ret)
		return ret;
	return bind(sock, (const struct sockaddr *)addr, len) ? -errno : 0;
}

/* Returns a listening socket or a negative errno. lock: as for crl_sock_clear. */
static int crl_sock_open(const char *name, const struct sockaddr_un *addr, socklen_t len, int lock)
{
	int ret, sock = crl_sock_new();

	if (sock < 0)
		return sock;
	ret = crl_sock_bind(sock, name, addr, len, lock);
	if (!ret && listen(sock, CRL_SOCK_BACKLOG))
		ret = -errno;
	if (!ret)
		return sock;
	close(sock);
	return ret;
}

int crl_sock_listen(const char *name, struct crl_sock_file *file)
{
	struct sockaddr_un addr;
	struct stat st;
	socklen_t len;
	int sock, lock, ret = crl_sock_address(name, &addr, &len);

	*file = (struct crl_sock_file){ .ino = 0 };
	if (ret)
		return ret;
	if (*name != '/')
		return crl_sock_open(name, &addr, len, -ENOLCK);
	/* The lock covers listen(2) too: until then a bound socket looks like that of a crash. */
	lock = crl_lock_take(name);
	sock = crl_sock_open(name, &addr, len, lock);
	if (sock >= 0 && !lstat(name, &st))
		*file = (struct crl_sock_file){ .dev = st.st_dev, .ino = st.st_ino };
	if (lock >= 0)
		crl_lock_drop(lock);
	return sock;
}

void crl_sock_end(int sock)
{
	shutdown(sock, SHUT_RDWR);
	close(sock);
}

void crl_sock_unlink(const char *name, const struct crl_sock_file *file)
{
	struct stat st;

	if (file->ino && !lstat(name, &st) && st.st_dev == file->dev && st.st_ino == file->ino)
		unlink(name);
}

int crl_sock_connect(const char *name, int timeout_ms)
{
	struct crl_wait wait = crl_wait_begin(timeout_ms, -1);
	struct sockaddr_un addr;
	socklen_t len;
	int sock, ret = crl_sock_address(name, &addr, &len);

	if (ret)
		return ret;
	sock = crl_sock_new();
	if (sock < 0)
		return sock;
	/* -EAGAIN: the server's backlog is full, which ends when the server accepts. */
	while (connect(sock, (const struct sockaddr *)&addr, len)) {
		ret = -errno;
		if (ret != -EAGAIN || !crl_wait_left(&wait)) {
			close(sock);
			return ret == -EAGAIN ? -ETIMEDOUT : ret;
		}
		poll(NULL, 0, 1);
	}
	return sock;
}

int crl_sock_check_user(int sock)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return -errno;
	return cred.uid == geteuid() && util_uid_is_known(cred.uid) ? 0 : -EACCES;
}

int crl_sock_pidfd(int sock)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	int fd = -1;
	socklen_t fd_len = sizeof(fd);

	if (!getsockopt(sock, SOL_SOCKET, SO_PEERPIDFD, &fd, &fd_len))
		return fd;
	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return -1;
	/* Before 6.5: a process that ended meanwhile has closed its end too. */
	fd = (int)syscall(SYS_pidfd_open, cred.pid, 0);
	return fd < 0 ? -1 : fd;
}

int crl_sock_spare(void)
{
	return open("/", O_PATH | O_CLOEXEC);
}

int crl_sock_send(int sock, const void *msg, size_t len, const int *fds, int fd_cnt)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(CRL_SOCK_FDS * sizeof(int))];
	} control;
	struct iovec iov = { .iov_base = (void *)msg, .iov_len = len };
	struct msghdr hdr = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd_cnt) {
		memset(&control, 0, sizeof(control));
		hdr.msg_control = &control;
		hdr.msg_controllen = CMSG_SPACE((size_t)fd_cnt * sizeof(int));
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN((size_t)fd_cnt * sizeof(int));
		memcpy(CMSG_DATA(&control.head), fds, (size_t)fd_cnt * sizeof(int));
	}
	return sendmsg(sock, &hdr, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* Space for descriptors. Alignment adds room for one more than CRL_SOCK_FDS: a peer may use it. */
union crl_sock_control {
	struct cmsghdr head;
	char space[CMSG_SPACE(CRL_SOCK_FDS * sizeof(int))];
};

#define CRL_SOCK_ROOM ((sizeof(union crl_sock_control) - CMSG_LEN(0)) / sizeof(int))

/* Stores the descriptors of a message, at most CRL_SOCK_ROOM. Returns their number. */
static int crl_sock_fds(struct msghdr *hdr, int *fds)
{
	struct cmsghdr *head = CMSG_FIRSTHDR(hdr);
	size_t cnt;

	if (!head || head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
		return 0;
	cnt = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	if (cnt > CRL_SOCK_ROOM)
		cnt = CRL_SOCK_ROOM;
	memcpy(fds, CMSG_DATA(head), cnt * sizeof(int));
	return (int)cnt;
}

int crl_sock_recv(int sock, void *msg, size_t len, int *fds, int timeout_ms)
{
	union crl_sock_control control;
	struct iovec iov = { .iov_base = msg, .iov_len = len };
	struct msghdr hdr = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	struct pollfd pfd = { .fd = sock, .events = POLLIN };
	int all[CRL_SOCK_ROOM], cnt, ret = poll(&pfd, 1, timeout_ms);
	ssize_t got;

	if (ret <= 0)
		return ret ? -errno : -ETIMEDOUT;
	got = recvmsg(sock, &hdr, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (got < 0)
		return -errno;
	cnt = crl_sock_fds(&hdr, all);
	if ((size_t)got == len && !(hdr.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) &&
	    cnt <= CRL_SOCK_FDS) {
		memcpy(fds, all, (size_t)cnt * sizeof(int));
		return cnt;
	}
	/* Descriptors are missing for which there was space: this process has no number left. */
	ret = (hdr.msg_flags & MSG_CTRUNC) && cnt < CRL_SOCK_FDS ? -EMFILE : -EPROTO;
	while (cnt)
		close(all[--cnt]);
	return got ? ret : -ECONNREFUSED;
}

void crl_sock_wake(int sock)
{
	/* An error means that a wakeup is waiting already, or that the peer is gone. */
	(void)!send(sock, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

bool crl_sock_drain(int sock, uint32_t armed)
{
	uint32_t most = CRL_SOCK_WAKES + (armed < CRL_SOCK_ARMED ? armed : CRL_SOCK_ARMED);
	char byte[1];

	for (uint32_t i = 0; i < most; i++) {
		ssize_t got = recv(sock, byte, sizeof(byte), MSG_DONTWAIT);

		if (!got)
			return false;
		if (got < 0)
			return errno == EAGAIN || errno == EINTR;
	}
	return false;
}
