/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Doorbell of the inbox, an eventfd for sleeping readers: the rare part of shm_inbox.h. */
#include "dev/shm/shm_inbox.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/log.h"

void shm_inbox_ring(struct shm_inbox *inbox, int bell_fd)
{
	uint32_t number = __atomic_load_n(&inbox->sleeping, __ATOMIC_SEQ_CST);
	uint64_t one = 1;
	ssize_t ret;

	if (!number)
		return;
	/* A write fails only if the bell is already readable. */
	ret = write(bell_fd, &one, sizeof(one));
	(void)ret;
	/* Fails if the reader has woken since: another sleep has another number. */
	__atomic_compare_exchange_n(&inbox->sleeping, &number, 0, false, __ATOMIC_SEQ_CST,
				    __ATOMIC_RELAXED);
}

void shm_inbox_sleep(struct shm_inbox *inbox, uint32_t *number)
{
	*number = (*number + 2) | 1;
	__atomic_store_n(&inbox->sleeping, *number, __ATOMIC_SEQ_CST);
}

bool shm_inbox_wake(struct shm_inbox *inbox, int bell_fd)
{
	uint64_t count;

	__atomic_store_n(&inbox->sleeping, 0, __ATOMIC_SEQ_CST);
	return read(bell_fd, &count, sizeof(count)) > 0;
}

int shm_bell_create(void)
{
	int err, fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

	if (fd >= 0)
		return fd;
	err = errno;
	UTIL_WARN_SELDOM(FABRIC, "eventfd: %s%s\n", strerror(err),
			 err == EMFILE ? " (raise the limit on open files: ulimit -n)" : "");
	return err == EMFILE || err == ENFILE ? -FI_EMFILE : -FI_ENOMEM;
}

int shm_bell_check(int fd)
{
	struct stat st;
	int flags = fcntl(fd, F_GETFL);

	/*
	 * An eventfd is an anonymous inode without a file type. Refuses pipes, sockets and files.
	 */
	if (flags >= 0 && (flags & O_NONBLOCK) && !fstat(fd, &st) && !(st.st_mode & S_IFMT))
		return 0;
	UTIL_WARN(FABRIC, "peer's doorbell refused: not a non-blocking eventfd\n");
	return -FI_EINVAL;
}
