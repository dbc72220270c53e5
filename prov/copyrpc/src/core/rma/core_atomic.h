/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How do we change a peer's memory in one step?
 *
 * By calls that the peer executes in its progress as they arrive, with its processor's instructions
 * (core_atomic_exec.h), and answers at once (core_access.h). One that has ended was carried out,
 * whatever completion was asked for. A call is never repeated, so nothing is done twice; one whose
 * peer dies ends with an error, and may have been done or not. It leaves with room reserved for its
 * answer: no order of operations of both ends can block.
 *
 * The NIC's own 64-bit atomics are not used: they are not atomic with respect to processors.
 *
 *   core_atomic_post -> core_op queue -> calls while there is room -> answers -> completion
 *
 * Operations start in the order they were posted, sends and remote accesses included.
 *
 * Shown by test/unit/core/rma/test_core_atomic.c.
 */
#ifndef CORE_ATOMIC_H
#define CORE_ATOMIC_H

#include <rdma/fi_rma.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "core/core_chan.h"
#include "core/core_ep.h"
#include "core/msg/core_unexp.h"
#include "core/rma/core_access.h"
#include "core/rma/core_atomic_math.h"

#define CORE_ATOMIC_IOV_MAX CORE_ACCESS_IOV_MAX
/** Bytes of elements in one operation: what fi_atomicvalid counts. */
#define CORE_ATOMIC_LEN_MAX (64u << 10)

/** An operation, as fi_atomicmsg and its sisters state it; it is valid (core_atomic_math.h). */
struct core_atomic {
	enum core_atomic_kind kind;
	unsigned type;
	unsigned op;
	bool silent; /* fi_inject_atomic: no completion, unless it fails */
	fi_addr_t peer;
	size_t len; /* bytes of all elements: > 0, and the length of each list that there is */
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
 * 0, -FI_EAGAIN, -FI_EINVAL (unknown address), or why the peer cannot be reached. What the target
 * does not grant is a failed completion: FI_EKEYREJECTED, FI_EACCES, FI_EINVAL (bounds, alignment).
 */
ssize_t core_atomic_post(struct core_ep *ep, const struct core_atomic *a);

#define CORE_ATOMIC_INLINE 64u

/** One list of elements. */
struct core_atomic_list {
	size_t cnt;
	struct iovec iov[CORE_ATOMIC_IOV_MAX];
};

/** An operation of ours, from the endpoint's pool. */
struct core_atomic_req {
	struct core_access access; /* its bytes are those of elements */
	enum core_atomic_kind kind;
	uint8_t type;
	uint8_t code; /* enum fi_op */
	size_t size;  /* bytes of an element */
	struct core_atomic_list operand, compare, result;
	uint8_t inlined[CORE_ATOMIC_INLINE]; /* lists of an injected operation, if they fit */
};

/** The target's side. */
enum core_rx_verdict core_atomic_on_call(struct core_chan *chan, struct core_call_ref ref,
					 const struct core_head *head);

#endif
