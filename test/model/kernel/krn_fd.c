/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The table of descriptors. */
#include "model/kernel/krn_fd.h"
#include "model/fabric/mdl_raw.h"

#include <stddef.h>
#include <sys/stat.h>

#define FD_MAX 65536

static struct krn_fd table[FD_MAX];

static uint64_t inode_of(int fd)
{
	struct stat st = { 0 };

	return MDL_RAW2(fstat, fd, &st) < 0 ? 0 : st.st_ino;
}

void krn_fd_set(int fd, enum krn_fd_kind kind, uint32_t index)
{
	if (fd < 0 || fd >= FD_MAX)
		return;
	table[fd].index = index;
	table[fd].pid = (int32_t)MDL_RAW0(getpid);
	table[fd].inode = inode_of(fd);
	__atomic_store_n(&table[fd].kind, kind, __ATOMIC_RELEASE);
}

const struct krn_fd *krn_fd_get(int fd)
{
	if (fd < 0 || fd >= FD_MAX ||
	    __atomic_load_n(&table[fd].kind, __ATOMIC_ACQUIRE) == KRN_FD_NONE)
		return NULL;
	return inode_of(fd) == table[fd].inode ? &table[fd] : NULL;
}

void krn_fd_clear(int fd)
{
	if (fd >= 0 && fd < FD_MAX)
		__atomic_store_n(&table[fd].kind, KRN_FD_NONE, __ATOMIC_RELEASE);
}
