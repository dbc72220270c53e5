/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which addresses of an AV belong together, and in which order?
 *
 * fi_av_set(3): a list of fi_addr_t without repetitions, for fi_join_collective, which copies it. All of
 * it is local. Who changes a set while he joins with it gets one or the other.
 *
 * Shown by test/unit/ofi/domain/test_cpr_av_set.c.
 */
#ifndef CPR_AV_SET_H
#define CPR_AV_SET_H

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

/** fi_ops_av.av_set */
int cpr_av_set_open(struct fid_av *av, struct fi_av_set_attr *attr, struct fid_av_set **set,
		    void *context);

/** What fi_av_set_addr says. */
fi_addr_t cpr_av_set_addr(const struct cpr_av_set *set);

#endif
