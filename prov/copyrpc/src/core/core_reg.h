/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Registration of memory with the device of a transport. Made by core_chan_ops.reg, listed in its
 * region (core_mr.h).
 *
 * The bytes of the memory may be moved by the device until `close`, which waits for nothing: the
 * device then accesses them no more, and an access in flight fails its connection. `users` tells
 * whether one of this end is in flight. The lock of the domain that made it guards `users`.
 */
#ifndef CORE_CORE_REG_H
#define CORE_CORE_REG_H

#include <stdint.h>

struct core_reg {
	struct core_reg *next; /* of the same region */
	const void *dev;       /* core_chan.reg_dev of the channels that may use it */
	unsigned access;       /* FI_REMOTE_READ, FI_REMOTE_WRITE: for peers; 0: local buffers */
	uint32_t users;        /* transfers of this end in progress */
	uint64_t key;          /* rkey */
	void *mem;             /* the engine's */
	/* Deregisters and frees. Called under the lock of its domain. */
	void (*close)(struct core_reg *reg);
};

#endif
