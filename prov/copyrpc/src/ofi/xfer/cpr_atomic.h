/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Atomic operations of endpoints. Called by cpr_ep.
 *
 * Every pair of a datatype and an operation that fi_atomic(3) defines (core_atomic_math.h) is
 * offered, in all three families of calls, up to CORE_ATOMIC_LEN_MAX bytes of elements at a time.
 */
#ifndef OFI_XFER_CPR_ATOMIC_H
#define OFI_XFER_CPR_ATOMIC_H

#include <rdma/fi_atomic.h>
#include <stdint.h>

struct cpr_ep;

/** Allows the operations that the capabilities cover. */
void cpr_atomic_pick(struct cpr_ep *ep);

extern struct fi_ops_atomic cpr_atomic_ops;

/** Implements fi_query_atomic. */
int cpr_atomic_query(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op,
		     struct fi_atomic_attr *attr, uint64_t flags);

#endif
