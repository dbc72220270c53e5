/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Collective operations: fi_collective over core_coll. Called by cpr_ep and cpr_domain.
 *
 * A joined group is a struct fid_mc, and its address for the calls is the struct's.
 * fi_collective(3) leaves open: `count` is what one member has for one other (the receive count of
 * MPI's collectives); members that call with different counts get an error; an operation ends when
 * this member's part in it is done; operations are counted as FI_WRITE.
 */
#ifndef OFI_XFER_CPR_COLL_H
#define OFI_XFER_CPR_COLL_H

#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>

extern struct fi_ops_collective cpr_coll_ops;

/** Implement fi_ops_cm.join and fi_ops_domain.query_collective. */
int cpr_coll_join(struct fid_ep *ep, const void *addr, uint64_t flags, struct fid_mc **mc,
		  void *context);
int cpr_coll_query(struct fid_domain *domain, enum fi_collective_op coll,
		   struct fi_collective_attr *attr, uint64_t flags);

#endif
