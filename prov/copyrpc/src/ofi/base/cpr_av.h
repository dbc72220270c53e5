/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Address vectors: fi_av over core_av. Opened by fi_av_open.
 *
 * Shared by the endpoints that are bound to the vector; each is notified of insertions and
 * removals. FI_AV_MAP and FI_AV_TABLE are equal here: the fi_addr_t is the index. The table and the
 * list of endpoints change with all locks of the domain held; one lock is enough to read them.
 *
 * Tested by test/unit/ofi/domain/test_cpr_av.c.
 */
#ifndef OFI_BASE_CPR_AV_H
#define OFI_BASE_CPR_AV_H

#include <rdma/fi_domain.h>
#include <stdint.h>

#include "core/core_av.h"
#include "ofi/base/cpr_eq_user.h"
#include "ofi/base/cpr_ref.h"
#include "util/list.h"

struct cpr_av;
struct cpr_domain;
struct dgram_av;

/**
 * Table behind an address vector. All calls but open and close are made locked; insert and remove
 * with all locks of the domain.
 */
struct cpr_av_kind {
	int (*open)(struct cpr_av *av, size_t count_hint); /* 0 or -FI_ENOMEM */
	void (*close)(struct cpr_av *av);
	int (*insert)(struct cpr_av *av, const struct sockaddr_storage *addr, uint64_t *number);
	int (*remove)(struct cpr_av *av, uint64_t number, bool *gone);
	/* Returns the bytes of the address, 0 if the number is not in use. */
	size_t (*addr)(struct cpr_av *av, uint64_t number, struct sockaddr_storage *addr);
};

struct cpr_av {
	struct fid_av fid;
	struct cpr_domain *domain;
	const struct cpr_av_kind *kind;
	struct core_av *core;   /* for endpoints of messages */
	struct dgram_av *dgram; /* for endpoints of datagrams */
	struct cpr_ref refs;    /* endpoints */
	struct util_list eps;   /* cpr_ep.av_link */
	bool async;             /* FI_EVENT: insertions are reported to the event queue */
	struct cpr_eq_user eq_user;
};

int cpr_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av,
		void *context);

#endif
