/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * C library functions with a descriptor argument, for descriptors of the model. Also refuses the
 * netlink socket, so that libibverbs reads sysfs.
 *
 * Of RDMA_VERBS_IOCTL only what has no form for write() is executed; anything else is ENOTTY, which
 * makes libibverbs use write() for everything.
 */
#include "model/kernel/krn_chan.h"
#include "model/kernel/cm/krn_cm.h"
#include "model/kernel/cmd/krn_cmd.h"
#include "model/kernel/krn_ctx.h"
#include "model/kernel/krn_fd.h"
#include "model/kernel/krn_path.h"
#include "model/kernel/krn_real.h"
#include "model/fabric/mdl_raw.h"

#include <errno.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>

#define EXPORT       __attribute__((visibility("default")))
#define NETLINK_RDMA 20

EXPORT ssize_t __read_chk(int fd, void *to, size_t size, size_t room);
EXPORT int __fxstat(int version, int fd, struct stat *st);
EXPORT int __fxstat64(int version, int fd, struct stat64 *st);

static ssize_t as_errno(ssize_t rc)
{
	if (rc >= 0)
		return rc;
	errno = (int)-rc;
	return -1;
}

EXPORT ssize_t write(int fd, const void *from, size_t size)
{
	const struct krn_fd *entry = krn_fd_get(fd);

	if (entry && entry->kind == KRN_FD_UVERBS)
		return as_errno(krn_cmd_write(entry->index, from, size));
	if (entry && entry->kind == KRN_FD_CM)
		return as_errno(krn_cm_write(fd, entry->index, from, size));
	return krn_real()->write(fd, from, size);
}

EXPORT ssize_t read(int fd, void *to, size_t size)
{
	const struct krn_fd *entry = krn_fd_get(fd);

	if (entry && (entry->kind == KRN_FD_COMP || entry->kind == KRN_FD_ASYNC))
		return as_errno(krn_chan_read(fd, entry->index, to, size));
	return krn_real()->read(fd, to, size);
}

ssize_t __read_chk(int fd, void *to, size_t size, size_t room)
{
	if (size > room)
		krn_overflow("read");
	return read(fd, to, size);
}

EXPORT int ioctl(int fd, unsigned long request, ...)
{
	const struct krn_fd *entry = krn_fd_get(fd);
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (entry && entry->kind == KRN_FD_UVERBS && request == RDMA_VERBS_IOCTL)
		return (int)as_errno(krn_cmd_ioctl(entry->index, arg));
	return krn_real()->ioctl(fd, request, arg);
}

EXPORT int close(int fd)
{
	const struct krn_fd *entry = krn_fd_get(fd);

	if (entry) {
		struct krn_fd was = *entry;

		krn_fd_clear(fd);
		if (was.pid == MDL_RAW0(getpid)) {
			if (was.kind == KRN_FD_UVERBS)
				krn_ctx_close(was.index);
			else if (was.kind == KRN_FD_CM)
				krn_cm_close(was.index);
			else if (was.kind == KRN_FD_COMP)
				krn_chan_release(was.index);
			/*
			 * An asynchronous channel lives as long as its context; either may be
			 * closed first.
			 */
		}
	}
	return krn_real()->close(fd);
}

static dev_t uverbs_number(uint32_t index)
{
	const struct krn_ctx *ctx = krn_ctx_get(index);

	return makedev(KRN_DEV_MAJOR, KRN_DEV_MINOR + (ctx ? ctx->device : 0));
}

/* All names of fstat(). None calls another, which may be interposed by a sanitizer. */
static int io_fstat(int fd, struct stat *st)
{
	const struct krn_fd *entry = krn_fd_get(fd);
	int rc = krn_real()->fstat(fd, st);

	if (!rc && entry && (entry->kind == KRN_FD_UVERBS || entry->kind == KRN_FD_CM)) {
		st->st_mode = S_IFCHR | 0666;
		st->st_rdev = entry->kind == KRN_FD_UVERBS ? uverbs_number(entry->index)
							   : makedev(10, 59);
	}
	return rc;
}

EXPORT int fstat(int fd, struct stat *st)
{
	return io_fstat(fd, st);
}

EXPORT int fstat64(int fd, struct stat64 *st)
{
	return io_fstat(fd, (struct stat *)st);
}

/* Names that programs for glibc before 2.33 are linked to and that sanitizers call. */
EXPORT int __fxstat(int version, int fd, struct stat *st)
{
	return io_fstat(fd, st);
}

EXPORT int __fxstat64(int version, int fd, struct stat64 *st)
{
	return io_fstat(fd, (struct stat *)st);
}

EXPORT int socket(int domain, int type, int protocol)
{
	if (domain == AF_NETLINK && protocol == NETLINK_RDMA) {
		errno = EPROTONOSUPPORT;
		return -1;
	}
	return krn_real()->socket(domain, type, protocol);
}
