/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which peer is number n? fi_av over core_av.
 *
 * Shared by the endpoints that are bound to it: each of them hears of insertions and removals.
 * FI_AV_MAP and FI_AV_TABLE are the same here: the fi_addr_t is the index. All locks of the domain
 * are held when the table or the list of endpoints changes, one is enough to look.
 *
 * Shown by test/unit/ofi/domain/test_cpr_av.c.
 */
#ifndef CPR_AV_H
#define CPR_AV_H

#include <rdma/fi_domain.h>
#include <stdint.h>

#include "core/core_av.h"
#include "ofi/queue/cpr_eq.h"
#include "ofi/base/cpr_ref.h"
#include "util/list.h"

struct cpr_av;
struct cpr_domain;
struct dgram_av;

/** The table behind it. All but open and close locked; insert and remove, by all locks. */
struct cpr_av_kind {
	int (*open)(struct cpr_av *av, size_t count_hint); /* 0 or -FI_ENOMEM */
	void (*close)(struct cpr_av *av);
	int (*insert)(struct cpr_av *av, const struct sockaddr_storage *addr, uint64_t *number);
	int (*remove)(struct cpr_av *av, uint64_t number, bool *gone);
	/* Its bytes, 0: it is not in use. */
	size_t (*addr)(struct cpr_av *av, uint64_t number, struct sockaddr_storage *addr);
};

struct cpr_av {
	struct fid_av fid;
	struct cpr_domain *domain;
	const struct cpr_av_kind *kind;
	struct core_av *core;   /* of endpoints of messages */
	struct dgram_av *dgram; /* of endpoints of datagrams */
	struct cpr_ref refs;    /* endpoints */
	struct util_list eps;   /* cpr_ep.av_link */
	bool async;             /* FI_EVENT: insertions are reported to the event queue */
	struct cpr_eq_user eq_user;
};

int cpr_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av,
		void *context);

#endif
