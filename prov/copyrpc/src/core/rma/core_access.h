/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What has every operation on a peer's memory in common?
 *
 * It goes by calls, each for one stretch of one remote buffer, which the peer carries out and answers;
 * it has ended when all that have left are answered and no more will leave, and the first error is its.
 * Remote memory access (core_rma.h) and atomics (core_atomic.h) say what a call carries and
 * what an answer brings.
 *
 *   next, ext -> call -> answer: status, take -> is_over -> end
 *
 * Begins the request of either kind, from a pool of the endpoint, under the domain's lock.
 * Shown by test/unit/core/rma/test_core_access.c.
 */
#ifndef CORE_ACCESS_H
#define CORE_ACCESS_H

#include <rdma/fi_rma.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "core/core_chan.h"
#include "core/core_op.h"

#define CORE_ACCESS_IOV_MAX 4

struct util_pool;

struct core_access {
	struct core_op op;
	uint64_t kind;  /* what its completion says: FI_RMA or FI_ATOMIC, FI_READ or FI_WRITE */
	bool silent;    /* no completion, unless it fails */
	bool fetches;   /* bytes come back: as many as there are */
	bool posting;   /* calls are being made: answers that come meanwhile do not end it */
	bool issued;    /* the last call has left, or none will */
	uint32_t calls; /* that wait for their answer */
	int err;        /* the first that failed */
	size_t len;
	size_t sent;    /* bytes that calls have covered */
	size_t got;     /* bytes that have come back */
	size_t rma_idx; /* where the next call begins */
	uint64_t rma_off;
	uint64_t data;
	uint64_t flags; /* FI_COMPLETION, FI_REMOTE_CQ_DATA */
	void *context;
	void *copy; /* what an injected one carries, if it is not in the request, or NULL */
	size_t rma_cnt;
	struct fi_rma_iov rma[CORE_ACCESS_IOV_MAX]; /* their lengths add up to len */
};

static inline struct core_access *core_access_of(struct core_op *op)
{
	return UTIL_CONTAINER_OF(op, struct core_access, op);
}

/** The stretch that comes next: what is left of a remote buffer, at most `max`; 0: there is none. */
size_t core_access_next(struct core_access *access, size_t max);
/** Operation word and extension of the call for the next `len` bytes: `head` is what its kind begins with. */
void core_access_ext(const struct core_access *access, struct core_frame *frame, uint32_t op,
		     size_t len, const void *head, size_t size);
/** The call leaves, or the error of ops->call and nothing has changed. The answer may come before it returns. */
int core_access_call(struct core_access *access, const struct core_frame *frame, size_t len,
		     uint32_t resp_max);

/** What a peer's status means: 0 or -FI_E*. */
int core_access_status(uint32_t status);
/** Bytes of an answer, for place `off` of the whole: 0, or -FI_EIO for an answer that does not fit. */
int core_access_take(struct core_access *access, const struct iovec *iov, size_t cnt, uint64_t off,
		     const uint8_t *data, uint32_t len);
/** Nothing is to be waited for. It has failed then, too, if bytes have not come back. */
bool core_access_is_over(struct core_access *access);

/** Tells how it ended, and gives it back to its pool. */
void core_access_end(struct core_access *access, struct util_pool *pool);
void core_access_free(struct core_access *access, struct util_pool *pool);

#endif
