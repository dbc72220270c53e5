/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Creation of memfds: see memfd.h. */
#include "util/memfd.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

/* MFD_NOEXEC_SEAL exists from 6.3 on, and some newer kernels are set up to require it. */
int util_memfd(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	return fd;
}

uint64_t util_file_max(void)
{
	struct rlimit lim;

	return getrlimit(RLIMIT_FSIZE, &lim) ? UINT64_MAX : lim.rlim_cur;
}
