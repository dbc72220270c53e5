/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Common part of RMA and atomic operations. Called by core_rma*.c and core_atomic*.c, which define
 * the content of calls and responses.
 *
 * An access is a sequence of calls, each for a range of one remote buffer. It ends when the last
 * call has left and all calls have responses; the first error is its result.
 *
 *   next, ext -> call -> response: status, take -> is_over -> end
 *
 * struct core_access is the first part of a request from a pool of the endpoint. The domain's lock
 * covers it.
 */
#ifndef CORE_RMA_CORE_ACCESS_H
#define CORE_RMA_CORE_ACCESS_H

#include <rdma/fi_rma.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "core/core_chan.h"
#include "core/core_head.h"
#include "core/core_mr.h"
#include "core/core_op.h"

#define CORE_ACCESS_IOV_MAX 4

struct core_peer;
struct util_pool;

struct core_access {
	struct core_op op;
	uint64_t kind;  /* completion flags: FI_RMA or FI_ATOMIC, FI_READ or FI_WRITE */
	bool silent;    /* completes only if it fails */
	bool fetches;   /* responses return `len` bytes in all */
	bool posting;   /* calls are being made: responses do not end the access now */
	bool issued;    /* no more calls will leave */
	uint32_t calls; /* calls without a response */
	int err;        /* first error */
	size_t len;
	size_t sent;    /* bytes covered by calls */
	size_t got;     /* bytes returned */
	size_t rma_idx; /* buffer and offset where the next call begins */
	uint64_t rma_off;
	uint64_t data;
	uint64_t flags; /* FI_COMPLETION, FI_REMOTE_CQ_DATA */
	void *context;
	void *copy; /* heap copy of injected bytes, or NULL */
	size_t rma_cnt;
	struct fi_rma_iov rma[CORE_ACCESS_IOV_MAX]; /* of `len` bytes in all */
};

static inline struct core_access *core_access_of(struct core_op *op)
{
	return UTIL_CONTAINER_OF(op, struct core_access, op);
}

/** Returns the length of the next range, at most `max`, or 0 if there is none. */
size_t core_access_next(struct core_access *access, size_t max);
/** Sets operation word and extension of a call for the next `len` bytes; `head`: wire header. */
void core_access_ext(const struct core_access *access, struct core_frame *frame, uint32_t op,
		     size_t len, const void *head, size_t size);
/**
 * Makes a call. Returns 0, or the error of ops->call with nothing changed. The response may come
 * before the call returns.
 */
int core_access_call(struct core_access *access, const struct core_frame *frame, size_t len,
		     uint32_t resp_max);

/** Counts the response to a call, or its failure. */
void core_access_responded(struct core_access *access);

/** Returns a peer's status as 0 or -FI_E*. */
int core_access_status(uint32_t status);
/** Stores the bytes of a response at `off` in the iov. Returns 0, or -FI_EIO if they do not fit. */
int core_access_take(struct core_access *access, const struct iovec *iov, size_t cnt, uint64_t off,
		     const uint8_t *data, uint32_t len);
/** Returns true if the access can end. Sets the error -FI_EIO if bytes are missing. */
bool core_access_is_over(struct core_access *access);

/** Completes the access and frees it to its pool. */
void core_access_end(struct core_access *access, struct util_pool *pool);
void core_access_free(struct core_access *access, struct util_pool *pool);

/** Memory of a region that a call from a peer accesses. */
struct core_access_target {
	struct core_mr *mr; /* NULL: an access of no bytes */
	struct iovec iov[CORE_MR_IOV_MAX];
	size_t iov_cnt;
};

/**
 * Finds the memory [addr, addr + len) of the region `key`, if endpoint and region grant all of
 * `rights` (FI_REMOTE_READ, FI_REMOTE_WRITE). Returns 0, or -FI_E* for the reply.
 */
int core_access_reach(const struct core_peer *peer, uint64_t key, uint64_t addr, size_t len,
		      uint64_t rights, struct core_access_target *target);
/**
 * Counts an access of a peer after its last call, and writes the completion of remote CQ data.
 * `kind`: FI_RMA or FI_ATOMIC; `rights`: what the access needed (FI_REMOTE_READ, FI_REMOTE_WRITE);
 * `len`: bytes of the whole access.
 *
 * A fetching atomic needs both. Counters of the endpoint count it as a read (fi_endpoint(3)),
 * counters of the region as what it does to the region: a read and a write (fi_mr(3)). A counter
 * that is bound for both counts it once.
 */
void core_access_notify(const struct core_peer *peer, const struct core_mr *mr, uint64_t kind,
			uint64_t rights, size_t len, const struct core_head *head);

#endif
