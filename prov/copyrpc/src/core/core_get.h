/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Access of a peer's memory past its rings: gets of exposed memory, and direct accesses, in which
 * the device reads or writes registered memory. Arguments of the operations get, expose, direct and
 * access of a channel (core_chan.h).
 */
#ifndef CORE_CORE_GET_H
#define CORE_CORE_GET_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct core_chan;
struct core_reg;

/** Bulk get of the peer's memory, or a direct access. Owned by the caller until on_get_done. */
struct core_get {
	uint64_t remote_addr;
	uint64_t remote_key;
	const struct iovec *iov; /* valid until the end */
	size_t iov_cnt;
	size_t len;                         /* not 0, at most the length of iov */
	struct core_reg *reg;               /* ops->direct: covers iov; NULL: not registered */
	int status;                         /* 0 or -FI_E* */
	void (*done)(struct core_get *get); /* called by core at the end of the get */
	void *engine[20];                   /* the engine's until done: the device's transfer */
};

/** Flags of core_chan_ops.direct. */
enum core_direct_flag {
	CORE_DIRECT_WRITE = 1 << 0,   /* to the peer's memory; else a read */
	CORE_DIRECT_PLACED = 1 << 1,  /* a write ends once its bytes are in the peer's memory */
	CORE_DIRECT_MORE = 1 << 2,    /* FI_MORE: may wait for the next one or a flush */
	CORE_DIRECT_ORDERED = 1 << 3, /* messages accepted before leave before */
	CORE_DIRECT_NOW = 1 << 4,     /* simple: leaves before the return */
	CORE_DIRECT_SILENT = 1 << 5,  /* simple: on_accessed may be late, until is_busy asks */
};

/** Arguments of core_chan_ops.access. */
struct core_access_args {
	const void *buf;
	size_t len; /* not 0, at most 1 GiB */
	uint64_t remote_addr;
	uint64_t remote_key;
	struct core_reg *reg; /* covers the buffer, or NULL */
	unsigned flags;       /* enum core_direct_flag, without PLACED */
};

/** Memory that is exposed to gets of the peer. Owned by the caller of expose until unexpose. */
struct core_exposure {
	struct core_chan *chan; /* NULL: not exposed */
	uint64_t key;           /* rkey, core_get.remote_key of the peer */
	void *engine;
};

#endif
