/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Abstract sockets and descriptors: see cm_fd.h. */
#include "cm/base/cm_fd.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "util/uid.h"

#define CM_FD_BACKLOG 4096 /* the kernel limits it to net.core.somaxconn */
#define CM_FD_PREFIX  "copyrpc-"

static socklen_t cm_fd_name(struct sockaddr_un *un, const char *name)
{
	size_t prefix_len = sizeof(CM_FD_PREFIX) - 1;

	memset(un, 0, sizeof(*un));
	un->sun_family = AF_UNIX;
	memcpy(un->sun_path + 1, CM_FD_PREFIX, prefix_len);
	memcpy(un->sun_path + 1 + prefix_len, name, WIRE_CM_NAME_LEN);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + prefix_len +
			   WIRE_CM_NAME_LEN);
}

int cm_fd_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

int cm_fd_listen(const char *name)
{
	struct sockaddr_un un;
	socklen_t len = cm_fd_name(&un, name);
	int fd = cm_fd_socket();
	int ret;

	if (fd < 0)
		return fd;
	if (!bind(fd, (struct sockaddr *)&un, len) && !listen(fd, CM_FD_BACKLOG))
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}

int cm_fd_accept(int listen_fd)
{
	int fd;

	do
		fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
	return fd < 0 ? -errno : fd;
}

int cm_fd_connect(int fd, const char *name)
{
	struct sockaddr_un un;
	socklen_t len = cm_fd_name(&un, name);

	return connect(fd, (struct sockaddr *)&un, len) ? -errno : 0;
}

int cm_fd_peer_uid(int fd, uid_t *uid)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return -errno;
	*uid = cred.uid;
	return util_uid_is_known(cred.uid) ? 0 : -EOVERFLOW;
}

pid_t cm_fd_peer_pid(int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) ? 0 : cred.pid;
}

/* Ancillary buffer for the descriptors of one packet, aligned for the kernel. */
union cm_fd_control {
	char bytes[CMSG_SPACE(sizeof(int) * WIRE_CM_FDS_MAX)];
	struct cmsghdr align;
};

static void cm_fd_attach(struct msghdr *mh, union cm_fd_control *control, const int *fds,
			 uint32_t fd_cnt)
{
	struct cmsghdr *cmsg;

	memset(control, 0, sizeof(*control));
	mh->msg_control = control->bytes;
	mh->msg_controllen = CMSG_SPACE(sizeof(int) * fd_cnt);
	cmsg = CMSG_FIRSTHDR(mh);
	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int) * fd_cnt);
	memcpy(CMSG_DATA(cmsg), fds, sizeof(int) * fd_cnt);
}

int cm_fd_send(int fd, const uint8_t *buf, size_t len, const int *fds, uint32_t fd_cnt)
{
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	union cm_fd_control control;
	ssize_t n;

	if (fd_cnt)
		cm_fd_attach(&mh, &control, fds, fd_cnt);
	do
		n = sendmsg(fd, &mh, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == ETOOMANYREFS ? -FI_EAGAIN : -errno;
	return 0;
}

static void cm_fd_collect(struct msghdr *mh, struct cm_fd_msg *msg)
{
	struct cmsghdr *cmsg;

	for (cmsg = CMSG_FIRSTHDR(mh); cmsg; cmsg = CMSG_NXTHDR(mh, cmsg)) {
		if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
			continue;
		msg->fd_cnt = (uint32_t)((cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(msg->fds, CMSG_DATA(cmsg), msg->fd_cnt * sizeof(int));
	}
}

static ssize_t cm_fd_recvmsg(int fd, struct msghdr *mh)
{
	ssize_t n;
	int resets = 0;

	/* The kernel reports a reset before packets that are still queued: read on once. */
	do
		n = recvmsg(fd, mh, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (n < 0 && (errno == EINTR || (errno == ECONNRESET && !resets++)));
	return n;
}

int cm_fd_recv(int fd, struct cm_fd_msg *msg)
{
	struct iovec iov = { .iov_base = msg->buf, .iov_len = sizeof(msg->buf) };
	union cm_fd_control control;
	struct msghdr mh = { .msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.bytes,
			     .msg_controllen = sizeof(control.bytes) };
	ssize_t n = cm_fd_recvmsg(fd, &mh);

	msg->fd_cnt = 0;
	if (n < 0 && errno == EAGAIN)
		return -FI_EAGAIN;
	if (n < 0)
		return 0;
	cm_fd_collect(&mh, msg);
	msg->len = (size_t)n;
	msg->is_cut = mh.msg_flags & (MSG_TRUNC | MSG_CTRUNC);
	/* An empty packet looks like the end. cm sends none. */
	if (n)
		return 1;
	cm_fd_drop(msg);
	return 0;
}

void cm_fd_drop(struct cm_fd_msg *msg)
{
	while (msg->fd_cnt)
		close(msg->fds[--msg->fd_cnt]);
}
