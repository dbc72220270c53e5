/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Table of the descriptors of this process that belong to the model.
 *
 * The descriptors are real ones (a memfd for a device context, sockets for channels), so that
 * poll(), epoll and mmap() work unchanged; only read(), write(), close() and fstat() are served
 * here. A descriptor that was closed by a system call and reused is recognised by its inode.
 */
#ifndef KRN_FD_H
#define KRN_FD_H

#include <stdint.h>

enum krn_fd_kind { KRN_FD_NONE, KRN_FD_UVERBS, KRN_FD_COMP, KRN_FD_ASYNC, KRN_FD_CM };

struct krn_fd {
	enum krn_fd_kind kind;
	uint32_t index; /* index of the context, the channel, the CM file */
	int32_t pid;    /* process that opened it: a child may close its inherited copy */
	uint64_t inode;
};

/* Registers the descriptor, replacing any earlier entry. */
void krn_fd_set(int fd, enum krn_fd_kind kind, uint32_t index);
/* Returns the entry of a descriptor, or null. Fast for descriptors of the program. */
const struct krn_fd *krn_fd_get(int fd);
void krn_fd_clear(int fd);

#endif /* KRN_FD_H */
