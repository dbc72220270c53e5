/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Address sets, fi_av_set(3): an ordered list of fi_addr_t without repetitions. Opened by
 * fi_av_set, read by fi_join_collective, which copies the list.
 *
 * A set is local to the process. cpr_domain.changes guards the lists: if a set changes while a join
 * reads it, the join uses the list before or after the change.
 *
 * Tested by test/unit/ofi/domain/test_cpr_av_set.c.
 */
#ifndef OFI_BASE_CPR_AV_SET_H
#define OFI_BASE_CPR_AV_SET_H

#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <stddef.h>

struct cpr_av;

struct cpr_av_set {
	struct fid_av_set fid;
	struct cpr_av *av;
	fi_addr_t *addrs;
	size_t cnt;
	size_t room;
};

static inline const struct cpr_av_set *cpr_av_set_of(const struct fid_av_set *fid)
{
	return (const struct cpr_av_set *)((const char *)fid - offsetof(struct cpr_av_set, fid));
}

/** Implements fi_ops_av.av_set. */
int cpr_av_set_open(struct fid_av *av, struct fi_av_set_attr *attr, struct fid_av_set **set,
		    void *context);

/** Takes and releases the lock of the sets of a domain. */
void cpr_av_set_lock(const struct cpr_av_set *set);
void cpr_av_set_unlock(const struct cpr_av_set *set);

/** Returns the address that fi_av_set_addr reports for the set. */
fi_addr_t cpr_av_set_addr(const struct cpr_av_set *set);

#endif
