/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sealed memfds (shm_seg.h). No state. */
#include "dev/shm/shm_seg.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/log.h"
#include "util/memfd.h"

#define SHM_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/*
 * Creates a memfd. Returns the descriptor, -FI_EMFILE, -FI_ENOSYS if the system refuses the call,
 * or -FI_ENOMEM, with errno set.
 */
static int shm_seg_try_memfd(const char *name)
{
	int fd = util_memfd(name);

	if (fd >= 0)
		return fd;
	switch (errno) {
	case EMFILE:
	case ENFILE: return -FI_EMFILE;
	case EPERM:
	case EACCES:
	case EINVAL:
	case ENOSYS: return -FI_ENOSYS;
	default: return -FI_ENOMEM;
	}
}

static int shm_seg_memfd(const char *name)
{
	int fd = shm_seg_try_memfd(name);

	if (fd < 0)
		UTIL_WARN_SELDOM(FABRIC, "memfd_create: %s%s\n", strerror(errno),
				 fd == -FI_EMFILE ? " (raise the limit on open files: ulimit -n)"
						  : "");
	return fd;
}

int shm_seg_probe(struct dev_about *about)
{
	int fd = shm_seg_try_memfd("copyrpc-probe");

	(void)about;
	if (fd >= 0)
		close(fd);
	return fd == -FI_ENOSYS ? fd : 0;
}

static int shm_seg_check_limit(size_t len)
{
	uint64_t max = util_file_max();

	if (len <= max)
		return 0;
	UTIL_WARN_SELDOM(FABRIC,
			 "a shared-memory segment of %zu bytes is above the limit on file sizes "
			 "(%llu bytes): raise it (ulimit -f), or lower FI_COPYRPC_RING_SIZE or "
			 "FI_COPYRPC_MEM\n",
			 len, (unsigned long long)max);
	return -FI_ENOSPC;
}

static int shm_seg_fill(int fd, size_t len)
{
	int ret;

	do {
		ret = fallocate(fd, 0, 0, (off_t)len);
	} while (ret && errno == EINTR);
	if (!ret)
		return 0;
	UTIL_WARN_SELDOM(
		FABRIC,
		"no memory for a shared-memory segment of %zu bytes (%s): it counts like a file "
		"in /dev/shm. Free some, raise the memory limit of the container, or lower "
		"FI_COPYRPC_MEM or FI_COPYRPC_RING_SIZE\n",
		len, strerror(errno));
	return -FI_ENOSPC;
}

int shm_seg_create(const char *name, size_t len, int *fd)
{
	int mfd, ret;

	ret = shm_seg_check_limit(len);
	if (ret)
		return ret;
	mfd = shm_seg_memfd(name);
	if (mfd < 0)
		return mfd;
	ret = shm_seg_fill(mfd, len);
	if (ret)
		goto err_close;
	if (fcntl(mfd, F_ADD_SEALS, SHM_SEALS)) {
		UTIL_WARN(FABRIC, "cannot seal a memfd: %s\n", strerror(errno));
		ret = -FI_ENOSYS;
		goto err_close;
	}
	*fd = mfd;
	return 0;

err_close:
	close(mfd);
	return ret;
}

int shm_seg_check(int fd, size_t len)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 || (seals & SHM_SEALS) != SHM_SEALS) {
		UTIL_WARN(FABRIC, "peer's shared memory refused: its size is not sealed\n");
		return -FI_EINVAL;
	}
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size != (off_t)len) {
		UTIL_WARN(FABRIC, "peer's shared memory refused: %lld bytes, announced %zu\n",
			  (long long)st.st_size, len);
		return -FI_EINVAL;
	}
	if ((uint64_t)st.st_blocks * 512 < len) {
		UTIL_WARN(FABRIC, "peer's shared memory refused: its pages are not allocated\n");
		return -FI_EINVAL;
	}
	return 0;
}

int shm_seg_map(int fd, size_t len, void **addr)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);

	if (p == MAP_FAILED) {
		UTIL_WARN(FABRIC, "cannot map %zu bytes of shared memory: %s\n", len,
			  strerror(errno));
		return -FI_ENOMEM;
	}
	*addr = p;
	return 0;
}

void shm_seg_unmap(void *addr, size_t len)
{
	if (addr)
		munmap(addr, len);
}
