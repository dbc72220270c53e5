/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Atomic operations on a peer's memory (fi_atomic). Called by ofi/; the target side through
 * core_handlers.
 *
 * An operation is a sequence of calls (core_access.h). The peer executes each in its progress with
 * processor instructions (core_atomic_exec.h) and replies at once. A completed operation has been
 * executed, whatever completion level was requested. Calls are never repeated, so nothing executes
 * twice. If the peer dies the operation fails, and may have been executed. Room for the response is
 * reserved before a call leaves, so no order of operations of both ends can deadlock.
 *
 * The 64-bit atomics of the NIC are not used: they are not atomic with respect to processors.
 *
 *   core_atomic_post -> core_op queue -> calls while there is room -> responses -> completion
 *
 * Operations start in the order they were posted, sends and remote accesses included.
 */
#ifndef CORE_RMA_CORE_ATOMIC_H
#define CORE_RMA_CORE_ATOMIC_H

#include <rdma/fi_rma.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "core/core_atomic_math.h"
#include "core/core_chan.h"
#include "core/core_ep.h"
#include "core/core_head.h"
#include "core/rma/core_access.h"

#define CORE_ATOMIC_IOV_MAX CORE_ACCESS_IOV_MAX
/** Bytes of elements in one operation; fi_atomicvalid derives its count from it. */
#define CORE_ATOMIC_LEN_MAX (64u << 10)

/** Arguments of a valid operation (core_atomic_math.h), as of fi_atomicmsg. */
struct core_atomic {
	enum core_atomic_kind kind;
	unsigned type;
	unsigned op;
	bool silent; /* fi_inject_atomic: completes only if it fails */
	fi_addr_t peer;
	size_t len;                  /* bytes of all elements, > 0, and of each list in use */
	const struct iovec *operand; /* no list for FI_ATOMIC_READ */
	size_t operand_cnt;          /* counts are <= CORE_ATOMIC_IOV_MAX */
	const struct iovec *compare;
	size_t compare_cnt;
	const struct iovec *result;
	size_t result_cnt;
	const struct fi_rma_iov *rma; /* whole elements each */
	size_t rma_cnt;
	uint64_t data;
	void *context;
	uint64_t flags; /* FI_COMPLETION, FI_INJECT, FI_FENCE, FI_REMOTE_CQ_DATA (base only) */
};

/**
 * Posts an operation. Returns 0, -FI_EAGAIN, -FI_EINVAL for an unknown address, or the error that
 * made the peer unreachable. A target that denies access causes an error completion:
 * FI_EKEYREJECTED, FI_EACCES or FI_EINVAL (bounds, alignment).
 */
ssize_t core_atomic_post(struct core_ep *ep, const struct core_atomic *a);

#define CORE_ATOMIC_INLINE 64u

/** List of elements. */
struct core_atomic_list {
	size_t cnt;
	struct iovec iov[CORE_ATOMIC_IOV_MAX];
};

/** Operation in progress, from the endpoint's pool. */
struct core_atomic_req {
	struct core_access access; /* lengths count bytes of elements */
	enum core_atomic_kind kind;
	uint8_t type;
	uint8_t code; /* enum fi_op */
	size_t size;  /* bytes of an element */
	struct core_atomic_list operand, compare, result;
	uint8_t inlined[CORE_ATOMIC_INLINE]; /* lists of an injected operation, if they fit */
};

/** Executes a call at the target. */
enum core_rx_verdict core_atomic_on_call(struct core_chan *chan, struct core_call_ref ref,
					 struct core_head *head, core_retain_t retain);

#endif
