/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shared memory without a name: sealed memfds. Used by crl_server.c, crl_accept.c and crl_client.c.
 *
 * All pages are allocated when a memory is created, and its size is sealed: no access to it can
 * fail later. A forked child does not have the memory.
 */
#ifndef LOCAL_CRL_MEM_H
#define LOCAL_CRL_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Memory that is mapped here. */
struct crl_mem {
	void *base;
	size_t len;
	int fd;           /* -1: closed, the mapping remains */
	uint32_t process; /* crl_fork_id of the process that mapped it */
};

/**
 * Creates zeroed memory and maps it. one_writer: no other process can map it for writing. Returns 0
 * or a negative errno.
 */
int crl_mem_create(struct crl_mem *mem, size_t len, bool one_writer);

/**
 * Maps memory that another process created, and closes the descriptor, also on error. Returns 0,
 * -EPROTO if it is shorter than `len` or not sealed, or a negative errno.
 */
int crl_mem_attach(struct crl_mem *mem, int fd, size_t len, bool read_only);

void crl_mem_close_fd(struct crl_mem *mem);

/** Unmaps, except in a forked child. May be called for a zeroed object. */
void crl_mem_free(struct crl_mem *mem);

#endif
