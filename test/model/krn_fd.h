/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which descriptors of this process are the model's.
 *
 * The descriptors are real ones (a memfd for a device context, sockets for channels), so that
 * poll(), epoll and mmap() need no help; only read(), write(), close() and fstat() of them are
 * served here. A descriptor that was closed behind our back and given to something else is
 * recognised by its inode.
 */
#ifndef KRN_FD_H
#define KRN_FD_H

#include <stdint.h>

enum krn_fd_kind { KRN_FD_NONE, KRN_FD_UVERBS, KRN_FD_COMP, KRN_FD_ASYNC, KRN_FD_CM };

struct krn_fd {
	enum krn_fd_kind kind;
	uint32_t index; /* of the context, the channel, the CM file */
	int32_t pid;    /* who opened it: a child that inherits it may close its copy in peace */
	uint64_t inode;
};

/* Remembers the descriptor; what was known about it before is forgotten. */
void krn_fd_set(int fd, enum krn_fd_kind kind, uint32_t index);
/* What the descriptor is, or null. Fast where it is none of ours. */
const struct krn_fd *krn_fd_get(int fd);
void krn_fd_clear(int fd);

#endif /* KRN_FD_H */
