/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Lock of a path (crl_lock.h). No state. */
#include "local/crl_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "local/crl_wait.h"

static int crl_lock_name(const char *path, char name[PATH_MAX])
{
	return snprintf(name, PATH_MAX, "%s" CRL_LOCK_SUFFIX, path) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* Locks an open file. Returns 0 or a negative errno. */
static int crl_lock_await(int lock, const struct crl_wait *wait)
{
	while (flock(lock, LOCK_EX | LOCK_NB)) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -ENOLCK;
		if (!crl_wait_left(wait))
			return -EADDRINUSE;
		poll(NULL, 0, 1);
	}
	return 0;
}

/* Returns true if the open file is the one of that name, so that no holder has removed it. */
static bool crl_lock_is_named(int lock, const char *name)
{
	struct stat mine, now;

	return !fstat(lock, &mine) && !lstat(name, &now) && mine.st_dev == now.st_dev &&
	       mine.st_ino == now.st_ino;
}

int crl_lock_take(const char *path)
{
	struct crl_wait wait = crl_wait_begin(CRL_LOCK_MS, -1);
	char name[PATH_MAX];
	int lock, ret = crl_lock_name(path, name);

	while (!ret) {
		lock = open(name, O_CREAT | O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
		if (lock < 0)
			return -errno;
		ret = crl_lock_await(lock, &wait);
		if (!ret && crl_lock_is_named(lock, name))
			return lock;
		if (ret == -ENOLCK)
			unlink(name);
		close(lock);
	}
	return ret;
}

void crl_lock_drop(const char *path, int lock)
{
	char name[PATH_MAX];

	if (!crl_lock_name(path, name))
		unlink(name);
	flock(lock, LOCK_UN); /* a child that was forked meanwhile has the descriptor too */
	close(lock);
}
