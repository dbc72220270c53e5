/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sealed memfds (crl_mem.h). No state. */
#include "local/crl_mem.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "local/crl_fork.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

#define CRL_MEM_SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

/*
 * Creates a memfd. MFD_NOEXEC_SEAL exists from 6.3 on, and some kernels are set up to require it.
 */
static int crl_mem_fd(void)
{
	int fd = memfd_create("copyrpc-local", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("copyrpc-local", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	return fd < 0 ? -errno : fd;
}

static int crl_mem_fill(int fd, size_t len)
{
	int ret;

	do {
		ret = fallocate(fd, 0, 0, (off_t)len);
	} while (ret && errno == EINTR);
	return ret ? -errno : 0;
}

static int crl_mem_map(struct crl_mem *mem, int fd, size_t len, int prot)
{
	void *base = mmap(NULL, len, prot, MAP_SHARED, fd, 0);

	int ret;

	if (base == MAP_FAILED)
		return -errno;
	if (madvise(base, len, MADV_DONTFORK)) {
		ret = -errno;
		munmap(base, len);
		return ret;
	}
	*mem = (struct crl_mem){
		.base = base,
		.len = len,
		.fd = fd,
		.process = crl_fork_id(),
	};
	return 0;
}

int crl_mem_create(struct crl_mem *mem, size_t len, bool one_writer)
{
	int seals = CRL_MEM_SEALS | F_SEAL_SEAL | (one_writer ? F_SEAL_FUTURE_WRITE : 0);
	int ret, fd = crl_mem_fd();

	if (fd < 0)
		return fd;
	ret = crl_mem_fill(fd, len);
	ret = ret ? ret : crl_mem_map(mem, fd, len, PROT_READ | PROT_WRITE);
	if (ret) {
		close(fd);
		return ret;
	}
	if (!fcntl(fd, F_ADD_SEALS, seals))
		return 0;
	ret = -errno;
	crl_mem_close_fd(mem);
	crl_mem_free(mem);
	return ret;
}

/* Checks that no access below `len` can fail. */
static int crl_mem_check(int fd, size_t len)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 || (seals & CRL_MEM_SEALS) != CRL_MEM_SEALS || fstat(fd, &st))
		return -EPROTO;
	return st.st_size >= 0 && (size_t)st.st_size >= len ? 0 : -EPROTO;
}

int crl_mem_attach(struct crl_mem *mem, int fd, size_t len, bool read_only)
{
	int ret = crl_mem_check(fd, len);

	if (!ret)
		ret = crl_mem_map(mem, fd, len, read_only ? PROT_READ : PROT_READ | PROT_WRITE);
	close(fd);
	if (!ret)
		mem->fd = -1;
	return ret;
}

void crl_mem_close_fd(struct crl_mem *mem)
{
	if (mem->base && mem->fd >= 0)
		close(mem->fd);
	mem->fd = -1;
}

void crl_mem_free(struct crl_mem *mem)
{
	/* In a forked child other memory may be there by now. */
	if (mem->base && mem->process == crl_fork_id())
		munmap(mem->base, mem->len);
	mem->base = NULL;
}
