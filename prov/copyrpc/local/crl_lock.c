/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Lock of a path (crl_lock.h). No state. */
#include "local/crl_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "local/crl_wait.h"

/* Opens the directory of an absolute path. Returns a descriptor or a negative errno. */
static int crl_lock_open(const char *path)
{
	char dir[PATH_MAX];
	size_t len = (size_t)(strrchr(path, '/') - path) + 1;
	int fd;

	snprintf(dir, sizeof(dir), "%.*s", (int)len, path);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Locks an open directory. Returns 0 or a negative errno. */
static int crl_lock_await(int lock, const struct crl_wait *wait)
{
	while (flock(lock, LOCK_EX | LOCK_NB)) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -ENOLCK;
		if (!crl_wait_left(wait))
			return -EBUSY;
		poll(NULL, 0, 1);
	}
	return 0;
}

int crl_lock_take(const char *path)
{
	struct crl_wait wait = crl_wait_begin(CRL_LOCK_MS, -1);
	int ret, lock = crl_lock_open(path);

	if (lock < 0)
		return lock;
	ret = crl_lock_await(lock, &wait);
	if (!ret)
		return lock;
	close(lock);
	return ret;
}

void crl_lock_drop(int lock)
{
	flock(lock, LOCK_UN); /* a child that was forked meanwhile has the descriptor too */
	close(lock);
}
